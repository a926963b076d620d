//! The repository's files as the rules read them: whole, or as code without comments, texts and
//! tests.

use std::{fs, path::Path};

/// Folders that hold what was built, fetched or printed, not what was written.
const NOT_OURS: &[&str] =
    &["target", "quickstart-out", "node_modules", "vendor", "corpus", "artifacts"];

/// Hidden folders that are ours all the same.
const OURS: &[&str] = &[".ci", ".github"];

/// A text file of the repository.
pub(super) struct Source {
    /// From the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn is_rust(&self) -> bool {
        has_ending(&self.path, "rs")
    }

    /// True for files that only tests use.
    pub(super) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
    }

    /// The text without the test modules at its end.
    pub(super) fn without_tests(&self) -> &str {
        let end = self.text.find("\n#[cfg(test)]\nmod ").map_or(self.text.len(), |at| at + 1);
        self.text.get(..end).unwrap_or_default()
    }

    /// The code that runs in production: comments and the insides of texts blanked, tests cut.
    pub(super) fn code(&self) -> String {
        mask(self.without_tests())
    }

    /// `path:line` of a place in the text or in its masked twin.
    pub(super) fn at(&self, offset: usize) -> String {
        let before = self.text.get(..offset).unwrap_or_default();
        format!("{}:{}", self.path, before.matches('\n').count() + 1)
    }
}

/// The repository's folder.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One file's text.
pub(super) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every text file, sorted by path.
pub(super) fn all() -> Vec<Source> {
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() && is_ours(&entry.file_name().to_string_lossy()) {
                folders.push(entry.path());
            } else if kind.is_file() && entry.file_name() != ".git" {
                found.extend(text_file(&entry.path()));
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Every Rust file under one of the folders, or that is one of the paths.
pub(super) fn rust_under(places: &[&str]) -> Vec<Source> {
    let mut found = all();
    found.retain(|source| source.is_rust() && is_under(&source.path, places));
    found
}

/// True when a path is one of the places or lies in one.
pub(super) fn is_under(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| {
        path.strip_prefix(place)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || place.ends_with('/'))
    })
}

fn is_ours(folder: &str) -> bool {
    OURS.contains(&folder) || (!folder.starts_with('.') && !NOT_OURS.contains(&folder))
}

fn text_file(path: &Path) -> Option<Source> {
    let text = fs::read_to_string(path).ok()?;
    let path = path.strip_prefix(root()).ok()?.to_string_lossy().replace('\\', "/");
    (!has_ending(&path, "lock")).then_some(Source { path, text })
}

pub(super) fn has_ending(path: &str, ending: &str) -> bool {
    Path::new(path).extension().is_some_and(|found| found == ending)
}

/// Code with comments and the insides of texts as blanks; every byte keeps its place.
pub(super) fn mask(code: &str) -> String {
    let bytes = code.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = quiet_end(bytes, at);
        for byte in &mut out[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(out).unwrap()
}

/// Where the comment or text that starts here ends; `at` itself when none starts here.
fn quiet_end(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    let in_word = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
    match rest {
        [b'/', b'/', ..] => at + length_to(rest, b"\n"),
        [b'/', b'*', ..] => at + block_length(rest),
        [b'"', ..] => at + 1 + escaped_length(&rest[1..], b'"'),
        [b'r' | b'b', ..] if !in_word => at + raw_length(rest),
        [b'\'', b'\\', ..] => at + 1 + escaped_length(&rest[1..], b'\''),
        [b'\'', ..] => at + character_length(rest),
        _ => at,
    }
}

fn length_to(rest: &[u8], end: &[u8]) -> usize {
    rest.windows(end.len()).position(|window| window == end).unwrap_or(rest.len())
}

fn block_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length up to and with a closing quote that no backslash escapes.
fn escaped_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 0;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `r"…"`, `r#"…"#`, `br"…"`; 0 for any other word that starts with r or b.
fn raw_length(rest: &[u8]) -> usize {
    let letters = if rest.starts_with(b"br") { 2 } else { usize::from(rest[0] == b'r') };
    let hashes = rest[letters..].iter().take_while(|byte| **byte == b'#').count();
    let open = letters + hashes + 1;
    if letters == 0 || rest.get(open - 1) != Some(&b'"') {
        return 0;
    }
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    open + length_to(&rest[open..], &close) + close.len()
}

/// The length of `'x'`, whatever the width of x; 0 for a lifetime.
fn character_length(rest: &[u8]) -> usize {
    let close = rest.iter().skip(2).take(4).position(|byte| *byte == b'\'').map(|at| at + 2);
    close.filter(|at| *at == 2 || !rest[1].is_ascii()).map_or(0, |at| at + 1)
}

#[test]
fn a_mask_blanks_comments_and_texts_and_keeps_every_place() {
    let table = [
        ("let a = 1; // fn x() {", "let a = 1;            "),
        ("/* { /* { */ } */ b", "                  b"),
        (r#"f("{ \" }") + '{' + '\'' + c"#, r"f(        ) +     +      + c"),
        (r##"f(r#"{ " }"#, br"{")"##, "f(          ,      )"),
        ("fn f<'a>(b: &'a str) {}", "fn f<'a>(b: &'a str) {}"),
        ("'ñ' => \"ñ\"", "     =>     "),
        ("bar r_x(\"\")", "bar r_x(  )"),
    ];
    for (code, masked) in table {
        assert_eq!(mask(code).replace('\u{fffd}', ""), masked, "{code}");
        assert_eq!(mask(code).len(), code.len(), "{code}");
    }
}
