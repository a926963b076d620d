//! Arguments and values that several commands share.

use std::ffi::OsStr;

use chrono::NaiveDate;
use clap::{
    Arg, Args as ClapArgs, Command, Error, ValueEnum,
    builder::{PossibleValue, TypedValueParser},
};
use ipnet::IpNet;
use parcelo_domain::{Millis, access, activity::day_start};
use parcelo_types::{CountryCode, Environment, internal::meant_country, model::FaultCode};
use url::Url;

use super::database::DatabaseArg;

#[derive(Debug, ClapArgs)]
pub(super) struct CommonArgs {
    #[command(flatten)]
    pub(super) database: DatabaseArg,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EnvironmentArg {
    /// Live shipments.
    Production,
    /// Simulated shipments.
    Sandbox,
}

impl From<EnvironmentArg> for Environment {
    fn from(arg: EnvironmentArg) -> Self {
        match arg {
            EnvironmentArg::Production => Self::Production,
            EnvironmentArg::Sandbox => Self::Sandbox,
        }
    }
}

/// A parser of list entries that ignores the spaces around them: `EC, MX` is `EC,MX`, as in the dashboard's forms.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrimmingParser<P>(pub(super) P);

impl<P: TypedValueParser> TypedValueParser for TrimmingParser<P> {
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

pub(super) fn parse_country(text: &str) -> Result<CountryCode, String> {
    let fault = "expected an assigned country code (ISO 3166-1), such as EC";
    CountryCode::parse(&text.to_ascii_uppercase()).map_err(|_| match meant_country(text) {
        Some(meant) => format!("{fault}; did you mean {meant}?"),
        None => fault.to_owned(),
    })
}

/// Parses a public address. It must be one to which paths and queries can be appended.
pub(super) fn parse_base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    let url = url.filter(|url| url.query().is_none() && url.fragment().is_none());
    let url = url.ok_or_else(|| {
        "expected an http or https address such as https://parcelo.example, without ? and #"
            .to_owned()
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("leave out the user and password: labels and logs show this address".to_owned());
    }
    Ok(url)
}

pub(super) fn parse_network(text: &str) -> Result<IpNet, String> {
    access::parse_network(text)
        .ok_or_else(|| "expected an address or a network such as 10.0.0.0/8".to_owned())
}

/// Parses a day, and returns the time at which it begins.
pub(super) fn parse_day(text: &str) -> Result<Millis, String> {
    let day = text.parse::<NaiveDate>().map_err(|_| "expected a date such as 2027-06-30")?;
    Ok(day_start(day.to_epoch_days().into()))
}

pub(super) fn parse_name(text: &str) -> Result<String, String> {
    parcelo_wire::check_name(text).map_err(|fault| match fault.code {
        FaultCode::InvalidFormat => fault.message,
        _ => "expected 1-100 characters".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_address_has_no_user_and_no_password() {
        assert!(parse_base_url("https://parcelo.example/shop").is_ok());
        for bad in ["https://shop:s3cret@parcelo.example", "https://shop@parcelo.example"] {
            let refused = parse_base_url(bad).unwrap_err();
            assert!(refused.contains("leave out the user and password"), "{refused}");
            assert!(!refused.contains("s3cret"));
        }
    }

    #[test]
    fn a_name_has_no_invisible_characters() {
        assert_eq!(parse_name(" Shop "), Ok("Shop".to_owned()));
        for bad in ["", "  ", "\u{200B}", "a\u{202E}b", "a\nkey_2 forged", "a\u{1b}[31m"] {
            assert!(parse_name(bad).is_err(), "{bad:?}");
        }
    }
}
