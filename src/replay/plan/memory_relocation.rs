//! Memory of datatypes with gaps of many bytes, such as absolute addresses: the heap and the stack of a process lie some 40 TiB apart. The
//! replay uses the same datatypes without these gaps. Each contiguous part is relocated as a whole and keeps its offset in a page.

use std::collections::HashMap;

use beff_trace::layout::TypeLayouts;
use beff_trace::{Call, DataOrigin, Datatype, OriginRange};

use super::landing::ALIGN_BYTES;

/// Longer gaps between the data of a datatype, and between them and the buffer address, are removed.
const MAX_GAP_BYTES: u64 = 64 << 20;
/// Distance of parts that were further apart.
const GAP_BYTES: i64 = 64 << 10;

/// Memory that is relocated as a whole: `begin..end` to `begin + shift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    begin: i64,
    end: i64,
    shift: i64,
}

/// Relocated memory of the datatypes of a profile.
#[derive(Clone, Debug, Default)]
pub struct MemoryRelocation {
    /// Datatype in memory by the recorded one.
    types: HashMap<u32, u32>,
    /// Distinct parts of all datatypes, in order of their begin.
    parts: Vec<Part>,
    longest_bytes: u64,
}

impl MemoryRelocation {
    /// Appends the relocated datatypes to those of a profile.
    #[must_use]
    pub fn add_types(types: &mut Vec<Datatype>, layouts: &TypeLayouts) -> Self {
        let mut all = Self::default();
        let mut byte = None;
        for number in 0..layouts.len() as u32 {
            if !layouts.is_known(number) {
                continue;
            }
            let parts = relocated_parts(layouts, number);
            if parts.iter().all(|part| part.shift == 0) {
                continue;
            }
            let byte = *byte.get_or_insert_with(|| append(types, byte_type()));
            let relocated = relocated_type(types, layouts, number, &parts, byte);
            let extent_bytes = relocated_extent(layouts, number, &parts);
            let relocated = append(types, relocated);
            let sized = append(types, Datatype::Resized { lower_bound_bytes: 0, extent_bytes, of: relocated });
            all.types.insert(number, sized);
            all.parts.extend(parts);
        }
        all.parts.sort_unstable();
        all.parts.dedup();
        all.longest_bytes = all.parts.iter().map(|part| part.end.abs_diff(part.begin)).max().unwrap_or(0);
        all
    }

    /// True if no datatype has a gap that is too long.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// Relocates the memory of a call, and that of the calls whose data it reads.
    pub fn relocate(&self, call: &mut Call) {
        if self.types.is_empty() {
            return;
        }
        if call.function.direction().is_some() {
            call.datatype = call.datatype.map(|number| self.types.get(&number).copied().unwrap_or(number));
        }
        call.from.iter_mut().for_each(|origin| self.relocate_origin(origin));
    }

    /// The datatype of the writer is not known here: if its bytes have several positions, their content is unknown.
    fn relocate_origin(&self, origin: &mut OriginRange) {
        let DataOrigin::Call { memory, .. } = &mut origin.origin else { return };
        if memory.unsigned_abs() <= MAX_GAP_BYTES {
            return;
        }
        let last = self.parts.partition_point(|part| part.begin <= *memory);
        let near = self.parts[..last].iter().rev().take_while(|part| memory.abs_diff(part.begin) <= self.longest_bytes);
        let mut shifts = near.filter(|part| part.end.abs_diff(*memory) >= origin.bytes && part.end > *memory);
        match shifts.next().map(|first| first.shift) {
            Some(shift) if shifts.all(|other| other.shift == shift) => *memory += shift,
            Some(_) => origin.origin = DataOrigin::Unknown,
            // Of a datatype that is not relocated.
            None => {}
        }
    }
}

fn append(types: &mut Vec<Datatype>, one: Datatype) -> u32 {
    types.push(one);
    (types.len() - 1) as u32
}

fn byte_type() -> Datatype {
    Datatype::Named { name: "BYTE".into(), size_bytes: 1, extent_bytes: 1 }
}

