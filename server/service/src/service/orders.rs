//! POST /api/v1/orders/create (replay, country, rules, then one commit: docs/api.md, Order of checks) and POST
//! /api/v1/orders/void.

use parcelo_domain::{
    Changes, Countries, Millis, RecordKey, Refusal,
    create::{self, OrderCreation},
    void,
};
use parcelo_store::CommitOutcome;
use parcelo_types::{
    ErrorCode, Operation, OrderRequest,
    internal::{
        self, Fingerprint,
        json::{Body, Json},
    },
    model::{Warning, WarningCode},
    rules::{Accepted, OrderContext},
};

use super::{
    Caller, KeyedRequest, Service, WriteResponse,
    idempotency::{MAX_DECISIONS, ReplayCheck, replay_or_refuse},
    refusal_for_commit,
};

impl Service {
    /// Creates the order that a request's body describes. Takes no [`KeyedRequest`], because its response has no
    /// request id.
    pub async fn create_order<'a>(
        &self,
        caller: &Caller,
        body: impl Into<Body<'a>>,
        header_key: Option<&str>,
    ) -> Result<WriteResponse, Refusal> {
        let (body, now) = (body.into(), self.now());
        let operation = Operation::CreateOrder;
        let checked = self.check_replay(caller, operation, (&*body, header_key), "").await?;
        let (key, fingerprint) = match checked {
            ReplayCheck::Answered(answer) => return Ok(answer),
            ReplayCheck::New(key, fingerprint) => (key, fingerprint),
        };
        self.check_country(caller, &body)?;
        let accepted = self.check_order(caller, &body, header_key)?;
        // The rules accept no order without a valid key.
        let idempotency = (key.ok_or(ErrorCode::InternalError)?, fingerprint);
        self.commit_order(caller, accepted, idempotency, now).await
    }

    /// Returns the order of one of the caller's parcels, as it was accepted (docs/api.md, Read an order).
    pub async fn get_order(&self, caller: &Caller, number: &str) -> Result<OrderRequest, Refusal> {
        let (_, stored) = self.load_owned_parcel_with_order(caller.tenant(), number).await?;
        Ok(stored.order)
    }

    /// Voids the orders that a request names (docs/api.md, Void orders).
    pub async fn void_orders(
        &self,
        caller: &Caller,
        request: KeyedRequest<'_>,
    ) -> Result<WriteResponse, Refusal> {
        let operation = Operation::VoidOrders;
        let sent = (request.body, request.header_key);
        let (key, fingerprint) = match self.check_replay(caller, operation, sent, "").await? {
            ReplayCheck::Answered(answer) => return Ok(answer),
            ReplayCheck::New(key, fingerprint) => (key, fingerprint),
        };
        let void_request = internal::check_void(request.body, request.header_key)
            .map_err(|rejected| Refusal::invalid(&rejected.faults))?;
        // The rules accept no request without a valid key.
        let key = key.ok_or(ErrorCode::InternalError)?;
        for _ in 0..MAX_DECISIONS {
            let now = self.now();
            let found = self.load_parcels(caller.tenant(), &void_request.tracking_numbers).await?;
            let decision = void::void(&void_request, &found, request.request_id, now)?;
            let answer = self.write_decision(caller, (key, fingerprint), decision, now).await?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        Err(Refusal::unavailable())
    }

    /// Refuses a supported destination that the key may not ship to. It is called before the rules are checked, so that
    /// this refusal has priority over other faults of the order.
    fn check_country(&self, caller: &Caller, body: &Json<'_>) -> Result<(), Refusal> {
        let Countries::Only(allowed) = &caller.key.scope.countries else { return Ok(()) };
        match internal::destination(body) {
            Some(country)
                if self.settings.destinations.supports(country) && !allowed.contains(&country) =>
            {
                Err(Refusal::country_not_allowed(country, allowed))
            }
            _ => Ok(()),
        }
    }

    fn check_order(
        &self,
        caller: &Caller,
        body: &Json<'_>,
        header_key: Option<&str>,
    ) -> Result<Accepted<OrderRequest>, Refusal> {
        let mut context = OrderContext::new(&self.settings.destinations)
            .with_environment(caller.tenant().environment)
            .with_header_key(header_key);
        if parcelo_label::PRINTS_CHINESE {
            context = context.with_chinese_labels();
        }
        internal::check_order_json(body, &context)
            .map_err(|rejected| Refusal::invalid(&rejected.faults))
    }

    async fn commit_order(
        &self,
        caller: &Caller,
        accepted: Accepted<OrderRequest>,
        idempotency: (RecordKey, Fingerprint),
        now: Millis,
    ) -> Result<WriteResponse, Refusal> {
        let Accepted { value: order, mut warnings, .. } = accepted;
        warnings
            .extend(parcelo_label::truncated_fields(&order).into_iter().map(truncation_warning));
        let tenant = caller.tenant();
        let site = self.site(tenant.environment);
        let (secrets, numbers) = (self.secrets(), &self.numbers);
        let creation =
            OrderCreation { tenant, order, warnings, idempotency, site: &site, secrets, numbers };
        let changes = create::create(creation, self.ids.ulid(now), now);
        let changes = Changes { trace: caller.trace, ..changes };
        match self.store.commit_idempotent(changes).await {
            Ok(body) => Ok(WriteResponse::Created(body)),
            Err(CommitOutcome::IdempotencyTaken(record)) => {
                replay_or_refuse(record, &idempotency.1, now)
            }
            Err(CommitOutcome::Busy | CommitOutcome::Unknown) => {
                Err(Refusal::idempotency_in_progress())
            }
            Err(outcome) => Err(refusal_for_commit(&outcome)),
        }
    }
}

/// Returns the warning for a field whose text the label truncates, because the label has less room than the field
/// allows.
fn truncation_warning(field: String) -> Warning {
    let texts = (
        "The label has no room for the whole text and cuts it: shorten it, or another text on its line.",
        "El texto no cabe completo en la etiqueta y se corta: acórtelo, o acorte otro texto de su línea.",
    );
    Warning::new(WarningCode::TextCutOnLabel, field, texts)
}
