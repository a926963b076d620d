//! The two environments, production and sandbox, which share no data (spec: Authentication).

use serde::{Deserialize, Serialize};

/// The environment of a key, a parcel or an event. The two environments share no data, and a key works in one of them
/// (docs/api.md, Sandbox).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Real shipments with real carriers; data is kept indefinitely.
    Production,
    /// Simulated carriers; data is deleted after 30 days.
    Sandbox,
}

impl Environment {
    /// Both environments.
    #[doc(hidden)]
    pub const ALL: [Self; 2] = [Self::Production, Self::Sandbox];

    /// Returns the code in JSON: `production` or `sandbox`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Production => "production",
            Self::Sandbox => "sandbox",
        }
    }

    /// Returns the prefix of the API keys of the environment.
    #[doc(hidden)]
    pub const fn key_prefix(self) -> &'static str {
        match self {
            Self::Production => "pk_live_",
            Self::Sandbox => "pk_test_",
        }
    }

    /// Returns the number of requests per second that a key may make by default (spec: Limits).
    #[doc(hidden)]
    pub const fn requests_per_second(self) -> u32 {
        match self {
            Self::Production => 50,
            Self::Sandbox => 100,
        }
    }

    /// Returns the environment that a key's prefix stands for.
    #[doc(hidden)]
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|environment| key.starts_with(environment.key_prefix()))
    }
}

impl std::fmt::Display for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

impl super::maybe_known::Spelled for Environment {
    fn spelling(&self) -> &str {
        self.code()
    }
}
