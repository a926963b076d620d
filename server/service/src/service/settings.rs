//! The settings of the service that an operator can change.

use ipnet::IpNet;
use parcelo_domain::{
    Secrets, Site,
    legacy::LegacySchedule,
    webhooks::{AllowedHosts, WebhookAllowance},
};
use parcelo_types::{Environment, rules::Destinations};

/// The settings of a service.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Production's public addresses.
    pub production: Site,
    /// The sandbox's public addresses.
    pub sandbox: Site,
    /// Countries that parcels may be shipped to.
    pub destinations: Destinations,
    /// Rate limits.
    pub limits: Limits,
    /// Secrets that hash keys and sign label links.
    pub secrets: Secrets,
    /// Addresses that webhooks may be sent to in addition to public ones.
    pub webhooks: WebhookAllowance,
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The command-line options with which a command on this machine finds the database; `None` if no command can open
    /// it.
    pub database_options: Option<String>,
    /// The period in which the legacy API is served.
    pub legacy: LegacySchedule,
}

impl Settings {
    /// Creates the default settings for a service at a public address.
    pub fn new(base_url: &str, secrets: Secrets) -> Self {
        let [production, sandbox] = [Environment::Production, Environment::Sandbox]
            .map(|environment| Site::new(environment, base_url));
        Self {
            production,
            sandbox,
            destinations: Destinations::All,
            limits: Limits::default(),
            secrets,
            webhooks: WebhookAllowance::default(),
            trusted_proxies: Vec::new(),
            database_options: None,
            legacy: LegacySchedule::default(),
        }
    }

    /// Returns the addresses that an environment's webhooks may be sent to.
    pub const fn allowed_hosts(&self, environment: Environment) -> AllowedHosts {
        AllowedHosts::for_environment(environment, self.webhooks)
    }

    /// Returns the public addresses of an environment.
    pub const fn site(&self, environment: Environment) -> &Site {
        match environment {
            Environment::Production => &self.production,
            Environment::Sandbox => &self.sandbox,
        }
    }
}

/// Rate limits, in requests per second (spec: Limits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit of each production key.
    pub production: u32,
    /// Limit of each sandbox key.
    pub sandbox: u32,
    /// Limit of each client address on public pages.
    pub public: u32,
    /// Limit of each client address without a valid key.
    pub unauthenticated: u32,
    /// `true` if these limits are enforced. A limit set on one key is always enforced.
    pub enforced: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            production: Environment::Production.requests_per_second(),
            sandbox: Environment::Sandbox.requests_per_second(),
            public: 10,
            unauthenticated: 50,
            enforced: true,
        }
    }
}

impl Limits {
    /// Returns the limit of a key for which none was set.
    pub const fn default_for_keys(&self, environment: Environment) -> u32 {
        match environment {
            Environment::Production => self.production,
            Environment::Sandbox => self.sandbox,
        }
    }
}
