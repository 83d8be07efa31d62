//! The list of benchmarks and the plan of a run, as text.

use crate::frame::backends::is_variant;
use crate::frame::config::RepetitionPolicy;
use crate::frame::units::{format_seconds, format_size};
use crate::imb_io::config::ImbConfig;
use crate::imb_io::plan::catalogue::all;
use crate::imb_io::plan::space::row_bytes;
use crate::imb_io::plan::{ImbBenchmark, ImbPlan, Mode, PlannedRow};

use super::state;
use crate::frame::report::render;
use crate::frame::report::table::Table;
use crate::frame::report::text::{count, TextPage};
use crate::frame::report::variants::variants_text;
use crate::frame::words::or_hyphen;

/// All benchmarks with their MPI calls and the backends that `able` returns. No line is wider than
/// [`crate::frame::report::text::WIDTH`].
#[must_use]
pub fn benchmark_list(able: impl Fn(&ImbBenchmark) -> Vec<&'static str>) -> String {
    let mut page = TextPage::default();
    page.line("Benchmarks of IMB-IO. S: one rank; P: all ranks, independently; C: all ranks in collective calls.");
    let parts = [(true, "of the release, run by default"), (false, "not of the release")];
    for (in_release, title) in parts {
        let benchmarks: Vec<_> = all().iter().filter(|benchmark| benchmark.in_release() == in_release).collect();
        page.heading(&format!("{} {title}", benchmarks.len()));
        let row = |b: &&ImbBenchmark| [b.name.to_owned(), able(b).join(" "), b.calls.to_owned()];
        let head = ["name", "backends", "MPI calls of an iteration"];
        render::table(&mut page, &Table::new("", 2, head).with_words().with_rows(benchmarks.iter().map(row)));
    }
    page.finish()
}

/// The rows of a run on `ranks` ranks; `runs` is their number over all backends.
#[must_use]
pub fn plan_text(plan: &ImbPlan, config: &ImbConfig, ranks: u64, runs: u64) -> String {
    let mut page = TextPage::default();
    page.line("Plan of an IMB-IO run; nothing has been measured.");
    page.blank();
    page.field("ranks", &ranks.to_string());
    let backends: Vec<&str> = config.backends.iter().map(String::as_str).filter(|name| !is_variant(name)).collect();
    page.field("backends", &backends.join(", "));
    if let Some(variants) = variants_text(&config.variants) {
        page.field(
            "variants",
            &format!("{variants}; each runs every row in turn, its files are removed before the next"),
        );
    }
    page.field("rows", &runs.to_string());
    page.field("policy", config.iterations.policy.name());
    page.field("time", &time(config, runs));
    page.field("writes", state::writes(config));
    page.field("reads", &state::reads(config));
    page.field("buffers", state::memory(config));
    page.field("memory", &format!("{} for data per rank", format_size(plan.memory_bytes())));
    benchmarks(&mut page, plan, config);
    sizes(&mut page, plan, config);
    page.finish()
}

fn time(config: &ImbConfig, runs: u64) -> String {
    // Repetitions of `auto` are within the time limit of the row.
    let rounds = match config.repeat {
        RepetitionPolicy::Times(times) => times.saturating_add(1),
        RepetitionPolicy::Auto | RepetitionPolicy::Off => 1,
    };
    match config.iterations.bound_seconds(runs.saturating_mul(rounds)) {
        Some(bound) => format!(
            "at most about {}, {} for each row by fewer iterations, at least one{}",
            format_seconds(bound),
            format_seconds(config.iterations.limit_seconds),
            if rounds > 1 { format!("; {rounds} rounds") } else { String::new() }
        ),
        None => "no limit".to_owned(),
    }
}

