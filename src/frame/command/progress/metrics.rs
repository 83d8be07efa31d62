//! A text file in the exposition format of Prometheus, version 0.0.4, for the collectors of text files that monitoring systems have;
//! the collector of the node exporter reads no OpenMetrics. It is replaced as a whole, so nobody reads half of it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::teller::{End, Moment, Teller};
use crate::frame::command::complain;

/// Between two writes: a file system is no clock.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Metrics {
    path: PathBuf,
    /// The name of the file without its extension.
    run: String,
    title: String,
    started: f64,
    state: State,
    written: Option<Instant>,
    broken: bool,
}

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq)]
struct State {
    what: String,
    share: f64,
    elapsed_seconds: f64,
    left_seconds: f64,
    moved_bytes: u64,
    /// Of the last part.
    bytes_per_second: Option<f64>,
    is_finished: bool,
}

impl Metrics {
    /// Begins the file; one of an earlier run is replaced, and nothing else.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn create(path: &Path, title: &str) -> io::Result<Self> {
        let started = Timestamp::now().as_millisecond() as f64 / 1e3;
        let mut this = Self {
            path: path.to_owned(),
            run: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
            title: title.to_owned(),
            started,
            state: State::default(),
            written: None,
            broken: false,
        };
        refuse_foreign(path)?;
        this.write()?;
        Ok(this)
    }

    fn write(&mut self) -> io::Result<()> {
        let directory = self.path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Readable for the collector, which is somebody else.
        let mut file = tempfile::Builder::new()
            .prefix(".beff-raw-metrics")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(directory)?;
        file.write_all(text(&self.run, &self.title, self.started, &self.state).as_bytes())?;
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
            complain(&format!("--metrics {path} cannot be written any more: {e}. The run goes on without"));
        }
    }
}

/// With one of these a file of metrics begins: with the second, those of earlier versions.
const BEGINS: [&str; 2] = ["# HELP beff_raw_", "# TYPE beff_raw_"];

/// A file that no run has written may be a result by mistake.
fn refuse_foreign(path: &Path) -> io::Result<()> {
    let mut begin = [0; BEGINS[0].len()];
    let is_own = match std::fs::symlink_metadata(path) {
        // What is no file is refused where it would be replaced, and never opened: a pipe would wait.
        Ok(there) if there.is_file() && there.len() > 0 => {
            File::open(path)?.read_exact(&mut begin).is_ok() && BEGINS.iter().any(|known| begin == *known.as_bytes())
        }
        _ => true,
    };
    let foreign = || io::Error::new(io::ErrorKind::AlreadyExists, "there is a file that no run has written as metrics");
    is_own.then_some(()).ok_or_else(foreign)
}

fn replace(file: NamedTempFile, path: &Path) -> io::Result<()> {
    // A directory, a pipe or a device of this name is not ours to replace.
    match std::fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something else than a file"))
        }
        _ => {}
    }
    file.persist(path).map(drop).map_err(|e| e.error)
}

/// A label's value as the format wants it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// `run` tells the runs apart whose files a collector reads together: two samples of the same name and labels are an error.
fn text(run: &str, title: &str, started: f64, state: &State) -> String {
    let run = format!("run=\"{}\"", label(run));
    let of_run = format!(r#"{run},benchmark="{}",what="{}""#, label(title), label(&state.what));
    let rate = state.bytes_per_second;
    // Name, type, help, labels, value: counters and nothing else end in `_total`.
    let metrics: [(&str, &str, &str, &str, Option<f64>); 8] = [
        ("run_info", "gauge", "What is measured, in labels; always 1.", &of_run, Some(1.0)),
        ("start_time_seconds", "gauge", "When the run began, Unix time.", &run, Some(started)),
        ("progress_ratio", "gauge", "How much of what is planned is done, by time.", &run, Some(state.share)),
        ("elapsed_seconds", "gauge", "Time since the run began.", &run, Some(state.elapsed_seconds)),
        (
            "remaining_seconds",
            "gauge",
            "Time until it ends, by what was measured so far.",
            &run,
            Some(state.left_seconds),
        ),
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

const FINISHED: &str = "1 once all that was planned has been measured; stays 0 if a signal or an error ends the run.";

impl Teller for Metrics {
    fn part(&mut self, now: &Moment<'_>) {
        let state = &mut self.state;
        state.what.clone_from(&now.standing.what);
        (state.share, state.elapsed_seconds, state.left_seconds) = (now.share, now.elapsed_seconds, now.left_seconds);
        for last in now.standing.last.iter().filter(|last| last.seconds > 0.0) {
            state.moved_bytes = state.moved_bytes.saturating_add(last.bytes);
            state.bytes_per_second = Some(last.bytes as f64 / last.seconds);
        }
        if self.written.is_none_or(|at| at.elapsed() >= PAUSE) {
            self.update();
        }
    }

    fn end(&mut self, end: End) {
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
    use crate::frame::run::Standing;

    #[test]
    fn the_file_is_replaced_and_as_the_format_says() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("run.prom");
        let mut metrics = Metrics::create(&path, "b_eff_io on 2 ranks").unwrap();
        let begin = std::fs::read_to_string(&path).unwrap();
        assert!(begin.ends_with("beff_raw_finished{run=\"run\"} 0\n"), "{begin}");
        let standing =
            Standing { what: "\"a\\b\nc\"".into(), last: vec![moved("posix", 3_000_000)], ..standing("read") };
        metrics.part(&Moment { standing: &standing, elapsed_seconds: 1.0, left_seconds: 3.0, share: 0.25 });
        // Not yet: the last time was just now.
        assert_eq!(std::fs::read_to_string(&path).unwrap(), begin);
        metrics.end(End { elapsed_seconds: 4.0, share: 1.0, is_complete: true });
        insta::assert_snapshot!(std::fs::read_to_string(&path)
            .unwrap()
            .replace(&metrics.started.to_string(), "STARTED"));
        let text = text("r\"", "t", 0.0, &State { what: standing.what, ..State::default() });
        assert!(text.contains(r#"run="r\"",benchmark="t",what="\"a\\b\nc\""} 1"#), "{text}");
        // Nothing is left of the writing.
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        drop(directory);
        metrics.update();
        assert!(metrics.broken);
    }

    #[test]
    fn what_cannot_be_replaced_is_refused() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        assert!(Metrics::create(directory.path(), "t").is_err());
        assert!(Metrics::create(&directory.path().join("none/run.prom"), "t").is_err());
        let path = directory.path().join("run1.json");
        for (foreign, refused) in [
            ("{\"program\": 1}\n", true),
            ("#", true),
            ("", false),
            ("# TYPE beff_raw_run info\n", false),
            ("# HELP beff_raw_run_info What\n", false),
        ] {
            std::fs::write(&path, foreign).unwrap();
            assert_eq!(Metrics::create(&path, "t").is_err(), refused, "{foreign:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap() == foreign, refused);
        }
    }
}
