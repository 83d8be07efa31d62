//! Prints raw files of processes: `cargo run -p beff-trace --example raw -- rank-0.beff`.

use std::io::Write;

use beff_trace::raw::{Event, ProcessFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for path in std::env::args_os().skip(1) {
        let file = ProcessFile::open(path.as_ref())?;
        writeln!(out, "{:?}", file.head())?;
        let mut events = file.events();
        for event in events.by_ref() {
            match event {
                Event::Call(call) => writeln!(out, "{call:?}")?,
                other => writeln!(out, "{other:?}")?,
            }
        }
        writeln!(out, "{:?}", events.end())?;
    }
    Ok(())
}
