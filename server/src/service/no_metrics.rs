//! In the place of the metrics, where there is no operators' listener to show them: nothing is counted.

use std::time::Duration;

use parcelo::Environment;

use super::{AnsweredRequest, BadHead, Limited};
use crate::domain::{Tenant, webhooks::DisabledBy};

/// The counts of one service, which are never read.
#[derive(Debug, Clone, Default)]
pub struct Metrics {}

#[expect(clippy::unused_self, reason = "called as the metrics are")]
impl Metrics {
    /// Counts an answer.
    pub fn answered(&self, _: AnsweredRequest, _: Duration) {}

    pub(super) fn refused(&self, _: Limited) {}

    /// Counts a connection that was closed at once, because its address holds its share.
    pub fn connection_refused(&self, _: &'static str) {}

    /// Counts a head that never became a request.
    pub fn bad_head(&self, _: &'static str, _: BadHead) {}

    pub(super) fn delivered(&self, _: Tenant, _: &'static str) {}

    pub(super) fn switched_off(&self, _: Tenant, _: DisabledBy) {}

    pub(super) fn mailed(&self, _: Environment, _: &'static str) {}

    pub(super) fn clock_jumped(&self) {}
}
