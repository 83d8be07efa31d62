//! What the numbers of calls mean, in MPI: communicators, types, hints and names.

use std::ffi::{CStr, CString};
use std::path::Path;

use beff_ffi::replay::{Span, TypeHandle, Types};
use beff_ffi::{Comm, Info};
use beff_trace::layout::{Layouts, TypeError};
use beff_trace::Type;

use super::super::outcome::mpi_error;
use crate::error::{BackendError, Cause, Result};
use crate::program::Tables;
use crate::FilePath;

/// Everything that lives as long as the program.
pub(super) struct Handles {
    comms: Vec<Option<Comm>>,
    types: Types,
    worked_out: WorkedOut,
    infos: Vec<Info>,
    /// For calls without hints: MPI_INFO_NULL, or the hints for all files.
    no_info: Info,
    names: Vec<CString>,
    pub(super) paths: Vec<FilePath>,
}

/// What a type touches: as the library says, whose arithmetic may wrap around, and as it was worked out without the library, which may
/// not know its errors. Memory has to hold both.
pub(super) type Spans = [Span; 2];

/// What was worked out, one entry for each type, and why others could not be.
struct WorkedOut {
    spans: Vec<Option<Span>>,
    refused: Vec<TypeError>,
}

impl WorkedOut {
    fn new(types: &[Type]) -> Self {
        // The rules are those of the library that makes the types here, not of the one that was recorded.
        let (layouts, refused) = Layouts::what_can_be(types, beff_ffi::built_with());
        let span = |number| {
            layouts.is_known(number).then(|| Span {
                size_bytes: layouts.size(number),
                extent_bytes: layouts.extent(number),
                first: layouts.true_span(number).start,
                end: layouts.true_span(number).end,
            })
        };
        // Numbers of types have 32 bits.
        Self { spans: (0..types.len() as u32).map(span).collect(), refused }
    }

    fn of(&self, number: u32) -> Result<Span> {
        let refused = |text| BackendError::new("replay", "", Cause::Unsupported, text);
        match self.spans.get(number as usize) {
            Some(Some(span)) => Ok(*span),
            Some(None) => {
                let told = self.refused.iter().find(|error| error.number == number as usize);
                Err(refused(told.map_or_else(|| format!("type {number} cannot be worked out"), TypeError::to_string)))
            }
            None => Err(refused(format!("there is no type {number}"))),
        }
    }
}

/// A number that is in no table.
fn missing(what: &'static str, number: u32) -> BackendError {
    let text = format!("{what} {number} is in no table of the profile");
    BackendError::new("replay", "", Cause::Unsupported, text)
}

/// Open MPI takes a name without any directory for one of its own schemes.
fn name_for_mpi(path: &Path) -> Result<CString> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let whole = if path.is_absolute() { bytes.to_vec() } else { [b"./".as_slice(), bytes].concat() };
    CString::new(whole).map_err(|e| BackendError::new("replay", path, Cause::Path, e.to_string()))
}

/// Recorded hints, where `all` says nothing else, and those.
fn with(recorded: &[(String, String)], all: &[(String, String)]) -> Vec<(String, String)> {
    let is_free = |key: &String| all.iter().all(|(other, _)| other != key);
    recorded.iter().filter(|(key, _)| is_free(key)).chain(all).cloned().collect()
}

impl Handles {
    /// Makes communicators and hints. Collective over `world`: all ranks go through the same lists in the same order.
    pub(super) fn new(world: &Comm, tables: Tables) -> Result<Self> {
        beff_ffi::replay::file::return_errors()
            .map_err(|e| mpi_error("MPI_File_set_errhandler", Path::new(""), None, &e))?;
        let failed = |what: &'static str| move |e: &beff_ffi::MpiError| mpi_error(what, Path::new(""), None, e);
        let mut comms = Vec::with_capacity(tables.comms.len());
        for ranks in &tables.comms {
            comms.push(world.of_ranks(ranks).map_err(|e| failed("MPI_Comm_create_group")(&e))?);
        }
        let info = |pairs: &Vec<_>| Info::object(&with(pairs, &tables.hints)).map_err(|e| failed("MPI_Info_set")(&e));
        let infos = tables.infos.iter().map(info).collect::<Result<_>>()?;
        let no_info = Info::new(&tables.hints).map_err(|e| failed("MPI_Info_create")(&e))?;
        let names = tables.paths.iter().map(|path| name_for_mpi(path)).collect::<Result<_>>()?;
        let worked_out = WorkedOut::new(&tables.types);
        Ok(Self { comms, types: Types::new(tables.types), worked_out, infos, no_info, names, paths: tables.paths })
    }

    /// All communicators, None where this rank is not in it.
    pub(super) fn comms(&self) -> &[Option<Comm>] {
        &self.comms
    }

    /// The number, if it is that of a communicator this rank is in.
    pub(super) fn check_comm(&self, number: u32) -> Result<u32> {
        match self.comms.get(number as usize) {
            Some(Some(_)) => Ok(number),
            Some(None) => {
                let text = format!("communicator {number} of the profile does not contain this rank");
                Err(BackendError::new("replay", "", Cause::Unsupported, text))
            }
            None => Err(missing("communicator", number)),
        }
    }

    pub(super) fn check_info(&self, number: Option<u32>) -> Result<Option<u32>> {
        match number {
            Some(number) if self.infos.get(number as usize).is_none() => Err(missing("info", number)),
            known => Ok(known),
        }
    }

    /// Of a number that was checked.
    pub(super) fn info(&self, number: Option<u32>) -> &Info {
        number.and_then(|number| self.infos.get(number as usize)).unwrap_or(&self.no_info)
    }

    pub(super) fn check_name(&self, number: u32) -> Result<u32> {
        self.names.get(number as usize).map(|_| number).ok_or_else(|| missing("file", number))
    }

    /// Of a number that was checked.
    pub(super) fn name(&self, number: u32) -> &CStr {
        self.names.get(number as usize).map_or(c"", CString::as_c_str)
    }

    /// The name, for messages.
    pub(super) fn path(&self, number: u32) -> Option<&Path> {
        self.paths.get(number as usize).map(|path| &**path)
    }

    /// The name, if it leads where it led when the run began. If not, one under which there never is a file: an opening is collective,
    /// so this rank makes its part of it, and it fails for all.
    pub(super) fn safe_name(&self, number: u32) -> &CStr {
        match self.paths.get(number as usize).map(FilePath::check_name) {
            Some(Ok(())) => self.name(number),
            _ => c"/dev/null/the-run-directory-was-exchanged",
        }
    }

    /// The type of a number, MPI_DATATYPE_NULL for none.
    pub(super) fn datatype(&mut self, number: Option<u32>) -> Result<(TypeHandle, Option<Spans>)> {
        let Some(number) = number else { return Ok((TypeHandle::null(), None)) };
        let expected = self.worked_out.of(number)?;
        let (handle, span) =
            self.types.ready(number).map_err(|e| mpi_error("MPI_Type_commit", Path::new(""), None, &e))?;
        if span.size_bytes != expected.size_bytes {
            let text = format!(
                "type {number} has {} bytes, and the MPI library says {}",
                expected.size_bytes, span.size_bytes
            );
            return Err(BackendError::new("MPI_Type_size", "", Cause::Unsupported, text));
        }
        Ok((handle, Some([span, expected])))
    }
}
