//! The service's reaction to a wall clock that jumps: nothing expires by it for a while, and deliveries that a fast
//! clock has postponed are brought forward.

use parcelo_domain::{Millis, audit::AUDIT_RETENTION_MILLIS};
use parcelo_system::clock::shared::Skew;

use super::{Refusal, Service};

impl Service {
    /// Returns the time against which the expiry of keys and sessions is checked. It is earlier than now while the
    /// clock is untrusted, because an idempotency key that is forgotten too early lets a retry create a second parcel.
    pub fn expiry_now(&self) -> Millis {
        // While the clocks of this machine and the database disagree, the earlier one counts.
        let behind = self.skew().map_or(0, |skew| skew.0.min(0));
        self.clock.expiry_now().plus(behind)
    }

    /// Checks whether the clock has jumped, and how far this machine's is from that of a shared database. Call it about
    /// every second.
    pub async fn watch_clock(&self) -> Result<(), Refusal> {
        // If the measurement fails, the clock continues unchanged; the failure is logged where it happens.
        if let Ok(Some(skew)) = self.store.measure_clock().await {
            tracing::warn!("{skew}: synchronise both with NTP");
        }
        let Some(millis) = self.clock.check_for_jump() else { return Ok(()) };
        let seconds = millis / Millis::SECOND;
        tracing::error!(
            seconds,
            "the clock has jumped: purges and expiry by it are suspended for ten minutes"
        );
        self.metrics.count_clock_jump();
        if millis < 0 { self.reschedule_deliveries().await } else { Ok(()) }
    }

    /// Returns the reason, as a part of a sentence, why the server must not be used if its clock and the database's
    /// disagree: one of the two is wrong, and it is unknown which.
    pub fn clock_skew_reason(&self) -> Option<String> {
        Some(format!("{}: synchronise both with NTP", self.skew()?))
    }

    fn skew(&self) -> Option<Skew> {
        self.store.shared_clock()?.excessive_skew()
    }

    /// Reschedules deliveries that a fast clock had postponed before it was set back: each waits its usual pause from
    /// now.
    pub async fn reschedule_deliveries(&self) -> Result<(), Refusal> {
        let moved = self.store.reschedule_deliveries(self.now()).await?;
        if moved > 0 {
            tracing::warn!(moved, "deliveries that an earlier clock had put off are due again");
        }
        Ok(())
    }

    /// Deletes data that is past its retention, unless the clock is untrusted.
    pub async fn purge(&self) {
        if !self.clock.may_purge() || self.skew().is_some() {
            return;
        }
        if let Err(error) = self.store.purge_records(self.now()).await {
            tracing::warn!(%error, "expired idempotency keys could not be deleted; trying again later");
        }
        // Failures are logged where they happen, and the next call tries again.
        let _ = self.purge_sandboxes().await;
        let _ = self.purge_outbox().await;
        let _ = self.purge_mails().await;
        if let Err(error) =
            self.store.purge_audit_log(self.now().plus(-AUDIT_RETENTION_MILLIS)).await
        {
            tracing::warn!(%error, "old entries of the audit log could not be deleted; trying again later");
        }
        let _ = self.purge_sessions().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        sync::{Arc, Mutex},
        time::Duration,
    };

    use serde_json::Value;

    use crate::service::{
        Caller, Delivery, EndpointRequest, Service, WriteResponse,
        tests::{caller, settings},
    };
    use parcelo_domain::{
        Millis,
        audit::Actor,
        sample::{self, TEST_AUTHOR},
        session::PasswordLogin,
        webhooks::{AllowedHosts, AttemptResult, DeliveryError, DeliverySlots, WebhookEventKinds},
    };
    use parcelo_store::{AuditFilter, Store};
    use parcelo_system::{
        clock::{ClockReading, ClockSource, GuardedClock},
        ids::Ids,
    };

    const START: Millis = Millis(1_768_057_500_000);

    /// Both clocks, moved by the test.
    #[derive(Debug, Clone)]
    struct ManualClocks(Arc<Mutex<ClockReading>>);

    impl ClockSource for ManualClocks {
        fn read(&self) -> ClockReading {
            *self.0.lock().unwrap()
        }
    }

    struct TestService {
        service: Service,
        clocks: ManualClocks,
        caller: Caller,
    }

    impl TestService {
        /// Starts a service and waits until its clock is trusted.
        async fn with_trusted_clock() -> Self {
            let clocks = ClockReading { wall: START, monotonic: Duration::ZERO };
            let clocks = ManualClocks(Arc::new(Mutex::new(clocks)));
            let (store, ids) = (Store::memory([1; 32]).unwrap(), Arc::new(Ids::seeded(1)));
            let clock = Arc::new(GuardedClock::from_clocks(clocks.clone()));
            let service = Service::new(store, clock, ids, settings());
            let test = Self { caller: caller(&service).await, service, clocks };
            test.advance(660).await;
            test
        }

