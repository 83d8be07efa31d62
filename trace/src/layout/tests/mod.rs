//! Layouts compared with type maps built element by element, and with results of MPI libraries.

mod dictionary;

use proptest::prelude::*;

use super::{BoundRules, ByteRange, TypeFault, MAX_SEGMENTS};
use crate::types::{ArrayOrder, Datatype, Distribution};
use crate::{TypeLayouts, TypeSegment};
use dictionary::{dictionary, named};

/// Type map: displacement of every byte, and bounds.
#[derive(Clone, Default)]
struct TypeMap {
    bytes: Vec<i64>,
    lower: i64,
    upper: i64,
    set: bool,
    alignment: i64,
}

impl TypeMap {
    fn extent(&self) -> i64 {
        self.upper - self.lower
    }

    /// Joins inner types at displacements by the rules of the standard.
    fn join<'a>(parts: impl Iterator<Item = (i64, &'a Self)>) -> Self {
        let parts: Vec<_> = parts.collect();
        let bytes: Vec<i64> = parts.iter().flat_map(|(at, map)| map.bytes.iter().map(move |byte| byte + at)).collect();
        if bytes.is_empty() {
            return Self { alignment: 1, ..Self::default() };
        }
        let set = parts.iter().any(|(_, map)| map.set);
        let bounding = || parts.iter().filter(|(_, map)| map.set == set);
        let lower = bounding().map(|(at, map)| at + map.lower).min().unwrap();
        let mut upper = bounding().map(|(at, map)| at + map.upper).max().unwrap();
        let alignment = parts.iter().map(|(_, map)| map.alignment).max().unwrap();
        while !set && (upper - lower) % alignment != 0 {
            upper += 1;
        }
        Self { bytes, lower, upper, set, alignment }
    }
}

fn row(at: i64, count: u64, map: &TypeMap) -> impl Iterator<Item = (i64, &TypeMap)> {
    (0..count as i64).map(move |n| (at + n * map.extent(), map))
}

fn vector(count: u64, block: u64, stride: i64, map: &TypeMap) -> TypeMap {
    TypeMap::join((0..count as i64).flat_map(|n| row(n * stride, block, map)))
}

fn fixed(mut map: TypeMap, lower: i64, upper: i64) -> TypeMap {
    (map.lower, map.upper, map.set) = (lower, upper, true);
    map
}

/// Elements of a dimension that a process owns.
fn owned(size: u64, distribution: Distribution, argument: Option<u64>, grid: u64, place: u64) -> Vec<u64> {
    let block = match distribution {
        Distribution::None => size,
        Distribution::Block => argument.unwrap_or(size.div_ceil(grid)),
        Distribution::Cyclic => argument.unwrap_or(1),
    };
    (0..size).filter(|element| (element / block) % grid == place).collect()
}

fn array(sizes: &[u64], owned: &[Vec<u64>], order: ArrayOrder, map: &TypeMap) -> TypeMap {
    let mut dims: Vec<_> = sizes.iter().zip(owned).collect();
    if order == ArrayOrder::C {
        dims.reverse();
    }
    let alignment = map.alignment;
    let (mut bytes, mut extent) = (map.bytes.clone(), map.extent());
    for (size, owned) in dims {
        bytes =
            owned.iter().flat_map(|e| bytes.iter().map(|byte| byte + *e as i64 * extent).collect::<Vec<_>>()).collect();
        extent *= *size as i64;
    }
    fixed(TypeMap { bytes, alignment, ..TypeMap::default() }, 0, extent)
}

