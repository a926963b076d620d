//! Moves the clock until a parcel has a status, and explains to a test that timed out why an event did not arrive.

use std::fmt;

use parcelo_domain::{Millis, ParcelRow, State, Tenant, scenario::SCENARIOS, webhooks::DisabledBy};
use parcelo_store::{CreationRecord, StoreError};
use parcelo_types::{Environment, ParcelStatus, TrackingNumber};

use super::{ClockControl, expect_stored, sync::block_on};
use crate::service::{Fired, Service};

/// Maximum number of parcels that a hint names: the message of a failed test should fit a screen.
const MAX_NAMED_PARCELS: usize = 5;
/// The calls that change a status, in Rust and over HTTP.
const CHANGE_STATUS: &str = "put_status, or over HTTP POST /__mock/parcels/{number}/status";

/// A reason why moving the clock cannot bring a parcel to a status.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdvanceError {
    /// There is no such parcel.
    #[error("there is no parcel {0}")]
    ParcelNotFound(TrackingNumber),
    /// The parcel has no further simulated step, however far the clock is moved.
    #[error("{number} is {status} and moves no further by itself: {why}")]
    NoFurtherStep {
        /// The parcel.
        number: TrackingNumber,
        /// Its status.
        status: ParcelStatus,
        /// The reason, and what to do instead.
        why: String,
    },
}

impl ClockControl<'_> {
    /// Moves the clock ahead, from step to step of a parcel's simulated journey, until the parcel has this status.
    /// Returns the steps of all parcels meanwhile, like [`ClockControl::advance`]. If the parcel has the status
    /// already, the clock does not move.
    ///
    /// Errors: [`AdvanceError`] if the journey has no further step; the message says what to do instead.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::ParcelStatus;
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// let created = client.orders().create(&MockServer::order("SB-CUSTOMS-0001")).await?;
    /// let number = &created.parcel.tracking_number;
    /// server.clock().advance_until(number, ParcelStatus::CustomsHold).await?; // 10 minutes later
    /// let error = server.clock().advance_until(number, ParcelStatus::Delivered).await.unwrap_err();
    /// assert!(error.to_string().contains("the journey SB-CUSTOMS- is over"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Never: a store in memory does not fail.
    pub async fn advance_until(
        &self,
        number: &TrackingNumber,
        status: ParcelStatus,
    ) -> Result<Vec<Fired>, AdvanceError> {
        let mut fired = Vec::new();
        loop {
            let store = self.0.service.store();
            let found = expect_stored(store.parcel(self.0.environment, number).await);
            let parcel = found.ok_or_else(|| AdvanceError::ParcelNotFound(number.clone()))?;
            if ParcelStatus::from(parcel.state) == status {
                return Ok(fired);
            }
            let Some(step) = parcel.step else { return Err(no_further_step_error(&parcel)) };
            fired.extend(self.advance_to(step.due).await);
        }
    }
}

fn no_further_step_error(parcel: &ParcelRow) -> AdvanceError {
    let number = parcel.tracking_number.clone();
    let environment = parcel.tenant.environment;
    let prefix = journey_prefix(number.as_str()).filter(|_| environment == Environment::Sandbox);
    let why = match prefix {
        Some(prefix) => {
            format!("the journey {prefix} is over; change the status with {CHANGE_STATUS}")
        }
        None => no_journey(environment),
    };
    AdvanceError::NoFurtherStep { number, status: parcel.state.into(), why }
}

/// Returns the reason why a parcel without a journey does not move, and what to do instead.
fn no_journey(environment: Environment) -> String {
    match environment {
        Environment::Sandbox => format!(
            "its tracking number has no prefix of a simulated journey. Use one that starts with \
             SB-SUCCESS-, SB-FAIL-, SB-CUSTOMS- or SB-RTS- (MockServer::order, or over HTTP GET \
             /__mock/orders/SB-SUCCESS-0001, returns such an order), or change the status with {CHANGE_STATUS}"
        ),
        Environment::Production => {
            format!("production has no simulated journeys. Change the status with {CHANGE_STATUS}")
        }
    }
}

