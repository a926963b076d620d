//! Pages of the documentation: their commands are run as a reader runs them, and print what the page shows.

use std::process::Output;

/// Returns the code blocks of a page, or a section of it, in one language.
pub(crate) fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let blocks = page.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).collect()
}

/// Runs the commands of a page. They succeed, and print what it shows.
pub(crate) fn follow(page: &str, run: impl Fn(&str) -> Output) {
    let commands = blocks(page, "sh");
    assert!(!commands.is_empty(), "{page}");
    let mut printed = String::new();
    for command in commands {
        let output = run(command);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {error}");
        printed += &String::from_utf8(output.stdout).unwrap();
    }
    assert_shown(page, &printed);
}

/// Asserts that each line of the output that a page shows was printed, in this order; `…` is any text.
pub(crate) fn assert_shown(page: &str, printed: &str) {
    let mut lines = printed.lines();
    for shown in blocks(page, "text").iter().flat_map(|block| block.lines()) {
        assert!(lines.any(|line| matches_shown(shown, line)), "{shown}\n{printed}");
    }
}

fn matches_shown(shown: &str, line: &str) -> bool {
    let mut parts = shown.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap()) else { return false };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.is_empty() || shown.ends_with('…')
}
