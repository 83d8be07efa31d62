//! The constructors of types.

use super::bounds::{alignment, Bounds, Rules, Union};
use super::pieces::{Excess, Piece, Pieces};
use crate::types::{Distribution, Order, Type};

/// Pieces that one type may fall into, and twice as many all types together.
pub const MOST_PIECES: usize = 4 << 20;

/// A type that cannot be worked out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("type {number}: {fault}")]
pub struct TypeError {
    /// Its number in the dictionary.
    pub number: usize,
    /// What is wrong with it.
    pub fault: TypeFault,
}

/// What is wrong with a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeFault {
    /// It refers to itself or to one behind it.
    #[error("it is made of type {0}, which does not stand before it")]
    Forward(u32),
    /// It is made of one that cannot be worked out.
    #[error("it is made of type {0}, which cannot be worked out")]
    Part(u32),
    /// Its size, its bounds or its places do not fit.
    #[error("it reaches beyond 63 bits")]
    Overflow,
    /// It falls into too many pieces.
    #[error("it falls into more than {MOST_PIECES} pieces, or all types together into twice as many")]
    TooManyPieces,
    /// Its arguments do not fit together.
    #[error("{0}")]
    Arguments(&'static str),
}

impl From<Excess> for TypeFault {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::Bits => Self::Overflow,
            Excess::Pieces => Self::TooManyPieces,
        }
    }
}

/// A type that was worked out.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) pieces: Pieces,
    pub(super) bounds: Bounds,
}

type Made = Result<Layout, TypeFault>;

/// Works out all types; `refused` hears of each that cannot be, and may end it.
pub(super) fn all(
    types: &[Type],
    rules: Rules,
    mut refused: impl FnMut(TypeError) -> Result<(), TypeError>,
) -> Result<Vec<Option<Layout>>, TypeError> {
    let mut done: Vec<Option<Layout>> = Vec::with_capacity(types.len());
    let mut room = 2 * MOST_PIECES;
    for (number, of) in types.iter().enumerate() {
        let work = Work { done: &done, rules, most: room.min(MOST_PIECES) };
        let layout = match work.make(of) {
            Ok(layout) => Some(layout),
            Err(fault) => {
                refused(TypeError { number, fault })?;
                None
            }
        };
        room -= layout.as_ref().map_or(0, |layout| layout.pieces.as_slice().len());
        done.push(layout);
    }
    Ok(done)
}

struct Work<'a> {
    done: &'a [Option<Layout>],
    rules: Rules,
    most: usize,
}

