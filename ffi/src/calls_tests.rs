//! The calls that reach the MPI library, which is `beff_fake_mpi` here.

use beff_fake_mpi::{as_rank, error_code, name_memory, ranks, script, set_file_bytes, take_log, ScriptedResult};

use crate::collective_timeout::AGREEMENT_LOCK;
use crate::{
    AccessMode, Comm, DataAccess, Element, Encoding, ExchangeCall, FileType, Info, MaxReduction, MemoryWalk,
    MessageDirection, MessageLayout, MessagePlacement, MessageWindows, MpiErrorCause, MpiFile, NeighborExchange,
    Notifications, Requests, StepPeers, Transfer, TransferRequests, TransferType, Universe,
};

const ALL: [DataAccess; 6] = [
    DataAccess::Pointer,
    DataAccess::PointerAll,
    DataAccess::Offset,
    DataAccess::OffsetAll,
    DataAccess::Shared,
    DataAccess::Ordered,
];

fn hints(pairs: &[(&str, &str)]) -> Info {
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Info::new(&pairs).unwrap()
}

fn open() -> MpiFile {
    let file = MpiFile::open(&Comm::world(), "f".as_ref(), AccessMode::CreateNew, false, &hints(&[])).unwrap();
    let _ = take_log();
    file
}

#[test]
fn files_are_opened_with_their_mode_ranks_and_hints() {
    let log = as_rank(0, 2, || {
        let (none, some) = (hints(&[]), hints(&[("cb_nodes", "2"), ("striping_unit", "1048576")]));
        for (how, unique, info) in [
            (AccessMode::CreateNew, false, &some),
            (AccessMode::Update, true, &none),
            (AccessMode::ReadOnly, false, &none),
        ] {
            let file = MpiFile::open(&Comm::world(), "d/f".as_ref(), how, unique, info).unwrap();
            assert_eq!(file.hints().unwrap(), [("in_force".to_owned(), "yes".to_owned())]);
            file.sync().unwrap();
            set_file_bytes(12);
            assert_eq!(file.size_bytes().unwrap(), 12);
            file.close().unwrap();
        }
        let alone = MpiFile::open(&Comm::comm_self(), "g".as_ref(), AccessMode::ReadOnly, true, &none).unwrap();
        alone.close().unwrap();
        take_log()
    });
    let rest = ["File_get_info", "File_sync", "File_get_size", "File_close"];
    let mut expected = vec!["File_open d/f by world create|rdwr|excl hints {cb_nodes=2 striping_unit=1048576}"];
    expected.extend(rest);
    expected.push("File_open d/f by world rdwr|unique_open hints none");
    expected.extend(rest);
    expected.push("File_open d/f by world rdonly hints none");
    expected.extend(rest);
    expected.extend(["File_open g by self rdonly|unique_open hints none", "File_close"]);
    assert_eq!(log, expected);
}

#[test]
fn views_have_displacement_element_tile_and_hints() {
    let log = as_rank(1, 2, || {
        let file = open();
        let (none, some) = (hints(&[]), hints(&[("cb_buffer_size", "4")]));
        for (place, tile, info) in [
            (24, FileType::plain(Element::Double), &some),
            (0, FileType::plain(Element::Byte), &none),
            (8, FileType::strided(Element::Double, 16, 48).unwrap(), &none),
            (5, FileType::strided(Element::Byte, 3, 9).unwrap(), &some),
            (7, FileType::strided(Element::Double, 16, 16).unwrap(), &none),
        ] {
            file.set_view(place, &tile, info).unwrap();
        }
        take_log()
    });
    assert_eq!(
        log,
        [
            "File_set_view from 24 of DOUBLE in DOUBLE native hints {cb_buffer_size=4}",
            "File_set_view from 0 of BYTE in BYTE native hints none",
            "File_set_view from 8 of DOUBLE in 2*DOUBLE from 0 every 48 native hints none",
            "File_set_view from 5 of BYTE in 3*BYTE from 0 every 9 native hints {cb_buffer_size=4}",
            "File_set_view from 7 of DOUBLE in DOUBLE native hints none",
        ]
    );
}

