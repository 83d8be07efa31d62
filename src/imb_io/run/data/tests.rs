use proptest::prelude::*;

use super::*;
use crate::imb_io::plan::tiles::sample_portion;
use crate::imb_io::run::verify_result::VerifyResult;

fn stream(data: &RowData, position: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    data.fill(position, &mut bytes);
    bytes
}

/// The definition, byte by byte.
fn byte(data: &RowData, offset: u64) -> u8 {
    let q = offset % data.period_bytes;
    data.stream.word_at(q / 8).to_le_bytes()[(q % 8) as usize]
}

/// Records of all ranks and steps, as `(file offset, bytes)`.
fn records(data: &RowData, ranks: u64, steps: u64) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    for step in 0..steps {
        for rank in 0..ranks {
            let part = sample_portion(data.sample_bytes(), ranks, rank).unwrap();
            if part.length_bytes > 0 {
                let offset = step * data.sample_bytes() + part.offset_bytes;
                all.push((offset, stream(data, offset, part.length_bytes as usize)));
            }
        }
    }
    all
}

/// Shuffles the records.
fn permuted(mut records: Vec<(u64, Vec<u8>)>, seed: u64) -> Vec<(u64, Vec<u8>)> {
    records.sort_by_key(|(offset, _)| mix(seed.wrapping_add(*offset)));
    records
}

fn joined(records: &[(u64, Vec<u8>)]) -> Vec<u8> {
    records.iter().flat_map(|(_, bytes)| bytes.clone()).collect()
}

fn check(data: &RowData, ranks: u64, steps: u64, file: &[u8]) -> VerifyResult {
    data.check_records(file, &mut ExpectedRecords::new(data, ranks, steps).unwrap())
}

#[test]
fn every_argument_is_another_stream() {
    let word = |seed, row, owner| stream(&RowData::new(seed, row, owner, 64, 10), 0, 8);
    let all = [
        word(1, 2, None),
        word(2, 2, None),
        word(1, 3, None),
        word(1, 2, Some(0)),
        word(1, 2, Some(1)),
        word(1, 3, Some(0)),
    ];
    for (n, one) in all.iter().enumerate() {
        assert!(all.iter().skip(n + 1).all(|other| other != one), "{n}");
    }
}

#[test]
fn empty_data_has_no_mismatch() {
    for (sample_bytes, steps) in [(0, 5), (5, 0), (0, 0)] {
        let data = RowData::new(1, 1, None, sample_bytes, steps);
        assert_eq!(data.compare(&[], 0), StreamMismatch::default());
        assert_eq!((data.position(77), data.find(&[0; 64])), (77, None));
        data.fill(3, &mut [0; 20]);
        assert_eq!(check(&data, 3, 0, &[]), VerifyResult::default());
    }
    assert!(ExpectedRecords::new(&RowData::new(1, 1, None, 4, 1), 0, 1).is_err());
}

#[test]
fn wrong_data_is_named() {
    let data = RowData::new(5, 20, Some(3), 4096, 16);
    let at = 4096 * 3 + 11;
    let named = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = stream(&data, at, 100);
        change(&mut bytes);
        let first = data.compare(&bytes, at).first.unwrap().0;
        data.diagnose(&bytes[first..], at + first as u64)
    };
    assert_eq!(named(&|b| b[9] ^= 4), "one bit flipped");
    assert_eq!(named(&|b| b[20..].fill(0)), "hole (zeros)");
    assert_eq!(named(&|b| b[20..24].fill(0)), "hole (zeros)");
    assert!(named(&|b| b[20..].fill(POISON_BYTE)).starts_with("never delivered"));
    assert!(named(&|b| b[97..].fill(POISON_BYTE)).starts_with("never delivered"));
    let moved = |b: &mut [u8]| data.fill(at - 4096, b);
    assert_eq!(named(&moved), format!("data of offset {} (-4096 bytes)", at - 4096));
    for before in [1, 8] {
        let old = RowData::new(5, 20 - before, Some(3), 1 << 20, 4);
        let named = named(&|b| old.fill(70_001, b));
        assert!(named.contains(&format!("an earlier file ({before} before), offset 70001")), "{named}");
    }
    let named_other = named(&|b| RowData::new(5, 20, Some(2), 4092, 16).fill(13, b));
    assert_eq!(named_other, "data of the file of 2, offset 13");
    assert!(named(&|b| b[30..50].copy_from_slice(b"and now something el")).starts_with("unknown data"));
    // Too short to be identified.
    assert!(data.diagnose(&[1, 2, 3], 4096).starts_with("unknown data"));
    assert_eq!(data.diagnose(&[0], 4096), "hole (zeros)");
}

