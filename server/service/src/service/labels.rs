//! Labels of existing parcels: their metadata, and reprinting them.

use parcelo_domain::{Decision, ParcelRow, StoreOp, labels, to_enveloped_body};
use parcelo_types::{ErrorCode, Operation, TrackingNumber, internal, model::LabelMetadata};

use super::{
    Caller, KeyedRequest, Refusal, Service, WriteResponse,
    idempotency::{MAX_DECISIONS, ReplayCheck},
};

impl Service {
    /// Reprints a label (docs/api.md, Reprint a label).
    pub async fn reprint_label(
        &self,
        caller: &Caller,
        number: &str,
        request: KeyedRequest<'_>,
    ) -> Result<WriteResponse, Refusal> {
        let operation = Operation::ReprintLabel;
        let subject = number.to_ascii_uppercase();
        let sent = (request.body, request.header_key);
        let (key, fingerprint) = match self.check_replay(caller, operation, sent, &subject).await? {
            ReplayCheck::Answered(answer) => return Ok(answer),
            ReplayCheck::New(key, fingerprint) => (key, fingerprint),
        };
        internal::check_reprint(request.body, request.header_key)
            .map_err(|rejected| Refusal::invalid(&rejected.faults))?;
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        // The rules accept no request without a valid key.
        let key = key.ok_or(ErrorCode::InternalError)?;
        for _ in 0..MAX_DECISIONS {
            let now = self.now();
            let parcel = self.load_parcel(caller.tenant(), &number).await?;
            let reprinted = labels::reprint(&parcel, now)?;
            let decision = Decision {
                body: to_enveloped_body(self.metadata(&reprinted)?, request.request_id),
                expect: vec![(parcel.key, parcel.version)],
                ops: vec![StoreOp::Reprint { parcel: parcel.key, at: now }],
            };
            let answer = self.write_decision(caller, (key, fingerprint), decision, now).await?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        Err(Refusal::unavailable())
    }

    /// Returns the metadata of the label of one of the caller's parcels.
    pub async fn label_metadata(
        &self,
        caller: &Caller,
        number: &str,
    ) -> Result<LabelMetadata, Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        self.metadata(&self.load_parcel(caller.tenant(), &number).await?)
    }

    fn metadata(&self, parcel: &ParcelRow) -> Result<LabelMetadata, Refusal> {
        labels::label_metadata(parcel, &self.site(parcel.tenant.environment), self.secrets())
    }
}