#[test]
fn transfers_are_counts_or_types_and_never_wrap() {
    let log = as_rank(0, 1, || {
        let (file, memory) = (open(), [0; 96]);
        name_memory("m", &memory);
        for (element, bytes, most) in [
            (Element::Double, 96, None),
            (Element::Byte, 96, None),
            (Element::Double, 64, Some(4)),
            (Element::Byte, 23, Some(5)),
            (Element::Byte, 5, Some(5)),
            (Element::Double, 0, None),
        ] {
            let what = TransferType::new(element, bytes, most).unwrap();
            assert_eq!(file.write(DataAccess::Pointer, 0, &memory, &what).unwrap(), bytes);
        }
        assert_eq!(file.write(DataAccess::Pointer, 0, &memory, &TransferType::empty(Element::Byte)).unwrap(), 0);
        take_log()
    });
    assert_eq!(
        log,
        [
            "File_write 12x DOUBLE m+0",
            "File_write 96x BYTE m+0",
            "File_write 1x [2*(4*DOUBLE) at 0] m+0",
            "File_write 1x [4*(5*BYTE) at 0, 3*(BYTE) at 20] m+0",
            "File_write 5x BYTE m+0",
            "File_write 0x DOUBLE m+0",
            "File_write 0x BYTE m+0",
        ]
    );
}

/// Suffix of the function for an access, and whether it takes an offset.
fn name(access: DataAccess) -> (&'static str, bool) {
    match access {
        DataAccess::Pointer => ("", false),
        DataAccess::PointerAll => ("_all", false),
        DataAccess::Offset => ("_at", true),
        DataAccess::OffsetAll => ("_at_all", true),
        DataAccess::Shared => ("_shared", false),
        DataAccess::Ordered => ("_ordered", false),
    }
}

/// Log line of a call of 16 bytes as doubles at byte 40 of the view, at byte 8 of the memory.
fn call(verb: &str, access: DataAccess, half: &str) -> String {
    let (name, explicit) = name(access);
    format!("File_{verb}{name}{half} {}2x DOUBLE m+8", if explicit { "at 5 " } else { "" })
}

#[test]
fn every_access_is_the_call_of_its_name() {
    as_rank(0, 1, || {
        let (file, mut memory) = (open(), [0; 24]);
        name_memory("m", &memory);
        let what = TransferType::new(Element::Double, 16, None).unwrap();
        for access in ALL {
            assert_eq!(file.write(access, 40, &memory[8..], &what).unwrap(), 16);
            assert_eq!(file.read(access, 40, &mut memory[8..], &what).unwrap(), 16);
            assert_eq!(take_log(), [call("write", access, ""), call("read", access, "")]);
        }
        let bytes = TransferType::new(Element::Byte, 16, None).unwrap();
        file.write(DataAccess::Offset, 41, &memory[8..], &bytes).unwrap();
        assert_eq!(take_log(), ["File_write_at at 41 16x BYTE m+8"]);
    });
}

#[test]
fn nonblocking_transfers_are_posted_overlapped_and_completed() {
    as_rank(0, 1, || {
        let (file, memory) = (open(), [0; 24]);
        name_memory("m", &memory);
        let what = TransferType::new(Element::Double, 16, None).unwrap();
        let mut requests = TransferRequests::with_capacity(2);
        for access in ALL {
            let transfer = || Transfer { what: &what, offset_bytes: 40, memory: &memory[8..] };
            let (mut during, mut took) = (Vec::new(), Vec::new());
            requests.write(
                &file,
                access,
                [transfer(), transfer()].into_iter(),
                &mut || during = take_log(),
                |number, reported| {
                    took.push((number, reported.ok()));
                    true
                },
            );
            let exists = access != DataAccess::Ordered;
            assert_eq!(took, if exists { [(0, Some(16)), (1, Some(16))] } else { [(0, None), (1, None)] });
            let begun = vec![call("iwrite", access, ""); if exists { 2 } else { 0 }];
            assert_eq!(during, begun, "{access:?}: both are in flight");
            assert_eq!(take_log(), ["Waitall of 2"]);
        }
        let mut memory = [0; 24];
        for access in ALL.into_iter().filter(|access| *access != DataAccess::Ordered) {
            let transfer = Transfer { what: &what, offset_bytes: 40, memory: &mut memory[8..] };
            assert_eq!(requests.read_one(&file, access, transfer).unwrap(), 16);
            let reported = take_log();
            assert_eq!((reported.len(), reported[0].replace("memory", "m+8")), (2, call("iread", access, "")));
        }
    });
}

