//! The day on which each API key was last used.

use std::collections::BTreeMap;

/// The day of each key's last use in UTC, in days since 1970-01-01, by the key's row id.
pub type LastUseDays = BTreeMap<i64, i64>;