fn model(types: &[Datatype]) -> Vec<TypeMap> {
    let mut done: Vec<TypeMap> = Vec::new();
    for of in types {
        let get = |number: u32| &done[number as usize];
        let listed = |blocks: &[u64], at: Vec<i64>, of: u32| {
            TypeMap::join(blocks.iter().zip(at).flat_map(|(block, at)| row(at, *block, get(of))))
        };
        let map = match of {
            Datatype::Named { name, size_bytes, extent_bytes } => {
                let short = name == "SHORT_INT";
                let bytes = if short { vec![0, 1, 4, 5, 6, 7] } else { (0..*size_bytes as i64).collect() };
                let alignment = if short { 4 } else { (*extent_bytes).min(8) };
                TypeMap { bytes, lower: 0, upper: *extent_bytes, set: false, alignment }
            }
            Datatype::Contiguous { count, of } => vector(1, *count, 0, get(*of)),
            Datatype::Vector { count, block, stride, of } => {
                vector(*count, *block, stride * get(*of).extent(), get(*of))
            }
            Datatype::Hvector { count, block, stride_bytes, of } => vector(*count, *block, *stride_bytes, get(*of)),
            Datatype::Indexed { blocks, displacements, of } => {
                listed(blocks, displacements.iter().map(|d| d * get(*of).extent()).collect(), *of)
            }
            Datatype::Hindexed { blocks, displacements_bytes, of } => listed(blocks, displacements_bytes.clone(), *of),
            Datatype::IndexedBlock { block, displacements, of } => listed(
                &vec![*block; displacements.len()],
                displacements.iter().map(|d| d * get(*of).extent()).collect(),
                *of,
            ),
            Datatype::HindexedBlock { block, displacements_bytes, of } => {
                listed(&vec![*block; displacements_bytes.len()], displacements_bytes.clone(), *of)
            }
            Datatype::Struct { blocks, displacements_bytes, of } => TypeMap::join(
                blocks.iter().zip(displacements_bytes).zip(of).flat_map(|((block, at), of)| row(*at, *block, get(*of))),
            ),
            Datatype::Subarray { sizes, subsizes, starts, order, of } => {
                let owned: Vec<_> =
                    subsizes.iter().zip(starts).map(|(sub, start)| (*start..start + sub).collect()).collect();
                array(sizes, &owned, *order, get(*of))
            }
            Datatype::Darray { rank, ranks, sizes, distributions, arguments, grid, order, of } => {
                let (mut left, mut within) = (*rank, *ranks);
                let mut mine = Vec::new();
                for d in 0..sizes.len() {
                    within /= grid[d];
                    mine.push(owned(sizes[d], distributions[d], arguments[d], grid[d], left / within));
                    left %= within;
                }
                array(sizes, &mine, *order, get(*of))
            }
            Datatype::Resized { lower_bound_bytes: lower, extent_bytes, of } => {
                fixed(get(*of).clone(), *lower, lower + extent_bytes)
            }
        };
        done.push(map);
    }
    done
}

fn bytes_of(extents: impl Iterator<Item = ByteRange>) -> Vec<i64> {
    extents.flat_map(|extent| extent.at..extent.at + extent.bytes as i64).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn layouts_are_those_of_the_type_map(types in dictionary(), skip in 0_u64..200, length in 0_u64..400, base in -100_i64..100) {
        let layouts = TypeLayouts::new(&types).unwrap();
        for (number, map) in (0..).zip(model(&types)) {
            prop_assert_eq!(layouts.size(number), map.bytes.len() as u64);
            prop_assert_eq!((layouts.lower_bound(number), layouts.extent(number)), (map.lower, map.extent()), "bounds of {}", number);
            let span = layouts.true_span(number);
            prop_assert_eq!(map.bytes.iter().min().map(|first| (*first, map.bytes.iter().max().unwrap() + 1)), (!span.is_empty()).then_some((span.start, span.end)));
            let pieces = layouts.segments(number);
            prop_assert!(pieces.windows(2).all(|pair| pair[0].displacement_bytes + pair[0].bytes as i64 != pair[1].displacement_bytes));
            let listed = pieces.iter().map(|p| ByteRange { at: p.displacement_bytes, bytes: p.bytes });
            prop_assert_eq!(&bytes_of(listed), &map.bytes);

            let walked: Vec<ByteRange> = layouts.byte_ranges(number, skip, length, base).collect();
            let size = map.bytes.len() as u64;
            let expected: Vec<i64> = if size == 0 { Vec::new() } else {
                (skip..skip + length).map(|n| base + (n / size) as i64 * map.extent() + map.bytes[(n % size) as usize]).collect()
            };
            prop_assert_eq!(&bytes_of(walked.iter().copied()), &expected);
            prop_assert!(walked.windows(2).all(|pair| pair[0].at + pair[0].bytes as i64 != pair[1].at), "neighbours are joined");
            prop_assert!(walked.iter().all(|extent| extent.bytes > 0));
            if let (Some(first), Some(last)) = (expected.iter().min(), expected.iter().max()) {
                let hull = layouts.hull(number, skip, length, base).unwrap();
                prop_assert!(hull.contains(first) && hull.contains(last));
            }
            let mut run = 0..size as i64 * 2;
            let is_run = size > 0 && bytes_of(layouts.byte_ranges(number, 0, size * 2, 0)).into_iter().all(|at| Some(at) == run.next());
            prop_assert_eq!(layouts.is_contiguous(number), is_run);
        }
    }
}