#[test]
fn split_calls_have_their_work_between_their_halves() {
    as_rank(0, 1, || {
        let (file, mut memory) = (open(), [0; 24]);
        name_memory("m", &memory);
        let what = TransferType::new(Element::Double, 16, None).unwrap();
        for access in ALL {
            let (mut first, mut second) = (Vec::new(), Vec::new());
            let wrote = file.write_split(access, 40, &memory[8..], &what, &mut || first = take_log());
            let wrote_end = if wrote.is_ok() { take_log() } else { Vec::new() };
            let read = file.read_split(access, 40, &mut memory[8..], &what, &mut || second = take_log());
            if matches!(access, DataAccess::Pointer | DataAccess::Offset | DataAccess::Shared) {
                assert!(wrote.is_err() && read.is_err() && first.is_empty() && take_log().is_empty());
                continue;
            }
            let end = |verb| format!("File_{verb}{}_end m+8", name(access).0);
            assert_eq!((wrote.unwrap(), read.unwrap()), (16, 16));
            assert_eq!((first, wrote_end), (vec![call("write", access, "_begin")], vec![end("write")]));
            assert_eq!((second, take_log()), (vec![call("read", access, "_begin")], vec![end("read")]));
        }
    });
}

#[test]
fn errors_and_short_transfers_reach_the_caller() {
    as_rank(0, 1, || {
        let (file, mut memory) = (open(), [0; 32]);
        let what = TransferType::new(Element::Double, 16, None).unwrap();
        let bytes = TransferType::new(Element::Byte, 16, None).unwrap();
        script(
            "File_write",
            &[
                ScriptedResult::Bytes(8),
                ScriptedResult::Bytes(12),
                ScriptedResult::Code(error_code("MPI_ERR_NO_SPACE")),
            ],
        );
        assert_eq!(file.write(DataAccess::Pointer, 0, &memory, &what).unwrap(), 8, "less than requested");
        assert_eq!(file.write(DataAccess::Pointer, 0, &memory, &what).unwrap(), 0, "not a multiple of the element");
        let error = file.write(DataAccess::Pointer, 0, &memory, &what).unwrap_err();
        assert_eq!((error.class.as_str(), error.cause), ("MPI_ERR_NO_SPACE", MpiErrorCause::NoSpace));
        script("File_read_at", &[ScriptedResult::Bytes(3)]);
        assert_eq!(file.read(DataAccess::Offset, 0, &mut memory, &bytes).unwrap(), 3);

        let causes = [
            ("MPI_ERR_QUOTA", MpiErrorCause::NoSpace),
            ("MPI_ERR_IO", MpiErrorCause::Other),
            ("MPI_ERR_ACCESS", MpiErrorCause::Path),
            ("MPI_ERR_NO_SUCH_FILE", MpiErrorCause::Path),
            ("MPI_ERR_UNSUPPORTED_OPERATION", MpiErrorCause::Unsupported),
        ];
        for (class, cause) in causes {
            script("File_sync", &[ScriptedResult::Code(error_code(class))]);
            let error = file.sync().unwrap_err();
            assert_eq!((error.class.as_str(), error.cause), (class, cause));
        }
        script("File_set_view", &[ScriptedResult::Code(error_code("MPI_ERR_IO"))]);
        assert!(file.set_view(0, &FileType::plain(Element::Byte), &hints(&[])).is_err());
        script("File_write_all_end", &[ScriptedResult::Code(error_code("MPI_ERR_IO"))]);
        assert!(file.write_split(DataAccess::PointerAll, 0, &memory, &what, &mut || {}).is_err());
        script("File_close", &[ScriptedResult::Code(error_code("MPI_ERR_IO"))]);
        assert!(file.close().is_err());
        script("File_open", &[ScriptedResult::Code(error_code("MPI_ERR_ACCESS"))]);
        assert!(MpiFile::open(&Comm::world(), "f".as_ref(), AccessMode::Update, false, &hints(&[])).is_err());
    });
}

