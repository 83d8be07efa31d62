//! The run directory is renamed, exchanged, replaced by a link while a run is under way: nothing of anybody else is touched.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::replay;
use crate::support::{list, Launch, Run, Running, Scratch};

/// A run of some seconds in `disk/run`, with something done.
fn under_way(scratch: &Scratch, words: &str, record: &str) -> Running {
    let mut launch = Launch::new(2).args(words.split(' '));
    if words.starts_with("replay") {
        let profile = scratch.join("app.csv");
        fs::write(&profile, replay::program()).unwrap();
        launch = launch.arg(profile);
    }
    let mut running = launch.args(["--run-dir", "run"]).into(scratch).start();
    let (out, record) = (scratch.join("out.jsonl"), format!(r#""record":"{record}""#));
    running.until("a record", || fs::read_to_string(&out).is_ok_and(|text| text.contains(&record)));
    running
}

fn io(backend: &str) -> String {
    format!("io -T 4s --memory-per-process 64M --space 120M --types 0,2 --full --backend {backend}")
}

/// A file with its content, or a directory.
type Entry = (PathBuf, Option<Vec<u8>>);

/// Makes a file that somebody would miss.
fn precious(path: PathBuf) -> Entry {
    fs::write(&path, "precious").unwrap();
    (path, Some(b"precious".to_vec()))
}

/// True for the file that OMPIO makes and removes by its name inside `MPI_File_open`: what lies there then is out of our hands.
fn is_of_an_open(path: &Path) -> bool {
    path.to_string_lossy().contains(".locktest.")
}

/// Below `path` is what the test has put there itself, and nothing else.
fn assert_same(path: &Path, mut put: Vec<Entry>, message: &str) {
    let mut found = everything(path);
    found.sort();
    put.sort();
    assert_eq!(found, put, "{message}");
}

/// Every file and directory below, with what is in it.
fn everything(path: &Path) -> Vec<Entry> {
    let mut found = Vec::new();
    for name in list(path) {
        let path = path.join(name);
        if path.is_dir() {
            found.push((path.clone(), None));
            found.extend(everything(&path));
        } else {
            found.push((path.clone(), fs::read(&path).ok()));
        }
    }
    found
}

/// `mv run x; mkdir run; echo precious >run/thesis.txt`, with files of the names that a run uses.
fn exchanged(words: &str, record: &str) -> (Run, Scratch) {
    let scratch = Scratch::new();
    let disk = scratch.join("disk");
    let running = under_way(&scratch, words, record);
    assert_eq!(fs::metadata(disk.join("run")).unwrap().permissions().mode() & 0o7777, 0o700);
    fs::rename(disk.join("run"), disk.join("x")).unwrap();
    fs::create_dir(disk.join("run")).unwrap();
    let mut before = vec![precious(disk.join("run/thesis.txt"))];
    for (path, content) in everything(&disk.join("x")) {
        if is_of_an_open(&path) {
            continue;
        }
        let same = disk.join("run").join(path.strip_prefix(disk.join("x")).unwrap());
        match content {
            None => {
                fs::create_dir_all(&same).unwrap();
                before.push((same, None));
            }
            // What was removed a moment ago is not there.
            Some(_) => before.push(precious(same)),
        }
    }
    let run = running.wait();
    assert_same(&disk.join("run"), before, &format!("{words}: somebody else's files were touched; {run}"));
    assert_eq!(list(&disk.join("x")), [] as [&str; 0], "{words}: files are left; {run}");
    let output = (run.stdout.clone() + &run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(output.contains("not touched") && output.contains("/disk/x"), "{words}: {run}");
    (run, scratch)
}

/// What somebody else puts into the run directory stays, with the directory; the files of the run go.
#[test]
fn what_is_not_of_this_run_stays() {
    let imb = "imb S_Write_Indv,P_Write_Shared,P_Write_Priv,C_IWrite_Shared,Open_Close --npmin 2 --iter-policy off \
               --iter 40,20,2 --msglog 10:18 --full --backend mpiio,posix";
    for (words, record) in [
        (io("mpiio,posix").as_str(), "pattern"),
        (io("uring,mmap").as_str(), "pattern"),
        (imb, "row"),
        ("replay --backend mpiio,posix --repeat 40 --full", "repetition"),
    ] {
        let scratch = Scratch::new();
        let run_dir = scratch.join("disk/run");
        let running = under_way(&scratch, words, record);
        let mut kept = Vec::new();
        let of_backend = fs::read_dir(&run_dir).unwrap().next().unwrap().unwrap().path();
        for directory in [&run_dir, &of_backend] {
            kept.push(precious(directory.join("thesis.txt")));
        }
        kept.push((of_backend, None));
        let run = running.wait();
        run.expect(0);
        assert_same(&run_dir, kept, &format!("{words}: {run}"));
        let output = (run.stdout.clone() + &run.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(output.contains("thesis.txt does not belong to this run"), "{words}: {run}");
    }
}

/// They work on descriptors: a name is nothing to them.
#[test]
fn an_exchanged_directory_and_what_opens_by_descriptor() {
    for backend in ["posix", "mmap", "uring"] {
        exchanged(&io(backend), "pattern").0.expect(0);
    }
}

/// MPI is given a name. It is compared, and the run ends.
#[test]
fn an_exchanged_directory_and_mpi() {
    let (run, _scratch) = exchanged(&io("mpiio"), "pattern");
    run.expect(1);
    let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("renamed or exchanged") && flat.contains("Nothing was written there"), "{run}");
}

#[test]
fn an_exchanged_directory_and_imb() {
    let words =
        "imb S_Write_Indv,P_Write_Expl,C_Read_Indv --npmin 2 --iter-policy off --iter 40,20,2 --msglog 10:21 --full";
    let (run, _scratch) = exchanged(&format!("{words} --backend posix"), "row");
    run.expect(0);
    let (run, _scratch) = exchanged(&format!("{words} --backend mpiio"), "row");
    run.expect(1);
}

#[test]
fn an_exchanged_directory_and_replay() {
    exchanged("replay --backend posix --repeat 300 --full", "repetition").0.expect(0);
    let (run, _scratch) = exchanged("replay --backend mpiio --repeat 300 --full", "repetition");
    assert_ne!(run.code(), 0, "{run}");
}

/// Links in the place of the directory, and of its files.
fn linked(backend: &str, files: bool) {
    let scratch = Scratch::new();
    let disk = scratch.join("disk");
    let running = under_way(&scratch, &io(backend), "pattern");
    let home = scratch.join("home");
    fs::create_dir(&home).unwrap();
    let mut before = vec![precious(home.join("thesis.txt"))];
    if files {
        for (path, content) in everything(&disk.join("run")) {
            if content.is_some() && fs::remove_file(&path).is_ok() {
                symlink(home.join("thesis.txt"), path).unwrap();
            }
        }
    } else {
        fs::create_dir(home.join(backend)).unwrap();
        before.push((home.join(backend), None));
        let names = list(&disk.join("run").join(backend)).into_iter().filter(|name| !is_of_an_open(Path::new(name)));
        before.extend(names.map(|name| precious(home.join(backend).join(name))));
        fs::rename(disk.join("run"), disk.join("x")).unwrap();
        symlink(&home, disk.join("run")).unwrap();
    }
    let run = running.wait();
    assert_same(&home, before, &format!("{backend}: a link was followed; {run}"));
    let by_descriptor = backend != "mpiio" && !files;
    run.expect(if by_descriptor { 0 } else { 1 });
    if files {
        let flat = run.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains("link") && flat.contains("not followed"), "{run}");
        assert!(!disk.join("run").exists(), "links are removed, and the directory: {run}");
    } else {
        assert!(disk.join("run").is_symlink(), "{run}");
        assert_eq!(list(&disk.join("x")), [] as [&str; 0], "{run}");
    }
}

#[test]
fn a_link_in_the_place_of_a_file_is_not_followed() {
    for backend in ["posix", "mpiio"] {
        linked(backend, true);
    }
}

#[test]
fn a_link_in_the_place_of_the_directory_is_not_followed() {
    for backend in ["posix", "mpiio"] {
        linked(backend, false);
    }
}

/// Removed or emptied by somebody else: an error at most, and an end.
#[test]
fn a_directory_that_is_removed_ends_the_run() {
    for backend in ["posix", "mpiio"] {
        let scratch = Scratch::new();
        let running = under_way(&scratch, &io(backend), "pattern");
        fs::remove_dir_all(scratch.join("disk/run")).unwrap();
        let run = running.wait();
        run.expect(1);
        assert_eq!(scratch.list("disk"), [] as [&str; 0], "{backend}: {run}");
    }
}
