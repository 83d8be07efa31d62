//! Communicators, messages and collective calls.

use std::collections::hash_map::DefaultHasher;
use std::ffi::c_int;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::sync::Arc;

use crate::requests::{poll, put_request};
use crate::types;
use crate::words::{comm_null, get, handle, handle_at, int, list, operation, put, put_handle, put_status, Word};
use crate::world::{try_with, wait_until, with, CommunicatorState, MessageKey, OutstandingOperation, ScriptedResult};

#[no_mangle]
extern "C" fn MPI_Init_thread(_: Word, _: Word, _: Word, provided: Word) -> c_int {
    put(provided, 0 as c_int);
    0
}

#[no_mangle]
extern "C" fn MPI_Initialized(flag: Word) -> c_int {
    put(flag, c_int::from(try_with(|_| ()).is_some()));
    0
}

#[no_mangle]
extern "C" fn MPI_Finalized(flag: Word) -> c_int {
    put(flag, 0 as c_int);
    0
}

#[no_mangle]
extern "C" fn MPI_Finalize() -> c_int {
    std::thread::sleep(try_with(|rank| rank.finalize_time).unwrap_or_default());
    0
}

#[no_mangle]
extern "C" fn MPI_Comm_set_errhandler(_: Word, _: Word) -> c_int {
    0
}

#[no_mangle]
extern "C" fn MPI_Comm_rank(comm: Word, rank: Word) -> c_int {
    let (own, comm) = with(|rank| (rank.rank, rank.comm(comm).clone()));
    put(rank, comm.members.iter().position(|one| *one == own).unwrap_or(0) as c_int);
    0
}

#[no_mangle]
extern "C" fn MPI_Comm_size(comm: Word, size: Word) -> c_int {
    put(size, with(|rank| rank.comm(comm).members.len()) as c_int);
    0
}

#[no_mangle]
extern "C" fn MPI_Comm_free(comm: Word) -> c_int {
    let known = with(|rank| rank.comms.remove(&handle_at(comm, 0)));
    assert!(known.is_some(), "MPI_Comm_free of an invalid communicator");
    put_handle(comm, 0, comm_null());
    0
}

