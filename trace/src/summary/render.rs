//! Text form of a summary.

use super::model::{FileSummary, FunctionSummary, Hint, PatternCounts, ProfileSummary};
use super::units::{bytes, count, percent, plural, seconds};

/// Files listed on the first screen.
const MAX_LISTED_FILES: usize = 5;
/// Incomplete processes that are named.
const MAX_NAMED_PROCESSES: usize = 3;
/// Kinds of failed calls that are named.
const MAX_NAMED_FAILURES: usize = 3;

impl ProfileSummary {
    /// The first screen: program, amounts, times, largest costs, next steps. Lines are not wider than `width` unless a word is.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        let mut page = WrappedText { text: String::new(), width: width.max(40) };
        self.write_title(&mut page);
        if self.data_calls == 0 {
            self.write_no_data(&mut page);
        } else {
            self.write_amounts(&mut page);
        }
        self.write_problems(&mut page);
        if !self.costs.is_empty() {
            page.blank();
            page.line("Largest costs:", 0);
            for (n, cost) in self.costs.iter().enumerate() {
                page.line(&format!("{}. {}: {}", n + 1, cost.what, cost.next), 3);
            }
        }
        if !self.files.is_empty() {
            page.blank();
            page.line(&format!("{}, by time:", plural(self.files.len() as u64, "file", "files")), 0);
            self.files.iter().take(MAX_LISTED_FILES).for_each(|file| page.line(&format!("  {}", file_line(file)), 4));
            if self.files.len() > MAX_LISTED_FILES {
                page.line(&format!("  and {} more", self.files.len() - MAX_LISTED_FILES), 4);
            }
        }
        page.blank();
        page.line("Next:", 0);
        page.line(
            &format!("  beff-raw profile show {} --details   functions, sizes and hints of each file", self.profile),
            4,
        );
        if self.data_calls > 0 {
            page.line(
                &format!("  mpirun -n {} beff-raw replay {}   the same I/O as a benchmark", self.ranks, self.profile),
                4,
            );
        }
        page.text
    }

    /// Functions, sizes, patterns and hints of each file.
    #[must_use]
    pub fn details(&self, width: usize) -> String {
        let mut page = WrappedText { text: String::new(), width: width.max(40) };
        for file in &self.files {
            page.line(&file_line(file), 2);
            page.line(
                &format!("  size before: {}", file.size_before_bytes.map_or("did not exist".to_owned(), bytes)),
                4,
            );
            page.line(&format!("  reads: {}", format_pattern(file.reads)), 4);
            page.line(&format!("  writes: {}", format_pattern(file.writes)), 4);
            file.hints.iter().for_each(|h| page.line(&format!("  {}", format_hint(h)), 4));
            write_functions(&mut page, &file.functions);
            page.blank();
        }
        if !self.others.is_empty() {
            page.line("Calls that belong to no file, or to one whose opening was not recorded", 2);
            write_functions(&mut page, &self.others);
        }
        page.text
    }

    /// The summary as JSON. The fields are in docs/profile.md.
    ///
    /// # Errors
    /// Never for a summary of [`super::summarize`].
    pub fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn write_title(&self, page: &mut WrappedText) {
        let command = if self.command.is_empty() {
            "a program without a recorded command".to_owned()
        } else {
            self.command.join(" ")
        };
        page.line(&command, 2);
        let hosts = match self.hosts.as_slice() {
            [(host, _)] => format!("host {host}"),
            hosts => format!("{} hosts", hosts.len()),
        };
        // MPICH's version string contains tabs.
        let library = self.library.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let library = if library.is_empty() { String::new() } else { format!(", {library}") };
        let ranks = plural(self.ranks as u64, "rank", "ranks");
        page.line(
            &format!(
                "{ranks} on {hosts}{library}; {} recorded in {}",
                plural(self.calls, "call", "calls"),
                seconds(self.span_seconds)
            ),
            2,
        );
        page.blank();
    }

    fn write_no_data(&self, page: &mut WrappedText) {
        page.line("This profile has no data access: nothing was read or written through MPI-IO.", 0);
        let mut found: Vec<String> = Vec::new();
        let all = self.files.iter().flat_map(|file| &file.functions).chain(&self.others);
        all.take(12).for_each(|f| found.push(format!("{} ({})", f.function, count(f.calls))));
        if found.is_empty() {
            page.line("It has no calls.", 0);
        } else {
            page.line(&format!("It has: {}.", found.join(", ")), 0);
        }
        page.line("The program may do its I/O by other means (POSIX, HDF5 without MPI), or its recording was switched off (MPI_Pcontrol) or truncated.", 0);
    }

    fn write_amounts(&self, page: &mut WrappedText) {
        let mean = self.io_seconds / count_of(self.ranks.max(1) as u64);
        let of_span = if self.span_seconds > 0.0 { mean / self.span_seconds } else { 0.0 };
        page.line(
            &format!(
                "Read {}, wrote {}, in {}.",
                bytes(self.read_bytes),
                bytes(self.written_bytes),
                plural(self.data_calls, "data access", "data accesses")
            ),
            0,
        );
        let slowest = self
            .slowest_rank
            .map_or_else(String::new, |(rank, most)| format!("; most on rank {rank}, {}", seconds(most)));
        page.line(
            &format!(
                "I/O took {} per rank on average, {} of the recorded time{slowest}.",
                seconds(mean),
                percent(of_span)
            ),
            0,
        );
        if let Some([read, written]) = self.storage_bytes {
            page.line(
                &format!(
                    "Below the page cache by the kernel's accounting: {} read, {} to be written.",
                    bytes(read),
                    bytes(written)
                ),
                0,
            );
        }
    }

    fn write_problems(&self, page: &mut WrappedText) {
        for cut in self.cut.iter().take(MAX_NAMED_PROCESSES) {
            let why = match cut.end {
                "aborted" => "ended with MPI_Abort",
                "full" => "stopped where its file could not be written (full disk, size limit, error); later calls are missing",
                _ => "ended without MPI_Finalize; its last calls may be missing",
            };
            page.line(
                &format!(
                    "Rank {} {why}: {} until {}.",
                    cut.rank,
                    plural(cut.calls, "call", "calls"),
                    seconds(cut.last_seconds)
                ),
                2,
            );
        }
        if self.cut.len() > MAX_NAMED_PROCESSES {
            page.line(&format!("{} more ranks have incomplete recordings.", self.cut.len() - MAX_NAMED_PROCESSES), 2);
        }
        let all = || self.files.iter().flat_map(|file| &file.functions).chain(&self.others);
        let failed = all().flat_map(|f| &f.errors).map(|error| error.1).sum::<u64>();
        let short = all().map(|f| f.short).sum::<u64>();
        let refused = self
            .files
            .iter()
            .flat_map(|file| &file.hints)
            .filter(|hint| hint.told && hint.granted.as_deref() != Some(&*hint.asked))
            .count();
        if failed > 0 {
            page.line(
                &format!("{}: {}.", plural(failed, "call failed", "calls failed"), self.failures().join(", ")),
                2,
            );
        }
        let mut say = |n: u64, one: &str, many: &str| {
            if n > 0 {
                page.line(&format!("{}.", plural(n, one, many)), 2);
            }
        };
        say(
            short,
            "access moved less than requested (end of file)",
            "accesses moved less than requested (end of file)",
        );
        say(refused as u64, "hint was requested, but not granted", "hints were requested, but not granted");
        say(self.never_completed, "request was never completed", "requests were never completed");
        say(
            self.unknown_bytes_calls,
            "access moved an unknown number of bytes",
            "accesses moved an unknown number of bytes",
        );
        if let Some(reason) = &self.no_places {
            page.line(&format!("The positions of accesses in files are unknown: {reason}"), 2);
        }
    }

    /// Function, file, error class and number of the most frequent failures.
    fn failures(&self) -> Vec<String> {
        let of_files = self.files.iter().flat_map(|file| file.functions.iter().map(move |f| (Some(&file.path), f)));
        let all = of_files.chain(self.others.iter().map(|f| (None, f)));
        let mut all: Vec<_> =
            all.flat_map(|(path, f)| f.errors.iter().map(move |(class, n)| (*n, &f.function, path, *class))).collect();
        all.sort_by_key(|failure| std::cmp::Reverse(failure.0));
        let more = all.len() > MAX_NAMED_FAILURES;
        let name = |(n, function, path, class): &(u64, &String, Option<&String>, &str)| {
            let on = path.map_or_else(String::new, |path| format!(" of {path}"));
            let times = if *n > 1 { format!(" ({})", count(*n)) } else { String::new() };
            format!("{function}{on} with {class}{times}")
        };
        all.iter().take(MAX_NAMED_FAILURES).map(name).chain(more.then(|| "and others".to_owned())).collect()
    }
}

