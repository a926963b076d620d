//! Whose data it is: an account in one environment. Every row belongs to one tenant.

use parcelo::Environment;

use crate::clock::Millis;

/// An account's row id in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountRowId(pub i64);

/// An account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// Its number inside the database.
    pub key: AccountRowId,
    /// The public id: `acc_…`.
    pub id: String,
    /// What the operator calls it.
    pub name: String,
    /// When it was made.
    pub created_at: Millis,
}

/// One account in one environment: nothing of one tenant is seen by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tenant {
    /// The account.
    pub account: AccountRowId,
    /// The environment.
    pub environment: Environment,
}

/// The bits of a tenant's number that say whose it is. Those above them are 0 at first, and count the resets of a
/// sandbox.
const HOME: i64 = 0xFFFF_FFFF;

impl Tenant {
    /// Returns the tenant's own number: that of all that a reset leaves, and of the rest until the first reset.
    pub const fn number(self) -> i64 {
        let environment = match self.environment {
            Environment::Production => 0,
            Environment::Sandbox => 1,
        };
        self.account.0 * 2 + environment
    }

    /// Returns the tenant whose number this is, or was until a reset.
    pub const fn from_number(number: i64) -> Self {
        let environment =
            if number % 2 == 0 { Environment::Production } else { Environment::Sandbox };
        Self { account: AccountRowId((number & HOME) / 2), environment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_one_number() {
        for number in 0..10 {
            assert_eq!(Tenant::from_number(number).number(), number);
            let after_resets = number + 7 * (HOME + 1);
            assert_eq!(Tenant::from_number(after_resets).number(), number);
        }
    }
}
