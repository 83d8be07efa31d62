//! A profile as text: `cargo run -p beff-trace --example show FILE [WIDTH]`.
#![allow(clippy::print_stdout)]

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name a profile")?;
    let width = arguments.next().map_or(Ok(100), |width| width.parse())?;
    let summary = beff_trace::summary::summarize(std::path::Path::new(&path))?;
    print!("{}\n{}", summary.text(width), summary.details(width));
    Ok(())
}
