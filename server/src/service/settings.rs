//! What an operator can set.

use ipnet::IpNet;
use parcelo::{Environment, rules::Destinations};

use crate::domain::{
    Secrets, Site,
    legacy::Era,
    webhooks::{Allowance, AllowedHosts},
};

/// What an operator can set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Production's public addresses.
    pub production: Site,
    /// The sandbox's public addresses.
    pub sandbox: Site,
    /// Where parcels may go.
    pub destinations: Destinations,
    /// Requests a second.
    pub limits: Limits,
    /// What keys are hashed and label links are signed with.
    pub secrets: Secrets,
    /// What webhooks may reach besides public addresses.
    pub webhooks: Allowance,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The options by which a command on this machine finds the database, unless no command can.
    pub database_options: Option<String>,
    /// Since when, and how long, the legacy API is served.
    pub legacy: Era,
}

impl Settings {
    /// What an environment's webhooks may reach.
    pub const fn reach(&self, environment: Environment) -> AllowedHosts {
        AllowedHosts::for_environment(environment, self.webhooks)
    }

    /// The public addresses of an environment.
    pub const fn site(&self, environment: Environment) -> &Site {
        match environment {
            Environment::Production => &self.production,
            Environment::Sandbox => &self.sandbox,
        }
    }
}

/// Requests a second (spec: Limits).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of one production key.
    pub production: u32,
    /// Of one sandbox key.
    pub sandbox: u32,
    /// Of one address on public pages.
    pub public: u32,
    /// Of one address without a valid key.
    pub unauthenticated: u32,
    /// Whether anyone is held to these; a limit of a key's own always holds.
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
    /// The limit of a key that has none of its own.
    pub const fn of_key(&self, environment: Environment) -> u32 {
        match environment {
            Environment::Production => self.production,
            Environment::Sandbox => self.sandbox,
        }
    }
}
