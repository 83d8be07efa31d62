use std::ffi::OsString;
use std::io::Write;
use std::sync::LazyLock;

use super::*;
use crate::frame::benchmark::options_from_words;
use crate::frame::command::backend_capabilities;
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::imb_io::config::{InitialFileState, IterationBuffers, Multi};
use crate::imb_io::legacy;
use crate::imb_io::plan::names::find;
use crate::imb_io::plan::ModeChoice;

static KNOWN: LazyLock<Vec<BackendCapabilities<'static>>> = LazyLock::new(backend_capabilities);

fn config(options: &str) -> Result<ImbConfig, UsageError> {
    let words = ["beff-raw", "imb"].into_iter().chain(options.split_whitespace()).map(OsString::from);
    options_from_words::<ImbArgs>(legacy::translate(words.collect())?.into_iter().skip(2)).config(&KNOWN)
}

fn refused(options: &str, parts: &[&str]) {
    let error = config(options).unwrap_err();
    assert!(!error.cause.is_empty() && error.next_step.ends_with('.'), "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{options}: {part} not in: {error}");
    }
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn refused_file(option: &str, text: &str, parts: &[&str]) {
    let file = file(text);
    refused(&format!("{option} {}", file.path().display()), parts);
}

#[test]
fn defaults_are_those_of_the_release() {
    let c = config("").unwrap();
    assert_eq!((c.benchmarks.len(), c.benchmarks[0].as_str(), c.npmin, c.multi), (37, "S_Write_Indv", 1, None));
    assert_eq!(c.file, Some(InitialFileState::Existing));
    assert_eq!(config("--file new").unwrap().file, Some(InitialFileState::New));
    assert_eq!(c.buffers, Some(IterationBuffers::Reused));
    assert_eq!(config("--buffers cold").unwrap().buffers, Some(IterationBuffers::Cold));
    assert_eq!((c.sizes, c.iterations, c.modes), (SampleSizes::default(), IterationRule::default(), ModeChoice::Both));
    assert_eq!((c.backends, c.cache, c.direct), (vec!["mpiio".to_owned()], CachePolicy::Drop, DirectPolicy::ByBackend));
    assert_eq!((c.queue_depth, c.unique_open, c.bare, c.inject, c.keep_files), (32, false, false, false, false));
}

#[test]
fn an_old_command_line_means_what_it_meant() {
    let old = "-npmin 2 -multi 0 -msglog 16:16 -iter_policy off -iter 100,1 -include S_Read_Indv,open_close \
               -exclude s_read_indv -aggregate_mode aggregate p_write_indv";
    // Names come first here: after the list of -exclude they could be part of it.
    let c = config(&format!("p_write_indv {}", old.replace(" p_write_indv", ""))).unwrap();
    assert_eq!(c.benchmarks, ["P_Write_Indv", "Open_Close"]);
    assert_eq!(c, config(old).unwrap());
    assert_eq!((c.npmin, c.multi, c.modes), (2, Some(Multi::Slowest), ModeChoice::Aggregate));
    assert_eq!(c.sizes, SampleSizes::Powers { min_log: 16, max_log: 16 });
    let rule = c.iterations;
    assert_eq!(
        (rule.aggregate, rule.non_aggregate, rule.volume_bytes, rule.policy),
        (100, 100, 1 << 20, IterationPolicy::Off)
    );
    assert_eq!(config("-time 3 -multi 1").unwrap().iterations.limit_seconds, 3.0);
    assert_eq!(config("--time 2m --multi 1").unwrap().multi, Some(Multi::Each));
    for mode in ["non_aggregate", "non-aggregate", "NON_AGGREGATE"] {
        assert_eq!(config(&format!("--aggregate-mode {mode}")).unwrap().modes, ModeChoice::NonAggregate);
    }
    for mode in ["multi", "multiple", "Multi"] {
        assert_eq!(config(&format!("-aggregate_mode {mode}")).unwrap().modes, ModeChoice::Both);
    }
}

#[test]
fn iterations_have_one_policy() {
    let policy = |options: &str| config(options).unwrap().iterations.policy;
    assert_eq!(policy("--iter 10,1,5,set"), IterationPolicy::Set);
    assert_eq!(policy("--iter 10,1,5,off --iter_policy OFF"), IterationPolicy::Off);
    assert_eq!(policy("--iter 10 --iter-policy multiple-np --time 4"), IterationPolicy::MultipleNp);
    refused("--iter 10,1,5,set --iter-policy off", &["'set'", "'off'", "one of the two"]);
    refused("--iter-policy off --time 3", &["--time", "'off'", "--iter-policy dynamic"]);
    // On a command line of the release it is without effect.
    let old = config("P_IWrite_Indv -iter 5 -npmin 2 -msglog 20:20 -iter_policy off -time 500 -mem 0.5").unwrap();
    assert_eq!(old, config("P_IWrite_Indv --iter 5 --npmin 2 --msglog 20:20 --iter-policy off").unwrap());
    refused("--iter 10,1,5,set --time 3", &["--time", "'set'"]);
    refused("--iter 0", &["--iter 0", "at least 1"]);
    refused("--iter 10,x", &["--iter 10,x", "'x'"]);
}

