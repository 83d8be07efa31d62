//! The file: head, style, and each part in its place.

use std::fmt::Write;

use super::raw::base64;
use super::{escape, slug, svg, Block, Finding, Headline, Picture, Run, Section, Tone};

const STYLE: &str = include_str!("page.css");

/// A run and the file it was read from.
#[derive(Debug)]
pub struct Source {
    /// What is shown of it.
    pub run: Run,
    /// Name of the file.
    pub file: String,
    /// Its records, compressed; None: too large for a page.
    pub records: Option<Vec<u8>>,
}

/// A page of these runs; `common` is about all of them.
#[must_use]
pub fn page(sources: &[Source], common: &[Section]) -> String {
    let title = match sources {
        [one] => one.run.title.clone(),
        several => format!("{} results of beff-raw", several.len()),
    };
    let mut out = head(&title);
    let is_one = sources.len() == 1;
    if !is_one {
        let _ = write!(out, "<header><h1>{}</h1>", escape(&title));
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

/// What the browser must know first. The policy says what the page promises: nothing is fetched, nothing is run.
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

fn run(out: &mut String, source: &Source, id: &str, level: u8) {
    let run = &source.run;
    let _ = write!(out, "<article id={id}>\n<h{level}>{}</h{level}>\n<p class=facts>", escape(&run.title));
    for (place, fact) in run.facts.iter().chain([&source.file]).enumerate() {
        let gap = if place > 0 { " · " } else { "" };
        let _ = write!(out, "{gap}<span>{}</span>", escape(fact));
    }
    out.push_str("</p>\n");
    for alarm in &run.alarms {
        let _ = writeln!(out, "<p class=alarm role=alert>{}</p>", escape(alarm));
    }
    let sections = run.sections.iter().map(|s| (format!("{id}-{}", s.name), s.title.clone()));
    contents(out, &run.title, sections.chain([(format!("{id}-records"), "Records".to_owned())]));
    out.push_str("<div class=top><div class=values>\n");
    run.headlines.iter().for_each(|h| headline(out, h));
    out.push_str("</div><div class=words>\n");
    run.findings.iter().for_each(|f| finding(out, f, level + 1));
    out.push_str("</div></div>\n");
    for section in &run.sections {
        write_section(out, id, section, level + 1);
    }
    records(out, source, id, level + 1);
    out.push_str("</article>\n");
}

fn headline(out: &mut String, headline: &Headline) {
    let _ = write!(
        out,
        "<div class=value><p class=label>{}</p><p class=number><strong>{}</strong> {}</p>",
        escape(&headline.label),
        escape(&headline.value),
        escape(headline.unit)
    );
    if let Some((tone, text)) = &headline.verdict {
        let class = match tone {
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Plain => "plain",
        };
        let _ = write!(out, "<p class=\"verdict {class}\">{}</p>", escape(text));
    }
    pairs(out, &headline.numbers);
    out.push_str("</div>\n");
}

fn finding(out: &mut String, finding: &Finding, level: u8) {
    let _ = write!(out, "<h{level}>{}</h{level}>", escape(finding.title));
    list(out, &finding.texts);
}

fn list(out: &mut String, texts: &[String]) {
    out.push_str("<ul>");
    for text in texts {
        let _ = write!(out, "<li>{}", escape(text));
    }
    out.push_str("</ul>\n");
}

fn pairs(out: &mut String, pairs: &[(String, String)]) {
    if pairs.is_empty() {
        return;
    }
    out.push_str("<dl>");
    for (name, value) in pairs {
        let _ = write!(out, "<div><dt>{}<dd>{}</div>", escape(name), escape(value));
    }
    out.push_str("</dl>\n");
}

fn write_section(out: &mut String, id: &str, section: &Section, level: u8) {
    let title = escape(&section.title);
    let _ = write!(out, "<section id=\"{id}-{}\">\n<h{level}>{title}</h{level}>\n", section.name);
    if !section.note.is_empty() {
        let _ = writeln!(out, "<p class=note>{}</p>", escape(&section.note));
    }
    blocks(out, &section.blocks, level + 1);
    out.push_str("</section>\n");
}

fn blocks(out: &mut String, blocks_: &[Block], level: u8) {
    let mut keys = None;
    for block in blocks_ {
        match block {
            Block::Picture(one) => {
                // A legend that stands above already is not told again.
                let is_new = keys.replace(&one.keys) != Some(&one.keys);
                picture(out, one, level, is_new);
            }
            Block::Table(table) => table.write(out),
            Block::Pairs(all) => pairs(out, all),
            Block::List(texts) => list(out, texts),
            Block::Folded(title, inside) => {
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
            escape(&frame.said),
            frame.body
        );
    }
    out.push_str("</div>\n<details><summary>The same as numbers</summary>\n");
    picture.table.write(out);
    out.push_str("</details>\n</figure>\n");
}

/// The records as a link that saves them.
fn records(out: &mut String, source: &Source, id: &str, level: u8) {
    let _ = writeln!(out, "<section id={id}-records class=records>\n<h{level}>Records</h{level}>");
    let file = escape(&source.file);
    match &source.records {
        Some(bytes) => {
            let stem = std::path::Path::new(&source.file).file_stem().unwrap_or_default();
            let name = slug(&stem.to_string_lossy());
            let kb = bytes.len().div_ceil(1000);
            let _ = write!(
                out,
                "<p>All records, out of which everything above can be made again: <a download=\"{name}.json.zst\" \
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
