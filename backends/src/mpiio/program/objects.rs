//! MPI objects for the numbers in calls: communicators, types, hints and names.

use std::ffi::{CStr, CString};
use std::path::Path;

use beff_ffi::replay::{TypeBounds, TypeHandle, TypeTable};
use beff_ffi::{Comm, Info};
use beff_trace::layout::{TypeError, TypeLayouts};
use beff_trace::Datatype;

use super::super::outcome::mpi_error;
use crate::crash::{set_files, FileInUse};
use crate::error::{BackendError, FailureCause, Result};
use crate::program::ProgramTables;
use crate::FilePath;

pub(super) struct MpiObjects {
    comms: Vec<Option<Comm>>,
    types: TypeTable,
    computed_spans: ComputedSpans,
    infos: Vec<Info>,
    /// For calls without hints: MPI_INFO_NULL, or the hints for all files.
    no_info: Info,
    names: Vec<CString>,
    pub(super) paths: Vec<FilePath>,
}

/// Spans of a type: as the library reports it, whose arithmetic may wrap around, and as computed without the library, which may not
/// report its errors. Memory must contain both.
pub(super) type SpanPair = [TypeBounds; 2];

/// One entry for each type, and the errors of the others.
struct ComputedSpans {
    spans: Vec<Option<TypeBounds>>,
    errors: Vec<TypeError>,
}

impl ComputedSpans {
    fn new(types: &[Datatype]) -> Self {
        // By the rules of the library of the replay, not of the recording.
        let (layouts, errors) = TypeLayouts::for_library_lenient(types, beff_ffi::built_with());
        let span = |number| {
            layouts.is_known(number).then(|| TypeBounds {
                size_bytes: layouts.size(number),
                extent_bytes: layouts.extent(number),
                first: layouts.true_span(number).start,
                end: layouts.true_span(number).end,
            })
        };
        // Numbers of types have 32 bits.
        Self { spans: (0..types.len() as u32).map(span).collect(), errors }
    }

    fn of(&self, number: u32) -> Result<TypeBounds> {
        let refused = |text| BackendError::new("replay", "", FailureCause::Unsupported, text);
        match self.spans.get(number as usize) {
            Some(Some(span)) => Ok(*span),
            Some(None) => {
                let cause = self.errors.iter().find(|error| error.number == number as usize);
                Err(refused(cause.map_or_else(|| format!("type {number} has no known layout"), TypeError::to_string)))
            }
            None => Err(refused(format!("there is no type {number}"))),
        }
    }
}

fn unknown_number(what: &'static str, number: u32) -> BackendError {
    let text = format!("{what} {number} is in no table of the profile");
    BackendError::new("replay", "", FailureCause::Unsupported, text)
}

/// Maximum number of files that the report of a crash distinguishes.
const MAX_NOTED_FILES: usize = 1024;

/// Open MPI interprets a name without any directory as one of its own schemes.
fn mpi_file_name(path: &Path) -> Result<CString> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let whole = if path.is_absolute() { bytes.to_vec() } else { [b"./".as_slice(), bytes].concat() };
    CString::new(whole).map_err(|e| BackendError::new("replay", path, FailureCause::Path, e.to_string()))
}

fn merge_hints(recorded: &[(String, String)], all: &[(String, String)]) -> Vec<(String, String)> {
    let is_free = |key: &String| all.iter().all(|(other, _)| other != key);
    recorded.iter().filter(|(key, _)| is_free(key)).chain(all).cloned().collect()
}

