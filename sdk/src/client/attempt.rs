//! The part of each attempt that observers see.

use std::{fmt, sync::Arc, time::Duration};

use parcelo_types::{Operation, model::RequestId};

use super::{ErrorKind, FailureClass, Outcome, StopReason};

/// One attempt of a call, for counters and logs; it holds no secret and no personal data.
///
/// An attempt that was not made, such as a call that the client's own rate limiter refused, is
/// [`FailureClass::NotAdmitted`].
///
/// ```
/// # use parcelo::{ApiKey, Client, Environment};
/// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
/// let client = Client::builder(key)
///     .base_url("http://127.0.0.1:8081")?
///     .on_attempt(|attempt| {
///         if let (Some(class), Some(wait)) = (attempt.failure, attempt.wait) {
///             let name = attempt.operation.name();
///             eprintln!("{name} {}: {class:?}, retrying in {wait:?}", attempt.number);
///         }
///     })
///     .build()?;
/// # Ok::<(), parcelo::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The operation that was called.
    pub operation: Operation,
    /// 1 for the first attempt of a call.
    pub number: u32,
    /// The HTTP status; `None` when no response came.
    pub status: Option<u16>,
    /// The id to quote to support; `None` when no response came.
    pub request_id: Option<RequestId>,
    /// The kind of failure; `None` when it succeeded.
    pub failure: Option<FailureClass>,
    /// The kind of error that the call ends with, if it ends here; `None` when it succeeded.
    pub kind: Option<ErrorKind>,
    /// The write's outcome: executed by this call or by an earlier one; `None` for reads and when it failed.
    pub outcome: Option<Outcome>,
    /// The write failed, and it is not known whether it was executed.
    pub may_have_executed: bool,
    /// The time that it waited for its turn under the rate limit.
    pub queued: Duration,
    /// The time that it took, without that wait.
    pub took: Duration,
    /// The wait before the call's next attempt; `None` after the last attempt.
    pub wait: Option<Duration>,
    /// The reason why there is no next attempt; `None` after a success and when there is one.
    pub stopped: Option<StopReason>,
}

/// The closure that sees each attempt.
#[derive(Clone)]
pub(super) struct Observer(pub(super) Arc<dyn Fn(&Attempt) + Send + Sync>);

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