#[test]
fn sizes_come_from_exponents_or_a_file() {
    let list = file("4097 # odd\n1M, 0\n");
    let c = config(&format!("-msglen {}", list.path().display())).unwrap();
    assert_eq!(c.sizes, SampleSizes::List(vec![4097, 1 << 20, 0]));
    refused_file("--msglen", "1\n2x\n", &["--msglen", "line 2"]);
    refused("--msglen nowhere", &["--msglen nowhere", "cannot be read"]);
    refused("--msglen /dev/zero", &["--msglen /dev/zero", "more than 1 MiB"]);
    refused("--input /dev/zero", &["--input /dev/zero", "more than 1 MiB"]);
    refused_file("--msglen", &"8\n".repeat(1025), &["1025 sizes; 1024 can be"]);
    let most = file(&"8\n".repeat(1024));
    assert!(config(&format!("-msglen {}", most.path().display())).is_ok());
    refused("--msglog 31", &["--msglog 31", "exponent is 30"]);
    refused("--msglog 7:2", &["must not be above"]);
}

#[test]
fn benchmarks_add_up_and_options_without_effect_are_refused() {
    let names = file("# mine\nS_Read_Expl p_read_expl\n");
    let c = config(&format!("Open_Close,s_read_expl --input {}", names.path().display())).unwrap();
    assert_eq!(c.benchmarks, ["Open_Close", "S_Read_Expl", "P_Read_Expl"]);
    assert_eq!(config("--exclude open_close --include C_IRead_All_Expl").unwrap().benchmarks.len(), 37);
    refused("S_Wrte_Indv", &["did you mean S_Write_Indv", "--list"]);
    refused("Open_Close --exclude Open_Close", &["leave at least one"]);
    refused("S_Read_Indv --exclude Open_Close", &["--exclude Open_Close", "not run anyway"]);
    refused("--exclude S_Read_Indv Open_Close", &["not run anyway", "commas"]);
    refused("--exclude nothing", &["'nothing'"]);
    refused_file("--input", "# none\n", &["no benchmark is named"]);
    refused_file("--input", "P_Wryte_Indv\n", &["--input ", "there is no benchmark 'P_Wryte_Indv'"]);
    refused("--input nowhere", &["--input nowhere"]);
}

#[test]
fn every_backend_runs_a_benchmark() {
    refused("--backend mmap", &["mmap", "end of a file", "mpiio, posix, uring, null"]);
    refused("--backend mpio", &["'mpio'", "mpiio, posix, uring, null"]);
    refused("--backend posix C_Write_Indv,P_Read_Shared,Open_Close", &["posix supports none", "MPI-IO only"]);
    refused("--backend mpiio,null S_IWrite_Indv,C_Write_Indv", &["null supports none", "in flight"]);
    assert_eq!(config("--backend uring S_IWrite_Indv").unwrap().backends, ["uring"]);
    assert_eq!(config("--backend posix,null,mpiio,uring").unwrap().benchmarks.len(), 37);
}

#[test]
fn backends_run_the_benchmarks_that_they_support() {
    let able = |name: &str| backend_names(&KNOWN, |backend| backend.runs(find(name).unwrap()));
    for (name, expected) in [
        ("S_Write_Indv", "mpiio, posix, uring, null"),
        ("P_Read_Priv", "mpiio, posix, uring, null"),
        ("P_IRead_Expl", "mpiio, uring"),
        ("P_Write_Shared", "mpiio"),
        ("C_Read_Expl", "mpiio"),
        ("C_IWrite_All_Indv", "mpiio"),
        ("Open_Close", "mpiio"),
    ] {
        assert_eq!(able(name), expected, "{name}");
    }
}

#[test]
fn options_without_effect_are_refused() {
    refused("--direct required", &["mpiio cannot", "posix, uring"]);
    refused("--direct required --backend posix,mpiio", &["mpiio cannot"]);
    refused("--depth 8", &["--depth", "uring"]);
    for option in ["--hint a=b", "--hints nowhere", "--unique-open", "--bare"] {
        refused(&format!("{option} --backend posix,uring"), &["no effect", "posix,uring", "mpiio"]);
    }
    refused("--imb-format --backend mpiio,posix", &["--imb-format", "mpiio, posix"]);
    refused("P_Write_Shared S_IWrite_Indv --bare", &["--bare has no effect", "S_Read_Expl"]);
    refused("--run-dir a/b", &["without '/'"]);
    refused("--out results/", &["prefix"]);
    assert_eq!(config("--depth 8 --backend mpiio,uring").unwrap().queue_depth, 8);
    assert!(config("--unique-open --bare --cache keep").unwrap().bare);
}

#[test]
fn hints_of_the_command_line_come_last() {
    let hints = file("# all files\nromio_cb_write enable\n\n  striping_factor  8 \nname a b\n");
    let c = config(&format!("--hint romio_cb_write=disable --hints {} --hint x=y=z", hints.path().display())).unwrap();
    let pairs: Vec<_> = c.hints.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(
        pairs,
        [
            ("romio_cb_write", "enable"),
            ("striping_factor", "8"),
            ("name", "a b"),
            ("romio_cb_write", "disable"),
            ("x", "y=z")
        ]
    );
    refused_file("--hints", "cb_nodes 2\nlonely\n", &["line 2", "without a value"]);
    refused_file("--hints", "all write all all cb_nodes 2\n", &["line 1", "`io`"]);
    refused_file("--hints", "#\n", &["no hint"]);
    refused("--hints /dev/zero", &["--hints /dev/zero", "more than 1 MiB"]);
    let many: String = (0..20_000).map(|n| format!("key{n} v\n")).collect();
    refused_file("--hints", &many, &["20000 hints are given, at most 4096 are allowed"]);
    let keys: String = (0..257).map(|n| format!("key{n} v\n")).collect();
    refused_file("--hints", &keys, &["257 different keys", "at most 256 are allowed"]);
    refused("--hints nowhere", &["cannot be read"]);
}
