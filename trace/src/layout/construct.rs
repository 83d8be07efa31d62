//! Type constructors.

use super::bounds::{alignment, BoundMarker, BoundRules, BoundsUnion, ExtentBounds};
use super::segments::{LayoutExcess, SegmentList, TypeSegment};
use crate::types::{ArrayOrder, Datatype, Distribution};

/// Maximum number of segments of one type; all types together may have twice as many.
pub const MAX_SEGMENTS: usize = 4 << 20;

/// A type whose layout cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("type {number}: {fault}")]
pub struct TypeError {
    /// Number in the dictionary.
    pub number: usize,
    /// Cause.
    pub fault: TypeFault,
}

/// Why the layout of a type cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TypeFault {
    /// It refers to itself or to a later type.
    #[error("it refers to type {0}, which is not defined before it")]
    ForwardReference(u32),
    /// The layout of an inner type cannot be computed.
    #[error("it refers to type {0}, which has no layout")]
    InnerType(u32),
    /// Its size, bounds or displacements exceed 63 bits.
    #[error("it exceeds 63 bits")]
    Overflow,
    /// It has too many segments.
    #[error("it has more than {MAX_SEGMENTS} segments, or all types together have twice as many")]
    TooManySegments,
    /// Its arguments are inconsistent.
    #[error("{0}")]
    Arguments(&'static str),
}

