use clap::error::ErrorKind;
use std::path::PathBuf;

use super::*;
use crate::b_eff_io::cli::{FaultInjectionArgs, IoArgs, PlanArgs, PlannedRate, RewriteScope, RunArgs, TransferArgs};
use crate::b_eff_io::config::{
    BufferPolicy, CollectivePolicy, CorruptionPolicy, InjectedFault, Partitions, PreallocatePolicy, Release,
    SpaceLimit, Termination, Verify,
};
use crate::commands::report::ReportArgs;
use crate::frame::benchmark::{default_options, parse_options};
use crate::frame::config::{CachePolicy, DirectPolicy};
use crate::frame::options::{BindArgs, DEFAULT_SEED};
use crate::imb_io::cli::ImbArgs;
use crate::imb_io::config::Multi;
use crate::imb_io::plan::IterationPolicy;

fn parse(line: &str) -> Result<(&'static Command, ArgMatches), clap::Error> {
    super::parse(line.split_whitespace().map(Into::into)).map_err(|error| match error {
        CommandLineError::Clap(said) => said,
        CommandLineError::Usage(refused) => panic!("{line}: {refused}"),
    })
}

/// Options of a command line of the command `name`.
fn args<A: clap::FromArgMatches>(name: &str, line: &str) -> A {
    let (command, options) = parse(line).unwrap();
    assert_eq!(command.name, name, "{line}");
    parse_options(&options).unwrap()
}

fn io(line: &str) -> IoArgs {
    args("io", line)
}

fn refused(line: &str) -> String {
    let error = parse(line).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{line}");
    error.to_string()
}

#[test]
fn the_definition_is_consistent() {
    command_line().debug_assert();
}

/// Users copy this line into reports: everything about the build, in one line.
#[test]
fn the_version_names_mpi_and_source_in_one_line() {
    let said = help_text("beff-raw --version");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with(concat!("beff-raw ", env!("CARGO_PKG_VERSION"), " (source ")), "{said}");
    assert!(said.contains(beff_ffi::built_with()) && said.len() < 100, "{said}");
}

fn help_text(line: &str) -> String {
    let said = parse(line).unwrap_err();
    assert_eq!(said.exit_code(), 0, "{line}");
    said.to_string()
}

/// Spellings of other programs, such as the capitals of IOR.
#[test]
fn backends_have_more_than_one_spelling() {
    assert_eq!(io("beff-raw --backend MPIIO,io_uring,POSIX").measure.backend, ["mpiio", "uring", "posix"]);
    assert_eq!(args::<ImbArgs>("imb", "beff-raw imb --backend mpi-io").measure.backend, ["mpiio"]);
}

#[test]
fn io_is_the_default_command() {
    for line in ["beff-raw --backend posix,uring -T 2m", "beff-raw io --backend posix,uring -T 2m"] {
        let args = io(line);
        assert_eq!(args.measure.backend, ["posix", "uring"]);
        assert_eq!(args.measure.time, 120.0);
    }
}

#[test]
fn defaults() {
    let args = io("beff-raw");
    assert_eq!(args.measure.backend, ["mpiio"]);
    assert_eq!(args.measure.time, 60.0);
    assert_eq!(args.measure.release, Release::R1);
    assert_eq!(args.measure.types, [0, 1, 2, 3, 4]);
    assert!(args.set.is_empty());
    assert_eq!(args.measure.space, None);
    assert_eq!(args.measure.path, PathBuf::from("."));
    assert!(!args.details && !args.progress.quiet);
    let way = TransferArgs {
        direct: DirectPolicy::ByBackend,
        depth: None,
        collective: CollectivePolicy::Auto,
        aggregators: None,
        domain: None,
        variant: Vec::new(),
        buffers: BufferPolicy::Cold,
    };
    assert_eq!(format!("{:?}", args.transfer), format!("{way:?}"));
    let run = RunArgs {
        alignment: crate::frame::options::DirectAlignArgs::default(),
        hint: Vec::new(),
        run_dir: None,
        keep_files: false,
        cache: CachePolicy::Drop,
        preallocate: PreallocatePolicy::Auto,
        ranks: BindArgs { bind: None },
        until: None,
        latency: false,
        hints: None,
        verify: Verify::Sample,
        on_corruption: CorruptionPolicy::Continue,
        rmax: None,
        seed: DEFAULT_SEED,
        faults: FaultInjectionArgs { inject: None, inject_at: None },
        continued: None,
        out: None,
    };
    assert_eq!(format!("{:?}", args.run), format!("{run:?}"));
    // `plan` does not have these options.
    assert_eq!(format!("{:?}", default_options::<RunArgs>().unwrap()), format!("{run:?}"));
}

