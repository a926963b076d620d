//! The command line: every flag is also an environment variable; a flag wins.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum, builder::EnumValueParser};
use ipnet::IpNet;
use parcelo::{CountryCode, Environment, model::FaultCode, rules::Destinations};
use url::Url;

use super::{
    accounts::Accounts, backup::Backup, carriers::Carriers, list_args::Trimmed, mock_args::Mock,
    tokens::Tokens, vacuum::Vacuum, webhook_args::Webhooks,
};
use crate::{
    clock::Millis,
    domain::{access, credentials::MAX_OVERLAP_SECONDS, legacy::Era, webhooks::Allowance},
    http::DEFAULT_SHARE,
    service::Limits,
};

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
    /// Make, list, rotate and revoke API keys; works while a server runs on the same database.
    #[command(subcommand)]
    Keys(Keys),
    /// Make, list and revoke carrier keys; works while a server runs on the same database.
    #[command(subcommand)]
    Carriers(Carriers),
    /// Set, test and watch webhooks; works while a server runs on the same database.
    #[command(subcommand)]
    Webhooks(Webhooks),
    /// Serve the sandbox in memory to a test suite in any language, with a clock to move and faults
    /// to plan under /__mock/.
    Mock(Box<Mock>),
    /// Make, list and revoke tokens for the admin API; works while a server runs on the same database.
    #[command(subcommand)]
    Tokens(Tokens),
    /// Make and list accounts, and say who may sign in to the dashboard; works while a server runs on the same database.
    #[command(subcommand)]
    Accounts(Accounts),
    /// Copy the database as it is at this moment; works while a server runs on it.
    Backup(Backup),
    /// Write the database anew, without any trace of what was deleted; for files from before 0.2. Stop the
    /// server first.
    Vacuum(Vacuum),
    /// Show which keys still use the legacy API, by day.
    Legacy(ListKeys),
}

#[derive(Debug, Clone, ClapArgs)]
pub(super) struct DatabaseArg {
    /// The database: `sqlite:FILE`, or `sqlite::memory:` for one that is gone afterwards.
    #[arg(long, env = "PARCELO_DATABASE", default_value = "sqlite:parcelo.db", value_name = "URL", value_parser = database)]
    pub(super) database: Database,
}

/// Where data is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Database {
    Memory,
    File(PathBuf),
}

#[derive(Debug, ClapArgs)]
pub(super) struct Serve {
    #[command(flatten)]
    pub(super) database: DatabaseArg,
    /// The environments to serve.
    #[arg(
        long,
        env = "PARCELO_ENVIRONMENTS",
        value_delimiter = ',',
        default_value = "production,sandbox",
        value_parser = Trimmed(EnumValueParser::<EnvironmentArg>::new())
    )]
    pub(super) environments: Vec<EnvironmentArg>,
    /// Where the production API listens.
    #[arg(long, env = "PARCELO_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDRESS")]
    pub(super) listen: SocketAddr,
    /// Where the sandbox API listens.
    #[arg(
        long,
        env = "PARCELO_SANDBOX_LISTEN",
        default_value = "127.0.0.1:8081",
        value_name = "ADDRESS"
    )]
    pub(super) sandbox_listen: SocketAddr,
    /// Where operators have the dashboard, the admin API, /metrics and the probes.
    #[arg(
        long,
        env = "PARCELO_ADMIN_LISTEN",
        default_value = "127.0.0.1:8082",
        value_name = "ADDRESS"
    )]
    pub(super) admin_listen: SocketAddr,
    /// A file that is written once the server listens: its addresses and process id, as JSON.
    #[arg(long, env = "PARCELO_READY_FILE", value_name = "PATH")]
    pub(super) ready_file: Option<PathBuf>,
    /// After SIGTERM: for how many seconds, 0-25, connections are still accepted while /readyz says 503.
    /// Requests in flight have what is left of 25 seconds.
    #[arg(
        long,
        env = "PARCELO_DRAIN",
        default_value_t = 5,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(0..=25)
    )]
    drain: u64,
    /// The production API's public address, as it stands on labels and in answers.
    #[arg(long, env = "PARCELO_PRODUCTION_BASE_URL", value_name = "URL", value_parser = address)]
    pub(super) base_url: Option<Url>,
    /// The sandbox API's public address.
    #[arg(long, env = "PARCELO_SANDBOX_BASE_URL", value_name = "URL", value_parser = address)]
    pub(super) sandbox_base_url: Option<Url>,
    /// The public address of production's label files; the API's address with /files when absent.
    #[arg(long, env = "PARCELO_PRODUCTION_LABELS_HOST", value_name = "URL", value_parser = labels_address)]
    pub(super) labels_host: Option<Url>,
    /// The public address of the sandbox's label files.
    #[arg(long, env = "PARCELO_SANDBOX_LABELS_HOST", value_name = "URL", value_parser = labels_address)]
    pub(super) sandbox_labels_host: Option<Url>,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    /// Countries that parcels may go to; all of them when absent.
    #[arg(long, env = "PARCELO_COUNTRIES", value_delimiter = ',', value_name = "CODE", value_parser = Trimmed(country))]
    pub(super) countries: Vec<CountryCode>,
    /// Let webhooks go to private addresses, and by http in production too.
    #[arg(long, env = "PARCELO_WEBHOOKS_ALLOW_PRIVATE")]
    pub(super) webhooks_allow_private: bool,
    /// Let the sandbox's webhooks go to this machine.
    #[arg(long, env = "PARCELO_SANDBOX_WEBHOOKS_ALLOW_LOOPBACK")]
    pub(super) sandbox_webhooks_allow_loopback: bool,
    /// The most connections of one address, or of one /64 network of IPv6, at each listener; loopback
    /// and trusted proxies may have any number.
    #[arg(long, env = "PARCELO_CONNECTIONS_PER_ADDRESS", default_value_t = DEFAULT_SHARE, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) connections_per_address: u32,
    /// Proxies whose X-Forwarded-For header is believed.
    #[arg(long, env = "PARCELO_TRUSTED_PROXIES", value_delimiter = ',', value_name = "NETWORK", value_parser = Trimmed(network))]
    pub(super) trusted_proxies: Vec<IpNet>,
    /// Since when the legacy API is deprecated: a date, which begins in UTC.
    #[arg(long, env = "PARCELO_LEGACY_DEPRECATED", value_name = "DATE", value_parser = day)]
    pub(super) legacy_deprecated: Option<Millis>,
    /// From when on the legacy API is gone (410): a date, which begins in UTC; never when absent.
    #[arg(long, env = "PARCELO_LEGACY_SUNSET", value_name = "DATE", value_parser = day)]
    pub(super) legacy_sunset: Option<Millis>,
}

