//! Tenants: a tenant is an account in one environment, and every row belongs to one.

use parcelo_types::Environment;

use crate::Millis;

/// An account's row id in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountRowId(pub i64);

/// An account as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// The row id in the database.
    pub key: AccountRowId,
    /// The public id: `acc_…`.
    pub id: String,
    /// The name that the operator gave it.
    pub name: String,
    /// The time of creation.
    pub created_at: Millis,
}

/// An account in one environment. No tenant sees another's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// The account.
    pub account: AccountRowId,
    /// The environment.
    pub environment: Environment,
}

/// The bits of a tenant's number that identify the tenant. The bits above them count the resets of a sandbox.
const IDENTITY_MASK: i64 = 0xFFFF_FFFF;

impl Tenant {
    /// Returns the tenant's number before any reset. Rows that a reset keeps have this number forever.
    pub const fn number(self) -> i64 {
        let environment = match self.environment {
            Environment::Production => 0,
            Environment::Sandbox => 1,
        };
        self.account.0 * 2 + environment
    }

    /// Returns the tenant that has this number, or had it before a reset.
    pub const fn from_number(number: i64) -> Self {
        let environment =
            if number % 2 == 0 { Environment::Production } else { Environment::Sandbox };
        Self { account: AccountRowId((number & IDENTITY_MASK) / 2), environment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenant_numbers_round_trip() {
        for number in 0..10 {
            assert_eq!(Tenant::from_number(number).number(), number);
            let after_resets = number + 7 * (IDENTITY_MASK + 1);
            assert_eq!(Tenant::from_number(after_resets).number(), number);
        }
    }
}
