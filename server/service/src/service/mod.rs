//! The service: each operation loads what its decision needs, lets the domain decide, and commits.
//!
//! It knows the store, the clock and the ids; it knows nothing of HTTP. The HTTP layer, the mock
//! server and the admin commands all call it.

pub mod authentication;
mod carriers;
mod clock;
pub mod credentials;
mod dashboard;
mod deliveries;
pub mod endpoints;
mod fair_locks;
pub mod idempotency;
mod key_cache;
mod key_uses;
mod label_batch;
mod labels;
mod legacy;
mod limiter;
mod lists;
mod mails;
mod manifests;
mod metrics;
mod orders;
mod parcels;
mod request_base_url;
mod request_counts;
mod sandbox;
mod sessions;
pub mod settings;
mod steps;

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, Mutex, Once, atomic::AtomicI64},
};

use parcelo_domain::{
    ApiKeyRecord, CarrierKeyRecord, Millis, Refusal, Secrets, Site, TrackingNumberGenerator,
    audit::Actor,
};
use parcelo_store::{CommitOutcome, Store};
use parcelo_system::{clock::Clock, ids::Ids};
use parcelo_types::{Environment, ErrorCode};

pub use authentication::{Caller, Carrier};
pub use credentials::{CredentialIssuer, NewKeyRequest, RotationOutcome};
pub use dashboard::OwnedParcel;
pub use deliveries::{Delivery, LeasedEvent};
pub use endpoints::{EndpointError, EndpointRequest, Endpoints};
pub use idempotency::KeyedRequest;
pub use label_batch::{LabelBatch, has_label};
pub use limiter::LimitSubject;
pub(crate) use mails::MailToSend;
pub use metrics::Metrics;
pub use parcels::{LabelFile, PublicParcel};
pub use request_base_url::with_base_url;
pub use request_counts::{AnsweredRequest, BadHead};
pub use settings::{Limits, Settings};
pub use steps::Fired;

/// The service, shared by the HTTP layer, the tickers and the admin commands.
#[derive(Debug)]
pub struct Service {
    store: Store,
    clock: Arc<dyn Clock>,
    ids: Arc<Ids>,
    numbers: Arc<TrackingNumberGenerator>,
    settings: Settings,
    limiter: limiter::Limiter,
    callers: key_cache::KeyCache<ApiKeyRecord>,
    carriers: key_cache::KeyCache<CarrierKeyRecord>,
    parcel_locks: fair_locks::FairLocks,
    key_uses: key_uses::KeyUses,
    legacy_uses: legacy::UnsavedUses,
    metrics: Metrics,
    /// Parcels whose stuck steps have been logged. The set only grows, by one for each damaged row, and damaged rows
    /// are rare.
    stuck: Mutex<HashSet<steps::ParcelAtVersion>>,
    local_link_warning: Once,
    label_batches: label_batch::BatchPermits,
    /// The time from which changes of parcels send e-mails; [`mails::MAILS_OFF`] while e-mails are off.
    mails_since: AtomicI64,
}

/// The response to a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WriteResponse {
    /// The write was done now, and created something.
    Created(Vec<u8>),
    /// The write was done now, and created nothing.
    Done(Vec<u8>),
    /// The write had been done before; these are the bytes of the first response.
    Replayed(Vec<u8>),
}

impl Service {
    /// Creates the service over a store.
    pub fn new(store: Store, clock: Arc<dyn Clock>, ids: Arc<Ids>, settings: Settings) -> Self {
        let random = Arc::clone(&ids);
        let numbers = TrackingNumberGenerator::new(
            Box::new(move || random.array()),
            settings.secrets.clone(),
        );
        Self {
            store,
            clock,
            ids,
            numbers: Arc::new(numbers),
            settings,
            limiter: limiter::Limiter::default(),
            callers: key_cache::KeyCache::default(),
            carriers: key_cache::KeyCache::default(),
            parcel_locks: fair_locks::FairLocks::default(),
            key_uses: key_uses::KeyUses::default(),
            legacy_uses: legacy::UnsavedUses::default(),
            metrics: Metrics::default(),
            stuck: Mutex::default(),
            local_link_warning: Once::new(),
            label_batches: label_batch::BatchPermits::default(),
            mails_since: AtomicI64::new(mails::MAILS_OFF),
        }
    }

    /// Returns the current time.
    pub fn now(&self) -> Millis {
        self.clock.now()
    }

    /// Returns a new id for an incoming request.
    pub fn request_id(&self, now: Millis) -> String {
        self.ids.request_id(now)
    }

    /// Returns an issuer of credentials; the audit log names `by` as the author.
    pub fn issuer(&self, by: Actor) -> CredentialIssuer<'_> {
        let by = by.at(self.now());
        CredentialIssuer { store: &self.store, secrets: self.secrets(), ids: &self.ids, by }
    }

    /// Returns a handle that sets webhooks up; the audit log names `by` as the author.
    pub fn endpoints(&self, by: Actor) -> Endpoints<'_> {
        Endpoints { store: &self.store, ids: &self.ids, by: by.at(self.now()), trace: None }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Returns the store, for the process that runs the service.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Clears the caches (keys, rate-limit windows, counts) after the store was replaced. Locks, and the record of what
    /// has been logged, stay.
    pub fn clear_caches(&self) {
        self.callers.clear();
        self.carriers.clear();
        self.limiter.clear();
        self.key_uses.clear();
        self.legacy_uses.clear();
    }

    /// Returns the source of random values and ids.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Returns the secrets that hash keys and sign links.
    pub fn secrets(&self) -> &Secrets {
        &self.settings.secrets
    }

    /// Returns the public addresses of an environment, for links in the response to the present request.
    pub fn site(&self, environment: Environment) -> Cow<'_, Site> {
        request_base_url::site_for_request(self.settings.site(environment))
    }
}

/// Returns the refusal for a failed commit. An operation that treats an outcome differently matches it first.
fn refusal_for_commit(outcome: &CommitOutcome) -> Refusal {
    match outcome {
        CommitOutcome::Busy
        | CommitOutcome::Full
        | CommitOutcome::Unreachable
        | CommitOutcome::VersionConflict
        | CommitOutcome::DuplicateAwb => Refusal::unavailable(),
        CommitOutcome::Unknown => Refusal::outcome_unknown(),
        CommitOutcome::DuplicateTracking => ErrorCode::ParcelDuplicateTracking.into(),
        CommitOutcome::Committed
        | CommitOutcome::IdempotencyTaken(_)
        | CommitOutcome::DuplicateCarrierEvent
        | CommitOutcome::Broken => {
            tracing::error!(?outcome, "a commit failed");
            Refusal::unavailable()
        }
    }
}

#[cfg(test)]
mod journey_tests;
#[cfg(test)]
mod key_tests;
#[cfg(test)]
#[cfg(feature = "postgres")]
mod several_servers_tests;
#[cfg(test)]
#[cfg(feature = "postgres")]
mod shared_limit_tests;
#[cfg(test)]
pub(crate) mod tests;
