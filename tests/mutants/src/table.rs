//! The deliberate faults: each breaks one promise of the service, as a hurried change could.
//!
//! `find` occurs in its file exactly once. Where a part of it stands in `«»`, that part is replaced, and the rest says
//! only where it is. The original expression becomes `if the mutant is chosen { broken } else { the original }`;
//! a `broken` that has the word `MUTANT` in it is the whole replacement, and `MUTANT` is true when the mutant is chosen.

/// A deliberate fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// What no longer holds.
    pub(crate) promise: &'static str,
    pub(crate) edits: &'static [Edit],
}

/// A change to one place of the sources.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    pub(crate) find: &'static str,
    pub(crate) broken: &'static str,
}

const fn mutant(name: &'static str, promise: &'static str, edits: &'static [Edit]) -> Mutant {
    Mutant { name, promise, edits }
}

const fn edit(file: &'static str, find: &'static str, broken: &'static str) -> Edit {
    Edit { file, find, broken }
}

const ONCE: &str = "an order is made once for a key";
const SAME_ANSWER: &str = "a key's answer is the same, byte for byte";
const KEPT: &str = "what was answered is there";
const LEGAL: &str = "a history follows the table";
const ARRIVES: &str = "an event arrives, or is given up by the schedule";
const IN_ORDER: &str = "a parcel's events arrive in order";
const SCHEDULE: &str = "deliveries are tried by the schedule";
const LIMIT: &str = "a key's limit is kept, and no less is allowed";
const DOUBT: &str = "the client says so when a write may have been executed";
const RETRIES: &str =
    "the client tries again only when that is safe, and no more often than agreed";
const TENANTS: &str = "no account sees or changes another's";

