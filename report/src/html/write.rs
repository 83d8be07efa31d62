//! The HTML file: head, style and sections.

use std::fmt::Write;

use super::escape::{escape, slug};
use super::records::base64;
use super::{svg, table};
use crate::model::{CorruptionReport, HeadlineValue, LabelledText, ReportBlock, ReportModel, ReportSection, TextStyle};
use crate::picture::Picture;
use crate::render::common_text;
use crate::table::Table;
use crate::text::list as words;

const STYLE: &str = include_str!("page.css");

/// A run and the file it was read from.
#[derive(Debug)]
pub struct PageRun {
    /// Report model.
    pub model: ReportModel,
    /// Name of the file.
    pub file: String,
    /// Compressed records; None if too large for a page.
    pub records: Option<Vec<u8>>,
}

/// Renders a page of these runs; `common` has sections about all of them.
#[must_use]
pub fn page(sources: &[PageRun], common: &[ReportSection]) -> String {
    let heading = match sources {
        [one] => title(&one.model),
        several => format!("{} results of beff-raw", several.len()),
    };
    let mut out = head(&heading);
    let is_one = sources.len() == 1;
    if !is_one {
        let _ = write!(out, "<header><h1>{}</h1>", escape(&heading));
        contents(&mut out, "All", common.iter().map(|s| (format!("all-{}", s.name), s.title.clone())));
        contents(&mut out, "Runs", sources.iter().enumerate().map(|(n, s)| (format!("r{}", n + 1), s.file.clone())));
        out.push_str("</header>\n");
    }
    out.push_str("<main id=main>\n");
    for section in common {
        write_section(&mut out, "all", section, 2);
    }
    for (number, source) in sources.iter().enumerate() {
        run(&mut out, source, &format!("r{}", number + 1), if is_one { 1 } else { 2 });
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Renders a page of these sections without values, criteria and records.
#[must_use]
pub fn section_page(title: &str, facts: &[String], sections: &[ReportSection]) -> String {
    let mut out = head(title);
    let _ = write!(out, "<header><h1>{}</h1><p class=facts>{}</p>", escape(title), escape(&facts.join(" · ")));
    contents(
        &mut out,
        "Sections",
        sections.iter().map(|section| (format!("p-{}", section.name), section.title.clone())),
    );
    out.push_str("</header>\n<main id=main>\n");
    for section in sections {
        write_section(&mut out, "p", section, 2);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Renders a page of these sections for two sheets of paper: without links, and small enough.
#[must_use]
pub fn printed_page(title: &str, facts: &[String], sections: &[ReportSection]) -> String {
    let out = head(title).replacen("</style>", "@page{size:A4;margin:12mm}</style>", 1);
    let mut out = out.replacen("<body>", "<body class=protocol>", 1);
    let _ = write!(out, "<header><h1>{}</h1><p class=facts>{}</p></header>", escape(title), escape(&facts.join(" · ")));
    out.push_str("\n<main id=main>\n");
    for section in sections {
        write_section(&mut out, "p", section, 2);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// HTML head. The content security policy forbids external resources and scripts.
fn head(title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta http-equiv=Content-Security-Policy content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n<meta name=color-scheme content=\"light dark\">\n\
         <meta name=generator content=beff-raw>\n<link rel=icon href=\"data:,\">\n<title>{}</title>\n\
         <style>\n{}{STYLE}</style>\n</head>\n<body>\n<a class=skip href=#main>Skip to the results</a>\n",
        escape(title),
        svg::STYLE
    )
}

fn contents(out: &mut String, label: &str, links: impl Iterator<Item = (String, String)>) {
    let mut links = links.peekable();
    if links.peek().is_none() {
        return;
    }
    let _ = write!(out, "<nav aria-label=\"{}\">", escape(label));
    for (to, text) in links {
        let _ = write!(out, "<a href=\"#{}\">{}</a> ", slug(&to), escape(&text));
    }
    out.push_str("</nav>\n");
}

/// Title: benchmark, hosts and directory.
fn title(model: &ReportModel) -> String {
    let head = &model.head;
    let storage = head.storage.as_ref().map_or_else(String::new, |[path, _]| format!(": {path}"));
    match head.name.as_str() {
        "" => head.program.clone(),
        name => format!("{name} of {}{storage}", head.hosts),
    }
}

/// Start time, ranks, library, file system and its parameters, duration, program and file.
fn facts<'s>(source: &'s PageRun) -> impl Iterator<Item = String> + 's {
    let head = &source.model.head;
    let storage = head.storage.as_ref().map(|[_, place]| place.clone());
    let revision = if head.revision.is_empty() { String::new() } else { format!(" ({})", head.revision) };
    let program = format!("{}{revision}", head.program);
    let facts = [
        Some(head.started_utc.clone()),
        Some(head.ranks.clone()),
        Some(head.library.clone()),
        storage,
        head.sheet.clone(),
    ];
    facts.into_iter().flatten().chain([head.elapsed_time.clone(), program, source.file.clone()])
}

fn run(out: &mut String, source: &PageRun, id: &str, level: u8) {
    let model = &source.model;
    let title = title(model);
    let _ = write!(out, "<article id={id}>\n<h{level}>{}</h{level}>\n<p class=facts>", escape(&title));
    for (place, fact) in facts(source).filter(|fact| !fact.is_empty()).enumerate() {
        let gap = if place > 0 { " · " } else { "" };
        let _ = write!(out, "{gap}<span>{}</span>", escape(&fact));
    }
    out.push_str("</p>\n");
    let errors = model.errors.iter().take(MAX_ERRORS).map(|e| format!("{}. Next step: {}", e.cause, e.next_step));
    for alarm in model.alarms.iter().cloned().chain(errors) {
        let _ = writeln!(out, "<p class=alarm role=alert>{}</p>", escape(&alarm));
    }
    let common = [validity(model), corruption(model.corruption.as_ref()), warnings(model)];
    let sections: Vec<&ReportSection> =
        model.sections.iter().chain(common.iter().flatten()).chain(&model.method).collect();
    let links = sections.iter().map(|s| (format!("{id}-{}", s.name), s.title.clone()));
    contents(out, &title, links.chain([(format!("{id}-records"), "Records".to_owned())]));
    out.push_str("<div class=top><div class=values>\n");
    model.values.iter().for_each(|value| headline(out, value));
    out.push_str("</div><div class=words>\n");
    for (title, texts) in findings(model) {
        let _ = write!(out, "<h{level}>{title}</h{level}>", level = level + 1);
        list(out, &texts);
    }
    out.push_str("</div></div>\n");
    for section in sections {
        write_section(out, id, section, level + 1);
    }
    records(out, source, id, level + 1);
    out.push_str("</article>\n");
}

const MAX_ERRORS: usize = 3;

/// Texts next to the values: unmet criteria, findings, reliability.
fn findings(model: &ReportModel) -> Vec<(&'static str, Vec<String>)> {
    let mut trust: Vec<String> = model.trust.iter().map(|(label, text)| format!("{label}: {text}")).collect();
    trust.extend(model.verification.iter().filter(|_| model.corruption.is_none()).cloned());
    trust.extend(common_text::caveats(model, |_| true));
    if trust.is_empty() {
        trust.push("No warnings.".to_owned());
    }
    let all = [
        ("What was measured", model.head.about.clone()),
        ("Do not compare this with other systems", common_text::missing_criteria(model)),
        ("Caveats of the value", common_text::value_caveats(model)),
        ("What is missing or wrong", model.shortcomings.clone()),
        ("What stands out", model.findings.clone()),
        ("What to trust", trust),
    ];
    all.into_iter().filter(|(_, texts)| !texts.is_empty()).collect()
}

/// Criteria of all values; equal criteria are listed once.
fn validity(model: &ReportModel) -> Option<ReportSection> {
    let mut table = Table::new("Criteria", 2, ["met", "of", "requirement"]).with_words();
    let mut caveats = Vec::new();
    let otherwise = model
        .alternative_assessments
        .iter()
        .map(|(by, judged)| (format!("{by}: "), common_text::additional_criteria(model, judged)));
    for (by, judged) in [(String::new(), model.assessments.clone())].into_iter().chain(otherwise) {
        for (criterion, names) in common_text::criteria_by_subject(&judged) {
            let reached = if criterion.met { "yes" } else { "NO" }.to_owned();
            table.row([reached, format!("{by}{}", words(&names)), criterion.text.clone()]);
        }
        for (caveat, names) in common_text::caveats_by_subject(&judged) {
            caveats.push(format!("{by}{}: {caveat}", words(&names)));
        }
    }
    let note = match &model.assessed_by {
        Some(by) => format!(
            "A value is valid for a comparison with other systems by {by} only if all these criteria are met. Caveats are deviations from \
             rules of this program that no definition has."
        ),
        None => "A value is valid for a comparison with other systems only if all these criteria are met.".to_owned(),
    };
    let mut blocks = if table.is_empty() { Vec::new() } else { vec![ReportBlock::Table(table)] };
    if !caveats.is_empty() {
        blocks.extend([ReportBlock::Text("Caveats:".into()), ReportBlock::List(caveats)]);
    }
    ReportSection::of("validity", "Validity", note, blocks)
}

fn corruption(found: Option<&CorruptionReport>) -> Option<ReportSection> {
    let found = found?;
    let more = (found.more > 0).then(|| format!("and {} more places in the records", found.more));
    let texts = [found.amount.clone()].into_iter().chain(found.locations.iter().cloned()).chain(more);
    ReportSection::of("corruption", found.title, &found.next_step, vec![ReportBlock::List(texts.collect())])
}

/// All errors and warnings, each with its remedy.
fn warnings(model: &ReportModel) -> Option<ReportSection> {
    let mut table = Table::new("Warnings and errors", 0, ["problem", "next step"]).with_words();
    for (begin, trouble) in
        model.errors.iter().map(|e| ("ERROR in ", e)).chain(model.warnings.iter().map(|c| ("", &c.problem)))
    {
        table.row([format!("{begin}{}", trouble.cause), trouble.next_step.clone()]);
    }
    let block =
        if table.is_empty() { ReportBlock::List(vec!["There are none.".into()]) } else { ReportBlock::Table(table) };
    ReportSection::of("warnings", "Warnings", "", vec![block])
}

fn headline(out: &mut String, value: &HeadlineValue) {
    let _ = write!(
        out,
        "<div class=value><p class=label>{}</p><p class=number><strong>{}</strong> {}</p>",
        escape(&value.label),
        escape(&value.value),
        escape(value.unit)
    );
    let (tone, text) = &value.verdict;
    let class = match tone {
        TextStyle::Good => "good",
        TextStyle::Bad => "bad",
        _ => "plain",
    };
    if !text.is_empty() {
        let _ = write!(out, "<p class=\"verdict {class}\">{}</p>", escape(text));
    }
    pairs(out, &value.numbers);
    out.push_str("</div>\n");
}

fn list(out: &mut String, texts: &[String]) {
    out.push_str("<ul>");
    for text in texts {
        let _ = write!(out, "<li>{}", escape(text));
    }
    out.push_str("</ul>\n");
}

fn pairs(out: &mut String, pairs: &[LabelledText]) {
    if pairs.is_empty() {
        return;
    }
    out.push_str("<dl>");
    for (name, value) in pairs {
        let _ = write!(out, "<div><dt>{}<dd>{}</div>", escape(name), escape(value));
    }
    out.push_str("</dl>\n");
}

fn write_section(out: &mut String, id: &str, section: &ReportSection, level: u8) {
    let title = escape(&section.title);
    let _ = write!(out, "<section id=\"{id}-{}\">\n<h{level}>{title}</h{level}>\n", section.name);
    if !section.note.is_empty() {
        let _ = writeln!(out, "<p class=note>{}</p>", escape(&section.note));
    }
    blocks(out, &section.blocks, level + 1);
    out.push_str("</section>\n");
}

fn blocks(out: &mut String, blocks_: &[ReportBlock], level: u8) {
    let mut keys = None;
    for block in blocks_ {
        match block {
            ReportBlock::Picture(one) => {
                // A legend equal to the one above is not repeated.
                let is_new = keys.replace(&one.keys) != Some(&one.keys);
                picture(out, one, level, is_new);
            }
            ReportBlock::Table(one) => table::write(one, out),
            ReportBlock::Pairs(all) => pairs(out, all),
            ReportBlock::List(texts) => list(out, texts),
            ReportBlock::Text(text) => {
                let _ = writeln!(out, "<p>{}</p>", escape(text));
            }
            ReportBlock::Notes(texts) => texts.iter().for_each(|text| {
                let _ = writeln!(out, "<p class=note>{}</p>", escape(text));
            }),
            ReportBlock::Folded(title, inside) => {
                let _ = writeln!(out, "<details><summary>{}</summary>", escape(title));
                blocks(out, inside, level);
                out.push_str("</details>\n");
            }
        }
    }
}

fn picture(out: &mut String, picture: &Picture, level: u8, has_legend: bool) {
    let title = escape(&picture.title);
    let _ = writeln!(out, "<figure>\n<figcaption><h{level}>{title}</h{level}></figcaption>");
    if has_legend && !picture.keys.is_empty() {
        out.push_str("<ul class=keys>");
        for key in &picture.keys {
            let _ = write!(
                out,
                "<li><svg viewBox=\"0 0 26 12\" width=26 height=12 aria-hidden=true>{}</svg>{}",
                key.sample,
                escape(&key.text)
            );
        }
        out.push_str("</ul>\n");
    }
    out.push_str("<div class=frames>\n");
    for frame in &picture.frames {
        let heading = if frame.title.is_empty() { String::new() } else { format!("<p>{}</p>", escape(&frame.title)) };
        let _ = writeln!(
            out,
            "<div>{heading}<svg viewBox=\"0 0 {} {}\" role=img aria-label=\"{}\">{}</svg></div>",
            frame.width,
            frame.height,
            escape(&frame.description),
            frame.body
        );
    }
    out.push_str("</div>\n<details><summary>The same as numbers</summary>\n");
    table::write(&picture.table, out);
    out.push_str("</details>\n</figure>\n");
}

fn records(out: &mut String, source: &PageRun, id: &str, level: u8) {
    let _ = writeln!(out, "<section id={id}-records class=records>\n<h{level}>Records</h{level}>");
    let file = escape(&source.file);
    match &source.records {
        Some(bytes) => {
            let stem = std::path::Path::new(&source.file).file_stem().unwrap_or_default();
            let name = slug(&stem.to_string_lossy());
            let kb = bytes.len().div_ceil(1000);
            let _ = write!(
                out,
                "<p>All records, from which everything above can be derived again: <a download=\"{name}.json.zst\" \
                 href=\"data:application/zstd;base64,"
            );
            base64(bytes, out);
            let _ = write!(
                out,
                "\">save {name}.json.zst</a> ({kb} kB). Then <code>zstd -d {name}.json.zst</code> and \
                 <code>beff-raw report {name}.json</code>.</p>"
            );
        }
        None => {
            let _ = write!(out, "<p>The records are too many for a page. They are in {file}.</p>");
        }
    }
    out.push_str("</section>\n");
}
