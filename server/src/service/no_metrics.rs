//! A stand-in for the metrics in builds without an operators' listener: it counts nothing.

use std::time::Duration;

use parcelo::Environment;

use super::{AnsweredRequest, BadHead, Limited};
use crate::domain::{Tenant, webhooks::DisabledBy};

/// Metrics that count nothing.
#[derive(Debug, Clone, Default)]
pub struct Metrics {}

#[expect(clippy::unused_self, reason = "called as the metrics are")]
impl Metrics {
    /// Counts an answer.
    pub fn answered(&self, _: AnsweredRequest, _: Duration) {}

    pub(super) fn refused(&self, _: Limited) {}

    /// Counts a connection that was closed at once because its address has too many open.
    pub fn connection_refused(&self, _: &'static str) {}

    /// Counts a request head that could not be read.
    pub fn bad_head(&self, _: &'static str, _: BadHead) {}

    pub(super) fn delivered(&self, _: Tenant, _: &'static str) {}

    pub(super) fn switched_off(&self, _: Tenant, _: DisabledBy) {}

    pub(super) fn mailed(&self, _: Environment, _: &'static str) {}

    pub(super) fn clock_jumped(&self) {}
}