/// Contiguous parts of a datatype with their new positions; nothing is shifted if no gap is too long.
fn relocated_parts(layouts: &TypeLayouts, number: u32) -> Vec<Part> {
    let span = layouts.true_span(number);
    if span.start.unsigned_abs().max(span.end.unsigned_abs()) <= MAX_GAP_BYTES {
        return Vec::new();
    }
    let mut ranges: Vec<(i64, i64)> = layouts
        .segments(number)
        .iter()
        .map(|piece| (piece.displacement_bytes, piece.displacement_bytes.saturating_add_unsigned(piece.bytes)))
        .collect();
    ranges.sort_unstable();
    let mut parts: Vec<Part> = Vec::new();
    for (begin, end) in ranges {
        match parts.last_mut().filter(|last| begin.saturating_sub(last.end) <= MAX_GAP_BYTES as i64) {
            Some(last) => last.end = last.end.max(end),
            None => parts.push(Part { begin, end, shift: 0 }),
        }
    }
    // The part at the buffer address stays; the others follow it.
    let is_near = |part: &Part| part.begin <= MAX_GAP_BYTES as i64 && part.end >= -(MAX_GAP_BYTES as i64);
    let mut next = parts.iter().find(|part| is_near(part)).map_or(0, |part| part.end.max(0).saturating_add(GAP_BYTES));
    for part in parts.iter_mut().filter(|part| !is_near(part)) {
        let offset = part.begin.rem_euclid(ALIGN_BYTES as i64);
        let at = next.saturating_add(ALIGN_BYTES as i64 - 1) / ALIGN_BYTES as i64 * ALIGN_BYTES as i64 + offset;
        part.shift = at.saturating_sub(part.begin);
        next = at.saturating_add(part.end.saturating_sub(part.begin)).saturating_add(GAP_BYTES);
    }
    parts
}

fn shift_of(parts: &[Part], displacement: i64) -> i64 {
    let last = parts.partition_point(|part| part.begin <= displacement);
    last.checked_sub(1).map_or(0, |place| parts[place].shift)
}

/// A repeated element may be close to the previous one; an extent that spans a removed gap has no meaning.
fn relocated_extent(layouts: &TypeLayouts, number: u32, parts: &[Part]) -> i64 {
    let extent = layouts.extent(number);
    if extent.unsigned_abs() <= MAX_GAP_BYTES {
        return extent;
    }
    let end = parts.iter().map(|part| part.end.saturating_add(part.shift)).max().unwrap_or(0);
    end.max(1)
}

/// The relocated datatype. A constructor by addresses is kept with its components, so that representations can convert them.
fn relocated_type(types: &[Datatype], layouts: &TypeLayouts, number: u32, parts: &[Part], byte: u32) -> Datatype {
    let moved = |at: &i64| at.saturating_add(shift_of(parts, *at));
    let is_near = |of: &u32| {
        let span = layouts.true_span(*of);
        span.start.unsigned_abs().max(span.end.unsigned_abs()) <= MAX_GAP_BYTES && span.start >= 0
    };
    match &types[number as usize] {
        Datatype::Struct { blocks, displacements_bytes, of } if of.iter().all(is_near) => Datatype::Struct {
            blocks: blocks.clone(),
            displacements_bytes: displacements_bytes.iter().map(moved).collect(),
            of: of.clone(),
        },
        Datatype::Hindexed { blocks, displacements_bytes, of } if is_near(of) => Datatype::Hindexed {
            blocks: blocks.clone(),
            displacements_bytes: displacements_bytes.iter().map(moved).collect(),
            of: *of,
        },
        Datatype::HindexedBlock { block, displacements_bytes, of } if is_near(of) => Datatype::HindexedBlock {
            block: *block,
            displacements_bytes: displacements_bytes.iter().map(moved).collect(),
            of: *of,
        },
        _ => Datatype::Hindexed {
            blocks: layouts.segments(number).iter().map(|piece| piece.bytes).collect(),
            displacements_bytes: layouts
                .segments(number)
                .iter()
                .map(|piece| moved(&piece.displacement_bytes))
                .collect(),
            of: byte,
        },
    }
}

#[cfg(test)]
mod tests {
    use beff_trace::Function;

    use super::*;

    const HEAP: i64 = 0x5555_5555_6018;
    const STACK: i64 = 0x7fff_ffff_e010;

    fn int() -> Datatype {
        Datatype::Named { name: "INT".into(), size_bytes: 4, extent_bytes: 4 }
    }

