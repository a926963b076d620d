//! Values that the shell completes and the parser leaves to `resolve`, which accepts other spellings too.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, StringValueParser, TypedValueParser},
};
use parcelo::{CountryCode, ParcelStatus};

/// Any text; the shell suggests these.
#[derive(Clone)]
pub(super) struct Suggested(pub(super) fn() -> Vec<&'static str>);

impl TypedValueParser for Suggested {
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
