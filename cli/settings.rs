//! The profile, format and language that apply: from the option, else the variable, else the profile, else the default.
//! They are known before the command line is parsed, so that errors in it are reported in the right language. Address
//! and key follow the same order in `resolve::client`.

use clap::ValueEnum;
use parcelo::Language;

use crate::{
    args::{Lang, Preferences},
    failure::Failure,
    output::format::{Format, OutputOptions},
    profiles::{ConfigError, Profile, Profiles, config_path},
    sanitize::without_keys,
    texts::{self, Message},
};

/// The profiles file, and the settings from options and variables.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The profiles; `None` if the user has no home directory.
    pub(crate) file: Option<Result<Profiles, ConfigError>>,
    /// The profile's name, if an option or a variable names one.
    pub(crate) requested: Option<String>,
    pub(crate) output: OutputOptions,
}

/// The profile that applies if none is requested.
pub(crate) const DEFAULT_PROFILE: &str = "default";

/// The variables that name the user's language, in order of precedence (POSIX: Locale).
const LOCALE: [&str; 3] = ["LC_ALL", "LC_MESSAGES", "LANG"];

impl Settings {
    pub(crate) fn load(
        preferences: Preferences,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let given = |name: &str| variable(name).filter(|text| !text.is_empty());
        let output = OutputOptions { format: Format::Table, language: Language::En };
        let Preferences { profile, output: format, lang, .. } = preferences;
        let requested = profile.or_else(|| given("PARCELO_PROFILE"));
        let file = config_path().map(Profiles::load);
        let mut settings = Self { file, requested, output };
        // A profile that cannot be read is reported later, by `profile`.
        let profile = settings.profile().unwrap_or_default();
        settings.output = output_options(format.as_deref(), lang.as_deref(), &profile, given);
        settings
    }

    /// Returns the profile that applies, or an empty one if none exists and none was requested.
    pub(crate) fn profile(&self) -> Result<Profile, Failure> {
        let name = self.name()?;
        let found = self.profiles()?.and_then(|profiles| profiles.all.get(&name));
        match found {
            Some(profile) => Ok(profile.clone()),
            None if self.is_named()? => {
                let name = without_keys(&name);
                let message = texts::NO_PROFILE.with(&[("name", &name)]);
                Err(Failure::usage(message, texts::SEE_PROFILES))
            }
            None => Ok(Profile::default()),
        }
    }

    /// Returns the name of the profile that applies.
    pub(crate) fn name(&self) -> Result<String, Failure> {
        let current = self.profiles()?.and_then(|profiles| profiles.current.clone());
        Ok(self.requested.clone().or(current).unwrap_or_else(|| DEFAULT_PROFILE.to_owned()))
    }

    fn is_named(&self) -> Result<bool, Failure> {
        let current = self.profiles()?.and_then(|profiles| profiles.current.as_ref());
        Ok(self.requested.is_some() || current.is_some())
    }

    /// Returns the profiles in the file; `None` if there is no home directory for it.
    pub(crate) fn profiles(&self) -> Result<Option<&Profiles>, Failure> {
        self.file.as_ref().map(Result::as_ref).transpose().map_err(Failure::from)
    }

    /// Returns `true` if other users can read the keys in the file.
    pub(crate) fn has_exposed_keys(&self) -> bool {
        self.exposure_warning().is_some()
    }

    /// Returns a warning if other users can read the keys in the file.
    pub(crate) fn exposure_warning(&self) -> Option<Message> {
        let profiles = self.file.as_ref()?.as_ref().ok().filter(|profiles| profiles.is_exposed)?;
        Some(texts::EXPOSED.with(&[("file", &*profiles.file.to_string_lossy())]))
    }
}

fn output_options(
    format: Option<&str>,
    lang: Option<&str>,
    profile: &Profile,
    given: impl Fn(&str) -> Option<String>,
) -> OutputOptions {
    let format = format.map(str::to_owned).or_else(|| given("PARCELO_OUTPUT"));
    let format = format.and_then(|format| Format::from_str(&format, false).ok());
    let variable = given("PARCELO_LANG").and_then(|lang| Lang::from_str(&lang, false).ok());
    let locale = || LOCALE.into_iter().find_map(&given).unwrap_or_default();
    let language = match lang {
        Some(lang) => language_from_locale(lang),
        None => variable
            .map(Language::from)
            .or(profile.language)
            .unwrap_or_else(|| language_from_locale(&locale())),
    };
    OutputOptions { format: format.or(profile.output).unwrap_or(Format::Table), language }
}