    fn relocated(types: &[Datatype]) -> (MemoryRelocation, TypeLayouts) {
        let mut types = types.to_vec();
        let recorded = TypeLayouts::new(&types).unwrap();
        let relocation = MemoryRelocation::add_types(&mut types, &recorded);
        (relocation, TypeLayouts::new(&types).unwrap())
    }

    fn segments(layouts: &TypeLayouts, number: u32) -> Vec<(i64, u64)> {
        layouts.segments(number).iter().map(|piece| (piece.displacement_bytes, piece.bytes)).collect()
    }

    /// Structures, lists of addresses, a list within a structure: all in the order of the data.
    #[test]
    fn parts_are_close_together_and_keep_their_order_and_page_offset() {
        let places = vec![STACK, HEAP, HEAP + 100];
        let types = [
            int(),
            Datatype::Struct { blocks: vec![2, 3, 1], displacements_bytes: places.clone(), of: vec![0, 0, 0] },
            Datatype::HindexedBlock { block: 2, displacements_bytes: places.clone(), of: 0 },
            Datatype::Hindexed { blocks: vec![2, 3, 1], displacements_bytes: places, of: 0 },
            Datatype::Struct { blocks: vec![1], displacements_bytes: vec![0], of: vec![1] },
            Datatype::Contiguous { count: 1, of: 4 },
            Datatype::Vector { count: 3, block: 1, stride: 1000, of: 0 },
        ];
        let (relocation, layouts) = relocated(&types);
        let [heap, stack] = [HEAP, STACK].map(|at| at % 4096);
        // The stack comes after the heap, 64 KiB behind it, at its offset in a page.
        let stack = ((heap + 104 + GAP_BYTES + 4095) / 4096) * 4096 + stack;
        for (number, bytes) in [(1, [8, 12, 4]), (2, [8, 8, 8]), (3, [8, 12, 4]), (4, [8, 12, 4]), (5, [8, 12, 4])] {
            let new = relocation.types[&number];
            let expected = [(stack, bytes[0]), (heap, bytes[1]), (heap + 100, bytes[2])];
            assert_eq!(segments(&layouts, new)[0].0 % 4096, stack % 4096, "{number}");
            assert_eq!(segments(&layouts, new)[1..], expected[1..], "{number}");
            assert_eq!((layouts.size(new), layouts.size(number)), (24, 24));
            assert!(layouts.true_span(new).end < 200_000 && layouts.extent(new) < 200_000);
        }
        assert!(!relocation.types.contains_key(&0) && !relocation.types.contains_key(&6), "they have no long gap");
    }

    #[test]
    fn memory_at_the_buffer_address_stays_and_below_it_is_relocated_too() {
        let far = 3 << 40;
        let types = [
            int(),
            Datatype::Struct { blocks: vec![1; 4], displacements_bytes: vec![-8, 8, far, -far], of: vec![0; 4] },
        ];
        let (relocation, layouts) = relocated(&types);
        let new = segments(&layouts, relocation.types[&1]);
        assert_eq!(new[..2], [(-8, 4), (8, 4)]);
        assert!(new[2..].iter().all(|(at, _)| *at > 12 && at % 4096 == 0 && *at < 300_000), "{new:?}");
        assert_ne!(new[2], new[3]);
    }

    #[test]
    fn origins_follow_their_writer_or_are_unknown() {
        let one = |places: Vec<i64>| Datatype::HindexedBlock { block: 4, displacements_bytes: places, of: 0 };
        let (relocation, _) = relocated(&[
            int(),
            one(vec![HEAP, STACK]),
            one(vec![HEAP]),
            one(vec![HEAP - (1 << 35), HEAP - (1 << 34), STACK]),
        ]);
        let of = |memory| {
            let origin = DataOrigin::Call { rank: 1, begin_ns: 5, memory };
            let mut call = Call::new(Function::ReadAt, 10, 11);
            (call.datatype, call.from) = (Some(1), vec![OriginRange { bytes: 8, origin }]);
            relocation.relocate(&mut call);
            assert_eq!(call.datatype, relocation.types.get(&1).copied());
            match call.from[0].origin {
                DataOrigin::Call { memory, .. } => Some(memory),
                _ => None,
            }
        };
        assert_eq!(of(HEAP + 8), Some(HEAP % 4096 + 8), "equal in both datatypes");
        assert_eq!(of(STACK), None, "two datatypes have it at different places");
        assert_eq!((of(40), of(1 << 50)), (Some(40), Some(1 << 50)));
    }
}