#[test]
fn a_damaged_record_is_counted_and_named() {
    let data = RowData::new(5, 1, None, 300, 8);
    let all = permuted(records(&data, 3, 8), 4);
    let file = joined(&all);
    assert_eq!(check(&data, 3, 8, &file), VerifyResult { bytes_checked: 2400, ..VerifyResult::default() });
    // The fifth record begins at 400; a flipped bit is detected anywhere, also in its first word.
    for at in [400, 403, 415, 416, 450, 499] {
        let mut file = file.clone();
        file[at] ^= 1;
        let arrival = check(&data, 3, 8, &file);
        let first = arrival.first_wrong.unwrap();
        let expected = (Some(at as u64), Some(file[at] ^ 1), Some(file[at]), "one bit flipped");
        assert_eq!((first.offset_bytes, first.expected, first.actual, &first.diagnosis[..]), expected);
        assert_eq!(arrival.bytes_wrong, 1);
    }
    let named = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = file.clone();
        change(&mut file);
        let arrival = check(&data, 3, 8, &file);
        let first = arrival.first_wrong.unwrap();
        (arrival.bytes_wrong, first.offset_bytes.unwrap(), first.diagnosis)
    };
    assert_eq!(named(&|f| f[400..600].fill(0)), (200, 400, "hole (zeros)".into()));
    let (wrong, at, text) = named(&|f| f.copy_within(0..100, 400));
    assert_eq!((wrong, at), (100, 400));
    assert!(text.contains(&format!("offset {}:", all[0].0)) && text.contains("second time"), "{text}");
    let named_end = named(&|f| f.truncate(2350));
    assert_eq!(named_end, (50, 2350, "the file ends 50 bytes early".into()));
    let (wrong, at, text) = named(&|f| f.extend_from_within(0..100));
    assert_eq!((wrong, at), (100, 2400), "{text}");
    // A record lacks its first half: the records after it are identified.
    let (wrong, at, text) = named(&|f| drop(f.drain(400..450)));
    assert_eq!((wrong, at), (100, 400));
    assert_eq!(text, format!("data of offset {}, not the beginning of a record", all[4].0 + 50));
    let old = RowData::new(5, 0, None, 300, 8);
    let (wrong, at, text) = named(&|f| old.fill(0, &mut f[400..700]));
    assert_eq!((wrong, at, &text[..]), (300, 400, "data of an earlier file (1 before), offset 0"));
}

#[test]
fn short_portions_are_compared_by_value() {
    // Portions of 4, 4 and 1 byte.
    let data = RowData::new(5, 1, None, 9, 6);
    assert!(ExpectedRecords::new(&data, 3, 6).unwrap().is_by_value());
    assert!(!ExpectedRecords::new(&RowData::new(5, 1, None, 64, 6), 4, 6).unwrap().is_by_value());
    // Ranks without a portion do not count.
    for (x, ranks, long) in [(9, 3, false), (64, 4, true), (60, 4, false), (16, 1, true), (24, 5, false), (0, 5, true)]
    {
        let expected = ExpectedRecords::new(&RowData::new(5, 1, None, x, 8), ranks, 8).unwrap();
        assert_eq!(expected.is_by_value(), !long, "{x} {ranks}");
    }
    let file = joined(&permuted(records(&data, 3, 6), 8));
    assert_eq!(check(&data, 3, 6, &file).bytes_wrong, 0);
    let mut flipped = file.clone();
    flipped[30] ^= 8;
    let arrival = check(&data, 3, 6, &flipped);
    assert_eq!((arrival.bytes_wrong, arrival.first_wrong.unwrap().offset_bytes), (1, None));
    assert_eq!(check(&data, 3, 6, &file[..50]).bytes_wrong, 4);
    assert_eq!(check(&data, 3, 6, &[&file[..], &[1, 1]].concat()).bytes_wrong, 2);
}

