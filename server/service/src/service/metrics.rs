//! The server's metrics for operators: requests, refusals, commits, the outbox.
//!
//! Each service has its own metrics, so that many can run in one process. No label has a value that a caller chose.

use std::{sync::atomic::AtomicU64, time::Duration};

use parcelo_domain::{Millis, Refusal, Tenant, webhooks::DisabledBy};
use parcelo_store::{Backlog, MailBacklog};
use parcelo_types::{Environment, LabelFormat};
use parcelo_wire::CarrierOutcome;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use super::{AnsweredRequest, BadHead, LimitSubject, Service};

/// Upper bounds of the histogram's buckets, in seconds, from a millisecond to ten seconds: the range in which users
/// notice a difference.
const DURATION_BUCKETS_SECONDS: [f64; 12] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 10.0];

/// The metrics of one service; clones share the same counters.
#[derive(Debug, Clone)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    seconds: Family<Labels<2>, Histogram>,
    refusals: Family<Labels<1>, Counter>,
    refused_connections: Family<Labels<1>, Counter>,
    bad_heads: Family<Labels<2>, Counter>,
    deliveries: Family<Labels<2>, Counter>,
    switched_off: Family<Labels<2>, Counter>,
    mails: Family<Labels<2>, Counter>,
    labels: Family<Labels<2>, Counter>,
    carrier_events: Family<Labels<2>, Counter>,
    clock_jumps: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    listener: &'static str,
    operation: &'static str,
    code: &'static str,
    status: u16,
}

/// The labels of a count, by name.
type Labels<const N: usize> = [(&'static str, &'static str); N];

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS_SECONDS)),
            refusals: Family::default(),
            refused_connections: Family::default(),
            bad_heads: Family::default(),
            deliveries: Family::default(),
            switched_off: Family::default(),
            mails: Family::default(),
            labels: Family::default(),
            carrier_events: Family::default(),
            clock_jumps: Counter::default(),
        }
    }
}

impl Metrics {
    /// Counts a response.
    pub fn count_request(&self, request: AnsweredRequest, duration: Duration) {
        let AnsweredRequest { listener, operation, code, status } = request;
        let labels = RequestLabels { listener, operation, code, status };
        self.requests.get_or_create(&labels).inc();
        let labels = [("listener", listener), ("operation", operation)];
        self.seconds.get_or_create(&labels).observe(duration.as_secs_f64());
    }

    /// Counts a request that a rate limit refused.
    pub(super) fn count_rate_limited(&self, subject: LimitSubject) {
        let counted_by = match subject {
            LimitSubject::Key(_) => "key",
            LimitSubject::Carrier(_) => "carrier_key",
            LimitSubject::Address(..) => "address",
            LimitSubject::Operator(_) => "operator",
            LimitSubject::Public(..) => "public_page",
        };
        self.refusals.get_or_create(&[("counted_by", counted_by)]).inc();
    }

    /// Counts a connection that was closed at once because its address has too many open.
    pub fn count_refused_connection(&self, listener: &'static str) {
        self.refused_connections.get_or_create(&[("listener", listener)]).inc();
    }

    /// Returns the number of refused connections at a listener.
    pub fn refused_connections(&self, listener: &'static str) -> u64 {
        self.refused_connections.get_or_create(&[("listener", listener)]).get()
    }

    /// Counts a request head that could not be read.
    pub fn count_bad_head(&self, listener: &'static str, bad: BadHead) {
        self.bad_heads.get_or_create(&bad_head_labels(listener, bad)).inc();
    }

    /// Returns the number of unreadable request heads at a listener.
    pub fn bad_heads(&self, listener: &'static str, bad: BadHead) -> u64 {
        self.bad_heads.get_or_create(&bad_head_labels(listener, bad)).get()
    }

    /// Counts an attempt to deliver a webhook event, by its outcome.
    pub(super) fn count_delivery(&self, tenant: Tenant, outcome: &'static str) {
        let labels = [("environment", tenant.environment.code()), ("outcome", outcome)];
        self.deliveries.get_or_create(&labels).inc();
    }

    /// Counts an endpoint that was turned off because of its responses, or because it did not respond.
    pub(super) fn count_disabled_webhook(&self, tenant: Tenant, by: DisabledBy) {
        let labels = [("environment", tenant.environment.code()), ("reason", by.code())];
        self.switched_off.get_or_create(&labels).inc();
    }

