//! Setting a parcel's status through the service's own operations: a carrier's scans, a void or a manifest. So the
//! history, the webhooks and the manifest that belong to the status exist too.

use std::sync::Arc;

use parcelo_domain::{ApiKeyRecord, Cause, ParcelRow, Refusal, State, ids::public_id};
use parcelo_types::{ErrorCode, Language, ParcelStatus, TrackingNumber};
use parcelo_wire::{CarrierOutcome, CarrierResult};
use serde_json::{Value, json};

use super::{MockServer, expect_stored};
use crate::service::{Caller, Carrier, KeyedRequest};

/// A reason why a parcel's status could not be set. The parcel may have changed part of the way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetStatusError {
    /// There is no such parcel.
    #[error("there is no parcel {0}")]
    ParcelNotFound(TrackingNumber),
    /// No transitions lead to the status: the parcel's journey is over, or past it.
    #[error("{number} is {from}, from which no transitions lead to {to} (docs/api.md, Statuses)")]
    Unreachable {
        /// The parcel.
        number: TrackingNumber,
        /// Its status.
        from: ParcelStatus,
        /// The requested status.
        to: ParcelStatus,
    },
    /// The service refused one of the transitions.
    #[error("{number} could not become {to}: {why}")]
    Refused {
        /// The parcel.
        number: TrackingNumber,
        /// The status of that transition.
        to: ParcelStatus,
        /// The service's message.
        why: String,
    },
}

impl MockServer {
    /// Changes a parcel's status to this one at the clock's current time, by the shortest path that the state machine
    /// allows. Returns the statuses on that path; none if the parcel had the status already. A simulated journey
    /// continues afterwards if the state machine allows it.
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
    /// assert!(refused.to_string().contains("is DELIVERED, from which no transitions lead to IN_TRANSIT"));
    /// # Ok(())
    /// # }
    /// ```
    pub async fn put_status(
        &self,
        number: &TrackingNumber,
        status: ParcelStatus,
    ) -> Result<Vec<ParcelStatus>, SetStatusError> {
        let _due_work = self.clock.lock_due_work().await;
        self.clock().execute_due().await;
        let found = self.service.store().parcel(self.environment, number).await;
        let parcel = expect_stored(found);
        let parcel = parcel.ok_or_else(|| SetStatusError::ParcelNotFound(number.clone()))?;
        let path =
            State::from_status(&status).and_then(|state| parcel.state.shortest_path_to(state));
        let unreachable = || SetStatusError::Unreachable {
            number: number.clone(),
            from: parcel.state.into(),
            to: status.clone(),
        };
        let path = path.ok_or_else(unreachable)?;
        for state in &path {
            let result = self.move_to(&parcel, *state).await;
            result.map_err(|why| SetStatusError::Refused {
                number: number.clone(),
                to: (*state).into(),
                why,
            })?;
        }
        Ok(path.into_iter().map(Into::into).collect())
    }

    async fn move_to(&self, parcel: &ParcelRow, state: State) -> Result<(), String> {
        let result = match state.cause() {
            Cause::Void => self.void(parcel).await,
            Cause::Manifest => self.submit(parcel).await,
            Cause::Carrier | Cause::Create => return self.scan(parcel, state).await,
        };
        result.map_err(|refusal| refusal.text(Language::En))
    }

    async fn scan(&self, parcel: &ParcelRow, state: State) -> Result<(), String> {
        let (_, key) = self.issue_carrier_key("Mock server".to_owned());
        let carrier = Carrier { key: Arc::new(key), trace: None };
        let now = self.service.now();
        let body = json!({ "events": [{
            "eventId": public_id("put", self.ids.ulid(now)),
            "trackingNumber": parcel.tracking_number,
            "status": ParcelStatus::from(state).code(),
            "occurredAt": parcelo_types::internal::time::to_text(now.to_utc()),
            "location": parcel.destination,
        }] });
        let result = self.service.push_carrier_events(&carrier, &body).await;
        let response = result.map_err(|refusal| refusal.text(Language::En))?;
        match response.results.into_iter().next() {
            Some(CarrierResult { outcome: CarrierOutcome::Applied, .. }) => Ok(()),
            Some(CarrierResult { error: Some(error), .. }) => Err(error.message),
            // A late event is only recorded in the history.
            Some(_) | None => Err("the clock is before the parcel's last event".to_owned()),
        }
    }

    async fn void(&self, parcel: &ParcelRow) -> Result<(), Refusal> {
        let caller = self.caller_of(parcel).await?;
        let body = json!({ "idempotencyKey": self.new_idempotency_key(),
            "trackingNumbers": [parcel.tracking_number] });
        self.service.void_orders(&caller, keyed_request(&body)).await.map(drop)
    }

    async fn submit(&self, parcel: &ParcelRow) -> Result<(), Refusal> {
        let caller = self.caller_of(parcel).await?;
        let body = json!({ "idempotencyKey": self.new_idempotency_key(), "awbNumber": self.new_awb(),
            "trackingNumbers": [parcel.tracking_number] });
        self.service.submit_manifest(&caller, keyed_request(&body)).await.map(drop)
    }

    /// Returns a caller of the parcel's account.
    async fn caller_of(&self, parcel: &ParcelRow) -> Result<Caller, Refusal> {
        let keys: Vec<ApiKeyRecord> = self.service.store().credentials().await?;
        let key = keys.into_iter().find(|key| key.scope.tenant == parcel.tenant);
        Ok(Caller { key: Arc::new(key.ok_or(ErrorCode::ParcelNotFound)?), trace: None })
    }

    fn new_idempotency_key(&self) -> String {
        public_id("put", self.ids.ulid(self.service.now()))
    }

    /// Returns an air waybill with a valid check digit: the serial modulo 7.
    fn new_awb(&self) -> String {
        let serial = u32::from_be_bytes(self.ids.array()) % 10_000_000;
        format!("999-{serial:07}{}", serial % 7)
    }
}

fn keyed_request(body: &Value) -> KeyedRequest<'_> {
    KeyedRequest { body, header_key: None, request_id: "req_mock" }
}