        /// Advances both clocks.
        async fn advance(&self, seconds: u64) {
            let mut left = seconds;
            while left > 0 {
                let step = left.min(30);
                {
                    let mut both = self.clocks.0.lock().unwrap();
                    both.monotonic += Duration::from_secs(step);
                    both.wall = both.wall.plus(i64::try_from(step).unwrap() * Millis::SECOND);
                }
                self.service.watch_clock().await.unwrap();
                left -= step;
            }
        }

        /// Moves the wall clock. The service does not notice until it next checks.
        fn jump_wall_clock(&self, by: i64) {
            let mut both = self.clocks.0.lock().unwrap();
            both.wall = both.wall.plus(by);
        }

        /// Restarts the service on the same data.
        async fn restart(&mut self) {
            let (store, ids) = (self.service.store().clone(), Arc::new(Ids::seeded(1)));
            let clock = Arc::new(GuardedClock::from_clocks(self.clocks.clone()));
            self.service = Service::new(store, clock, ids, settings());
            self.service.end_leases().await.unwrap();
            self.service.reschedule_deliveries().await.unwrap();
        }

        /// Sets a webhook up.
        async fn set_up_webhook(&self) {
            let tenant = self.caller.tenant();
            let url = "https://shop.example/parcelo".to_owned();
            let request = EndpointRequest {
                tenant,
                url,
                kinds: WebhookEventKinds::default(),
                allowed_hosts: AllowedHosts::Any,
            };
            self.service.endpoints(Actor::Server).set(request, START).await.unwrap();
        }

        /// Fails all due deliveries, and returns their number.
        async fn fail_due(&self) -> usize {
            let due = self.lease_due().await;
            let count = due.len();
            for delivery in due {
                let at = self.service.now();
                let outcome = AttemptResult { at, millis: 1, response: Err(DeliveryError::Broken) };
                self.service.settle_delivery(delivery, outcome).await.unwrap();
            }
            count
        }

        async fn create(&self, order: &Value) -> Option<WriteResponse> {
            self.service.create_order(&self.caller, order, None).await.ok()
        }

        /// Leases the deliveries that are due.
        async fn lease_due(&self) -> Vec<Delivery> {
            let mut all = Vec::new();
            for event in self.service.lease_deliveries(&DeliverySlots::new(10)).await.unwrap() {
                all.extend(self.service.prepare_delivery(event).await.unwrap());
            }
            all
        }

        async fn has_jumped(&self) -> bool {
            self.service.metrics_text().await.unwrap().contains("parcelo_clock_jumps_total 1\n")
        }
    }

    fn order() -> Value {
        let mut order = sample::order();
        order.as_object_mut().unwrap().remove("trackingNumber");
        order
    }

    #[tokio::test]
    async fn a_clock_that_jumps_ahead_creates_no_duplicate_parcel() {
        let (test, order) = (TestService::with_trusted_clock().await, order());
        let Some(WriteResponse::Created(first)) = test.create(&order).await else { panic!() };
        test.jump_wall_clock(25 * Millis::HOUR);
        let replayed = Some(WriteResponse::Replayed(first));
        assert_eq!(test.create(&order).await, replayed, "before the jump is noticed");
        assert!(!test.has_jumped().await);
        test.advance(1).await;
        assert!(test.has_jumped().await);
        for _ in 0..19 {
            assert_eq!(test.create(&order).await, replayed);
            test.service.purge().await;
            test.advance(30).await;
        }
        test.jump_wall_clock(-25 * Millis::HOUR);
        test.advance(3_600).await;
        test.service.purge().await;
        assert_eq!(test.create(&order).await, replayed, "the same after the clock is set right");
        test.advance(24 * 3_600).await;
        let again = test.create(&order).await;
        assert!(
            matches!(again, Some(WriteResponse::Created(_))),
            "the key still expires after a day: {again:?}"
        );
    }

    #[tokio::test]
    async fn nothing_is_purged_for_ten_minutes_after_a_jump() {
        let (test, order) = (TestService::with_trusted_clock().await, order());
        test.create(&order).await.unwrap();
        let count_parcels = async || test.service.store().creations().await.unwrap().len();
        test.jump_wall_clock(40 * Millis::DAY);
        test.service.purge().await;
        test.advance(570).await;
        test.service.purge().await;
        assert_eq!(count_parcels().await, 1);
        test.advance(60).await;
        test.service.purge().await;
        assert_eq!(
            count_parcels().await,
            0,
            "a clock that was not corrected by then counts as right"
        );
    }

