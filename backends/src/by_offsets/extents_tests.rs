//! Flat lists compared with a byte-by-byte walk of the type map.

use beff_trace::Datatype;
use proptest::prelude::*;

use super::*;

/// A type as the list of its bytes in the order of the type map, and its extent, computed independently.
#[derive(Clone, Debug)]
struct ReferenceTypeMap {
    bytes: Vec<i64>,
    extent: i64,
}

impl ReferenceTypeMap {
    fn at(&self, byte: u64) -> i64 {
        let size = self.bytes.len() as u64;
        (byte / size) as i64 * self.extent + self.bytes[(byte % size) as usize]
    }
}

/// A resized list of blocks of bytes, as types and as reference. Blocks of a file type are in ascending order.
fn types(ascending: bool) -> impl Strategy<Value = (Vec<Datatype>, ReferenceTypeMap)> {
    let blocks = prop::collection::vec((1_u64..9, 0_i64..6), 1..5);
    (blocks, 0_i64..12, -20_i64..20).prop_map(move |(list, tail, shift)| {
        let (mut blocks, mut displacements, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        let mut at = if ascending { 0 } else { shift };
        for (len, gap) in list {
            at += gap;
            blocks.push(len);
            displacements.push(at);
            at += len as i64;
        }
        if !ascending {
            blocks.reverse();
            displacements.reverse();
        }
        for (len, start) in blocks.iter().zip(&displacements) {
            bytes.extend(*start..*start + *len as i64);
        }
        let extent = at - if ascending { 0 } else { shift } + tail;
        let byte = Datatype::Named { name: "BYTE".into(), size_bytes: 1, extent_bytes: 1 };
        let all = Datatype::Hindexed { blocks, displacements_bytes: displacements, of: 0 };
        let resized = Datatype::Resized { lower_bound_bytes: 0, extent_bytes: extent, of: 1 };
        (vec![byte, all, resized], ReferenceTypeMap { bytes, extent })
    })
}

proptest! {
    #[test]
    fn every_byte_is_where_the_type_map_says(
        (file_types, file) in types(true),
        (memory_types, memory) in types(false),
        displacement in 0_i64..50,
        first_byte in 0_u64..60,
        count in 0_u64..12,
        plain in any::<bool>(),
    ) {
        let base = 100;
        // Both in one list of types, the memory type after the file type.
        let mut all = file_types;
        for one in memory_types {
            all.push(match one {
                Datatype::Hindexed { blocks, displacements_bytes, of } => Datatype::Hindexed { blocks, displacements_bytes, of: of + 3 },
                Datatype::Resized { lower_bound_bytes, extent_bytes, of } => Datatype::Resized { lower_bound_bytes, extent_bytes, of: of + 3 },
                other => other,
            });
        }
        let layouts = TypeLayouts::new(&all).unwrap();
        let bytes = count * memory.bytes.len() as u64;
        let file_row = TypedSequence { datatype: (!plain).then_some(2), first_byte, base_bytes: displacement };
        let memory_row = TypedSequence { datatype: Some(5), first_byte: 0, base_bytes: base };
        let before = IoExtent { file_bytes: 7, memory_bytes: 7, len_bytes: 7 };
        let mut pieces = vec![before];
        flatten(&mut pieces, &layouts, file_row, memory_row, bytes, 10_000).unwrap();

        prop_assert_eq!(pieces[0], before);
        let mut byte = 0;
        for piece in &pieces[1..] {
            prop_assert!(piece.len_bytes > 0);
            for n in 0..piece.len_bytes {
                let in_file = if plain { (first_byte + byte) as i64 } else { file.at(first_byte + byte) };
                prop_assert_eq!(piece.file_bytes + n, (displacement + in_file) as u64);
                prop_assert_eq!(piece.memory_bytes + n, (base + memory.at(byte)) as u64);
                byte += 1;
            }
        }
        prop_assert_eq!(byte, bytes);
        for two in pieces[1..].windows(2) {
            let joined = two[0].file_bytes + two[0].len_bytes == two[1].file_bytes
                && two[0].memory_bytes + two[0].len_bytes == two[1].memory_bytes;
            prop_assert!(!joined, "adjacent extents not merged: {:?}", two);
        }
    }
}

#[test]
fn extents_outside_are_refused_and_leave_nothing() {
    let types = [
        Datatype::Named { name: "BYTE".into(), size_bytes: 1, extent_bytes: 1 },
        Datatype::Hindexed { blocks: vec![4, 4], displacements_bytes: vec![8, -8], of: 0 },
    ];
    let layouts = TypeLayouts::new(&types).unwrap();
    let row = |of, base_bytes| TypedSequence { datatype: of, first_byte: 0, base_bytes };
    let mut pieces = Vec::new();
    let mut flat =
        |file, memory, bytes, area| flatten(&mut pieces, &layouts, file, memory, bytes, area).map(|()| pieces.len());
    assert_eq!(flat(row(None, 0), row(Some(1), 8), 8, 20), Ok(2));
    assert_eq!(flat(row(None, 0), row(Some(1), 8), 8, 19), Err(ExtentError::Memory));
    assert_eq!(flat(row(None, 0), row(Some(1), 7), 8, 20), Err(ExtentError::Memory), "before the area");
    assert_eq!(flat(row(Some(1), 0), row(None, 0), 8, 20), Err(ExtentError::File), "before the file");
    assert_eq!(flat(row(None, i64::MAX - 4), row(None, 0), 8, 20), Err(ExtentError::File));
    assert_eq!(flat(row(None, 0), row(None, i64::MAX), 1, 20), Err(ExtentError::Memory));
    assert_eq!(flat(row(None, 0), row(None, 0), 0, 0), Ok(2), "no bytes, no extent");
    assert_eq!(pieces.len(), 2);
}

#[test]
fn spans_and_bits() {
    let piece = |file_bytes, memory_bytes, len_bytes| IoExtent { file_bytes, memory_bytes, len_bytes };
    let pieces = [piece(4096, 8192, 512), piece(8192, 512, 4096)];
    assert_eq!(memory_span(&pieces), 512..8704);
    assert_eq!(memory_span(&[]), 0..0);
    assert_eq!(alignment_bits(&pieces) & 511, 0);
    assert_ne!(alignment_bits(&pieces) & 1023, 0);
    assert_eq!(alignment_bits(&[]), 0);
}
