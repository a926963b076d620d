//! The only place where the command reads the wall clock.

use chrono::{DateTime, Utc};

#[expect(clippy::disallowed_methods, reason = "this module is the command's clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}
