//! Values that the shell completes, but that are validated by `resolve`, which accepts other spellings too.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use parcelo::{CountryCode, ParcelStatus};

/// A parser that accepts any text, with values for the shell to suggest.
#[derive(Clone)]
pub(super) struct SuggestedValues(pub(super) fn() -> Vec<&'static str>);

impl TypedValueParser for SuggestedValues {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

pub(super) fn statuses() -> Vec<&'static str> {
    ParcelStatus::KNOWN.iter().map(ParcelStatus::code).collect()
}

pub(super) fn countries() -> Vec<&'static str> {
    CountryCode::all().map(|country| country.as_str()).collect()
}
