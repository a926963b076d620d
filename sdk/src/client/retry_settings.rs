//! The settings of retries: how often, when, at what cost, and on which condition of the caller's.
//! [`retry`](super::retry) decides by them.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize};

use super::{Error, retry_budget::BudgetSize, seconds};

/// Three retries wait 0.35 s on average and 0.7 s at most, unless the service asks for more. That outlasts a
/// dropped connection; what lasts longer is reported to the caller.
const DEFAULT_ATTEMPTS: u32 = 4;
/// The service responds within milliseconds, so a request that failed is over by then.
const DEFAULT_FIRST_BACKOFF: Duration = Duration::from_millis(100);
/// After this the waits no longer double: a caller who allows many attempts wants to notice the recovery soon.
const DEFAULT_MAX_BACKOFF: Duration = Duration::from_secs(5);
/// Half of the default [`Timeouts::total`](super::Timeouts::total), so that the attempt after the wait still has time.
const DEFAULT_MAX_RETRY_AFTER: Duration = Duration::from_secs(30);
/// The number of attempts of a call, and the waits in between.
///
/// A call is tried again only when that is safe and can help: the request never reached the service, or repeating it
/// changes nothing (a read, or a write with its idempotency key). Before each retry the client waits as long as the
/// service asks, otherwise for a random time whose upper bound doubles.
///
/// All calls with an API key share a budget for retries, so that a service that is down does not get several times the
/// load.
///
/// ```
/// # use std::time::Duration;
/// use parcelo::Retry;
///
/// let (first, max) = (Duration::from_secs(1), Duration::from_secs(30));
/// let patient = Retry::standard().attempts(8).backoff(first, max);
/// assert_eq!(Retry::none(), Retry::standard().attempts(1));
/// # assert_ne!(Retry::standard(), patient);
/// ```
///
/// In configuration files durations are numbers of seconds, with or without decimals, and a missing setting
/// is that of [`Retry::standard`]:
///
/// ```
/// # use std::time::Duration;
/// # use parcelo::Retry;
/// let json = r#"{"attempts": 8, "firstBackoff": 1, "maxBackoff": 30, "maxRetryAfter": 60}"#;
/// let retry: Retry = serde_json::from_str(json)?;
/// let (first, max) = (Duration::from_secs(1), Duration::from_secs(30));
/// let same = Retry::standard().attempts(8).backoff(first, max);
/// assert_eq!(retry, same.max_retry_after(Duration::from_secs(60)));
/// let unlimited: Retry = serde_json::from_str(r#"{"budgeted": false}"#)?;
/// assert_eq!(unlimited, Retry::standard().unbudgeted());
/// let patient: Retry = serde_json::from_str(r#"{"budget": {"tokens": 2800, "perSecond": 28}}"#)?;
/// assert_eq!(patient, Retry::standard().budget(2800, 28));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Retry {
    #[serde(deserialize_with = "at_least_one")]
    pub(super) attempts: u32,
    #[serde(with = "seconds")]
    pub(super) first_backoff: Duration,
    #[serde(with = "seconds")]
    pub(super) max_backoff: Duration,
    #[serde(with = "seconds")]
    pub(super) max_retry_after: Duration,
    pub(super) budgeted: bool,
    pub(super) budget: BudgetSize,
    #[serde(skip)]
    condition: Option<Condition>,
}

/// The caller's condition for another attempt. Two are equal if one is a clone of the other.
#[derive(Clone)]
struct Condition(Arc<dyn Fn(&Error) -> bool + Send + Sync>);

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Condition {}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Condition")
    }
}

fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    u32::deserialize(deserializer).map(|attempts| attempts.max(1))
}