impl Serve {
    pub(super) const fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }

    pub(super) fn legacy(&self) -> Era {
        let usual = Era::default();
        let deprecated = self.legacy_deprecated.unwrap_or(usual.deprecated);
        Era { deprecated, sunset: self.legacy_sunset.or(usual.sunset) }
    }

    pub(super) fn webhooks(&self) -> Allowance {
        Allowance {
            private: self.webhooks_allow_private,
            sandbox_loopback: self.sandbox_webhooks_allow_loopback,
        }
    }

    pub(super) fn destinations(&self) -> Destinations {
        if self.countries.is_empty() {
            Destinations::All
        } else {
            Destinations::Only(self.countries.iter().copied().collect())
        }
    }
}

#[derive(Debug, Clone, Copy, ClapArgs)]
#[expect(clippy::struct_field_names, reason = "each is the name of its flag")]
pub(super) struct LimitArgs {
    /// Requests a second of one production key.
    #[arg(long, env = "PARCELO_PRODUCTION_RATE_LIMIT", default_value_t = Limits::default().production, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    production_rate_limit: u32,
    /// Requests a second of one sandbox key.
    #[arg(long, env = "PARCELO_SANDBOX_RATE_LIMIT", default_value_t = Limits::default().sandbox, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sandbox_rate_limit: u32,
    /// Requests a second of one address on public pages.
    #[arg(long, env = "PARCELO_PUBLIC_RATE_LIMIT", default_value_t = Limits::default().public, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    public_rate_limit: u32,
    /// Requests a second of one address without a valid key.
    #[arg(long, env = "PARCELO_UNAUTHENTICATED_RATE_LIMIT", default_value_t = Limits::default().unauthenticated, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    unauthenticated_rate_limit: u32,
}

