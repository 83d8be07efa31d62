//! How the run was set up, in full: what a reader needs to repeat it or to explain a number.

use crate::frame::backends::any_can;
use crate::frame::report::machine;
use crate::frame::report::text::{list, Page};
use crate::frame::report::Views;
use crate::frame::units::{format_seconds, format_size};
use crate::imb_io::records::ImbResult;
use crate::imb_io::report::state;

pub(super) fn write(page: &mut Page, result: &ImbResult) {
    let (config, setup) = (&result.config, &result.setup);
    page.heading("Set-up");
    page.field("command", &setup.machine.command_line.join(" "));
    page.field("benchmarks", &config.benchmarks.join(", "));
    page.field("sizes", &setup.sizes_bytes.iter().map(|bytes| format_size(*bytes)).collect::<Vec<_>>().join(", "));
    page.field("repetitions", &repetitions(result));
    let inject = if config.inject { "; DAMAGED ON PURPOSE: one bit is turned over" } else { "" };
    page.field("data", &format!("seed {}; compared: {}{inject}", config.seed, state::compared(config)));
    page.field("direct I/O", machine::direct(config.direct));
    if any_can(&config.backends, |row| row.has_queue) {
        page.field("queue", &format!("{} operations in flight at most", config.queue_depth));
    }
    if !config.hints.is_empty() {
        let hints: Vec<String> = config.hints.iter().map(|(key, value)| format!("{key}={value}")).collect();
        page.field("hints", &hints.join(" "));
    }
    machine::write(page, &setup.machine);
    machine::write_storage(page, &setup.storage);
    let kept = if config.keep_files { ", files of the last rows left there" } else { "" };
    page.field("files", &format!("{}{kept}", setup.run_dir));
    page.field("output", &output(result));
}

fn repetitions(result: &ImbResult) -> String {
    let r = &result.config.repetitions;
    format!(
        "at most {} aggregate, {} non-aggregate, {} a row; {} a row, policy {}",
        r.aggregate,
        r.non_aggregate,
        format_size(r.volume_bytes),
        format_seconds(r.limit_seconds),
        r.policy.name()
    )
}

fn output(result: &ImbResult) -> String {
    match &result.config.out {
        None => "standard output alone".to_owned(),
        Some(prefix) => {
            let prefix = prefix.display();
            let files =
                [".jsonl".to_owned()].into_iter().chain(result.suffixes()).map(|suffix| format!("{prefix}{suffix}"));
            list(&files.collect::<Vec<_>>())
        }
    }
}
