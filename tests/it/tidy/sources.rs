//! The repository's files as the rules read them: whole, or as the tokens of Rust code.

use std::{fs, path::Path};

/// Folders that hold what was built or fetched, not what was written.
const NOT_OURS: &[&str] =
    &["target", "quickstart-out", "node_modules", "vendor", "corpus", "artifacts"];

/// A text file of the repository.
pub(super) struct Source {
    /// From the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

impl Source {
    pub(super) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// True for files that only tests use.
    pub(super) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
    }

    /// The text without the test modules at its end.
    pub(super) fn without_tests(&self) -> &str {
        let end = self.text.find("\n#[cfg(test)]\nmod ").map_or(self.text.len(), |at| at + 1);
        &self.text[..end]
    }

    /// `path:line` of a place in the text.
    pub(super) fn at(&self, offset: usize) -> String {
        format!("{}:{}", self.path, self.text[..offset].matches('\n').count() + 1)
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
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') && name != ".ci" || NOT_OURS.contains(&name.as_str()) {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                let path =
                    entry.path().strip_prefix(root()).unwrap().to_string_lossy().into_owned();
                found.push(Source { path, text });
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Every Rust file under one of the folders.
pub(super) fn rust_under(folders: &[&str]) -> Vec<Source> {
    let mut found = all();
    found
        .retain(|file| file.is("rs") && folders.iter().any(|folder| file.path.starts_with(folder)));
    found
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Comment,
    /// A string or a character.
    Text,
    /// A name, a keyword, a number or a lifetime.
    Word,
    Sign,
}

/// The tokens of Rust code with their places; `::` is one sign, every other sign one character.
pub(super) fn tokens(code: &str) -> Vec<(usize, Kind, &str)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(first) = code[at..].chars().next() {
        let (kind, length) = token(&code[at..], first);
        if !first.is_whitespace() {
            found.push((at, kind, &code[at..at + length]));
        }
        at += length;
    }
    found
}

fn token(rest: &str, first: char) -> (Kind, usize) {
    let to = |end: &str| rest[1..].find(end).map_or(rest.len(), |at| 1 + at + end.len());
    let word = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let after = &rest[word..];
    match first {
        '/' if rest.starts_with("//") => (Kind::Comment, rest.find('\n').unwrap_or(rest.len())),
        '/' if rest.starts_with("/*") => (Kind::Comment, to("*/")),
        '"' => (Kind::Text, quoted(rest, '"')),
        '\'' => match rest[1..].chars().nth(1) {
            Some(second) if second != '\'' && !rest.starts_with("'\\") => (Kind::Word, 1),
            _ => (Kind::Text, quoted(rest, '\'')),
        },
        'r' | 'b' | 'c'
            if rest[..word].ends_with('r') && word < 3 && after.starts_with(['"', '#']) =>
        {
            let end = after.trim_start_matches('#');
            if !end.starts_with('"') {
                return (Kind::Sign, word + 1);
            }
            let close = format!("\"{}", "#".repeat(after.len() - end.len()));
            let open = word + close.len();
            (Kind::Text, open + rest[open..].find(&close).map_or(0, |at| at + close.len()))
        }
        'b' | 'c' if word == 1 && after.starts_with(['"', '\'']) => {
            (Kind::Text, 1 + quoted(after, after.chars().next().unwrap()))
        }
        _ if word > 0 => (Kind::Word, word),
        _ if rest.starts_with("::") => (Kind::Sign, 2),
        _ => (Kind::Sign, first.len_utf8()),
    }
}

/// The length of what starts with a quote, with the closing quote that no backslash escapes.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = rest[1..].find(|c| {
        let ends = c == quote && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(rest.len(), |at| at + 2)
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[test]
fn comments_and_texts_are_told_from_code() {
    let table = [
        ("a // b {\n/* \" */ c", "a c"),
        (r#"f("{ \" }", '{', '\'', "\\") + c"#, "f ( , , , ) + c"),
        (r##"f(r#"{ " }"#, br"{", b'"', c"x") d"##, "f ( , , , ) d"),
        ("fn f<'a>(b: &'a str) 'ñ'", "fn f < ' a > ( b : & ' a str )"),
        ("bar::r_x(1.5)", "bar :: r_x ( 1 . 5 )"),
    ];
    for (code, wanted) in table {
        let signs =
            tokens(code).into_iter().filter(|(_, kind, _)| matches!(kind, Kind::Word | Kind::Sign));
        assert_eq!(signs.map(|(_, _, text)| text).collect::<Vec<_>>().join(" "), wanted, "{code}");
    }
}
