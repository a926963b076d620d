//! The command line of `parcelo-server serve`.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use clap::{Args as ClapArgs, builder::EnumValueParser};
use ipnet::IpNet;
use parcelo_domain::{Millis, legacy::LegacySchedule, webhooks::WebhookAllowance};
use parcelo_service::{http::DEFAULT_CONNECTIONS_PER_ADDRESS, service::Limits};
use parcelo_types::{CountryCode, rules::Destinations};
use url::Url;

use super::{
    database::{DatabaseArg, RedactingParser},
    mail_args::MailArgs,
    shared_args::{
        EnvironmentArg, TrimmingParser, parse_base_url, parse_country, parse_day, parse_network,
    },
};

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
        value_parser = TrimmingParser(EnumValueParser::<EnvironmentArg>::new())
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
    /// Where the dashboard, the admin API, /metrics and the probes listen.
    #[arg(
        long,
        env = "PARCELO_ADMIN_LISTEN",
        default_value = "127.0.0.1:8082",
        value_name = "ADDRESS"
    )]
    pub(super) admin_listen: SocketAddr,
    /// A file to write once the server listens: addresses and process id, as JSON.
    #[arg(long, env = "PARCELO_READY_FILE", value_name = "PATH")]
    pub(super) ready_file: Option<PathBuf>,
    /// A file for the key, token and password of a new database, instead of standard output, which
    /// containers keep in their log. Only its owner can read it.
    #[arg(long, env = "PARCELO_SECRETS_FILE", value_name = "PATH")]
    pub(super) secrets_file: Option<PathBuf>,
    /// Seconds (0-25) to keep accepting connections after SIGTERM while /readyz answers 503.
    /// Requests in flight have the rest of 25 seconds.
    #[arg(
        long,
        env = "PARCELO_DRAIN",
        default_value_t = 5,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(0..=25)
    )]
    drain: u64,
    /// The production API's public address, used on labels and in answers.
    #[arg(long, env = "PARCELO_PRODUCTION_BASE_URL", value_name = "URL", value_parser = RedactingParser(parse_base_url))]
    pub(super) base_url: Option<Url>,
    /// The sandbox API's public address.
    #[arg(long, env = "PARCELO_SANDBOX_BASE_URL", value_name = "URL", value_parser = RedactingParser(parse_base_url))]
    pub(super) sandbox_base_url: Option<Url>,
    /// The public address of production's label files; the API's address with /files if absent.
    #[arg(long, env = "PARCELO_PRODUCTION_LABELS_HOST", value_name = "URL", value_parser = RedactingParser(parse_labels_address))]
    pub(super) labels_host: Option<Url>,
    /// The public address of the sandbox's label files.
    #[arg(long, env = "PARCELO_SANDBOX_LABELS_HOST", value_name = "URL", value_parser = RedactingParser(parse_labels_address))]
    pub(super) sandbox_labels_host: Option<Url>,
    #[command(flatten)]
    pub(super) mail: MailArgs,
    #[command(flatten)]
    pub(super) limits: LimitArgs,
    /// Countries that parcels may be sent to; all supported ones if absent.
    #[arg(long, env = "PARCELO_COUNTRIES", value_delimiter = ',', value_name = "CODE", value_parser = TrimmingParser(parse_country))]
    pub(super) countries: Vec<CountryCode>,
    /// Allow webhooks to private addresses, and over http in production too.
    #[arg(long, env = "PARCELO_WEBHOOKS_ALLOW_PRIVATE")]
    pub(super) webhooks_allow_private: bool,
    /// Allow the sandbox's webhooks to this machine.
    #[arg(long, env = "PARCELO_SANDBOX_WEBHOOKS_ALLOW_LOOPBACK")]
    pub(super) sandbox_webhooks_allow_loopback: bool,
    /// Maximum connections of one address, or of one /64 network of IPv6, at each listener; loopback
    /// and trusted proxies are not limited.
    #[arg(long, env = "PARCELO_CONNECTIONS_PER_ADDRESS", default_value_t = DEFAULT_CONNECTIONS_PER_ADDRESS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) connections_per_address: u32,
    /// Proxies whose X-Forwarded-For header is trusted.
    #[arg(long, env = "PARCELO_TRUSTED_PROXIES", value_delimiter = ',', value_name = "NETWORK", value_parser = TrimmingParser(parse_network))]
    pub(super) trusted_proxies: Vec<IpNet>,
    /// Date from which the legacy API is deprecated, in UTC; 2026-01-01 if absent.
    #[arg(long, env = "PARCELO_LEGACY_DEPRECATED", value_name = "DATE", value_parser = parse_day)]
    pub(super) legacy_deprecated: Option<Millis>,
    /// Date from which the legacy API answers 410, in UTC; never if absent.
    #[arg(long, env = "PARCELO_LEGACY_SUNSET", value_name = "DATE", value_parser = parse_day)]
    pub(super) legacy_sunset: Option<Millis>,
}

impl Serve {
    pub(super) const fn drain(&self) -> Duration {
        Duration::from_secs(self.drain)
    }

    pub(super) fn legacy(&self) -> LegacySchedule {
        let default = LegacySchedule::default();
        let deprecated = self.legacy_deprecated.unwrap_or(default.deprecated);
        LegacySchedule { deprecated, sunset: self.legacy_sunset.or(default.sunset) }
    }

    pub(super) fn webhooks(&self) -> WebhookAllowance {
        WebhookAllowance {
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
    /// Requests per second for one production key.
    #[arg(long, env = "PARCELO_PRODUCTION_RATE_LIMIT", default_value_t = Limits::default().production, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    production_rate_limit: u32,
    /// Requests per second for one sandbox key.
    #[arg(long, env = "PARCELO_SANDBOX_RATE_LIMIT", default_value_t = Limits::default().sandbox, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sandbox_rate_limit: u32,
    /// Requests per second for one address on public pages.
    #[arg(long, env = "PARCELO_PUBLIC_RATE_LIMIT", default_value_t = Limits::default().public, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    public_rate_limit: u32,
    /// Requests per second for one address without a valid key.
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

/// Parses a public address like [`parse_base_url`]. It must not be under /api, which needs a key that label links lack.
// The flag `--labels-host` keeps its older name: it takes a whole URL.
fn parse_labels_address(text: &str) -> Result<Url, String> {
    let url = parse_base_url(text)?;
    match url.path_segments().and_then(|mut segments| segments.next()) {
        Some("api") => {
            Err("expected an address outside /api, where an API key is needed".to_owned())
        }
        Some(_) | None => Ok(url),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        serve: Serve,
    }

    #[test]
    fn sigterm_drains_for_five_seconds_unless_configured() {
        let drain = |arguments: &[&str]| {
            let line = CommandLine::try_parse_from(["serve"].iter().chain(arguments));
            line.ok().map(|line| line.serve.drain().as_secs())
        };
        assert_eq!([drain(&[]), drain(&["--drain", "0"])], [Some(5), Some(0)]);
        assert_eq!([drain(&["--drain", "25"]), drain(&["--drain", "26"])], [Some(25), None]);
    }
}
