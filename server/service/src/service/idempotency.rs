//! Writes with an idempotency key: replays the first response, and decides again when another write came first
//! (docs/api.md, Idempotency).

use parcelo_domain::{
    Changes, Decision, IdempotencyRecord, Millis, RecordKey,
    idempotency::{self, ReplayDecision},
};
use parcelo_store::CommitOutcome;
use parcelo_types::{
    Operation,
    internal::{self, Fingerprint, KeyReading, fingerprint, json::Body},
};
use serde_json::Value;

use super::{Caller, Refusal, Service, WriteResponse, refusal_for_commit};

/// Maximum number of decisions for one request while other writes keep changing its parcels. After that the response
/// is 503, and the caller tries again later.
pub(super) const MAX_DECISIONS: u32 = 8;

/// A request that may have an idempotency key.
#[derive(Debug, Clone, Copy)]
pub struct KeyedRequest<'a> {
    /// The body.
    pub body: &'a Value,
    /// `X-Idempotency-Key`.
    pub header_key: Option<&'a str>,
    /// The request's id, for responses that include it.
    pub request_id: &'a str,
}

/// The result of looking up a request's idempotency key, before anything else is checked.
pub(super) enum ReplayCheck {
    /// The request was answered before; this is that response.
    Answered(WriteResponse),
    /// The request is new. It has a record key if its idempotency key is valid.
    New(Option<RecordKey>, Fingerprint),
}

impl Service {
    /// Looks up the idempotency key of a request. The rules check later that a required key is present and valid.
    pub(super) async fn check_replay<'a>(
        &self,
        caller: &Caller,
        operation: Operation,
        (body, header_key): (impl Into<Body<'a>>, Option<&str>),
        subject: &str,
    ) -> Result<ReplayCheck, Refusal> {
        let body = body.into();
        let fingerprint = fingerprint(&*body, subject);
        let KeyReading::Key(key) = internal::read_key(&*body, header_key) else {
            return Ok(ReplayCheck::New(None, fingerprint));
        };
        let key = RecordKey::new(caller.key.row, operation, &key);
        match idempotency::decide_replay(
            self.store.idempotency_record(&key).await?,
            &fingerprint,
            self.expiry_now(),
        ) {
            ReplayDecision::Fresh => Ok(ReplayCheck::New(Some(key), fingerprint)),
            ReplayDecision::Replay(record) => {
                Ok(ReplayCheck::Answered(WriteResponse::Replayed(record.body)))
            }
            ReplayDecision::Conflict(record) => Err(Refusal::idempotency_conflict(&record)),
        }
    }

    /// Commits a decision with its idempotency record. Returns `None` if another write changed one of the parcels: the
    /// caller must load and decide again.
    pub(super) async fn write_decision(
        &self,
        caller: &Caller,
        (key, fingerprint): (RecordKey, Fingerprint),
        decision: Decision,
        now: Millis,
    ) -> Result<Option<WriteResponse>, Refusal> {
        let Decision { body, expect, ops } = decision;
        let (tenant, trace) = (caller.tenant(), caller.trace);
        let record = IdempotencyRecord { key, tenant, fingerprint, first_seen: now, body };
        let changes = Changes { now, trace, idempotency_record: Some(record), expect, ops };
        match self.store.commit_idempotent(changes).await {
            Ok(body) => Ok(Some(WriteResponse::Done(body))),
            Err(CommitOutcome::VersionConflict) => Ok(None),
            Err(CommitOutcome::IdempotencyTaken(record)) => {
                replay_or_refuse(record, &fingerprint, now).map(Some)
            }
            Err(CommitOutcome::Busy | CommitOutcome::Unknown) => {
                Err(Refusal::idempotency_in_progress())
            }
            Err(outcome) => Err(refusal_for_commit(&outcome)),
        }
    }
}

/// Returns the response to a request whose key another request has just used. The record is still valid, otherwise the
/// store would have replaced it.
pub(super) fn replay_or_refuse(
    record: IdempotencyRecord,
    fingerprint: &Fingerprint,
    now: Millis,
) -> Result<WriteResponse, Refusal> {
    match idempotency::decide_replay(Some(record), fingerprint, now) {
        ReplayDecision::Replay(record) => Ok(WriteResponse::Replayed(record.body)),
        ReplayDecision::Conflict(record) => Err(Refusal::idempotency_conflict(&record)),
        ReplayDecision::Fresh => Err(Refusal::idempotency_in_progress()),
    }
}