fn hash_id(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// Creates a communicator; `id` is the same on all its ranks.
fn put_comm(new: Word, id: u64, members: Vec<usize>, name: &str) -> c_int {
    let comm_handle = with(|rank| {
        let handle = rank.new_handle();
        rank.comms.insert(handle, CommunicatorState { id, members, calls: 0, name: name.to_owned() });
        handle
    });
    put_handle(new, 0, comm_handle);
    0
}

#[no_mangle]
extern "C" fn MPI_Comm_dup(comm: Word, new: Word) -> c_int {
    let all = enter_collective(comm, Vec::new());
    let (key, _) = all;
    await_collective(&all, "MPI_Comm_dup");
    let comm = with(|rank| rank.comm(comm).clone());
    put_comm(new, hash_id(key), comm.members, &format!("copy of {}", comm.name))
}

#[no_mangle]
extern "C" fn MPI_Comm_idup(comm: Word, new: Word, request: Word) -> c_int {
    MPI_Comm_dup(comm, new);
    put_request(request, OutstandingOperation::Completed(0, 0))
}

#[no_mangle]
extern "C" fn MPI_Comm_split(comm: Word, color: Word, key: Word, new: Word) -> c_int {
    let mine = [int(color), int(key)].iter().flat_map(|n| n.to_le_bytes()).collect();
    let met = enter_collective(comm, mine);
    let given = await_collective(&met, "MPI_Comm_split");
    let members = with(|rank| rank.comm(comm).members.clone());
    if int(color) < 0 {
        put_handle(new, 0, comm_null());
        return 0;
    }
    let number = |bytes: &[u8], n: usize| get::<i64>(bytes.as_ptr() as Word + 8 * n);
    let mut mine: Vec<_> = given.iter().zip(members).filter(|(one, _)| number(one, 0) == int(color)).collect();
    mine.sort_by_key(|(one, _)| number(one, 1));
    put_comm(new, hash_id((met.0, int(color))), mine.into_iter().map(|(_, rank)| rank).collect(), "part")
}

#[no_mangle]
extern "C" fn MPI_Comm_group(comm: Word, group: Word) -> c_int {
    let group_handle = with(|rank| {
        let members = rank.comm(comm).members.clone();
        let handle = rank.new_handle();
        rank.groups.insert(handle, members);
        handle
    });
    put_handle(group, 0, group_handle);
    0
}

#[no_mangle]
extern "C" fn MPI_Group_incl(group: Word, count: Word, ranks: Word, new: Word) -> c_int {
    let chosen = list::<i32>(ranks, count);
    let group_handle = with(|rank| {
        let all = &rank.groups[&handle(group)];
        let members = chosen.iter().map(|n| all[*n as usize]).collect();
        let handle = rank.new_handle();
        rank.groups.insert(handle, members);
        handle
    });
    put_handle(new, 0, group_handle);
    0
}

#[no_mangle]
extern "C" fn MPI_Group_free(group: Word) -> c_int {
    let known = with(|rank| rank.groups.remove(&handle_at(group, 0)));
    assert!(known.is_some(), "MPI_Group_free of an invalid group");
    0
}

#[no_mangle]
extern "C" fn MPI_Comm_create_group(comm: Word, group: Word, _: Word, new: Word) -> c_int {
    let (key, members) = with(|rank| {
        let (id, members) = (rank.comm(comm).id, rank.groups[&handle(group)].clone());
        // All members create the communicators of a group equally often.
        let created = rank.created_groups.entry((id, members.clone())).or_default();
        *created += 1;
        ((id, *created), members)
    });
    put_comm(new, hash_id((key, &members)), members, "group")
}

/// Enters the next collective call on a communicator with this rank's bytes; returns its key and number of ranks.
fn enter_collective(comm: Word, mine: Vec<u8>) -> ((u64, u64), usize) {
    with(|rank| {
        let own = rank.rank;
        let comm = rank.comm(comm);
        let (key, members) = ((comm.id, comm.calls), comm.members.len());
        comm.calls += 1;
        rank.world.lock().collectives.entry(key).or_default().insert(own, mine);
        rank.world.notify();
        (key, members)
    })
}

/// Waits for the other ranks; returns the bytes of all, in rank order.
fn await_collective((key, members): &((u64, u64), usize), what: &str) -> Vec<Vec<u8>> {
    let found: Arc<std::sync::Mutex<Vec<Vec<u8>>>> = Arc::default();
    let into = Arc::clone(&found);
    let keep = move |all| *into.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = all;
    let pending = OutstandingOperation::Collective(*key, *members, Rc::new(keep));
    wait_until(what, || poll(&pending));
    let all = found.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
    all
}

/// Posts a nonblocking collective call; `made` receives the bytes of all.
fn post_collective(
    name: &str,
    arguments: &str,
    comm: Word,
    mine: Vec<u8>,
    request: Word,
    complete: impl Fn(Vec<Vec<u8>>) + 'static,
) -> c_int {
    match begin_collective(name, arguments, comm, mine, Rc::new(complete)) {
        Ok(pending) => put_request(request, pending),
        Err(code) => code,
    }
}

/// The pending operation, or the scripted error code.
fn begin_collective(
    name: &str,
    arguments: &str,
    comm: Word,
    mine: Vec<u8>,
    complete: Rc<dyn Fn(Vec<Vec<u8>>)>,
) -> Result<OutstandingOperation, c_int> {
    let on = with(|rank| rank.comm(comm).name.clone());
    with(|rank| rank.log(format!("{name} of {arguments} on {on}")));
    if let ScriptedResult::Code(code) = with(|rank| rank.next_result(name)) {
        return Err(code);
    }
    let (key, members) = enter_collective(comm, mine);
    Ok(OutstandingOperation::Collective(key, members, complete))
}

fn bytes_at(address: Word, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| get(address + n)).collect()
}

fn put_bytes(address: Word, bytes: &[u8]) {
    bytes.iter().enumerate().for_each(|(n, byte)| put(address + n, *byte));
}

