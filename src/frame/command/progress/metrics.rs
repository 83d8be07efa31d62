//! Text file in the exposition format of Prometheus, version 0.0.4, for the textfile collectors of monitoring systems; that of the node
//! exporter does not read OpenMetrics. The file is replaced atomically.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::reporter::{FinalProgress, ProgressReporter, ProgressSnapshot, RunEndReport, RunTitle};
use crate::frame::command::print_diagnostic;
use crate::frame::error::Exit;
use crate::frame::records::RunOutcome;
use crate::frame::report::metrics::ResultMetric;

const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct MetricsFile {
    path: PathBuf,
    /// The name of the file without its extension.
    run: String,
    /// Labels of the run: benchmark, host, MPI library, backends, path.
    labels: String,
    started: f64,
    state: MetricsSample,
    written: Option<Instant>,
    broken: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct MetricsSample {
    share: f64,
    elapsed_seconds: f64,
    left_seconds: f64,
    moved_bytes: u64,
    /// Rate of the last part.
    bytes_per_second: Option<f64>,
    is_finished: bool,
    /// Time of this state, Unix time.
    updated: f64,
    /// How the run ended; None: it is running, or ended without reporting.
    end: Option<RunEndReport>,
}

impl MetricsFile {
    /// Creates the file; replaces that of an earlier run, and no other.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn create(path: &Path, title: &RunTitle) -> io::Result<Self> {
        check_replaceable(path)?;
        let started = unix_seconds();
        let mut this = Self {
            path: path.to_owned(),
            run: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            labels: run_labels(title),
            started,
            state: MetricsSample::default(),
            written: None,
            // Nothing is written when it is dropped without a first file.
            broken: true,
        };
        this.write()?;
        this.broken = false;
        Ok(this)
    }

    fn write(&mut self) -> io::Result<()> {
        self.state.updated = unix_seconds();
        let directory = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".beff-raw-metrics").tempfile_in(directory)?;
        // Readable for the collector, which is another user, whatever the umask is.
        file.as_file().set_permissions(PermissionsExt::from_mode(0o644))?;
        file.write_all(exposition_text(&self.run, &self.labels, self.started, &self.state).as_bytes())?;
        replace(file, &self.path)?;
        self.written = Some(Instant::now());
        Ok(())
    }

    fn update(&mut self) {
        if self.broken {
            return;
        }
        if let Err(e) = self.write() {
            self.broken = true;
            let path = self.path.display();
            print_diagnostic(&format!(
                "--metrics {path} cannot be written any more: {e}. The run continues without it"
            ));
        }
    }
}

/// First bytes of a file of metrics; the second form is that of earlier versions.
const OWN_PREFIXES: [&str; 2] = ["# HELP beff_raw_", "# TYPE beff_raw_"];

/// Refuses any other file: it may be a result, named by mistake.
fn check_replaceable(path: &Path) -> io::Result<()> {
    let mut begin = [0; OWN_PREFIXES[0].len()];
    let is_own = match std::fs::symlink_metadata(path) {
        // Anything but a file is refused when it would be replaced, and never opened: a pipe would block.
        Ok(there) if there.is_file() && there.len() > 0 => {
            File::open(path)?.read_exact(&mut begin).is_ok()
                && OWN_PREFIXES.iter().any(|known| begin == *known.as_bytes())
        }
        _ => true,
    };
    let foreign = || io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that is not one of metrics");
    is_own.then_some(()).ok_or_else(foreign)
}

fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
    // A directory, a pipe or a device of this name is not replaced.
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something other than a regular file"))
        }
        _ => {}
    }
    file.persist(path).map(drop).map_err(|e| e.error)
}

fn unix_seconds() -> f64 {
    Timestamp::now().as_millisecond() as f64 / 1e3
}

fn run_labels(title: &RunTitle) -> String {
    let facts = [("benchmark", &title.text)].into_iter().chain(title.labels.iter().map(|(name, text)| (*name, text)));
    facts.map(|(name, text)| format!(",{name}=\"{}\"", escape_label(text))).collect()
}

/// Word of an outcome; that of a run without one is `running`.
fn outcome_word(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::Complete => "complete",
        RunOutcome::Limit => "limit",
        RunOutcome::Interrupted => "interrupted",
        RunOutcome::Failed => "failed",
        RunOutcome::Killed => RUNNING,
    }
}

