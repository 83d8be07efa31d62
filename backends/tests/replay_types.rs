//! Types constructed from trees, in memory and in views: the transferred bytes.

#![allow(clippy::unwrap_used)] // helpers of tests

mod replay_support;

use beff_backends::ProgramStep;
use beff_trace::types::Distribution;
use beff_trace::{ArrayOrder, Call, Datatype, Function};
use replay_support::{byte_of, close, data, on, on_1_2_and_3, open, own_comm, step, ProgramRunner, BYTE, INT};

/// A type and the displacement of each of its bytes, in order.
struct TypeMapCase {
    name: &'static str,
    tree: Datatype,
    bytes: Vec<i64>,
}

fn byte_run(at: i64, bytes: i64) -> Vec<i64> {
    (at..at + bytes).collect()
}

fn byte_runs(all: &[(i64, i64)]) -> Vec<i64> {
    all.iter().flat_map(|(at, bytes)| byte_run(*at, *bytes)).collect()
}

/// Every constructor; types 2 and following. About sixteen bytes of data each.
fn type_map_cases() -> Vec<TypeMapCase> {
    let it = |name, tree, parts: &[(i64, i64)]| TypeMapCase { name, tree, bytes: byte_runs(parts) };
    let none = |size: u64| (size, size as i64);
    let named = |name: &str, (size_bytes, extent_bytes): (u64, i64)| Datatype::Named {
        name: name.into(),
        size_bytes,
        extent_bytes,
    };
    vec![
        it("contiguous", Datatype::Contiguous { count: 4, of: INT }, &[(0, 16)]),
        it("vector", Datatype::Vector { count: 2, block: 2, stride: 3, of: INT }, &[(0, 8), (12, 8)]),
        it("hvector", Datatype::Hvector { count: 3, block: 1, stride_bytes: 9, of: INT }, &[(0, 4), (9, 4), (18, 4)]),
        it(
            "indexed",
            Datatype::Indexed { blocks: vec![1, 0, 2], displacements: vec![1, 2, 4], of: INT },
            &[(4, 4), (16, 8)],
        ),
        it(
            "hindexed",
            Datatype::Hindexed { blocks: vec![1, 2], displacements_bytes: vec![3, 10], of: INT },
            &[(3, 4), (10, 8)],
        ),
        it(
            "indexed block",
            Datatype::IndexedBlock { block: 2, displacements: vec![0, 3], of: INT },
            &[(0, 8), (12, 8)],
        ),
        it(
            "hindexed block",
            Datatype::HindexedBlock { block: 1, displacements_bytes: vec![2, 7], of: INT },
            &[(2, 4), (7, 4)],
        ),
        it(
            "struct of a vector and bytes",
            Datatype::Struct { blocks: vec![1, 3], displacements_bytes: vec![0, 24], of: vec![3, BYTE] },
            &[(0, 8), (12, 8), (24, 3)],
        ),
        it(
            "subarray of C",
            Datatype::Subarray {
                sizes: vec![3, 4],
                subsizes: vec![2, 2],
                starts: vec![1, 1],
                order: ArrayOrder::C,
                of: INT,
            },
            &[(20, 8), (36, 8)],
        ),
        it(
            "subarray of Fortran",
            Datatype::Subarray {
                sizes: vec![4, 3],
                subsizes: vec![2, 2],
                starts: vec![1, 1],
                order: ArrayOrder::Fortran,
                of: INT,
            },
            &[(20, 8), (36, 8)],
        ),
        it(
            "darray, cyclic",
            Datatype::Darray {
                ranks: 2,
                rank: 1,
                sizes: vec![8],
                distributions: vec![Distribution::Cyclic],
                arguments: vec![Some(2)],
                grid: vec![2],
                order: ArrayOrder::C,
                of: BYTE,
            },
            &[(2, 2), (6, 2)],
        ),
        it(
            "darray, block by default",
            Datatype::Darray {
                ranks: 2,
                rank: 1,
                sizes: vec![2, 8],
                distributions: vec![Distribution::None, Distribution::Block],
                arguments: vec![None, None],
                grid: vec![1, 2],
                order: ArrayOrder::C,
                of: BYTE,
            },
            &[(4, 4), (12, 4)],
        ),
        it("resized", Datatype::Resized { lower_bound_bytes: 0, extent_bytes: 30, of: 3 }, &[(0, 8), (12, 8)]),
        it(
            "vector of a struct of a vector",
            Datatype::Hvector { count: 2, block: 1, stride_bytes: 40, of: 9 },
            &[(0, 8), (12, 8), (24, 3), (40, 8), (52, 8), (64, 3)],
        ),
        // MPICH 4.0 aborts at a write of DOUBLE_INT, which has a gap at its end.
        it("FLOAT_INT", named("FLOAT_INT", none(8)), &[(0, 8)]),
        it("Fortran's REAL", named("DOUBLE_PRECISION", none(8)), &[(0, 8)]),
        it("REAL of 15 digits", named("F90_REAL(15,307)", none(8)), &[(0, 8)]),
        it("INTEGER of 9 digits", named("F90_INTEGER(9)", none(4)), &[(0, 4)]),
    ]
}

/// A step that transfers one element of type `number` at `memory_at`.
fn of_type(function: Function, number: u32, offset: i64, memory_at: u64) -> ProgramStep {
    let mut it = data(1, function, Some(offset), 1, memory_at);
    it.call.datatype = Some(number);
    it
}

