//! Admin tokens as they are stored. The token itself is nowhere; there is only a keyed hash of it
//! (docs/api.md, Admin API).

use std::fmt;

use crate::clock::Millis;

/// An admin token that does not exist yet.
#[derive(Clone)]
pub struct NewToken {
    /// The public id: `adt_…`.
    pub id: String,
    /// What the operator calls it.
    pub name: String,
    /// The keyed hash of the token.
    pub hash: [u8; 32],
    /// The token's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Millis,
}

/// An admin token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// The public id: `adt_…`.
    pub id: String,
    /// What the operator calls it.
    pub name: String,
    /// The token's last four characters.
    pub last4: String,
    /// When it was made.
    pub created_at: Millis,
    /// When it stopped working.
    pub revoked_at: Option<Millis>,
}

// The hash is as good as the token to whoever also has the pepper: no log shows it.
impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").field("id", &self.id).finish_non_exhaustive()
    }
}
