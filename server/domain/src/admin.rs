//! Views of accounts, webhooks and carriers, as the admin API and the admin commands serialize them for operators.
//! For credentials, see [`super::credential_views`].

use parcelo_types::{Environment, ParcelStatus, internal};
use serde::Serialize;
use ulid::Ulid;

use super::{
    AccountRecord, CarrierReport, Shop,
    carrier::LoggedCarrierException,
    webhooks::{DisabledBy, Endpoint, LoggedAttempt, LoggedDelivery},
};
use crate::{Millis, ids::public_id};

pub(super) fn timestamp(at: Millis) -> String {
    internal::time::to_text(at.to_utc())
}

/// An account.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AccountView {
    account_id: String,
    name: String,
    created_at: String,
}

impl From<&AccountRecord> for AccountView {
    fn from(record: &AccountRecord) -> Self {
        let (account_id, name) = (record.id.clone(), record.name.clone());
        Self { account_id, name, created_at: timestamp(record.created_at) }
    }
}

/// The shop of an account, as receivers see it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShopView {
    /// The name of the account.
    pub account: String,
    /// The name of the shop; empty if the account has set none.
    pub shop_name: String,
    /// The address where receivers can ask; empty if the account has set none.
    pub contact: String,
}

impl ShopView {
    /// Creates the view of the shop of the account with this name.
    pub fn new(account: &str, shop: &Shop) -> Self {
        let (shop_name, contact) = shop.to_stored();
        Self { account: account.to_owned(), shop_name, contact }
    }
}

/// A webhook.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct WebhookView {
    url: String,
    environment: Environment,
    account: String,
    events: Vec<internal::EventKind>,
    enabled: bool,
    /// The reason why it is off: `OPERATOR`, `GONE` (it answered 410), `FAILURES`, or `UNREADABLE` (its settings).
    disabled_by: Option<&'static str>,
    created_at: String,
    /// The time until which messages are signed with the previous secret too.
    old_secret_until: Option<String>,
    /// The secret that verifies the signatures; present only in the response that sets the webhook up.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "utoipa", schema(nullable = false))]
    secret: Option<String>,
}

impl WebhookView {
    /// Creates the view of a webhook of the account with this name, without its secret.
    pub fn new(account: &str, endpoint: &Endpoint) -> Self {
        Self {
            url: endpoint.url.clone(),
            environment: endpoint.tenant.environment,
            account: account.to_owned(),
            events: endpoint.kinds.to_wire(),
            enabled: endpoint.disabled.is_none(),
            disabled_by: endpoint.disabled.map(DisabledBy::code),
            created_at: timestamp(endpoint.created_at),
            old_secret_until: endpoint.old.first().map(|(_, until)| timestamp(*until)),
            secret: None,
        }
    }

    /// Creates the view with the secret.
    pub fn with_secret(account: &str, endpoint: &Endpoint) -> Self {
        let secret = Some(endpoint.secret.expose());
        Self { secret, ..Self::new(account, endpoint) }
    }
}

/// A newly created secret.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewSecret {
    /// The new secret, shown this once.
    secret: String,
    /// The time until which messages are also signed with the previous secret.
    old_secret_until: String,
}

impl NewSecret {
    /// Creates the view of a secret; `old_until` is the end of the previous one.
    pub fn new(secret: &parcelo::webhook::Secret, old_until: Millis) -> Self {
        Self { secret: secret.expose(), old_secret_until: timestamp(old_until) }
    }
}

/// A test that was sent.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct TestedView {
    event_id: String,
}

impl From<Ulid> for TestedView {
    fn from(event: Ulid) -> Self {
        Self { event_id: public_id("evt", event) }
    }
}

/// The response to a request to send events again.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct ReplayedView {
    /// The number of events.
    pub replayed: usize,
}

