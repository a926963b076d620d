//! How the process speaks: in which format and which language. It is known before the command line
//! is parsed, so that a wrong command line is answered in the right way too.

use std::ffi::OsString;

use clap::ValueEnum;
use parcelo::Language;

use crate::{args::Lang, profiles::Profile};

/// How results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Table,
    /// One JSON document.
    Json,
    /// One JSON document a line.
    Ndjson,
    /// Comma-separated values with a heading.
    Csv,
}

impl Format {
    /// True when errors are JSON too, and nothing else is said.
    pub(crate) fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::Ndjson)
    }
}

/// Format and language of everything that is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Voice {
    pub(crate) format: Format,
    pub(crate) language: Language,
}

/// The variables that name the user's language, the stronger first (POSIX: Locale).
const LOCALE: [&str; 3] = ["LC_ALL", "LC_MESSAGES", "LANG"];

/// The voice that the arguments, the environment and the profile ask for; table and the locale's
/// language if they do not.
pub(crate) fn of(
    arguments: &[OsString],
    variable: impl Fn(&str) -> Option<String>,
    profile: &Profile,
) -> Voice {
    let given = |name: &str| variable(name).filter(|text| !text.is_empty());
    let format = value(arguments, "--output", Some('o')).map(str::to_owned);
    let format = format
        .or_else(|| given("PARCELO_OUTPUT"))
        .and_then(|format| Format::from_str(&format, false).ok())
        .or(profile.output)
        .unwrap_or(Format::Table);
    let locale = || LOCALE.into_iter().find_map(given).unwrap_or_default();
    let language = match value(arguments, "--lang", None) {
        Some(language) => spoken(language),
        None => given("PARCELO_LANG")
            .and_then(|language| Lang::from_str(&language, false).ok())
            .map(Language::from)
            .or(profile.language)
            .unwrap_or_else(|| spoken(&locale())),
    };
    Voice { format, language }
}

/// Spanish for `es`, `es_EC.UTF-8`, `es-MX`; English for everything else.
fn spoken(locale: &str) -> Language {
    match locale.split(['_', '-', '.', '@']).next() {
        Some("es") => Language::Es,
        _ => Language::En,
    }
}

/// The value given for an option, in every spelling that the parser takes.
pub(crate) fn value<'a>(
    arguments: &'a [OsString],
    long: &str,
    short: Option<char>,
) -> Option<&'a str> {
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

/// What follows a short option in `-ojson`, `-o=json` or `-vo`; `-v` takes no value.
fn after_short(argument: &str, short: char) -> Option<&str> {
    let cluster = argument.strip_prefix('-')?.trim_start_matches('v');
    let rest = cluster.strip_prefix(short)?;
    Some(rest.strip_prefix('=').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    fn voice(line: &str, locale: Variables) -> Voice {
        voice_by(line, locale, &Profile::default())
    }

    fn voice_by(line: &str, locale: Variables, profile: &Profile) -> Voice {
        let arguments: Vec<_> = line.split(' ').map(OsString::from).collect();
        let variable = |name: &str| {
            locale.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        of(&arguments, variable, profile)
    }

    #[test]
    fn the_format_is_seen_in_every_spelling_and_as_the_parser_sees_it() {
        let table = [
            ("parcelo health", Format::Table),
            ("parcelo -o json health", Format::Json),
            ("parcelo health -ojson", Format::Json),
            ("parcelo health -o=json", Format::Json),
            ("parcelo health --output json", Format::Json),
            ("parcelo health --output=ndjson", Format::Ndjson),
            ("parcelo health -vo csv", Format::Csv),
            ("parcelo health -vvojson", Format::Json),
            ("parcelo track AAAAAAAAAA -- -o", Format::Table),
        ];
        for (line, format) in table {
            let voice = voice(line, &[]);
            assert_eq!(voice.format, format, "{line}");
            let arguments: Vec<_> =
                line.replace("vv", "v").split(' ').map(OsString::from).collect();
            let parsed = crate::args::parse(&arguments, voice).map(|args| args.global.output);
            assert_eq!(
                parsed.ok().map(|format| format.unwrap_or(Format::Table)),
                Some(format),
                "{line}"
            );
        }
        for line in ["parcelo health -o yaml", "parcelo health -o", "parcelo --output"] {
            assert_eq!(voice(line, &[]).format, Format::Table, "{line}");
        }
    }

    #[test]
    fn a_flag_is_stronger_than_the_locale_and_lc_all_stronger_than_lang() {
        let table: [(&str, Variables, Language); 9] = [
            ("parcelo", &[], Language::En),
            ("parcelo", &[("LANG", "es_EC.UTF-8")], Language::Es),
            ("parcelo", &[("LANG", "es")], Language::Es),
            ("parcelo", &[("LANG", "est_EE")], Language::En),
            ("parcelo", &[("LANG", "es_MX"), ("LC_ALL", "C.UTF-8")], Language::En),
            ("parcelo", &[("LANG", "es_MX"), ("LC_ALL", "")], Language::Es),
            ("parcelo", &[("LANG", "C"), ("LC_MESSAGES", "es@x")], Language::Es),
            ("parcelo --lang en health", &[("LANG", "es_MX")], Language::En),
            ("parcelo health --lang=es", &[("LC_ALL", "C")], Language::Es),
        ];
        for (line, locale, language) in table {
            assert_eq!(voice(line, locale).language, language, "{line} {locale:?}");
        }
    }

    #[test]
    fn a_flag_is_stronger_than_a_variable_and_that_stronger_than_the_profile() {
        let (es, json) = (Some(Language::Es), Some(Format::Json));
        let profile = Profile { language: es, output: json, ..Profile::default() };
        let both: Variables = &[("PARCELO_LANG", "en"), ("PARCELO_OUTPUT", "csv")];
        let table: [(&str, Variables, Language, Format); 4] = [
            ("parcelo", &[("LANG", "en_US")], Language::Es, Format::Json),
            ("parcelo", both, Language::En, Format::Csv),
            ("parcelo --lang es -o ndjson", both, Language::Es, Format::Ndjson),
            (
                "parcelo",
                &[("PARCELO_LANG", ""), ("PARCELO_OUTPUT", "?")],
                Language::Es,
                Format::Json,
            ),
        ];
        for (line, variables, language, format) in table {
            let voice = voice_by(line, variables, &profile);
            assert_eq!((voice.language, voice.format), (language, format), "{line} {variables:?}");
        }
    }
}