/// Lower bound and extent returned by MPICH 4.0 and Open MPI 4.1 on x86_64.
#[test]
fn bounds_match_those_of_mpi_libraries() {
    let hindexed = |at: i64, of| Datatype::Hindexed { blocks: vec![1, 1], displacements_bytes: vec![0, at], of };
    let pair = |at: [i64; 2], of: [u32; 2]| Datatype::Struct {
        blocks: vec![1, 1],
        displacements_bytes: at.to_vec(),
        of: of.to_vec(),
    };
    let of_three = Datatype::Struct { blocks: vec![1, 1, 1], displacements_bytes: vec![0, 0, 100], of: vec![0, 6, 1] };
    let types = vec![
        named("INT", 4, 4),
        named("DOUBLE", 8, 8),
        named("CHAR", 1, 1),
        named("C_DOUBLE_COMPLEX", 16, 16),
        named("SHORT_INT", 6, 8),
        named("LONG_DOUBLE_INT", 20, 32),
        Datatype::Resized { lower_bound_bytes: 0, extent_bytes: 16, of: 0 },
        pair([0, 8], [1, 2]),
        Datatype::Contiguous { count: 0, of: 0 },
        Datatype::Resized { lower_bound_bytes: -8, extent_bytes: 32, of: 8 },
        Datatype::Resized { lower_bound_bytes: 4, extent_bytes: -4, of: 0 },
        Datatype::Resized { lower_bound_bytes: 0, extent_bytes: 9, of: 1 },
        Datatype::Resized { lower_bound_bytes: -4, extent_bytes: 12, of: 0 },
        of_three,
        hindexed(5, 0),
        hindexed(17, 7),
        pair([0, 17], [7, 7]),
        pair([1, 9], [1, 2]),
        pair([0, 16], [3, 2]),
        pair([0, 8], [4, 2]),
        pair([0, 32], [5, 2]),
        Datatype::Struct { blocks: vec![1, 0], displacements_bytes: vec![0, 50], of: vec![0, 6] },
        pair([50, 80], [0, 8]),
        pair([50, 80], [0, 9]),
        Datatype::Contiguous { count: 3, of: 9 },
        Datatype::Vector { count: 2, block: 2, stride: 3, of: 10 },
        pair([0, 9], [11, 2]),
        Datatype::Subarray { sizes: vec![8], subsizes: vec![2], starts: vec![3], order: ArrayOrder::C, of: 12 },
        pair([-4, 8], [0, 2]),
    ];
    let standard = [
        (0, 16),
        (0, 12),
        (0, 40),
        (0, 40),
        (1, 16),
        (0, 24),
        (0, 12),
        (0, 48),
        (0, 4),
        (50, 32),
        (72, 32),
        (0, 0),
        (-12, 12),
        (0, 9),
        (0, 96),
        (-4, 16),
    ];
    let mpich = [
        (0, 112),
        (0, 9),
        (0, 33),
        (0, 33),
        (1, 16),
        (0, 24),
        (0, 12),
        (0, 48),
        (0, 4),
        (50, 32),
        (50, 56),
        (0, 0),
        (-12, 12),
        (0, 16),
        (0, 96),
        (-4, 16),
    ];
    for (library, expected) in [("Open MPI v4.1.4, package: x", standard), ("MPICH Version:\t4.0.2", mpich)] {
        let layouts = TypeLayouts::for_library(&types, library).unwrap();
        let bounds: Vec<(i64, i64)> =
            (13..types.len() as u32).map(|t| (layouts.lower_bound(t), layouts.extent(t))).collect();
        assert_eq!(bounds, expected, "{library}");
    }
    assert_eq!(BoundRules::for_library("Intel(R) MPI Library 2021.9"), BoundRules::Mpich);
}

