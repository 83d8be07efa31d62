//! Which file uses which: the modules of a crate and the edges between them, read from the text of its files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The words of a path, `["crate", "a", "B"]`.
type Words = Vec<String>;

/// One name that a `use` brings into a module; `*` brings all.
#[derive(Debug, PartialEq)]
struct Import {
    name: String,
    path: Words,
    public: bool,
}

/// What the text of one file says.
#[derive(Default)]
struct Text {
    file: PathBuf,
    code: String,
    children: BTreeSet<String>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths of two words or more outside `use`.
    mentions: BTreeSet<Words>,
    /// All words outside `use`.
    words: BTreeSet<String>,
}

/// The files of a crate by the path of their modules; the root has none.
pub struct Modules(BTreeMap<Words, Text>);

/// From file to file, with one path for each that makes the edge.
pub type Edges = BTreeMap<String, BTreeMap<String, String>>;

impl Modules {
    /// The modules that `root`, a `lib.rs` or `main.rs`, declares outside `#[cfg(test)]`, and theirs.
    pub fn of_crate(root: &Path) -> Self {
        Self::read(root, |path| fs::read_to_string(path).ok())
    }

    fn read(root: &Path, text: impl Fn(&Path) -> Option<String>) -> Self {
        let mut found = BTreeMap::new();
        let mut open = vec![(Words::new(), root.to_owned(), root.parent().unwrap().to_owned())];
        while let Some((name, path, folder)) = open.pop() {
            let code = code(&text(&path).unwrap_or_else(|| panic!("{}", path.display())));
            let read = Text { file: path.clone(), ..Text::of(code) };
            for child in &read.children {
                let below: PathBuf = folder.join(child);
                let file = [below.with_extension("rs"), below.join("mod.rs")].into_iter().find(|f| text(f).is_some());
                let file = file.unwrap_or_else(|| panic!("{}: mod {child}", path.display()));
                open.push(([&name[..], std::slice::from_ref(child)].concat(), file, below));
            }
            found.insert(name, read);
        }
        Modules(found)
    }

    /// The files, and their [`code`].
    pub fn codes(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.0.values().map(|text| (text.file.as_path(), text.code.as_str()))
    }

    /// All edges. A name counts for the file that defines it, through whichever folders it is passed on; a folder that
    /// only passes a name on does not use it.
    pub fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (from, text) in &self.0 {
            let to = edges.entry(shown(from)).or_default();
            let imports = text.imports.iter().filter(|i| !i.public || text.words.contains(&i.name)).map(|i| &i.path);
            for path in imports.chain(&text.mentions) {
                match self.resolve(from, path, 0) {
                    // What is used of an imported module is a mention of its own.
                    Some((module, rest)) if module != *from && (rest > 0 || path.last().unwrap() == "*") => {
                        to.entry(shown(&module)).or_insert_with(|| path.join("::"));
                    }
                    _ => {}
                }
            }
        }
        edges
    }

    /// The module at the end of a path that stands in module `at`, and how many words name something in it.
    fn resolve(&self, at: &Words, path: &[String], depth: usize) -> Option<(Words, usize)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => return self.within(Words::new(), rest, depth),
            "self" => return self.within(at.clone(), rest, depth),
            "super" => return self.within(above(at), rest, depth),
            _ => {}
        }
        let text = &self.0[at];
        let known = text.children.contains(first) || text.imports.iter().any(|i| i.name == *first && i.path != path);
        if known {
            self.within(at.clone(), path, depth)
        } else {
            None
        }
    }

    fn within(&self, mut module: Words, mut path: &[String], depth: usize) -> Option<(Words, usize)> {
        if depth > 20 {
            return None;
        }
        while let Some((first, rest)) = path.split_first() {
            let text = &self.0[&module];
            if first == "super" {
                module = above(&module);
            } else if text.children.contains(first) {
                module.push(first.clone());
            } else if let Some(import) = text.imports.iter().find(|i| i.name == *first) {
                return match self.resolve(&module, &import.path, depth + 1)? {
                    (found, 0) => self.within(found, rest, depth + 1),
                    (found, named) => Some((found, named + rest.len())),
                };
            } else if text.items.contains(first) {
                return Some((module, path.len()));
            } else {
                return Some((self.by_glob(&module, first, depth).unwrap_or(module), path.len()));
            }
            path = rest;
        }
        Some((module, 0))
    }

    /// The module that has a name which `use ...::*` brings into `module`.
    fn by_glob(&self, module: &Words, name: &String, depth: usize) -> Option<Words> {
        let globs = self.0[module].imports.iter().filter(|import| import.name == "*");
        let from = globs.filter_map(|glob| self.resolve(module, &glob.path[..glob.path.len() - 1], depth + 1));
        from.map(|(found, _)| found).find(|found| self.0[found].items.contains(name))
    }
}