const RUNNING: &str = "running";

/// The outcome, exit code and values, each metric with its samples together.
fn end_text(run: &str, end: Option<&RunEndReport>) -> String {
    let outcome = end.map_or(RUNNING, |end| outcome_word(end.outcome));
    let mut all = vec![ResultMetric {
        name: "outcome".into(),
        help: "How the run ended, in a label; running before. A run that is running long after its expected end has crashed.",
        labels: vec![("outcome", outcome.to_owned())],
        value: 1.0,
    }];
    if let Some(end) = end {
        all.push(ResultMetric {
            name: "exit_code".into(),
            help: "Exit code of the program.",
            labels: Vec::new(),
            value: f64::from(end.exit.code()),
        });
        all.extend(end.metrics.iter().cloned());
    }
    let mut names: Vec<&str> = Vec::new();
    for metric in &all {
        if !names.contains(&metric.name.as_str()) {
            names.push(&metric.name);
        }
    }
    let mut text = String::new();
    for name in names {
        let samples: Vec<&ResultMetric> = all.iter().filter(|metric| metric.name == name).collect();
        text += &format!("# HELP beff_raw_{name} {}\n# TYPE beff_raw_{name} gauge\n", samples[0].help);
        for ResultMetric { labels, value, .. } in samples {
            let own: String = labels.iter().map(|(name, text)| format!(",{name}=\"{}\"", escape_label(text))).collect();
            text += &format!("beff_raw_{name}{{{run}{own}}} {value}\n");
        }
    }
    text
}

fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// `run` distinguishes the runs whose files a collector reads together: two samples of the same name and labels are an error.
fn exposition_text(run: &str, labels: &str, started: f64, state: &MetricsSample) -> String {
    let run = format!("run=\"{}\"", escape_label(run));
    let of_run = format!("{run}{labels}");
    let rate = state.bytes_per_second;
    // Name, type, help, labels, value: only counters end in `_total`.
    let expected_end = state.updated + state.left_seconds;
    let metrics: [(&str, &str, &str, &str, Option<f64>); 10] = [
        ("run_info", "gauge", "The measurement, in labels; always 1.", &of_run, Some(1.0)),
        ("start_time_seconds", "gauge", "When the run began, Unix time.", &run, Some(started)),
        ("progress_ratio", "gauge", "Completed share of the plan, by time.", &run, Some(state.share)),
        ("elapsed_seconds", "gauge", "Time since the run began.", &run, Some(state.elapsed_seconds)),
        ("remaining_seconds", "gauge", "Estimated time to the end of the run.", &run, Some(state.left_seconds)),
        ("expected_end_time_seconds", "gauge", "Estimated end of the run, Unix time.", &run, Some(expected_end)),
        ("updated_time_seconds", "gauge", "When this file was written, Unix time.", &run, Some(state.updated)),
        (
            "moved_bytes_total",
            "counter",
            "Bytes moved by all ranks in the clock.",
            &run,
            Some(state.moved_bytes as f64),
        ),
        ("last_rate_bytes_per_second", "gauge", "Rate of the last part that moved data.", &run, rate),
        ("finished", "gauge", FINISHED, &run, Some(f64::from(u8::from(state.is_finished)))),
    ];
    let shown = metrics.into_iter().filter_map(|(name, kind, help, labels, value)| {
        let name = format!("beff_raw_{name}");
        Some(format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name}{{{labels}}} {}\n", value?))
    });
    shown.collect::<String>() + &end_text(&run, state.end.as_ref())
}

const FINISHED: &str = "1 once the plan is complete; stays 0 if a signal or an error ends the run.";

/// An error that ended the run before it had a result.
impl Drop for MetricsFile {
    fn drop(&mut self) {
        if self.state.end.is_none() {
            self.result(&RunEndReport { outcome: RunOutcome::Failed, exit: Exit::Failure, metrics: Vec::new() });
        }
    }
}