#[test]
fn types_in_memory_move_their_bytes() {
    on_1_2_and_3("types_in_memory_move_their_bytes", |comm, directory| {
        let known = type_map_cases();
        let trees = known.iter().map(|it| it.tree.clone()).collect();
        let own = format!("own-{}", comm.rank());
        let mut player = ProgramRunner::new(comm, directory, trees, &[&own]);
        player.succeed(vec![open(1, 0, own_comm(comm.rank()), &["rdwr", "create"])]);
        for (number, it) in known.iter().enumerate() {
            let (number, at, offset) = (number as u32 + 2, 1000 + number as u64 * 100, number as i64 * 1000);
            player.program.landing_range(0..200).unwrap().fill(0);
            let write = of_type(Function::WriteAt, number, offset, at);
            let outcomes = player.succeed(vec![write, of_type(Function::ReadAt, number, offset, 50)]);
            let size = it.bytes.len();
            assert_eq!(outcomes.iter().map(|o| o.bytes).collect::<Vec<_>>(), [Some(size as u64); 2], "{}", it.name);
            let expected: Vec<u8> = it.bytes.iter().map(|place| byte_of(comm.rank(), at + *place as u64)).collect();
            assert_eq!(player.file(&own)[offset as usize..][..size], expected, "{}", it.name);
            let mut landing = vec![0; 200];
            for place in &it.bytes {
                landing[50 + *place as usize] = byte_of(comm.rank(), at + *place as u64);
            }
            assert_eq!(player.program.landing_range(0..200).unwrap(), landing, "{}", it.name);
        }
        player.succeed(vec![close(1)]);
        player.program.finish().unwrap();
    });
}

#[test]
fn views_and_negative_bounds() {
    on_1_2_and_3("views_and_negative_bounds", |comm, directory| {
        let (rank, ranks) = (comm.rank(), comm.size());
        // One of `ranks` parts of 10 bytes; and 4 bytes at a displacement of -8.
        let types = vec![
            Datatype::Contiguous { count: 10, of: BYTE },
            Datatype::Resized { lower_bound_bytes: 0, extent_bytes: ranks as i64 * 10, of: 2 },
            Datatype::Hindexed { blocks: vec![4, 2], displacements_bytes: vec![-8, 2], of: BYTE },
        ];
        let mut player = ProgramRunner::new(comm, directory, types, &["viewed"]);
        let displacement = Some(5 + rank as i64 * 10);
        let view = Call { offset: displacement, etype: Some(BYTE), filetype: Some(3), ..on(1, Function::SetView) };
        let mut outside = data(1, Function::Read, None, 1, 7);
        outside.call.datatype = Some(4);
        player.succeed(vec![open(1, 0, 0, &["rdwr", "create"]), step(view)]);
        assert!(player.program.prepare(vec![outside]).is_err());
        let mut behind = data(1, Function::WriteAll, None, 2, 100);
        behind.call.datatype = Some(4);
        let mut back = data(1, Function::ReadAtAll, Some(0), 2, 8);
        back.call.datatype = Some(4);
        let sync = || step(on(1, Function::Sync));
        player.succeed(vec![behind, sync()]);
        player.barrier();
        let outcomes = player.succeed(vec![sync(), back, close(1)]);
        assert_eq!(outcomes[1].bytes, Some(12));
        // The extent is 12: from -8 to 4.
        let places = byte_runs(&[(-8, 4), (2, 2), (4, 4), (14, 2)]);
        let of_rank = |rank| places.iter().map(move |place| byte_of(rank, (100 + place) as u64));
        let content = player.file("viewed");
        for rank in 0..ranks {
            let mine: Vec<u8> =
                (0..12).map(|n: u64| content[(5 + rank * 10 + n / 10 * ranks * 10 + n % 10) as usize]).collect();
            assert!(mine.iter().copied().eq(of_rank(rank)), "rank {rank}");
        }
        let landed = player.program.landing_range(0..24).unwrap().to_vec();
        assert!(places.iter().map(|place| landed[(8 + place) as usize]).eq(of_rank(rank)));
        player.barrier();
        player.program.finish().unwrap();
    });
}

#[test]
fn invalid_types_are_refused() {
    on_1_2_and_3("invalid_types_are_refused", |comm, directory| {
        let of_itself = |number| Datatype::Contiguous { count: 1, of: number };
        let types = vec![
            of_itself(2),
            of_itself(4),
            Datatype::Indexed { blocks: vec![1], displacements: vec![1, 2], of: BYTE },
            Datatype::Contiguous { count: u64::MAX, of: BYTE },
            // 2^64 bytes, which overflow to zero.
            Datatype::Contiguous { count: 1 << 31, of: BYTE },
            Datatype::Contiguous { count: 1 << 31, of: 6 },
            Datatype::Contiguous { count: 4, of: 7 },
        ];
        let mut player = ProgramRunner::new(comm, directory, types, &[]);
        for (number, expected) in [
            (2, "not defined before"),
            (3, "not defined before"),
            (4, "type 4"),
            (5, "63 bits"),
            (8, "63 bits"),
            (9, "no type 9"),
        ] {
            let error = player.program.prepare(vec![of_type(Function::WriteAt, number, 0, 0)]).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
        // Deep, but finite.
        let chain = (1..20_000).map(|n| of_itself(if n == 1 { BYTE } else { n })).collect();
        let mut deep = ProgramRunner::new(comm, directory, chain, &[]);
        deep.program.prepare(vec![of_type(Function::WriteAt, 20_000, 0, 0)]).unwrap();
        deep.program.finish().unwrap();
        player.program.finish().unwrap();
    });
}
