//! `beff-raw report --html` and `--svg`: results as a page for a browser, and its pictures as files.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;

use super::results::open;
use crate::frame::command::publish;
use crate::frame::error::{Exit, UsageError};
use crate::frame::plain::line;
use crate::frame::report::html::{self, raw, Picture, Section, Source};
use crate::frame::report::picture::Point;

/// Stdout instead of a file.
const STDOUT: &str = "-";

/// Writes the page, the pictures, or both.
///
/// # Errors
/// A file that cannot be read or is no result; a name that is taken; whatever keeps a file from being written.
pub(super) fn write(files: &[PathBuf], page: Option<&Path>, pictures: Option<&Path>) -> anyhow::Result<Exit> {
    // Before the work: a name that is taken.
    let to_file = page.filter(|path| *path != Path::new(STDOUT));
    if let Some(path) = to_file.filter(|path| path.symlink_metadata().is_ok()) {
        return Err(taken(path).into());
    }
    let (sources, common) = read(files)?;
    let named = if pictures.is_some() { named(&sources, &common) } else { Vec::new() };
    if let Some(directory) = pictures {
        check(directory, &named)?;
    }
    let mut written = Vec::new();
    if let Some(path) = page {
        let text = html::page(&sources, &common);
        match to_file {
            Some(path) => written.push(create(path, &text)?),
            None => drop(publish(text.as_bytes())?),
        }
        debug_assert!(to_file.is_some() || path == Path::new(STDOUT));
    }
    if let Some(directory) = pictures {
        for (name, picture) in &named {
            create(&directory.join(name), &html::alone(picture))?;
        }
        written.push(format!("{} pictures in {}", named.len(), directory.display()));
    }
    if !written.is_empty() {
        eprintln!("beff-raw: wrote {}", line(&written.join(", ")));
    }
    Ok(Exit::Ok)
}

/// The runs, and what is shown of all of them together.
fn read(files: &[PathBuf]) -> anyhow::Result<(Vec<Source>, Vec<Section>)> {
    let mut sources = Vec::new();
    let mut points: Vec<Point> = Vec::new();
    let mut left = raw::MOST_BYTES;
    for path in files {
        let (_, report) = open(path)?;
        let records = report.records(left);
        left -= records.as_ref().map_or(0, Vec::len);
        points.extend(report.over_ranks());
        sources.push(Source { run: report.page(), file: path.display().to_string(), records });
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
        let own = source.run.sections.iter().flat_map(Section::pictures);
        all.extend(own.map(|p| (format!("{of}{}-{}", source.run.benchmark, p.name), p)));
    }
    let mut names: Vec<String> = Vec::new();
    for (name, _) in &mut all {
        // Two backends may be one name when it is a name of a file.
        let same = names.iter().filter(|known| *known == name).count();
        names.push(name.clone());
        name.push_str(&if same > 0 { format!("-{}.svg", same + 1) } else { ".svg".to_owned() });
    }
    all
}

/// The directory is there, and none of the names is taken.
fn check(directory: &Path, named: &[(String, &Picture)]) -> anyhow::Result<()> {
    let made = match fs::create_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => Ok(()),
        other => other,
    };
    made.map_err(|e| anyhow!("cannot make the directory {}: {e}. Give another --svg", directory.display()))?;
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
