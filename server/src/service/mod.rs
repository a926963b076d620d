//! The service: each operation loads what its decision needs, lets the domain decide, and commits.
//!
//! It knows the store, the clock and the ids; it knows nothing of HTTP. The HTTP shell, the mock
//! server and the admin commands all call it.

pub(crate) mod authentication;
mod called_at;
mod carriers;
mod changes;
mod clock;
mod counted;
pub(crate) mod credentials;
#[cfg(feature = "server")]
mod dashboard;
mod deliveries;
pub(crate) mod endpoints;
pub(crate) mod idempotency;
mod key_cache;
mod legacy;
mod limiter;
mod lists;
mod manifests;
#[cfg(feature = "server")]
mod metrics;
#[cfg(not(feature = "server"))]
#[path = "no_metrics.rs"]
mod metrics;
mod orders;
mod parcel_locks;
mod parcels;
#[cfg(feature = "server")]
pub(crate) mod passwords;
mod sandbox;
pub(crate) mod settings;
#[cfg(feature = "server")]
mod sign_in;
mod steps;

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, Mutex, Once},
};

use parcelo::{Environment, ErrorCode};

use crate::{
    clock::{Clock, Millis},
    domain::{CarrierKeyRecord, KeyRecord, Refusal, Secrets, Site},
    ids::Ids,
    store::{Commit, Store, StoreError},
};
pub(crate) use authentication::{Caller, Carrier, Visitor};
pub(crate) use called_at::called_at;
pub(crate) use counted::{BadHead, Request};
pub(crate) use credentials::{CredentialIssuer, NewKeyRequest, Rotation};
#[cfg(feature = "server")]
pub(crate) use dashboard::OwnParcel;
pub(crate) use deliveries::{Delivery, LeasedEvent};
pub(crate) use endpoints::{EndpointError, EndpointRequest, Endpoints};
pub(crate) use idempotency::Keyed;
pub(crate) use limiter::Limited;
pub(crate) use metrics::Metrics;
pub(crate) use parcels::LabelFile;
#[cfg(feature = "server")]
pub(crate) use passwords::hash_password;
pub(crate) use settings::{Limits, Settings};
#[cfg(feature = "server")]
pub(crate) use sign_in::{LoginOutcome, LoginRequest};
pub use steps::Fired;

/// The service, shared by all that serve it.
#[derive(Debug)]
pub struct Service {
    store: Store,
    clock: Arc<dyn Clock>,
    ids: Arc<Ids>,
    settings: Settings,
    limiter: limiter::Limiter,
    callers: key_cache::KeyCache<KeyRecord>,
    carriers: key_cache::KeyCache<CarrierKeyRecord>,
    parcel_locks: parcel_locks::ParcelLocks,
    legacy_uses: legacy::Uses,
    metrics: Metrics,
    #[cfg(feature = "server")]
    login: sign_in::LoginGate,
    /// Parcels of which the log says already that their steps cannot be taken.
    stuck: Mutex<HashSet<steps::Stuck>>,
    first_live_label: Once,
}

/// The answer to a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It was done now.
    Created(Vec<u8>),
    /// It was done now, and made nothing new.
    Done(Vec<u8>),
    /// It had been done before; these are the bytes of the first answer.
    Replayed(Vec<u8>),
}

impl Service {
    /// The service over a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>, ids: Arc<Ids>, settings: Settings) -> Self {
        let (limiter, callers, carriers, parcel_locks, legacy_uses, metrics) = Default::default();
        let (stuck, first_live_label) = (Mutex::default(), Once::new());
        Self {
            store,
            clock,
            ids,
            settings,
            limiter,
            callers,
            carriers,
            parcel_locks,
            legacy_uses,
            metrics,
            #[cfg(feature = "server")]
            login: sign_in::LoginGate::default(),
            stuck,
            first_live_label,
        }
    }

    /// The present moment.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// The id of a request that has just come in.
    pub fn request_id(&self, now: Millis) -> String {
        self.ids.request_id(now)
    }

    /// Makes credentials.
    pub fn issuer(&self) -> CredentialIssuer<'_> {
        CredentialIssuer { store: &self.store, secrets: self.secrets(), ids: &self.ids }
    }

    /// Sets webhooks up.
    pub fn endpoints(&self) -> Endpoints<'_> {
        Endpoints { store: &self.store, ids: &self.ids }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The store, for the process that runs the service.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Forgets what it knows beside the store, which was replaced: keys, windows, counts.
    pub fn forget(&self) {
        self.callers.clear();
        self.carriers.clear();
        self.limiter.clear();
        self.legacy_uses.clear();
    }

    fn secrets(&self) -> &Secrets {
        &self.settings.secrets
    }

    fn site(&self, environment: Environment) -> Cow<'_, Site> {
        called_at::seen(self.settings.site(environment))
    }
}

/// What a commit that did not go through means, for the outcomes that mean the same to every
/// operation; the ones an operation can bring about itself, it looks at before.
fn failed(outcome: &Commit) -> Refusal {
    match outcome {
        Commit::Busy | Commit::Full | Commit::VersionConflict | Commit::DuplicateAwb => {
            Refusal::unavailable()
        }
        Commit::DuplicateTracking => ErrorCode::ParcelDuplicateTracking.into(),
        Commit::Committed
        | Commit::IdempotencyTaken(_)
        | Commit::DuplicateCarrierEvent
        | Commit::Broken => {
            tracing::error!(?outcome, "a commit failed");
            Refusal::unavailable()
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        match error {
            // It is the caller who asks for too much.
            StoreError::Crowded { .. } => tracing::debug!(%error, "a read was refused"),
            // Another try would read the same.
            StoreError::Damaged { .. } => {
                tracing::error!(%error, "a row cannot be read");
                return ErrorCode::InternalError.into();
            }
            error => tracing::error!(%error, "the store failed"),
        }
        Self::unavailable()
    }
}

#[cfg(test)]
#[cfg(feature = "server")]
mod journeys;
#[cfg(test)]
mod key_tests;
#[cfg(test)]
mod tests;