fn above(module: &Words) -> Words {
    module.split_last().map(|(_, above)| above.to_vec()).unwrap_or_default()
}

fn shown(module: &Words) -> String {
    if module.is_empty() {
        "(root)".to_owned()
    } else {
        module.join("::")
    }
}

/// The sets of files that reach each other, each with the edges between them, as `from -> to (path)`.
pub fn circles(edges: &Edges) -> Vec<Vec<String>> {
    let reachable: BTreeMap<&str, BTreeSet<&str>> = edges
        .keys()
        .map(|from| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![from.as_str()]);
            while let Some(next) = open.pop() {
                open.extend(
                    edges.get(next).into_iter().flatten().map(|(to, _)| to.as_str()).filter(|to| seen.insert(*to)),
                );
            }
            (from.as_str(), seen)
        })
        .collect();
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (from, to) in edges.iter().flat_map(|(from, to)| to.iter().map(move |to| (from.as_str(), to))) {
        if reachable[to.0.as_str()].contains(from) {
            // All files of a circle reach the same first one that reaches back.
            let first = reachable[from].iter().find(|other| reachable[**other].contains(from)).unwrap();
            found.entry(first).or_default().push(format!("{from} -> {} ({})", to.0, to.1));
        }
    }
    found.into_values().collect()
}

impl Text {
    fn of(code: String) -> Self {
        let mut read = Text::default();
        let words = tokens(&code);
        let mut at = 0;
        let mut public = false;
        while let Some(token) = words.get(at) {
            let next = words.get(at + 1).copied().unwrap_or_default();
            match *token {
                "pub" => {
                    public = true;
                    at += 1;
                    if next == "(" {
                        at += words[at..].iter().position(|t| *t == ")").unwrap() + 1;
                    }
                    continue;
                }
                "use" if is_word(next) || next == "::" || next == "{" => {
                    at += 1;
                    let mut found = Vec::new();
                    tree(&words, &mut at, &[], &mut found);
                    read.imports.extend(found.into_iter().map(|(name, path)| Import { name, path, public }));
                }
                "mod" if words.get(at + 2) == Some(&";") => {
                    read.children.insert(next.to_owned());
                    at += 3;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static" | "mod" if is_word(next) => {
                    read.items.insert(next.to_owned());
                    at += 1;
                }
                "macro_rules" if next == "!" => {
                    read.items.insert(words[at + 2].to_owned());
                    at += 3;
                }
                word if is_word(word) => {
                    let mut path = vec![word.to_owned()];
                    at += 1;
                    while words.get(at) == Some(&"::") && words.get(at + 1).is_some_and(|word| is_word(word)) {
                        path.push(words[at + 1].to_owned());
                        at += 2;
                    }
                    read.words.extend(path.iter().take(1).cloned());
                    if path.len() > 1 {
                        read.mentions.insert(path);
                    }
                }
                // A path that begins outside, or a field or method.
                "::" | "." => at += 2,
                _ => at += 1,
            }
            public = false;
        }
        Text { code, ..read }
    }
}

