//! Errors of the parser in the user's language; requested help is one of them.

use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};
use parcelo::Environment;

use crate::{
    args::Args,
    failure::Failure,
    results::{CommandOutcome, Results},
    texts::{self, Message},
};

/// Returns the outcome of a command line that is not run.
pub(crate) fn outcome(error: &clap::Error) -> CommandOutcome {
    let help = || CommandOutcome::with(Results::Help(error.render().ansi().to_string()));
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => help(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let missing = Failure::usage(texts::NO_COMMAND, texts::SEE_HELP);
            help().failing(Some(missing))
        }
        kind => failure_for(kind, error).into(),
    }
}

fn failure_for(kind: ErrorKind, error: &clap::Error) -> Failure {
    let context = |kind| context(error, kind);
    if contains_key(error) {
        return Failure::usage(texts::KEY_IN_ARGUMENTS, texts::REVOKE_KEY);
    }
    let option = context(ContextKind::InvalidArg);
    let value = context(ContextKind::InvalidValue);
    match kind {
        ErrorKind::InvalidSubcommand => {
            let command = context(ContextKind::InvalidSubcommand);
            let nearest = context(ContextKind::SuggestedSubcommand);
            let hint = match (&*nearest, subcommands(&error.render().to_string())) {
                ("", Some(names)) => texts::KNOWN_COMMANDS.with(&[("values", &names)]),
                _ => suggest(&nearest),
            };
            Failure::usage(texts::UNKNOWN_COMMAND.with(&[("value", &command)]), hint)
        }
        ErrorKind::UnknownArgument => {
            let hint = suggest(&context(ContextKind::SuggestedArg));
            Failure::usage(texts::UNEXPECTED_ARGUMENT.with(&[("value", &option)]), hint)
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            Failure::usage(texts::NO_VALUE.with(&[("option", &option)]), texts::SEE_HELP)
        }
        ErrorKind::InvalidValue => {
            let values = context(ContextKind::ValidValue);
            let values = [("value", &*value), ("option", &*option), ("values", &*values)];
            let is_output = option.starts_with("--output");
            let hint = if is_output { texts::SEE_DIR } else { texts::SEE_HELP };
            Failure::usage(texts::NOT_A_POSSIBLE_VALUE.with(&values), hint)
        }
        ErrorKind::ValueValidation => {
            Failure::usage(invalid_value(&value, &option, error), texts::SEE_HELP)
        }
        ErrorKind::MissingRequiredArgument => {
            Failure::usage(texts::MISSING_ARGUMENTS.with(&[("values", &option)]), texts::SEE_HELP)
        }
        ErrorKind::MissingSubcommand => Failure::usage(texts::NO_COMMAND, texts::SEE_HELP),
        ErrorKind::ArgumentConflict => {
            let other = context(ContextKind::PriorArg);
            let values = [("option", &*option), ("other", &*other)];
            let is_other = !other.is_empty() && other != option;
            let text = if is_other { texts::CONFLICTING_OPTIONS } else { texts::REPEATED_OPTION };
            Failure::usage(text.with(&values), texts::SEE_HELP)
        }
        _ => Failure::usage(texts::INVALID_COMMAND_LINE, texts::SEE_HELP),
    }
}

/// Describes an invalid value, with the valid range if the parser reports one.
fn invalid_value(value: &str, option: &str, error: &clap::Error) -> Message {
    let err = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    let range = err.split_once(" is not in ").and_then(|(_, range)| range.split_once(".."));
    let (min, max) = range.unwrap_or_default();
    // The largest u32 is only a limit of the type, not one of ours.
    let max = Some(max.trim_start_matches('=')).filter(|max| *max != u32::MAX.to_string());
    let max = max.unwrap_or_default();
    let values = [("value", value), ("option", option), ("min", min), ("max", max)];
    match (min, max) {
        ("", _) => texts::INVALID_VALUE.with(&values),
        (_, "") => texts::TOO_SMALL.with(&values),
        _ => texts::OUT_OF_RANGE.with(&values),
    }
}

/// Returns the commands in the group to which an unknown command belongs. The error of the parser names the group only
/// in its usage line.
fn subcommands(rendered: &str) -> Option<String> {
    let usage = rendered.lines().find_map(|line| line.split_once("Usage: parcelo "))?.1;
    let group = usage.split(' ').next()?;
    let command = Args::command();
    let commands = command.find_subcommand(group)?.get_subcommands();
    let names: Vec<_> = commands.map(|one| format!("parcelo {group} {}", one.get_name())).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn suggest(suggestion: &str) -> Message {
    match suggestion {
        "" => texts::SEE_HELP.into(),
        value => texts::DID_YOU_MEAN.with(&[("value", value)]),
    }
}

/// Returns a part of the parser's error as text, empty if it is absent.
fn context(error: &clap::Error, kind: ContextKind) -> String {
    match error.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    }
}

/// Returns `true` if the argument that the parser rejects is an API key.
fn contains_key(error: &clap::Error) -> bool {
    let prefixes = Environment::ALL.map(Environment::key_prefix);
    [ContextKind::InvalidArg, ContextKind::InvalidValue, ContextKind::InvalidSubcommand]
        .into_iter()
        .map(|kind| context(error, kind))
        .any(|word| prefixes.iter().any(|prefix| word.contains(prefix)) || word == "--api-key")
}