#[no_mangle]
extern "C" fn MPI_Ibarrier(comm: Word, request: Word) -> c_int {
    post_collective("Ibarrier", "all", comm, Vec::new(), request, |_| {})
}

#[no_mangle]
extern "C" fn MPI_Barrier(comm: Word) -> c_int {
    with(|rank| rank.log("Barrier".to_owned()));
    await_collective(&enter_collective(comm, Vec::new()), "MPI_Barrier");
    0
}

#[no_mangle]
extern "C" fn MPI_Iallreduce(
    _: Word,
    into: Word,
    count: Word,
    kind: Word,
    op: Word,
    comm: Word,
    request: Word,
) -> c_int {
    let (arguments, bytes, complete) = reduction(into, count, kind, op);
    post_collective("Iallreduce", &arguments, comm, bytes_at(into, bytes), request, complete)
}

/// A persistent request; the operation begins with MPI_Start.
#[no_mangle]
extern "C" fn MPI_Allreduce_init(
    _: Word,
    into: Word,
    count: Word,
    kind: Word,
    op: Word,
    comm: Word,
    _: Word,
    request: Word,
) -> c_int {
    let (arguments, bytes, complete) = reduction(into, count, kind, op);
    let complete: Rc<dyn Fn(Vec<Vec<u8>>)> = Rc::new(complete);
    let start = move || begin_collective("Start", &arguments, comm, bytes_at(into, bytes), Rc::clone(&complete));
    put_request(request, OutstandingOperation::Persistent(Rc::new(start), None))
}

/// The name in Open MPI 4.
#[no_mangle]
extern "C" fn MPIX_Allreduce_init(
    from: Word,
    into: Word,
    count: Word,
    kind: Word,
    op: Word,
    comm: Word,
    info: Word,
    request: Word,
) -> c_int {
    MPI_Allreduce_init(from, into, count, kind, op, comm, info, request)
}

/// Description, bytes, and completion of a reduction in place.
fn reduction(into: Word, count: Word, kind: Word, op: Word) -> (String, usize, impl Fn(Vec<Vec<u8>>)) {
    let ((kind, size), op) = (types::describe(kind), operation(handle(op)));
    let bytes = int(count) as usize * size as usize;
    let arguments = format!("{} {kind} {op}", int(count));
    let complete = move |all: Vec<Vec<u8>>| {
        for at in (0..bytes).step_by(8) {
            let words = all.iter().map(|one| get::<u64>(one.as_ptr() as Word + at));
            put(into + at, words.reduce(|one, other| reduce_pair(&kind, op, one, other)).unwrap_or(0));
        }
    };
    (arguments, bytes, complete)
}

fn reduce_pair(kind: &str, op: &str, one: u64, other: u64) -> u64 {
    match kind {
        "DOUBLE" => {
            let (one, other) = (f64::from_bits(one), f64::from_bits(other));
            let result = match op {
                "MAX" => one.max(other),
                "MIN" => one.min(other),
                _ => one + other,
            };
            result.to_bits()
        }
        "INT64_T" => {
            let (one, other) = (one as i64, other as i64);
            let result = match op {
                "MAX" => one.max(other),
                "MIN" => one.min(other),
                _ => one + other,
            };
            result as u64
        }
        _ => match op {
            "MAX" => one.max(other),
            "MIN" => one.min(other),
            _ => one + other,
        },
    }
}

fn copy_from_root(all: Vec<Vec<u8>>, root: usize, into: Word) {
    if let Some(bytes) = all.into_iter().nth(root) {
        put_bytes(into, &bytes);
    }
}

#[no_mangle]
extern "C" fn MPI_Ibcast(memory: Word, count: Word, kind: Word, root: Word, comm: Word, request: Word) -> c_int {
    let ((kind, size), root) = (types::describe(kind), int(root) as usize);
    let mine = bytes_at(memory, int(count) as usize * size as usize);
    let arguments = format!("{} {kind} from {root}", int(count));
    post_collective("Ibcast", &arguments, comm, mine, request, move |all| copy_from_root(all, root, memory))
}