impl From<LimitArgs> for Limits {
    fn from(args: LimitArgs) -> Self {
        Self {
            production: args.production_rate_limit,
            sandbox: args.sandbox_rate_limit,
            public: args.public_rate_limit,
            unauthenticated: args.unauthenticated_rate_limit,
            enforced: true,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum Keys {
    /// Make a key; it is shown this once only.
    Create(CreateKey),
    /// List the keys, without their secrets.
    List(ListKeys),
    /// Give a key a new secret, shown this once only; the old one keeps working for a while.
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
    /// An address or network it may be used from; up to 50, any when absent.
    #[arg(long = "ip", value_delimiter = ',', value_name = "NETWORK", value_parser = Trimmed(network))]
    pub(super) ip_list: Vec<IpNet>,
    /// The account it belongs to; made when it does not exist.
    #[arg(long, default_value = "default", value_parser = name)]
    pub(super) account: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ListKeys {
    #[command(flatten)]
    pub(super) database: DatabaseArg,
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
    /// How long the old secret keeps working, such as 24h, 90m or 7d; at most 7 days, and 0 ends it at once.
    #[arg(long, default_value = "24h", value_name = "TIME", value_parser = overlap)]
    pub(super) overlap: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum EnvironmentArg {
    /// Live shipments.
    Production,
    /// Simulated ones.
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

/// One entry of a key's countries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CountryOrAll {
    All,
    One(CountryCode),
}

pub(super) fn database(text: &str) -> Result<Database, String> {
    match text.strip_prefix("sqlite:") {
        Some(":memory:") => Ok(Database::Memory),
        Some(file) if !matches!(file, "" | "//") => {
            Ok(Database::File(file.strip_prefix("//").unwrap_or(file).into()))
        }
        Some(_) | None => Err("a database is sqlite:FILE or sqlite::memory:".to_owned()),
    }
}

fn country(text: &str) -> Result<CountryCode, String> {
    CountryCode::parse(text).map_err(|error| error.to_string())
}

/// A public address: other paths and signatures are written behind it.
pub(super) fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
    url.filter(|url| url.query().is_none() && url.fragment().is_none())
        .ok_or_else(|| "an address such as https://parcelo.example, without ? and #".to_owned())
}

/// As [`address`]; what is under /api needs a key, and label links have none.
fn labels_address(text: &str) -> Result<Url, String> {
    let url = address(text)?;
    match url.path_segments().and_then(|mut segments| segments.next()) {
        Some("api") => Err("an address outside /api, where an API key is needed".to_owned()),
        Some(_) | None => Ok(url),
    }
}

fn country_or_all(text: &str) -> Result<CountryOrAll, String> {
    if text == "*" { Ok(CountryOrAll::All) } else { country(text).map(CountryOrAll::One) }
}

fn network(text: &str) -> Result<IpNet, String> {
    access::network(text).ok_or_else(|| "an address or a network such as 10.0.0.0/8".to_owned())
}

/// A whole number of days, hours, minutes or seconds; in seconds.
fn overlap(text: &str) -> Result<u32, String> {
    let units = [("d", 24 * 60 * 60), ("h", 60 * 60), ("m", 60), ("s", 1)];
    let named = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds)));
    let (number, unit) = named.unwrap_or((text, 0));
    let are_digits = number.bytes().all(|digit| digit.is_ascii_digit());
    let number =
        number.parse::<u32>().ok().filter(|number| are_digits && (unit > 0 || *number == 0));
    let number = number.ok_or("a time such as 24h, 90m or 7d, or 0")?;
    let seconds = number.saturating_mul(unit);
    if seconds > MAX_OVERLAP_SECONDS {
        return Err("the old secret keeps working for 7 days at most".to_owned());
    }
    Ok(seconds)
}

fn day(text: &str) -> Result<Millis, String> {
    let date = text.parse::<chrono::NaiveDate>().map_err(|_| "a date such as 2027-06-30")?;
    Ok(date.and_time(chrono::NaiveTime::MIN).and_utc().into())
}

pub(super) fn name(text: &str) -> Result<String, String> {
    parcelo::admin::check_name(text).map_err(|fault| match fault.code {
        FaultCode::InvalidFormat => fault.message,
        _ => "a name has 1-100 characters".to_owned(),
    })
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
    fn sigterm_drains_for_five_seconds_unless_asked_otherwise() {
        let drain = |arguments: &[&str]| {
            let all = ["parcelo-server", "serve"].iter().chain(arguments);
            match Args::try_parse_from(all).map(|args| args.command) {
                Ok(Command::Serve(serve)) => Some(serve.drain().as_secs()),
                _ => None,
            }
        };
        assert_eq!([drain(&[]), drain(&["--drain", "0"])], [Some(5), Some(0)]);
        assert_eq!([drain(&["--drain", "25"]), drain(&["--drain", "26"])], [Some(25), None]);
    }

    #[test]
    fn a_database_is_a_file_or_memory() {
        assert_eq!(database("sqlite:parcelo.db"), Ok(Database::File("parcelo.db".into())));
        assert_eq!(database("sqlite:///var/p.db"), Ok(Database::File("/var/p.db".into())));
        assert_eq!(database("sqlite::memory:"), Ok(Database::Memory));
        assert_eq!(database("sqlite:////var/p.db"), Ok(Database::File("//var/p.db".into())));
        assert!(database("sqlite://").is_err());
        assert!(database("postgres://x").is_err() && database("sqlite:").is_err());
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

    #[test]
    fn a_name_is_seen_as_it_is() {
        assert_eq!(name(" Shop "), Ok("Shop".to_owned()));
        for bad in ["", "  ", "\u{200B}", "a\u{202E}b", "a\nkey_2 forged", "a\u{1b}[31m"] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }
}