    #[tokio::test]
    async fn audit_log_entries_are_kept_for_a_year() {
        let test = TestService::with_trusted_clock().await;
        test.set_up_webhook().await;
        let count_entries = async || {
            test.service.purge().await;
            test.service.store().audit_log(AuditFilter::All, Millis(0), 9).await.unwrap().len()
        };
        let written = count_entries().await;
        assert!(written > 0, "a webhook was set");
        test.advance(364 * 86_400).await;
        assert_eq!(count_entries().await, written);
        test.advance(2 * 86_400).await;
        assert_eq!(count_entries().await, 0);
    }

    #[tokio::test]
    async fn a_session_outlives_a_clock_that_jumps_ahead() {
        let test = TestService::with_trusted_clock().await;
        let store = test.service.store();
        let account = test.caller.tenant().account;
        let password = "a hash".to_owned();
        store.set_password(account, password.clone(), START, &TEST_AUTHOR).await.unwrap();
        let login = PasswordLogin { account, password };
        let now = test.service.now();
        let client = Ipv4Addr::LOCALHOST.into();
        let token = test.service.begin_session(login, client, None, now).await.unwrap().unwrap();
        test.jump_wall_clock(13 * Millis::HOUR);
        assert!(test.service.find_session(&token).await.unwrap().is_some());
        test.advance(60).await;
        test.service.purge().await;
        assert!(test.service.find_session(&token).await.unwrap().is_some());
        test.advance(660).await;
        assert!(test.service.find_session(&token).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_clock_set_back_leaves_a_delivery_its_usual_pause() {
        let test = TestService::with_trusted_clock().await;
        let tenant = test.caller.tenant();
        test.set_up_webhook().await;
        test.jump_wall_clock(Millis::DAY);
        test.create(&order()).await.unwrap();
        assert_eq!(test.fail_due().await, 1);
        test.service.endpoints(Actor::Server).send_test(tenant, test.service.now()).await.unwrap();
        test.advance(1).await;
        test.jump_wall_clock(-Millis::DAY);
        assert_eq!(test.lease_due().await.len(), 0, "the step back is not noticed yet");
        test.advance(1).await;
        assert_eq!(test.lease_due().await.len(), 1, "an event that was never tried is due at once");
        test.advance(6).await;
        assert_eq!(test.lease_due().await.len(), 1, "and the other after its five seconds");
        // Neither result was stored; their leases of a minute were taken by the corrected clock.
        test.advance(61).await;
        assert_eq!(test.lease_due().await.len(), 2);
    }

    #[tokio::test]
    async fn each_clock_step_back_restarts_the_retry_pause() {
        let mut test = TestService::with_trusted_clock().await;
        test.set_up_webhook().await;
        test.jump_wall_clock(9 * Millis::DAY);
        test.create(&order()).await.unwrap();
        assert_eq!(test.fail_due().await, 1);
        test.advance(6).await;
        assert_eq!(test.fail_due().await, 1);
        for _ in 0..3 {
            test.jump_wall_clock(-Millis::DAY);
            test.advance(1).await;
            assert_eq!(test.fail_due().await, 0, "its pause of a minute starts again");
            test.jump_wall_clock(-Millis::DAY);
            test.restart().await;
            test.advance(50).await;
            assert_eq!(test.fail_due().await, 0, "and again after a start");
        }
        test.restart().await;
        test.advance(17).await;
        assert_eq!(test.fail_due().await, 1, "only a step back restarts the pause");
    }

    #[tokio::test]
    async fn a_restart_after_a_clock_step_back_uses_no_attempt() {
        let mut test = TestService::with_trusted_clock().await;
        test.set_up_webhook().await;
        test.jump_wall_clock(Millis::DAY);
        test.create(&order()).await.unwrap();
        assert_eq!(test.fail_due().await, 1);
        test.advance(1).await;
        test.jump_wall_clock(-Millis::DAY);
        test.advance(1).await;
        test.advance(6).await;
        assert_eq!(test.fail_due().await, 1);
        test.restart().await;
        test.advance(50).await;
        assert_eq!(test.fail_due().await, 0);
        test.advance(17).await;
        assert_eq!(test.fail_due().await, 1);
    }

    #[tokio::test]
    async fn a_lease_ends_within_a_minute_of_a_step_back() {
        let test = TestService::with_trusted_clock().await;
        let tenant = test.caller.tenant();
        test.set_up_webhook().await;
        test.jump_wall_clock(Millis::DAY);
        test.service.endpoints(Actor::Server).send_test(tenant, test.service.now()).await.unwrap();
        test.advance(1).await;
        assert_eq!(test.lease_due().await.len(), 1);
        test.jump_wall_clock(-Millis::DAY);
        test.advance(1).await;
        assert_eq!(test.lease_due().await.len(), 0);
        test.advance(61).await;
        assert_eq!(test.lease_due().await.len(), 1);
    }
}
