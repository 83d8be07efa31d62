//! The page of `report --html` in a real browser: nothing is fetched, nothing is said on the console, pictures are there, inside their
//! boxes and readable, wide and narrow, light and dark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{is_command, skip, Launch, Scratch};

/// Runs that were really measured.
const IO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/runs/mpich-2ranks-60s-ladder.json");
const COMM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/runs/mpich-2ranks-b_eff.jsonl");

/// What a page tells of itself, by a script that only the test puts into a copy of it.
const EYES: &str = include_str!("page_eyes.js");

fn browser() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| is_command(name));
    if found.is_none() {
        skip("no browser (chromium): pages are not looked at; apt-get install chromium");
    }
    found
}

/// What the browser printed: the document as it was in the end, and its log.
fn open(browser: &str, page: &Path, scratch: &Scratch, more: &[&str]) -> (String, String) {
    let (out, err) = (scratch.join("dom"), scratch.join("log"));
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"])
        .args(["--allow-file-access-from-files", "--virtual-time-budget=20000", "--window-size=1600,1000"])
        .arg(format!("--user-data-dir={}", scratch.join("profile").display()))
        .args(more)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > Duration::from_secs(180) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser does not end: {}", fs::read_to_string(&err).unwrap_or_default());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let read = |path: &PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    assert!(status.success(), "{status}: {}", read(&err));
    (read(&out), read(&err))
}

/// Lines of the console.
fn console(log: &str) -> Vec<&str> {
    log.lines().filter(|line| line.contains("CONSOLE")).collect()
}

/// The page in a frame as wide as a desk and one as wide as a phone, and what the eyes saw in both.
fn look(browser: &str, html: &str, scratch: &Scratch, more: &[&str]) -> Vec<Value> {
    // Without the policy, which forbids scripts; what it forbids else is asked of the unchanged page.
    let begin = html.find("<meta http-equiv=Content-Security-Policy").expect("a policy");
    let end = begin + html[begin..].find('>').unwrap() + 1;
    let eyed = format!("{}<script>{EYES}</script>{}", &html[..begin], &html[end..]);
    fs::write(scratch.join("eyed.html"), eyed).unwrap();
    let frames = [1200, 390]
        .map(|width| format!("<iframe src=eyed.html style='width:{width}px;height:900px;border:0'></iframe>"));
    let listen = "addEventListener('message', e => { const p = document.createElement('pre'); p.className = 'facts'; \
                  p.textContent = e.data; document.body.append(p); })";
    let wrapper = format!("<!doctype html><meta charset=utf-8><body><script>{listen}</script>{}", frames.concat());
    fs::write(scratch.join("wrapper.html"), wrapper).unwrap();
    let (dom, log) = open(browser, &scratch.join("wrapper.html"), scratch, &[more, &["--dump-dom"]].concat());
    let facts = dom.split("<pre class=\"facts\">").skip(1).map(|rest| rest.split("</pre>").next().unwrap());
    let facts: Vec<Value> = facts
        .map(|text| text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        .map(|text| serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}")))
        .collect();
    assert_eq!(facts.len(), 2, "both frames tell; {log}");
    facts
}

fn list(facts: &Value, name: &str) -> Vec<String> {
    let items = facts[name].as_array().unwrap_or_else(|| panic!("no {name} in {facts}"));
    items.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned)).collect()
}

/// The page of these results.
fn page_of(files: &[&Path], scratch: &Scratch) -> (PathBuf, String) {
    let page = scratch.join("page.html");
    Launch::alone().arg("report").args(files).arg("--html").arg(&page).run().expect(0);
    let html = fs::read_to_string(&page).unwrap();
    (page, html)
}

/// A small run of the other benchmark that moves files.
fn rows(scratch: &Scratch) -> PathBuf {
    let names =
        ["P_Write_Indv", "P_Read_Indv", "C_IWrite_Expl", "Open_Close", "--msglog", "10:14", "--iter", "3", "--quiet"];
    Launch::new(2).arg("imb").args(names).args(["--backend", "mpiio,posix"]).into(scratch).run().expect(0);
    scratch.join("out.json")
}