#[test]
fn values_of_every_kind() {
    let args =
        io("beff-raw io --release 2.1 --partitions 1,4,16 --rewrite scatter --space 200G --direct auto --depth 64 \
                   --termination per-call --verify full --inject other-rank --set shared-pointer=off --memory-per-process 4G");
    assert_eq!(args.measure.release, Release::R2_1);
    assert_eq!(args.measure.partitions, Some(Partitions::List(vec![1, 4, 16])));
    assert_eq!(args.measure.rewrite, Some(RewriteScope::Scatter));
    assert_eq!(args.measure.space, Some(SpaceLimit::Bytes(200 << 30)));
    assert_eq!(args.measure.termination, Termination::PerCall);
    assert_eq!((args.transfer.direct, args.transfer.depth), (DirectPolicy::Auto, Some(64)));
    assert_eq!((args.run.verify, args.run.faults.inject), (Verify::Full, Some(InjectedFault::OtherRank)));
    assert_eq!(io("beff-raw --partitions small,medium,all").measure.partitions, Some(Partitions::SmallMediumAll));
    assert_eq!(io("beff-raw --partitions all").measure.partitions, Some(Partitions::All));
    assert_eq!(io("beff-raw --space 12.5%").measure.space, Some(SpaceLimit::Percent(12.5)));
}

#[test]
fn other_commands() {
    let plan: PlanArgs = args("plan", "beff-raw plan -n 142 --release 2.1 --rate 20G/s --json");
    assert_eq!((plan.ranks, plan.rate, plan.json), (142, PlannedRate::Assumed(20 << 30), true));
    let plan: PlanArgs = args("plan", "beff-raw plan -n 2 --rate runs/a.json");
    assert_eq!(plan.rate, PlannedRate::Measured("runs/a.json".into()));
    assert_eq!(crate::b_eff_io::cli::rate("/"), Ok(PlannedRate::Measured("/".into())), "a directory");
    let report: ReportArgs = args("report", "beff-raw report a.json b.jsonl --format sum --details");
    assert_eq!((report.files.len(), report.format.as_str(), report.details), (2, "sum", true));
    assert_eq!(parse("beff-raw info").unwrap().0.name, "info");
}

#[test]
fn bad_words_are_refused_with_the_option_and_the_cause() {
    for (line, parts) in [
        ("beff-raw --partitions 1,0", ["--partitions", "at least 1 rank"]),
        ("beff-raw --partitions 2,all", ["--partitions", "'all' is not a number of ranks"]),
        ("beff-raw --partitions 4,2,4", ["--partitions", "4 ranks is listed twice"]),
        ("beff-raw --space 0", ["--space", "200G"]),
        ("beff-raw --space 0%", ["--space", "above 0%"]),
        ("beff-raw --space 101%", ["--space", "at most 100%"]),
        ("beff-raw --space NaN%", ["--space", "at most 100%"]),
        ("beff-raw --space many%", ["--space", "80%"]),
        ("beff-raw --depth 0", ["--depth", "1..=4096"]),
        ("beff-raw --depth 4097", ["--depth", "1..=4096"]),
        ("beff-raw --time soon", ["--time", "soon"]),
        ("beff-raw --set segment-multiple=1Q", ["--set", "1Q"]),
        ("beff-raw --release 3", ["--release", "2.1"]),
        ("beff-raw --direct maybe", ["--direct", "required, auto, off"]),
        ("beff-raw --types a", ["--types", "a"]),
        ("beff-raw plan --ranks 0", ["--ranks", "0"]),
        ("beff-raw plan --ranks 2 --rate 0", ["--rate", "0 bytes per second"]),
        ("beff-raw plan", ["--ranks", "required"]),
        ("beff-raw report", ["FILE", "required"]),
        ("beff-raw report a.json --format xml", ["--format", "sum"]),
        ("beff-raw compare", ["FILE", "required"]),
        ("beff-raw compare a.json b.json --fail-below 0", ["--fail-below", "above zero"]),
        ("beff-raw compare a.json b.json --fail-below 95", ["--fail-below", "95%"]),
        ("beff-raw compare a.json b.json --noise much", ["--noise", "5%"]),
        ("beff-raw compare a.json b.json --noise 14", ["--noise", "14%"]),
        ("beff-raw compare a.json b.json --format svg", ["--format", "text, markdown, json"]),
        ("beff-raw measure", ["measure", "unrecognized subcommand"]),
        ("beff-raw --no-such-option", ["--no-such-option", "unexpected"]),
    ] {
        let text = refused(line);
        for part in parts {
            assert!(text.contains(part), "{line}: {part} not in: {text}");
        }
    }
}

