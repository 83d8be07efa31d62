//! Types made from trees, in memory and in views: what they move, byte by byte.

#![allow(clippy::unwrap_used)] // helpers of tests

mod replayed;

use beff_backends::Step;
use beff_trace::types::Distribution;
use beff_trace::{Call, Function, Order, Type};
use replayed::{alone, byte_of, close, data, on, on_1_2_and_3, open, step, Player, BYTE, INT};

/// A type and the displacement of each of its bytes, in order.
struct Known {
    name: &'static str,
    tree: Type,
    bytes: Vec<i64>,
}

fn run(at: i64, bytes: i64) -> Vec<i64> {
    (at..at + bytes).collect()
}

fn runs(all: &[(i64, i64)]) -> Vec<i64> {
    all.iter().flat_map(|(at, bytes)| run(*at, *bytes)).collect()
}

/// Every constructor; types 2 and on. Sixteen bytes of data each, or thereabouts.
fn known() -> Vec<Known> {
    let it = |name, tree, parts: &[(i64, i64)]| Known { name, tree, bytes: runs(parts) };
    let none = |size: u64| (size, size as i64);
    let named = |name: &str, (size_bytes, extent_bytes): (u64, i64)| Type::Named {
        name: name.into(),
        size_bytes,
        extent_bytes,
    };
    vec![
        it("contiguous", Type::Contiguous { count: 4, of: INT }, &[(0, 16)]),
        it("vector", Type::Vector { count: 2, block: 2, stride: 3, of: INT }, &[(0, 8), (12, 8)]),
        it("hvector", Type::Hvector { count: 3, block: 1, stride_bytes: 9, of: INT }, &[(0, 4), (9, 4), (18, 4)]),
        it(
            "indexed",
            Type::Indexed { blocks: vec![1, 0, 2], displacements: vec![1, 2, 4], of: INT },
            &[(4, 4), (16, 8)],
        ),
        it(
            "hindexed",
            Type::Hindexed { blocks: vec![1, 2], displacements_bytes: vec![3, 10], of: INT },
            &[(3, 4), (10, 8)],
        ),
        it("indexed block", Type::IndexedBlock { block: 2, displacements: vec![0, 3], of: INT }, &[(0, 8), (12, 8)]),
        it(
            "hindexed block",
            Type::HindexedBlock { block: 1, displacements_bytes: vec![2, 7], of: INT },
            &[(2, 4), (7, 4)],
        ),
        it(
            "struct of a vector and bytes",
            Type::Struct { blocks: vec![1, 3], displacements_bytes: vec![0, 24], of: vec![3, BYTE] },
            &[(0, 8), (12, 8), (24, 3)],
        ),
        it(
            "subarray of C",
            Type::Subarray { sizes: vec![3, 4], subsizes: vec![2, 2], starts: vec![1, 1], order: Order::C, of: INT },
            &[(20, 8), (36, 8)],
        ),
        it(
            "subarray of Fortran",
            Type::Subarray {
                sizes: vec![4, 3],
                subsizes: vec![2, 2],
                starts: vec![1, 1],
                order: Order::Fortran,
                of: INT,
            },
            &[(20, 8), (36, 8)],
        ),
        it(
            "darray, cyclic",
            Type::Darray {
                ranks: 2,
                rank: 1,
                sizes: vec![8],
                distributions: vec![Distribution::Cyclic],
                arguments: vec![Some(2)],
                grid: vec![2],
                order: Order::C,
                of: BYTE,
            },
            &[(2, 2), (6, 2)],
        ),
        it(
            "darray, block by default",
            Type::Darray {
                ranks: 2,
                rank: 1,
                sizes: vec![2, 8],
                distributions: vec![Distribution::None, Distribution::Block],
                arguments: vec![None, None],
                grid: vec![1, 2],
                order: Order::C,
                of: BYTE,
            },
            &[(4, 4), (12, 4)],
        ),
        it("resized", Type::Resized { lower_bound_bytes: 0, extent_bytes: 30, of: 3 }, &[(0, 8), (12, 8)]),
        it(
            "vector of a struct of a vector",
            Type::Hvector { count: 2, block: 1, stride_bytes: 40, of: 9 },
            &[(0, 8), (12, 8), (24, 3), (40, 8), (52, 8), (64, 3)],
        ),
        // MPICH 4.0 ends the program on a write of DOUBLE_INT, which has a gap at its end.
        it("FLOAT_INT", named("FLOAT_INT", none(8)), &[(0, 8)]),
        it("Fortran's REAL", named("DOUBLE_PRECISION", none(8)), &[(0, 8)]),
        it("REAL of 15 digits", named("F90_REAL(15,307)", none(8)), &[(0, 8)]),
        it("INTEGER of 9 digits", named("F90_INTEGER(9)", none(4)), &[(0, 4)]),
    ]
}

