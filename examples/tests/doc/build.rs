//! Collects the examples in the documentation of the SDK and the mock server, so that this package tests them: they need
//! both, and the SDK's own tests need no server.

use std::{
    env,
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

/// Folders with documentation to test.
const FOLDERS: [&str; 3] = ["../sdk/src", "../sdk/types/src", "../server/service/src/mock"];

fn main() -> io::Result<()> {
    let mut examples = String::new();
    for folder in FOLDERS {
        println!("cargo::rerun-if-changed={folder}");
        collect_folder(Path::new(folder), &mut examples)?;
    }
    println!("cargo::rerun-if-changed=../sdk/guide.md");
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    fs::write(PathBuf::from(out).join("doc_examples.rs"), examples)
}

fn collect_folder(folder: &Path, examples: &mut String) -> io::Result<()> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect_folder(&path, examples)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            collect_file(&path, examples)?;
        }
    }
    Ok(())
}

/// Adds an item for each documentation comment with an example. The item is named after the file and line.
fn collect_file(path: &Path, examples: &mut String) -> io::Result<()> {
    let source = fs::read_to_string(path)?;
    let mut comment = String::new();
    for (number, line) in (1..).zip(source.lines().chain([""])) {
        if let Some(text) = documentation_line(path, line.trim_start())? {
            comment.push_str(&text);
            comment.push('\n');
            continue;
        }
        if comment.contains("```") {
            let name: String = format!("{}_{number}", path.display())
                .trim_start_matches("../")
                .chars()
                .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
                .collect();
            writeln!(examples, "#[doc = {comment:?}]\npub struct {name};")
                .map_err(io::Error::other)?;
        }
        comment.clear();
    }
    Ok(())
}

/// Returns the documentation in a line of a source file, or `None` for other lines.
fn documentation_line(path: &Path, line: &str) -> io::Result<Option<String>> {
    if let Some(text) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
        return Ok(Some(text.strip_prefix(' ').unwrap_or(text).to_owned()));
    }
    let included = line
        .trim_start_matches("#!")
        .trim_start_matches('#')
        .strip_prefix("[doc = include_str!(\"");
    let Some(name) = included.and_then(|rest| rest.strip_suffix("\")]")) else { return Ok(None) };
    fs::read_to_string(path.with_file_name(name)).map(Some)
}
