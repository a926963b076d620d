//! Going on until a parcel has got somewhere; and, when a test waits in vain, why nothing moved.

use std::fmt;

use parcelo::{Environment, ParcelStatus, TrackingNumber};

use super::ClockControl;
use crate::{
    clock::Millis,
    core::{ParcelRow, State, scenario::SCENARIOS},
    service::{Fired, Service},
    store::{Created, Store, StoreError},
};

/// How many parcels a hint names.
const NAMED: usize = 5;

/// Why a parcel did not come to a status by the clock alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReached {
    /// There is no such parcel.
    #[error("there is no parcel {0}")]
    NoParcel(TrackingNumber),
    /// Nothing more happens to it, however far the clock is moved.
    #[error("{number} is {status} and moves no further by itself: {why}")]
    Ended {
        /// The parcel.
        number: TrackingNumber,
        /// Its status.
        status: ParcelStatus,
        /// Why, and what else moves it.
        why: String,
    },
}

impl ClockControl<'_> {
    /// Moves the clock ahead, from step to step of a parcel's simulated journey, until the parcel is in a
    /// status; answers with what happened to parcels meanwhile, as [`ClockControl::advance`] does. If it is
    /// there, the clock stays.
    ///
    /// Errors: [`NotReached`], when the journey has no further step; its text says what else to do.
    ///
    /// ```
    /// # #[cfg(feature = "sdk")]
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
    /// # #[cfg(not(feature = "sdk"))]
    /// # fn main() {}
    /// ```
    ///
    /// # Panics
    ///
    /// Never: a store in memory does not fail.
    pub async fn advance_until(
        &self,
        number: &TrackingNumber,
        status: ParcelStatus,
    ) -> Result<Vec<Fired>, NotReached> {
        let mut fired = Vec::new();
        loop {
            #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
            let found = parcel(self.service().store(), number).expect("the store is there");
            let parcel = found.ok_or_else(|| NotReached::NoParcel(number.clone()))?;
            if ParcelStatus::from(parcel.state) == status {
                return Ok(fired);
            }
            let Some(step) = parcel.step else { return Err(ended(&parcel)) };
            fired.extend(self.reach(step.due).await);
        }
    }
}

fn parcel(store: &Store, number: &TrackingNumber) -> Result<Option<ParcelRow>, StoreError> {
    store.parcel(Environment::Sandbox, number)
}

fn ended(parcel: &ParcelRow) -> NotReached {
    let number = parcel.tracking_number.clone();
    let why = match journey(number.as_str()) {
        Some(prefix) => format!("the journey {prefix} is over; put_status moves it"),
        None => NO_JOURNEY.to_owned(),
    };
    NotReached::Ended { number, status: parcel.state.into(), why }
}

const NO_JOURNEY: &str = "its number chooses no simulated journey. Give the order one that begins with \
                          SB-SUCCESS-, SB-FAIL-, SB-CUSTOMS- or SB-RTS- (MockServer::order makes such an \
                          order), or move the parcel with put_status";

/// The prefix of the journey that a number chooses.
fn journey(number: &str) -> Option<&'static str> {
    let number = TrackingNumber::parse(number).ok()?;
    SCENARIOS.iter().map(|scenario| scenario.prefix).find(|prefix| number.starts_with(prefix))
}

/// Why what a test waits for may never come, in words; nothing when all parcels have arrived.
pub(super) fn hints(service: &Service) -> Vec<String> {
    // A hint that cannot be given is left out: the test has failed already.
    resting(service).map(|resting| resting.hints(service.now())).unwrap_or_default()
}

/// Parcels on their way that did not move.
#[derive(Default)]
struct Resting {
    without_journey: Vec<TrackingNumber>,
    /// With the time of their next step.
    ahead: Vec<(TrackingNumber, Millis)>,
}

fn resting(service: &Service) -> Result<Resting, StoreError> {
    let (store, mut resting) = (service.store(), Resting::default());
    for Created { number, .. } in store.creations()? {
        let Ok(number) = TrackingNumber::parse(&number) else { continue };
        let Some(parcel) = parcel(store, &number)? else { continue };
        match parcel.step {
            Some(step) => resting.ahead.push((number, step.due)),
            None if parcel.state == State::LabelGenerated => resting.without_journey.push(number),
            None => {}
        }
    }
    Ok(resting)
}

impl Resting {
    fn hints(&self, now: Millis) -> Vec<String> {
        let still = (!self.without_journey.is_empty()).then(|| {
            let numbers = several(&self.without_journey);
            format!("{numbers} will not move: {NO_JOURNEY}")
        });
        let ahead = (!self.ahead.is_empty()).then(|| {
            let steps: Vec<_> = self.ahead.iter().map(|(number, due)| at(number, *due)).collect();
            let (steps, now) = (several(&steps), now.to_utc().to_rfc3339());
            format!("the clock shows {now}: advance it. Next step of {steps}")
        });
        still.into_iter().chain(ahead).collect()
    }
}

fn at(number: &TrackingNumber, due: Millis) -> String {
    format!("{number} at {}", due.to_utc().to_rfc3339())
}

/// The first of them, with commas, and how many more there are.
fn several(all: &[impl fmt::Display]) -> String {
    let mut named: Vec<_> = all.iter().take(NAMED).map(ToString::to_string).collect();
    if all.len() > NAMED {
        named.push(format!("{} more", all.len() - NAMED));
    }
    named.join(", ")
}