/// A step that moves one element of type `number` at `memory_at`.
fn of_type(function: Function, number: u32, offset: i64, memory_at: u64) -> Step {
    let mut it = data(1, function, Some(offset), 1, memory_at);
    it.call.datatype = Some(number);
    it
}

#[test]
fn types_in_memory_move_their_bytes() {
    on_1_2_and_3("types_in_memory_move_their_bytes", |comm, directory| {
        let known = known();
        let trees = known.iter().map(|it| it.tree.clone()).collect();
        let own = format!("own-{}", comm.rank());
        let mut player = Player::new(comm, directory, trees, &[&own]);
        player.succeed(vec![open(1, 0, alone(comm.rank()), &["rdwr", "create"])]);
        for (number, it) in known.iter().enumerate() {
            let (number, at, offset) = (number as u32 + 2, 1000 + number as u64 * 100, number as i64 * 1000);
            player.program.landed(0..200).unwrap().fill(0);
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
            assert_eq!(player.program.landed(0..200).unwrap(), landing, "{}", it.name);
        }
        player.succeed(vec![close(1)]);
        player.program.finish().unwrap();
    });
}

#[test]
fn views_and_negative_bounds() {
    on_1_2_and_3("views_and_negative_bounds", |comm, directory| {
        let (rank, ranks) = (comm.rank(), comm.size());
        // One of `ranks` parts of 10 bytes; and 4 bytes that lie 8 before the address.
        let types = vec![
            Type::Contiguous { count: 10, of: BYTE },
            Type::Resized { lower_bound_bytes: 0, extent_bytes: ranks as i64 * 10, of: 2 },
            Type::Hindexed { blocks: vec![4, 2], displacements_bytes: vec![-8, 2], of: BYTE },
        ];
        let mut player = Player::new(comm, directory, types, &["viewed"]);
        let displacement = Some(5 + rank as i64 * 10);
        let view = Call { offset: displacement, etype: Some(BYTE), filetype: Some(3), ..on(1, Function::SetView) };
        let mut outside = data(1, Function::Read, None, 1, 7);
        outside.call.datatype = Some(4);
        player.succeed(vec![open(1, 0, 0, &["rdwr", "create"]), step(view)]);
        assert!(player.program.make_ready(vec![outside]).is_err());
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
        let places = runs(&[(-8, 4), (2, 2), (4, 4), (14, 2)]);
        let of_rank = |rank| places.iter().map(move |place| byte_of(rank, (100 + place) as u64));
        let content = player.file("viewed");
        for rank in 0..ranks {
            let mine: Vec<u8> =
                (0..12).map(|n: u64| content[(5 + rank * 10 + n / 10 * ranks * 10 + n % 10) as usize]).collect();
            assert!(mine.iter().copied().eq(of_rank(rank)), "rank {rank}");
        }
        let landed = player.program.landed(0..24).unwrap().to_vec();
        assert!(places.iter().map(|place| landed[(8 + place) as usize]).eq(of_rank(rank)));
        player.barrier();
        player.program.finish().unwrap();
    });
}

#[test]
fn types_that_make_no_sense_are_refused() {
    on_1_2_and_3("types_that_make_no_sense_are_refused", |comm, directory| {
        let of_itself = |number| Type::Contiguous { count: 1, of: number };
        let types = vec![
            of_itself(2),
            of_itself(4),
            Type::Indexed { blocks: vec![1], displacements: vec![1, 2], of: BYTE },
            Type::Contiguous { count: u64::MAX, of: BYTE },
            // 2^64 bytes, which wrap around to none.
            Type::Contiguous { count: 1 << 31, of: BYTE },
            Type::Contiguous { count: 1 << 31, of: 6 },
            Type::Contiguous { count: 4, of: 7 },
        ];
        let mut player = Player::new(comm, directory, types, &[]);
        for (number, expected) in [
            (2, "not stand before"),
            (3, "not stand before"),
            (4, "type 4"),
            (5, "63 bits"),
            (8, "63 bits"),
            (9, "no type 9"),
        ] {
            let told = player.program.make_ready(vec![of_type(Function::WriteAt, number, 0, 0)]).unwrap_err();
            assert!(told.to_string().contains(expected), "{told}");
        }
        // Deep, but finite.
        let chain = (1..20_000).map(|n| of_itself(if n == 1 { BYTE } else { n })).collect();
        let mut deep = Player::new(comm, directory, chain, &[]);
        deep.program.make_ready(vec![of_type(Function::WriteAt, 20_000, 0, 0)]).unwrap();
        deep.program.finish().unwrap();
        player.program.finish().unwrap();
    });
}