    /// Counts an e-mail or an attempt to send it, by its outcome.
    pub(super) fn count_mail(&self, environment: Environment, outcome: &'static str) {
        let labels = [("environment", environment.code()), ("outcome", outcome)];
        self.mails.get_or_create(&labels).inc();
    }

    /// Counts labels that were drawn, alone or in a batch.
    pub(super) fn count_labels(&self, environment: Environment, format: LabelFormat, count: u64) {
        let labels = [("environment", environment.code()), ("format", format.code())];
        self.labels.get_or_create(&labels).inc_by(count);
    }

    /// Counts a carrier's event, by its outcome.
    pub(super) fn count_carrier_event(&self, environment: Environment, outcome: &CarrierOutcome) {
        let outcome = match outcome {
            CarrierOutcome::Applied => "applied",
            CarrierOutcome::Recorded => "recorded",
            CarrierOutcome::Duplicate => "duplicate",
            // The service has no other.
            _ => "rejected",
        };
        let labels = [("environment", environment.code()), ("outcome", outcome)];
        self.carrier_events.get_or_create(&labels).inc();
    }

    /// Counts a jump of the clock.
    pub(super) fn count_clock_jump(&self) {
        self.clock_jumps.inc();
    }

    /// Adds the counts whose increase raises an alert, at 0. In a series that begins with its first count, Prometheus
    /// sees no increase.
    fn begin_at_zero(&self) {
        for counted_by in ["key", "carrier_key", "address", "operator", "public_page"] {
            self.refusals.get_or_create(&[("counted_by", counted_by)]).inc_by(0);
        }
        for environment in Environment::ALL {
            let environment = ("environment", environment.code());
            for by in [DisabledBy::Gone, DisabledBy::Failures, DisabledBy::Unreadable] {
                self.switched_off.get_or_create(&[environment, ("reason", by.code())]).inc_by(0);
            }
            for outcome in ["applied", "recorded", "duplicate", "rejected"] {
                self.carrier_events.get_or_create(&[environment, ("outcome", outcome)]).inc_by(0);
            }
        }
    }

    fn register(&self, registry: &mut Registry) {
        self.begin_at_zero();
        let requests = "Requests answered, by operation, error code and HTTP status";
        registry.register("requests", requests, self.requests.clone());
        let seconds = "From a request's head to its answer's head, by operation";
        registry.register_with_unit("request", seconds, Unit::Seconds, self.seconds.clone());
        let refusals = "Requests refused by a rate limit, by the subject of the limit";
        registry.register("rate_limit_refusals", refusals, self.refusals.clone());
        let refused = "Connections closed at once, because their address holds its share";
        registry.register("refused_connections", refused, self.refused_connections.clone());
        let bad = "Request heads that were answered, or dropped, without being read, by reason";
        registry.register("bad_request_heads", bad, self.bad_heads.clone());
        let deliveries = "Attempts to deliver webhook events, by outcome";
        registry.register("webhook_deliveries", deliveries, self.deliveries.clone());
        let switched_off = "Webhooks that the server turned off, by reason";
        registry.register("webhooks_switched_off", switched_off, self.switched_off.clone());
        let mails = "Attempts to send e-mails, by outcome";
        registry.register("mails", mails, self.mails.clone());
        let drawn = "Labels drawn, alone or in a file of several, by format";
        registry.register("labels", drawn, self.labels.clone());
        let carriers = "Carriers' events, by outcome";
        registry.register("carrier_events", carriers, self.carrier_events.clone());
        let jumps = "Jumps of the machine's clock by more than a minute";
        registry.register("clock_jumps", jumps, self.clock_jumps.clone());
    }
}

impl Service {
    /// Returns all metrics in the `OpenMetrics` text format.
    pub async fn metrics_text(&self) -> Result<String, Refusal> {
        let backlogs = self.store.backlogs().await?;
        let size = self.store.size().await?;
        // While e-mails are off, what is left waits for nothing.
        let mails =
            if self.is_mail_enabled() { self.store.waiting_mails().await? } else { Vec::new() };
        let mut registry = Registry::with_prefix("parcelo");
        register_build(&mut registry);
        self.metrics.register(&mut registry);
        self.register_store(&mut registry, size);
        register_outbox(&mut registry, &backlogs, self.now());
        register_mails(&mut registry, &mails, self.now());
        let mut text = String::new();
        encode(&mut text, &registry).map_err(|error| {
            tracing::error!(%error, "the metrics could not be written");
            Refusal::unavailable()
        })?;
        Ok(text)
    }

