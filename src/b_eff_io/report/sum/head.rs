//! The lines above the first table.

use crate::b_eff_io::config::Config;
use crate::b_eff_io::report::listed;
use crate::frame::records::MachineRecord;
use crate::frame::report::machine::storage_sheet_lines;
use crate::frame::report::text::TextPage;
use crate::frame::words::or_hyphen;

use super::context::{hosts, remark, uname_fields, SummaryContext, MIB};

pub(super) fn write(page: &mut TextPage, of: SummaryContext<'_>) {
    let (config, machine) = (&of.result.config, of.machine());
    page.line(format!(
        "b_eff_io.c, Revision 2.1 from Dec. 12, 2001 (layout and definition; measured by beff-raw {}, {}, backend {})",
        machine.program_version, machine.git_revision, of.backend
    ));
    page.blank();
    page.line(format!(
        "MEMORY_PER_PROCESSOR = {:4.0} MBytes  [1MBytes = 1024*1024 bytes, 1MB = 1e6 bytes]",
        of.memory_mib()
    ));
    let max_chunk = of.result.partitions.iter().map(|p| p.m_part_bytes).max().unwrap_or(0);
    page.line(format!("Maximum chunk size   = {:8.3} MBytes", max_chunk as f64 / MIB));
    page.blank();
    page.line(format!(
        "-N {:2} T={}, MT={:.0} MBytes{}",
        machine.ranks,
        config.time_seconds,
        of.total_memory_mib(),
        options(config, machine)
    ));
    let prefix = or_hyphen(config.out.as_ref().map(|out| out.display()));
    page.line(format!("PATH={}, PREFIX={prefix}", config.path.display()));
    let [name, release, version, hardware] = uname_fields(machine);
    page.line(format!("       system name : {name}"));
    page.line(format!("       hostname    : {}", hosts(machine)));
    page.line(format!("       OS release  : {release}"));
    page.line(format!("       OS version  : {version}"));
    page.line(format!("       machine     : {hardware}"));
    remark(page, format!("MPI library: {}", machine.mpi_library));
    remark(page, format!("System: {}", listed::system(of.result)));
    for (label, text) in storage_sheet_lines(&of.result.manifest.storage) {
        remark(page, format!("Storage, {label}: {text}"));
    }
    page.blank();
    page.line(format!("Date of measurement: {}", date(&machine.started_utc)));
}

/// The options of the release in force, by its names.
fn options(config: &Config, machine: &MachineRecord) -> String {
    let words = &machine.command_line;
    let inline = words.iter().find_map(|word| word.strip_prefix("--hints="));
    let hints = inline.or_else(|| words.iter().skip_while(|word| *word != "--hints").nth(1).map(String::as_str));
    let hints = hints.map_or_else(String::new, |file| format!(" -i {file}"));
    let rewrite = if config.full_rewrite { ", -rewrite" } else { "" };
    let shared = if config.shared_pointer { "" } else { ", -noshared" };
    format!("{hints}{rewrite}{shared}")
}

/// In the format of ctime(3), in UTC; unchanged if it is no time.
fn date(started_utc: &str) -> String {
    let time = started_utc.parse::<jiff::Timestamp>();
    time.map_or_else(|_| started_utc.to_owned(), |time| time.strftime("%a %b %e %H:%M:%S %Y").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::records::fixture;

    #[test]
    fn the_names_of_uname_are_found_behind_the_distribution() {
        let machine = |kernel: &str, kernel_version: Option<&str>| MachineRecord {
            kernel: kernel.into(),
            kernel_version: kernel_version.map(str::to_owned),
            ..fixture::machine(vec![fixture::host("a", 1), fixture::host("b", 1)], &[])
        };
        let new = machine("Debian GNU/Linux 12 (bookworm), Linux 6.1.0-9 x86_64", Some("#1 SMP"));
        assert_eq!(uname_fields(&new), ["Linux", "6.1.0-9", "#1 SMP", "x86_64"]);
        assert_eq!(hosts(&new), "a b");
        assert_eq!(uname_fields(&machine("Linux 6.1.0-9 x86_64", None)), ["Linux", "6.1.0-9", "-", "x86_64"]);
        assert_eq!(uname_fields(&machine("", None)), ["-", "-", "-", ""]);
    }

    #[test]
    fn the_date_is_that_of_ctime() {
        assert_eq!(date("2025-01-31T12:00:09Z"), "Fri Jan 31 12:00:09 2025");
        assert_eq!(date("2026-11-02T03:04:05Z"), "Mon Nov  2 03:04:05 2026");
        assert_eq!(date("yesterday"), "yesterday");
    }
}
