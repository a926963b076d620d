//! The options that affect even error messages about the command line: format, language, profile, colours. They are
//! read before the command line is parsed, because the parser stops at the first error, and such an option may follow
//! it (`parcelo trak --lang es`).

use std::ffi::OsString;

/// The options as typed, valid or not.
#[derive(Debug, Default)]
pub(crate) struct Preferences {
    pub(crate) output: Option<String>,
    pub(crate) lang: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) color: Option<String>,
}

impl Preferences {
    pub(crate) fn from_arguments(arguments: &[OsString]) -> Self {
        let option = |long, short| option_value(arguments, long, short).map(str::to_owned);
        Self {
            output: option("--output", Some('o')),
            lang: option("--lang", None),
            profile: option("--profile", None),
            color: option("--color", None),
        }
    }
}

/// Returns the value of an option, in any spelling that the parser accepts.
fn option_value<'a>(arguments: &'a [OsString], long: &str, short: Option<char>) -> Option<&'a str> {
    let mut arguments = arguments.iter().skip(1).filter_map(|argument| argument.to_str());
    while let Some(argument) = arguments.next().filter(|argument| *argument != "--") {
        let rest = match argument.strip_prefix(long) {
            Some("") => return arguments.next(),
            Some(rest) => rest.strip_prefix('='),
            None => short.and_then(|short| after_short(argument, short)),
        };
        match rest {
            Some("") if !argument.starts_with("--") => return arguments.next(),
            Some(value) => return Some(value),
            None => {}
        }
    }
    None
}

/// The short options without a value, of all commands; `-h` and `-V` are missing because nothing runs after them.
const SHORT_FLAGS: [char; 2] = ['q', 'v'];

/// Returns the text after a short option in `-ojson`, `-o=json` or `-vo`.
fn after_short(argument: &str, short: char) -> Option<&str> {
    let cluster = argument.strip_prefix('-')?.trim_start_matches(SHORT_FLAGS);
    let rest = cluster.strip_prefix(short)?;
    Some(rest.strip_prefix('=').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;
    use parcelo::Language;

    use super::*;
    use crate::{args, output::format::Format};

    fn short_flags(command: &clap::Command) -> BTreeSet<char> {
        let flags =
            command.get_arguments().filter(|argument| !argument.get_action().takes_values());
        let own = flags.filter_map(clap::Arg::get_short);
        own.chain(command.get_subcommands().flat_map(short_flags)).collect()
    }

    #[test]
    fn every_short_option_without_a_value_is_known() {
        let mut flags = short_flags(&args::Args::command());
        flags.retain(|flag| !['h', 'V'].contains(flag));
        assert_eq!(flags, BTreeSet::from(SHORT_FLAGS));
    }

    #[test]
    fn the_format_is_read_in_every_spelling_of_the_parser() {
        let table = [
            ("parcelo health", None),
            ("parcelo -o json health", Some(Format::Json)),
            ("parcelo health -ojson", Some(Format::Json)),
            ("parcelo health -o=json", Some(Format::Json)),
            ("parcelo health --output json", Some(Format::Json)),
            ("parcelo health --output=ndjson", Some(Format::Ndjson)),
            ("parcelo health -vo csv", Some(Format::Csv)),
            ("parcelo health -vvojson", Some(Format::Json)),
            ("parcelo track AAAAAAAAAA -- -o", None),
        ];
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (line, format) in table {
            let seen = Preferences::from_arguments(&words(line)).output;
            assert_eq!(seen.as_deref(), format.map(Format::name), "{line}");
            let parsed = args::parse(&words(&line.replace("vv", "v")), Language::En);
            assert_eq!(parsed.unwrap().global.output, format, "{line}");
        }
        for line in ["parcelo health -o", "parcelo --output"] {
            assert!(Preferences::from_arguments(&words(line)).output.is_none(), "{line}");
        }
    }
}
