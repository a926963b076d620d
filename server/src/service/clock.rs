//! What the service does about a wall clock that jumps: it doubts it for a while, and takes back what a
//! clock that was too fast has put off.

use super::{Refusal, Service};
use crate::{
    clock::{Millis, shared::Skew},
    domain::audit::AUDIT_RETENTION,
};

impl Service {
    /// The moment by which keys and sessions have expired: while the clock is in doubt earlier than now,
    /// for a key that is forgotten too early makes a second parcel.
    pub fn expiry(&self) -> Millis {
        // While this machine's clock and the database's disagree, by the earlier of the two.
        let behind = self.skew().map_or(0, |skew| skew.0.min(0));
        self.clock.expiry().plus(behind)
    }

    /// Looks whether the clock has jumped, and how far this machine's is from that of a shared database. To be
    /// called every second or so.
    pub async fn watch_clock(&self) -> Result<(), Refusal> {
        // Without an answer the clock runs on as it was; what else is wrong then is logged where it happened.
        if let Ok(Some(skew)) = self.store.measure_clock().await {
            tracing::warn!("{skew}: synchronise both with NTP");
        }
        let Some(millis) = self.clock.look() else { return Ok(()) };
        let seconds = millis / Millis::SECOND;
        tracing::error!(
            seconds,
            "the clock has jumped: for ten minutes nothing is purged or expires by it"
        );
        self.metrics.clock_jumped();
        if millis < 0 { self.bring_deliveries_forward().await } else { Ok(()) }
    }

    /// Why the server must not be used, as a part of a sentence, when its clock and the database's disagree: one of
    /// the two is wrong, and it is not known which.
    pub fn clock_fault(&self) -> Option<String> {
        Some(format!("{}: synchronise both with NTP", self.skew()?))
    }

    fn skew(&self) -> Option<Skew> {
        self.store.shared_clock()?.too_far()
    }

    /// Makes due, after its own pause from now, what was put off by a clock that has been set back since.
    pub async fn bring_deliveries_forward(&self) -> Result<(), Refusal> {
        let moved = self.store.bring_deliveries_forward(self.now()).await?;
        if moved > 0 {
            tracing::warn!(moved, "deliveries that an earlier clock had put off are due again");
        }
        Ok(())
    }

    /// Deletes what is too old, unless the clock is in doubt.
    pub async fn purge(&self) {
        // Whatever the clock says: what a page says once may rather be lost than stay.
        #[cfg(feature = "server")]
        let _ = self.purge_flashes().await;
        if !self.clock.may_purge() || self.skew().is_some() {
            return;
        }
        if let Err(error) = self.store.purge_records(self.now()).await {
            tracing::warn!(%error, "forgotten idempotency keys could not be deleted; trying again later");
        }
        // A failure is logged where it happened, and the next call tries again.
        let _ = self.purge_sandboxes().await;
        let _ = self.purge_outbox().await;
        let _ = self.purge_mails().await;
        if let Err(error) = self.store.purge_audit_log(self.now().plus(-AUDIT_RETENTION)).await {
            tracing::warn!(%error, "old entries of the audit log could not be deleted; trying again later");
        }
        #[cfg(feature = "server")]
        let _ = self.purge_sessions().await;
    }
}

#[cfg(test)]
#[cfg(feature = "server")]
mod tests {
    use std::{
        sync::{Arc, Mutex},
        time::Duration,
    };

    use parcelo::Environment;
    use serde_json::Value;

    use crate::{
        clock::{GuardedClock, Millis, Reading, TwoClocks},
        domain::{
            Countries,
            audit::Actor,
            audit::BY,
            sample,
            webhooks::{AllowedHosts, AttemptResult, DeliveryError, Kinds, Places},
        },
        ids::Ids,
        service::{
            Answer, Caller, Delivery, EndpointRequest, LoginOutcome, LoginRequest, NewKeyRequest,
            Service, hash_password, tests::settings,
        },
        store::Store,
    };

    const START: Millis = Millis(1_768_057_500_000);

    /// Two clocks that the test moves.
    #[derive(Debug, Clone)]
    struct Pair(Arc<Mutex<Reading>>);

    impl TwoClocks for Pair {
        fn read(&self) -> Reading {
            *self.0.lock().unwrap()
        }
    }

    struct House {
        service: Service,
        clocks: Pair,
        caller: Caller,
    }