/// The tree of a `use` from `words[at]`: names with their paths.
fn tree(words: &[&str], at: &mut usize, prefix: &[String], found: &mut Vec<(String, Words)>) {
    let mut path = prefix.to_vec();
    loop {
        match words.get(*at).copied().unwrap_or_default() {
            "{" => {
                *at += 1;
                while words[*at] != "}" {
                    tree(words, at, &path, found);
                    if words[*at] == "," {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "::" => *at += 1,
            word if is_word(word) && word != "as" || word == "*" => {
                if word != "self" || path.is_empty() {
                    path.push(word.to_owned());
                }
                *at += 1;
            }
            "as" => {
                found.push((words[*at + 1].to_owned(), path));
                *at += 2;
                return;
            }
            _ => {
                found.push((path.last().cloned().unwrap_or_default(), path));
                return;
            }
        }
    }
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Words, `::`, and all other characters one by one.
fn tokens(code: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if is_word(rest) => rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(length);
        if !first.is_whitespace() {
            found.push(token);
        }
        rest = behind;
    }
    found
}

/// All paths of a text, those of its tests too.
pub fn paths(text: &str) -> Vec<String> {
    let read = Text::of(without_literals(text));
    let imports = read.imports.into_iter().map(|import| import.path);
    imports.chain(read.mentions).map(|path| path.join("::")).collect()
}

/// A text without comments, the content of literals, and items under `#[cfg(test)]`; its lines stay.
pub fn code(text: &str) -> String {
    let mut found = String::new();
    let mut rest = without_literals(text);
    let mark = "#[cfg(test)]";
    while let Some(at) = rest.find(mark) {
        found.push_str(&rest[..at]);
        let behind = rest.split_off(at + mark.len());
        let end = end_of_item(&behind);
        found.extend(behind[..end].matches('\n'));
        rest = behind[end..].to_owned();
    }
    found + &rest
}

/// Behind the first `;` or `{ ... }` outside brackets.
fn end_of_item(code: &str) -> usize {
    let mut depth = 0;
    for (at, c) in code.char_indices() {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        if depth == 0 && (c == ';' || c == '}') {
            return at + 1;
        }
    }
    code.len()
}

fn without_literals(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (plain, begin) = rest.split_at(rest.find(['/', '"', '\'', 'r']).unwrap_or(rest.len()));
        found.push_str(plain);
        rest = begin;
        let Some(first) = rest.chars().next() else { return found };
        let length = literal(rest);
        let (token, behind) = rest.split_at(length.max(first.len_utf8()));
        if length == 0 {
            found.push_str(token);
        } else {
            found.push_str(if first == '/' { "" } else { "\"\"" });
            found.extend(token.matches('\n'));
        }
        rest = behind;
    }
}

/// The length of the comment or literal that a text begins with; 0 if it begins with none.
fn literal(text: &str) -> usize {
    let until = |from: usize, end: &str| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until(2, "*/");
    }
    if let Some(behind) = text.strip_prefix('r') {
        let hashes = behind.len() - behind.trim_start_matches('#').len();
        if behind[hashes..].starts_with('"') {
            return until(2 + hashes, &format!("\"{}", "#".repeat(hashes)));
        }
    }
    let quote = match text.chars().next() {
        Some('"') => '"',
        // A lifetime has no quote behind its first letter.
        Some('\'') if text[1..].starts_with('\\') || text.chars().nth(2) == Some('\'') => '\'',
        _ => return 0,
    };
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The functions of a text that has passed [`code`] with their bodies: name, line (from 1), and number of lines.
pub fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let begins = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let name = code[at + 3..].split(|c: char| !(c.is_alphanumeric() || c == '_')).next().unwrap_or_default();
        if begins && !name.is_empty() {
            let text = &code[at..at + end_of_item(&code[at..])];
            found.push((name.to_owned(), code[..at].matches('\n').count() + 1, text.matches('\n').count() + 1));
        }
    }
    found
}

/// A crate of these files: its circles.
fn planted(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let text = |path: &Path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| text.to_string());
    circles(&Modules::read(Path::new("lib.rs"), text).edges())
}

