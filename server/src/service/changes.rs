//! Writes on parcels that exist: voiding orders, reprinting labels.

use parcelo::{
    ErrorCode, Operation, TrackingNumber,
    model::{Envelope, LabelMetadata, Meta},
    rules,
};

use super::{
    Answer, Caller, Keyed, Refusal, Service,
    idempotency::{Decision, MAX_TRIES, ReplayCheck, Written},
};
use crate::domain::{Op, ParcelRow, Tenant, labels, to_body, void};

impl Service {
    /// Voids the orders that a request names (docs/api.md, Void orders).
    pub async fn void_orders(
        &self,
        caller: &Caller,
        request: Keyed<'_>,
    ) -> Result<Answer, Refusal> {
        let operation = Operation::VoidOrders;
        let sent = (request.body, request.header_key);
        let (key, fingerprint) = match self.check_replay(caller, operation, sent, "").await? {
            ReplayCheck::Answered(answer) => return Ok(answer),
            ReplayCheck::New(key, fingerprint) => (key, fingerprint),
        };
        let asked = rules::check_void(request.body, request.header_key)
            .map_err(|rejected| Refusal::invalid(&rejected.faults))?;
        // The rules let no request pass without a sound key.
        let key = key.ok_or(ErrorCode::InternalError)?;
        for _ in 0..MAX_TRIES {
            let now = self.now();
            let found = self.parcels(caller.tenant(), &asked.tracking_numbers).await?;
            let void::Voiding { body, expect, ops } =
                void::void(&asked, &found, request.request_id, now)?;
            let decision = Decision { body, expect, ops };
            if let Written::Answered(answer) =
                self.write(caller, (key, fingerprint), decision, now).await?
            {
                return Ok(answer);
            }
        }
        Err(Refusal::unavailable())
    }

    /// Reprints a label (docs/api.md, Reprint a label).
    pub async fn reprint_label(
        &self,
        caller: &Caller,
        number: &str,
        request: Keyed<'_>,
    ) -> Result<Answer, Refusal> {
        let operation = Operation::ReprintLabel;
        let subject = number.to_ascii_uppercase();
        let sent = (request.body, request.header_key);
        let (key, fingerprint) = match self.check_replay(caller, operation, sent, &subject).await? {
            ReplayCheck::Answered(answer) => return Ok(answer),
            ReplayCheck::New(key, fingerprint) => (key, fingerprint),
        };
        rules::check_reprint(request.body, request.header_key)
            .map_err(|rejected| Refusal::invalid(&rejected.faults))?;
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        // The rules let no request pass without a sound key.
        let key = key.ok_or(ErrorCode::InternalError)?;
        for _ in 0..MAX_TRIES {
            let now = self.now();
            let parcel = self.parcel(caller.tenant(), &number).await?;
            let reprinted = labels::reprint(&parcel, now)?;
            let decision = Decision {
                body: in_envelope(self.metadata(&reprinted)?, request.request_id),
                expect: vec![(parcel.key, parcel.version)],
                ops: vec![Op::Reprint { parcel: parcel.key, at: now }],
            };
            if let Written::Answered(answer) =
                self.write(caller, (key, fingerprint), decision, now).await?
            {
                return Ok(answer);
            }
        }
        Err(Refusal::unavailable())
    }

    /// What is known about the label of one of the caller's parcels.
    pub async fn label_metadata(
        &self,
        caller: &Caller,
        number: &str,
    ) -> Result<LabelMetadata, Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        self.metadata(&self.parcel(caller.tenant(), &number).await?)
    }

    fn metadata(&self, parcel: &ParcelRow) -> Result<LabelMetadata, Refusal> {
        labels::metadata(parcel, &self.site(parcel.tenant.environment), self.secrets())
    }

    /// The tenant's parcels with these numbers, in their order, up to date, or why one is not there.
    pub(super) async fn parcels(
        &self,
        tenant: Tenant,
        numbers: &[String],
    ) -> Result<Vec<Result<ParcelRow, Refusal>>, Refusal> {
        let mut found = Vec::with_capacity(numbers.len());
        for number in numbers {
            found.push(of_item(self.find(tenant, number).await)?);
        }
        Ok(found)
    }

    async fn find(&self, tenant: Tenant, number: &str) -> Result<ParcelRow, Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        self.parcel(tenant, &number).await
    }
}

/// Tells what is wrong with one item of a list, which fails alone, from what ends the whole request: a row
/// that cannot be read is the former, a store that does not answer the latter.
pub(super) fn of_item<T>(answer: Result<T, Refusal>) -> Result<Result<T, Refusal>, Refusal> {
    let is_of_item = |code| matches!(code, ErrorCode::ParcelNotFound | ErrorCode::InternalError);
    match answer {
        Err(refusal) if !is_of_item(refusal.code) => Err(refusal),
        answer => Ok(answer),
    }
}

fn in_envelope(data: LabelMetadata, request_id: &str) -> Vec<u8> {
    to_body(&Envelope::new(data, Meta::new(parcelo::model::RequestId::unchecked(request_id))))
}
