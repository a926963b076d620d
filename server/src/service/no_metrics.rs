//! A stand-in for [`Metrics`] in builds without an operators' listener: it counts nothing.

use std::time::Duration;

use parcelo_domain::{Tenant, webhooks::DisabledBy};
use parcelo_types::Environment;

use super::{AnsweredRequest, BadHead, LimitSubject};

/// Metrics that count nothing.
#[derive(Debug, Clone, Default)]
pub struct Metrics {}

#[expect(clippy::unused_self, reason = "called as the metrics are")]
impl Metrics {
    /// Counts a response.
    pub fn count_request(&self, _: AnsweredRequest, _: Duration) {}

    pub(super) fn count_rate_limited(&self, _: LimitSubject) {}

    /// Counts a connection that was closed at once because its address has too many open.
    pub fn count_refused_connection(&self, _: &'static str) {}

    /// Counts a request head that could not be read.
    pub fn count_bad_head(&self, _: &'static str, _: BadHead) {}

    pub(super) fn count_delivery(&self, _: Tenant, _: &'static str) {}

    pub(super) fn count_disabled_webhook(&self, _: Tenant, _: DisabledBy) {}

    pub(super) fn count_mail(&self, _: Environment, _: &'static str) {}

    pub(super) fn count_clock_jump(&self) {}
}