#[test]
fn help_is_complete() {
    for command in ["", "io", "plan", "report", "compare", "info"] {
        let error = parse(&format!("beff-raw {command} --help")).unwrap_err();
        assert_eq!((error.kind(), error.exit_code()), (ErrorKind::DisplayHelp, 0));
        let text = error.to_string();
        assert!(text.contains("Usage: beff-raw"), "{command}");
        let examples = text.split("Examples:").nth(1).unwrap().split("Units:").next().unwrap();
        assert_eq!(examples.matches("\n      ").count(), 3, "{command}: {examples}");
        for part in ["powers of two", "15m", "  130  interrupted", "    3  data read", "    4  compare"] {
            assert!(text.contains(part), "{command}: {part}");
        }
        assert!(!text.contains("--inject"), "{command}");
    }
}

/// Two screens of 80 by 24.
#[test]
fn the_short_help_is_short() {
    for command in ["", "io", "comm", "imb", "replay", "tune"] {
        let mut line = short_command_line();
        let line = if command.is_empty() { &mut line } else { line.find_subcommand_mut(command).unwrap() };
        let text = line.clone().term_width(80).render_help().to_string();
        assert!(text.lines().count() <= 48, "{command}: {} lines:\n{text}", text.lines().count());
        // Examples are lines to be copied.
        let options = text.split("Examples:").next().unwrap();
        assert!(options.lines().all(|line| line.chars().count() <= 80), "{command}:\n{text}");
        for part in ["--out", "Examples:", "--help", "mpirun -n"] {
            assert!(text.contains(part), "{command}: no {part} in:\n{text}");
        }
        assert!(!text.contains("--seed") && !text.contains("Exit codes"), "{command}:\n{text}");
        let same = format!("beff-raw {command} -h");
        assert!(help_text(&same).contains("`--help` has all"), "{same}");
    }
}

#[test]
fn imb_has_the_options_of_the_release() {
    let args: ImbArgs = args("imb", "beff-raw imb S_Read_Indv,open_close P_Read_Priv --iter_policy off --multi 1");
    assert_eq!(args.names, ["S_Read_Indv", "open_close", "P_Read_Priv"]);
    assert_eq!((args.measure.multi, args.measure.iter_policy), (Some(Multi::Each), Some(IterationPolicy::Off)));
    for (line, parts) in [
        ("beff-raw imb --npmin 0", ["--npmin", "1.."]),
        ("beff-raw imb --multi 2", ["--multi", "0, 1"]),
        ("beff-raw imb --time 0", ["--time", "larger than 0"]),
        ("beff-raw imb --iter-policy on", ["--iter-policy", "dynamic, multiple_np, auto, off, set"]),
        ("beff-raw imb --aggregate-mode both", ["--aggregate-mode", "multi, aggregate, non_aggregate"]),
        ("beff-raw imb --msglen f --msglog 3", ["--msglen", "cannot be used with"]),
        ("beff-raw imb --imb-format --details", ["--imb-format", "cannot be used with"]),
        ("beff-raw imb --cache rank-shift", ["--cache", "drop, keep"]),
        ("beff-raw imb --hint key", ["--hint", "romio_cb_write=enable"]),
        ("beff-raw imb --hint =v", ["--hint", "a key and its value"]),
    ] {
        let text = refused(line);
        for part in parts {
            assert!(text.contains(part), "{line}: {part} not in: {text}");
        }
    }
}

