//! Lists on the command line: `EC, MX` is `EC,MX`, as it is in the dashboard's forms.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, TypedValueParser},
};

/// The parser of one entry, whatever blanks stand around it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trimmed<P>(pub(super) P);

impl<P: TypedValueParser> TypedValueParser for Trimmed<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        flag: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, Error> {
        let trimmed = value.to_str().map_or(value, |text| OsStr::new(text.trim()));
        self.0.parse_ref(command, flag, trimmed)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}
