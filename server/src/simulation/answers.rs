//! What servers answer, judged as it leaves them, whether or not it arrives.

use std::collections::{BTreeMap, BTreeSet};

use axum::body::Bytes;
use http::{HeaderMap, Method, StatusCode};
use serde_json::Value;

use super::world::{Facts, Millis0, World};
use crate::clock::Millis;

/// How long a request may wait for the store before it counts, in seconds.
const LONGEST_STALL: i64 = 20;
const DAY: i64 = 24 * Millis::HOUR;

/// A request as a server gets it.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) shipper: Option<usize>,
    pub(super) call: u64,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) key: Option<String>,
    pub(super) body: Value,
    /// The server that was asked: another after each start.
    pub(super) server: u64,
    /// When it was asked, and by which time keys had expired then.
    pub(super) now: Millis,
    pub(super) expiry: Millis,
    /// How often the clock had jumped.
    pub(super) jumps: u32,
}

/// A server's answer.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

/// What was answered under a key.
#[derive(Debug, Clone)]
struct Given {
    body: Bytes,
    asked: Value,
    /// The first request under it: its record is not older.
    not_before: Millis,
    /// The first answer: its record is not younger.
    not_after: Millis,
    /// The clock jumped meanwhile, or its record may have been erased: its age is not known.
    is_unsure: bool,
}

type Scope = (usize, String, String);

/// All that was answered.
#[derive(Debug, Default)]
pub(super) struct Answers {
    given: BTreeMap<Scope, Given>,
    /// When a key was first sent, and after how many jumps of the clock.
    first_asked: BTreeMap<Scope, (Millis, u32)>,
    /// What was ever asked under a key.
    bodies: BTreeMap<Scope, BTreeSet<String>>,
    /// By server, shipper and second: those begun and those admitted.
    windows: BTreeMap<(u64, usize, i64, u32), (u32, u32)>,
    pub(super) jumps: u32,
    pub(super) executed: BTreeSet<u64>,
}

impl Answers {
    /// The answers to a shipper's requests may be forgotten by the service.
    pub(super) fn forget(&mut self, shipper: usize) {
        self.given.retain(|(of, _, _), _| *of != shipper);
        self.first_asked.retain(|(of, _, _), _| *of != shipper);
    }

    /// Creations that can be sent again: the key, the order, and between which times its record was made.
    pub(super) fn creations(&self, shipper: usize) -> Vec<(Value, Millis, Millis)> {
        let own = self.given.iter().filter(|((of, path, _), given)| {
            *of == shipper && path.ends_with("/orders/create") && !given.is_unsure
        });
        own.map(|(_, given)| (given.asked.clone(), given.not_before, given.not_after)).collect()
    }
}

impl World {
    /// A server begins to handle a request.
    pub(super) fn asked(&self, asked: &Asked) {
        let mut facts = self.facts();
        facts.in_flight += 1;
        let Some(shipper) = asked.shipper else { return };
        let window = (asked.server, shipper, asked.now.second(), asked.jumps);
        facts.answers.windows.entry(window).or_default().0 += 1;
        if let Some(key) = &asked.key {
            let scope = (shipper, asked.path.clone(), key.clone());
            let first = (self.clocks.unjumped(), asked.jumps);
            facts.answers.first_asked.entry(scope.clone()).or_insert(first);
            facts.answers.bodies.entry(scope).or_default().insert(asked.body.to_string());
        }
    }

    /// A server has answered.
    pub(super) fn answered(&self, asked: &Asked, answer: &Answer) {
        let Asked { method, path, call, .. } = asked;
        let mut hash = std::hash::DefaultHasher::new();
        std::hash::Hash::hash(&answer.body, &mut hash);
        let digest = std::hash::Hasher::finish(&hash);
        self.step(&format!("call {call} {method} {path}: {} {digest:x}", answer.status.as_u16()));
        self.check(answer.status != StatusCode::INTERNAL_SERVER_ERROR, "internal-error", || {
            format!("{method} {path}")
        });
        let Some(shipper) = asked.shipper else { return };
        // Who asks for another's number may be answered with it.
        let has_asked = |tag: &str| path.contains(tag) || asked.body.to_string().contains(tag);
        if let Some(tag) = self.foreign_words(shipper, &answer.body).filter(|tag| !has_asked(tag)) {
            self.violated("other-tenant", format!("{path} shows shipper {shipper} {tag}"));
        }
        self.check_limit(asked, shipper, answer);
        if asked.key.is_some() && answer.status.is_success() {
            self.check_keyed(asked, shipper, answer);
        }
        if answer.status == StatusCode::CONFLICT {
            self.check_conflict(asked, shipper, answer);
        }
    }