/// Returns the prefix of the journey that a tracking number selects.
fn journey_prefix(number: &str) -> Option<&'static str> {
    let number = TrackingNumber::parse(number).ok()?;
    SCENARIOS.iter().map(|scenario| scenario.prefix).find(|prefix| number.starts_with(prefix))
}

/// Returns explanations why an event that a test waits for may never arrive; none if no parcel is stalled.
pub(super) fn hints(service: &Service) -> Vec<String> {
    // An error here only drops the hints: the test has failed already.
    block_on(find_stalled_parcels(service))
        .map(|stalled| stalled.hints(service.now()))
        .unwrap_or_default()
}

/// The parcels that do not move: some have no journey, the others wait for the clock. Those of a tenant whose webhook
/// is disabled are not among them, since their events would not be sent either.
#[derive(Default)]
struct StalledParcels {
    /// The addresses of disabled webhooks, and why they are.
    disabled: Vec<(Tenant, String, DisabledBy)>,
    without_journey: Vec<TrackingNumber>,
    /// The reason why these do not move; a server has one environment.
    why: String,
    /// The parcels that have a next step, with its time.
    waiting: Vec<(TrackingNumber, Millis)>,
}

async fn find_stalled_parcels(service: &Service) -> Result<StalledParcels, StoreError> {
    let (store, mut stalled) = (service.store(), StalledParcels::default());
    let mut tenants = Vec::new();
    for CreationRecord { tenant, number, .. } in store.creations().await? {
        if !tenants.contains(&tenant) {
            tenants.push(tenant);
            if let Some(endpoint) = store.endpoint(tenant).await?
                && let Some(why) = endpoint.disabled
            {
                stalled.disabled.push((tenant, endpoint.url, why));
            }
        }
        if stalled.disabled.iter().any(|(owner, ..)| *owner == tenant) {
            continue;
        }
        let Ok(number) = TrackingNumber::parse(&number) else { continue };
        let Some(parcel) = store.parcel(tenant.environment, &number).await? else { continue };
        stalled.why = no_journey(tenant.environment);
        match parcel.step {
            Some(step) => stalled.waiting.push((number, step.due)),
            None if parcel.state == State::LabelGenerated => stalled.without_journey.push(number),
            None => {}
        }
    }
    Ok(stalled)
}

impl StalledParcels {
    fn hints(&self, now: Millis) -> Vec<String> {
        let disabled = self.disabled.iter().map(|(_, url, why)| describe_disabled(url, *why));
        let without_journey = (!self.without_journey.is_empty()).then(|| {
            let numbers = list_first(&self.without_journey);
            format!("{numbers} will not move: {}", self.why)
        });
        let waiting = (!self.waiting.is_empty()).then(|| {
            let steps: Vec<_> =
                self.waiting.iter().map(|(number, due)| describe_step(number, *due)).collect();
            let (steps, now) = (list_first(&steps), now.to_utc().to_rfc3339());
            format!("the clock shows {now}: advance it. Next steps: {steps}")
        });
        disabled.chain(without_journey).chain(waiting).collect()
    }
}

fn describe_disabled(url: &str, why: DisabledBy) -> String {
    let why = match why {
        DisabledBy::Operator => "it was turned off",
        DisabledBy::Gone => "it responded with 410",
        DisabledBy::Failures => "an event used up its attempts",
        DisabledBy::Unreadable => "its settings cannot be read",
    };
    format!(
        "the webhook to {url} is disabled, because {why}: no event is sent. Choose the receiver again, with \
         webhook_inbox or POST /__mock/webhooks; it gets the events from then on"
    )
}

fn describe_step(number: &TrackingNumber, due: Millis) -> String {
    format!("{number} at {}", due.to_utc().to_rfc3339())
}

