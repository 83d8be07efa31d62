//! End of MPI after everything is written: MPI_Finalize has a time limit, because a library that hangs in it would use the nodes up to the
//! limit of the job.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::thread;
use std::time::{Duration, Instant};

use beff_ffi::finalize::leave;
use beff_ffi::{Comm, MpiError, Universe};

use super::print_diagnostic;
use super::variables::FINALIZE;
use crate::frame::error::Exit;
use crate::frame::report::library::short_name;
use crate::frame::system::host::host_name;
use crate::frame::system::placement::{detect_transport, Transport};
use crate::frame::system::ucx::is_old_mpich_over_tcp;

const DEFAULT_SECONDS: u64 = 60;
/// Of a library that often hangs.
const SHORT_SECONDS: u64 = 10;
/// Of all processes of a host, one after another.
const TURN_LIMIT: Duration = Duration::from_secs(20);

/// Time that the run is expected to wait for MPI_Finalize in vain: its limit where the library often hangs.
pub(super) fn hang_seconds(library: &str, several_hosts: bool, given_seconds: Option<u64>) -> u64 {
    if is_old_mpich_over_tcp(library, several_hosts) {
        given_seconds.unwrap_or(SHORT_SECONDS)
    } else {
        0
    }
}

/// Calls MPI_Finalize. If it has not returned after `given_seconds` or the default, the process ends with the exit code of `exit`, and
/// one process on the host of rank 0 says why. All files of this rank have been written and closed. Collective.
///
/// # Errors
/// MPI errors.
pub(super) fn finalize(
    universe: Universe,
    world: &Comm,
    library: String,
    given_seconds: Option<u64>,
    exit: Exit,
) -> Result<(), MpiError> {
    let host = host_name().unwrap_or_else(|_| "unknown".into());
    let Agreement { seconds, run, has_root } = agree(world, &library, &host, given_seconds)?;
    universe.finalize_within(Duration::from_secs(seconds), move |mpi| {
        // Held until the process ends.
        let name = bind_name(run, "first");
        if has_root && is_first(&name) {
            let transport = text(&detect_transport(&library), std::env::var("UCX_TLS").ok().as_deref());
            print_diagnostic(&message(&short_name(&library), &transport, &host, seconds, exit.code()));
        }
        leave(mpi, i32::from(exit.code()), || wait_for_turn(run, TURN_LIMIT))
    });
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Agreement {
    /// Limit.
    seconds: u64,
    /// A number of this run.
    run: u64,
    /// Rank 0 is on this host.
    has_root: bool,
}

/// No rank returns before all have called: their limits begin at the same time, and none of them ends
/// while another one writes.
fn agree(world: &Comm, library: &str, host: &str, given_seconds: Option<u64>) -> Result<Agreement, MpiError> {
    let mut hasher = DefaultHasher::new();
    host.hash(&mut hasher);
    let name = hasher.finish();
    let default =
        |several_hosts| if is_old_mpich_over_tcp(library, several_hosts) { SHORT_SECONDS } else { DEFAULT_SECONDS };
    // The largest of all ranks; the variable may not have reached all of them.
    let mut largest = [
        given_seconds.unwrap_or(0),
        default(false),
        default(true),
        name,
        !name,
        RandomState::new().hash_one(name),
        if world.is_root() { name } else { 0 },
    ];
    world.max_u64(&mut largest)?;
    let [given, one_host, several_hosts, last_name, not_first_name, run, root_name] = largest;
    let seconds = match given {
        0 if last_name == !not_first_name => one_host,
        0 => several_hosts,
        given => given,
    };
    Ok(Agreement { seconds, run, has_root: root_name == name })
}

/// A socket without a file: only one process of a host can have the name.
fn bind_name(run: u64, purpose: &str) -> io::Result<UnixListener> {
    UnixListener::bind_addr(&SocketAddr::from_abstract_name(format!("beff-raw-{run:016x}-{purpose}"))?)
}

/// Returns when no other process of this run and host has the turn, or after `limit`.
fn wait_for_turn(run: u64, limit: Duration) -> io::Result<UnixListener> {
    let begin = Instant::now();
    loop {
        let name = bind_name(run, "turn");
        if is_first(&name) || begin.elapsed() > limit {
            return name;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// True also if the system does not allow such sockets: rather several messages than none.
fn is_first(name: &io::Result<UnixListener>) -> bool {
    name.as_ref().err().is_none_or(|error| error.kind() != io::ErrorKind::AddrInUse)
}

fn text(transport: &Transport, ucx_tls: Option<&str>) -> String {
    let device = transport.device.iter().cloned();
    let setting = ucx_tls.map(|list| format!("UCX_TLS={list}"));
    let parts: Vec<String> = device.chain(transport.loaded.iter().cloned()).chain(setting).collect();
    if parts.is_empty() {
        "unknown".into()
    } else {
        parts.join(", ")
    }
}

fn message(library: &str, transport: &str, host: &str, seconds: u64, code: u8) -> String {
    format!(
        "MPI_Finalize of {library} (transport: {transport}) has not returned on {host} after {seconds} s ({FINALIZE}); everything is \
         written, and the processes end without it, with exit code {code}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::run::testing::{run_ranks, Script};

    #[test]
    fn ranks_agree_on_the_limit() {
        const OLD: &str = "MPICH Version: 4.0.2 MPICH Device: ch4:ucx MPICH configure: x";
        let limits = |library: &'static str, hosts: [&'static str; 2], given: [Option<u64>; 2]| {
            let ended = run_ranks(
                2,
                |_| Script::default(),
                |comm| {
                    let rank = usize::try_from(comm.rank()).unwrap();
                    agree(comm, library, hosts[rank], given[rank]).unwrap()
                },
            );
            assert_eq!(ended[1], Agreement { has_root: hosts[0] == hosts[1], ..ended[0] }, "{library} {given:?}");
            assert!(ended[0].has_root);
            ended[0].seconds
        };
        // The variable may have reached some ranks only.
        assert_eq!(limits(OLD, ["a", "b"], [Some(7), None]), 7);
        assert_eq!(limits(OLD, ["a", "b"], [None, Some(300)]), 300);
        assert_eq!(limits("Open MPI v4.1.4", ["a", "b"], [None; 2]), DEFAULT_SECONDS);
        if std::env::var_os("UCX_TLS").is_none() {
            assert_eq!(limits(OLD, ["a", "a"], [None; 2]), DEFAULT_SECONDS);
        }
    }

    #[test]
    fn one_process_of_the_host_says_that_mpi_hangs() {
        let run = u64::from(std::process::id());
        let first = bind_name(run, "first");
        assert!(is_first(&first) && !is_first(&bind_name(run, "first")) && is_first(&bind_name(!run, "first")));
        drop(first);
        assert!(is_first(&bind_name(run, "first")));
        assert!(is_first(&Err(io::ErrorKind::PermissionDenied.into())));
    }

    #[test]
    fn the_processes_of_a_host_leave_one_after_another() {
        let run = !u64::from(std::process::id());
        let turn = wait_for_turn(run, Duration::from_secs(60)).unwrap();
        assert!(wait_for_turn(run, Duration::from_millis(5)).is_err());
        let next = thread::spawn(move || wait_for_turn(run, Duration::from_secs(60)).is_ok());
        thread::sleep(Duration::from_millis(20));
        assert!(!next.is_finished());
        drop(turn);
        assert!(next.join().unwrap());
    }

    #[test]
    fn the_message_is_one_line_with_library_transport_and_code() {
        let loaded = vec!["libucp".to_owned(), "libuct".to_owned()];
        let transport = Transport { device: Some("ch4:ucx".into()), loaded, interfaces: Vec::new() };
        let said = message("MPICH 4.0.2", &text(&transport, Some("tcp,self")), "n1", 10, 3);
        for part in
            ["MPICH 4.0.2 (transport: ch4:ucx, libucp, libuct, UCX_TLS=tcp,self)", "on n1", "10 s", FINALIZE, "code 3"]
        {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(said.lines().count(), 1);
        assert_eq!(text(&Transport::default(), None), "unknown");
    }
}