/// Each has its own error or bytes, even if MPI_Waitall reports only that some have failed.
#[test]
fn each_of_many_transfers_has_its_own_result() {
    as_rank(0, 1, || {
        let (file, memory) = (open(), [0; 8]);
        let what = TransferType::new(Element::Byte, 8, None).unwrap();
        let transfers = || (0..4).map(|_| Transfer { what: &what, offset_bytes: 0, memory: &memory[..] });
        let mut requests = TransferRequests::with_capacity(4);
        let full = ScriptedResult::Code(error_code("MPI_ERR_NO_SPACE"));
        script("File_iwrite", &[ScriptedResult::Success, full, ScriptedResult::Bytes(5)]);
        let mut took = Vec::new();
        requests.write(&file, DataAccess::Pointer, transfers(), &mut || {}, |number, result| {
            took.push((number, result.map_err(|error| error.class)));
            true
        });
        let no_space = Err("MPI_ERR_NO_SPACE".to_owned());
        assert_eq!(took, [(0, Ok(8)), (1, no_space), (2, Ok(5)), (3, Ok(8))]);
    });
}

/// A transfer that cannot be posted is reported at once; the others keep their numbers.
#[test]
fn a_transfer_that_cannot_be_posted_does_not_change_other_numbers() {
    as_rank(0, 1, || {
        let (file, memory) = (open(), [0; 8]);
        let what = TransferType::new(Element::Byte, 8, None).unwrap();
        let transfers = || (0..4).map(|_| Transfer { what: &what, offset_bytes: 0, memory: &memory[..] });
        let mut requests = TransferRequests::with_capacity(4);
        let no_space = || (1, Err("MPI_ERR_NO_SPACE".to_owned()));
        let mut run = |goes_on| {
            script(
                "File_iwrite",
                &[
                    ScriptedResult::Success,
                    ScriptedResult::Refused(error_code("MPI_ERR_NO_SPACE")),
                    ScriptedResult::Bytes(5),
                ],
            );
            let (mut at_once, mut took) = (0, Vec::new());
            let reported = std::cell::Cell::new(0);
            let mut during = || at_once = reported.get();
            requests.write(&file, DataAccess::Pointer, transfers(), &mut during, |number, result| {
                let goes_on = goes_on || result.is_ok();
                took.push((number, result.map_err(|error| error.class)));
                reported.set(took.len());
                goes_on
            });
            (at_once, took)
        };
        assert_eq!(run(true), (1, vec![no_space(), (0, Ok(8)), (2, Ok(5)), (3, Ok(8))]));
        let _ = take_log();
        assert_eq!(run(false), (1, vec![no_space(), (0, Ok(8))]), "no further one is posted");
        assert_eq!(take_log().iter().filter(|line| line.starts_with("File_iwrite")).count(), 2);
    });
}

fn windows(count: usize, stride_bytes: usize) -> MessageWindows {
    MessageWindows { count, stride_bytes }
}

fn link(send_to: u64, receive_from: u64) -> StepPeers {
    StepPeers { send_to: Some(send_to), receive_from: Some(receive_from) }
}

