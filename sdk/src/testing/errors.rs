//! Errors as callers get them. Each is the error of a real call whose transport is scripted, so that its parts fit
//! together.

use std::thread;

use chrono::DateTime;
use parcelo_types::{ErrorCode, LabelFormat, TrackingNumber};

use super::{ScriptedTransport, Step, call_end::faulty_field, from_json, order};
use crate::{Client, Error, ErrorKind, transport::Phase};

/// Returns an error of a kind. It is that of the creation of an order if such a call can have it.
///
/// ```
/// use std::time::Duration;
///
/// use parcelo::testing::error;
/// use parcelo::{ErrorKind, NextStep};
///
/// let lost = error(ErrorKind::Network);
/// assert!(lost.may_have_executed() && lost.idempotency_key().is_some());
/// assert_eq!(lost.next_step(), NextStep::Resend { after: Duration::from_secs(5) });
/// assert_eq!(error(ErrorKind::Validation).field_faults()[0].field, "receiver.phone");
/// ```
pub fn error(kind: ErrorKind) -> Error {
    let step = match kind {
        ErrorKind::Validation => faulty_field("receiver.phone"),
        ErrorKind::Authentication => Step::refusal(ErrorCode::AuthInvalidApiKey),
        ErrorKind::CountryNotAllowed => Step::refusal(ErrorCode::AuthCountryNotAllowed),
        ErrorKind::Forbidden => Step::refusal(ErrorCode::AuthIpNotAllowed),
        ErrorKind::NotFound => return not_found(),
        ErrorKind::Conflict => Step::refusal(ErrorCode::ParcelDuplicateTracking),
        ErrorKind::KeyExpired => return key_expired(),
        ErrorKind::KeyReused => Step::refusal(ErrorCode::IdempotencyConflict),
        ErrorKind::RateLimited => {
            Step::refusal(ErrorCode::RateLimitExceeded).with_header("retry-after", "60")
        }
        ErrorKind::Server => Step::refusal(ErrorCode::ServiceUnavailable),
        ErrorKind::Network => Step::Fail(Phase::MaybeSent),
        ErrorKind::Timeout => Step::Hang,
        ErrorKind::Decode => Step::response(201, "<html>"),
        ErrorKind::Executed => Step::response(201, r#"{"success":true,"new":1}"#).by_service(),
        ErrorKind::Config => Step::Fail(Phase::Refused),
        ErrorKind::File => return file(),
        ErrorKind::Journal => return Error::new(kind, crate::client::NOT_SAVED),
        ErrorKind::Unexpected => Step::response(302, ""),
    };
    error_after(step)
}

/// Returns the error of the creation of an order whose attempts all end in this step.
///
/// # Panics
///
/// Panics if the call succeeds.
///
/// ```
/// use parcelo::NextStep;
/// use parcelo::testing::{Step, error_after};
///
/// let ban = Step::response(429, "").with_header("retry-after", "600");
/// assert!(matches!(error_after(ban).next_step(), NextStep::Resend { after } if after.as_secs() == 600));
/// ```
pub fn error_after(step: Step) -> Error {
    error_of([step], async |client| client.orders().create(&order()).await.err())
}

/// Returns an error as [`Orders::ship`](crate::calls::Orders::ship) does if the order stays open in the journal.
///
/// ```
/// use parcelo::ErrorKind;
/// use parcelo::testing::{error, left_open};
///
/// let later = left_open(error(ErrorKind::Network));
/// assert!(later.order_stays_open() && !error(ErrorKind::Network).order_stays_open());
/// ```
pub fn left_open(error: Error) -> Error {
    crate::client::stays_open(error)
}

fn not_found() -> Error {
    let number = number();
    error_of([Step::refusal(ErrorCode::ParcelNotFound)], async |client| {
        client.tracking().get(&number).await.err()
    })
}

/// Returns the error of an order that was first sent long ago.
fn key_expired() -> Error {
    let order = order();
    let key = order.idempotency_key.clone().first_sent_at(DateTime::UNIX_EPOCH);
    let order = order.with_idempotency_key(key);
    error_of([], async |client| client.orders().create(&order).await.err())
}

/// Returns the error of a label in a folder that no system can have.
fn file() -> Error {
    let number = number();
    error_of([Step::response(200, "%PDF")], async |client| {
        client.labels().download(&number, LabelFormat::Pdf).save_in("no\0folder").await.err()
    })
}

fn number() -> TrackingNumber {
    from_json("SB-SUCCESS-0001".into())
}

/// Makes a call in a thread and a runtime of its own, whose time is paused, so that this works in synchronous and
/// asynchronous tests and does not wait.
fn error_of<const N: usize>(
    steps: [Step; N],
    call: impl AsyncFn(&Client) -> Option<Error> + Send,
) -> Error {
    let run = move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().ok()?;
        let (client, _) = ScriptedTransport::client(steps);
        runtime.block_on(call(&client))
    };
    let result = thread::scope(|scope| scope.spawn(run).join());
    #[expect(clippy::expect_used, reason = "a test's own constant is wrong; documented")]
    result.ok().flatten().expect("a call that fails")
}

#[cfg(test)]
mod tests {
    use ErrorKind::{
        Authentication, Config, Conflict, CountryNotAllowed, Decode, Executed, File, Forbidden,
        KeyExpired, KeyReused, Network, NotFound, RateLimited, Server, Timeout, Unexpected,
        Validation,
    };

    use super::*;

    #[test]
    fn every_kind_of_error_can_be_had() {
        let kinds = [
            Authentication,
            Config,
            Conflict,
            CountryNotAllowed,
            Decode,
            Executed,
            File,
            Forbidden,
            KeyExpired,
            KeyReused,
            Network,
            NotFound,
            RateLimited,
            Server,
            Timeout,
            Unexpected,
            Validation,
        ];
        for kind in kinds {
            assert_eq!(error(kind).kind(), kind);
        }
    }
}
