//! Verification: whether a message is from Parcelo, and recent.

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use parcelo_types::model::WebhookEvent;
use subtle::{Choice, ConstantTimeEq};

use super::{
    Headers, ID, SIGNATURE, Secret, TIMESTAMP, WebhookError, headers::single_value,
    replay::ReplayGuard,
};
use crate::wall_clock::WallClock;

/// Maximum difference between a timestamp and now, in both directions: the value of Standard Webhooks' libraries.
const TIMESTAMP_TOLERANCE_SECONDS: u32 = 5 * 60;

/// Maximum number of signatures that are checked: more than any rotation of secrets needs. The limit bounds the work per
/// message.
const MAX_SIGNATURES: usize = 16;

/// Maximum length of an id, far longer than the service's; it limits the memory for a message.
const MAX_ID_BYTES: usize = 256;

/// Verifies messages with one or more secrets; keep one for the life of the program.
///
/// `Debug` shows no secret. docs/api.md, Webhooks, describes signatures and redelivery.
#[derive(Debug)]
pub struct Webhook {
    secrets: Vec<Secret>,
    guard: Option<ReplayGuard>,
    clock: WallClock,
}

impl Webhook {
    /// Verifies with these secrets: a message signed with any of them is accepted. While a secret is rotated, pass the
    /// new one and the old one.
    ///
    /// Errors: `NoSecret`, and `Secret` when one of them is malformed.
    ///
    /// ```
    /// use parcelo::webhook::{Webhook, WebhookError};
    ///
    /// let new = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    /// let old = "whsec_plJ3nmyCDGBKInavdOK15jslAAECAwQF";
    /// assert!(Webhook::new([new, old]).is_ok());
    /// assert_eq!(Webhook::new([""; 0]).unwrap_err(), WebhookError::NoSecret);
    /// ```
    pub fn new<S>(secrets: impl IntoIterator<Item = S>) -> Result<Self, WebhookError>
    where
        S: TryInto<Secret>,
        WebhookError: From<S::Error>,
    {
        let secrets: Vec<Secret> = secrets
            .into_iter()
            .map(|secret| Ok(secret.try_into()?))
            .collect::<Result<_, WebhookError>>()?;
        if secrets.is_empty() {
            return Err(WebhookError::NoSecret);
        }
        Ok(Self { secrets, guard: None, clock: WallClock::default() })
    }

    /// Rejects a copy of an accepted message ([`WebhookError::Replayed`]). The last `capacity` messages are
    /// remembered for that. A new attempt of the service is not a copy: it has a new timestamp.
    ///
    /// ```
    /// # use parcelo::webhook::{Secret, Webhook, WebhookError};
    /// # let secret = Secret::from_random(&[7; 32]);
    /// # let body = br#"{"event":"webhook.test","environment":"sandbox","timestamp":"2026-01-10T15:05:00.000Z","data":{}}"#;
    /// # let sent = 1_768_057_500; // 2026-01-10 15:05 UTC
    /// # let signature = secret.sign("evt_1", sent, body);
    /// # let sent = sent.to_string();
    /// # let headers = [("webhook-id", "evt_1"), ("webhook-timestamp", &sent), ("webhook-signature", &signature)];
    /// # let now = "2026-01-10T15:05:02Z".parse().unwrap();
    /// let webhook = Webhook::new([secret])?.reject_replays(10_000);
    /// assert!(webhook.verify_at(&headers[..], body, now).is_ok());
    /// assert_eq!(webhook.verify_at(&headers[..], body, now), Err(WebhookError::Replayed));
    /// # Ok::<(), WebhookError>(())
    /// ```
    #[must_use]
    pub fn reject_replays(mut self, capacity: usize) -> Self {
        self.guard = Some(ReplayGuard::new(capacity));
        self
    }