    impl House {
        /// A house whose clock no one doubts any more.
        async fn settled() -> Self {
            let clocks = Reading { wall: START, monotonic: Duration::ZERO };
            let clocks = Pair(Arc::new(Mutex::new(clocks)));
            let (store, ids) = (Store::memory([1; 32]).unwrap(), Arc::new(Ids::seeded(1)));
            let clock = Arc::new(GuardedClock::from_clocks(clocks.clone()));
            let service = Service::new(store, clock, ids, settings());
            let request = NewKeyRequest {
                account: "default".to_owned(),
                environment: Environment::Sandbox,
                name: "Test".to_owned(),
                countries: Countries::All,
                ip_list: Vec::new(),
                rate_limit: None,
            };
            let (_, key) =
                service.issuer(Actor::Server).issue_api_key(request, START).await.unwrap();
            let house = Self { service, clocks, caller: Caller { key: Arc::new(key) } };
            house.run(660).await;
            house
        }

        /// Lets both clocks run.
        async fn run(&self, seconds: u64) {
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

        /// Sets the wall clock, which no one notices until someone looks.
        fn set(&self, by: i64) {
            let mut both = self.clocks.0.lock().unwrap();
            both.wall = both.wall.plus(by);
        }

        /// Begins again on the same data, as a start does.
        async fn restart(&mut self) {
            let (store, ids) = (self.service.store().clone(), Arc::new(Ids::seeded(1)));
            let clock = Arc::new(GuardedClock::from_clocks(self.clocks.clone()));
            self.service = Service::new(store, clock, ids, settings());
            self.service.end_leases().await.unwrap();
            self.service.bring_deliveries_forward().await.unwrap();
        }

        /// A shop with a webhook.
        async fn listen(&self) {
            let tenant = self.caller.tenant();
            let url = "https://shop.example/parcelo".to_owned();
            let request = EndpointRequest {
                tenant,
                url,
                kinds: Kinds::default(),
                reach: AllowedHosts::Everywhere,
            };
            self.service.endpoints(Actor::Server).set(request, START).await.unwrap();
        }

        /// How many attempts are made now; each of them fails.
        async fn fail_due(&self) -> usize {
            let due = self.due().await;
            let made = due.len();
            for delivery in due {
                let at = self.service.now();
                let outcome = AttemptResult { at, millis: 1, answer: Err(DeliveryError::Broken) };
                self.service.settle_delivery(delivery, outcome).await.unwrap();
            }
            made
        }

        async fn create(&self, order: &Value) -> Option<Answer> {
            self.service.create_order(&self.caller, order, None).await.ok()
        }

        /// Leases what is due.
        async fn due(&self) -> Vec<Delivery> {
            let mut all = Vec::new();
            for event in self.service.lease_deliveries(&Places::new(10)).await.unwrap() {
                all.extend(self.service.delivery(event).await.unwrap());
            }
            all
        }

        async fn jumps(&self) -> bool {
            self.service.metrics_text().await.unwrap().contains("parcelo_clock_jumps_total 1\n")
        }
    }

    fn order() -> Value {
        let mut order = sample::order();
        order.as_object_mut().unwrap().remove("trackingNumber");
        order
    }

    #[tokio::test]
    async fn a_clock_that_jumps_ahead_makes_no_second_parcel() {
        let (house, order) = (House::settled().await, order());
        let Some(Answer::Created(first)) = house.create(&order).await else { panic!() };
        house.set(25 * Millis::HOUR);
        let replayed = Some(Answer::Replayed(first));
        assert_eq!(house.create(&order).await, replayed, "before anyone has looked");
        assert!(!house.jumps().await);
        house.run(1).await;
        assert!(house.jumps().await);
        for _ in 0..19 {
            assert_eq!(house.create(&order).await, replayed);
            house.service.purge().await;
            house.run(30).await;
        }
        house.set(-25 * Millis::HOUR);
        house.run(3_600).await;
        house.service.purge().await;
        assert_eq!(house.create(&order).await, replayed, "set right, all is as before");
        house.run(24 * 3_600).await;
        let again = house.create(&order).await;
        assert!(
            matches!(again, Some(Answer::Created(_))),
            "a day is a day all the same: {again:?}"
        );
    }

    #[tokio::test]
    async fn nothing_is_purged_for_ten_minutes_after_a_jump() {
        let (house, order) = (House::settled().await, order());
        house.create(&order).await.unwrap();
        let kept = async || house.service.store().creations().await.unwrap().len();
        house.set(40 * Millis::DAY);
        house.service.purge().await;
        house.run(570).await;
        house.service.purge().await;
        assert_eq!(kept().await, 1);
        house.run(60).await;
        house.service.purge().await;
        assert_eq!(kept().await, 0, "a clock that was not corrected by then is meant");
    }

