//! One call that fails once, wherever it is: told, with the right exit code. See `tests/planted/failing.c`.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;

use crate::imb::rows;
use crate::patient;
use crate::support::{document, items, journal, Launch, Run, Scratch};

/// The rank that fails has the shim beside the library that lets ranks sleep.
fn failing() -> String {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| patient::library_of("failing", include_str!("../planted/failing.c")));
    format!("{} {}", patient::library().display(), library.display())
}

fn imb(rule: &str, words: &str) -> (Run, Value) {
    let scratch = Scratch::new();
    let launch = Launch::new(2).env("LD_PRELOAD", failing()).env("BEFF_FAIL", rule).arg("imb");
    let few = ["--npmin", "2", "--iter", "3,1,2", "--msglog", "12:12", "--backend", "posix"];
    let run = launch.args(words.split_whitespace()).args(few).arg("--full").into(&scratch).run();
    let result = document(&scratch);
    assert_eq!(journal(&scratch, "error").len(), items(&result["errors"]).len(), "{run}");
    assert_eq!(scratch.list("disk"), [] as [&str; 0], "files are left; {run}");
    (run, result)
}

#[track_caller]
fn check(rule: &str, words: &str, during: &str, operation: &str) {
    let (run, result) = imb(rule, words);
    assert_eq!(run.code(), 1, "{rule}: {run}");
    assert_eq!(items(&result["corruptions"]), [] as [Value; 0], "{rule}: {run}");
    let errors = items(&result["errors"]);
    assert!(!errors.is_empty(), "{rule}: {run}");
    for error in errors {
        let [message, where_] = ["message", "during"].map(|key| error[key].as_str().unwrap());
        assert!(message.contains(operation) && message.contains("Input/output error"), "{rule}: {error}");
        assert!(where_.contains(during), "{rule}: {error}");
    }
    assert!(run.stdout.contains("Input/output error"), "{rule}: {run}");
}

/// The trial before the first row: its file has the letter t.
#[test]
fn an_error_in_a_trial_is_reported() {
    check("write:t.dat:0", "S_Write_Expl", "pilot before the first row: S_Write_Expl, posix", "pwrite");
    check("write:t-rank:1", "P_Write_Priv", "pilot", "pwrite");
    check("read:t.dat:1", "S_Read_Expl", "pilot", "pread");
    // While the file that is read is made, and while what was written is read again.
    check("write:t.dat:0", "P_Read_Indv", "pilot", "pwrite");
    check("read:t.dat:0", "P_Write_Indv", "pilot", "pread");
}

#[test]
fn what_cannot_be_read_back_is_no_corruption() {
    for (words, name) in [("S_Write_Expl", "a.dat"), ("P_Write_Indv", "a.dat"), ("P_Write_Priv", "a-rank")] {
        let rule = format!("read:{name}:0");
        check(&rule, words, words, "pread");
        let (_, result) = imb(&rule, words);
        let failed: Vec<_> = rows(&result).iter().filter(|row| row["ended"]["by"] == "error").collect();
        assert_eq!(failed.len(), 1, "{words}: {failed:?}");
    }
}