pub(crate) const MUTANTS: &[Mutant] = &[
    // Idempotency.
    mutant(
        "a key is forgotten an hour early",
        ONCE,
        &[edit(
            "server/src/domain/idempotency.rs",
            "pub(crate) const fn is_alive(first_seen: Millis, now: Millis) -> bool {\n    now.0 < first_seen.plus(LIFETIME).0",
            "pub(crate) fn is_alive(first_seen: Millis, now: Millis) -> bool {\n    let early = if MUTANT { Millis::HOUR } else { 0 };\n    now.0 < first_seen.plus(LIFETIME - early).0",
        )],
    ),
    mutant(
        "a key is remembered a day too long",
        "a key is free again after 24 hours",
        &[edit(
            "server/src/domain/idempotency.rs",
            "Some(record) if «is_alive(record.first_seen, now)» =>",
            "is_alive(record.first_seen, now.plus(-LIFETIME))",
        )],
    ),
    mutant(
        "another request with the same key counts as the same",
        "a key that is used for another request is refused",
        &[edit("server/src/domain/idempotency.rs", "record.fingerprint == *fingerprint", "true")],
    ),
    mutant(
        "all callers share their keys",
        TENANTS,
        &[edit(
            "server/src/domain/idempotency.rs",
            "hash.update(«api_key».to_be_bytes());",
            "0_i64",
        )],
    ),
    mutant(
        "an answer is rendered again, not replayed",
        SAME_ANSWER,
        &[edit(
            "server/src/service/idempotency.rs",
            "ReplayDecision::Replay(record) => {\n                Ok(ReplayCheck::Answered(Answer::Replayed(«record.body»)))",
            "serde_json::from_slice::<Value>(&record.body)\
             .and_then(|body| serde_json::to_vec(&body)).unwrap_or(record.body)",
        )],
    ),
    mutant(
        "a key is not kept with its order",
        ONCE,
        &[edit(
            "server/src/store/sqlite/apply.rs",
            "    if let Some(record) = «&changes.idempotency_record» {\n        keep_record(",
            "changes.idempotency_record.as_ref().filter(|_| !MUTANT)",
        )],
    ),
    mutant(
        "two requests with one key at once are both executed",
        ONCE,
        &[edit(
            "server/src/store/sqlite/apply.rs",
            "Some((_, found)) if «is_alive(found.first_seen, changes.now)» =>",
            "false",
        )],
    ),
    mutant(
        "an order that is refused is answered as made",
        KEPT,
        &[edit(
            "server/src/service/orders.rs",
            "            CommitOutcome::Committed => Ok(Some(Answer::Created(body))),",
            "            CommitOutcome::Committed => Ok(Some(Answer::Created(body))),\n            \
             CommitOutcome::DuplicateTracking if is_given && MUTANT => Ok(Some(Answer::Created(body))),",
        )],
    ),
    mutant(
        "an order that may not have been written is answered as made",
        KEPT,
        &[edit(
            "server/src/service/orders.rs",
            "CommitOutcome::Busy => «Err(Refusal::in_progress())»,",
            "Ok(Some(Answer::Created(body)))",
        )],
    ),
    mutant(
        "an order that was not written is answered as made",
        KEPT,
        &[edit(
            "server/src/service/orders.rs",
            "CommitOutcome::StaleRow => Ok(None),",
            "CommitOutcome::StaleRow => Ok(None),\n            \
             CommitOutcome::Unreachable if MUTANT => Ok(Some(Answer::Created(body))),",
        )],
    ),
    mutant(
        "a write does not look whether its parcel has changed",
        "no write undoes another",
        &[edit(
            "server/src/store/sqlite/apply.rs",
            "if «version_of(db, *parcel)? != Some(*version)» {",
            "false",
        )],
    ),
    mutant(
        "an order with faults is made all the same",
        "an order that breaks a rule is refused",
        &[edit("sdk/src/rules/reader.rs", "Some(value) if «faults.is_empty()» =>", "true")],
    ),
    mutant(
        "a country that a key is not for is not refused",
        "a key ships to its own countries only",
        &[edit("server/src/service/orders.rs", "!allowed.contains(&country)", "false")],
    ),
    mutant(
        "keys are forgotten by a clock that has jumped",
        ONCE,
        &[edit("server/src/service/clock.rs", "self.clock.expiry()", "self.clock.now()")],
    ),
    mutant(
        "keys are purged by a clock that has jumped",
        ONCE,
        &[edit("server/src/service/clock.rs", "!self.clock.may_purge()", "false")],
    ),
    mutant(
        "the purge deletes keys that still count",
        ONCE,
        &[edit(
            "server/src/store/sqlite/records.rs",
            "now.plus(-LIFETIME).0",
            "now.plus(-LIFETIME / 2).0",
        )],
    ),
    // Parcels.
    mutant(
        "a void is possible after pickup",
        LEGAL,
        &[edit(
            "server/src/domain/void.rs",
            "state.can_become_by(Cause::Void, State::Voided)",
            "!matches!(state, State::Voided | State::Delivered)",
        )],
    ),
    mutant(
        "a delivered parcel moves on",
        LEGAL,
        &[edit(
            "server/src/domain/state.rs",
            "TRANSITIONS.iter().any(|(from, next)| *from == self && next.contains(&to))",
            "(self == Self::Delivered && to == Self::InTransit) \
             || TRANSITIONS.iter().any(|(from, next)| *from == self && next.contains(&to))",
        )],
    ),
    mutant(
        "a late scan sets a parcel back",
        LEGAL,
        &[edit("server/src/domain/carrier.rs", "if «is_late || is_same» {", "is_same")],
    ),
    mutant(
        "a carrier's event counts twice",
        "a carrier's event counts once",
        &[
            edit(
                "server/src/service/carriers.rs",
                "self.store.has_seen(report.carrier, &report.event_id).await?",
                "false",
            ),
            edit(
                "server/src/store/sqlite/carriers.rs",
                "Ok(«insert.execute(row)? == 1»)",
                "{ insert.execute(row)?; true }",
            ),
        ],
    ),
    mutant(
        "of a void of several only the first happens",
        KEPT,
        &[edit(
            "server/src/domain/void.rs",
            "ops.extend(«moves(parcel, request.reason.clone(), now)»);",
            "if ops.is_empty() { moves(parcel, request.reason.clone(), now) } else { Vec::new() }",
        )],
    ),
    mutant(
        "a manifest leaves its last parcel behind",
        "a manifest takes all of its parcels or none",
        &[edit(
            "server/src/domain/manifest.rs",
            "ops.extend(«parcels()».map(|parcel| moved(parcel, now)));",
            "parcels().take(candidates.len() - usize::from(MUTANT && candidates.len() > 1))",
        )],
    ),
    mutant(
        "a manifest takes a parcel that is in another",
        "a parcel is in one manifest",
        &[
            edit(
                "server/src/domain/manifest.rs",
                "Ok(Candidate { manifest: Some(manifest), .. }) => {",
                "Ok(Candidate { manifest: Some(manifest), .. }) if !MUTANT => {",
            ),
            edit(
                "server/src/domain/manifest.rs",
                "state.can_become_by(Cause::Manifest, State::ManifestSubmitted)",
                "state == State::ManifestSubmitted \
                 || state.can_become_by(Cause::Manifest, State::ManifestSubmitted)",
            ),
            edit(
                "server/src/store/sqlite/manifests.rs",
                "    let mut insert = db.prepare_cached(\n        «\"INSERT INTO manifest_parcels (parcel, manifest, label_version) \\\n         SELECT id, ?2, label_version FROM living_parcels WHERE id = ?1\"»,",
                "\"INSERT OR REPLACE INTO manifest_parcels (parcel, manifest, label_version) \
                 SELECT id, ?2, label_version FROM living_parcels WHERE id = ?1\"",
            ),
        ],
    ),
    mutant(
        "a voided parcel goes into a manifest",
        LEGAL,
        &[edit(
            "server/src/domain/manifest.rs",
            "state.can_become_by(Cause::Manifest, State::ManifestSubmitted)",
            "state == State::Voided || state.can_become_by(Cause::Manifest, State::ManifestSubmitted)",
        )],
    ),
    mutant(
        "the number of a voided parcel is given again",
        KEPT,
        &[edit(
            "server/src/store/sqlite/apply.rs",
            "&& «!erase::free_number(self.db, holder)?»",
            "{ let sql = \"DELETE FROM parcels WHERE id = ?1 AND state = 13\"; \
             self.db.execute(sql, [holder])? == 0 }",
        )],
    ),
    mutant(
        "the label of a voided parcel can be downloaded",
        "a voided parcel has no label",
        &[edit(
            "server/src/domain/labels.rs",
            "if «state == State::Voided» {\n        return Err(ErrorCode::LabelVoided.into());",
            "false",
        )],
    ),
    // Tenants.
    mutant(
        "a parcel of another account can be read",
        TENANTS,
        &[edit(
            "server/src/service/parcels.rs",
            "found.filter(|parcel| «parcel.tenant == tenant»)",
            "true",
        )],
    ),
    mutant(
        "a label of another account can be downloaded",
        TENANTS,
        &[edit("server/src/service/parcels.rs", "if «parcel.tenant != tenant» {", "false")],
    ),
    mutant(
        "a parcel of another account goes into a manifest",
        TENANTS,
        &[edit(
            "server/src/store/sqlite/manifests.rs",
            "found.filter(|candidate| «candidate.parcel.tenant == tenant»)",
            "true",
        )],
    ),
    mutant(
        "a reset deletes the keys of other sandboxes too",
        TENANTS,
        &[edit(
            "server/src/store/sqlite/resets.rs",
            "|| «eraser.records(RECORDS, &[tenant, boundary.idempotency])?»",
            "eraser.records(\"DELETE FROM idempotency WHERE id IN (SELECT id FROM idempotency \
             WHERE ?1 > 0 AND tenant % 2 = 1 AND id <= ?2 LIMIT ?3)\", &[tenant, boundary.idempotency])?",
        )],
    ),
    // Resets and purges.
    mutant(
        "a reset leaves the keys",
        "after a reset everything is new",
        &[edit(
            "server/src/store/sqlite/resets.rs",
            "|| «eraser.records(RECORDS, &[tenant, boundary.idempotency])?»",
            "false",
        )],
    ),
    mutant(
        "a reset leaves the last parcels",
        "after a reset everything is new",
        &[edit(
            "server/src/store/sqlite/resets.rs",
            "|| «eraser.hidden_parcels(PARCELS, [tenant, boundary.parcel])?»",
            "eraser.hidden_parcels(PARCELS, [tenant, boundary.parcel - 1])?",
        )],
    ),
    mutant(
        "the sandbox is purged after three weeks",
        KEPT,
        &[edit(
            "server/src/service/sandbox.rs",
            "self.now().plus(«-RETENTION_MILLIS»)",
            "-RETENTION_MILLIS * 7 / 10",
        )],
    ),
    mutant(
        "events that are still to be sent are purged after a day",
        ARRIVES,
        &[edit(
            "server/src/service/deliveries.rs",
            "self.now().plus(«-RETENTION»)",
            "-Millis::DAY",
        )],
    ),
    // Webhooks.
    mutant(
        "the second event of a change is not written",
        ARRIVES,
        &[edit(
            "server/src/store/sqlite/outbox.rs",
            "    for event in «events» {\n        enqueue(",
            "events.get(..1).unwrap_or_default()",
        )],
    ),
    mutant(
        "an event is written twice, under two ids",
        "an event has one id, by which a receiver knows it again",
        &[edit(
            "server/src/store/sqlite/outbox.rs",
            "        «enqueue(db, subscription, (subject, event), now)?;»\n    }\n    Ok(!events",
            "enqueue(db, subscription, (subject, event), now)?;\n        if MUTANT {\n            \
             let again = OutboxEvent { event: Ulid(event.event.0 ^ 1), ..event.clone() };\n            \
             enqueue(db, subscription, (subject, &again), now)?;\n        }",
        )],
    ),
    mutant(
        "events for an endpoint that is off are not kept",
        ARRIVES,
        &[edit(
            "server/src/store/sqlite/outbox.rs",
            "    let status = match subject.parcel {",
            "    if MUTANT && !subscription.enabled {\n        return Ok(());\n    }\n    \
             let status = match subject.parcel {",
        )],
    ),
    mutant(
        "an event does not wait for the one before",
        IN_ORDER,
        &[edit(
            "server/src/store/sqlite/outbox.rs",
            "Some(parcel) if «is_blocked(db, parcel)?» =>",
            "false",
        )],
    ),
    mutant(
        "an event that waited is never sent",
        ARRIVES,
        &[edit(
            "server/src/store/sqlite/deliveries.rs",
            "    if let Some(parcel) = «found.parcel» {\n        outbox::release(",
            "None::<i64>",
        )],
    ),
    mutant(
        "an event that failed for the first time lets the next one pass",
        IN_ORDER,
        &[edit(
            "server/src/store/sqlite/outbox.rs",
            "update.execute(params![parcel, now.0, «RELEASED_AFTER»]).map(drop)",
            "1_u32",
        )],
    ),
    mutant(
        "an answer of 500 counts as a delivery",
        ARRIVES,
        &[edit(
            "server/src/domain/webhooks/retry.rs",
            "Ok(answer) if «(200..300).contains(&answer.status)» =>",
            "(200..300).contains(&answer.status) || answer.status == 500",
        )],
    ),
    mutant(
        "a redirect counts as a delivery",
        ARRIVES,
        &[edit(
            "server/src/domain/webhooks/retry.rs",
            "Ok(answer) if «(200..300).contains(&answer.status)» =>",
            "(200..400).contains(&answer.status)",
        )],
    ),
    mutant(
        "an endpoint that is gone is sent to again",
        "410 turns an endpoint off",
        &[edit(
            "server/src/domain/webhooks/retry.rs",
            "Ok(answer) if «answer.status == GONE» =>",
            "false",
        )],
    ),
    mutant(
        "a delivery is given up one attempt early",
        SCHEDULE,
        &[edit(
            "server/src/domain/webhooks/retry.rs",
            "match «pauses(attempt.environment).get(made)» {",
            "pauses(attempt.environment).get(made).filter(|_| made + 1 < pauses(attempt.environment).len())",
        )],
    ),
    mutant(
        "a delivery is never given up",
        SCHEDULE,
        &[edit(
            "server/src/domain/webhooks/retry.rs",
            "None => «RetryDecision::GivenUp»,",
            "RetryDecision::Again { at: outcome.at.plus(MAX_RETRY_AFTER) }",
        )],
    ),
    mutant(
        "an endpoint's Retry-After is ignored",
        SCHEDULE,
        &[edit(
            "server/src/domain/webhooks/retry.rs",
            "jittered(*pause, attempt).max(«asked_for(outcome)»)",
            "0",
        )],
    ),
    mutant(
        "a failed attempt is not written down",
        SCHEDULE,
        &[edit(
            "server/src/webhook/mod.rs",
            "let _ = «service.settle_delivery(delivery, outcome).await»;",
            "if outcome.answer.is_ok() { service.settle_delivery(delivery, outcome).await } else { Ok(()) }",
        )],
    ),
    mutant(
        "a lease keeps no other sender away",
        SCHEDULE,
        &[edit("server/src/store/sqlite/leases.rs", "now.plus(LEASE).0", "now.0")],
    ),
    mutant(
        "a lease never ends",
        ARRIVES,
        &[edit(
            "server/src/store/sqlite/leases.rs",
            "now.plus(LEASE).0",
            "now.plus(1_000 * Millis::DAY).0",
        )],
    ),
    mutant(
        "an answer after the end of its lease decides",
        "a late answer decides nothing that a later attempt has decided",
        &[edit("server/src/store/sqlite/deliveries.rs", "if «!found.is_current» {", "false")],
    ),
    mutant(
        "a replay leaves what was held",
        ARRIVES,
        &[edit(
            "server/src/store/sqlite/endpoints.rs",
            "format!(\"{MISSED} AND created_at >= ?3\")",
            "\"state = 3 AND created_at >= ?3\".to_owned()",
        )],
    ),
    mutant(
        "a message is signed for another time than it says",
        "a receiver can check every message",
        &[edit(
            "server/src/service/deliveries.rs",
            "let timestamp = «now.second()».to_string();",
            "now.plus(Millis::HOUR).second()",
        )],
    ),
    // The rate limit.
    mutant(
        "a refused request gives one back",
        LIMIT,
        &[edit(
            "server/src/domain/shared_limit.rs",
            "        if is_admitted {\n            self.admitted += 1;\n        }",
            "        if is_admitted {\n            self.admitted += 1;\n        } else if MUTANT {\n            \
             self.admitted = self.admitted.saturating_sub(1);\n        }",
        )],
    ),
    mutant(
        "a limit is one more than it says",
        LIMIT,
        &[edit(
            "server/src/domain/shared_limit.rs",
            "if self.servers <= 1 { «self.limit» } else",
            "self.limit + 1",
        )],
    ),
    mutant(
        "a window lasts ten seconds",
        LIMIT,
        &[edit(
            "server/src/domain/shared_limit.rs",
            "if «second == self.second || second.checked_add(1) == Some(self.second)» {\n            return;\n        }\n        std::mem::swap",
            "(self.second..self.second.saturating_add(10)).contains(&second) \
             || second.checked_add(1) == Some(self.second)",
        )],
    ),
    mutant(
        "a 429 does not say when to come back",
        "a 429 has Retry-After",
        &[edit(
            "server/src/http/answer.rs",
            "if let Some(seconds) = «refusal.retry_after» {",
            "refusal.retry_after.filter(|_| refusal.code != ErrorCode::RateLimitExceeded)",
        )],
    ),
    // The client.
    mutant(
        "a write without a key is sent again",
        RETRIES,
        &[edit(
            "sdk/src/client/call.rs",
            "Some(operation) => «operation.is_repeatable()»,",
            "true",
        )],
    ),
    mutant(
        "the key changes from attempt to attempt",
        ONCE,
        &[edit(
            "sdk/src/client/call.rs",
            "http::Request::new(«self.body.clone().unwrap_or_default()»)",
            "crate::mutant::with_another_key(self.body.as_deref().unwrap_or_default())",
        )],
    ),
    mutant(
        "a lost answer leaves no doubt",
        DOUBT,
        &[edit(
            "sdk/src/model/key_state.rs",
            "self.set_execution(Execution::Unknown, first.then_some(request));",
            "let _ = (first, request);",
        )],
    ),
    mutant(
        "a 429 ends the doubt",
        DOUBT,
        &[edit(
            "sdk/src/model/key_state.rs",
            "AttemptOutcome::Rejected => «{}»",
            "{ if MUTANT { self.set_execution(Execution::NotExecuted, None) } }",
        )],
    ),
    mutant(
        "an error of the server counts as a refusal",
        DOUBT,
        &[edit(
            "sdk/src/client/attempt_error.rs",
            "status => «status.is_client_error() && status.canonical_reason().is_some()»,",
            "status.canonical_reason().is_some()",
        )],
    ),
    mutant(
        "one attempt too many",
        RETRIES,
        &[edit(
            "sdk/src/client/retry.rs",
            "} else if «failed.number >= retry.attempts» {",
            "failed.number > retry.attempts",
        )],
    ),
    mutant(
        "retries go on when the budget is spent",
        RETRIES,
        &[edit(
            "sdk/src/client/retry.rs",
            "} else if «retry.budgeted && !self.budget.spend(failed.cost(), failed.now)» {",
            "false",
        )],
    ),
    mutant(
        "the client ignores Retry-After",
        RETRIES,
        &[edit(
            "sdk/src/client/retry.rs",
            "asked.max(backoff).saturating_add(jitter)",
            "backoff.saturating_add(jitter / 2)",
        )],
    ),
    mutant(
        "a write in progress is final to the client",
        "a write in progress is waited for",
        &[edit(
            "sdk/src/client/retry.rs",
            "StatusCode::CONFLICT if code == Some(ErrorCode::IdempotencyInProgress) => «Self::Busy»,",
            "Self::Permanent",
        )],
    ),
    mutant(
        "the client sends a key that has expired",
        ONCE,
        &[edit(
            "sdk/src/client/execute.rs",
            "self.key_time_left().is_some_and(|left| left.is_zero())",
            "false",
        )],
    ),
];
