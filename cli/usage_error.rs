//! What the parser says when the command line is no command: help, or what is wrong with it.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use parcelo::Environment;

use crate::{
    failure::Failure,
    results::{CommandOutcome, Results},
    texts::{self, Message},
};

/// The parser's stop as what there is to say.
pub(crate) fn of(stop: &clap::Error) -> CommandOutcome {
    let help = || CommandOutcome::with(Results::Help(stop.render().ansi().to_string()));
    match stop.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => help(),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let missing = Failure::usage(texts::NO_COMMAND, texts::SEE_HELP);
            CommandOutcome { failure: Some(missing), ..help() }
        }
        kind => wrong(kind, stop).into(),
    }
}

fn wrong(kind: ErrorKind, stop: &clap::Error) -> Failure {
    let told = |kind| told(stop, kind);
    if holds_key(stop) {
        return Failure::usage(texts::KEY_IN_ARGUMENTS, texts::GIVE_KEY);
    }
    let option = told(ContextKind::InvalidArg);
    let value = told(ContextKind::InvalidValue);
    match kind {
        ErrorKind::InvalidSubcommand => {
            let command = told(ContextKind::InvalidSubcommand);
            let nearest = told(ContextKind::SuggestedSubcommand);
            // What is nearest to it by its letters is not what is meant.
            let hint = perhaps(if command == "help" { "" } else { &nearest });
            Failure::usage(texts::BAD_COMMAND.with(&[("value", &command)]), hint)
        }
        ErrorKind::UnknownArgument if !option.starts_with('-') => {
            Failure::usage(texts::ONE_TOO_MANY.with(&[("value", &option)]), texts::SEE_HELP)
        }
        ErrorKind::UnknownArgument => {
            let hint = perhaps(&told(ContextKind::SuggestedArg));
            Failure::usage(texts::BAD_OPTION.with(&[("value", &option)]), hint)
        }
        ErrorKind::InvalidValue if value.is_empty() => {
            Failure::usage(texts::NO_VALUE.with(&[("option", &option)]), texts::SEE_HELP)
        }
        ErrorKind::InvalidValue => {
            let values = told(ContextKind::ValidValue);
            let values = [("value", &*value), ("option", &*option), ("values", &*values)];
            let is_output = option.starts_with("--output");
            let hint = if is_output { texts::SEE_DIR } else { texts::SEE_HELP };
            Failure::usage(texts::BAD_VALUE.with(&values), hint)
        }
        ErrorKind::ValueValidation => Failure::usage(unfit(&value, &option, stop), texts::SEE_HELP),
        ErrorKind::MissingRequiredArgument => {
            Failure::usage(texts::MISSING.with(&[("values", &option)]), texts::SEE_HELP)
        }
        ErrorKind::MissingSubcommand => Failure::usage(texts::NO_COMMAND, texts::SEE_HELP),
        ErrorKind::ArgumentConflict => {
            let other = told(ContextKind::PriorArg);
            let values = [("option", &*option), ("other", &*other)];
            let is_other = !other.is_empty() && other != option;
            let text = if is_other { texts::EXCLUDED } else { texts::TWICE };
            Failure::usage(text.with(&values), texts::SEE_HELP)
        }
        _ => Failure::usage(texts::WRONG_LINE, texts::SEE_HELP),
    }
}

/// A value of no use, and what would be of use where the parser knows that.
fn unfit(value: &str, option: &str, stop: &clap::Error) -> Message {
    let why = std::error::Error::source(stop).map(ToString::to_string).unwrap_or_default();
    let range = why.split_once(" is not in ").and_then(|(_, range)| range.split_once(".."));
    let (least, most) = range.unwrap_or_default();
    // What a number of its size just holds is no limit that anybody set.
    let most = Some(most.trim_start_matches('=')).filter(|most| *most != u32::MAX.to_string());
    let most = most.unwrap_or_default();
    let values = [("value", value), ("option", option), ("least", least), ("most", most)];
    match (least, most) {
        ("", _) => texts::UNFIT.with(&values),
        (_, "") => texts::TOO_SMALL.with(&values),
        _ => texts::OUT_OF_RANGE.with(&values),
    }
}

fn perhaps(suggestion: &str) -> Message {
    match suggestion {
        "" => texts::SEE_HELP.into(),
        value => texts::PERHAPS.with(&[("value", value)]),
    }
}

/// What the parser knows of one kind, as text; empty when it knows nothing.
fn told(stop: &clap::Error, kind: ContextKind) -> String {
    match stop.get(kind) {
        Some(ContextValue::String(text)) => text.clone(),
        Some(ContextValue::Strings(texts)) => texts.join(", "),
        _ => String::new(),
    }
}

/// True when a word that the parser could not place is an API key.
fn holds_key(stop: &clap::Error) -> bool {
    let prefixes = Environment::ALL.map(Environment::key_prefix);
    [ContextKind::InvalidArg, ContextKind::InvalidValue, ContextKind::InvalidSubcommand]
        .into_iter()
        .map(|kind| told(stop, kind))
        .any(|word| prefixes.iter().any(|prefix| word.contains(prefix)) || word == "--api-key")
}
