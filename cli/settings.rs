//! Which setting counts: a flag's, else the variable's, else the profile's, else the default.
//! Known before the command line is parsed, because a wrong one is answered in the right language.

use std::ffi::OsString;

use clap::ValueEnum;

use crate::{
    args::Lang,
    failure::Failure,
    output,
    profiles::{ConfigError, Profile, Profiles, config_path},
    texts,
    voice::{self, Format},
};

/// The profile that counts, and the file that it is from.
#[derive(Debug)]
pub(crate) struct Settings {
    /// None when nobody knows the user's home.
    pub(crate) file: Option<Result<Profiles, ConfigError>>,
    /// The profile's name, when it was requested by flag or variable.
    pub(crate) requested: Option<String>,
}

/// The profile that counts where none is named.
pub(crate) const DEFAULT: &str = "default";

impl Settings {
    /// The settings for these arguments.
    pub(crate) fn of(arguments: &[OsString], variable: impl Fn(&str) -> Option<String>) -> Self {
        let flag = voice::value(arguments, "--profile", None).map(str::to_owned);
        let requested =
            flag.or_else(|| variable("PARCELO_PROFILE").filter(|name| !name.is_empty()));
        Self { file: config_path().map(Profiles::read), requested }
    }

    /// The profile as far as it can be read, for what must be known before anything can go wrong.
    pub(crate) fn preferences(&self) -> Profile {
        self.profile().unwrap_or_default()
    }

    /// The profile that counts; an empty one when there is none and none was requested.
    pub(crate) fn profile(&self) -> Result<Profile, Failure> {
        let name = self.name()?;
        let found = self.profiles()?.and_then(|profiles| profiles.all.get(&name));
        match found {
            Some(profile) => Ok(profile.clone()),
            None if self.is_named()? => {
                let name = output::without_keys(&name);
                let message = texts::NO_PROFILE.with(&[("name", &name)]);
                Err(Failure::usage(message, texts::SEE_PROFILES))
            }
            None => Ok(Profile::default()),
        }
    }

    /// The name of the profile that counts.
    pub(crate) fn name(&self) -> Result<String, Failure> {
        let current = self.profiles()?.and_then(|profiles| profiles.current.clone());
        Ok(self.requested.clone().or(current).unwrap_or_else(|| DEFAULT.to_owned()))
    }

    fn is_named(&self) -> Result<bool, Failure> {
        let current = self.profiles()?.and_then(|profiles| profiles.current.as_ref());
        Ok(self.requested.is_some() || current.is_some())
    }

    /// The file's profiles; none when there is no place for the file.
    pub(crate) fn profiles(&self) -> Result<Option<&Profiles>, Failure> {
        self.file.as_ref().map(Result::as_ref).transpose().map_err(Failure::from)
    }

    /// True when others than the user can read the keys in the file.
    pub(crate) fn are_exposed(&self) -> bool {
        matches!(&self.file, Some(Ok(profiles)) if profiles.exposed)
    }
}

/// Refuses variables that the parser does not see.
pub(crate) fn check(variable: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let read = |name: &str| variable(name).filter(|text| !text.is_empty());
    check_one::<Format>("PARCELO_OUTPUT", read("PARCELO_OUTPUT").as_deref())?;
    check_one::<Lang>("PARCELO_LANG", read("PARCELO_LANG").as_deref())
}

fn check_one<T: ValueEnum>(name: &str, text: Option<&str>) -> Result<(), Failure> {
    let Some(text) = text.filter(|text| T::from_str(text, false).is_err()) else { return Ok(()) };
    let known = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let known: Vec<_> = known.map(|value| value.get_name().to_owned()).collect();
    let text = output::without_keys(text);
    let values = [("value", &*text), ("option", name), ("values", &known.join(", "))];
    Err(Failure::usage(texts::BAD_VALUE.with(&values), texts::SEE_VARIABLES))
}