fn file_line(file: &FileSummary) -> String {
    let kind = if file.fs_type.is_empty() { String::new() } else { format!(" ({})", file.fs_type) };
    let mut parts =
        vec![format!("{}{kind}: {} by {}", file.path, seconds(file.seconds), plural(file.ranks, "rank", "ranks"))];
    if file.written_bytes > 0 {
        parts.push(format!("{} written, {}", bytes(file.written_bytes), dominant_pattern(file.writes)));
    }
    if file.read_bytes > 0 {
        parts.push(format!("{} read, {}", bytes(file.read_bytes), dominant_pattern(file.reads)));
    }
    // A few collective accesses may move most of the bytes.
    match (file.collective_calls_share, file.collective_bytes_share) {
        (Some(calls), Some(bytes)) if calls > 0.0 => {
            parts.push(format!("{} of the bytes and {} of the accesses collective", percent(bytes), percent(calls)));
        }
        (Some(_), _) => parts.push("no access collective".to_owned()),
        _ => {}
    }
    parts.join("; ")
}

/// The most frequent kind of access.
fn dominant_pattern(p: PatternCounts) -> &'static str {
    let most = p.sequential.max(p.strided).max(p.random).max(p.unknown);
    match most {
        0 => "no access",
        n if n == p.sequential => "mostly sequential",
        n if n == p.strided => "mostly strided",
        n if n == p.random => "mostly random",
        _ => "at unknown positions",
    }
}