fn benchmarks(page: &mut TextPage, plan: &ImbPlan, config: &ImbConfig) {
    page.heading("Benchmarks; files of the largest row, all ranks and groups");
    let mut table = Table::new("", 1, ["name", "modes", "rows", "files", "ranks x groups"]).with_words();
    let mut rest = plan.rows.as_slice();
    while let [first, ..] = rest {
        let benchmark = first.benchmark;
        let alike = rest.iter().take_while(|row| row.benchmark == benchmark).count();
        let (rows, others) = rest.split_at(alike);
        rest = others;
        let groups = |row: &PlannedRow| plan.groups(row).map_or(1, |groups| groups.groups);
        let largest = rows.iter().map(|row| row_bytes(row, &config.iterations, groups(row))).max();
        let mut shapes: Vec<String> = rows.iter().map(|row| format!("{} x {}", row.ranks, groups(row))).collect();
        shapes.dedup();
        table.row([
            benchmark.name.to_owned(),
            benchmark.modes(config.modes).len().to_string(),
            rows.len().to_string(),
            format_size(largest.unwrap_or(0)),
            shapes.join(", "),
        ]);
    }
    render::table(page, &table);
}

fn sizes(page: &mut TextPage, plan: &ImbPlan, config: &ImbConfig) {
    let with_size = |row: &PlannedRow| row.sample_bytes.is_some();
    if !plan.rows.iter().any(with_size) {
        return;
    }
    page.heading(&format!("{}; maximum iterations", count(plan.sizes_bytes.len() as u64, "size")));
    let most = |bytes: u64, mode| {
        let runs = plan.rows.iter().any(|row| with_size(row) && row.mode == mode);
        or_hyphen(runs.then(|| config.iterations.max_iterations(Some(bytes), mode)))
    };
    let row = |bytes: &u64| [bytes.to_string(), most(*bytes, Mode::Aggregate), most(*bytes, Mode::NonAggregate)];
    let head = ["bytes", "aggregate", "non-aggregate"];
    render::table(page, &Table::new("", 0, head).with_rows(plan.sizes_bytes.iter().map(row)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::benchmark::options_from_words;
    use crate::frame::command::backend_capabilities;
    use crate::frame::report::text::WIDTH;
    use crate::imb_io::cli::ImbArgs;

    fn plan(options: &str, ranks: u64) -> String {
        let args: ImbArgs = options_from_words(options.split_whitespace());
        let config = args.config(&backend_capabilities()).unwrap();
        let text = plan_text(&ImbPlan::new(&config, ranks).unwrap(), &config, ranks, 7);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        text
    }

    #[test]
    fn every_benchmark_is_listed() {
        let text =
            benchmark_list(|benchmark| if benchmark.needs_mpi_file() { vec!["mpiio"] } else { vec!["mpiio", "posix"] });
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
        for benchmark in all() {
            let line = text.lines().find(|line| line.split_whitespace().next() == Some(benchmark.name)).unwrap();
            assert!(line.ends_with(benchmark.calls) && line.contains("  mpiio"), "{line}");
        }
        assert!(text.contains("37 of the release") && text.contains("4 not of the release"), "{text}");
    }

    #[test]
    fn a_plan_shows_benchmarks_and_repetitions() {
        let text = plan("S_Write_Indv,C_Read_Expl,Open_Close --npmin 2 --multi 0 --msglog 16:16 --time 3", 5);
        for line in [
            "S_Write_Indv 2 4 40 MiB 1 x 1",
            "C_Read_Expl 1 6 80 MiB 2 x 2, 4 x 1, 5 x 1",
            "Open_Close 1 3 2 B 2 x 2, 4 x 1, 5 x 1",
            "2 sizes; maximum iterations",
            "0 1000 100",
            "65536 640 100",
        ] {
            let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.lines().any(|l| words(l) == line), "{line}: {text}");
        }
        assert!(text.contains("at most about 21.0 s, 3.0 s for each row"), "{text}");
        assert!(plan("--iter-policy off C_Read_Expl", 2).contains("no limit"));
        assert!(!plan("Open_Close", 2).contains("maximum iterations"));
        // Only writes have a second mode.
        assert!(plan("S_Read_Indv", 2).lines().any(|line| line.split_whitespace().eq(["0", "1000", "-"])));
        plan("", 10_000_000);
    }
}
