//! The day of each API key's last use.

use std::collections::BTreeMap;

/// The day in UTC, in days since 1970-01-01, by the key's row id.
pub(crate) type LastUses = BTreeMap<i64, i64>;
