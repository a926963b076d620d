//! The service of Parcelo, a cross-border parcel shipping service: it creates orders with labels
//! and tracks parcels.
//!
//! The same service runs as a process (`parcelo-server serve`) and inside tests:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! use parcelo_server::mock::MockServer;
//!
//! let server = MockServer::start().await;
//! let key = server.key().countries(["EC"]).issue();
//! println!("an API for {key:?} at {}", server.url());
//! # }
//! ```
//!
//! What integrators use is [`mock`]; [`process`] is the command's entry. ARCHITECTURE.md in the repository says what is
//! where.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(all(doctest, feature = "sdk"))]
#[doc = include_str!("../../docs/testing-rust.md")]
mod testing {}

#[cfg(feature = "server")]
#[doc(inline)]
pub use parcelo_process as process;
#[doc(inline)]
pub use parcelo_service::mock;

/// Items that this repository's own tests and benches use; they change without notice.
///
/// Its users: `server/tests/it` (`carrier`, `crowd`, `dashboard`, `deliveries`, `openapi`),
/// `tests/it/webhook_listen.rs`, `tests/it/day/office.rs`, `tests/crash`,
/// `server/benches` (`costs`, `load`, `webhooks`), `server/tests/sdk/limits.rs` and the checks of the
/// repository in `tests/tidy`.
#[doc(hidden)]
pub mod internals {
    pub use parcelo_domain::{
        Millis,
        audit::Actor,
        credentials::{ApiKeyRecord, ApiKeyScope, CarrierScope, Countries},
        legacy::{FIELDS as LEGACY_FIELDS, LegacySchedule},
        limit::{Admission, Quota, RateLimitWindows},
        mail::MailOutcome,
        scenario::SCENARIOS,
        secrets::Secrets,
        session::SESSION_LIFETIME_MILLIS,
        site::Site,
        state::State,
        tenant::{AccountRowId, Tenant},
        webhooks::{
            MAX_IN_FLIGHT_PER_ENDPOINT,
            delivery_slots::DeliverySlots,
            endpoint::DisabledBy,
            kinds::WebhookEventKinds,
            retry::{AttemptResult, DeliveryError, EndpointResponse},
            target::{AllowedHosts, MAX_URL_CHARS, WebhookAllowance},
        },
    };
    #[cfg(feature = "server")]
    pub use parcelo_process::{
        json_lines::JsonLines, passwords::hash_password, routes::admin_router,
    };
    pub use parcelo_service::{
        http::{
            Api,
            listen::{Listener, Stop},
            router,
        },
        service::{
            Service,
            authentication::Caller,
            credentials::NewKeyRequest,
            endpoints::EndpointRequest,
            idempotency::KeyedRequest,
            settings::{Limits, Settings},
        },
        webhook::WebhookDispatcher,
    };
    #[cfg(feature = "postgres")]
    pub use parcelo_store::{Address, CREATE_STATEMENTS};
    pub use parcelo_store::{Pause, Store};
    pub use parcelo_system::{
        clock::{Clock, ManualClock, SystemClock},
        ids::Ids,
    };
}
