//! `beff-raw report --html`, `--svg`, `--gnuplot`: results as a page for a browser, and its pictures as files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::anyhow;

use super::results::open;
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::plain::line;
use crate::frame::report::html::{self, raw, Source};
use crate::frame::report::model::Section;
use crate::frame::report::picture::{Picture, Point};
use crate::frame::report::Level;

/// Stdout instead of a file.
const STDOUT: &str = "-";

/// What is to be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// The page.
    pub page: Option<&'a Path>,
    /// Directory of the pictures.
    pub svg: Option<&'a Path>,
    /// Directory of their scripts.
    pub gnuplot: Option<&'a Path>,
}

impl Wanted<'_> {
    /// True if any of it is.
    pub fn is_anything(&self) -> bool {
        self.page.is_some() || self.svg.is_some() || self.gnuplot.is_some()
    }
}

/// Writes the page, the pictures, their scripts.
///
/// # Errors
/// A file that cannot be read or is no result; a name that is taken; whatever keeps a file from being written.
pub(super) fn write(files: &[PathBuf], wanted: Wanted<'_>) -> anyhow::Result<Exit> {
    // Before the work: a name that is taken.
    let to_file = wanted.page.filter(|path| *path != Path::new(STDOUT));
    if let Some(path) = to_file.filter(|path| path.symlink_metadata().is_ok()) {
        return Err(taken(path).into());
    }
    let (sources, common) = read(files)?;
    let named = if wanted.svg.is_some() || wanted.gnuplot.is_some() { named(&sources, &common) } else { Vec::new() };
    let mut texts = Vec::new();
    if let Some(directory) = wanted.svg {
        texts.push((directory, "pictures", all(&named, ".svg", |picture| Some(html::alone(picture)))));
    }
    if let Some(directory) = wanted.gnuplot {
        texts.push((directory, "scripts of gnuplot", all(&named, ".gp", html::gnuplot)));
    }
    for (directory, _, texts) in &texts {
        check(directory, texts)?;
    }
    let mut written = Vec::new();
    if let Some(path) = wanted.page {
        let text = html::page(&sources, &common);
        match to_file {
            Some(path) => written.push(create(path, &text)?),
            None => drop(publish(text.as_bytes())?),
        }
        debug_assert!(to_file.is_some() || path == Path::new(STDOUT));
    }
    for (directory, what, texts) in &texts {
        for (name, text) in texts {
            create(&directory.join(name), text)?;
        }
        written.push(format!("{} {what} in {}", texts.len(), directory.display()));
    }
    if !written.is_empty() {
        eprintln!("beff-raw: wrote {}", line(&written.join(", ")));
    }
    Ok(Exit::Ok)
}

/// Files of all pictures that have such a text.
fn all(named: &[(String, &Picture)], ending: &str, text: impl Fn(&Picture) -> Option<String>) -> Vec<(String, String)> {
    named.iter().filter_map(|(name, picture)| Some((format!("{name}{ending}"), text(picture)?))).collect()
}

/// The runs, and what is shown of all of them together.
fn read(files: &[PathBuf]) -> anyhow::Result<(Vec<Source>, Vec<Section>)> {
    let mut sources = Vec::new();
    let mut points: Vec<Point> = Vec::new();
    let mut left = raw::MOST_BYTES;
    for path in files {
        let (_, report) = open(path)?;
        let (model, records) = thread::scope(|scope| {
            // Both take long with many records.
            let records = scope.spawn(|| report.records(left));
            let model = report.model(Level::Page);
            (model, records.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        left -= records.as_ref().map_or(0, Vec::len);
        points.extend(report.over_ranks());
        sources.push(Source { model, file: path.display().to_string(), records });
        // Millions of values: nobody waits until they are freed.
        drop(thread::spawn(move || drop(report)));
    }
    let common = if files.len() > 1 { html::over_ranks(&points, files.len()) } else { None };
    Ok((sources, common.into_iter().collect()))
}

/// All pictures with names of files: the run if there are several, the benchmark, what is drawn.
fn named<'a>(sources: &'a [Source], common: &'a [Section]) -> Vec<(String, &'a Picture)> {
    let mut all: Vec<(String, &Picture)> =
        common.iter().flat_map(Section::pictures).map(|p| (format!("all-{}", p.name), p)).collect();
    for (number, source) in sources.iter().enumerate() {
        let stem = Path::new(&source.file).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let of = if sources.len() > 1 { format!("{}-{}-", number + 1, html::slug(&stem)) } else { String::new() };
        let own = source.model.sections.iter().flat_map(Section::pictures);
        all.extend(own.map(|p| (format!("{of}{}-{}", source.model.benchmark, p.name), p)));
    }
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &mut all {
        // Two backends may be one name when it is a name of a file.
        let same = names.iter().filter(|known| *known == name).count();
        names.push(name.clone());
        if same > 0 {
            name.push_str(&format!("-{}", same + 1));
        }
    }
    all
}

/// The directory is there, and none of the names is taken.
fn check(directory: &Path, named: &[(String, String)]) -> anyhow::Result<()> {
    let made = match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        other => other,
    };
    made.map_err(|e| anyhow!("cannot make the directory {}: {e}. Give another directory", directory.display()))?;
    let paths = named.iter().map(|(name, _)| directory.join(name));
    match paths.into_iter().find(|path| path.symlink_metadata().is_ok()) {
        Some(path) => Err(taken(&path).into()),
        None => Ok(()),
    }
}

fn taken(path: &Path) -> UsageError {
    UsageError::new(
        format!("{} exists already and is not overwritten", path.display()),
        "Move it away, or give another name.",
    )
}

/// Makes the file; what it is called and how long it is.
fn create(path: &Path, text: &str) -> anyhow::Result<String> {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    let mut file = match file {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(taken(path).into()),
        other => other.map_err(|e| anyhow!("cannot create {}: {e}. Give another name", path.display()))?,
    };
    if let Err(error) = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()) {
        // Ours, and half a page is none.
        let _ = fs::remove_file(path);
        return Err(anyhow!("cannot write {}: {error}. Make room, or give another name", path.display()));
    }
    Ok(format!("{} ({} kB)", path.display(), text.len().div_ceil(1000)))
}