impl Work<'_> {
    fn inner(&self, number: u32) -> Result<&Layout, TypeFault> {
        let layout = self.done.get(number as usize).ok_or(TypeFault::Forward(number))?;
        layout.as_ref().ok_or(TypeFault::Part(number))
    }

    fn make(&self, of: &Type) -> Made {
        match of {
            Type::Named { name, size_bytes, extent_bytes } => self.named(name, *size_bytes, *extent_bytes),
            Type::Contiguous { count, of } => self.vector(*count, 1, self.inner(*of)?.bounds.extent(), *of),
            Type::Vector { count, block, stride, of } => self.vector(*count, *block, self.scaled(*stride, *of)?, *of),
            Type::Hvector { count, block, stride_bytes, of } => self.vector(*count, *block, *stride_bytes, *of),
            Type::Indexed { blocks, displacements, of } => {
                same_length(blocks.len(), displacements.len())?;
                self.blocks(blocks.iter().copied().zip(self.all_scaled(displacements, *of)?), *of)
            }
            Type::Hindexed { blocks, displacements_bytes, of } => {
                same_length(blocks.len(), displacements_bytes.len())?;
                self.blocks(blocks.iter().copied().zip(displacements_bytes.iter().copied()), *of)
            }
            Type::IndexedBlock { block, displacements, of } => {
                self.blocks(self.all_scaled(displacements, *of)?.into_iter().map(|at| (*block, at)), *of)
            }
            Type::HindexedBlock { block, displacements_bytes, of } => {
                self.blocks(displacements_bytes.iter().map(|at| (*block, *at)), *of)
            }
            Type::Struct { blocks, displacements_bytes, of } => self.structure(blocks, displacements_bytes, of),
            Type::Subarray { sizes, subsizes, starts, order, of } => {
                self.subarray([sizes, subsizes, starts], *order, *of)
            }
            Type::Darray { ranks, rank, sizes, distributions, arguments, grid, order, of } => {
                let dimensions = sizes.len();
                if distributions.len() != dimensions || arguments.len() != dimensions || grid.len() != dimensions {
                    return Err(TypeFault::Arguments("its lists differ in length"));
                }
                let place = coordinates(*ranks, *rank, grid)?;
                let dims = (0..dimensions)
                    .map(|d| Dimension::new(sizes[d], distributions[d], arguments[d], grid[d], place[d]));
                self.array(dims.collect::<Result<_, _>>()?, *order, *of)
            }
            Type::Resized { lower_bound_bytes, extent_bytes, of } => {
                let inner = self.inner(*of)?;
                let (lower, extent) = (i128::from(*lower_bound_bytes), i128::from(*extent_bytes));
                let bounds = Bounds::fixed(lower, lower + extent, inner.bounds.alignment)?;
                self.layout(self.copy(&inner.pieces)?, bounds)
            }
        }
    }

    fn layout(&self, pieces: Pieces, bounds: Bounds) -> Made {
        Ok(Layout { pieces, bounds })
    }

    fn copy(&self, pieces: &Pieces) -> Result<Pieces, TypeFault> {
        if pieces.as_slice().len() > self.most {
            return Err(TypeFault::TooManyPieces);
        }
        Ok(pieces.clone())
    }

    fn scaled(&self, elements: i64, of: u32) -> Result<i64, TypeFault> {
        elements.checked_mul(self.inner(of)?.bounds.extent()).ok_or(TypeFault::Overflow)
    }

    fn all_scaled(&self, elements: &[i64], of: u32) -> Result<Vec<i64>, TypeFault> {
        elements.iter().map(|at| self.scaled(*at, of)).collect()
    }

    fn named(&self, name: &str, size_bytes: u64, extent_bytes: i64) -> Made {
        let mut pieces = Pieces::default();
        if name == "SHORT_INT" && size_bytes == 6 && extent_bytes == 8 {
            // The only pair with a gap between its parts.
            pieces.push(0, 2, self.most)?;
            pieces.push(4, 4, self.most)?;
        } else {
            pieces.push(0, size_bytes, self.most)?;
        }
        let bounds = Bounds { lower: 0, upper: extent_bytes, set: false, alignment: alignment(name, extent_bytes) };
        self.layout(pieces, bounds)
    }

    fn vector(&self, count: u64, block: u64, stride: i64, of: u32) -> Made {
        let inner = self.inner(of)?;
        let (mut one, mut pieces) = (Pieces::default(), Pieces::default());
        let mut union = Union::new(self.rules);
        if inner.pieces.size_bytes() > 0 && count > 0 && block > 0 {
            one.repeat(inner.pieces.as_slice(), block, inner.bounds.extent(), 0, self.most)?;
            pieces.repeat(one.as_slice(), count, stride, 0, self.most)?;
            let last = i64::try_from(count - 1).map_err(|_| TypeFault::Overflow)?;
            for at in [0, i128::from(last) * i128::from(stride)] {
                union.add(inner.bounds, block, inner.bounds.extent(), at)?;
            }
        }
        self.layout(pieces, union.finish(false)?)
    }

    fn blocks(&self, blocks: impl Iterator<Item = (u64, i64)>, of: u32) -> Made {
        let inner = self.inner(of)?;
        let (mut pieces, mut union) = (Pieces::default(), Union::new(self.rules));
        if inner.pieces.size_bytes() > 0 {
            for (block, at) in blocks {
                pieces.repeat(inner.pieces.as_slice(), block, inner.bounds.extent(), at, self.most)?;
                union.add(inner.bounds, block, inner.bounds.extent(), at.into())?;
            }
        }
        self.layout(pieces, union.finish(false)?)
    }

    fn structure(&self, blocks: &[u64], displacements_bytes: &[i64], of: &[u32]) -> Made {
        same_length(blocks.len(), displacements_bytes.len())?;
        same_length(blocks.len(), of.len())?;
        let (mut pieces, mut union) = (Pieces::default(), Union::new(self.rules));
        for ((block, at), of) in blocks.iter().zip(displacements_bytes).zip(of) {
            let inner = self.inner(*of)?;
            pieces.repeat(inner.pieces.as_slice(), *block, inner.bounds.extent(), *at, self.most)?;
            union.add(inner.bounds, *block, inner.bounds.extent(), (*at).into())?;
        }
        if pieces.size_bytes() == 0 {
            union = Union::new(self.rules);
        }
        let mut used = of.iter().zip(blocks).filter(|(_, block)| **block > 0).map(|(of, _)| of);
        let first = used.next();
        let mixed = used.any(|of| Some(of) != first);
        self.layout(pieces, union.finish(mixed)?)
    }

    fn subarray(&self, [sizes, subsizes, starts]: [&[u64]; 3], order: Order, of: u32) -> Made {
        same_length(sizes.len(), subsizes.len())?;
        same_length(sizes.len(), starts.len())?;
        let mut dims = Vec::with_capacity(sizes.len());
        for ((size, sub), start) in sizes.iter().zip(subsizes).zip(starts) {
            if start.checked_add(*sub).is_none_or(|end| end > *size) {
                return Err(TypeFault::Arguments("a part of the array lies outside the array"));
            }
            dims.push(Dimension { size: *size, block: *sub, start: *start, stride: 0, rounds: 1, last: 0 });
        }
        self.array(dims, order, of)
    }

    /// An array, built from the contiguous dimension on.
    fn array(&self, mut dims: Vec<Dimension>, order: Order, of: u32) -> Made {
        if dims.is_empty() {
            return Err(TypeFault::Arguments("an array needs a dimension"));
        }
        if order == Order::C {
            dims.reverse();
        }
        let inner = self.inner(of)?;
        let mut pieces = self.copy(&inner.pieces)?;
        let mut extent = inner.bounds.extent();
        for dimension in dims {
            pieces = dimension.take(pieces.as_slice(), extent, self.most)?;
            let size = i64::try_from(dimension.size).map_err(|_| TypeFault::Overflow)?;
            extent = extent.checked_mul(size).ok_or(TypeFault::Overflow)?;
        }
        let bounds = Bounds::fixed(0, extent.into(), inner.bounds.alignment)?;
        self.layout(pieces, bounds)
    }
}