#[no_mangle]
extern "C" fn MPI_Bcast(memory: Word, count: Word, kind: Word, root: Word, comm: Word) -> c_int {
    let ((kind, size), root) = (types::describe(kind), int(root) as usize);
    with(|rank| rank.log(format!("Bcast of {} {kind} from {root}", int(count))));
    let met = enter_collective(comm, bytes_at(memory, int(count) as usize * size as usize));
    copy_from_root(await_collective(&met, "MPI_Bcast"), root, memory);
    0
}

#[no_mangle]
extern "C" fn MPI_Iallgather(
    from: Word,
    count: Word,
    kind: Word,
    into: Word,
    _: Word,
    _: Word,
    comm: Word,
    request: Word,
) -> c_int {
    let (kind, size) = types::describe(kind);
    let mine = bytes_at(from, int(count) as usize * size as usize);
    let arguments = format!("{} {kind}", int(count));
    post_collective("Iallgather", &arguments, comm, mine, request, move |all| put_bytes(into, &all.concat()))
}

#[no_mangle]
extern "C" fn MPI_Igather(
    from: Word,
    count: Word,
    kind: Word,
    into: Word,
    _: Word,
    _: Word,
    root: Word,
    comm: Word,
    // The ninth argument is passed on the stack.
    request: Word,
) -> c_int {
    let (kind, size) = types::describe(kind);
    let mine = bytes_at(from, int(count) as usize * size as usize);
    let (own, members) = with(|rank| (rank.rank, rank.comm(comm).members.clone()));
    let is_root = members.get(int(root) as usize) == Some(&own);
    let arguments = format!("{} {kind} to {}", int(count), int(root));
    post_collective("Igather", &arguments, comm, mine, request, move |all| {
        if is_root {
            put_bytes(into, &all.concat());
        }
    })
}

/// Sender, receiver and tag of a message; None for MPI_PROC_NULL.
fn message_key(comm: Word, peer: Word, tag: Word, sends: bool) -> Option<MessageKey> {
    let (own, comm) = with(|rank| (rank.rank, rank.comm(comm).clone()));
    let peer = *comm.members.get(usize::try_from(int(peer)).ok()?)?;
    let (from, to) = if sends { (own, peer) } else { (peer, own) };
    Some((comm.id, from, to, int(tag)))
}

fn log_message(name: &str, memory: Word, count: Word, kind: Word, peer: Word, tag: Word, comm: Word) -> usize {
    let (kind, size) = types::describe(kind);
    let way = if name.ends_with("send") || name.ends_with("Send") { "to" } else { "from" };
    with(|rank| {
        let on = rank.comm(comm).name.clone();
        let place = rank.describe_address(memory);
        rank.log(format!("{name} {} {kind} at {place} {way} {} tag {} on {on}", int(count), int(peer), int(tag)));
    });
    int(count) as usize * size as usize
}

fn deliver(key: Option<MessageKey>, memory: Word, bytes: usize) {
    let message = bytes_at(memory, bytes);
    with(|rank| {
        if let Some(key) = key.filter(|_| !rank.is_alone) {
            let mut shared = rank.world.lock();
            let number = *shared.sent.entry(key).and_modify(|sent| *sent += 1).or_insert(1);
            shared.messages.insert((key, number), message);
            rank.world.notify();
        }
    });
}

/// Posts a receive.
fn post_receive(key: MessageKey, memory: Word, bytes: usize) -> OutstandingOperation {
    let number = with(|rank| *rank.received.entry(key).and_modify(|begun| *begun += 1).or_insert(1));
    OutstandingOperation::Receive((key, number), memory, bytes)
}

#[no_mangle]
extern "C" fn MPI_Isend(
    memory: Word,
    count: Word,
    kind: Word,
    to: Word,
    tag: Word,
    comm: Word,
    request: Word,
) -> c_int {
    let bytes = log_message("Isend", memory, count, kind, to, tag, comm);
    if let ScriptedResult::Code(code) = with(|rank| rank.next_result("Isend")) {
        return code;
    }
    deliver(message_key(comm, to, tag, true), memory, bytes);
    put_request(request, OutstandingOperation::Completed(bytes as u64, 0))
}