impl From<LayoutExcess> for TypeFault {
    fn from(excess: LayoutExcess) -> Self {
        match excess {
            LayoutExcess::Bits => Self::Overflow,
            LayoutExcess::Segments => Self::TooManySegments,
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct TypeLayout {
    pub(super) segments: SegmentList,
    pub(super) bounds: ExtentBounds,
}

type LayoutResult = Result<TypeLayout, TypeFault>;

/// Computes all layouts; `refused` receives each error and may stop the computation.
pub(super) fn build_all(
    types: &[Datatype],
    rules: BoundRules,
    mut refused: impl FnMut(TypeError) -> Result<(), TypeError>,
) -> Result<Vec<Option<TypeLayout>>, TypeError> {
    let mut done: Vec<Option<TypeLayout>> = Vec::with_capacity(types.len());
    let mut remaining = 2 * MAX_SEGMENTS;
    for (number, of) in types.iter().enumerate() {
        let work = LayoutBuilder { layouts: &done, rules, max_segments: remaining.min(MAX_SEGMENTS) };
        let layout = match work.build(of) {
            Ok(layout) => Some(layout),
            Err(fault) => {
                refused(TypeError { number, fault })?;
                None
            }
        };
        remaining -= layout.as_ref().map_or(0, |layout| layout.segments.as_slice().len());
        done.push(layout);
    }
    Ok(done)
}

struct LayoutBuilder<'a> {
    layouts: &'a [Option<TypeLayout>],
    rules: BoundRules,
    max_segments: usize,
}

impl LayoutBuilder<'_> {
    fn inner(&self, number: u32) -> Result<&TypeLayout, TypeFault> {
        let layout = self.layouts.get(number as usize).ok_or(TypeFault::ForwardReference(number))?;
        layout.as_ref().ok_or(TypeFault::InnerType(number))
    }

    fn build(&self, of: &Datatype) -> LayoutResult {
        match of {
            Datatype::Named { name, size_bytes, extent_bytes } => self.named(name, *size_bytes, *extent_bytes),
            Datatype::Contiguous { count, of } => self.vector(*count, 1, self.inner(*of)?.bounds.extent(), *of),
            Datatype::Vector { count, block, stride, of } => {
                self.vector(*count, *block, self.scaled(*stride, *of)?, *of)
            }
            Datatype::Hvector { count, block, stride_bytes, of } => self.vector(*count, *block, *stride_bytes, *of),
            Datatype::Indexed { blocks, displacements, of } => {
                check_same_length(blocks.len(), displacements.len())?;
                self.blocks(blocks.iter().copied().zip(self.all_scaled(displacements, *of)?), *of)
            }
            Datatype::Hindexed { blocks, displacements_bytes, of } => {
                check_same_length(blocks.len(), displacements_bytes.len())?;
                self.blocks(blocks.iter().copied().zip(displacements_bytes.iter().copied()), *of)
            }
            Datatype::IndexedBlock { block, displacements, of } => {
                self.blocks(self.all_scaled(displacements, *of)?.into_iter().map(|at| (*block, at)), *of)
            }
            Datatype::HindexedBlock { block, displacements_bytes, of } => {
                self.blocks(displacements_bytes.iter().map(|at| (*block, *at)), *of)
            }
            Datatype::Struct { blocks, displacements_bytes, of } => self.structure(blocks, displacements_bytes, of),
            Datatype::Subarray { sizes, subsizes, starts, order, of } => {
                self.subarray([sizes, subsizes, starts], *order, *of)
            }
            Datatype::Darray { ranks, rank, sizes, distributions, arguments, grid, order, of } => {
                let dimensions = sizes.len();
                if distributions.len() != dimensions || arguments.len() != dimensions || grid.len() != dimensions {
                    return Err(TypeFault::Arguments("its lists differ in length"));
                }
                let place = coordinates(*ranks, *rank, grid)?;
                let dims = (0..dimensions)
                    .map(|d| ArrayDimension::new(sizes[d], distributions[d], arguments[d], grid[d], place[d]));
                self.array(dims.collect::<Result<_, _>>()?, *order, *of)
            }
            Datatype::Resized { lower_bound_bytes, extent_bytes, of } => {
                let inner = self.inner(*of)?;
                let (lower, extent) = (i128::from(*lower_bound_bytes), i128::from(*extent_bytes));
                let bounds = ExtentBounds::explicit(lower, lower + extent, inner.bounds.alignment)?;
                self.layout(self.copy(&inner.segments)?, bounds)
            }
        }
    }

    fn layout(&self, pieces: SegmentList, bounds: ExtentBounds) -> LayoutResult {
        Ok(TypeLayout { segments: pieces, bounds })
    }

    fn copy(&self, pieces: &SegmentList) -> Result<SegmentList, TypeFault> {
        if pieces.as_slice().len() > self.max_segments {
            return Err(TypeFault::TooManySegments);
        }
        Ok(pieces.clone())
    }

    fn scaled(&self, elements: i64, of: u32) -> Result<i64, TypeFault> {
        elements.checked_mul(self.inner(of)?.bounds.extent()).ok_or(TypeFault::Overflow)
    }

    fn all_scaled(&self, elements: &[i64], of: u32) -> Result<Vec<i64>, TypeFault> {
        elements.iter().map(|at| self.scaled(*at, of)).collect()
    }

    fn named(&self, name: &str, size_bytes: u64, extent_bytes: i64) -> LayoutResult {
        let mut pieces = SegmentList::default();
        if name == "SHORT_INT" && size_bytes == 6 && extent_bytes == 8 {
            // The only pair with a gap between its members.
            pieces.push(0, 2, self.max_segments)?;
            pieces.push(4, 4, self.max_segments)?;
        } else {
            pieces.push(0, size_bytes, self.max_segments)?;
        }
        let bounds = ExtentBounds {
            lower: 0,
            upper: extent_bytes,
            is_explicit: false,
            alignment: alignment(name, extent_bytes),
            marker: BoundMarker::by_name(name),
        };
        self.layout(pieces, bounds)
    }

    fn vector(&self, count: u64, block: u64, stride: i64, of: u32) -> LayoutResult {
        let inner = self.inner(of)?;
        let (mut one, mut pieces) = (SegmentList::default(), SegmentList::default());
        let mut union = BoundsUnion::new(self.rules);
        if inner.segments.size_bytes() > 0 && count > 0 && block > 0 {
            one.repeat(inner.segments.as_slice(), block, inner.bounds.extent(), 0, self.max_segments)?;
            pieces.repeat(one.as_slice(), count, stride, 0, self.max_segments)?;
            let last = i64::try_from(count - 1).map_err(|_| TypeFault::Overflow)?;
            for at in [0, i128::from(last) * i128::from(stride)] {
                union.add(inner.bounds, block, inner.bounds.extent(), at)?;
            }
        }
        self.layout(pieces, union.finish(false)?)
    }

    fn blocks(&self, blocks: impl Iterator<Item = (u64, i64)>, of: u32) -> LayoutResult {
        let inner = self.inner(of)?;
        let (mut pieces, mut union) = (SegmentList::default(), BoundsUnion::new(self.rules));
        if inner.segments.size_bytes() > 0 {
            for (block, at) in blocks {
                pieces.repeat(inner.segments.as_slice(), block, inner.bounds.extent(), at, self.max_segments)?;
                union.add(inner.bounds, block, inner.bounds.extent(), at.into())?;
            }
        }
        self.layout(pieces, union.finish(false)?)
    }

    fn structure(&self, blocks: &[u64], displacements_bytes: &[i64], of: &[u32]) -> LayoutResult {
        check_same_length(blocks.len(), displacements_bytes.len())?;
        check_same_length(blocks.len(), of.len())?;
        let (mut pieces, mut union) = (SegmentList::default(), BoundsUnion::new(self.rules));
        for ((block, at), of) in blocks.iter().zip(displacements_bytes).zip(of) {
            let inner = self.inner(*of)?;
            pieces.repeat(inner.segments.as_slice(), *block, inner.bounds.extent(), *at, self.max_segments)?;
            union.add(inner.bounds, *block, inner.bounds.extent(), (*at).into())?;
        }
        // Libraries give a struct without data and without markers no extent.
        let is_marked = of.iter().any(|of| self.inner(*of).is_ok_and(|inner| inner.bounds.marker.is_some()));
        if pieces.size_bytes() == 0 && !is_marked {
            union = BoundsUnion::new(self.rules);
        }
        let mut used = of.iter().zip(blocks).filter(|(_, block)| **block > 0).map(|(of, _)| of);
        let first = used.next();
        let mixed = used.any(|of| Some(of) != first);
        self.layout(pieces, union.finish(mixed)?)
    }

    fn subarray(&self, [sizes, subsizes, starts]: [&[u64]; 3], order: ArrayOrder, of: u32) -> LayoutResult {
        check_same_length(sizes.len(), subsizes.len())?;
        check_same_length(sizes.len(), starts.len())?;
        let mut dims = Vec::with_capacity(sizes.len());
        for ((size, sub), start) in sizes.iter().zip(subsizes).zip(starts) {
            if start.checked_add(*sub).is_none_or(|end| end > *size) {
                return Err(TypeFault::Arguments("the subarray exceeds the array"));
            }
            dims.push(ArrayDimension { size: *size, block: *sub, start: *start, stride: 0, rounds: 1, last: 0 });
        }
        self.array(dims, order, of)
    }

    /// Builds an array, from the contiguous dimension on.
    fn array(&self, mut dims: Vec<ArrayDimension>, order: ArrayOrder, of: u32) -> LayoutResult {
        if dims.is_empty() {
            return Err(TypeFault::Arguments("an array needs at least one dimension"));
        }
        if order == ArrayOrder::C {
            dims.reverse();
        }
        let inner = self.inner(of)?;
        let mut pieces = self.copy(&inner.segments)?;
        let mut extent = inner.bounds.extent();
        for dimension in dims {
            pieces = dimension.apply(pieces.as_slice(), extent, self.max_segments)?;
            let size = i64::try_from(dimension.size).map_err(|_| TypeFault::Overflow)?;
            extent = extent.checked_mul(size).ok_or(TypeFault::Overflow)?;
        }
        let bounds = ExtentBounds::explicit(0, extent.into(), inner.bounds.alignment)?;
        self.layout(pieces, bounds)
    }
}

/// Share of the type in one array dimension: `rounds` blocks of `block` elements and one of `last`, from `start` on, at distance `stride`.
#[derive(Clone, Copy, Debug)]
struct ArrayDimension {
    size: u64,
    start: u64,
    block: u64,
    stride: u64,
    rounds: u64,
    last: u64,
}

impl ArrayDimension {
    /// Share of a process by the definition of cyclic() in MPI-4.0 section 5.1.4.
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
            return Err(TypeFault::Arguments("a block of an array needs at least one element"));
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

    fn apply(self, element: &[TypeSegment], extent: i64, most: usize) -> Result<SegmentList, TypeFault> {
        let mut pieces = SegmentList::default();
        if element.is_empty() {
            return Ok(pieces);
        }
        let scaled = |elements: u64| i64::try_from(elements).ok()?.checked_mul(extent);
        let mut one = SegmentList::default();
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

/// Coordinates of a process in the grid: the last dimension varies fastest, in both orders.
fn coordinates(ranks: u64, rank: u64, grid: &[u64]) -> Result<Vec<u64>, TypeFault> {
    let product = grid.iter().try_fold(1_u64, |product, along| product.checked_mul(*along));
    if product != Some(ranks) || rank >= ranks {
        return Err(TypeFault::Arguments("its processes do not fill the grid, or its rank is out of range"));
    }
    let mut place = vec![0; grid.len()];
    let mut rest = rank;
    for (at, along) in place.iter_mut().zip(grid).rev() {
        *at = rest % along;
        rest /= along;
    }
    Ok(place)
}

fn check_same_length(one: usize, other: usize) -> Result<(), TypeFault> {
    if one == other {
        Ok(())
    } else {
        Err(TypeFault::Arguments("its lists differ in length"))
    }
}
