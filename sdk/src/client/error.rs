//! The client's error type: the failure, whether the request may have been executed, and the caller's options.

use std::{fmt, sync::Arc, time::Duration};

use parcelo_types::{
    ErrorCode, IdempotencyKey, Language,
    internal::is_invisible,
    model::{
        BatchResult, ErrorBody, FieldFault, ParcelSummary, RequestId, Row, Unreadable, VoidResult,
    },
};

use super::StopReason;

/// The kind of a failure, by the caller's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request breaks rules: correct it, see [`Error::field_faults`].
    Validation,
    /// The API key is missing, invalid, revoked, or belongs to the other environment.
    Authentication,
    /// The key may not ship to this country.
    CountryNotAllowed,
    /// The key may not do this, or not from this IP address.
    Forbidden,
    /// The parcel, label, manifest or endpoint does not exist.
    NotFound,
    /// The request conflicts with the data of the service.
    Conflict,
    /// The idempotency key's 24 hours are over, or end within ten minutes: find out whether the write was executed,
    /// and if it was not, make a new key once they are over ([`Error::next_step`]).
    KeyExpired,
    /// The service executed another request with this idempotency key: find out which before you make a new key. It
    /// may have been an earlier version of this one.
    KeyReused,
    /// Too many requests: try again after [`Error::retry_after`].
    RateLimited,
    /// The service failed: try again later, with the same idempotency key.
    Server,
    /// The service could not be reached, or the connection broke.
    Network,
    /// The service did not respond in time, or the call's time ran out before it was sent.
    Timeout,
    /// The response could not be read; see [`Error::unreadable`].
    Decode,
    /// The service executed the request, but this version cannot read its response: do not send it again, and take
    /// what you need from [`Error::unreadable`].
    Executed,
    /// The client's configuration is invalid.
    Config,
    /// The file could not be written.
    File,
    /// The journal of [`Orders::ship`](crate::calls::Orders::ship) could not be read or written.
    Journal,
    /// The response does not come from the API, or has an HTTP status that the API does not use here, such as a
    /// redirect.
    Unexpected,
}

/// A text in English and Spanish.
pub(crate) type Texts = (&'static str, &'static str);

const OUTCOME_UNKNOWN: Texts =
    ("The request may have been executed.", "Es posible que la solicitud se haya ejecutado.");
const NOTHING_SENT: Texts = ("nothing was sent.", "no se envió nada.");
const STAYS_OPEN: Texts =
    ("The order stays open in the journal.", "El pedido sigue abierto en el diario.");

/// The reason why a call failed.
///
/// `Display` is one line without secrets and personal data:
/// `PARCEL_DUPLICATE_TRACKING (409): This tracking number already exists. [req_…, 2 attempts]`.
/// It says so when the request may have been executed ([`Error::may_have_executed`]). Control characters and
/// bidirectional overrides in the service's texts are removed.
///
/// An `Error` is one pointer in size, and cloning it is cheap.
///
/// ```
#[doc = include_str!("example.txt")]
/// use parcelo::{Language, NextStep};
///
/// if let Err(error) = client.orders().create(&order).await {
///     match error.next_step() {
///         NextStep::Resend { after } => println!("keep the order, and send it again in {after:?}"),
///         NextStep::Correct => {
///             for fault in error.field_faults() {
///                 println!("{}: {}", fault.field, fault.text(Language::Es));
///             }
///         }
///         _ => return Err(error.into()),
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Error(Arc<Inner>);