#[test]
fn a_browser_shows_the_page_and_has_nothing_to_say() {
    let Some(browser) = browser() else { return };
    let results = Scratch::new();
    let rows = rows(&results);
    let (io, comm) = (Path::new(IO), Path::new(COMM));
    // A start of the browser takes seconds: each page in one of the themes.
    for (files, theme, is_dark) in [(&[io][..], "1", false), (&[io, comm, &rows], "0", true)] {
        let scratch = Scratch::new();
        let (page, html) = page_of(files, &scratch);
        let (dom, log) = open(browser, &page, &scratch, &["--dump-dom"]);
        assert_eq!(console(&log), [""; 0], "{files:?}");
        assert!(dom.contains("b_eff_io") && dom.contains("</html>"));
        let theme = format!("--blink-settings=preferredColorScheme={theme}");
        for facts in look(browser, &html, &scratch, &[&theme]) {
            let what = format!("{files:?}, {theme}, {} px", facts["width"]);
            for wrong in ["errors", "requests", "outside", "cut", "overlaps", "tiny", "pale", "bare", "lost"] {
                let found = list(&facts, wrong);
                let first: Vec<&String> = found.iter().take(5).collect();
                assert!(found.is_empty(), "{what}: {} {wrong}: {first:#?}", found.len());
            }
            assert_eq!(facts["is_dark"], is_dark, "{what}");
            assert!(facts["pictures"].as_u64().unwrap() >= 15, "{what}: {facts}");
            assert!(facts["beyond"].as_f64().unwrap() <= 0.0, "{what}: it must be moved sideways; {facts}");
        }
    }
}

/// What is not there cannot be missed by eyes that see nothing.
#[test]
fn the_eyes_see() {
    let Some(browser) = browser() else { return };
    let scratch = Scratch::new();
    let (_, html) = page_of(&[Path::new(IO)], &scratch);
    let wrong = "<figure><div style='width:100px;height:30px'><svg role=img viewBox='0 0 100 10' style='width:300px;height:30px'>\
                 <text class=m x='90' y='8'>far outside</text><text class=m x='92' y='8'>and over it</text>\
                 <text x='1' y='8' style='fill:#fefefe;font-size:1px'>x</text></svg></div></figure>\
                 <a href='#nowhere'>x</a><img src='http://127.0.0.1:9/x.png'><script>throw new Error('planted')</script></main>";
    let planted = html.replacen("</main>", wrong, 1);
    for facts in look(browser, &planted, &scratch, &[]) {
        for wrong in ["errors", "requests", "outside", "cut", "overlaps", "tiny", "pale", "bare", "lost"] {
            assert!(!list(&facts, wrong).is_empty(), "{wrong} not seen: {facts}");
        }
    }
    // The policy of the page itself: what is planted is not run and not fetched, and the browser says so.
    fs::write(scratch.join("planted.html"), &planted).unwrap();
    let (_, log) = open(browser, &scratch.join("planted.html"), &scratch, &["--dump-dom"]);
    assert!(console(&log).len() >= 2, "{log}");
}

/// Scripts with their numbers: gnuplot draws them without a word.
#[test]
fn gnuplot_draws_its_scripts() {
    let scratch = Scratch::new();
    let (rows, to) = (rows(&scratch), scratch.join("gp"));
    let run =
        Launch::alone().arg("report").args([Path::new(IO), Path::new(COMM), &rows]).arg("--gnuplot").arg(&to).run();
    run.expect(0).says(&["scripts of gnuplot in"]);
    let names = scratch.list("gp");
    assert!(!names.is_empty() && names.iter().all(|name| name.ends_with(".gp")), "{names:?}");
    if !is_command("gnuplot") {
        return skip("drawing: no gnuplot");
    }
    for name in names {
        let script = scratch.join("gp").join(&name);
        let drawn = Command::new("gnuplot").args(["-e", "set term svg"]).arg(&script).output().unwrap();
        let said = String::from_utf8_lossy(&drawn.stderr);
        assert!(drawn.status.success() && said.is_empty(), "{name}: {said}");
        assert!(String::from_utf8_lossy(&drawn.stdout).contains("</svg>"), "{name}");
    }
}

