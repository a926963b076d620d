//! The only place where the SDK reads the wall clock: the machine's, or one that a test passes.

use std::{fmt, sync::Arc};

use chrono::{DateTime, Utc};

/// A reader of wall time.
#[derive(Clone)]
pub(crate) struct WallClock(Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>);

impl Default for WallClock {
    #[expect(clippy::disallowed_methods, reason = "this module is the wall clock")]
    fn default() -> Self {
        Self::new(Utc::now)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WallClock")
    }
}

impl WallClock {
    pub(crate) fn new(read: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        (self.0)()
    }
}