/// What of one dimension of an array belongs to the type: `rounds` blocks of `block` elements and one of `last`, from `start` on, `stride` apart.
#[derive(Clone, Copy, Debug)]
struct Dimension {
    size: u64,
    start: u64,
    block: u64,
    stride: u64,
    rounds: u64,
    last: u64,
}

impl Dimension {
    /// The part of a process by the definition of cyclic() in MPI-4.0 section 5.1.4.
    fn new(
        size: u64,
        distribution: Distribution,
        argument: Option<u64>,
        processes: u64,
        rank: u64,
    ) -> Result<Self, TypeFault> {
        let block = match (distribution, argument) {
            (Distribution::None, _) if processes != 1 => {
                return Err(TypeFault::Arguments("an undivided dimension has one process"))
            }
            (Distribution::None, _) => size,
            (Distribution::Block, None) => size.div_ceil(processes),
            (Distribution::Cyclic, None) => 1,
            (_, Some(argument)) => argument,
        };
        if block == 0 && size > 0 {
            return Err(TypeFault::Arguments("a block of an array needs an element"));
        }
        if distribution == Distribution::Block && block.checked_mul(processes).is_some_and(|covered| covered < size) {
            return Err(TypeFault::Arguments("the blocks of an array do not cover it"));
        }
        if processes == 1 || block == 0 {
            return Ok(Self { size, start: 0, block: size, stride: 0, rounds: 1, last: 0 });
        }
        let none = Self { size, start: 0, block: 0, stride: 0, rounds: 0, last: 0 };
        let Some(start) = rank.checked_mul(block).filter(|start| *start < size) else { return Ok(none) };
        let own = size - start;
        match block.checked_mul(processes) {
            Some(stride) => {
                let (rounds, rest) = (own / stride, own % stride);
                let full = rest >= block;
                Ok(Self {
                    size,
                    start,
                    block,
                    stride,
                    rounds: rounds + u64::from(full),
                    last: if full { 0 } else { rest },
                })
            }
            None => Ok(Self { size, start, block: block.min(own), stride: 0, rounds: 1, last: 0 }),
        }
    }

    fn take(self, element: &[Piece], extent: i64, most: usize) -> Result<Pieces, TypeFault> {
        let mut pieces = Pieces::default();
        if element.is_empty() {
            return Ok(pieces);
        }
        let scaled = |elements: u64| i64::try_from(elements).ok()?.checked_mul(extent);
        let mut one = Pieces::default();
        let start = scaled(self.start).ok_or(TypeFault::Overflow)?;
        if self.block > 0 && self.rounds > 0 {
            one.repeat(element, self.block, extent, 0, most)?;
            pieces.repeat(one.as_slice(), self.rounds, scaled(self.stride).ok_or(TypeFault::Overflow)?, start, most)?;
        }
        if self.last > 0 {
            let elements = self.rounds.checked_mul(self.stride).and_then(|before| before.checked_add(self.start));
            let at = elements.and_then(scaled).ok_or(TypeFault::Overflow)?;
            pieces.repeat(element, self.last, extent, at, most)?;
        }
        Ok(pieces)
    }
}

/// Place of a process in the grid: the last dimension counts fastest, in both orders.
fn coordinates(ranks: u64, rank: u64, grid: &[u64]) -> Result<Vec<u64>, TypeFault> {
    let product = grid.iter().try_fold(1_u64, |product, along| product.checked_mul(*along));
    if product != Some(ranks) || rank >= ranks {
        return Err(TypeFault::Arguments("its processes do not fill the grid, or its rank is none of them"));
    }
    let mut place = vec![0; grid.len()];
    let mut rest = rank;
    for (at, along) in place.iter_mut().zip(grid).rev() {
        *at = rest % along;
        rest /= along;
    }
    Ok(place)
}

fn same_length(one: usize, other: usize) -> Result<(), TypeFault> {
    if one == other {
        Ok(())
    } else {
        Err(TypeFault::Arguments("its lists differ in length"))
    }
}