#[no_mangle]
extern "C" fn MPI_Irecv(
    memory: Word,
    count: Word,
    kind: Word,
    from: Word,
    tag: Word,
    comm: Word,
    request: Word,
) -> c_int {
    let bytes = log_message("Irecv", memory, count, kind, from, tag, comm);
    match (with(|rank| rank.next_result("Irecv")), message_key(comm, from, tag, false)) {
        (ScriptedResult::Code(code), _) => code,
        (_, Some(key)) => put_request(request, post_receive(key, memory, bytes)),
        (_, None) => put_request(request, OutstandingOperation::Completed(0, 0)),
    }
}

#[no_mangle]
extern "C" fn MPI_Send(memory: Word, count: Word, kind: Word, to: Word, tag: Word, comm: Word) -> c_int {
    let bytes = log_message("Send", memory, count, kind, to, tag, comm);
    deliver(message_key(comm, to, tag, true), memory, bytes);
    0
}

#[no_mangle]
extern "C" fn MPI_Recv(
    memory: Word,
    count: Word,
    kind: Word,
    from: Word,
    tag: Word,
    comm: Word,
    status: Word,
) -> c_int {
    let bytes = log_message("Recv", memory, count, kind, from, tag, comm);
    let Some(key) = message_key(comm, from, tag, false) else { return 0 };
    let pending = post_receive(key, memory, bytes);
    let (bytes, _) = wait_until("MPI_Recv", || poll(&pending));
    put_status(status, bytes, 0);
    0
}

#[no_mangle]
extern "C" fn MPI_Sendrecv(
    out: Word,
    out_count: Word,
    out_kind: Word,
    to: Word,
    out_tag: Word,
    into: Word,
    in_count: Word,
    in_kind: Word,
    from: Word,
    in_tag: Word,
    comm: Word,
    status: Word,
) -> c_int {
    MPI_Send(out, out_count, out_kind, to, out_tag, comm);
    MPI_Recv(into, in_count, in_kind, from, in_tag, comm, status)
}

#[no_mangle]
extern "C" fn MPI_Iprobe(from: Word, tag: Word, comm: Word, flag: Word, _: Word) -> c_int {
    let key = message_key(comm, from, tag, false);
    let found = with(|rank| {
        let next = key.map(|key| (key, rank.received.get(&key).copied().unwrap_or(0) + 1));
        next.is_some_and(|next| rank.world.lock().messages.contains_key(&next))
    });
    put(flag, c_int::from(found));
    0
}

#[no_mangle]
extern "C" fn MPI_Alltoallv(
    out: Word,
    out_counts: Word,
    out_places: Word,
    kind: Word,
    into: Word,
    in_counts: Word,
    in_places: Word,
    _: Word,
    comm: Word,
) -> c_int {
    let members = with(|rank| rank.comm(comm).members.len());
    let lists = [out_counts, out_places, in_counts, in_places].map(|at| list::<i32>(at, members));
    let kind_name = types::describe(kind).0;
    with(|rank| {
        let [out_counts, out_places, in_counts, in_places] = &lists;
        let (out, into) = (rank.describe_address(out), rank.describe_address(into));
        rank.log(format!(
            "Alltoallv {kind_name} from {out} {out_counts:?} at {out_places:?} into {into} {in_counts:?} at {in_places:?}"
        ));
    });
    for peer in (0..members).filter(|peer| lists[0][*peer] > 0) {
        deliver(message_key(comm, peer, 0x7001, true), out + lists[1][peer] as usize, lists[0][peer] as usize);
    }
    for peer in (0..members).filter(|peer| lists[2][*peer] > 0) {
        let Some(key) = message_key(comm, peer, 0x7001, false) else { continue };
        let pending = post_receive(key, into + lists[3][peer] as usize, lists[2][peer] as usize);
        wait_until("MPI_Alltoallv", || poll(&pending));
    }
    0
}
