//! Rate limits. The domain does the counting. Requests with a key are counted across all servers of the database,
//! those of an address by each server alone (docs/operations.md, What several servers share).

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use parcelo_domain::{
    Millis,
    access::client_network,
    limit::{Admission, Quota, RateLimitWindows},
    shared_limit::{ClaimBatch, SharedKey, SharedRateLimitWindows},
};
use parcelo_store::Store;
use parcelo_system::clock::monotonic_now;
use parcelo_types::Environment;
use tokio::{sync::oneshot, time::timeout};

use super::{Caller, Carrier, Refusal, Service};

/// Maximum time to wait for the database's grant from a shared limit. A server that gets no response uses its own share
/// of the limit for the rest of the second.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(1);

/// The limit of a carrier key, as a multiple of the limit of an API key.
const CARRIER_LIMIT_FACTOR: u32 = 10;

/// The subject of a rate limit: its requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitSubject {
    /// The requests of one API key.
    Key(i64),
    /// The requests of one carrier key.
    Carrier(i64),
    /// The requests of one address without a valid key, in one environment. Here and below, the IPv6 addresses of one
    /// /64 network count as one.
    Address(Environment, IpAddr),
    /// The requests of one address to the operators' listener.
    Operator(IpAddr),
    /// The requests of one address to public pages, in one environment.
    Public(Environment, IpAddr),
}

impl LimitSubject {
    /// Replaces a client's address by its network, because one IPv6 client has more addresses than could be counted.
    fn with_network(self) -> Self {
        match self {
            Self::Address(environment, client) => {
                Self::Address(environment, client_network(client))
            }
            Self::Operator(client) => Self::Operator(client_network(client)),
            Self::Public(environment, client) => Self::Public(environment, client_network(client)),
            Self::Key(_) | Self::Carrier(_) => self,
        }
    }
}

/// The channel through which a waiting request gets its response.
type AdmissionSender = oneshot::Sender<Admission>;

#[derive(Debug, Default)]
pub(super) struct Limiter {
    /// The windows of addresses, which each server counts alone.
    by_address: Mutex<RateLimitWindows<LimitSubject>>,
    /// The windows of keys, which are shared with other servers.
    shared: Arc<Mutex<SharedRateLimitWindows<AdmissionSender>>>,
}

impl Limiter {
    pub(super) fn clear(&self) {
        lock(&self.by_address).clear();
        lock(&self.shared).clear();
    }
}