#[test]
fn pictures_and_pages_are_made_and_nothing_is_overwritten() {
    let scratch = Scratch::new();
    let (page, html) = page_of(&[Path::new(IO)], &scratch);
    assert!(html.len() < 500_000, "{}", html.len());
    let report = |args: &[&str]| Launch::alone().args(["report", IO]).args(args).run();
    let [page, svg, other] = [page, scratch.join("svg"), scratch.join("svg/x.html")];
    let [page, svg, other] = [&page, &svg, &other].map(|path| path.to_str().unwrap());
    report(&["--html", page]).expect(2).says(&["page.html exists already and is not overwritten", "Move it away"]);
    assert_eq!(fs::read_to_string(page).unwrap(), html);
    report(&["--svg", svg, "--html", other]).expect(0);
    let names = scratch.list("svg");
    assert!(names.iter().any(|n| n == "b_eff_io-posix-2-ranks-bandwidth.svg") && names.len() >= 5, "{names:?}");
    for name in names.iter().filter(|name| name.ends_with(".svg")) {
        let text = fs::read_to_string(scratch.join("svg").join(name)).unwrap();
        assert!(text.starts_with("<svg xmlns=") && text.contains("prefers-color-scheme:dark"), "{name}");
    }
    report(&["--svg", svg]).expect(2).says(&["exists already and is not overwritten"]);
    assert_eq!(scratch.list("svg"), names);
    let stdout = report(&["--html", "-"]).expect(0).stdout.clone();
    assert!(stdout.starts_with("<!doctype html>") && stdout.contains("</html>"));
    report(&["--html", "x.html", "--full"]).expect(2);
    report(&["--svg", &format!("{page}/no")]).expect(1).says(&["cannot create the directory"]);
}

/// As many requirements as there may be, with as many figures as lines may have.
#[test]
fn a_protocol_has_two_sheets_of_paper() {
    let Some(browser) = browser() else { return };
    let scratch = Scratch::new();
    let units = ["kB/s", "MB/s", "GB/s", "TB/s"];
    let types = (0..5).flat_map(|t| ["write", "rewrite", "read"].map(|access| format!("type {t} {access}")));
    let backends = ["", " posix", " uring"];
    let subjects = types.flat_map(|of| backends.map(|backend| format!("{of}{backend}"))).take(40);
    let lines: String = subjects.enumerate().map(|(n, subject)| format!("{subject} >= 1 {}\n", units[n % 4])).collect();
    fs::write(scratch.join("requirements.txt"), lines).unwrap();
    let (page, pdf) = (scratch.join("protocol.html"), scratch.join("protocol.pdf"));
    let report = Launch::alone().args(["report", IO, "--require"]).arg(scratch.join("requirements.txt"));
    assert!([4, 5].contains(&report.arg("--html").arg(&page).run().code()));
    let print = format!("--print-to-pdf={}", pdf.display());
    let (_, log) = open(browser, &page, &scratch, &[&print, "--no-pdf-header-footer"]);
    assert_eq!(console(&log), [""; 0]);
    let pdf = String::from_utf8_lossy(&fs::read(pdf).unwrap()).into_owned();
    let sheets = pdf.matches("/Type /Page").count() - pdf.matches("/Type /Pages").count();
    assert!((1..=2).contains(&sheets), "{sheets} sheets");
    // A4 in points.
    assert!(pdf.contains("/MediaBox [0 0 594.95996 841.91998]") || pdf.contains("/MediaBox [0 0 595 842]"), "no A4");
}