    /// Makes [`verify`](Self::verify) read the time from `read` in place of the machine's clock, for tests against an
    /// embedded service whose clock they move.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::webhook::Webhook;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await; // its clock stands at 2026-01-05 08:00 UTC
    /// let secret = server.webhook_inbox().send_to("http://127.0.0.1:3000/");
    /// let webhook = Webhook::new([secret])?.clock(server.clock().reader());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn clock(self, read: impl Fn() -> DateTime<Utc> + Send + Sync + 'static) -> Self {
        Self { clock: WallClock::new(read), ..self }
    }

    /// Verifies a message: its signature, and that its timestamp is within 5 minutes of this machine's clock. The
    /// body must be passed byte for byte.
    ///
    /// Errors: all of [`WebhookError`] except `NoSecret`, `Secret` and `Body`. Respond with a 4xx status and do nothing
    /// else. Signatures are compared in constant time.
    ///
    /// ```
    /// # use parcelo::model::EventData;
    /// # use parcelo::webhook::{Secret, Webhook};
    /// # let secret = Secret::from_random(&[7; 32]);
    /// # let body = br#"{"event":"webhook.test","environment":"sandbox","timestamp":"2026-01-10T15:05:00.000Z","data":{}}"#;
    /// # let sent = chrono::Utc::now().timestamp();
    /// # let mut headers = http::HeaderMap::new();
    /// # headers.insert("webhook-id", "evt_1".parse().unwrap());
    /// # headers.insert("webhook-timestamp", sent.into());
    /// # headers.insert("webhook-signature", secret.sign("evt_1", sent, body).parse().unwrap());
    /// let webhook = Webhook::new([secret])?;
    /// let message = webhook.verify(&headers, body)?; // an `http::HeaderMap`, as in axum and hyper
    /// assert_eq!((message.id(), message.event()?.data), ("evt_1", EventData::Test));
    /// # Ok::<(), parcelo::webhook::WebhookError>(())
    /// ```
    pub fn verify<'b>(
        &self,
        headers: &(impl Headers + ?Sized),
        body: &'b (impl AsRef<[u8]> + ?Sized),
    ) -> Result<Verified<'b>, WebhookError> {
        self.verify_at(headers, body, self.clock.now())
    }

    /// Verifies like [`verify`](Self::verify), at another time: for tests, and for stored messages.
    ///
    /// ```
    /// # use parcelo::webhook::{Secret, Webhook, WebhookError};
    /// # let secret = Secret::from_random(&[7; 32]);
    /// # let body = br#"{"event":"webhook.test","environment":"sandbox","timestamp":"2026-01-10T15:05:00.000Z","data":{}}"#;
    /// # let sent = 1_768_057_500; // 2026-01-10 15:05 UTC
    /// # let signature = secret.sign("evt_1", sent, body);
    /// # let sent = sent.to_string();
    /// # let headers = [("webhook-id", "evt_1"), ("webhook-timestamp", &sent), ("webhook-signature", &signature)];
    /// let webhook = Webhook::new([secret])?;
    /// let at = |time: &str| webhook.verify_at(&headers[..], body, time.parse().unwrap());
    /// assert!(at("2026-01-10T15:10:00Z").is_ok());
    /// assert_eq!(at("2026-01-10T15:10:01Z"), Err(WebhookError::TooOld { seconds: 301 }));
    /// # Ok::<(), WebhookError>(())
    /// ```
    pub fn verify_at<'b>(
        &self,
        headers: &(impl Headers + ?Sized),
        body: &'b (impl AsRef<[u8]> + ?Sized),
        now: DateTime<Utc>,
    ) -> Result<Verified<'b>, WebhookError> {
        let (body, now) = (body.as_ref(), now.timestamp());
        let id = parse_id(single_value(headers, ID)?)?;
        let sent = single_value(headers, TIMESTAMP)?;
        let timestamp = parse_timestamp(sent)?;
        let signatures = single_value(headers, SIGNATURE)?;
        check_age(timestamp, now)?;
        let tag = self.check_signatures(signatures, &[id.as_bytes(), sent, body])?;
        if let Some(guard) = &self.guard {
            let accepted_until = timestamp.saturating_add(TIMESTAMP_TOLERANCE_SECONDS.into());
            if !guard.is_new(tag, accepted_until, now) {
                return Err(WebhookError::Replayed);
            }
        }
        Ok(Verified { id, timestamp, body })
    }

    /// Returns the first secret's tag of the message, if one of the signatures is by one of the secrets. All of them
    /// are compared, so that the time taken does not reveal which one matched.
    fn check_signatures(
        &self,
        signatures: &[u8],
        message: &[&[u8]; 3],
    ) -> Result<[u8; 32], WebhookError> {
        let given: Vec<Vec<u8>> = signatures
            .split(|byte| *byte == b' ')
            .take(MAX_SIGNATURES)
            .filter_map(|signature| signature.strip_prefix(b"v1,"))
            .filter_map(|encoded| STANDARD.decode(encoded).ok())
            .collect();
        let tags: Vec<_> = self.secrets.iter().map(|secret| secret.tag(message)).collect();
        let mut matches = Choice::from(0);
        for tag in &tags {
            for signature in &given {
                matches |= signature.as_slice().ct_eq(tag.as_slice());
            }
        }
        match tags.first() {
            Some(first) if bool::from(matches) => Ok(*first),
            Some(_) | None => Err(WebhookError::Signature),
        }
    }
}

