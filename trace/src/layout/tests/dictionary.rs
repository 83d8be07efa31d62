//! Random dictionaries of small types, shared by tests.
use proptest::prelude::*;

use crate::types::{ArrayOrder, Datatype, Distribution};

pub fn named(name: &str, size_bytes: u64, extent_bytes: i64) -> Datatype {
    Datatype::Named { name: name.to_owned(), size_bytes, extent_bytes }
}

fn order() -> impl Strategy<Value = ArrayOrder> {
    prop_oneof![Just(ArrayOrder::C), Just(ArrayOrder::Fortran)]
}

/// A constructor over types below `known`.
fn constructor(known: u32) -> impl Strategy<Value = Datatype> {
    let of = 0..known;
    let lists = prop::collection::vec((0_u64..4, -9_i64..20), 0..4);
    let flat =
        prop_oneof![
            (0_u64..5, of.clone()).prop_map(|(count, of)| Datatype::Contiguous { count, of }),
            (0_u64..4, 0_u64..4, -5_i64..7, of.clone()).prop_map(|(count, block, stride, of)| Datatype::Vector {
                count,
                block,
                stride,
                of
            }),
            (0_u64..4, 0_u64..4, -20_i64..40, of.clone())
                .prop_map(|(count, block, stride_bytes, of)| Datatype::Hvector { count, block, stride_bytes, of }),
            (-20_i64..20, -5_i64..50, of.clone()).prop_map(|(lower_bound_bytes, extent_bytes, of)| Datatype::Resized {
                lower_bound_bytes,
                extent_bytes,
                of
            }),
        ];
    let listed = (lists, of.clone(), 0..5, 0_u64..3, prop::collection::vec(of.clone(), 4)).prop_map(
        |(list, of, kind, block, parts)| {
            let (blocks, displacements): (Vec<u64>, Vec<i64>) = list.into_iter().unzip();
            match kind {
                0 => Datatype::Indexed { blocks, displacements, of },
                1 => Datatype::Hindexed { blocks, displacements_bytes: displacements, of },
                2 => Datatype::IndexedBlock { block, displacements, of },
                3 => Datatype::HindexedBlock { block, displacements_bytes: displacements, of },
                _ => {
                    Datatype::Struct { of: parts[..blocks.len()].to_vec(), blocks, displacements_bytes: displacements }
                }
            }
        },
    );
    prop_oneof![flat, listed, subarray(of.clone()), darray(of)]
}

fn subarray(of: std::ops::Range<u32>) -> impl Strategy<Value = Datatype> {
    let dimension = (1_u64..5)
        .prop_flat_map(|size| (Just(size), 0..=size))
        .prop_flat_map(|(size, sub)| (Just(size), Just(sub), 0..=size - sub));
    (prop::collection::vec(dimension, 1..4), order(), of).prop_map(|(dimensions, order, of)| Datatype::Subarray {
        sizes: dimensions.iter().map(|d| d.0).collect(),
        subsizes: dimensions.iter().map(|d| d.1).collect(),
        starts: dimensions.iter().map(|d| d.2).collect(),
        order,
        of,
    })
}

fn darray(of: std::ops::Range<u32>) -> impl Strategy<Value = Datatype> {
    let dimension =
        (1_u64..8, 1_u64..4, 0..3, prop::option::of(1_u64..4)).prop_map(|(size, grid, kind, argument)| match kind {
            0 => (size, 1, Distribution::None, argument),
            1 => (size, grid, Distribution::Block, argument.map(|extra| size.div_ceil(grid) + extra - 1)),
            _ => (size, grid, Distribution::Cyclic, argument),
        });
    (prop::collection::vec(dimension, 1..4), order(), of, any::<prop::sample::Index>()).prop_map(
        |(dimensions, order, of, rank)| {
            let ranks: u64 = dimensions.iter().map(|d| d.1).product();
            Datatype::Darray {
                ranks,
                rank: rank.index(ranks as usize) as u64,
                sizes: dimensions.iter().map(|d| d.0).collect(),
                grid: dimensions.iter().map(|d| d.1).collect(),
                distributions: dimensions.iter().map(|d| d.2).collect(),
                arguments: dimensions.iter().map(|d| d.3).collect(),
                order,
                of,
            }
        },
    )
}

/// A dictionary of predefined types and up to four nested ones.
pub fn dictionary() -> impl Strategy<Value = Vec<Datatype>> {
    let base = vec![
        named("BYTE", 1, 1),
        named("INT", 4, 4),
        named("DOUBLE", 8, 8),
        named("DOUBLE_INT", 12, 16),
        named("SHORT_INT", 6, 8),
    ];
    (constructor(5), constructor(6), constructor(7), constructor(8)).prop_map(move |(a, b, c, d)| {
        let mut all = base.clone();
        all.extend([a, b, c, d]);
        all
    })
}
