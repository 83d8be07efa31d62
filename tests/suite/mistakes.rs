//! Usual mistakes: each is answered by what is wrong, why, and what to do next, and nothing is made or measured.

use std::fs;

use crate::support::{Launch, Scratch};

/// What is typed, and what the answer must have: what, and what next.
const MISTAKES: [(&str, &[&str]); 39] = [
    ("io --bakend posix", &["'--bakend'", "similar argument", "'--backend'"]),
    ("io --backend posx", &["no backend 'posx'", "Did you mean posix?"]),
    ("io --backend ior", &["no backend 'ior'", "Choose from: mpiio"]),
    ("io -t 60", &["'-t'", "--help"]),
    ("io --time 1min", &["'1min' is not a time", "15m"]),
    ("io --time 0", &["larger than 0", "90s"]),
    ("io --time", &["--time <TIME>", "--help"]),
    ("io --path /does/not/exist", &["/does/not/exist", "No such file", "existing directory"]),
    ("io --path afile.txt", &["afile.txt", "it is a file", "existing directory"]),
    ("io --out results/", &["names a directory", "results/scratch"]),
    ("io --out nodir/x", &["directory nodir does not exist", "mkdir -p"]),
    ("io --out there", &["there.jsonl exists already", "another --out"]),
    ("io --space 12apples", &["'apples'", "512M"]),
    ("io --space 0", &["with a limit of 0", "200G"]),
    ("io --types 5", &["no pattern type 5", "0,1,2,3,4"]),
    ("io --types 3", &["types 3 and 4 derive the sizes", "--types 2,3"]),
    ("io --direct required --backend mmap", &["mmap cannot", "posix, uring"]),
    ("io --depth 8 --backend posix", &["--depth has no effect", "uring"]),
    ("io --hints nofile", &["--hints nofile", "No such file", "text file"]),
    ("io --hint romio_cb_write", &["romio_cb_write", "romio_cb_write=enable"]),
    ("io --hint a=b --backend posix", &["--hint has no effect", "mpiio"]),
    ("io --memory-per-process 64", &["the value is in bytes", "4G"]),
    ("io --partitions 8", &["partition of 8 ranks", "start more"]),
    ("io --metrics /nowhere/x", &["--metrics /nowhere/x", "existing directory"]),
    ("io --progress bar", &["not a terminal", "--progress lines"]),
    ("io --from none.json", &["none.json", "PREFIX.json"]),
    ("run", &["'run'", "the commands are io, comm"]),
    ("report", &["<FILE>", "type beff-raw report scratch.json"]),
    ("replay", &["<FILE>", "beff-raw replay app.csv"]),
    ("--html x.html", &["'--html'", "an option of beff-raw report"]),
    ("comm --path .", &["'--path'", "an option of beff-raw io, imb"]),
    ("imb P_Wrte_Indv", &["'P_Wrte_Indv'", "did you mean P_Write_Indv?"]),
    ("imb --msglog 20:10", &["--msglog 20:10", "12:22"]),
    ("comm --families ringg", &["'ringg'", "'ring'"]),
    ("replay none.csv", &["none.csv", "No such file", "name and the permissions"]),
    ("report afile.txt", &["afile.txt", "neither a summary", "PREFIX.json"]),
    ("report there.csv", &["there.csv", "neither a journal", "PREFIX.json"]),
    ("report empty.json", &["empty.json", "journal (.jsonl)"]),
    ("compare empty.json", &["two sides", "compare A1.json"]),
];

#[test]
fn each_is_answered() {
    for (words, parts) in MISTAKES {
        let scratch = Scratch::new();
        for (name, text) in
            [("afile.txt", "text\n"), ("empty.json", "\n"), ("there.jsonl", "{}\n"), ("there.csv", "a,b\n")]
        {
            fs::write(scratch.join(name), text).unwrap();
        }
        let before = scratch.list("");
        let run = Launch::alone().args(words.split(' ')).inside(&scratch).run();
        // A file that is there and is no result is a failed read.
        run.expect(if words == "report empty.json" { 1 } else { 2 }).says(parts);
        assert_eq!(run.stdout, "", "{words}; {run}");
        assert!(run.stderr.lines().count() <= 8, "{words}: too long; {run}");
        assert_eq!(scratch.list(""), before, "{words}: something was made");
    }
}
