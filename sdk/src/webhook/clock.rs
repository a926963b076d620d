//! The one place where verification reads the wall clock.

use chrono::{DateTime, Utc};

#[expect(clippy::disallowed_methods, reason = "this module is the verification's clock")]
pub(super) fn now() -> DateTime<Utc> {
    Utc::now()
}