#[test]
fn circles_of_every_kind_are_found() {
    let root = "mod a;\nmod b;\nmod folder;\n";
    let folder = "mod b;\npub use b::B;\npub struct Own;\n";
    let uses_a = "use crate::a::A;\npub struct B(A);";
    let kinds: [(&str, &[(&str, &str)]); 12] = [
        (
            "two files",
            &[("lib.rs", "mod a;\nmod b;"), ("a.rs", "use crate::b::{self, B};"), ("b.rs", "type B = super::a::A;")],
        ),
        (
            "three files",
            &[
                ("lib.rs", "mod a;\nmod b;\nmod c;"),
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "use super::c::C;"),
                ("c.rs", "use super::a::A;"),
            ],
        ),
        (
            "a name passed on",
            &[
                ("lib.rs", root),
                ("a.rs", "use crate::folder::B;"),
                ("b.rs", ""),
                ("folder/mod.rs", folder),
                ("folder/b.rs", uses_a),
            ],
        ),
        (
            "a name passed on by another name",
            &[
                ("lib.rs", root),
                ("a.rs", "use crate::folder::C;"),
                ("b.rs", ""),
                ("folder.rs", "mod b;\npub use b::B as C;"),
                ("folder/b.rs", uses_a),
            ],
        ),
        (
            "all names passed on",
            &[
                ("lib.rs", root),
                ("a.rs", "use crate::folder::B;"),
                ("b.rs", ""),
                ("folder/mod.rs", "mod b;\npub use b::*;"),
                ("folder/b.rs", uses_a),
            ],
        ),
        (
            "a folder that is imported",
            &[
                ("lib.rs", root),
                ("a.rs", "use crate::folder;\nfn f() { folder::B; }"),
                ("b.rs", ""),
                ("folder/mod.rs", folder),
                ("folder/b.rs", uses_a),
            ],
        ),
        (
            "what a folder's own file defines and uses",
            &[
                ("lib.rs", root),
                ("a.rs", "use crate::folder::Own;"),
                ("b.rs", ""),
                ("folder/mod.rs", "use crate::a::A;\npub struct Own(A);"),
            ],
        ),
        (
            "what a folder's own file passes on and uses",
            &[
                ("lib.rs", root),
                ("a.rs", "use crate::folder::Own;"),
                ("b.rs", ""),
                ("folder/mod.rs", "mod b;\npub use b::B;\npub struct Own(B);"),
                ("folder/b.rs", uses_a),
            ],
        ),
        (
            "a file and its folder",
            &[
                ("lib.rs", root),
                ("a.rs", ""),
                ("b.rs", ""),
                ("folder/mod.rs", "mod c;\nconst N: u8 = 1;\nfn f() { c::g() }"),
                ("folder/c.rs", "fn g() { super::N; }"),
            ],
        ),
        ("the root", &[("lib.rs", "mod a;\nfn say() { a::g() }"), ("a.rs", "fn g() { crate::say() }")]),
        (
            "a name that a folder imports",
            &[
                ("lib.rs", root),
                ("a.rs", "use super::folder::c::C;"),
                ("b.rs", "use crate::a::A;"),
                ("folder/mod.rs", "mod c;\nuse crate::b::B;"),
                ("folder/c.rs", "struct C(super::B);"),
            ],
        ),
        (
            "two words up",
            &[
                ("lib.rs", root),
                ("a.rs", "use crate::folder::c::C;"),
                ("b.rs", ""),
                ("folder/mod.rs", "mod c;"),
                ("folder/c.rs", "struct C(super::super::a::A);"),
            ],
        ),
    ];
    for (kind, files) in kinds {
        assert_eq!(planted(files).len(), 1, "{kind}: {:#?}", planted(files));
    }
}

#[test]
fn what_is_no_circle_is_none() {
    let tests = "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n";
    for (kind, files) in [
        (
            "a folder that only passes on",
            &[
                ("lib.rs", "mod folder;"),
                ("folder.rs", "mod a;\nmod b;\npub use b::B;"),
                ("folder/a.rs", "use super::B;"),
                ("folder/b.rs", "pub struct B;"),
            ][..],
        ),
        ("tests", &[("lib.rs", "mod a;\nmod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", tests)]),
        (
            "words and comments",
            &[
                ("lib.rs", "mod a;\nmod b;"),
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "//! crate::a::A\nconst B: &str = \"crate::a::A\";"),
            ],
        ),
        (
            "crates of the same name",
            &[("lib.rs", "mod a;\nmod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "use a::A;\nuse ::a::C;")],
        ),
    ] {
        assert_eq!(planted(files), Vec::<Vec<String>>::new(), "{kind}");
    }
}

#[test]
fn paths_are_taken_apart() {
    let code = "use crate::a::{b::{self, C}, d as e, f};\nlet x = super::g::h(crate::i);\nuse j::*;";
    let expected = ["crate::a::b", "crate::a::b::C", "crate::a::d", "crate::a::f", "j::*", "crate::i", "super::g::h"];
    assert_eq!(paths(code), expected);
}

#[test]
fn comments_literals_and_tests_are_taken_out() {
    for (text, expected) in [
        ("a // b\nc /* d\n e */ f", "a \nc \n f"),
        (r#"a("b // {", 'c', '"', '\'', b"\"")"#, r#"a("", "", "", "", b"")"#),
        ("r#\"a\"b\nc\"# d<'e>('f')", "\"\"\n d<'e>(\"\")"),
        ("a\n#[cfg(test)]\nfn b(c: [u8; 2]) {\n    { d; }\n}\ne", "a\n\n\n\n\ne"),
        ("#[cfg(test)]\nuse a::b;\nc", "\n\nc"),
    ] {
        assert_eq!(code(text), expected, "{text}");
    }
}

#[test]
fn lines_of_functions_are_counted() {
    let code = "fn a(b: fn(u8)) {\n    fn c() {\n    }\n}\nimpl D {\n    pub fn e(\n    ) -> u8 {\n        1\n    }\n    fn f();\n}\n";
    let expected = [("a", 1, 4), ("c", 2, 2), ("e", 6, 4), ("f", 10, 1)];
    assert_eq!(functions(code), expected.map(|(name, line, lines)| (name.to_owned(), line, lines)));
}
