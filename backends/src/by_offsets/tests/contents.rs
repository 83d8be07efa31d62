//! Contents of the file and of the memory after a program.

use beff_trace::Function as F;
use proptest::prelude::*;

use super::*;

#[test]
fn holes_in_file_and_memory_and_negative_bounds() {
    for direct in [Direct::Off, Direct::Auto] {
        for_each_backend(direct, |rig| {
            rig.open(&["rdwr", "create", "excl"]);
            // Bytes 8..12 and -8..-4 of the memory from 100 on become ints at 3, 11, 19 and 27.
            let outcomes = rig.run_steps(vec![
                view(3, INT, HOLES),
                data(F::WriteAt, Some(1), 1, NEGATIVE, 100),
                data(F::Write, None, 1, INT, 40),
                data(F::ReadAt, Some(0), 4, HOLES, 1000),
            ]);
            let bytes: Vec<_> = outcomes.iter().map(|outcome| (outcome.error, outcome.bytes)).collect();
            assert_eq!(bytes, [(None, None), (None, Some(8)), (None, Some(4)), (None, Some(12))]);
            let mut expected = vec![0; 23];
            let source = |at: u64| (at..at + 4).map(source_byte).collect::<Vec<_>>();
            expected[3..7].copy_from_slice(&source(40));
            expected[11..15].copy_from_slice(&source(108));
            expected[19..23].copy_from_slice(&source(92));
            assert_eq!(rig.file(), expected);
            let landed = rig.landing(1000, 32);
            for (n, at) in [3, 11, 19].into_iter().enumerate() {
                assert_eq!(landed[n * 8..n * 8 + 8], [&expected[at..at + 4], &[0; 4]].concat());
            }
            assert_eq!(landed[24..], [0; 8], "the file has ended");
        });
    }
}

/// The displacements of the bytes of a type, and its extent.
fn type_map(datatype: u32) -> (Vec<i64>, i64) {
    match datatype {
        BYTE => (vec![0], 1),
        INT => ((0..4).collect(), 4),
        HOLES => ((0..4).collect(), 8),
        _ => ((8..12).chain(-8..-4).collect(), 20),
    }
}

fn byte_displacement(datatype: u32, byte: u64) -> i64 {
    let (bytes, extent) = type_map(datatype);
    (byte / bytes.len() as u64) as i64 * extent + bytes[(byte % bytes.len() as u64) as usize]
}

/// The file, the landing area and the view, byte by byte.
struct FileModel {
    file: Vec<u8>,
    landing: Vec<u8>,
    view: (i64, u32, u32),
    pointer: u64,
}

#[derive(Clone, Debug)]
enum ModelStep {
    View { displacement: i64, is_int: bool, filetype: u32 },
    Seek { at: i64 },
    Data { write: bool, offset: Option<i64>, count: i64, datatype: u32, memory: u64, style: u8 },
}

fn model_steps() -> impl Strategy<Value = Vec<ModelStep>> {
    let view = (0_i64..40, any::<bool>(), 0_u32..3).prop_map(|(displacement, is_int, filetype)| {
        // A view of bytes has no etype of ints.
        ModelStep::View { displacement, is_int: is_int && filetype != BYTE, filetype }
    });
    let seek = (0_i64..50).prop_map(|at| ModelStep::Seek { at });
    let data = (any::<bool>(), prop::option::of(0_i64..60), 0_i64..9, 0_u32..4, 10_u64..4000, 0_u8..3).prop_map(
        |(write, offset, count, datatype, memory, style)| ModelStep::Data {
            write,
            offset,
            count,
            datatype,
            memory,
            style,
        },
    );
    prop::collection::vec(prop_oneof![1 => view, 1 => seek, 6 => data], 1..25)
}