/// Two iterations of two steps on rank 1 of 3, in windows used in turn.
#[test]
fn exchanges_use_the_ranks_and_offsets_of_their_steps() {
    let run = |rank, way, links: &[StepPeers]| {
        as_rank(rank, 3, || {
            let (comm, out, mut into) = (Comm::world(), [0; 64], [0; 64]);
            name_memory("out", &out);
            name_memory("in", &into);
            let (send_at, receive_at) = ([0, 20], [4, 32]);
            let places = MessagePlacement::Windows {
                send_at: &send_at[..links.len()],
                receive_at: &receive_at[..links.len()],
                send: windows(2, 8),
                receive: windows(2, 12),
            };
            let flow = MessageLayout { message_bytes: 6, placement: places };
            NeighborExchange::new(&comm, links).unwrap().run(way, &flow, &out, &mut into, 2).unwrap();
            take_log()
        })
    };
    let both = [link(2, 0), link(0, 2)];
    let send = |name: &str, at, to| format!("{name} 6 UINT8_T at out+{at} to {to} tag 0 on world");
    let receive = |name: &str, at, from| format!("{name} 6 UINT8_T at in+{at} from {from} tag 0 on world");
    let mut expected = Vec::new();
    for (sends, receives) in [([0, 20], [4, 32]), ([8, 28], [16, 44])] {
        expected.extend([send("Send", sends[0], 2), receive("Recv", receives[0], 0)]);
        expected.extend([send("Send", sends[1], 0), receive("Recv", receives[1], 2)]);
    }
    assert_eq!(run(1, ExchangeCall::Sendrecv, &both), expected);

    let mut expected = Vec::new();
    for (sends, receives) in [([0, 20], [4, 32]), ([8, 28], [16, 44])] {
        expected.extend([receive("Irecv", receives[0], 0), receive("Irecv", receives[1], 2)]);
        expected.extend([send("Isend", sends[0], 2), send("Isend", sends[1], 0), "Waitall of 4".to_owned()]);
    }
    assert_eq!(run(1, ExchangeCall::Nonblocking, &both), expected);

    let alltoallv = |sends: [usize; 3], receives: [usize; 3]| {
        format!("Alltoallv UINT8_T from out+0 [6, 0, 6] at {sends:?} into in+0 [6, 0, 6] at {receives:?}")
    };
    assert_eq!(
        run(1, ExchangeCall::Alltoallv, &both),
        [alltoallv([20, 0, 0], [4, 0, 32]), alltoallv([28, 0, 8], [16, 0, 44])]
    );

    // The lower rank sends first.
    let there_and_back = [send("Send", 0, 2), receive("Recv", 4, 2), send("Send", 8, 2), receive("Recv", 16, 2)];
    assert_eq!(run(1, ExchangeCall::PingPong, &[link(2, 2)]), there_and_back);
    let back_and_there = [receive("Recv", 4, 0), send("Send", 0, 0), receive("Recv", 16, 0), send("Send", 8, 0)];
    assert_eq!(run(1, ExchangeCall::PingPong, &[link(0, 0)]), back_and_there);
}

#[test]
fn a_rank_without_a_message_sends_and_receives_none_and_walks_on() {
    let log = as_rank(0, 2, || {
        let (comm, out, mut into) = (Comm::world(), [0; 20], [0; 20]);
        name_memory("out", &out);
        name_memory("in", &into);
        let flow = |begin| MessageLayout {
            message_bytes: 4,
            placement: MessagePlacement::Walk(MemoryWalk { begin, advance_bytes: 8, memory_bytes: 20 }),
        };
        let first = StepPeers { send_to: Some(1), receive_from: None };
        let mut exchange = NeighborExchange::new(&comm, &[first]).unwrap();
        exchange.run(ExchangeCall::Nonblocking, &flow(8), &out, &mut into, 3).unwrap();
        take_log()
    });
    let send = |at| format!("Isend 4 UINT8_T at out+{at} to 1 tag 0 on world");
    let wait = || "Waitall of 1".to_owned();
    assert_eq!(log, [send(8), wait(), send(16), wait(), send(0), wait()]);
}

/// Compares the data; ranks are threads.
#[test]
fn every_exchange_call_delivers_the_neighbours_bytes() {
    for way in [ExchangeCall::Sendrecv, ExchangeCall::Alltoallv, ExchangeCall::Nonblocking, ExchangeCall::PingPong] {
        let got = ranks(3, |rank| {
            let comm = Comm::world();
            let rank = rank as u64;
            let out: Vec<u8> = (0..16).map(|n| rank as u8 * 100 + n).collect();
            let mut into = [0; 16];
            let links = match way {
                ExchangeCall::PingPong if rank == 2 => vec![],
                ExchangeCall::PingPong => vec![link(1 - rank, 1 - rank)],
                _ => vec![link((rank + 1) % 3, (rank + 2) % 3), link((rank + 2) % 3, (rank + 1) % 3)],
            };
            let places = MessagePlacement::Windows {
                send_at: &[0, 4][..links.len()],
                receive_at: &[8, 12][..links.len()],
                send: windows(1, 4),
                receive: windows(1, 4),
            };
            let flow = MessageLayout { message_bytes: 4, placement: places };
            NeighborExchange::new(&comm, &links).unwrap().run(way, &flow, &out, &mut into, 1).unwrap();
            into[8..].to_vec()
        });
        let of = |rank: u8, at: u8| (rank * 100 + at..rank * 100 + at + 4).collect::<Vec<u8>>();
        let nothing = vec![0; 4];
        let expected = match way {
            ExchangeCall::PingPong => {
                [[of(1, 0), nothing.clone()], [of(0, 0), nothing.clone()], [nothing.clone(), nothing.clone()]]
            }
            _ => [[of(2, 0), of(1, 4)], [of(0, 0), of(2, 4)], [of(1, 0), of(0, 4)]],
        };
        assert_eq!(got, expected.map(|both| both.concat()), "{way:?}");
    }
}

