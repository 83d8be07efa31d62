//! The storage sheet of the file system of a run, from a file of the run.

use std::io::Write;

use beff_backends::FilePath;

use crate::frame::records::{StorageKey, StorageParameter};
use crate::frame::system::backing_store::{backing_store, BackingStore};
use crate::frame::system::storage_sheet::{query, sheet, FoundParameters};

/// Data of the file: some file systems place a file when it has data.
const CONTENT: [u8; 4096] = [0; 4096];

/// Sheet of the file system of type `fs_type` of a new file at `path`, which is removed. `page_cache_bytes`: memory of the hosts. A file that
/// cannot be created leaves the queried parameters unknown.
#[must_use]
pub fn of_new_file(
    path: &FilePath,
    fs_type: &str,
    given: &[(StorageKey, String)],
    page_cache_bytes: u64,
) -> Vec<StorageParameter> {
    let mut found = match path.create() {
        Ok(mut file) => {
            let is_written = file.write_all(&CONTENT).is_ok();
            // A client may keep the data for a while. Elsewhere a sync would only wait for the data of others.
            if is_written && backing_store(fs_type) == BackingStore::Server {
                let _ = file.sync_all();
            }
            query(path, &file)
        }
        Err(_) => FoundParameters::default(),
    };
    let _ = path.remove();
    found.add_page_cache(fs_type, page_cache_bytes);
    sheet(found, given, fs_type)
}

/// Stripes of an existing file, as far as its file system reports them: names of the parameters and their values.
#[must_use]
pub fn stripes_of(path: &FilePath, fs_type: &str) -> Vec<(String, String)> {
    let Ok(file) = path.open_to_read() else { return Vec::new() };
    let is_of_file = |key: StorageKey| matches!(key, StorageKey::Stripe | StorageKey::Stripes);
    let known = sheet(query(path, &file), &[], fs_type).into_iter().filter(|parameter| is_of_file(parameter.key));
    known.filter_map(|parameter| Some((parameter.key.name().to_owned(), parameter.value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_removed_and_every_required_parameter_is_stated() {
        let directory = tempfile::tempdir_in(".").unwrap();
        let path = FilePath::of(&directory.path().join("sheet")).unwrap();
        let given = [(StorageKey::Servers, "2 OSS".to_owned())];
        let sheet = of_new_file(&path, "ext4", &given, 1 << 30);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        let of = |key: StorageKey| sheet.iter().find(|parameter| parameter.key == key).unwrap();
        assert!(StorageKey::ALL.into_iter().filter(|key| key.is_required()).all(|key| of(key).key == key));
        assert_eq!((of(StorageKey::Servers).text(), of(StorageKey::Cache).number), ("2 OSS", Some(1 << 30)));
        // A directory that is missing: nothing is known but what is given.
        let nowhere = FilePath::unbacked("/no/such/directory/sheet");
        let sheet = of_new_file(&nowhere, "nfs4", &given, 1 << 30);
        let unknown: Vec<&str> = sheet.iter().filter(|p| p.value.is_none()).map(|p| p.key.name()).collect();
        assert_eq!(unknown, ["block", "stripe", "stripes", "redundancy"]);
    }
}
