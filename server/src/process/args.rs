//! The command line: every flag is also an environment variable; a flag wins.

use clap::{Args as ClapArgs, Parser, Subcommand};
use ipnet::IpNet;
use parcelo::CountryCode;

use super::{
    accounts::Accounts,
    backup::Backup,
    carriers::Carriers,
    database::DatabaseArg,
    mock_args::Mock,
    serve_args::Serve,
    shared_args::{EnvironmentArg, ListKeys, Trimmed, country, name, network},
    tokens::Tokens,
    vacuum::Vacuum,
    webhook_args::Webhooks,
};
use crate::domain::credentials::MAX_OVERLAP_SECONDS;

/// The Parcelo server: creates parcel orders with labels and tracks them.
#[derive(Debug, Parser)]
#[command(name = "parcelo-server", version, propagate_version = true)]
pub struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

impl Args {
    /// Reads the process's arguments; wrong ones end the process with an explanation.
    pub fn read() -> Self {
        Self::parse()
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the production API, the sandbox API and the operators' listener.
    Serve(Box<Serve>),
    /// Create, list, rotate and revoke API keys; works while a server runs on the same database.
    #[command(subcommand)]
    Keys(Keys),
    /// Create, list and revoke carrier keys; works while a server runs on the same database.
    #[command(subcommand)]
    Carriers(Carriers),
    /// Set up, test and inspect webhooks; works while a server runs on the same database.
    #[command(subcommand)]
    Webhooks(Webhooks),
    /// Serve the sandbox in memory for test suites in any language, with clock and fault controls
    /// under /__mock/.
    Mock(Box<Mock>),
    /// Create, list and revoke tokens for the admin API; works while a server runs on the same database.
    #[command(subcommand)]
    Tokens(Tokens),
    /// Create and list accounts, and set their dashboard passwords; works while a server runs on the same database.
    #[command(subcommand)]
    Accounts(Accounts),
    /// Copy the database as it is at this moment; works while a server runs on it.
    Backup(Backup),
    /// Rewrite the database file without any trace of deleted data; for files from before 0.2. Stop the
    /// server first.
    Vacuum(Vacuum),
    /// Show which keys still use the legacy API, by day.
    Legacy(ListKeys),
}

#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    /// Create a key; it is shown only once.
    Create(CreateKey),
    /// List the keys, without their secrets.
    List(ListKeys),
    /// Give a key a new secret, shown only once; the old one keeps working for a while.
    Rotate(RotateKey),
    /// Revoke a key with all its secrets; a running server refuses it within a second.
    Revoke(RevokeKey),
}

#[derive(Debug, ClapArgs)]
pub(super) struct CreateKey {
    #[command(flatten)]
    pub(super) database: DatabaseArg,
    /// The environment the key is for.
    #[arg(long, value_name = "ENVIRONMENT")]
    pub(super) environment: EnvironmentArg,
    /// A name for people, 1-100 characters.
    #[arg(long, value_parser = name)]
    pub(super) name: String,
    /// The countries it may ship to, as EC,MX; * for every supported one.
    #[arg(long, required = true, value_delimiter = ',', value_parser = Trimmed(country_or_all))]
    pub(super) countries: Vec<CountryOrAll>,
    /// An address or network it may be used from; up to 50; any if absent.
    #[arg(long = "ip", value_delimiter = ',', value_name = "NETWORK", value_parser = Trimmed(network))]
    pub(super) ip_list: Vec<IpNet>,
    /// The account it belongs to; created if it does not exist.
    #[arg(long, default_value = "default", value_parser = name)]
    pub(super) account: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct RevokeKey {
    #[command(flatten)]
    pub(super) options: ListKeys,
    /// The key's id, key_…
    #[arg(value_name = "KEYID")]
    pub(super) id: String,
}

#[derive(Debug, ClapArgs)]
pub(super) struct RotateKey {
    #[command(flatten)]
    pub(super) which: RevokeKey,
    /// How long the old secret keeps working, such as 24h, 90m or 7d; at most 7 days; 0 ends it at once.
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = overlap)]
    pub(super) overlap: u32,
}

/// One entry of a key's countries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountryOrAll {
    All,
    One(CountryCode),
}

fn country_or_all(text: &str) -> Result<CountryOrAll, String> {
    if text == "*" { Ok(CountryOrAll::All) } else { country(text).map(CountryOrAll::One) }
}

/// A whole number of days, hours, minutes or seconds; in seconds.
fn overlap(text: &str) -> Result<u32, String> {
    let units = [("d", 24 * 60 * 60), ("h", 60 * 60), ("m", 60), ("s", 1)];
    let named = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, unit) = named.unwrap_or((text, 0));
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
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
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
            assert_eq!(overlap(text).ok(), seconds, "{text}");
        }
    }

    #[test]
    fn every_list_may_have_blanks_behind_its_commas() {
        let serve = |flag, list| {
            let args = Args::try_parse_from(["parcelo-server", "serve", flag, list]);
            let Command::Serve(serve) = args.unwrap().command else { panic!("{flag}") };
            serve
        };
        assert_eq!(serve("--countries", "EC, MX ,CO").countries.len(), 3);
        assert_eq!(serve("--environments", "production, sandbox").environments.len(), 2);
        let proxies = "10.0.0.0/8, 2001:db8::1";
        assert_eq!(serve("--trusted-proxies", proxies).trusted_proxies.len(), 2);
        let key = ["parcelo-server", "keys", "create", "--environment", "sandbox", "--name", "x"];
        let lists = ["--countries", "EC, MX", "--ip", "10.0.0.1, 10.0.0.2", "--ip", "::1"];
        let args = Args::try_parse_from(key.into_iter().chain(lists)).unwrap();
        let Command::Keys(Keys::Create(key)) = args.command else { panic!("keys create") };
        assert_eq!((key.countries.len(), key.ip_list.len()), (2, 3));
        let hook = ["parcelo-server", "webhooks", "set", "--environment", "sandbox", "--url", "x"];
        let kinds = ["--events", "parcel.created, parcel.voided"];
        assert!(Args::try_parse_from(hook.into_iter().chain(kinds)).is_ok());
        for empty in ["", "EC,", "EC,,MX", " "] {
            let args = Args::try_parse_from(["parcelo-server", "serve", "--countries", empty]);
            assert!(args.is_err(), "{empty:?}");
        }
    }
}
