//! POST /api/v1/orders/create: replay, country, rules, then one commit
//! (docs/api.md, Order of checks).

use parcelo::{
    Operation, OrderRequest,
    model::Fingerprint,
    rules,
    rules::{Accepted, OrderContext},
};
use serde_json::Value;

use super::{Answer, Caller, Keyed, Service, failed, idempotency::on_conflict};
use crate::{
    clock::Millis,
    domain::{Countries, RecordKey, Refusal, create, create::Creation},
    store::Commit,
};

/// How often a generated tracking number may turn out to be taken before the service gives up;
/// with 65 random bits once is already a sign that the randomness is broken.
const DRAWS: u32 = 3;

impl Service {
    /// Creates the order that a request's body describes.
    pub async fn create_order(
        &self,
        caller: &Caller,
        body: &Value,
        header_key: Option<&str>,
    ) -> Result<Answer, Refusal> {
        let now = self.now();
        let request = Keyed { body, header_key, request_id: "" };
        let (said, before) =
            self.check_replay(caller, Operation::CreateOrder, &request, "").await?;
        if let Some(answer) = before {
            return Ok(answer);
        }
        self.check_country(caller, body)?;
        let accepted = self.check_order(caller, body, header_key)?;
        self.commit_order(caller, accepted, said, now).await
    }

    /// A supported destination that the key may not use is refused whatever else is wrong.
    fn check_country(&self, caller: &Caller, body: &Value) -> Result<(), Refusal> {
        let Countries::Only(allowed) = &caller.key.scope.countries else { return Ok(()) };
        match rules::destination(body) {
            Some(country)
                if self.settings.destinations.supports(country)
                    && !caller.key.scope.countries.allow(country) =>
            {
                Err(Refusal::country(country, allowed))
            }
            _ => Ok(()),
        }
    }

    fn check_order(
        &self,
        caller: &Caller,
        body: &Value,
        header_key: Option<&str>,
    ) -> Result<Accepted<OrderRequest>, Refusal> {
        let context = OrderContext::new(&self.settings.destinations)
            .with_environment(caller.tenant().environment)
            .with_header_key(header_key);
        rules::check_order(body, &context).map_err(|rejected| Refusal::invalid(&rejected.faults))
    }

    async fn commit_order(
        &self,
        caller: &Caller,
        accepted: Accepted<OrderRequest>,
        said: Fingerprint,
        now: Millis,
    ) -> Result<Answer, Refusal> {
        let Accepted { value: order, warnings, .. } = accepted;
        let key = RecordKey::of(caller.key.row, Operation::CreateOrder, &order.idempotency_key);
        let is_given = order.tracking_number.is_some();
        let site = self.site(caller.tenant().environment);
        let mut left = DRAWS;
        loop {
            let creation = Creation {
                tenant: caller.tenant(),
                order: order.clone(),
                warnings: warnings.clone(),
                replay: (key, said),
                site: &site,
                secrets: self.secrets(),
            };
            let (body, changes) =
                create::create(creation, self.ids.ulid(now), &self.ids.tracking_tail(), now);
            left -= 1;
            match self.store.commit(changes).await {
                Commit::Committed => return Ok(Answer::Created(body)),
                Commit::IdempotencyTaken(record) => return on_conflict(record, &said, now),
                Commit::DuplicateTracking if !is_given && left > 0 => {}
                Commit::DuplicateTracking if !is_given => return Err(Refusal::unavailable()),
                Commit::Busy => return Err(Refusal::in_progress()),
                outcome => return Err(failed(&outcome)),
            }
        }
    }
}
