//! Verification of webhooks: whether a message is from Parcelo and recent, and its event
//! (Standard Webhooks 1.0; docs/api.md, Webhooks). It works with any HTTP server.
//!
//! ```
//! use parcelo::model::EventData;
//! use parcelo::webhook::{Secret, Webhook};
//!
//! # let secret = Secret::from_random(&[7; 32]).expose();
//! let webhook = Webhook::new([secret.as_str()])?; // or two, while the secret is rotated
//! # let body = br#"{"event":"webhook.test","environment":"sandbox","timestamp":"2026-01-10T15:05:00.000Z","data":{}}"#;
//! # let (now, seconds) = (chrono::Utc::now(), chrono::Utc::now().timestamp());
//! # let signature = Secret::parse(&secret)?.sign("evt_1", seconds, body);
//! # let seconds = seconds.to_string();
//! # let headers = [("webhook-id", "evt_1"), ("webhook-timestamp", &seconds), ("webhook-signature", &signature)];
//! let event = webhook.verify(&headers[..], body)?.event()?;
//! match event.data {
//!     EventData::StatusChanged(change) => println!("{}", change.new_status),
//!     _ => {} // other events, including those of later versions
//! }
//! # Ok::<(), parcelo::webhook::WebhookError>(())
//! ```
//!
//! Pass the body byte for byte: if it is parsed and serialised again, its signature no longer matches. A message is sent
//! again, always with the same id, until the receiver responds with 2xx. Store the id with the effects of the message,
//! and respond with 2xx the second time without repeating them.
//!
//! If the call that caused the event had a `traceparent` header, the message has one of the same trace. Read it like any
//! other header; the signature does not cover it.

mod error;
mod headers;
mod replay;
mod secret;
#[cfg(test)]
mod tests;
mod verify;

pub use error::WebhookError;
pub use headers::Headers;
pub use secret::Secret;
pub use verify::{Verified, Webhook};

/// The header with the event's id, the same on every attempt.
pub const ID: &str = "webhook-id";
/// The header with the time of this attempt, in Unix seconds.
pub const TIMESTAMP: &str = "webhook-timestamp";
/// The header with the signatures, one for each valid secret.
pub const SIGNATURE: &str = "webhook-signature";
