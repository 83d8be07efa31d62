//! A text file in the format of OpenMetrics 1.0, for the collectors of text files that monitoring systems have. It is replaced as a
//! whole, so nobody reads half of it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tempfile::NamedTempFile;

use super::{Moment, Teller};
use crate::frame::command::complain;

/// Between two writes: a file system is no clock.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Metrics {
    path: PathBuf,
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
    finished: bool,
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
        file.write_all(text(&self.title, self.started, &self.state).as_bytes())?;
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

/// With this a file of metrics begins.
const BEGIN: &str = "# TYPE beff_raw_";

/// A file that no run has written may be a result by mistake.
fn refuse_foreign(path: &Path) -> io::Result<()> {
    let mut begin = [0; BEGIN.len()];
    let is_own = match std::fs::symlink_metadata(path) {
        // What is no file is refused where it would be replaced, and never opened: a pipe would wait.
        Ok(there) if there.is_file() && there.len() > 0 => {
            File::open(path)?.read_exact(&mut begin).is_ok() && begin == *BEGIN.as_bytes()
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

fn text(title: &str, started: f64, state: &State) -> String {
    let mut out = String::new();
    let mut metric = |name: &str, kind: &str, unit: &str, help: &str, sample: String| {
        out += &format!("# TYPE beff_raw_{name} {kind}\n");
        if !unit.is_empty() {
            out += &format!("# UNIT beff_raw_{name} {unit}\n");
        }
        out += &format!("# HELP beff_raw_{name} {help}\n{sample}\n");
    };
    let (title, what) = (label(title), label(&state.what));
    let of_run = format!("beff_raw_run_info{{benchmark=\"{title}\",what=\"{what}\"}} 1");
    metric("run", "info", "", "What is measured.", of_run);
    let gauge = |name: &str, value: f64| format!("beff_raw_{name} {value}");
    metric(
        "start_time_seconds",
        "gauge",
        "seconds",
        "When the run began, Unix time.",
        gauge("start_time_seconds", started),
    );
    metric(
        "progress_ratio",
        "gauge",
        "ratio",
        "How much of the run is done, by time.",
        gauge("progress_ratio", state.share),
    );
    metric(
        "elapsed_seconds",
        "gauge",
        "seconds",
        "Time since the run began.",
        gauge("elapsed_seconds", state.elapsed_seconds),
    );
    let left = gauge("remaining_seconds", state.left_seconds);
    metric("remaining_seconds", "gauge", "seconds", "Time until it ends, by what was measured so far.", left);
    let moved = format!("beff_raw_moved_bytes_total {}", state.moved_bytes);
    metric("moved_bytes", "counter", "bytes", "Bytes moved by all ranks in the clock.", moved);
    if let Some(rate) = state.bytes_per_second {
        let name = "last_rate_bytes_per_second";
        metric(name, "gauge", "", "Rate of the last part that moved data.", gauge(name, rate));
    }
    let finished = format!("beff_raw_finished {}", u8::from(state.finished));
    metric("finished", "gauge", "", "1 once nothing more is measured.", finished);
    out + "# EOF\n"
}

impl Teller for Metrics {
    fn part(&mut self, now: &Moment<'_>) {
        let state = &mut self.state;
        state.what.clone_from(&now.standing.what);
        (state.share, state.elapsed_seconds, state.left_seconds) = (now.share(), now.elapsed_seconds, now.left_seconds);
        for last in now.standing.last.iter().filter(|last| last.seconds > 0.0) {
            state.moved_bytes = state.moved_bytes.saturating_add(last.bytes);
            state.bytes_per_second = Some(last.bytes as f64 / last.seconds);
        }
        if self.written.is_none_or(|at| at.elapsed() >= PAUSE) {
            self.update();
        }
    }

    fn end(&mut self, elapsed_seconds: f64) {
        let state = &mut self.state;
        (state.share, state.elapsed_seconds, state.left_seconds) = (1.0, elapsed_seconds, 0.0);
        state.finished = true;
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
    fn the_file_is_replaced_and_ends_as_the_format_says() {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = directory.path().join("run.prom");
        let mut metrics = Metrics::create(&path, "b_eff_io on 2 ranks").unwrap();
        let begin = std::fs::read_to_string(&path).unwrap();
        assert!(begin.ends_with("# EOF\n") && begin.contains("beff_raw_finished 0\n"), "{begin}");
        let standing =
            Standing { what: "\"a\\b\nc\"".into(), last: vec![moved("posix", 3_000_000)], ..standing("read") };
        metrics.part(&Moment { standing: &standing, elapsed_seconds: 1.0, left_seconds: 3.0 });
        // Not yet: the last time was just now.
        assert_eq!(std::fs::read_to_string(&path).unwrap(), begin);
        metrics.end(4.0);
        insta::assert_snapshot!(std::fs::read_to_string(&path)
            .unwrap()
            .replace(&metrics.started.to_string(), "STARTED"));
        assert!(text("t", 0.0, &State { what: standing.what, ..State::default() }).contains(r#"what="\"a\\b\nc\"""#));
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
        for (foreign, refused) in
            [("{\"program\": 1}\n", true), ("#", true), ("", false), ("# TYPE beff_raw_run info\n", false)]
        {
            std::fs::write(&path, foreign).unwrap();
            assert_eq!(Metrics::create(&path, "t").is_err(), refused, "{foreign:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap() == foreign, refused);
        }
    }
}