/// Portions of 20, 16 and 16 bytes: one that begins between two words has a single whole word.
#[test]
fn a_record_that_has_lost_its_only_word_is_unknown_as_a_whole() {
    let data = RowData::new(7, 4, None, 52, 2);
    let mut all = records(&data, 3, 2);
    // Moves the second record, from 20 to 36 of the stream, to the end, so that no other record follows.
    let moved = all.remove(1);
    all.push(moved);
    let file = joined(&all);
    // Its whole word is from 24 to 32; outside it, and in other records, one byte is wrong.
    for (at, wrong) in [(88 + 6, 16), (88 + 2, 1), (88 + 13, 1), (2, 1)] {
        let mut flipped = file.clone();
        flipped[at] ^= 4;
        assert_eq!(check(&data, 3, 2, &flipped).bytes_wrong, wrong, "{at}");
    }
}

#[test]
fn tiles_are_complete_or_named() {
    let record = |position, length| StreamRange { position, length };
    let tiled = |records: &[(u64, u64)], range| {
        check_tiling(&mut records.iter().map(|(p, l)| record(*p, *l)).collect::<Vec<_>>(), range)
    };
    assert_eq!(tiled(&[(10, 5), (0, 10), (15, 1), (3, 0)], 0..16), Ok(()));
    assert_eq!(tiled(&[(10, 5), (15, 1)], 10..16), Ok(()));
    assert_eq!(tiled(&[], 0..0), Ok(()));
    assert_eq!(tiled(&[], 7..7), Ok(()));
    for (records, range, words) in [
        (&[][..], 0..4, "from 0 to 4 are missing"),
        (&[], 2..4, "from 2 to 4 are missing"),
        (&[(10, 5), (0, 8)], 0..15, "from 8 to 10 are missing"),
        (&[(0, 8)], 0..15, "from 8 to 15 are missing"),
        (&[(0, 8), (6, 4)], 0..10, "from 6 to 8 occur 2 times"),
        (&[(0, 8), (0, 8)], 0..8, "from 0 to 8 occur 2 times"),
        (&[(0, 8), (8, 4)], 0..8, "from 8 to 12 are beyond the end"),
        (&[(0, 8)], 4..8, "from 0 to 4 were read before"),
        (&[(0, 4)], 4..8, "from 0 to 4 were read before"),
    ] {
        let error = tiled(records, range).unwrap_err();
        assert!(error.contains(words), "{error}");
    }
}