fn format_pattern(p: PatternCounts) -> String {
    if p.total() == 0 {
        return "none".to_owned();
    }
    let mut text =
        format!("{} sequential, {} strided, {} random", count(p.sequential), count(p.strided), count(p.random));
    if p.unknown > 0 {
        text.push_str(&format!(", {} at unknown positions (shared pointer)", count(p.unknown)));
    }
    text
}

fn format_hint(hint: &Hint) -> String {
    let Hint { key, asked, granted, told: has_report } = hint;
    match granted {
        Some(granted) if granted == asked => format!("hint {key}={asked}: granted"),
        Some(granted) => format!("hint {key}={asked}: not granted, {granted} is in force"),
        None if *has_report => format!("hint {key}={asked}: unknown to the library"),
        None => format!("hint {key}={asked}: not reported by the library"),
    }
}

fn write_functions(page: &mut WrappedText, functions: &[FunctionSummary]) {
    page.line(&format!("  {:<30} {:>11} {:>13} {:>9}", "function", "calls", "bytes", "time"), 0);
    for f in functions {
        let moved = if f.sizes.is_some() || f.bytes > 0 { bytes(f.bytes) } else { "-".to_owned() };
        page.row(&format!("  {:<30} {:>11} {:>13} {:>9}", f.function, count(f.calls), moved, seconds(f.seconds)));
        if let Some(sizes) = &f.sizes {
            let about = if sizes.median_exact { "" } else { "up to " };
            let (min, median, max) = (bytes(sizes.min_bytes), bytes(sizes.median_bytes), bytes(sizes.max_bytes));
            page.line(&format!("    sizes: smallest {min}, median {about}{median}, largest {max}"), 6);
        }
        let (rank, most) = f.slowest_rank;
        let mut line =
            format!("    longest call {}; by {}", seconds(f.longest_seconds), plural(f.ranks, "rank", "ranks"));
        if most * 2.0 * count_of(f.ranks) > 3.0 * f.seconds && f.ranks > 1 {
            line.push_str(&format!(", rank {rank} took {} of the time", percent(most / f.seconds)));
        }
        page.line(&line, 6);
        for (class, n) in &f.errors {
            page.line(&format!("    failed with {class}: {}", count(*n)), 6);
        }
        if f.short > 0 {
            page.line(&format!("    moved less than requested: {}", count(f.short)), 6);
        }
    }
}

#[allow(clippy::cast_precision_loss)] // ranks
fn count_of(number: u64) -> f64 {
    number as f64
}

struct WrappedText {
    text: String,
    width: usize,
}

impl WrappedText {
    fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Adds a line without wrapping.
    fn row(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a line, wrapped between words, but not before a unit; continuation lines are indented.
    fn line(&mut self, line: &str, indent: usize) {
        let lead = line.len() - line.trim_start().len();
        let mut column = lead;
        self.text.push_str(&line[..lead]);
        for (n, word) in words(&line[lead..]).enumerate() {
            let length = word.chars().count();
            if n > 0 && column + 1 + length > self.width {
                self.text.truncate(self.text.trim_end_matches(' ').len());
                self.text.push('\n');
                self.text.push_str(&" ".repeat(indent));
                column = indent;
            } else if n > 0 {
                self.text.push(' ');
                column += 1;
            }
            // Names of programs and files are untrusted: control characters must not reach a terminal.
            self.text.extend(word.chars().map(|c| if c.is_control() { '?' } else { c }));
            column += length;
        }
        self.text.push('\n');
    }
}

/// Splits into words; a number with its digit groups and its unit is one word.
fn words(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    std::iter::from_fn(move || {
        let whole = rest?;
        let mut end = 0;
        loop {
            end += whole[end..].find(' ').unwrap_or(whole.len() - end);
            let behind = whole.get(end + 1..);
            let next = behind.and_then(|behind| behind.split(' ').next()).unwrap_or_default();
            let number = whole[..end].ends_with(|c: char| c.is_ascii_digit());
            if !(number && (is_unit(next) || (next.len() >= 3 && next.as_bytes()[..3].iter().all(u8::is_ascii_digit))))
            {
                rest = behind;
                return Some(&whole[..end]);
            }
            end += 1;
        }
    })
}

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';', '.', ':', ')']);
    ["%", "s", "ms", "us", "ns", "h", "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].contains(&word)
}
