//! The arguments of the admin commands for API keys, carrier keys and admin tokens.

use clap::{Args as ClapArgs, Subcommand};
use ipnet::IpNet;
use parcelo_domain::credentials::MAX_OVERLAP_SECONDS;
use parcelo_types::CountryCode;

use super::{
    database::DatabaseArg,
    shared_args::{
        CommonArgs, EnvironmentArg, TrimmingParser, parse_country, parse_name, parse_network,
    },
};

#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    /// Create a key; it is shown only once.
    Create(CreateKey),
    /// List the keys, without their secrets.
    List(CommonArgs),
    /// Give a key a new secret, shown only once; the old one keeps working for a while.
    Rotate {
        #[command(flatten)]
        options: CommonArgs,
        /// The key's id, key_…
        #[arg(value_name = "KEYID")]
        id: String,
        /// How long the old secret keeps working, such as 24h, 90m or 7d; at most 7 days; 0 ends it at once.
        #[arg(long, default_value = "24h", value_name = "TIME", value_parser = parse_overlap)]
        overlap: u32,
    },
    /// Revoke a key with all its secrets; a running server refuses it within a second.
    Revoke {
        #[command(flatten)]
        options: CommonArgs,
        /// The key's id, key_…
        #[arg(value_name = "KEYID")]
        id: String,
    },
}

#[derive(Debug, ClapArgs)]
pub(super) struct CreateKey {
    #[command(flatten)]
    pub(super) database: DatabaseArg,
    /// The environment the key is for.
    #[arg(long, value_name = "ENVIRONMENT")]
    pub(super) environment: EnvironmentArg,
    /// A name for people, 1-100 characters.
    #[arg(long, value_parser = parse_name)]
    pub(super) name: String,
    /// The countries it may ship to, as EC,MX; * for every supported one.
    #[arg(long, required = true, value_delimiter = ',', value_parser = TrimmingParser(parse_country_or_all))]
    pub(super) countries: Vec<CountryOrAll>,
    /// An address or network it may be used from; up to 50; any if absent.
    #[arg(long = "ip", value_delimiter = ',', value_name = "NETWORK", value_parser = TrimmingParser(parse_network))]
    pub(super) ip_list: Vec<IpNet>,
    /// The account it belongs to; created if it does not exist.
    #[arg(long, default_value = "default", value_parser = parse_name)]
    pub(super) account: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Carriers {
    /// Create a key; it is shown only once.
    Create {
        #[command(flatten)]
        database: DatabaseArg,
        /// The environment whose parcels the carrier reports on.
        #[arg(long, value_name = "ENVIRONMENT")]
        environment: EnvironmentArg,
        /// The carrier's name, 1-100 characters; a name that exists gets a further key.
        #[arg(long, value_parser = parse_name)]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the keys, without their secrets.
    List(CommonArgs),
    /// Revoke a key; a running server refuses it at once.
    Revoke {
        #[command(flatten)]
        options: CommonArgs,
        /// The key's id, car_…
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum Tokens {
    /// Create a token for the admin API; it is shown only once.
    Create {
        #[command(flatten)]
        database: DatabaseArg,
        /// A name for people, 1-100 characters.
        #[arg(long, value_parser = parse_name)]
        name: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// List the tokens, without their secrets.
    List(CommonArgs),
    /// Revoke a token; a running server refuses it at once.
    Revoke {
        #[command(flatten)]
        options: CommonArgs,
        /// The token's id, adt_…
        #[arg(value_name = "TOKENID")]
        id: String,
    },
}

/// An entry of a key's countries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountryOrAll {
    All,
    One(CountryCode),
}

fn parse_country_or_all(text: &str) -> Result<CountryOrAll, String> {
    if text == "*" {
        return Ok(CountryOrAll::All);
    }
    parse_country(text)
        .map(CountryOrAll::One)
        .map_err(|fault| format!("{fault} (for every country, give '*')"))
}

/// Parses a whole number of days, hours, minutes or seconds into seconds.
fn parse_overlap(text: &str) -> Result<u32, String> {
    let units = [("d", 24 * 60 * 60), ("h", 60 * 60), ("m", 60), ("s", 1)];
    let split = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, unit) = split.unwrap_or((text, 0));
    let are_digits = number.bytes().all(|digit| digit.is_ascii_digit());
    let number =
        number.parse::<u32>().ok().filter(|number| are_digits && (unit > 0 || *number == 0));
    let number = number.ok_or("expected a time such as 24h, 90m or 7d, or 0")?;
    let seconds = number.saturating_mul(unit);
    if seconds > MAX_OVERLAP_SECONDS {
        return Err("the old secret can keep working for 7 days at most".to_owned());
    }
    Ok(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_country_of_a_key_says_how_to_give_every_country() {
        assert_eq!(parse_country_or_all("*"), Ok(CountryOrAll::All));
        assert!(parse_country_or_all("all").unwrap_err().contains("give '*'"));
    }

    #[test]
    fn an_overlap_is_a_time_of_at_most_seven_days() {
        let table = [
            ("0", Some(0)),
            ("0h", Some(0)),
            ("90s", Some(90)),
            ("90m", Some(5_400)),
            ("24h", Some(86_400)),
            ("7d", Some(604_800)),
            ("604801s", None),
            ("8d", None),
            ("4294967296d", None),
            ("24", None),
            ("h", None),
            ("1hh", None),
            ("-1h", None),
            ("+1h", None),
            ("1.5h", None),
            ("", None),
        ];
        for (text, seconds) in table {
            assert_eq!(parse_overlap(text).ok(), seconds, "{text}");
        }
    }
}