#[derive(Clone)]
pub(crate) struct Inner {
    pub(super) kind: ErrorKind,
    pub(super) texts: Texts,
    pub(super) status: Option<u16>,
    pub(super) request_id: Option<RequestId>,
    pub(super) body: Option<ErrorBody>,
    pub(super) faults: Vec<FieldFault>,
    pub(super) retry_after: Option<Duration>,
    pub(super) attempts: u32,
    pub(super) idempotency_key: Option<IdempotencyKey>,
    pub(crate) may_have_executed: bool,
    /// No attempt of the call sent anything.
    pub(super) nothing_sent: bool,
    /// The order is not settled in its journal.
    pub(super) order_stays_open: bool,
    pub(super) stop_reason: Option<StopReason>,
    pub(super) unreadable: Option<Unreadable>,
    pub(super) tracked: Vec<BatchResult>,
    pub(super) voided: Vec<Row<VoidResult>>,
    pub(super) found: Vec<ParcelSummary>,
    pub(super) source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, texts: Texts) -> Self {
        Self(Arc::new(Inner {
            kind,
            texts,
            status: None,
            request_id: None,
            body: None,
            faults: Vec::new(),
            retry_after: None,
            attempts: 0,
            idempotency_key: None,
            may_have_executed: false,
            nothing_sent: false,
            order_stays_open: false,
            stop_reason: None,
            unreadable: None,
            tracked: Vec::new(),
            voided: Vec::new(),
            found: Vec::new(),
            source: None,
        }))
    }

    pub(crate) fn config(texts: Texts) -> Self {
        Self::new(ErrorKind::Config, texts)
    }

    pub(crate) fn with_source(
        self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.with(|inner| inner.source = Some(source.into().into()))
    }

    pub(crate) fn with(mut self, fill: impl FnOnce(&mut Inner)) -> Self {
        // No copy is made unless the caller kept a clone.
        fill(Arc::make_mut(&mut self.0));
        self
    }

    /// Returns the kind of the failure, by the caller's options.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the code in the service's response, whether or not this version knows it.
    pub fn code(&self) -> Option<&str> {
        self.0.body.as_ref().map(|body| body.code.as_str())
    }

    /// Returns the code in the service's response, if this version knows it. [`ErrorCode`] lists them.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::{ErrorCode, IdempotencyKey};
    ///
    /// client.orders().create(&order).await?;
    /// let other = order.with_idempotency_key(IdempotencyKey::random());
    /// let error = client.orders().create(&other).await.unwrap_err(); // the same tracking number
    /// assert_eq!(error.known_code(), Some(ErrorCode::ParcelDuplicateTracking));
    /// assert_eq!((error.status(), error.may_have_executed()), (Some(409), false));
    /// # Ok(())
    /// # }
    /// ```
    pub fn known_code(&self) -> Option<ErrorCode> {
        self.0.body.as_ref().and_then(ErrorBody::known)
    }

    /// Returns the HTTP status; `None` when no response came.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// Returns the id to quote to support.
    pub fn request_id(&self) -> Option<&RequestId> {
        self.0.request_id.as_ref()
    }

    /// Returns the time that the service, or the client's own rate limiter, asks to wait before the next try. Of a key
    /// that has expired (`KeyExpired`), it is the time for which its last attempt may still be under way.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns the invalid fields with their faults; empty unless the request breaks rules.
    ///
    /// Their texts may repeat values of the request: keep them out of logs.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use parcelo::{ErrorKind, Language};
    ///
    /// # let mut order = order;
    /// order.receiver.phone = "12".to_owned();
    /// let error = client.orders().create(&order).await.unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Validation);
    /// assert_eq!(error.field_faults()[0].field, "receiver.phone");
    /// println!("{}", error.field_faults()[0].text(Language::Es)); // next to the form's field
    /// # Ok(())
    /// # }
    /// ```
    pub fn field_faults(&self) -> &[FieldFault] {
        &self.0.faults
    }

    /// Returns a message for people in a language, without the faults of single fields. If the service sent one, it is
    /// returned unchanged, with any control characters that `Display` removes.
    pub fn message(&self, language: Language) -> String {
        if let Some(text) = self.service_message(language) {
            return text.to_owned();
        }
        let text = language.pick(self.0.texts.0, self.0.texts.1);
        let mut message = if !self.is_executed() && !self.may_have_executed() && self.0.nothing_sent
        {
            let nothing = language.pick(NOTHING_SENT.0, NOTHING_SENT.1);
            format!("{}; {nothing}", text.trim_end_matches('.'))
        } else {
            text.to_owned()
        };
        for (en, es) in self.added_texts() {
            message.push(' ');
            message.push_str(language.pick(en, es));
        }
        message
    }

    /// Returns the sentences that follow a message.
    fn added_texts(&self) -> impl Iterator<Item = Texts> {
        let is_unknown = self.may_have_executed() && !self.is_executed();
        let added = [(is_unknown, OUTCOME_UNKNOWN), (self.order_stays_open(), STAYS_OPEN)];
        added.into_iter().filter_map(|(applies, texts)| applies.then_some(texts))
    }

    /// Returns the service's message, unless it is empty.
    fn service_message(&self, language: Language) -> Option<&str> {
        let body = self.0.body.as_ref()?;
        let text: &str = language.pick(&body.message, &body.message_es);
        Some(text).filter(|text| !text.is_empty())
    }

    /// Returns the `error` object of the service's response.
    ///
    /// Its details may repeat values of the request: keep them out of logs.
    pub fn body(&self) -> Option<&ErrorBody> {
        self.0.body.as_ref()
    }

    /// Returns the number of attempts that the call made, including those that sent nothing; 0 if it failed before the
    /// first.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Returns the idempotency key of the write that failed. Sent again with it, within 24 hours and with the same API
    /// key, the write is never executed twice.
    pub fn idempotency_key(&self) -> Option<&IdempotencyKey> {
        self.0.idempotency_key.as_ref()
    }

    /// Returns `false` only if the service cannot have executed the request; always `false` for reads.
    ///
    /// True if the outcome of an attempt of this call, or of an earlier call with the same key, is unknown, and if
    /// a response says that an earlier call was executed, even with another request. The key and its clones remember
    /// this: see [`IdempotencyKey::may_have_executed`].
    pub fn may_have_executed(&self) -> bool {
        self.0.may_have_executed
    }

    /// Returns `true` if the order of [`Orders::ship`](crate::client::Orders::ship) is not settled, and stays open in the
    /// journal: ship it again later, or resume. If it is `false`, the order was refused, or was never in the journal.
    pub fn order_stays_open(&self) -> bool {
        self.0.order_stays_open
    }

    /// Returns the results that [`Tracking::batch`](crate::client::Tracking::batch) had received before it failed:
    /// those of the first numbers, in their order. Request the others again.
    pub fn tracked(&self) -> &[BatchResult] {
        &self.0.tracked
    }

    /// Returns the results that [`Orders::void_many`](crate::client::Orders::void_many) had received before it failed:
    /// those of the first numbers, in their order. Send the same request again for the others.
    pub fn voided(&self) -> &[Row<VoidResult>] {
        &self.0.voided
    }

    /// Returns the parcels that [`Orders::find`](crate::client::Orders::find) could read although it failed. There may
    /// be others: an empty list does not mean that the order has no parcel.
    pub fn found(&self) -> &[ParcelSummary] {
        &self.0.found
    }

    /// Returns the part of the response that this version cannot read, unchanged: a row of a list, or the whole response if
    /// it is JSON.
    ///
    /// It may repeat values of the request: keep it out of logs.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        self.0.unreadable.as_ref()
    }

    pub(super) fn is_executed(&self) -> bool {
        self.kind() == ErrorKind::Executed
    }

    /// Returns the reason why the call was not tried again; `None` if it was never sent.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.0.stop_reason
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code(), self.status()) {
            (Some(code), Some(status)) => write!(f, "{} ({status}): ", OneLine(code))?,
            (None, Some(status)) => write!(f, "HTTP {status}: ")?,
            (_, None) => {}
        }
        write!(f, "{}", OneLine(&self.message(Language::En)))?;
        if self.service_message(Language::En).is_some() {
            self.added_texts().try_for_each(|added| write!(f, " {}", added.0))?;
        }
        for (i, fault) in self.field_faults().iter().enumerate() {
            let before = if i == 0 { " " } else { ", " };
            write!(f, "{before}{} {}", OneLine(&fault.field), OneLine(fault.code.code()))?;
        }
        match (self.request_id(), self.attempts()) {
            (_, 0) => Ok(()),
            (Some(id), attempts) => {
                write!(f, " [{}, {}]", OneLine(id.as_str()), Attempts(attempts))
            }
            (None, attempts) => write!(f, " [{}]", Attempts(attempts)),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.kind())
            .field("display", &format_args!("{self}"))
            .field("may_have_executed", &self.may_have_executed())
            .field("stop_reason", &self.stop_reason())
            .field("source", &self.0.source)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

