//! Manifests: submitting one (POST /api/v1/manifests/submit) and reading one.

use parcelo_domain::{
    Changes, IdempotencyRecord, RecordKey,
    manifest::{self, ManifestSubmission, SubmissionOutcome},
    to_enveloped_body,
};
use parcelo_store::CommitOutcome;
use parcelo_types::{
    ErrorCode, ManifestRequest, Operation,
    internal::{self, Fingerprint},
    model::Manifest,
};
use ulid::Ulid;

use super::{
    Caller, KeyedRequest, Refusal, Service, WriteResponse,
    idempotency::{MAX_DECISIONS, ReplayCheck, replay_or_refuse},
    refusal_for_commit,
};

/// A request that has passed the rules, with the record key of its idempotency key if it has one.
struct CheckedRequest<'a> {
    request: ManifestRequest,
    key: Option<RecordKey>,
    fingerprint: Fingerprint,
    request_id: &'a str,
}

impl Service {
    /// Submits the manifest that a request describes, with all of its parcels or none.
    pub async fn submit_manifest(
        &self,
        caller: &Caller,
        request: KeyedRequest<'_>,
    ) -> Result<WriteResponse, Refusal> {
        let operation = Operation::SubmitManifest;
        let sent = (request.body, request.header_key);
        let (key, fingerprint) = match self.check_replay(caller, operation, sent, "").await? {
            ReplayCheck::Answered(answer) => return Ok(answer),
            ReplayCheck::New(key, fingerprint) => (key, fingerprint),
        };
        let checked = internal::check_manifest(request.body, request.header_key)
            .map_err(|rejected| Refusal::invalid(&rejected.faults))?;
        let request_id = request.request_id;
        let checked = CheckedRequest { request: checked, key, fingerprint, request_id };
        for _ in 0..MAX_DECISIONS {
            if let Some(answer) = self.try_submit(caller, &checked).await? {
                return Ok(answer);
            }
        }
        Err(Refusal::unavailable())
    }

    /// Returns one of the caller's manifests by its id `man_…`.
    pub async fn get_manifest(&self, caller: &Caller, id: &str) -> Result<Manifest, Refusal> {
        let id = id.strip_prefix("man_").and_then(|id| Ulid::from_string(id).ok());
        let id = id.ok_or(ErrorCode::ManifestNotFound)?;
        let found = self.store.manifest(caller.tenant(), id).await?;
        found.ok_or_else(|| ErrorCode::ManifestNotFound.into())
    }

    /// Makes one attempt to load, decide and commit. Returns `None` if another write came first.
    async fn try_submit(
        &self,
        caller: &Caller,
        checked: &CheckedRequest<'_>,
    ) -> Result<Option<WriteResponse>, Refusal> {
        let (tenant, request, now) = (caller.tenant(), &checked.request, self.now());
        self.take_due_steps_for(tenant, now).await?;
        let loaded = self
            .store
            .manifest_inputs(tenant, &request.awb_number, &request.tracking_numbers)
            .await?;
        let found = loaded.found.into_iter();
        let found: Vec<_> = found
            .map(|candidate| candidate?.ok_or_else(|| ErrorCode::ParcelNotFound.into()))
            .collect();
        let submission = ManifestSubmission { tenant, request, known: loaded.known, found: &found };
        let (answer, body, expect, ops) =
            match manifest::submit(submission, self.ids.ulid(now), now)? {
                SubmissionOutcome::AlreadySubmitted(manifest) => {
                    let body = to_enveloped_body(manifest, checked.request_id);
                    (WriteResponse::Done(body.clone()), body, Vec::new(), Vec::new())
                }
                SubmissionOutcome::New { manifest, expect, ops } => {
                    let body = to_enveloped_body(manifest, checked.request_id);
                    (WriteResponse::Created(body.clone()), body, expect, ops)
                }
            };
        let idempotency_record = checked.key.map(|key| IdempotencyRecord {
            key,
            tenant,
            fingerprint: checked.fingerprint,
            first_seen: now,
            body,
        });
        if ops.is_empty() && idempotency_record.is_none() {
            return Ok(Some(answer));
        }
        let changes = Changes { now, trace: caller.trace, idempotency_record, expect, ops };
        match self.store.commit(changes).await {
            CommitOutcome::Committed => Ok(Some(answer)),
            CommitOutcome::VersionConflict | CommitOutcome::DuplicateAwb => Ok(None),
            CommitOutcome::IdempotencyTaken(record) => {
                replay_or_refuse(record, &checked.fingerprint, now).map(Some)
            }
            CommitOutcome::Busy | CommitOutcome::Unknown if checked.key.is_some() => {
                Err(Refusal::idempotency_in_progress())
            }
            // The air waybill makes it safe to send the request again.
            CommitOutcome::Unknown => Err(Refusal::unavailable()),
            outcome => Err(refusal_for_commit(&outcome)),
        }
    }
}
