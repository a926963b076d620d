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

impl Tenant {
    /// The one number under which rows of this tenant are stored.
    pub const fn number(self) -> i64 {
        let environment = match self.environment {
            Environment::Production => 0,
            Environment::Sandbox => 1,
        };
        self.account.0 * 2 + environment
    }

    /// The tenant stored under a number.
    pub const fn from_number(number: i64) -> Self {
        let environment =
            if number % 2 == 0 { Environment::Production } else { Environment::Sandbox };
        Self { account: AccountRowId(number / 2), environment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_is_one_number() {
        for number in 0..10 {
            assert_eq!(Tenant::from_number(number).number(), number);
        }
    }
}
