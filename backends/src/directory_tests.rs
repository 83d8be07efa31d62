use super::*;

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};

use crate::testing::scratch;

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

#[test]
fn a_directory_is_its_owners_alone() {
    let scratch = scratch();
    let held = DirectoryHandle::open(scratch.path()).unwrap().create_subdirectory(name("run")).unwrap();
    assert_eq!(fs::metadata(held.path()).unwrap().permissions().mode() & 0o7777, 0o700);
    let again = DirectoryHandle::open(scratch.path()).unwrap().create_subdirectory(name("run")).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    symlink("run", scratch.path().join("link")).unwrap();
    assert!(DirectoryHandle::open(scratch.path()).unwrap().open_subdirectory(name("link")).is_err());
}

#[test]
fn a_directory_that_is_exchanged_loses_nothing() {
    let scratch = scratch();
    let at = |path: &str| scratch.path().join(path);
    let parent = DirectoryHandle::open(scratch.path()).unwrap();
    let run = parent.create_subdirectory(name("run")).unwrap();
    let file = run.create_subdirectory(name("posix")).unwrap().file(name("f"));
    drop(file.create().unwrap());
    assert!(file.check_name().is_ok());
    fs::rename(at("run"), at("x")).unwrap();
    // A name that refers to nothing is reported by its user.
    assert!(file.check_name().is_ok());
    fs::create_dir_all(at("run/posix")).unwrap();
    fs::write(at("run/thesis.txt"), "precious").unwrap();
    fs::write(at("run/posix/f"), "precious").unwrap();
    assert!(file.check_name().unwrap_err().to_string().contains("exchanged"));
    // Operations by descriptor apply to the directory at its current path.
    file.open_to_update().unwrap().set_len(10).unwrap();
    assert_eq!(file.size_bytes().unwrap(), 10);
    file.remove().unwrap();
    drop(run.file(name("g")).create().unwrap());
    run.open_subdirectory(name("posix")).unwrap().remove_files(|_| true).unwrap();
    assert!(run
        .remove_files(|name| name == "g")
        .unwrap_err()
        .to_string()
        .contains("/x/posix does not belong to this run"));
    run.remove_files(|_| true).unwrap();
    let message = parent.remove(name("run"), &run).unwrap_err().to_string();
    assert!(message.contains("was not touched") && message.contains("/x"), "{message}");
    assert_eq!(fs::read_dir(at("x")).unwrap().count(), 0);
    for path in ["run/thesis.txt", "run/posix/f"] {
        assert_eq!(fs::read(at(path)).unwrap(), b"precious");
    }
    fs::remove_dir_all(at("run")).unwrap();
    assert!(parent.remove(name("run"), &run).unwrap_err().to_string().contains("renamed"));
    fs::remove_dir(at("x")).unwrap();
    assert!(run.is_removed());
    parent.remove(name("run"), &run).unwrap();
    run.remove_files(|_| true).unwrap();
}

#[test]
fn links_are_removed_and_never_followed() {
    let scratch = scratch();
    let at = |path: &str| scratch.path().join(path);
    fs::create_dir(at("home")).unwrap();
    fs::write(at("home/thesis.txt"), "precious").unwrap();
    let parent = DirectoryHandle::open(scratch.path()).unwrap();
    let run = parent.create_subdirectory(name("run")).unwrap();
    symlink(at("home/thesis.txt"), at("run/link")).unwrap();
    symlink(at("home"), at("run/directory")).unwrap();
    fs::hard_link(at("home/thesis.txt"), at("run/second")).unwrap();
    symlink(at("nowhere"), at("run/dangling")).unwrap();
    for planted in ["link", "second", "dangling", "directory"] {
        let file = run.file(name(planted));
        let opens = [file.open_to_update(), file.create(), file.open(OFlag::O_WRONLY | OFlag::O_CREAT)];
        assert!(opens.iter().all(Result::is_err), "{planted}: {opens:?}");
        assert!(file.check_name().is_err(), "{planted}");
    }
    assert!(run.file(name("link")).open_to_read().unwrap_err().to_string().contains("not followed"));
    assert!(!at("nowhere").exists());
    fs::create_dir_all(at("run/deep/deeper")).unwrap();
    symlink(at("home"), at("run/deep/deeper/link")).unwrap();
    let message = run.remove_files(|_| true).unwrap_err().to_string();
    assert!(message.contains("not empty"), "a directory filled by another process: {message}");
    assert!(at("run/deep/deeper/link").is_symlink());
    assert_eq!(fs::read(at("home/thesis.txt")).unwrap(), b"precious");
    fs::remove_dir_all(at("run/deep")).unwrap();
    run.remove_files(|_| true).unwrap();
    parent.remove(name("run"), &run).unwrap();
    assert!(!at("run").exists());
}

#[test]
fn nothing_is_ever_opened_nowhere() {
    let file = FilePath::unbacked("null");
    assert_eq!(file.display().to_string(), "null");
    assert!(file.create().is_err() && file.open_to_read().is_err() && file.remove().is_err());
    assert!(file.check_name().is_err() && file.size_bytes().is_err());
}

#[test]
fn a_file_moved_aside_frees_space_and_replaces_nothing() {
    let scratch = scratch();
    let run = DirectoryHandle::open(scratch.path()).unwrap().create_subdirectory(name("run")).unwrap();
    let (file, at) = (run.file(name("f")), |path: &str| scratch.path().join("run").join(path));
    let fill = || fs::write(at("f"), vec![1; 8 << 20]).and_then(|()| File::open(at("f"))?.sync_all());
    assert!(file.move_aside(0).is_err(), "no such file");
    fill().unwrap();
    // The name exists: nothing happens.
    fs::write(at("f.aside"), "precious").unwrap();
    assert!(file.move_aside(1).is_err());
    assert_eq!(
        (fs::read(at("f.aside")).unwrap().as_slice(), file.size_bytes().unwrap()),
        (b"precious".as_slice(), 8 << 20)
    );
    fs::remove_file(at("f.aside")).unwrap();
    assert!(file.move_aside((8 << 20) + 1).is_err() && file.size_bytes().is_ok(), "its name is restored");
    file.move_aside(3 << 20).unwrap();
    assert!(file.size_bytes().is_err());
    assert_eq!(fs::metadata(at("f.aside")).unwrap().len(), 5 << 20);
    fs::remove_file(at("f.aside")).unwrap();
    // A hole at the end frees nothing.
    drop(file.create().unwrap());
    file.open_to_update().unwrap().set_len(8 << 20).unwrap();
    assert!(file.move_aside(1 << 20).is_err() && file.size_bytes().is_ok());
}