#[test]
fn help_of_imb_shows_old_command_lines_and_differences() {
    let text = parse("beff-raw imb --help").unwrap_err().to_string();
    for part in ["-npmin 4 -msglog 16:22", "--imb-format", "short transfer", "--keep-files", "  130  interrupted"] {
        assert!(text.contains(part), "{part}");
    }
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in
        ["More than available: all ranks only", "from a pilot measurement of", "moved, compared and wrong, share"]
    {
        assert!(flat.contains(part), "{part}");
    }
    assert!(!text.contains("--inject"), "{text}");
    // As printed, they are valid command lines.
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("mpirun -n "));
    let mut seen = 0;
    for line in lines.filter(|line| line.contains(" beff-raw imb ")) {
        let words = line.split_once(' ').unwrap().1.split(" >").next().unwrap();
        assert_eq!(parse(words).unwrap().0.name, "imb", "{line}");
        seen += 1;
    }
    assert_eq!(seen, 4);
}

/// Words of users who do not know the commands yet.
#[test]
fn help_and_version_are_commands_too() {
    assert_eq!(help_text("beff-raw help"), help_text("beff-raw --help"));
    assert_eq!(help_text("beff-raw help replay"), help_text("beff-raw replay --help"));
    assert_eq!(help_text("beff-raw version"), help_text("beff-raw --version"));
}

#[test]
fn invalid_command_lines_get_a_suggestion() {
    for (line, next) in [
        (
            "beff-raw bench",
            "tip: the commands are io, comm, imb, replay, tune, plan, profile, workload, report, compare, gate, schema, info",
        ),
        ("beff-raw reprot a.json", "tip: a similar subcommand exists: 'report'"),
        ("beff-raw report", "tip: type beff-raw report scratch.json --full"),
        ("beff-raw replay", "tip: type mpirun -n 4 beff-raw replay app.csv --path /scratch"),
        ("beff-raw --html x.html", "tip: --html is an option of beff-raw report"),
        ("beff-raw comm --path /scratch", "tip: --path is an option of beff-raw io, imb, replay"),
    ] {
        assert!(refused(line).contains(next), "{line}: {}", refused(line));
    }
    // Without a similar name there is no suggestion.
    assert!(!refused("beff-raw --no-such-thing").contains("tip:"), "{}", refused("beff-raw --no-such-thing"));
}

fn tip(line: &str) -> String {
    let text = parse(line).unwrap_err().render().to_string();
    text.lines().find_map(|line| line.trim().strip_prefix("tip: ")).unwrap_or_default().to_owned()
}

#[test]
fn a_suggestion_is_a_command_line_that_works() {
    for (line, expected) in [
        ("beff-raw report a.json --csv", "beff-raw report a.json --format=csv"),
        ("beff-raw report --json a.json", "beff-raw report --format=json a.json"),
        ("beff-raw io --ranks 4", "mpirun -n 4 beff-raw io"),
        ("beff-raw comm --ranks=8 --quick", "mpirun -n 8 beff-raw comm --quick"),
        ("beff-raw -n 4 -T 10s", "mpirun -n 4 beff-raw -T 10s"),
        ("beff-raw --path D io", "beff-raw io --path D"),
        ("beff-raw --path D io --backend mpiio, posix", "beff-raw io --path D --backend mpiio,posix"),
        ("beff-raw io -T -5", "beff-raw io -T 5"),
        ("beff-raw --backend mpiio, posix", "beff-raw --backend mpiio,posix"),
        ("beff-raw io --backend mpiio, posix, uring -T 9s", "beff-raw io --backend mpiio,posix,uring -T 9s"),
        ("beff-raw io --types 0, 2", "beff-raw io --types 0,2"),
    ] {
        let tip = tip(line);
        assert_eq!(tip.strip_prefix("type "), Some(expected), "{line}");
        assert!(parse(&expected[expected.find("beff-raw").unwrap()..]).is_ok(), "{expected}");
    }
}

#[test]
fn nothing_is_suggested_that_does_not_work() {
    assert!(tip("beff-raw io -v").contains("-V prints the version"));
    for line in ["beff-raw report a.json --nothing", "beff-raw report --ranks 4 a.json", "beff-raw io --ranks x"] {
        assert!(!tip(line).contains("type ") && !tip(line).contains("-- --"), "{line}: {}", tip(line));
    }
    assert!(tip("beff-raw plan").starts_with("type beff-raw plan --ranks"));
    assert!(tip("beff-raw io --repport").contains("--repeat") || !tip("beff-raw io --repport").contains("type"));
}