impl Retry {
    /// Returns the default: up to 4 attempts, with waits of up to 100, 200 and 400 ms between them, and five times as
    /// long after a 429 without `Retry-After`. `Retry-After` is followed up to 30 s.
    pub fn standard() -> Self {
        Self {
            attempts: DEFAULT_ATTEMPTS,
            first_backoff: DEFAULT_FIRST_BACKOFF,
            max_backoff: DEFAULT_MAX_BACKOFF,
            max_retry_after: DEFAULT_MAX_RETRY_AFTER,
            budgeted: true,
            budget: BudgetSize::default(),
            condition: None,
        }
    }

    /// Returns settings for a single attempt.
    pub fn none() -> Self {
        Self::standard().attempts(1)
    }

    /// Sets the maximum number of attempts of one call; 0 counts as 1.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts: attempts.max(1), ..self }
    }

    /// Sets the upper bound of the first wait, which doubles with each attempt, and the upper bound of all waits. Each
    /// wait is random below its bound, so that clients do not come back together.
    #[must_use]
    pub fn backoff(self, first: Duration, max: Duration) -> Self {
        Self { first_backoff: first, max_backoff: max, ..self }
    }

    /// Sets the longest wait that the service may ask for; a call that is asked to wait longer fails at once. So do
    /// other calls while the rest of such a wait is still longer, without being sent.
    #[must_use]
    pub fn max_retry_after(self, max: Duration) -> Self {
        Self { max_retry_after: max, ..self }
    }

    /// Sets the size of the budget for retries: the tokens that it holds when it is full, and the tokens that it gets
    /// back each second until then. A retry takes 14 tokens, or 5 after a 429. A call that succeeds gives back what its
    /// last retry took, or 1 if it needed none.
    ///
    /// The default is 500 tokens and 10 a second: 35 retries at once, then 43 a minute. A budget of fewer than 14 tokens
    /// would allow none, and counts as 14; [`Retry::none`] is for that.
    ///
    /// All calls with an API key share the budget, so [`ClientBuilder::retry`] sets its size, and [`Client::with_retry`]
    /// and [`Call::retry`] do not change it.
    ///
    /// ```
    /// # use parcelo::{ApiKey, Environment};
    /// # let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
    /// use parcelo::{Client, Retry};
    ///
    /// // An import of many orders outlasts 200 failures at once, and then two a second.
    /// let client = Client::builder(key)
    ///     .base_url("https://sandbox.parcelo.example")?
    ///     .retry(Retry::standard().budget(200 * 14, 2 * 14))
    ///     .build()?;
    /// # Ok::<(), parcelo::Error>(())
    /// ```
    ///
    /// [`Call::retry`]: crate::client::Call::retry
    /// [`Client::with_retry`]: crate::client::Client::with_retry
    /// [`ClientBuilder::retry`]: crate::client::ClientBuilder::retry
    #[must_use]
    pub fn budget(self, tokens: u32, per_second: u32) -> Self {
        Self { budgeted: true, budget: BudgetSize::new(tokens, per_second), ..self }
    }

    /// Retries without the budget for retries: neither limited by it nor counted towards it.
    #[must_use]
    pub fn unbudgeted(self) -> Self {
        Self { budgeted: false, ..self }
    }

    /// Asks `condition` before each retry, with the error that the call would end with now. If it returns `false`, the
    /// call ends with that error ([`StopReason::Declined`](crate::client::StopReason::Declined)).
    ///
    /// It is asked only when the client would try again, so it can end a call sooner and never repeat one that must not
    /// be repeated. It should be quick. It replaces the condition that was set before, and is not written to
    /// configuration files.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::{ErrorKind, Retry};
    ///
    /// // A page for a person should rather fail than wait for a service that is down.
    /// let hasty = Retry::standard().only_if(|error| error.kind() != ErrorKind::Server);
    /// let created = client.orders().create(&order).retry(hasty).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn only_if(self, condition: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        Self { condition: Some(Condition(Arc::new(condition))), ..self }
    }

    /// Returns the caller's condition for another attempt.
    pub(super) fn condition(&self) -> Option<&(dyn Fn(&Error) -> bool + Send + Sync)> {
        self.condition.as_ref().map(|condition| &*condition.0)
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::standard()
    }
}