#[test]
fn contiguous_segments_join_and_others_are_limited() {
    let huge = 1 << 50;
    let types = [
        named("BYTE", 1, 1),
        Datatype::Contiguous { count: huge, of: 0 },
        Datatype::Vector { count: 1 << 40, block: 8, stride: 8, of: 0 },
        Datatype::Subarray {
            sizes: vec![1 << 20, 1 << 30],
            subsizes: vec![1 << 10, 1 << 30],
            starts: vec![1, 0],
            order: ArrayOrder::C,
            of: 0,
        },
        Datatype::Contiguous { count: 0, of: 0 },
        Datatype::Contiguous { count: u64::MAX, of: 4 },
        Datatype::Vector { count: 1 << 22, block: 1, stride: 2, of: 0 },
    ];
    let layouts = TypeLayouts::new(&types).unwrap();
    assert_eq!(layouts.segments(1), [TypeSegment { displacement_bytes: 0, bytes: huge }]);
    assert_eq!(layouts.segments(2), [TypeSegment { displacement_bytes: 0, bytes: 8 << 40 }]);
    assert_eq!(layouts.segments(3), [TypeSegment { displacement_bytes: 1 << 30, bytes: 1 << 40 }]);
    assert_eq!((layouts.size(5), layouts.extent(5)), (0, 0));
    assert_eq!(layouts.segments(6).len(), MAX_SEGMENTS);
    assert_eq!(layouts.hull(1, i64::MAX as u64, 2, 0), None);
    assert_eq!(layouts.byte_ranges(1, i64::MAX as u64, 2, 0).count(), 0);

    let fault = |last: Datatype| {
        let mut all = types.to_vec();
        all.push(last);
        let error = TypeLayouts::new(&all).unwrap_err();
        assert_eq!(error.number, 7, "{error}");
        error.fault
    };
    assert_eq!(
        fault(Datatype::Vector { count: (1 << 22) + 1, block: 1, stride: 2, of: 0 }),
        TypeFault::TooManySegments
    );
    assert_eq!(
        fault(Datatype::Vector { count: u64::MAX >> 2, block: 1, stride: 2, of: 0 }),
        TypeFault::TooManySegments
    );
    assert_eq!(fault(Datatype::Contiguous { count: 2, of: 6 }), TypeFault::TooManySegments);
    assert_eq!(fault(Datatype::Contiguous { count: 1 << 13, of: 1 }), TypeFault::Overflow);
    assert_eq!(fault(Datatype::Contiguous { count: u64::MAX, of: 0 }), TypeFault::Overflow);
    assert_eq!(fault(Datatype::Hvector { count: 3, block: 1, stride_bytes: i64::MIN, of: 0 }), TypeFault::Overflow);
    assert_eq!(fault(Datatype::Vector { count: 1, block: 1, stride: i64::MAX, of: 1 }), TypeFault::Overflow);
    assert_eq!(fault(Datatype::Resized { lower_bound_bytes: i64::MAX, extent_bytes: 1, of: 0 }), TypeFault::Overflow);
    assert_eq!(fault(Datatype::Contiguous { count: 1, of: 7 }), TypeFault::ForwardReference(7));
    assert_eq!(
        fault(Datatype::Struct { blocks: vec![0], displacements_bytes: vec![0], of: vec![9] }),
        TypeFault::ForwardReference(9)
    );
    assert!(matches!(
        fault(Datatype::Indexed { blocks: vec![1], displacements: vec![], of: 0 }),
        TypeFault::Arguments(_)
    ));
    let outside =
        Datatype::Subarray { sizes: vec![4], subsizes: vec![3], starts: vec![2], order: ArrayOrder::C, of: 0 };
    assert!(matches!(fault(outside), TypeFault::Arguments(_)));
    let lonely = Datatype::Darray {
        ranks: 2,
        rank: 2,
        sizes: vec![4],
        distributions: vec![Distribution::Block],
        arguments: vec![None],
        grid: vec![2],
        order: ArrayOrder::C,
        of: 0,
    };
    assert!(matches!(fault(lonely), TypeFault::Arguments(_)));
}

/// As ROMIO's noncontig tests use them.
#[test]
fn markers_are_the_bounds_of_a_struct() {
    let marked = |parts: &[(i64, u32)]| {
        let types = [
            named("INT", 4, 4),
            named("LB", 0, 0),
            named("UB", 0, 0),
            Datatype::Vector { count: 4, block: 1, stride: 2, of: 0 },
            Datatype::Struct {
                blocks: vec![1; parts.len()],
                displacements_bytes: parts.iter().map(|(at, _)| *at).collect(),
                of: parts.iter().map(|(_, of)| *of).collect(),
            },
        ];
        [BoundRules::Standard, BoundRules::Mpich].map(|rules| {
            let layouts = TypeLayouts::with_rules(&types, rules).unwrap();
            (layouts.lower_bound(4), layouts.extent(4), layouts.size(4), layouts.true_span(4))
        })
    };
    assert_eq!(marked(&[(0, 1), (4, 3), (36, 2)]), [(0, 36, 16, 4..32), (0, 36, 16, 4..32)]);
    assert_eq!(marked(&[(8, 1), (4, 3), (20, 2)]), [(8, 12, 16, 4..32), (8, 12, 16, 4..32)], "inside the data");
    assert_eq!(marked(&[(4, 3), (50, 2)]), [(4, 46, 16, 4..32), (4, 46, 16, 4..32)], "no padding");
}

#[test]
fn all_types_together_are_limited() {
    let mut types = vec![named("BYTE", 1, 1)];
    types.extend((0..3).map(|n| Datatype::Vector { count: 3 << 20, block: 1, stride: 2 + n, of: 0 }));
    let error = TypeLayouts::new(&types).unwrap_err();
    assert_eq!((error.number, error.fault), (3, TypeFault::TooManySegments));
}