/// Returns the first few items, separated by commas, and the number of the others.
fn list_first(all: &[impl fmt::Display]) -> String {
    let mut names: Vec<_> = all.iter().take(MAX_NAMED_PARCELS).map(ToString::to_string).collect();
    if all.len() > MAX_NAMED_PARCELS {
        names.push(format!("{} more", all.len() - MAX_NAMED_PARCELS));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::*;
    use crate::{mock::MockServer, service::Caller};

    async fn with_parcels(numbers: &[&str]) -> MockServer {
        let server = MockServer::start().await;
        let caller = Caller { key: Arc::new(server.key().issue_with_record().1), trace: None };
        for number in numbers {
            let order = serde_json::to_value(MockServer::order(number)).unwrap();
            server.service.create_order(&caller, &order, None).await.unwrap();
        }
        server
    }

    fn number(text: &str) -> TrackingNumber {
        TrackingNumber::parse(text).unwrap()
    }

    #[tokio::test]
    async fn every_journey_can_be_advanced_to_its_end() {
        use ParcelStatus::{Delivered, DeliveryFailed, InTransit, ReturnToSender};
        for (text, end, minutes) in [
            ("SB-SUCCESS-0001", Delivered, 20),
            ("sb-fail-0001", DeliveryFailed, 15),
            ("SB-CUSTOMS-0001", InTransit, 75),
            ("SB-RTS-0001", ReturnToSender, 15),
        ] {
            let server = with_parcels(&[text]).await;
            let (began, number) = (server.clock().now(), number(text));
            let fired = server.clock().advance_until(&number, end.clone()).await.unwrap();
            assert_eq!((server.clock().now() - began).num_minutes(), minutes, "{text}");
            assert_eq!(fired.last().map(|one| one.status.clone()), Some(end.clone()));
            assert_eq!(server.clock().advance_until(&number, end).await.unwrap(), []);
            let never =
                server.clock().advance_until(&number, ParcelStatus::Voided).await.unwrap_err();
            assert!(
                never.to_string().contains(" is over; change the status with put_status"),
                "{never}"
            );
        }
    }

    #[tokio::test]
    async fn a_number_without_a_journey_gets_a_hint() {
        let server = with_parcels(&["SB-NORMAL-0001"]).await;
        let status = ParcelStatus::Delivered;
        let error = server
            .clock()
            .advance_until(&number("SB-NORMAL-0001"), status.clone())
            .await
            .unwrap_err();
        assert!(
            error.to_string().starts_with("SB-NORMAL-0001 is LABEL_GENERATED and moves no further")
        );
        assert!(error.to_string().contains("SB-SUCCESS-"), "{error}");
        let missing =
            server.clock().advance_until(&number("SB-ABSENT-0001"), status).await.unwrap_err();
        assert_eq!(missing, AdvanceError::ParcelNotFound(number("SB-ABSENT-0001")));
        let text = hints(&server.service).join("; ");
        assert!(
            text.starts_with("SB-NORMAL-0001 will not move: its tracking number has no prefix"),
            "{text}"
        );
    }

    #[tokio::test]
    async fn a_clock_that_does_not_move_gets_a_hint() {
        let server = with_parcels(&["SB-SUCCESS-0001"]).await;
        let ahead = "the clock shows 2026-01-05T08:00:00+00:00: advance it. Next steps: \
                     SB-SUCCESS-0001 at 2026-01-05T08:05:00+00:00";
        assert_eq!(hints(&server.service), [ahead]);
        let arrived = number("SB-SUCCESS-0001");
        server.clock().advance_until(&arrived, ParcelStatus::Delivered).await.unwrap();
        assert!(hints(&server.service).is_empty());
    }

    #[tokio::test]
    async fn a_hint_names_at_most_five_parcels() {
        let server = MockServer::start().await;
        server.seed_parcels(7).await;
        let text = hints(&server.service).join("; ");
        assert!(text.contains(", 2 more will not move"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_inbox_timeout_explains_itself() {
        let server = with_parcels(&["SB-NORMAL-0001"]).await;
        let inbox = server.webhook_inbox().wait_at_most(Duration::ZERO).start().await;
        let error = inbox
            .wait_for(|change| change.new_status == ParcelStatus::Delivered)
            .await
            .unwrap_err();
        assert!(error.to_string().contains("\n- SB-NORMAL-0001 will not move"), "{error}");
        assert!(error.to_string().contains("arrived within 0ns of real time"), "{error}");
        assert!(error.events.is_empty());
    }
}
