//! Variables that load and configure this library. A rank has none after MPI_Init: processes that it starts are not ranks. Programs that it
//! starts by MPI_Comm_spawn are, and need them.

use std::ffi::{c_int, c_void, CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const PRELOAD: &str = "LD_PRELOAD";

/// Set by the launcher and `world`.
const VARIABLES: [&str; 6] = [
    "BEFF_PROFILE_DIR",
    "BEFF_PROFILE_LIMIT_BYTES",
    "BEFF_PROFILE_OUT",
    "BEFF_PROFILE_MERGER",
    "BEFF_PROFILE_LAUNCHED",
    "BEFF_PROFILE_WORLD",
];

/// Hidden variables with their values.
static HIDDEN: Mutex<Vec<(&str, OsString)>> = Mutex::new(Vec::new());

/// A variable of this library, hidden or not.
pub fn variable(name: &str) -> Option<OsString> {
    let hidden = HIDDEN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = hidden.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    known.or_else(|| std::env::var_os(name))
}

/// Removes the variables from the environment of this process. Preloads of the user stay.
pub fn hide() {
    let mut hidden = HIDDEN.lock().unwrap_or_else(PoisonError::into_inner);
    for name in VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            std::env::remove_var(name);
            hidden.push((name, value));
        }
    }
    let Some(preload) = std::env::var_os(PRELOAD) else { return };
    let rest = without_library(&preload, own_file_name());
    if rest == preload {
        return;
    }
    // Replaces an existing variable, so other threads can read the environment meanwhile.
    match rest.is_empty() {
        true => std::env::remove_var(PRELOAD),
        false => std::env::set_var(PRELOAD, &rest),
    }
    hidden.push((PRELOAD, preload));
}

/// Calls a function that starts ranks: they inherit the variables.
pub fn shown_to(call: impl FnOnce() -> c_int) -> c_int {
    let shown = std::mem::take(&mut *HIDDEN.lock().unwrap_or_else(PoisonError::into_inner));
    shown.iter().for_each(|(name, value)| std::env::set_var(name, value));
    let code = call();
    hide();
    code
}

/// File name of this library.
fn own_file_name() -> &'static OsStr {
    // SAFETY: filled by the call, or unchanged.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be passed.
    let is_known = unsafe { libc::dladdr(hide as *const c_void, &raw mut info) } != 0;
    if !is_known || info.dli_fname.is_null() {
        return OsStr::new("libbeff_profiler.so");
    }
    // SAFETY: names of the linker are NUL-terminated and live as long as the library.
    let path = OsStr::from_bytes(unsafe { CStr::from_ptr(info.dli_fname) }.to_bytes());
    Path::new(path).file_name().unwrap_or(path)
}

/// A list of preloads without the library of this file name.
fn without_library(preload: &OsStr, library: &OsStr) -> OsString {
    let is_other = |path: &&[u8]| Path::new(OsStr::from_bytes(path)).file_name() != Some(library);
    let is_separator = |byte: &u8| *byte == b':' || *byte == b' ';
    let others: Vec<&[u8]> = preload.as_bytes().split(is_separator).filter(is_other).collect();
    OsString::from_vec(others.join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preloads_of_the_user_stay() {
        for (all, rest) in [
            ("/p/own.so", ""),
            ("/p/own.so:./x.so", "./x.so"),
            ("x.so /q/own.so y.so", "x.so:y.so"),
            ("own.so:", ""),
            ("/own.so/x.so", "/own.so/x.so"),
            ("a.so:b.so", "a.so:b.so"),
        ] {
            assert_eq!(without_library(OsStr::new(all), OsStr::new("own.so")), rest, "{all}");
        }
    }

    #[test]
    fn hidden_variables_are_known_and_shown_to_spawned_ranks() {
        // No other test uses this variable.
        let name = "BEFF_PROFILE_MERGER";
        std::env::set_var(name, "x");
        hide();
        assert_eq!((std::env::var_os(name), variable(name)), (None, Some("x".into())));
        assert_eq!(shown_to(|| c_int::from(std::env::var_os(name) == Some("x".into()))), 1);
        assert_eq!((std::env::var_os(name), variable(name)), (None, Some("x".into())));
        assert_eq!(variable("BEFF_PROFILE_NOWHERE"), None);
    }
}
