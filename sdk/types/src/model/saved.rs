//! A request on disk, with the history of its idempotency key, which the text of the key does not contain.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    IdempotencyKey, KeyState, ManifestRequest, OrderRequest, ReprintRequest, VoidManyRequest,
    VoidRequest,
};

/// A request and the history of its key, to be saved before it is sent: `[state, request]` as JSON.
///
/// The client refuses to send a restored request whose key is too old ([`IdempotencyKey`]), and knows that it may have
/// been executed. A request that was read from its JSON has no history, and would be sent.
///
/// ```
/// # use parcelo::OrderRequest;
/// use parcelo::model::Saved;
///
/// # let order: OrderRequest = serde_json::from_str(r#"{"idempotencyKey": "order-0001",
/// #     "sender": {"fullName": "Ana", "phone": "1", "address": {"line1": "1", "city": "Miami", "country": "US"}},
/// #     "receiver": {"fullName": "Luis", "phone": "2", "address": {"line1": "2", "city": "Quito", "country": "EC"}},
/// #     "parcelDetails": {"weightKg": 1, "declaredValue": 1}, "products": []}"#)?;
/// # let now = "2026-01-10T15:05:00Z".parse()?;
/// let line = serde_json::to_string(&Saved::new(&order, now))?; // to disk, and only then sent
/// // The process dies, and the next one continues:
/// let order = serde_json::from_str::<Saved<OrderRequest>>(&line)?.restore();
/// assert_eq!(order.idempotency_key.first_sent(), Some(now));
/// assert!(order.idempotency_key.may_have_executed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved<R>(KeyState, R);

impl<R: KeyedRequest> Saved<R> {
    /// Returns the saved form of a request that will be sent at `now` or later, with the history of its key.
    pub fn new(request: &R, now: DateTime<Utc>) -> Self {
        let mut request = request.clone();
        let about_to_be_sent = KeyState::sent_at(now);
        let state =
            request.keys_mut().fold(about_to_be_sent, |state, key| state.merge(&key.state()));
        Self(state, request)
    }

    /// Returns the request, whose key has the saved history.
    pub fn restore(self) -> R {
        let Self(state, mut request) = self;
        for key in request.keys_mut() {
            *key = key.clone().with_state(&state);
        }
        request
    }
}

/// A request with an idempotency key. Only requests of this crate implement it.
pub trait KeyedRequest: Clone + sealed::Keys {}

impl<R: Clone + sealed::Keys> KeyedRequest for R {}

mod sealed {
    pub trait Keys {
        fn keys_mut(&mut self) -> impl Iterator<Item = &mut super::IdempotencyKey>;
    }
}

macro_rules! keyed {
    ($($request:ty: $it:ident => $keys:expr;)+) => { $(
        impl sealed::Keys for $request {
            fn keys_mut(&mut self) -> impl Iterator<Item = &mut IdempotencyKey> {
                let $it = self;
                $keys
            }
        }
    )+ };
}

keyed! {
    OrderRequest: it => std::iter::once(&mut it.idempotency_key);
    VoidRequest: it => std::iter::once(&mut it.idempotency_key);
    ReprintRequest: it => std::iter::once(&mut it.idempotency_key);
    ManifestRequest: it => it.idempotency_key.iter_mut();
    VoidManyRequest: it => it.requests.iter_mut().map(|part| &mut part.idempotency_key);
}
