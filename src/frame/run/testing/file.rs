//! A driver whose files log every call and answer by the script; their data may go through a real driver.

use std::path::PathBuf;

use beff_backends::error::Cause;
use beff_backends::{
    BackendError, Batch, Direction, Driver, DriverOptions, DriverRow, InForce, Latency, OpenFile, OpenRequest, Pattern,
    Result, Ring, Submitted,
};

use super::script::{moves, passes, with, Answer};

/// Opens fake files.
pub struct FakeDriver {
    /// What moves their data; None: nothing does.
    inner: Option<Box<dyn Driver>>,
    /// What is said of it when a file is opened.
    made: String,
}

/// A driver for a run: with `data` everything is stored by posix.
pub fn driver(data: bool) -> Box<dyn Driver> {
    let posix = || beff_backends::driver("posix").map(|row| (row.make)(&DriverOptions::default()));
    Box::new(FakeDriver { inner: if data { posix() } else { None }, made: String::new() })
}

/// The row of a real driver, whose files are testing and tell of the options that they were made with.
pub fn row(name: &str) -> &'static DriverRow {
    let make = |options: &DriverOptions| -> Box<dyn Driver> {
        let made = format!(" direct {:?}, depth {}", options.direct, options.queue_depth);
        Box::new(FakeDriver { inner: None, made })
    };
    let real = beff_backends::driver(name).unwrap_or_else(|| panic!("no driver {name}"));
    Box::leak(Box::new(DriverRow { make, ..*real }))
}

struct FakeFile {
    inner: Option<Box<dyn OpenFile>>,
    path: PathBuf,
    pattern: Option<Pattern>,
    submitted: u64,
}

impl Driver for FakeDriver {
    fn open(&self, request: &OpenRequest<'_>) -> Result<Box<dyn OpenFile>> {
        let path = request.path.to_path_buf();
        // With the directory of its backend.
        let parts: Vec<_> = path.components().rev().take(2).map(|part| part.as_os_str().to_string_lossy()).collect();
        let name = parts.into_iter().rev().collect::<Vec<_>>().join("/");
        let detail = format!("{:?} {name} of {} {}", request.mode, request.comm.size(), named(request.hints));
        fail("open", &path, passes("open", &format!("{}{}", detail.trim_end(), self.made)))?;
        let inner = self.inner.as_ref().map(|driver| driver.open(request)).transpose()?;
        Ok(Box::new(FakeFile { inner, path, pattern: None, submitted: 0 }))
    }

    fn provide(&self, ranks: u64, hosts: u64) {
        passes("provide", &format!("{ranks} on {hosts}"));
    }
}