#[test]
fn collective_calls_combine_the_values_of_all_ranks() {
    let _agrees = AGREEMENT_LOCK.read().unwrap();
    let results = ranks(3, |rank| {
        let comm = Comm::world();
        let own = rank as u64;
        let extreme = [u64::MAX - own, own, 1 << 63 | own];
        let (mut least, mut most, mut sum) = (extreme, extreme, [own, 10 * own]);
        comm.min_u64(&mut least).unwrap();
        comm.max_u64(&mut most).unwrap();
        comm.sum_u64(&mut sum).unwrap();
        let (mut low, mut high) = ([rank as f64, -(rank as f64)], [rank as f64, -(rank as f64)]);
        comm.min_f64(&mut low).unwrap();
        comm.max_f64(&mut high).unwrap();
        let all = comm.allgather_u64(&[own, own + 5]).unwrap();
        let flag = comm.bcast_flag(rank == 0).unwrap();
        let bytes = comm.bcast_bytes(vec![rank as u8; rank + 1], 2).unwrap();
        let gathered = comm.gather_in_rounds(&vec![rank as u8 + 1; 3 * rank], 2).unwrap();
        let mut values = [rank as f64];
        comm.bcast_f64(&mut values, 1).unwrap();
        let mut agreement = MaxReduction::new(&comm, 2).unwrap();
        agreement.post(&[rank as f64, 7.0 - rank as f64]).unwrap();
        let agreed = agreement.complete().unwrap().to_vec();
        (least, most, sum, low, high, all, flag, bytes, gathered, values, agreed)
    });
    for (rank, one) in results.into_iter().enumerate() {
        let gathered = if rank == 0 { vec![vec![], vec![2; 3], vec![3; 6]] } else { vec![vec![]; 3] };
        let (least, most, sum, low, high, all, flag, bytes, results, values, agreed) = one;
        assert_eq!((least, most), ([u64::MAX - 2, 0, 1 << 63], [u64::MAX, 2, 1 << 63 | 2]));
        assert_eq!((sum, low, high), ([3, 30], [0.0, -2.0], [2.0, 0.0]));
        assert_eq!((all, flag, bytes), (vec![0, 5, 1, 6, 2, 7], true, vec![2; 3]));
        assert_eq!((values, agreed), ([1.0], vec![2.0, 7.0]));
        if rank == 0 {
            assert_eq!(results, gathered);
        }
    }
}

/// In rank order, whatever the number of ranks, with values that fit the first message exactly, need another one, or are empty.
#[test]
fn a_tree_combines_the_values_of_all_ranks_in_rank_order() {
    let encoding = Encoding { encode: Vec::clone, decode: <[u8]>::to_vec };
    for size in 1..=9 {
        for length in [0, 1, 1015, 1016, 1017, 5000] {
            let of = |rank: usize| vec![rank as u8; length + usize::from(rank == 1)];
            let results = ranks(size, |rank| {
                let append = |mut lower: Vec<u8>, higher: Vec<u8>| {
                    lower.extend(higher);
                    lower
                };
                Comm::world().reduce_in_tree(of(rank), &encoding, append).unwrap()
            });
            let expected = (0..size).flat_map(of).collect::<Vec<_>>();
            for (rank, result) in results.into_iter().enumerate() {
                assert_eq!(result, (rank == 0).then(|| expected.clone()), "{size} ranks, {length} bytes");
            }
        }
    }
}

