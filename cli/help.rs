//! The help in the user's language: the commands and arguments of the parser, with texts from the tables.

use clap::{
    Arg, Command,
    builder::styling::{AnsiColor, Styles},
};
use parcelo::Language;

use crate::texts::{
    self, Text,
    examples::EXAMPLES,
    help::{ARGUMENT_HELP, COMMAND_HELP, EXIT_CODES, VALUE_NAMES},
};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold());

type Table = &'static [(&'static str, Text)];

/// Localizes every text of the command line.
pub(crate) fn localize(command: Command, language: Language) -> Command {
    let examples = with_heading(&examples(command.get_name(), language), language);
    let after_help = format!("{examples}\n\n{}", EXIT_CODES.pick(language));
    localize_command(command.styles(STYLES), "", language).after_help(after_help)
}

fn localize_command(command: Command, parent: &str, language: Language) -> Command {
    let path = format!("{parent}{}", command.get_name());
    let inside = format!("{path} ");
    let template = format!(
        "{{about-with-newline}}\n{header}{usage}{header:#} {{usage}}\n\n{{all-args}}{{after-help}}",
        header = STYLES.get_header(),
        usage = texts::USAGE.pick(language),
    );
    let command = command
        .about(find(COMMAND_HELP, &path).pick(language))
        .help_template(template)
        .subcommand_help_heading(texts::COMMANDS.pick(language))
        .subcommand_value_name(texts::COMMAND.pick(language))
        .mut_args(|argument| localize_argument(argument, language))
        .mut_subcommands(|command| localize_command(command, &inside, language));
    let usage = usage(&command, &path, language);
    let command = command.override_usage(usage);
    command.after_help(with_heading(&examples(&path, language), language))
}

/// Returns the examples of a command, or the first one of each command of a group.
pub(crate) fn examples(path: &str, language: Language) -> String {
    let found = EXAMPLES.iter().find(|(known, _)| *known == path);
    found.map_or_else(
        || first_examples(&format!("{path} "), language),
        |(_, lines)| lines.pick(language).to_owned(),
    )
}

fn first_examples(group: &str, language: Language) -> String {
    let inside = EXAMPLES.iter().filter(|(known, _)| known.starts_with(group));
    let lines: Vec<_> =
        inside.filter_map(|(_, lines)| lines.pick(language).lines().next()).collect();
    lines.join("\n")
}

fn with_heading(lines: &str, language: Language) -> String {
    let header = STYLES.get_header();
    let heading = texts::EXAMPLES.pick(language);
    format!("{header}{heading}{header:#}\n  {}", lines.replace('\n', "\n  "))
}

fn localize_argument(argument: Arg, language: Language) -> Arg {
    let heading = if argument.is_positional() { texts::ARGUMENTS } else { texts::OPTIONS };
    let help = find(ARGUMENT_HELP, argument.get_id().as_str());
    let names: Vec<_> = argument.get_value_names().unwrap_or_default().to_vec();
    let names = names.iter().map(|name| find(VALUE_NAMES, name).pick(language));
    let takes_value = argument.get_action().takes_values();
    argument
        .help(help.pick(language))
        .help_heading(heading.pick(language))
        .hide_default_value(takes_value)
        .hide_possible_values(takes_value)
        .hide_env(true)
        .value_names(names)
}

/// Returns the parser's usage line, with its one English word translated.
fn usage(command: &Command, path: &str, language: Language) -> String {
    let options = texts::OPTIONS.pick(language).to_uppercase();
    let command = command.clone().bin_name(path);
    let usage = command.disable_help_flag(true).render_usage().to_string();
    usage.trim_start_matches("Usage:").trim().replace("[OPTIONS]", &format!("[{options}]"))
}

/// Returns the text for a name; a test checks that every name has one.
fn find(table: Table, name: &str) -> Text {
    table
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(texts::INVALID_COMMAND_LINE, |(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Args;

    type Seen<'a> = &'a mut dyn FnMut(Table, &str);

    fn walk(command: &Command, parent: &str, seen: Seen<'_>) {
        let path = format!("{parent}{}", command.get_name());
        seen(COMMAND_HELP, &path);
        for argument in command.get_arguments() {
            seen(ARGUMENT_HELP, argument.get_id().as_str());
            let takes_value = argument.get_action().takes_values();
            for name in argument.get_value_names().into_iter().flatten().filter(|_| takes_value) {
                seen(VALUE_NAMES, name);
            }
        }
        for inner in command.get_subcommands() {
            walk(inner, &format!("{path} "), seen);
        }
    }

    #[test]
    fn every_command_and_argument_is_explained() {
        walk(&Args::command(), "", &mut |table, name| {
            assert!(table.iter().any(|(known, _)| *known == name), "{name} has no text");
        });
    }

    #[test]
    fn every_command_has_examples_that_parse() {
        fn check(command: &Command, path: &str) {
            for inner in command.get_subcommands() {
                check(inner, &format!("{path} {}", inner.get_name()));
            }
            assert!(!examples(path, Language::En).is_empty(), "{path}");
        }
        check(&Args::command(), "parcelo");
        for (path, lines) in EXAMPLES {
            for line in lines.pick(Language::En).lines().chain(lines.pick(Language::Es).lines()) {
                assert!(line == *path || line.starts_with(&format!("{path} ")), "{line}");
                let words = line.split(' ').take_while(|word| !["<", ">"].contains(word));
                let words: Vec<std::ffi::OsString> = words.map(Into::into).collect();
                let parsed = crate::args::parse(&words, Language::En);
                assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
            }
        }
    }

    #[test]
    fn the_parser_accepts_every_documented_command() {
        localize(Args::command(), Language::Es).debug_assert();
    }
}
