//! A driver whose files log every call and answer by the script; their data may go through a real driver.

use std::path::PathBuf;

use beff_backends::error::Cause;
use beff_backends::{
    BackendError, Batch, Batches, Beside, Direction, Driver, DriverOptions, DriverRow, InForce, Latency, OpenFile,
    OpenRequest, Pattern, Protocol, Result, Ring, Submitted, Support,
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

    fn write_batch(&mut self, batch: Batch, ring: &Ring, latency: &mut Latency) -> Result<u64> {
        let (bytes, answer) = self.batch("write", batch)?;
        match &mut self.inner {
            Some(inner) if answer != Some(Answer::Nothing) => {
                inner.write(Batches::new(batch, latency), ring)?;
            }
            _ => Self::timed(latency, batch.calls),
        }
        Ok(bytes)
    }

    fn read_batch(&mut self, batch: Batch, ring: &mut Ring, latency: &mut Latency) -> Result<u64> {
        let (bytes, answer) = self.batch("read", batch)?;
        match &mut self.inner {
            Some(inner) if answer != Some(Answer::Nothing) => {
                inner.read(Batches::new(batch, latency), ring)?;
            }
            _ => Self::timed(latency, batch.calls),
        }
        if let Some(Answer::Flip(call)) = answer {
            ring.window_mut(self.pattern().stream_position(call), 8)[0] ^= 0x10;
        }
        Ok(bytes)
    }
}

/// Batches with as many chunks pending in between as the script says.
fn pulled(work: Batches<'_>, mut run: impl FnMut(Batch, &mut Latency) -> Result<u64>) -> Result<u64> {
    let Batches { mut batch, latency, beside } = work;
    match beside {
        Beside::Nothing => run(batch, latency),
        Beside::Computation(computation) => {
            passes("begin", "");
            computation();
            run(batch, latency)
        }
        Beside::Next(next) => {
            let pending = with(|script| script.flows.clone()).unwrap_or_default();
            let (mut bytes, mut asked) = (0, 0);
            loop {
                bytes += run(batch, latency)?;
                let chunks = pending.get(asked).or(pending.last()).copied().unwrap_or(0);
                let Some(calls) = next(chunks) else { return Ok(bytes) };
                asked += 1;
                batch = Batch { first_call: batch.first_call + batch.calls, calls };
            }
        }
    }
}

impl OpenFile for FakeFile {
    fn support(&self, pattern: &Pattern) -> Support {
        let scripted = with(|script| script.unsupported.clone());
        let unsupported = scripted.or_else(|| self.inner.as_ref().and_then(|inner| inner.support(pattern).reason()));
        Support::of(unsupported, with(|script| script.meets).unwrap_or_else(|| pattern.kind.is_collective()))
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

    fn preallocate(&mut self, batch: Batch) -> Result<u64> {
        let detail = format!("{}+{}", batch.first_call, batch.calls);
        fail("preallocate", &self.path, passes("preallocate", &detail))?;
        Ok(with(|script| script.calls_with_room).unwrap_or(u64::MAX))
    }

    fn trim(&mut self) -> Result<Option<String>> {
        fail("trim", &self.path, passes("trim", ""))?;
        Ok(with(|script| script.without_room.clone()))
    }

    fn submitted(&self) -> Option<Submitted> {
        with(|script| script.submitted).map(|_| Submitted { registered: self.submitted, plain: 10 * self.submitted })
    }

    fn protocol(&self) -> Protocol {
        with(|script| Protocol { lockstep: script.keeps_step, pipelined: script.flows.is_some() })
    }

    fn write(&mut self, work: Batches<'_>, ring: &Ring) -> Result<u64> {
        pulled(work, |batch, latency| self.write_batch(batch, ring, latency))
    }

    fn read(&mut self, work: Batches<'_>, ring: &mut Ring) -> Result<u64> {
        pulled(work, |batch, latency| self.read_batch(batch, ring, latency))
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