#[test]
fn subcommunicators_contain_the_requested_ranks() {
    let _agrees = AGREEMENT_LOCK.read().unwrap();
    let results = ranks(5, |_| {
        let comm = Comm::world();
        let of = |comm: Option<Comm>| comm.map(|comm| (comm.rank(), comm.size()));
        let prefix = of(comm.prefix(2).unwrap());
        let block = of(comm.blocks(2, 2).unwrap());
        let some = of(comm.create_group(&[4, 1, 3]).unwrap());
        let node = of(comm.node().unwrap());
        (prefix, block, some, node)
    });
    let all = |rank| Some((rank, 5));
    let expected = [
        (Some((0, 2)), Some((0, 2)), None, all(0)),
        (Some((1, 2)), Some((1, 2)), Some((1, 3)), all(1)),
        (None, Some((0, 2)), None, all(2)),
        (None, Some((1, 2)), Some((2, 3)), all(3)),
        (None, None, Some((0, 3)), all(4)),
    ];
    assert_eq!(results, expected);
}

#[test]
fn messages_are_separate_and_notifications_ordered() {
    let results = ranks(2, |rank| {
        let comm = Comm::world();
        let mut requests = Requests::with_capacity(4);
        let (mut out, mut into) = (vec![rank as u8 + 1; 5], vec![0_u8; 5]);
        // SAFETY: both live and are not accessed until all are complete.
        unsafe {
            comm.post_message(MessageDirection::Send, out.as_mut_ptr(), 3, 1 - rank as u64, &mut requests).unwrap();
            comm.post_message(MessageDirection::Receive, into.as_mut_ptr(), 3, 1 - rank as u64, &mut requests).unwrap();
        }
        assert!(!requests.is_empty());
        requests.wait_all().unwrap();
        assert!(requests.is_empty());

        let mut signals = Notifications::new(&comm).unwrap();
        let mut got = Vec::new();
        if rank == 0 {
            signals.send(1, 7).unwrap();
            signals.send(1, 8).unwrap();
            signals.send(1, 9).unwrap();
            assert_eq!(signals.receive(1).unwrap(), None, "none was sent");
        } else {
            while got.len() < 2 {
                got.extend(signals.receive(0).unwrap());
            }
        }
        signals.finish().unwrap();
        (into, got)
    });
    assert_eq!(results, [(vec![2, 2, 2, 0, 0], vec![]), (vec![1, 1, 1, 0, 0], vec![7, 8])]);
}

#[test]
fn a_message_that_fails_in_flight_is_an_error_and_none_stays_pending() {
    ranks(1, |_| {
        let comm = Comm::world();
        let mut requests = Requests::with_capacity(4);
        let (mut out, mut into) = (vec![1_u8; 5], vec![0_u8; 5]);
        // The first message is longer than its receive buffer.
        for (received, is_well) in [(3, false), (5, true)] {
            // SAFETY: both live and are not accessed until all are complete.
            unsafe {
                comm.post_message(MessageDirection::Send, out.as_mut_ptr(), 5, 0, &mut requests).unwrap();
                comm.post_message(MessageDirection::Receive, into.as_mut_ptr(), received, 0, &mut requests).unwrap();
            }
            let result = requests.wait_all();
            assert_eq!(result.is_ok(), is_well, "{result:?}");
            assert!(requests.is_empty());
        }
    });
}

#[test]
fn a_barrier_waits_for_all() {
    let _agrees = AGREEMENT_LOCK.read().unwrap();
    use std::sync::atomic::{AtomicUsize, Ordering};
    let came = AtomicUsize::new(0);
    ranks(3, |rank| {
        let universe = Universe::init().unwrap();
        let comm = universe.world();
        for (round, barrier) in [Comm::barrier, Comm::bare_barrier, Comm::idle_barrier].iter().enumerate() {
            std::thread::sleep(std::time::Duration::from_millis(2 * rank as u64));
            came.fetch_add(1, Ordering::SeqCst);
            barrier(&comm).unwrap();
            assert!(came.load(Ordering::SeqCst) >= 3 * (round + 1));
            comm.barrier().unwrap();
        }
    });
}