impl MpiObjects {
    /// Collective over `world`: all ranks process the same lists in the same order.
    pub(super) fn new(world: &Comm, tables: ProgramTables) -> Result<Self> {
        beff_ffi::replay::file::return_errors()
            .map_err(|e| mpi_error("MPI_File_set_errhandler", Path::new(""), None, &e))?;
        let failed = |what: &'static str| move |e: &beff_ffi::MpiError| mpi_error(what, Path::new(""), None, e);
        let mut comms = Vec::with_capacity(tables.comms.len());
        for ranks in &tables.comms {
            comms.push(world.create_group(ranks).map_err(|e| failed("MPI_Comm_create_group")(&e))?);
        }
        let info = |pairs: &Vec<_>| {
            Info::new_object(&merge_hints(pairs, &tables.hints)).map_err(|e| failed("MPI_Info_set")(&e))
        };
        let infos = tables.infos.iter().map(info).collect::<Result<_>>()?;
        let no_info = Info::new(&tables.hints).map_err(|e| failed("MPI_Info_create")(&e))?;
        let names = tables.paths.iter().map(|path| mpi_file_name(path)).collect::<Result<_>>()?;
        let hints: Vec<_> = tables.infos.iter().flatten().chain(&tables.hints).cloned().collect();
        let in_use = |path: &FilePath| FileInUse { path: path.display().to_string(), hints: hints.clone() };
        set_files(tables.paths.iter().take(MAX_NOTED_FILES).map(in_use).collect());
        let worked_out = ComputedSpans::new(&tables.types);
        Ok(Self {
            comms,
            types: TypeTable::new(tables.types),
            computed_spans: worked_out,
            infos,
            no_info,
            names,
            paths: tables.paths,
        })
    }

    /// All communicators, None where this rank is not in it.
    pub(super) fn comms(&self) -> &[Option<Comm>] {
        &self.comms
    }

    pub(super) fn check_comm(&self, number: u32) -> Result<u32> {
        match self.comms.get(number as usize) {
            Some(Some(_)) => Ok(number),
            Some(None) => {
                let text = format!("communicator {number} of the profile does not contain this rank");
                Err(BackendError::new("replay", "", FailureCause::Unsupported, text))
            }
            None => Err(unknown_number("communicator", number)),
        }
    }

    pub(super) fn check_info(&self, number: Option<u32>) -> Result<Option<u32>> {
        match number {
            Some(number) if self.infos.get(number as usize).is_none() => Err(unknown_number("info", number)),
            known => Ok(known),
        }
    }

    /// Hints of a checked number.
    pub(super) fn info(&self, number: Option<u32>) -> &Info {
        number.and_then(|number| self.infos.get(number as usize)).unwrap_or(&self.no_info)
    }

    pub(super) fn check_name(&self, number: u32) -> Result<u32> {
        self.names.get(number as usize).map(|_| number).ok_or_else(|| unknown_number("file", number))
    }

    /// Name of a checked number.
    pub(super) fn name(&self, number: u32) -> &CStr {
        self.names.get(number as usize).map_or(c"", CString::as_c_str)
    }

    pub(super) fn path(&self, number: u32) -> Option<&Path> {
        self.paths.get(number as usize).map(|path| &**path)
    }

    /// The name, if it refers to the same directory as at the begin of the run. If not, one that never exists: an open is
    /// collective, so this rank takes part, and it fails for all.
    pub(super) fn safe_name(&self, number: u32) -> &CStr {
        match self.paths.get(number as usize).map(FilePath::check_name) {
            Some(Ok(())) => self.name(number),
            _ => c"/dev/null/the-run-directory-was-exchanged",
        }
    }

    /// The type of a number, MPI_DATATYPE_NULL for none.
    pub(super) fn datatype(&mut self, number: Option<u32>) -> Result<(TypeHandle, Option<SpanPair>)> {
        let Some(number) = number else { return Ok((TypeHandle::null(), None)) };
        let expected = self.computed_spans.of(number)?;
        let (handle, span) =
            self.types.committed(number).map_err(|e| mpi_error("MPI_Type_commit", Path::new(""), None, &e))?;
        if span.size_bytes != expected.size_bytes {
            let text = format!(
                "type {number} has {} bytes, and the MPI library reports {}",
                expected.size_bytes, span.size_bytes
            );
            return Err(BackendError::new("MPI_Type_size", "", FailureCause::Unsupported, text));
        }
        Ok((handle, Some([span, expected])))
    }
}