    fn register_store(&self, registry: &mut Registry, size: u64) {
        let stats = self.store.stats();
        let spent = Counter::<f64, AtomicU64>::default();
        spent.inc_by(stats.commit_time.as_secs_f64());
        let help = "Time spent in those transactions";
        registry.register_with_unit("store_commit", help, Unit::Seconds, spent);
        let gauges = [
            ("store_queued_writes", "Writes that wait for their transaction", stats.queued),
            ("database_size_bytes", "Size of the database, with its log", size),
        ];
        for (name, help, value) in gauges {
            let gauge: Gauge = Gauge::default();
            gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            registry.register(name, help, gauge);
        }
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
        let unreadable = Family::<Labels<1>, Counter>::default();
        for (table, count) in stats.unreadable {
            unreadable.get_or_create(&[("table", table)]).inc_by(count);
        }
        let help = "Reads that met a parcel which cannot be read, by the damaged table";
        registry.register("unreadable_rows", help, unreadable);
        let writable: Gauge = Gauge::default();
        writable.set(self.store.is_writable().into());
        registry.register("store_writable", "1 while the database takes writes", writable);
    }
}

/// Registers the version as a label of a gauge that is always 1, as is usual with Prometheus.
fn register_build(registry: &mut Registry) {
    let build = Family::<Labels<1>, Gauge>::default();
    build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]).set(1);
    registry.register("build_info", "1, with the version of the server that runs", build);
}

fn register_outbox(registry: &mut Registry, backlogs: &[Backlog], now: Millis) {
    let (depth, age) = <(Family<_, Gauge>, Family<_, Gauge>)>::default();
    for labels in Environment::ALL
        .into_iter()
        .flat_map(|environment| [false, true].map(|held| backlog_labels(environment, held)))
    {
        depth.get_or_create(&labels).set(0);
        age.get_or_create(&labels).set(0);
    }
    for backlog in backlogs {
        let labels = backlog_labels(backlog.tenant.environment, backlog.is_held);
        depth.get_or_create(&labels).inc_by(backlog.events);
        set_max_age(&age.get_or_create(&labels), backlog.since, now);
    }
    // Every server of the database reports the same value: their sum would count each event once per server.
    let help = "Of the database, the same on each of its servers: webhook events that have not arrived: pending, or \
                held while a webhook is off";
    registry.register("outbox_events", help, depth);
    let help = "Of the database, the same on each of its servers: the age of the oldest of them";
    registry.register_with_unit("outbox_age", help, Unit::Seconds, age);
}

fn register_mails(registry: &mut Registry, waiting: &[(Tenant, MailBacklog)], now: Millis) {
    let (depth, age) = <(Family<Labels<1>, Gauge>, Family<Labels<1>, Gauge>)>::default();
    let labels = |environment: Environment| [("environment", environment.code())];
    for environment in Environment::ALL {
        depth.get_or_create(&labels(environment)).set(0);
        age.get_or_create(&labels(environment)).set(0);
    }
    for (tenant, backlog) in waiting {
        depth.get_or_create(&labels(tenant.environment)).inc_by(backlog.mails);
        set_max_age(&age.get_or_create(&labels(tenant.environment)), backlog.since, now);
    }
    let help = "Of the database, the same on each of its servers: e-mails that wait to be sent";
    registry.register("mails_waiting", help, depth);
    let help = "Of the database, the same on each of its servers: the age of the oldest of them";
    registry.register_with_unit("mail_age", help, Unit::Seconds, age);
}

/// Sets a gauge to the age of what is there since a time, unless it shows a greater age.
fn set_max_age(gauge: &Gauge, since: Millis, now: Millis) {
    let seconds = (now.0 - since.0).max(0) / Millis::SECOND;
    gauge.set(gauge.get().max(seconds));
}

const fn bad_head_labels(listener: &'static str, bad: BadHead) -> Labels<2> {
    [("listener", listener), ("reason", bad.reason())]
}

const fn backlog_labels(environment: Environment, held: bool) -> Labels<2> {
    let state = if held { "held" } else { "pending" };
    [("environment", environment.code()), ("state", state)]
}
