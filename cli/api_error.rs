//! Failed calls as failures of the command: the exit code, the parcels concerned and the remedy.

use std::time::Duration;

use parcelo::{
    Error, ErrorCode, ErrorKind, OrderRequest, TrackingNumber,
    calls::StopReason,
    model::{ErrorBody, ItemError, Row, VoidResult},
};

use crate::{
    failure::{Exit, Failure, unwritable_hint},
    resume::ResumeHint,
    sanitize::plain,
    texts::{self, Message},
};

impl Failure {
    /// Returns the failure of a call; `resume` gives the hint if the outcome is unknown.
    pub(crate) fn for_call(error: Error, resume: ResumeHint<'_>) -> Self {
        let conflict = resume.order().and_then(|order| conflict_message(&error, order));
        let failure = Self::from(error);
        if let Some(message) = conflict {
            return failure.with(|details| details.message = message);
        }
        if failure.exit != Exit::OutcomeUnknown {
            return failure;
        }
        failure.with(|details| details.hint = resume.hint())
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = error.code().unwrap_or_else(|| error_code(error.kind()));
        let message = error_message(&error);
        let failure = Self::new(exit_code(&error), code, message).with(|details| {
            details.items = error.body().map(failed_items).unwrap_or_default();
            // Without this, a fault of a parcel would be shown twice: by its tracking number and by its index.
            if details.items.is_empty() {
                details.fields = error.field_faults().to_vec();
            }
            details.status = error.status();
            details.request_id = error.request_id().cloned();
            details.retry_after = error.retry_after().map(whole_seconds);
            details.idempotency_key = error.idempotency_key().cloned();
            details.may_have_executed = error.may_have_executed();
        });
        match find_hint(&error, &failure) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Returns the SDK's message. For file and network errors it includes the cause, which has the actual reason.
fn error_message(error: &Error) -> Message {
    let text = |language| error.message(language);
    if let (ErrorKind::Executed, Some(response)) = (error.kind(), error.unreadable()) {
        return Message::in_both(|language| format!("{} {}", text(language), response.json()));
    }
    let cause = match error.kind() {
        ErrorKind::File => std::error::Error::source(error),
        // The intermediate causes say how the request was sent; the last one says what is wrong with the connection.
        ErrorKind::Network => {
            std::iter::successors(std::error::Error::source(error), |cause| cause.source()).last()
        }
        _ => None,
    };
    match cause {
        Some(err) => {
            Message::in_both(|language| format!("{}: {err}.", text(language).trim_end_matches('.')))
        }
        None => Message::in_both(text),
    }
}

/// Returns the message for an order whose idempotency key was used for an order with different content.
fn conflict_message(error: &Error, order: &OrderRequest) -> Option<Message> {
    let is_conflict = error.known_code() == Some(ErrorCode::IdempotencyConflict);
    let number = existing_order(error).filter(|_| is_conflict)?;
    let reference = order.external_order_id.as_ref().or(order.customer_reference.as_ref());
    let (text, reference) = match reference {
        Some(reference) => (texts::ORDER_DIFFERS_BY_REFERENCE, reference.as_str()),
        None => (texts::ORDER_DIFFERS, ""),
    };
    Some(text.with(&[("number", number.as_str()), ("reference", reference)]))
}

/// Rounds a wait up to whole seconds, because an earlier attempt would be refused again.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn exit_code(error: &Error) -> Exit {
    // The request was executed, but its response could not be read.
    if error.kind() == ErrorKind::Executed {
        return Exit::Partly;
    }
    if error.may_have_executed() {
        return Exit::OutcomeUnknown;
    }
    if error.known_code() == Some(ErrorCode::MethodNotAllowed) {
        return Exit::Usage;
    }
    match error.kind() {
        ErrorKind::Validation => Exit::Validation,
        ErrorKind::Authentication | ErrorKind::CountryNotAllowed | ErrorKind::Forbidden => {
            Exit::Auth
        }
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::Conflict | ErrorKind::KeyReused => Exit::Conflict,
        ErrorKind::RateLimited => Exit::RateLimit,
        ErrorKind::Config | ErrorKind::File => Exit::Usage,
        // Network, Timeout, Server, Unexpected, Decode, KeyExpired, and kinds that a later SDK adds.
        _ => Exit::NotExecuted,
    }
}

/// Returns the code of an error that the service did not report.
fn error_code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Validation => ErrorCode::ValidationFailed.code(),
        ErrorKind::RateLimited => ErrorCode::RateLimitExceeded.code(),
        ErrorKind::Network => "NETWORK",
        ErrorKind::Timeout => "TIMEOUT",
        ErrorKind::Decode | ErrorKind::Executed => "UNREADABLE_ANSWER",
        ErrorKind::Config => "USAGE",
        ErrorKind::File => "FILE",
        _ => "UNEXPECTED_ANSWER",
    }
}