/// An event and every attempt to deliver it.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    event_id: String,
    event: internal::EventKind,
    tracking_number: Option<String>,
    /// `PENDING`, `DELIVERED`, `FAILED` or `HELD`.
    status: &'static str,
    created_at: String,
    next_attempt_at: Option<String>,
    attempts: Vec<AttemptView>,
}

/// An attempt to deliver an event.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    attempt: u32,
    at: String,
    milliseconds: i64,
    http_status: Option<u16>,
    error: Option<String>,
    /// The beginning of the receiver's response, at most 1 KiB.
    answer: String,
}

impl From<&LoggedDelivery> for DeliveryView {
    fn from(logged: &LoggedDelivery) -> Self {
        Self {
            event_id: public_id("evt", logged.event),
            event: logged.kind.to_wire(),
            tracking_number: logged.tracking_number.clone(),
            status: logged.delivery_status.code(),
            created_at: timestamp(logged.created_at),
            next_attempt_at: logged.due.map(timestamp),
            attempts: logged.attempts.iter().map(AttemptView::from).collect(),
        }
    }
}

impl From<&LoggedAttempt> for AttemptView {
    fn from(attempt: &LoggedAttempt) -> Self {
        Self {
            attempt: attempt.number,
            at: timestamp(attempt.at),
            milliseconds: attempt.millis,
            http_status: attempt.status,
            error: attempt.error.clone(),
            answer: String::from_utf8_lossy(&attempt.response).into_owned(),
        }
    }
}

/// A carrier's event that was refused because of the parcel's state.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ExceptionView {
    tracking_number: String,
    /// The carrier's name.
    carrier: String,
    event_id: String,
    /// The parcel's state at that time.
    from: ParcelStatus,
    /// The reported state, which cannot follow.
    to: ParcelStatus,
    /// The time at which it happened, according to the carrier.
    occurred_at: String,
    location: String,
    description: Option<String>,
    carrier_code: Option<String>,
    refused_at: String,
}

impl From<&LoggedCarrierException> for ExceptionView {
    fn from(logged: &LoggedCarrierException) -> Self {
        let exception = &logged.exception;
        let CarrierReport { event_id, code, scan, .. } = &exception.report;
        Self {
            tracking_number: logged.tracking_number.to_string(),
            carrier: logged.carrier_name.clone(),
            event_id: event_id.clone(),
            from: exception.from.into(),
            to: scan.state.into(),
            occurred_at: timestamp(scan.at),
            location: scan.location.clone(),
            description: scan.description.clone(),
            carrier_code: code.clone(),
            refused_at: timestamp(exception.refused_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use parcelo::webhook::Secret;
    use serde_json::json;

    use super::*;
    use crate::{Tenant, webhooks::WebhookEventKinds};

    #[test]
    fn a_webhook_is_listed_without_its_secret_which_its_setup_shows() {
        let secret = Secret::from_random(&[1; 32]);
        let endpoint = Endpoint {
            tenant: Tenant::from_number(3),
            url: "https://shop.example/hook".to_owned(),
            kinds: WebhookEventKinds::default(),
            secret: secret.clone(),
            old: vec![(Secret::from_random(&[2; 32]), Millis(1_000))],
            disabled: Some(DisabledBy::Gone),
            created_at: Millis(0),
        };
        let mut expected = json!({
            "url": "https://shop.example/hook", "environment": "sandbox", "account": "shop",
            "events": ["parcel.status_changed"], "enabled": false, "disabledBy": "GONE",
            "createdAt": "1970-01-01T00:00:00.000Z", "oldSecretUntil": "1970-01-01T00:00:01.000Z",
        });
        let listed = WebhookView::new("shop", &endpoint);
        assert_eq!(serde_json::to_value(listed).unwrap(), expected);
        expected["secret"] = json!(secret.expose());
        let set_up = WebhookView::with_secret("shop", &endpoint);
        assert_eq!(serde_json::to_value(set_up).unwrap(), expected);
    }
}