    fn check_limit(&self, asked: &Asked, shipper: usize, answer: &Answer) {
        let (limit, jumps) = (self.options.limit, self.options.jumps);
        let refused = answer.status == StatusCode::TOO_MANY_REQUESTS;
        let (second, now) = (asked.now.second(), self.clocks.wall().second());
        let window = |second| (asked.server, shipper, second, asked.jumps);
        let (begun, admitted) = {
            let mut facts = self.facts();
            let windows = &mut facts.answers.windows;
            let counted = windows.entry(window(second)).or_default();
            // A store that stalls lets a request count in a later second than that in which it came.
            let is_in_it = !refused && answer.status.as_u16() < 500 && now == second;
            counted.1 += u32::from(is_in_it);
            let admitted = counted.1;
            let from = if self.options.stalls > 0 { second - LONGEST_STALL } else { second };
            let begun = windows.range(window(from)..=window(now.max(second))).map(|it| it.1.0);
            (begun.sum::<u32>(), admitted)
        };
        self.check(admitted <= limit, "limit-exceeded", || format!("{admitted} of {limit}"));
        if refused {
            self.check(begun > limit || jumps > 0, "refused-below-limit", || {
                format!("{begun} of {limit}")
            });
            let after = answer.headers.get(http::header::RETRY_AFTER);
            self.check(after.is_some(), "no-retry-after", || asked.path.clone());
        }
    }

    /// A keyed write that was done: now, or before.
    fn check_keyed(&self, asked: &Asked, shipper: usize, answer: &Answer) {
        let Some(key) = &asked.key else { return };
        let scope = (shipper, asked.path.clone(), key.clone());
        let now = self.clocks.unjumped();
        let is_new = answer.status == StatusCode::CREATED;
        let mut facts = self.facts();
        facts.answers.executed.insert(asked.call);
        let is_unsure = facts.answers.jumps != asked.jumps || self.clocks.is_off();
        let first = facts.answers.first_asked.get(&scope).copied();
        let (not_before, first_jumps) = first.unwrap_or((now, asked.jumps));
        let given = Given {
            body: answer.body.clone(),
            asked: asked.body.clone(),
            not_before,
            not_after: now,
            is_unsure,
        };
        let before = facts.answers.given.get(&scope).cloned();
        let wrong = before.as_ref().and_then(|before| wrong_with(before, &given, asked, is_new));
        let is_again = before.as_ref().is_some_and(|before| before.body != given.body);
        if before.is_none() || is_again {
            // A handler has 30 s.
            let not_before = if is_again { now.plus(-Millis::MINUTE) } else { not_before };
            // Its record may be of an attempt that was not heard of, by a clock that had jumped.
            let is_unsure = is_unsure || first_jumps != facts.answers.jumps;
            let given = Given { not_before, is_unsure, ..given };
            facts.answers.given.insert(scope, given);
            if is_new || asked.path.ends_with("/orders/create") {
                Self::made(&mut facts, asked, answer, is_again);
            }
        }
        let reused = Self::reused_number(&mut facts, asked, answer);
        drop(facts);
        if let Some(name) = wrong {
            self.violated(name, format!("{} {key}", asked.path));
        }
        if let Some(number) = reused {
            self.violated("tracking-reused", number);
        }
    }

    /// Another parcel was made, or the first.
    fn made(facts: &mut Facts, asked: &Asked, answer: &Answer, is_again: bool) {
        let Some(id) = asked.body["externalOrderId"].as_str() else { return };
        let order = facts.orders.entry(id.to_owned()).or_default();
        order.made_at = Millis0(asked.now.0);
        if is_again {
            order.parcels += 1;
            let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            order.acknowledged = body["parcel"]["trackingNumber"].as_str().map(str::to_owned);
        }
    }

    /// A number that the service has made before, for another order.
    fn reused_number(facts: &mut Facts, asked: &Asked, answer: &Answer) -> Option<String> {
        let id = asked.body["externalOrderId"].as_str()?;
        let body: Value = serde_json::from_slice(&answer.body).ok()?;
        let number = body["parcel"]["trackingNumber"].as_str()?.to_owned();
        let owner = facts.numbers.entry(number.clone()).or_insert_with(|| id.to_owned());
        (owner != id).then_some(number)
    }

    /// A request is in conflict neither with itself nor with what another shipper has sent.
    fn check_conflict(&self, asked: &Asked, shipper: usize, answer: &Answer) {
        let Some(key) = &asked.key else { return };
        let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if body["error"]["code"] != "IDEMPOTENCY_CONFLICT" {
            return;
        }
        let scope = (shipper, asked.path.clone(), key.clone());
        let (is_same, is_only) = {
            let facts = self.facts();
            let given = facts.answers.given.get(&scope);
            let is_same = given.is_some_and(|given| given.asked == asked.body);
            (is_same, facts.answers.bodies.get(&scope).is_none_or(|bodies| bodies.len() < 2))
        };
        self.check(!is_same && !is_only, "false-conflict", || format!("{} {key}", asked.path));
    }
}

/// What is wrong with an answer under a key that was answered before.
fn wrong_with(before: &Given, now: &Given, asked: &Asked, is_new: bool) -> Option<&'static str> {
    if before.is_unsure {
        return None;
    }
    let is_alive = now.not_after.0 < before.not_before.0 + DAY;
    let is_dead = !now.is_unsure && asked.expiry.0 >= before.not_after.0 + DAY;
    let is_same = before.body == now.body;
    match (is_alive, is_dead) {
        (true, _) if is_new && !is_same => Some("one-parcel-a-key"),
        (true, _) if before.asked != now.asked => Some("fingerprint-ignored"),
        (true, _) if !is_same => Some("answers-differ"),
        (_, true) if is_same => Some("key-outlives"),
        _ => None,
    }
}