struct Attempts(u32);

impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} attempt{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

/// A text from outside, made safe for a terminal and a log: without control characters, line breaks and
/// bidirectional overrides, and at most 200 characters long.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        let plain = |c: char| if breaks(c) { ' ' } else { c };
        let mut seen = self.0.chars().filter(|c| !is_invisible(*c)).take(200).map(plain);
        seen.try_for_each(|c| fmt::Write::write_char(f, c))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(value: serde_json::Value) -> ErrorBody {
        serde_json::from_value(value).unwrap()
    }

    fn refused(status: u16, error: serde_json::Value) -> Error {
        let body = body(error);
        Error::new(ErrorKind::Conflict, ("unused", "sin uso")).with(|inner| {
            inner.status = Some(status);
            inner.request_id = Some(RequestId::unchecked("req_01"));
            inner.faults = body.field_faults();
            inner.body = Some(body);
            inner.attempts = 2;
        })
    }

    #[test]
    fn display_is_one_line_with_code_status_request_and_attempts() {
        let error = refused(
            409,
            json!({"code": "PARCEL_DUPLICATE_TRACKING", "message": "This tracking number already exists."}),
        );
        assert_eq!(
            error.to_string(),
            "PARCEL_DUPLICATE_TRACKING (409): This tracking number already exists. [req_01, 2 attempts]"
        );
        let own = Error::new(ErrorKind::Timeout, ("Too slow.", "Lento."))
            .with(|inner| inner.attempts = 1);
        assert_eq!(own.to_string(), "Too slow. [1 attempt]");
        assert_eq!(own.message(Language::Es), "Lento.");
    }

    #[test]
    fn display_and_debug_show_faults_without_their_texts() {
        let error = refused(
            400,
            json!({"code": "VALIDATION_FAILED", "message": "The request\nis not valid.", "message_es": "No.",
                "details": {"secret": "CANARY", "errors": [
                    {"field": "receiver.nationalId", "code": "INVALID_FORMAT", "message": "CANARY", "message_es": "CANARY", "suggestion": "CANARY"},
                    {"field": "sender.phone", "message": "CANARY"}]}}),
        );
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains("CANARY") && !error.to_string().contains('\n'), "{shown}");
        assert!(shown.contains("receiver.nationalId INVALID_FORMAT, sender.phone"), "{shown}");
        assert_eq!(error.message(Language::Es), "No.");
    }

    #[test]
    fn service_texts_cannot_control_a_terminal() {
        let text =
            "a\u{1b}[2J\u{9b}b\u{202e}c\u{2066}d\u{200b}e\u{feff}f\u{2028}g\u{61c}h\u{e0041}\n";
        let error = refused(
            400,
            json!({"code": text, "message": text, "details": {"errors": [
                {"field": text, "code": text, "message": text}]}}),
        );
        let error = error.with(|inner| inner.request_id = Some(RequestId::unchecked(text)));
        for shown in [error.to_string(), format!("{error:?}")] {
            let odd: Vec<_> = shown.chars().filter(|c| !matches!(c, ' '..='~')).collect();
            assert!(odd.is_empty(), "{odd:?} in {shown:?}");
            assert!(shown.contains("a [2J bcdef gh"), "{shown}");
        }
        let spoken = refused(400, json!({"code": "C", "message": "Ecuadór: año"}));
        assert!(spoken.to_string().contains("Ecuadór: año"), "words stay as they are");
    }

    #[test]
    fn a_clone_is_the_same_error_with_its_own_outcome() {
        let error = refused(409, json!({"code": "C", "message": "m"})).with_source("cause");
        let clone = error.clone().with(|inner| inner.attempts = 9);
        assert_eq!((error.attempts(), clone.attempts()), (2, 9));
        assert_eq!(clone.code(), error.code());
        assert_eq!(std::error::Error::source(&clone).unwrap().to_string(), "cause");
    }

    #[test]
    fn a_rejected_order_is_a_validation_error_before_sending() {
        let error = Error::from(parcelo_types::OrderRequest::builder().build().unwrap_err());
        assert_eq!((error.kind(), error.may_have_executed()), (ErrorKind::Validation, false));
        assert!(error.to_string().starts_with("The request breaks the rules; nothing was sent."));
        assert_eq!(error.field_faults()[0].field, "idempotencyKey");
    }

    #[test]
    fn a_huge_message_is_shortened() {
        let error = refused(400, json!({"code": "C".repeat(9999), "message": "m".repeat(9999)}));
        assert!(error.to_string().len() < 500);
    }
}