impl ProgressReporter for MetricsFile {
    fn part(&mut self, now: &ProgressSnapshot<'_>) {
        let state = &mut self.state;
        (state.share, state.elapsed_seconds, state.left_seconds) = (now.share, now.elapsed_seconds, now.left_seconds);
        for last in now.standing.transferred.iter().filter(|last| last.seconds > 0.0) {
            state.moved_bytes = state.moved_bytes.saturating_add(last.bytes);
            state.bytes_per_second = Some(last.bytes as f64 / last.seconds);
        }
        if self.written.is_none_or(|at| at.elapsed() >= MIN_WRITE_INTERVAL) {
            self.update();
        }
    }

    fn end(&mut self, end: FinalProgress) {
        let state = &mut self.state;
        (state.share, state.elapsed_seconds, state.left_seconds) = (end.share, end.elapsed_seconds, 0.0);
        state.is_finished = end.is_complete;
        self.update();
    }

    fn result(&mut self, end: &RunEndReport) {
        self.state.end = Some(end.clone());
        self.update();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{moved, standing};
    use super::*;
    use crate::frame::run::ProgressReport;

    fn title(text: &str) -> RunTitle {
        RunTitle { text: text.into(), labels: vec![("host", "h\"1".into()), ("path", "/scratch".into())] }
    }

    /// Errors that end a run drop its reporters.
    #[test]
    fn a_run_without_a_result_has_failed() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("run.prom");
        drop(MetricsFile::create(&path, &title("t")).unwrap());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("outcome=\"failed\"} 1\n") && text.contains("beff_raw_exit_code{run=\"run\"} 1\n"),
            "{text}"
        );
    }

    #[test]
    fn the_file_is_replaced_and_as_the_format_says() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("run.prom");
        let mut metrics = MetricsFile::create(&path, &title("b_eff_io on 2 ranks")).unwrap();
        let begin = std::fs::read_to_string(&path).unwrap();
        assert!(begin.contains("beff_raw_finished{run=\"run\"} 0\n"), "{begin}");
        assert!(begin.ends_with("beff_raw_outcome{run=\"run\",outcome=\"running\"} 1\n"), "{begin}");
        let standing = ProgressReport { transferred: vec![moved("posix", 3_000_000)], ..standing("read") };
        metrics.part(&ProgressSnapshot { standing: &standing, elapsed_seconds: 1.0, left_seconds: 3.0, share: 0.25 });
        // The collector is another user; the umask of the run does not count.
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        // Not yet: the previous write was just now.
        assert_eq!(std::fs::read_to_string(&path).unwrap(), begin);
        metrics.end(FinalProgress { elapsed_seconds: 4.0, share: 1.0, is_complete: true });
        let labels = [("backend", "posix".to_owned())];
        let values = ResultMetric::rate("b_eff_io", "Value.", &labels, (2e9, Some([1.5e9, 2.5e9])));
        let values = values.into_iter().chain([ResultMetric::valid(&labels, true)]).collect();
        metrics.result(&RunEndReport { outcome: RunOutcome::Complete, exit: Exit::Ok, metrics: values });
        insta::assert_snapshot!(std::fs::read_to_string(&path)
            .unwrap()
            // A second may pass between the two, or not.
            .replace(&metrics.state.updated.to_string(), "TIME")
            .replace(&metrics.started.to_string(), "TIME"));
        let text = exposition_text("\"a\\b\nc\"", ",benchmark=\"t\"", 0.0, &MetricsSample::default());
        assert!(text.contains(r#"run_info{run="\"a\\b\nc\"",benchmark="t"} 1"#), "{text}");
        // No temporary file is left.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        drop(directory);
        metrics.update();
        assert!(metrics.broken);
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert!(MetricsFile::create(directory.path(), &title("t")).is_err());
        assert!(MetricsFile::create(&directory.path().join("none/run.prom"), &title("t")).is_err());
        let path = directory.path().join("run1.json");
        for (foreign, refused) in [
            ("{\"program\": 1}\n", true),
            ("#", true),
            ("", false),
            ("# TYPE beff_raw_run info\n", false),
            ("# HELP beff_raw_run_info What\n", false),
        ] {
            std::fs::write(&path, foreign).unwrap();
            assert_eq!(MetricsFile::create(&path, &title("t")).is_err(), refused, "{foreign:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap() == foreign, refused);
        }
    }
}