fn check_age(timestamp: i64, now: i64) -> Result<(), WebhookError> {
    let seconds = now.abs_diff(timestamp);
    if seconds <= TIMESTAMP_TOLERANCE_SECONDS.into() {
        Ok(())
    } else if timestamp < now {
        Err(WebhookError::TooOld { seconds })
    } else {
        Err(WebhookError::TooNew { seconds })
    }
}

/// Parses an id: visible ASCII without dots. Dots separate the signed parts, so with one in the id a part of it could
/// pass for the timestamp.
fn parse_id(bytes: &[u8]) -> Result<String, WebhookError> {
    let is_valid = (1..=MAX_ID_BYTES).contains(&bytes.len())
        && bytes.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'.');
    match std::str::from_utf8(bytes) {
        Ok(id) if is_valid => Ok(id.to_owned()),
        Ok(_) | Err(_) => Err(WebhookError::HeaderMalformed(ID)),
    }
}

/// Parses Unix seconds in digits alone, without sign and leading zeros: one number has one spelling that can be signed.
fn parse_timestamp(bytes: &[u8]) -> Result<i64, WebhookError> {
    let is_plain =
        bytes.iter().all(u8::is_ascii_digit) && (bytes.len() == 1 || !bytes.starts_with(b"0"));
    let seconds = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    seconds.filter(|_| is_plain).ok_or(WebhookError::HeaderMalformed(TIMESTAMP))
}

/// A message that was verified: it is signed by Parcelo and recent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified<'b> {
    id: String,
    timestamp: i64,
    body: &'b [u8],
}

impl<'b> Verified<'b> {
    #[cfg(test)]
    pub(super) fn from_body(body: &'b str) -> Self {
        Self { id: String::new(), timestamp: 0, body: body.as_bytes() }
    }

    /// Returns the event's id, which is the same on every attempt. Store it with the effects of the event, and respond to
    /// a repetition with 2xx without repeating them.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the time of this attempt, in Unix seconds.
    pub const fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// Returns the body, unchanged.
    pub const fn body(&self) -> &'b [u8] {
        self.body
    }

    /// Returns the event.
    ///
    /// Errors: `Body` when it is not a valid event in JSON. A kind of event that this version does not know is
    /// not an error, but [`EventData::Unknown`](crate::model::EventData::Unknown).
    pub fn event(&self) -> Result<WebhookEvent, WebhookError> {
        serde_json::from_slice(self.body).map_err(|_| WebhookError::Body)
    }
}
