//! On which day each API key was used last.

use std::collections::BTreeMap;

/// By a key's row: the day, since 1970 began, in UTC.
pub(crate) type LastUses = BTreeMap<i64, i64>;