impl FileModel {
    /// Applies the operation; returns its steps, and the bytes that the last of them must return.
    fn apply(&mut self, op: &ModelStep, request: u64) -> (Vec<ProgramStep>, Option<u64>) {
        match *op {
            ModelStep::View { displacement, is_int, filetype } => {
                let etype = if is_int { INT } else { BYTE };
                (self.view, self.pointer) = ((displacement, etype, filetype), 0);
                (vec![view(displacement, etype, filetype)], None)
            }
            ModelStep::Seek { at } => {
                self.pointer = at as u64;
                let mut seek = sized(F::Seek, at);
                seek.call.whence = Some(beff_trace::Whence::Set);
                (vec![seek], None)
            }
            ModelStep::Data { write, offset, count, datatype, memory, style } => {
                let (displacement, etype, filetype) = self.view;
                let etype_bytes = type_map(etype).0.len() as u64;
                // Whole etypes, so that the file pointer remains at an etype boundary.
                let count = if etype == INT && datatype == BYTE { count * 4 } else { count };
                let asked = count as u64 * type_map(datatype).0.len() as u64;
                let first = offset.map_or(self.pointer, |at| at as u64) * etype_bytes;
                let mut moved = 0;
                for byte in 0..asked {
                    let at = (displacement + byte_displacement(filetype, first + byte)) as usize;
                    let here = (memory as i64 + byte_displacement(datatype, byte)) as usize;
                    if write {
                        self.file.resize(self.file.len().max(at + 1), 0);
                        self.file[at] = source_byte(here as u64);
                    } else if let Some(found) = self.file.get(at) {
                        self.landing[here] = *found;
                    } else {
                        break;
                    }
                    moved += 1;
                }
                if offset.is_none() {
                    self.pointer += asked / etype_bytes;
                }
                let functions = match (write, offset.is_some()) {
                    (true, true) => [F::WriteAt, F::IwriteAt, F::WriteAtAllBegin, F::WriteAtAllEnd],
                    (true, false) => [F::Write, F::Iwrite, F::WriteAllBegin, F::WriteAllEnd],
                    (false, true) => [F::ReadAt, F::IreadAt, F::ReadAtAllBegin, F::ReadAtAllEnd],
                    (false, false) => [F::Read, F::Iread, F::ReadAllBegin, F::ReadAllEnd],
                };
                let begin = data(functions[usize::from(style)], offset, count, datatype, memory);
                let steps = match style {
                    0 => vec![begin],
                    1 => vec![nonblocking(request, begin), wait(F::Wait, &[request])],
                    _ => vec![begin, file_call(functions[3])],
                };
                (steps, Some(moved))
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_program_does_what_the_model_does(ops in model_steps(), windows in 1_usize..4, auto in any::<bool>()) {
        let direct = if auto { Direct::Auto } else { Direct::Off };
        for_each_backend(direct, |rig| {
            rig.open(&["rdwr", "create"]);
            let landing = vec![0; 5000];
            let mut model = FileModel { file: Vec::new(), landing, view: (0, BYTE, BYTE), pointer: 0 };
            for (number, window) in ops.chunks(ops.len().div_ceil(windows)).enumerate() {
                let (mut steps, mut expected) = (Vec::new(), Vec::new());
                for (n, op) in window.iter().enumerate() {
                    let (more, bytes) = model.apply(op, (number * 100 + n) as u64);
                    steps.extend(more);
                    expected.push((steps.len() - 1, bytes));
                }
                let outcomes = rig.run_steps(steps);
                for (at, bytes) in expected {
                    let reported = outcomes[at].completions.first().map_or(outcomes[at].bytes, |done| done.bytes);
                    assert_eq!((outcomes[at].error, reported), (None, bytes), "{ops:?}");
                }
            }
            assert_eq!(rig.file(), model.file, "{ops:?}");
            assert!(rig.landing(0, 5000) == model.landing, "{ops:?}");
        });
    }
}

#[test]
fn null_moves_nothing_and_returns_the_recorded_results() {
    let mut rig = ProgramRig::new("null", Direct::Off).unwrap();
    let mut failed = data(F::WriteAt, Some(0), 1, INT, 0);
    failed.call.error = class("MPI_ERR_NO_SPACE");
    let mut short = data(F::ReadAt, Some(0), 4, INT, 0);
    short.call.bytes = Some(7);
    let mut waited = wait(F::Waitall, &[5]);
    waited.call.completions[0].bytes = Some(3);
    let steps = vec![
        open(&["rdwr", "create"]),
        data(F::WriteAt, Some(0), 100, HOLES, 0),
        failed,
        short,
        nonblocking(5, data(F::IreadAt, Some(0), 1, INT, 0)),
        waited,
        file_call(F::Close),
    ];
    let outcomes = rig.run_steps(steps);
    let results: Vec<_> = outcomes.iter().map(|outcome| (outcome.error, outcome.bytes)).collect();
    let full = class("MPI_ERR_NO_SPACE");
    assert_eq!(results[1..4], [(None, Some(400)), (full, None), (None, Some(7))]);
    assert_eq!(outcomes[5].completions[..], [Completion { request: 5, bytes: Some(3), error: None }]);
    assert!(!rig.path().exists());
    assert_eq!(rig.program.unexpected_error(), None);
    assert_eq!(rig.landing(0, 100), [0; 100]);
    rig.program.finish().unwrap();
}
