//! Putting a parcel into a status: by the same doors as anybody, a carrier's scans, a void, a
//! manifest, so that whatever a status brings along is there too.

use std::sync::Arc;

use parcelo::{
    ErrorCode, Language, ParcelStatus, TrackingNumber,
    admin::{CarrierOutcome, CarrierResult},
};
use serde_json::{Value, json};

use super::MockServer;
use crate::{
    domain::{Cause, KeyRecord, ParcelRow, Refusal, State},
    ids::named,
    service::{Caller, Carrier, Keyed},
};

/// Why a parcel was not put into a status. It may have come part of the way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotPut {
    /// There is no such parcel.
    #[error("there is no parcel {0}")]
    NoParcel(TrackingNumber),
    /// No way leads there: the parcel's journey is over, or has gone past it.
    #[error("{number} is {from}: no way leads from there to {to} (docs/api.md, State machine)")]
    Unreachable {
        /// The parcel.
        number: TrackingNumber,
        /// Its status.
        from: ParcelStatus,
        /// The status that was asked for.
        to: ParcelStatus,
    },
    /// The service refused a step of the way.
    #[error("{number} could not become {to}: {why}")]
    Refused {
        /// The parcel.
        number: TrackingNumber,
        /// The step.
        to: ParcelStatus,
        /// What the service said.
        why: String,
    },
}

impl MockServer {
    /// Brings a parcel into a status the shortest way that the state machine allows, at the present
    /// moment of the clock, and answers with the statuses on it; none when the parcel was there.
    /// A simulated journey goes on afterwards where the state machine lets it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo::ParcelStatus::{Delivered, InTransit};
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let number = server.seed_parcels(1).await.remove(0);
    /// assert_eq!(server.put_status(&number, Delivered).await?, [InTransit, Delivered]);
    /// let refused = server.put_status(&number, InTransit).await.unwrap_err();
    /// assert!(refused.to_string().contains("is DELIVERED: no way leads from there to IN_TRANSIT"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn put_status(
        &self,
        number: &TrackingNumber,
        status: ParcelStatus,
    ) -> Result<Vec<ParcelStatus>, NotPut> {
        let _turn = self.clock.turn().await;
        self.clock().do_what_is_due().await;
        let parcel = self.parcel(number).await.ok_or_else(|| NotPut::NoParcel(number.clone()))?;
        let way = State::from_status(&status).and_then(|state| parcel.state.way_to(state));
        let unreachable = || NotPut::Unreachable {
            number: number.clone(),
            from: parcel.state.into(),
            to: status.clone(),
        };
        let way = way.ok_or_else(unreachable)?;
        for state in &way {
            let put = self.put(&parcel, *state).await;
            put.map_err(|why| NotPut::Refused {
                number: number.clone(),
                to: (*state).into(),
                why,
            })?;
        }
        Ok(way.into_iter().map(Into::into).collect())
    }

    async fn parcel(&self, number: &TrackingNumber) -> Option<ParcelRow> {
        let found = self.service.store().parcel(parcelo::Environment::Sandbox, number).await;
        #[expect(clippy::expect_used, reason = "a store in memory does not fail")]
        found.expect("the store is there")
    }

    async fn put(&self, parcel: &ParcelRow, state: State) -> Result<(), String> {
        let put = match state.cause() {
            Cause::Void => self.void(parcel).await,
            Cause::Manifest => self.submit(parcel).await,
            Cause::Carrier | Cause::Create => return self.scan(parcel, state).await,
        };
        put.map_err(|refusal| refusal.text(Language::En))
    }

    async fn scan(&self, parcel: &ParcelRow, state: State) -> Result<(), String> {
        let (_, key) = self.carrier_named("Mock server".to_owned());
        let carrier = Carrier { key: Arc::new(key) };
        let now = self.service.now();
        let body = json!({ "events": [{
            "eventId": named("put", self.ids.ulid(now)),
            "trackingNumber": parcel.tracking_number,
            "status": ParcelStatus::from(state).code(),
            "occurredAt": parcelo::model::time::to_text(now.to_utc()),
            "location": parcel.destination,
        }] });
        let told = self.service.push_carrier_events(&carrier, &body).await;
        let told = told.map_err(|refusal| refusal.text(Language::En))?;
        match told.results.into_iter().next() {
            Some(CarrierResult { outcome: CarrierOutcome::Applied, .. }) => Ok(()),
            Some(CarrierResult { error: Some(error), .. }) => Err(error.message),
            // Recorded, because it is late.
            Some(_) | None => Err("the clock stands before the parcel's last event".to_owned()),
        }
    }

    async fn void(&self, parcel: &ParcelRow) -> Result<(), Refusal> {
        let caller = self.owner(parcel).await?;
        let body = json!({ "idempotencyKey": self.fresh_key(),
            "trackingNumbers": [parcel.tracking_number] });
        self.service.void_orders(&caller, keyed(&body)).await.map(drop)
    }

    async fn submit(&self, parcel: &ParcelRow) -> Result<(), Refusal> {
        let caller = self.owner(parcel).await?;
        let body = json!({ "idempotencyKey": self.fresh_key(), "awbNumber": self.fresh_awb(),
            "trackingNumbers": [parcel.tracking_number] });
        self.service.submit_manifest(&caller, keyed(&body)).await.map(drop)
    }

    /// Somebody of the account whose parcel it is.
    async fn owner(&self, parcel: &ParcelRow) -> Result<Caller, Refusal> {
        let keys: Vec<KeyRecord> = self.service.store().credentials().await?;
        let key = keys.into_iter().find(|key| key.scope.tenant == parcel.tenant);
        Ok(Caller { key: Arc::new(key.ok_or(ErrorCode::ParcelNotFound)?) })
    }

    fn fresh_key(&self) -> String {
        named("put", self.ids.ulid(self.service.now()))
    }

    /// An air waybill whose last digit is right.
    fn fresh_awb(&self) -> String {
        let serial = u32::from_be_bytes(self.ids.array()) % 10_000_000;
        format!("999-{serial:07}{}", serial % 7)
    }
}

fn keyed(body: &Value) -> Keyed<'_> {
    Keyed { body, header_key: None, request_id: "req_mock" }
}
