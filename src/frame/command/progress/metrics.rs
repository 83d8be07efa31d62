//! Text file in the exposition format of Prometheus, version 0.0.4, for the textfile collectors of monitoring systems; that of the node
//! exporter does not read OpenMetrics. The file is replaced atomically.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::reporter::{FinalProgress, ProgressReporter, ProgressSnapshot};
use crate::frame::command::print_diagnostic;

const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct MetricsFile {
    path: PathBuf,
    /// The name of the file without its extension.
    run: String,
    title: String,
    started: f64,
    state: MetricsSample,
    written: Option<Instant>,
    broken: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct MetricsSample {
    what: String,
    share: f64,
    elapsed_seconds: f64,
    left_seconds: f64,
    moved_bytes: u64,
    /// Rate of the last part.
    bytes_per_second: Option<f64>,
    is_finished: bool,
}

impl MetricsFile {
    /// Creates the file; replaces that of an earlier run, and no other.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn create(path: &Path, title: &str) -> io::Result<Self> {
        let started = Timestamp::now().as_millisecond() as f64 / 1e3;
        let mut this = Self {
            path: path.to_owned(),
            run: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            title: title.to_owned(),
            started,
            state: MetricsSample::default(),
            written: None,
            broken: false,
        };
        check_replaceable(path)?;
        this.write()?;
        Ok(this)
    }

    fn write(&mut self) -> io::Result<()> {
        let directory = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".beff-raw-metrics").tempfile_in(directory)?;
        // Readable for the collector, which is another user, whatever the umask is.
        file.as_file().set_permissions(PermissionsExt::from_mode(0o644))?;
        file.write_all(exposition_text(&self.run, &self.title, self.started, &self.state).as_bytes())?;
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

fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// `run` distinguishes the runs whose files a collector reads together: two samples of the same name and labels are an error.
fn exposition_text(run: &str, title: &str, started: f64, state: &MetricsSample) -> String {
    let run = format!("run=\"{}\"", escape_label(run));
    let of_run = format!(r#"{run},benchmark="{}",what="{}""#, escape_label(title), escape_label(&state.what));
    let rate = state.bytes_per_second;
    // Name, type, help, labels, value: only counters end in `_total`.
    let metrics: [(&str, &str, &str, &str, Option<f64>); 8] = [
        ("run_info", "gauge", "The measurement, in labels; always 1.", &of_run, Some(1.0)),
        ("start_time_seconds", "gauge", "When the run began, Unix time.", &run, Some(started)),
        ("progress_ratio", "gauge", "Completed share of the plan, by time.", &run, Some(state.share)),
        ("elapsed_seconds", "gauge", "Time since the run began.", &run, Some(state.elapsed_seconds)),
        ("remaining_seconds", "gauge", "Estimated time to the end of the run.", &run, Some(state.left_seconds)),
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
    shown.collect()
}

const FINISHED: &str = "1 once the plan is complete; stays 0 if a signal or an error ends the run.";

impl ProgressReporter for MetricsFile {
    fn part(&mut self, now: &ProgressSnapshot<'_>) {
        let state = &mut self.state;
        state.what.clone_from(&now.standing.what);
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
        state.what.clear();
        self.update();
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{moved, standing};
    use super::*;
    use crate::frame::run::ProgressReport;

    #[test]
    fn the_file_is_replaced_and_as_the_format_says() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("run.prom");
        let mut metrics = MetricsFile::create(&path, "b_eff_io on 2 ranks").unwrap();
        let begin = std::fs::read_to_string(&path).unwrap();
        assert!(begin.ends_with("beff_raw_finished{run=\"run\"} 0\n"), "{begin}");
        let standing = ProgressReport {
            what: "\"a\\b\nc\"".into(),
            transferred: vec![moved("posix", 3_000_000)],
            ..standing("read")
        };
        metrics.part(&ProgressSnapshot { standing: &standing, elapsed_seconds: 1.0, left_seconds: 3.0, share: 0.25 });
        // The collector is another user; the umask of the run does not count.
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        // Not yet: the previous write was just now.
        assert_eq!(std::fs::read_to_string(&path).unwrap(), begin);
        metrics.end(FinalProgress { elapsed_seconds: 4.0, share: 1.0, is_complete: true });
        insta::assert_snapshot!(std::fs::read_to_string(&path)
            .unwrap()
            .replace(&metrics.started.to_string(), "STARTED"));
        let text = exposition_text("r\"", "t", 0.0, &MetricsSample { what: standing.what, ..MetricsSample::default() });
        assert!(text.contains(r#"run="r\"",benchmark="t",what="\"a\\b\nc\""} 1"#), "{text}");
        // No temporary file is left.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        drop(directory);
        metrics.update();
        assert!(metrics.broken);
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert!(MetricsFile::create(directory.path(), "t").is_err());
        assert!(MetricsFile::create(&directory.path().join("none/run.prom"), "t").is_err());
        let path = directory.path().join("run1.json");
        for (foreign, refused) in [
            ("{\"program\": 1}\n", true),
            ("#", true),
            ("", false),
            ("# TYPE beff_raw_run info\n", false),
            ("# HELP beff_raw_run_info What\n", false),
        ] {
            std::fs::write(&path, foreign).unwrap();
            assert_eq!(MetricsFile::create(&path, "t").is_err(), refused, "{foreign:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap() == foreign, refused);
        }
    }
}