/// Returns Spanish for `es`, `es_EC.UTF-8` and `es-MX`, and English for everything else.
fn language_from_locale(locale: &str) -> Language {
    match locale.split(['_', '-', '.', '@']).next() {
        Some("es") => Language::Es,
        _ => Language::En,
    }
}

/// Fails if a variable that the parser does not read has an invalid value.
pub(crate) fn check_variables(variable: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
    let given = |name: &str| variable(name).filter(|text| !text.is_empty());
    check_variable::<Format>("PARCELO_OUTPUT", given("PARCELO_OUTPUT").as_deref())?;
    check_variable::<Lang>("PARCELO_LANG", given("PARCELO_LANG").as_deref())
}

fn check_variable<T: ValueEnum>(name: &str, text: Option<&str>) -> Result<(), Failure> {
    let Some(text) = text.filter(|text| T::from_str(text, false).is_err()) else { return Ok(()) };
    let known = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    let known: Vec<_> = known.map(|value| value.get_name().to_owned()).collect();
    let text = without_keys(text);
    let values = [("value", &*text), ("option", name), ("values", &known.join(", "))];
    Err(Failure::usage(texts::NOT_A_POSSIBLE_VALUE.with(&values), texts::SEE_VARIABLES))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Variables = &'static [(&'static str, &'static str)];

    fn options(
        [format, lang]: [Option<&str>; 2],
        variables: Variables,
        profile: &Profile,
    ) -> (Language, Format) {
        let given = |name: &str| {
            let found = variables.iter().find(|(key, value)| *key == name && !value.is_empty());
            found.map(|(_, value)| (*value).to_owned())
        };
        let options = output_options(format, lang, profile, given);
        (options.language, options.format)
    }

    #[test]
    fn an_option_overrides_the_locale_and_lc_all_overrides_lang() {
        let table: [(Option<&str>, Variables, Language); 9] = [
            (None, &[], Language::En),
            (None, &[("LANG", "es_EC.UTF-8")], Language::Es),
            (None, &[("LANG", "es")], Language::Es),
            (None, &[("LANG", "est_EE")], Language::En),
            (None, &[("LANG", "es_MX"), ("LC_ALL", "C.UTF-8")], Language::En),
            (None, &[("LANG", "es_MX"), ("LC_ALL", "")], Language::Es),
            (None, &[("LANG", "C"), ("LC_MESSAGES", "es@x")], Language::Es),
            (Some("en"), &[("LANG", "es_MX")], Language::En),
            (Some("es"), &[("LC_ALL", "C")], Language::Es),
        ];
        for (lang, variables, language) in table {
            let found = options([None, lang], variables, &Profile::default());
            assert_eq!(found, (language, Format::Table), "{lang:?} {variables:?}");
        }
        let odd = options([Some("yaml"), None], &[], &Profile::default());
        assert_eq!(odd.1, Format::Table);
    }

    #[test]
    fn an_option_overrides_a_variable_and_a_variable_the_profile() {
        let (es, json) = (Some(Language::Es), Some(Format::Json));
        let profile = Profile { language: es, output: json, ..Profile::default() };
        let both: Variables = &[("PARCELO_LANG", "en"), ("PARCELO_OUTPUT", "csv")];
        let odd: Variables = &[("PARCELO_LANG", ""), ("PARCELO_OUTPUT", "?")];
        let table: [([Option<&str>; 2], Variables, Language, Format); 4] = [
            ([None, None], &[("LANG", "en_US")], Language::Es, Format::Json),
            ([None, None], both, Language::En, Format::Csv),
            ([Some("ndjson"), Some("es")], both, Language::Es, Format::Ndjson),
            ([None, None], odd, Language::Es, Format::Json),
        ];
        for (typed, variables, language, format) in table {
            assert_eq!(options(typed, variables, &profile), (language, format), "{typed:?}");
        }
    }
}