fn named(hints: &[(String, String)]) -> String {
    hints.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn fail(call: &'static str, path: &std::path::Path, answer: Option<Answer>) -> Result<()> {
    match answer {
        Some(Answer::Fail) => Err(BackendError::new(call, path, Cause::Io, "as the script says")),
        Some(Answer::Full) => Err(BackendError::new(call, path, Cause::NoSpace, "as the script says")),
        _ => Ok(()),
    }
}

impl FakeFile {
    fn pattern(&self) -> Pattern {
        self.pattern.unwrap_or_else(|| panic!("a batch before prepare"))
    }

    /// What a batch of the script moves, and whether anything is done.
    fn batch(&mut self, call: &'static str, batch: Batch) -> Result<(u64, Option<Answer>)> {
        let answer = passes(call, &format!("{}+{}", batch.first_call, batch.calls));
        fail(call, &self.path, answer)?;
        if self.pattern.is_none() {
            return Err(BackendError::new(call, &self.path, Cause::Io, "nothing is prepared"));
        }
        self.submitted += batch.calls * with(|script| script.submitted.unwrap_or(0));
        let bytes = match answer {
            Some(Answer::Moved(bytes)) => bytes,
            _ => batch.calls * self.pattern().call_bytes(),
        };
        if answer != Some(Answer::Nothing) {
            moves(bytes, call == "write");
        }
        Ok((bytes, answer))
    }

    fn timed(latency: &mut Latency, calls: u64) {
        for _ in 0..calls {
            let mark = latency.begin();
            latency.end(mark);
        }
    }

    fn under_way(number: usize) -> u64 {
        let all = with(|script| script.flows.clone()).unwrap_or_default();
        all.get(number).or(all.last()).copied().unwrap_or(0)
    }
}

impl OpenFile for FakeFile {
    fn unsupported(&self, pattern: &Pattern) -> Option<String> {
        let scripted = with(|script| script.unsupported.clone());
        scripted.or_else(|| self.inner.as_ref().and_then(|inner| inner.unsupported(pattern)))
    }

    fn prepare(
        &mut self,
        pattern: &Pattern,
        direction: Direction,
        ring: &mut Ring,
        hints: &[(String, String)],
    ) -> Result<InForce> {
        let (rank, calls) = (pattern.rank, pattern.max_calls);
        let detail = format!("{direction:?} {}x{} of {rank} {}", calls, pattern.call_bytes(), named(hints));
        fail("prepare", &self.path, passes("prepare", detail.trim_end()))?;
        self.pattern = Some(*pattern);
        let real = self.inner.as_mut().map(|inner| inner.prepare(pattern, direction, ring, hints)).transpose()?;
        let direct = with(|script| script.direct);
        Ok(InForce { strategy: "fake".into(), direct, ..real.unwrap_or_default() })
    }

    fn hints_in_force(&self) -> Result<Vec<(String, String)>> {
        fail("hints", &self.path, passes("hints", ""))?;
        Ok(with(|script| script.granted.clone()))
    }

    fn make_room(&mut self, batch: Batch) -> Result<()> {
        let detail = format!("{}+{}", batch.first_call, batch.calls);
        fail("make room", &self.path, passes("make room", &detail))
    }

    fn calls_with_room(&self) -> u64 {
        with(|script| script.calls_with_room).unwrap_or(u64::MAX)
    }

    fn give_back(&mut self) -> Result<()> {
        fail("give back", &self.path, passes("give back", ""))
    }

    fn submitted(&self) -> Option<Submitted> {
        with(|script| script.submitted).map(|_| Submitted { registered: self.submitted, plain: 10 * self.submitted })
    }

    fn meets(&self, pattern: &Pattern) -> bool {
        with(|script| script.meets).unwrap_or_else(|| pattern.kind.is_collective())
    }

    fn keeps_step(&self) -> bool {
        with(|script| script.keeps_step)
    }

    fn without_room(&self) -> Option<String> {
        with(|script| script.without_room.clone())
    }

    fn write(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        let (bytes, answer) = self.batch("write", batch)?;
        match &mut self.inner {
            Some(inner) if answer != Some(Answer::Nothing) => {
                inner.write(batch, ring, latency)?;
            }
            _ => Self::timed(latency, batch.calls),
        }
        Ok(bytes)
    }

    fn read(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let (bytes, answer) = self.batch("read", batch)?;
        match &mut self.inner {
            Some(inner) if answer != Some(Answer::Nothing) => {
                inner.read(batch, ring, latency)?;
            }
            _ => Self::timed(latency, batch.calls),
        }
        if let Some(Answer::Flip(call)) = answer {
            ring.window_mut(self.pattern().stream_position(call), 8)[0] ^= 0x10;
        }
        Ok(bytes)
    }

    fn flows(&self) -> bool {
        with(|script| script.flows.is_some())
    }

    fn write_on(
        &mut self,
        mut batch: Batch,
        ring: &Ring,
        latency: &mut Latency,
        next: beff_backends::Next<'_>,
    ) -> Result<u64> {
        let (mut bytes, mut asked) = (0, 0);
        loop {
            bytes += self.write(batch, ring, latency)?;
            let Some(calls) = next(Self::under_way(asked)) else { return Ok(bytes) };
            asked += 1;
            batch = Batch { first_call: batch.first_call + batch.calls, calls };
        }
    }

    fn read_on(
        &mut self,
        mut batch: Batch,
        ring: &mut Ring,
        latency: &mut Latency,
        next: beff_backends::Next<'_>,
    ) -> Result<u64> {
        let (mut bytes, mut asked) = (0, 0);
        loop {
            bytes += self.read(batch, ring, latency)?;
            let Some(calls) = next(Self::under_way(asked)) else { return Ok(bytes) };
            asked += 1;
            batch = Batch { first_call: batch.first_call + batch.calls, calls };
        }
    }

    fn write_overlapped(&mut self, batch: Batch, ring: &Ring, during: &mut dyn FnMut()) -> Result<u64> {
        passes("begin", "");
        during();
        self.write(batch, ring, &mut Latency::off())
    }

    fn read_overlapped(&mut self, batch: Batch, ring: &mut Ring, during: &mut dyn FnMut()) -> Result<u64> {
        passes("begin", "");
        during();
        self.read(batch, ring, &mut Latency::off())
    }

    fn sync(&mut self) -> Result<()> {
        fail("sync", &self.path, passes("sync", ""))?;
        self.inner.as_mut().map_or(Ok(()), |inner| inner.sync())
    }

    fn close(self: Box<Self>) -> Result<()> {
        let answer = passes("close", "");
        let closed = self.inner.map_or(Ok(()), |inner| inner.close());
        fail("close", &self.path, answer).and(closed)
    }
}