proptest! {
    #[test]
    fn every_byte_is_that_of_the_definition(
        x in 1_u64..70, steps in 1_u64..9, offset in 0_u64..2000, len in 0_usize..300,
    ) {
        let data = RowData::new(9, 4, None, x, steps);
        let bytes = stream(&data, offset, len);
        for (n, found) in bytes.iter().enumerate() {
            prop_assert_eq!(*found, byte(&data, offset + n as u64));
        }
        prop_assert_eq!(data.compare(&bytes, offset), StreamMismatch::default());
    }

    #[test]
    fn wrong_bytes_are_counted_exactly(
        position in 0_u64..900, len in 1_usize..300, changes in prop::collection::btree_map(0_usize..300, 1_u8.., 0..40),
    ) {
        let data = RowData::new(9, 4, Some(1), 51, 7);
        let right = stream(&data, position, len);
        let mut bytes = right.clone();
        let changes: Vec<_> = changes.into_iter().filter(|(at, _)| *at < len).collect();
        for (at, change) in &changes {
            bytes[*at] ^= change;
        }
        let first = changes.first().map(|(at, _)| (*at, right[*at], bytes[*at]));
        prop_assert_eq!(data.compare(&bytes, position), StreamMismatch { bytes_wrong: changes.len() as u64, first });
    }

    #[test]
    fn every_position_is_identified(x in 24_u64..200, steps in 1_u64..20, offset in 0_u64..4000, more in 0_usize..40) {
        let data = RowData::new(2, 4, None, x, steps);
        let mut bytes = stream(&data, offset, data.min_identifiable_bytes() as usize + more);
        prop_assert_eq!(data.find(&bytes), Some(data.position(offset)));
        prop_assert_eq!(data.identify(&bytes), Some(data.position(offset)));
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        prop_assert_eq!(data.identify(&bytes), None);
        prop_assert_eq!(RowData::new(2, 5, None, x, steps).find(&bytes), None);
    }

    #[test]
    fn any_order_is_accepted_and_nothing_else(
        x in 1_u64..400, ranks in 1_u64..6, lap in 1_u64..6, steps in 1_u64..12, seed: u64, pick in 0.0..1.0_f64,
    ) {
        let data = RowData::new(seed, 4, None, x, lap);
        let all = permuted(records(&data, ranks, steps), seed);
        let file = joined(&all);
        let mut expected = ExpectedRecords::new(&data, ranks, steps).unwrap();
        let arrival = data.check_records(&file, &mut expected);
        prop_assert_eq!(arrival, VerifyResult { bytes_checked: x * steps, ..VerifyResult::default() });
        prop_assert!(expected.remaining.iter().all(|left| *left == 0));

        let victim = (pick * all.len() as f64) as usize;
        let mut lost = all.clone();
        let (_, bytes) = lost.remove(victim);
        let arrival = check(&data, ranks, steps, &joined(&lost));
        prop_assert_eq!(arrival.bytes_wrong, bytes.len() as u64);

        let mut doubled = all.clone();
        doubled.push(all[victim].clone());
        prop_assert_eq!(check(&data, ranks, steps, &joined(&doubled)).bytes_wrong, bytes.len() as u64);

        let mut flipped = file.clone();
        flipped[(pick * file.len() as f64) as usize] ^= 1 << (seed % 8);
        let wrong = check(&data, ranks, steps, &flipped).bytes_wrong;
        let lengths = || all.iter().map(|(_, bytes)| bytes.len() as u64);
        // A record of 23 bytes has two whole words at any alignment. A shorter one may lose its only one, and is then unknown.
        let most = if lengths().all(|length| length >= 23) { 1 } else { lengths().max().unwrap_or(1) };
        prop_assert!((1..=most).contains(&wrong), "{} of {}", wrong, most);
    }

    /// Reads portions of different lengths in any order, so that records begin anywhere; also from a later step on.
    #[test]
    fn windows_read_in_any_order_tile_the_file(
        x in 88_u64..400, ranks in 1_u64..5, first in 0_u64..6, steps in 1_u64..12, seed: u64,
    ) {
        let data = RowData::new(seed, 4, None, x, first + steps);
        let mut offset = first * x;
        let mut found = Vec::new();
        for (_, bytes) in permuted(records(&data, ranks, steps), seed) {
            let window = stream(&data, offset, bytes.len());
            offset += bytes.len() as u64;
            let position = if (bytes.len() as u64) < data.min_identifiable_bytes() { None } else { data.identify(&window) };
            match position {
                Some(position) => found.push(StreamRange { position, length: bytes.len() as u64 }),
                None => prop_assert!((bytes.len() as u64) < data.min_identifiable_bytes()),
            }
        }
        if found.len() as u64 == ranks * steps {
            let range = first * x..(first + steps) * x;
            prop_assert_eq!(check_tiling(&mut found, range.clone()), Ok(()));
            let again = found[0];
            found.push(again);
            prop_assert!(check_tiling(&mut found, range).is_err());
        }
    }

    #[test]
    fn histograms_are_those_of_the_bytes(x in 1_u64..3000, lap in 1_u64..6, first in 0_u64..9, steps in 0_u64..12) {
        let data = RowData::new(3, 4, None, x, lap);
        let mut expected = Histogram::default();
        expected.add(&stream(&data, first * x, (x * steps) as usize));
        prop_assert_eq!(data.histogram(first * x..(first + steps) * x), expected);
    }
}