fn lock<T>(windows: &Mutex<T>) -> MutexGuard<'_, T> {
    windows.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Service {
    /// Admits or refuses a request without a valid key, and counts it.
    pub fn admit(&self, subject: LimitSubject, now: Millis) -> Admission {
        let limits = &self.settings.limits;
        let limit = match subject {
            LimitSubject::Public(..) => limits.public,
            LimitSubject::Address(..)
            | LimitSubject::Operator(_)
            | LimitSubject::Key(_)
            | LimitSubject::Carrier(_) => limits.unauthenticated,
        };
        self.count(subject, limit, limits.enforced, now)
    }

    /// Admits or refuses a request with an API key, and counts it.
    pub async fn admit_caller(&self, caller: &Caller, now: Millis) -> Admission {
        let (limit, enforced) = self.limit_for(caller);
        self.count_shared(LimitSubject::Key(caller.key.row), limit, enforced, now).await
    }

    /// Counts a request of a carrier key, which reports for many shippers.
    pub async fn admit_carrier(&self, carrier: &Carrier, now: Millis) -> Admission {
        let limits = &self.settings.limits;
        let limit = limits
            .default_for_keys(carrier.key.scope.environment)
            .saturating_mul(CARRIER_LIMIT_FACTOR);
        self.count_shared(LimitSubject::Carrier(carrier.key.row), limit, limits.enforced, now).await
    }

    /// Returns the remaining quota of a key without counting a request.
    pub fn quota_for(&self, caller: &Caller, now: Millis) -> Quota {
        let (limit, enforced) = self.limit_for(caller);
        if !enforced {
            return Quota::full(limit, now);
        }
        lock(&self.limiter.shared).quota(SharedKey::Api(caller.key.row), limit, now)
    }

    /// Sends a heartbeat to the other servers of the database, and reads how many there are. Call it before the first
    /// request and every second.
    pub async fn send_heartbeat(&self) -> Result<(), Refusal> {
        let started = monotonic_now();
        let Some(count) = self.store.send_heartbeat().await? else { return Ok(()) };
        // The database is assumed to read its clock halfway through the round trip.
        let half = i64::try_from(started.elapsed().as_millis() / 2).unwrap_or(0);
        lock(&self.limiter.shared).set_servers(count, self.now().plus(-half));
        Ok(())
    }

    fn limit_for(&self, caller: &Caller) -> (u32, bool) {
        let limits = &self.settings.limits;
        match caller.key.scope.rate_limit {
            Some(limit) => (limit, true),
            None => (limits.default_for_keys(caller.tenant().environment), limits.enforced),
        }
    }

    /// Counts a request on this server alone.
    fn count(&self, subject: LimitSubject, limit: u32, enforced: bool, now: Millis) -> Admission {
        if !enforced {
            return Admission::Granted(Quota::full(limit, now));
        }
        let admission = lock(&self.limiter.by_address).admit(subject.with_network(), limit, now);
        self.count_refusal(subject, admission)
    }

    /// Counts a request across all servers: usually in memory, but with a claim in the database if the key is busy.
    async fn count_shared(
        &self,
        subject: LimitSubject,
        limit: u32,
        enforced: bool,
        now: Millis,
    ) -> Admission {
        let key = match subject {
            LimitSubject::Key(row) => SharedKey::Api(row),
            LimitSubject::Carrier(row) => SharedKey::Carrier(row),
            LimitSubject::Address(..) | LimitSubject::Operator(_) | LimitSubject::Public(..) => {
                return self.count(subject, limit, enforced, now);
            }
        };
        if !enforced {
            return Admission::Granted(Quota::full(limit, now));
        }
        let (admission, batch) = {
            let mut shared = lock(&self.limiter.shared);
            let admission = shared.admit(key, limit, now).ok_or_else(|| {
                let (ticket, answer) = oneshot::channel();
                shared.enqueue(key, limit, ticket);
                answer
            });
            (admission, shared.next_batch())
        };
        self.spawn_claim(batch);
        let admission = match admission {
            Ok(admission) => admission,
            // The response is missing only if the process ends.
            Err(answer) => answer.await.unwrap_or(Admission::Granted(Quota::full(limit, now))),
        };
        self.count_refusal(subject, admission)
    }

    /// Sends the claims in a new task, because other requests wait for the response too, and this caller may
    /// disconnect.
    fn spawn_claim(&self, batch: Option<ClaimBatch<AdmissionSender>>) {
        if let Some(batch) = batch {
            let (store, shared) = (self.store.clone(), Arc::clone(&self.limiter.shared));
            tokio::spawn(claim_until_settled(store, shared, batch));
        }
    }

    fn count_refusal(&self, subject: LimitSubject, admission: Admission) -> Admission {
        if matches!(admission, Admission::Refused(_)) {
            self.metrics.count_rate_limited(subject);
        }
        admission
    }
}

/// Claims from the database until no batch is left: one batch at a time, for all keys together.
async fn claim_until_settled(
    store: Store,
    shared: Arc<Mutex<SharedRateLimitWindows<AdmissionSender>>>,
    first: ClaimBatch<AdmissionSender>,
) {
    let mut next = Some(first);
    while let Some(batch) = next {
        let claimed = timeout(CLAIM_TIMEOUT, store.claim_requests(batch.claims().to_vec()));
        let grants = claimed.await.ok().and_then(|claimed| {
            claimed
                .inspect_err(|error| tracing::warn!(%error, "a limit is kept by this server alone"))
                .ok()
        });
        let answered = {
            let mut shared = lock(&shared);
            let answered = shared.settle(batch, grants.as_deref());
            next = shared.next_batch();
            answered
        };
        for (ticket, admission) in answered {
            // A caller that has disconnected needs no response.
            let _gone = ticket.send(admission);
        }
    }
}