    #[tokio::test]
    async fn the_audit_log_goes_back_a_year() {
        let house = House::settled().await;
        house.listen().await;
        let kept = async || {
            house.service.purge().await;
            house.service.store().audit_log(None, Millis(0), 9).await.unwrap().len()
        };
        let written = kept().await;
        assert!(written > 0, "a webhook was set");
        house.run(364 * 86_400).await;
        assert_eq!(kept().await, written);
        house.run(2 * 86_400).await;
        assert_eq!(kept().await, 0);
    }

    #[tokio::test]
    async fn a_session_outlives_a_clock_that_jumps_ahead() {
        let house = House::settled().await;
        let store = house.service.store();
        let account = house.caller.tenant().account;
        let password = "correct horse battery";
        store
            .set_password(account, hash_password(password, [7; 16]).unwrap(), START, &BY)
            .await
            .unwrap();
        let client = [127, 0, 0, 1].into();
        let request = LoginRequest { client, account: "default", password, before: None };
        let LoginOutcome::SignedIn(token) = house.service.sign_in(request).await.unwrap() else {
            panic!()
        };
        house.set(13 * Millis::HOUR);
        assert!(house.service.session(&token).await.unwrap().is_some());
        house.run(60).await;
        house.service.purge().await;
        assert!(house.service.session(&token).await.unwrap().is_some());
        house.run(660).await;
        assert!(house.service.session(&token).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_webhook_put_off_by_a_clock_that_was_set_back_comes_after_its_own_pause() {
        let house = House::settled().await;
        let tenant = house.caller.tenant();
        house.listen().await;
        house.set(Millis::DAY);
        house.create(&order()).await.unwrap();
        assert_eq!(house.fail_due().await, 1);
        house.service.endpoints(Actor::Server).test(tenant, house.service.now()).await.unwrap();
        house.run(1).await;
        house.set(-Millis::DAY);
        assert_eq!(house.due().await.len(), 0, "no one has noticed yet");
        house.run(1).await;
        assert_eq!(house.due().await.len(), 1, "what was never tried is due at once");
        house.run(6).await;
        assert_eq!(house.due().await.len(), 1, "and the other after its five seconds");
        // Neither was settled: their leases of a minute were made by the clock that is right.
        house.run(61).await;
        assert_eq!(house.due().await.len(), 2);
    }

    #[tokio::test]
    async fn every_step_back_of_the_clock_leaves_a_webhook_its_own_pause() {
        let mut house = House::settled().await;
        house.listen().await;
        house.set(9 * Millis::DAY);
        house.create(&order()).await.unwrap();
        assert_eq!(house.fail_due().await, 1);
        house.run(6).await;
        assert_eq!(house.fail_due().await, 1);
        for _ in 0..3 {
            house.set(-Millis::DAY);
            house.run(1).await;
            assert_eq!(house.fail_due().await, 0, "it waits for its minute again");
            house.set(-Millis::DAY);
            house.restart().await;
            house.run(50).await;
            assert_eq!(house.fail_due().await, 0, "and again after a start");
        }
        house.restart().await;
        house.run(17).await;
        assert_eq!(house.fail_due().await, 1, "which begins again only with a step back");
    }

    #[tokio::test]
    async fn a_start_spends_no_attempt_when_the_clock_was_once_set_back() {
        let mut house = House::settled().await;
        house.listen().await;
        house.set(Millis::DAY);
        house.create(&order()).await.unwrap();
        assert_eq!(house.fail_due().await, 1);
        house.run(1).await;
        house.set(-Millis::DAY);
        house.run(1).await;
        house.run(6).await;
        assert_eq!(house.fail_due().await, 1);
        house.restart().await;
        house.run(50).await;
        assert_eq!(house.fail_due().await, 0);
        house.run(17).await;
        assert_eq!(house.fail_due().await, 1);
    }

    #[tokio::test]
    async fn a_lease_of_a_clock_that_was_set_back_ends_within_a_minute() {
        let house = House::settled().await;
        let tenant = house.caller.tenant();
        house.listen().await;
        house.set(Millis::DAY);
        house.service.endpoints(Actor::Server).test(tenant, house.service.now()).await.unwrap();
        house.run(1).await;
        assert_eq!(house.due().await.len(), 1);
        house.set(-Millis::DAY);
        house.run(1).await;
        assert_eq!(house.due().await.len(), 0);
        house.run(61).await;
        assert_eq!(house.due().await.len(), 1);
    }
}