fn find_hint(error: &Error, failure: &Failure) -> Option<Message> {
    let text = match (failure.exit, error.known_code()) {
        (Exit::RateLimit, _) => match failure.retry_after {
            Some(seconds) => return Some(texts::WAIT.with(&[("n", &seconds.to_string())])),
            None => texts::WAIT_A_WHILE,
        },
        (Exit::Auth, Some(ErrorCode::AuthCountryNotAllowed)) => texts::CHECK_COUNTRIES,
        (Exit::Auth, _) => texts::CHECK_KEY,
        (Exit::Validation, _) if failure.fields.is_empty() => texts::FIX_REQUEST,
        (Exit::Validation, _) => texts::FIX_FIELDS,
        (Exit::NotExecuted, _) => return hint_if_not_executed(error),
        (Exit::Usage, _) if error.kind() == ErrorKind::File => {
            let cause = std::error::Error::source(error).and_then(|err| err.downcast_ref());
            return Some(cause.map_or(texts::SPECIFY_WRITABLE, unwritable_hint).into());
        }
        (Exit::Usage, _) | (Exit::NotFound, None | Some(ErrorCode::NotFound)) => {
            texts::CHECK_ADDRESS
        }
        (Exit::Conflict, Some(ErrorCode::ManifestAlreadySubmitted)) => {
            return other_manifest(error);
        }
        (Exit::Conflict, Some(ErrorCode::IdempotencyConflict)) => match existing_order(error) {
            Some(number) => {
                return Some(texts::ORDER_DIFFERS_HINT.with(&[("number", number.as_str())]));
            }
            None => texts::OTHER_KEY,
        },
        (Exit::NotFound | Exit::Conflict, Some(code)) => return hint_of_code(code),
        _ => return None,
    };
    Some(text.into())
}

/// Returns the remedy if nothing was executed and the cause is neither the request nor the key.
fn hint_if_not_executed(error: &Error) -> Option<Message> {
    let text = match error.kind() {
        // A failure to connect is permanent only if the certificate is not trusted.
        ErrorKind::Network if error.stop_reason() == Some(StopReason::Permanent) => {
            texts::CHECK_CERTIFICATE
        }
        ErrorKind::Network | ErrorKind::Timeout => texts::TRY_AGAIN,
        ErrorKind::Server => texts::SERVICE_FAILED,
        ErrorKind::Unexpected | ErrorKind::Decode => texts::CHECK_SERVICE_ADDRESS,
        // The message about an expired key contains the advice; a later SDK may add kinds.
        _ => return None,
    };
    Some(text.into())
}

/// Returns the remedy for an error of a parcel or a manifest.
fn hint_of_code(code: ErrorCode) -> Option<Message> {
    let text = match code {
        ErrorCode::ParcelNotFound => texts::CHECK_NUMBER,
        ErrorCode::ManifestNotFound => texts::CHECK_MANIFEST,
        ErrorCode::ParcelDuplicateTracking => texts::OTHER_NUMBER,
        ErrorCode::ParcelNotVoidable | ErrorCode::VoidFailed => texts::NOT_VOIDABLE,
        ErrorCode::LabelVoided => texts::CREATE_NEW_ORDER,
        ErrorCode::ManifestParcelsRejected => texts::REMOVE_PARCELS,
        ErrorCode::LabelsRejected => texts::REMOVE_LABELS,
        _ => return None,
    };
    Some(text.into())
}

/// Returns the hint with the manifest that was already submitted under the air waybill.
fn other_manifest(error: &Error) -> Option<Message> {
    let id = error.body()?.details.as_ref()?.get("manifestId")?.as_str()?;
    Some(texts::OTHER_MANIFEST.with(&[("id", &plain(id))]))
}

/// Returns the tracking number of the existing order with the idempotency key of a refused one.
pub(crate) fn existing_order(error: &Error) -> Option<TrackingNumber> {
    let number = error.body()?.details.as_ref()?.get("trackingNumber")?;
    TrackingNumber::parse(number.as_str()?).ok()
}

/// Returns the parcels that an error names, each with its reason.
fn failed_items(body: &ErrorBody) -> Vec<(String, Failure)> {
    let unvoided_orders = unvoided_orders(&body.void_results());
    let rejected = body.rejected_parcels().into_iter();
    let rejected = rejected.map(|parcel| match parcel {
        Ok(parcel) => (parcel.tracking_number, Failure::from(&parcel.error)),
        Err(row) => (String::new(), Failure::for_unreadable_row(Exit::Conflict, &row)),
    });
    unvoided_orders.into_iter().chain(rejected).collect()
}

/// Returns the orders that were not voided, each with its reason.
pub(crate) fn unvoided_orders(results: &[Row<VoidResult>]) -> Vec<(String, Failure)> {
    let failure = |result: &Row<VoidResult>| match result {
        Ok(result) => Some((result.tracking_number.clone(), result.error.as_ref()?.into())),
        Err(row) => Some((String::new(), Failure::for_unreadable_row(Exit::OutcomeUnknown, row))),
    };
    results.iter().filter_map(failure).collect()
}

impl From<&ItemError> for Failure {
    fn from(error: &ItemError) -> Self {
        let known = ErrorCode::known(&error.code);
        let exit = match known {
            Some(ErrorCode::ParcelNotFound) => Exit::NotFound,
            _ => Exit::Conflict,
        };
        let message = Message { en: error.message.clone(), es: error.message_es.clone() };
        Self::new(exit, &error.code, message)
            .with(|details| details.hint = known.and_then(hint_of_code))
    }
}
