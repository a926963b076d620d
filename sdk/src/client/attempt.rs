//! What an observer of a client is told about each attempt.

use std::{fmt, sync::Arc, time::Duration};

use super::{FailureClass, StopReason};
use crate::model::Operation;

/// One attempt of a call, for counters and logs: nothing in it is secret or personal.
///
/// ```
/// # use parcelo::{ApiKey, Client, Environment};
/// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
/// let client = Client::builder(key)
///     .base_url("http://127.0.0.1:8081")?
///     .on_attempt(|attempt| {
///         if let (Some(class), Some(wait)) = (attempt.failure, attempt.wait) {
///             let name = attempt.operation.name();
///             eprintln!("{name} {}: {class:?}, again in {wait:?}", attempt.number);
///         }
///     })
///     .build()?;
/// # Ok::<(), parcelo::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// What was called.
    pub operation: Operation,
    /// 1 for the first attempt of a call.
    pub number: u32,
    /// The HTTP status; none when no answer came.
    pub status: Option<u16>,
    /// How it failed; none when it did not.
    pub failure: Option<FailureClass>,
    /// How long it took.
    pub took: Duration,
    /// After which wait the next attempt follows; none when there is no next one.
    pub wait: Option<Duration>,
    /// Why there is no next one; none after a success and when there is one.
    pub stopped: Option<StopReason>,
}

/// Somebody who is told about each attempt.
#[derive(Clone)]
pub(super) struct Observer(pub(super) Arc<dyn Fn(&Attempt) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
