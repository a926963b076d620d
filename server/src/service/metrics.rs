//! What the server counts of itself, for operators: requests, refusals, commits, the outbox.
//!
//! Each service counts for itself, so that many can run in one process. No label holds anything
//! that a caller chose.

use std::time::Duration;

use parcelo::Environment;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{Limited, Service};
use crate::{clock::Millis, core::Refusal};

/// Upper bounds, in seconds: what a user feels lies between a millisecond and ten seconds.
const SECONDS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0];

/// A request that was answered.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Which listener was called: `production`, `sandbox` or `operators`.
    pub listener: &'static str,
    /// What was asked for: an operation's name, `Admin`, `Dashboard`, or `Other` for pages, probes and
    /// paths that do not exist.
    pub operation: &'static str,
    /// The error's code, or nothing.
    pub code: &'static str,
    /// The HTTP status.
    pub status: u16,
}

/// The counts of one service.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    seconds: Family<OperationLabels, Histogram>,
    refusals: Family<RefusalLabels, Counter>,
    clock_jumps: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    listener: &'static str,
    operation: &'static str,
    code: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    listener: &'static str,
    operation: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    counted_by: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EnvironmentLabels {
    environment: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            refusals: Family::default(),
            clock_jumps: Counter::default(),
        }
    }
}

impl Metrics {
    /// Counts an answer.
    pub fn answered(&self, request: Request, took: Duration) {
        let Request { listener, operation, code, status } = request;
        let labels = RequestLabels { listener, operation, code, status };
        self.requests.get_or_create(&labels).inc();
        let labels = OperationLabels { listener, operation };
        self.seconds.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// Counts a request that came too soon after others.
    pub(super) fn refused(&self, who: Limited) {
        let counted_by = match who {
            Limited::Key(_) => "key",
            Limited::Carrier(_) => "carrier_key",
            Limited::Address(..) => "address",
            Limited::Operator(_) => "operator",
            Limited::Public(..) => "public_page",
        };
        self.refusals.get_or_create(&RefusalLabels { counted_by }).inc();
    }

    /// Counts a jump of the clock.
    pub(super) fn clock_jumped(&self) {
        self.clock_jumps.inc();
    }

    fn register(&self, registry: &mut Registry) {
        let requests = "Requests answered, by operation, error code and HTTP status";
        registry.register("requests", requests, self.requests.clone());
        let seconds = "From a request's head to its answer's head, by operation";
        registry.register_with_unit("request", seconds, Unit::Seconds, self.seconds.clone());
        let refusals = "Requests refused by a rate limit, by what they are counted by";
        registry.register("rate_limit_refusals", refusals, self.refusals.clone());
        let jumps = "Jumps of the machine's clock by more than a minute";
        registry.register("clock_jumps", jumps, self.clock_jumps.clone());
    }
}

impl Service {
    /// What is counted.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// All of it as text, in the format of `OpenMetrics`.
    pub fn metrics_text(&self) -> Result<String, Refusal> {
        let mut registry = Registry::with_prefix("parcelo");
        self.metrics.register(&mut registry);
        self.register_store(&mut registry);
        self.register_outbox(&mut registry, self.now())?;
        let mut text = String::new();
        encode(&mut text, &registry).map_err(|error| {
            tracing::error!(%error, "the metrics could not be written");
            Refusal::unavailable()
        })?;
        Ok(text)
    }

    fn register_store(&self, registry: &mut Registry) {
        let stats = self.store.stats();
        let counts = [
            ("store_commits", "Transactions written", stats.commits),
            ("store_writes", "Writes in those transactions", stats.changes),
            ("store_orders", "Orders in those transactions", stats.orders),
        ];
        for (name, help, count) in counts {
            let counter: Counter = Counter::default();
            counter.inc_by(count);
            registry.register(name, help, counter);
        }
        let writable: Gauge = Gauge::default();
        writable.set(self.store.is_writable().into());
        registry.register("store_writable", "1 while the database takes writes", writable);
    }

    fn register_outbox(&self, registry: &mut Registry, now: Millis) -> Result<(), Refusal> {
        let (depth, age) = <(Family<_, Gauge>, Family<_, Gauge>)>::default();
        for environment in Environment::ALL {
            let labels = EnvironmentLabels { environment: environment.code() };
            depth.get_or_create(&labels).set(0);
            age.get_or_create(&labels).set(0);
        }
        for (tenant, pending) in self.store.pending()? {
            let labels = EnvironmentLabels { environment: tenant.environment.code() };
            depth.get_or_create(&labels).inc_by(pending.events);
            let seconds = (now.0 - pending.since.0).max(0) / 1_000;
            let oldest = age.get_or_create(&labels);
            oldest.set(oldest.get().max(seconds));
        }
        registry.register("outbox_events", "Webhook events that are to be delivered", depth);
        let help = "The age of the oldest of them";
        registry.register_with_unit("outbox_age", help, Unit::Seconds, age);
        Ok(())
    }
}
