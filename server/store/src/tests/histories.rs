//! Random histories of a store's calls. The same seed makes the same calls of every store, and the answers are texts,
//! so that two stores can be compared call by call. Values that may differ between the engines (row ids, lease
//! numbers) are left out of the texts.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Debug,
    net::Ipv4Addr,
};

use fastrand::Rng;
use parcelo::webhook::Secret;
use parcelo_domain::{
    AcceptedCarrierEvent, AccountRowId, CarrierException, CarrierReport, CarrierRowId, Changes,
    Event, Millis, NewCredential, NewManifest, ParcelRow, Scan, State, Step, StoreOp, StoredOrder,
    Tenant, TraceContext, Version,
    audit::Actor,
    credentials::{AdminScope, ApiKeyScope, CarrierScope, Credential, NewSecret},
    idempotency::LIFETIME_MILLIS,
    mail::{DisabledMailKinds, MailDecision, MailLease, MailStatus, OptOut},
    sample::TEST_AUTHOR,
    search::Search,
    session::NewSession,
    shop::Shop,
    to_body,
    webhooks::{
        AttemptResult, DeliveryError, DisabledBy, OutboxEvent, RetryDecision, WebhookEventKind,
        WebhookEventKinds,
    },
};
use parcelo_types::{
    Awb, CountryCode, Environment, TrackingNumber,
    internal::check_list,
    model::{Manifest, ManifestId},
};
use ulid::Ulid;

use super::conformance::{self, NOW, create, empty_changes, record, webhooks};
use crate::{
    ALL_CREDENTIALS, AuditFilter, CommitOutcome, EventsToReplay, LeasedBatch, Settled, Store,
    StoreError,
};

/// Texts that people may have typed: empty, quoted, outside the Basic Multilingual Plane, and of several code points.
const TEXTS: [&str; 9] = [
    "",
    " ",
    "Quito, EC",
    "Av. Ñuñoa «12»",
    "it's \"a\\b\", NULL",
    "two\nlines\tand more",
    "e\u{301}\u{200b}\u{feff}",
    "東京 😀 𝕏",
    "\u{1}\u{7f}\u{10ffff}",
];
/// Times before 1970, at the end of the displayable range, and at the end of the stored range.
const MOMENTS: [Millis; 5] = [
    Millis(-1),
    Millis(0),
    Millis(-62_135_596_800_000),
    Millis(253_402_300_799_999),
    Millis(i64::MAX),
];
const ACCOUNTS: [&str; 2] = ["shop", "Łódź ✓"];
const AWBS: [&str; 3] = ["176-12345675", "045-00000011", "023-87654324"];

/// A history that continues from call to call.
#[derive(Clone)]
pub(super) struct History {
    rng: Rng,
    now: Millis,
    /// The last number drawn for due times, ids and tracking numbers. No number is drawn twice.
    drawn: i64,
    numbers: Vec<String>,
}

/// Returns an answer as text. An error's text names the database, which differs between the engines.
fn answer_text<T: Debug>(answer: Result<T, StoreError>) -> String {
    answer.map_or_else(|_error| "error".to_owned(), |answer| format!("{answer:?}"))
}

/// Removes the row ids of parcels from a text, because PostgreSQL does not reuse the row id of a refused order.
fn without_row_ids(words: &str) -> String {
    const ROW: &str = "ParcelRowId(";
    let rests = words.split(ROW).map(|rest| rest.trim_start_matches(char::is_numeric));
    rests.collect::<Vec<_>>().join(ROW)
}

fn key_text<S>(key: Option<Credential<S>>) -> String {
    let Some(key) = key else { return "no key".to_owned() };
    let old: Vec<_> = key.old_secrets.iter().map(|old| (old.hash, old.until)).collect();
    format!(
        "{} {} {:?} {old:?} {} {:?} {:?}",
        key.id, key.name, key.hash, key.last4, key.created_at.0, key.revoked_at
    )
}

impl History {
    pub(super) fn new(seed: u64) -> Self {
        Self { rng: Rng::with_seed(seed), now: NOW, drawn: 0, numbers: Vec::new() }
    }

    /// Creates what every history starts with: accounts, keys and carriers, to which later calls refer by row id.
    pub(super) async fn begin(&mut self, store: &Store) -> String {
        store.send_mails();
        let mut all = vec![answer_text(store.is_new().await), answer_text(store.claim_new().await)];
        for (number, name) in (1_u8..).zip(ACCOUNTS) {
            all.push(answer_text(store.account(name, format!("acc_{number}"), self.now).await));
            let scope = ApiKeyScope {
                tenant: Tenant {
                    account: AccountRowId(number.into()),
                    environment: Environment::Sandbox,
                },
                account: name.to_owned(),
                countries: parcelo_domain::Countries::All,
                ip_list: vec!["10.0.0.0/8".parse().unwrap()],
                rate_limit: Some(u32::MAX),
            };
            let key = store.insert_credential(new_credential(number, scope), &TEST_AUTHOR).await;
            all.push(key_text::<ApiKeyScope>(key.ok()));
            let carrier = store
                .insert_credential(new_credential(number, Environment::Sandbox), &TEST_AUTHOR)
                .await;
            all.push(key_text::<CarrierScope>(carrier.ok()));
        }
        all.join("; ")
    }

    fn draw(&mut self) -> i64 {
        self.drawn += 1;
        self.drawn
    }

    fn text(&mut self) -> String {
        (*self.rng.choice(&TEXTS).unwrap()).to_owned()
    }

    /// Returns the sandbox more often than production, because more can happen there.
    fn environment(&mut self) -> Environment {
        if self.rng.u8(..4) == 0 { Environment::Production } else { Environment::Sandbox }
    }

    fn tenant(&mut self) -> Tenant {
        let account = AccountRowId(self.rng.i64(1..=2));
        Tenant { account, environment: self.environment() }
    }

    fn moment(&mut self) -> Millis {
        match self.rng.u8(..12) {
            0 => *self.rng.choice(&MOMENTS).unwrap(),
            _ => self.now.plus(self.rng.i64(-5_000..5_000)),
        }
    }

    /// Returns a different time for each step, because the order of steps with the same time is unspecified.
    fn due(&mut self) -> Millis {
        let own = self.draw();
        match self.rng.u8(..12) {
            0 => Millis(i64::MAX - own),
            _ => Millis(self.now.0 - self.now.0 % 10_000 + own),
        }
    }

    fn number(&mut self) -> TrackingNumber {
        let number = self.rng.choice(&self.numbers).cloned();
        let number = number.unwrap_or_else(|| "SB-NONE-0001".to_owned());
        let number = if self.rng.bool() { number.to_lowercase() } else { number };
        TrackingNumber::parse(&number).unwrap()
    }

    async fn parcel(&mut self, store: &Store) -> Option<ParcelRow> {
        let (number, environment) = (self.number(), self.environment());
        store.parcel(environment, &number).await.unwrap()
    }

    fn id(&mut self) -> Ulid {
        Ulid::from_parts(7, self.draw().unsigned_abs().into())
    }

    /// Makes the next call and returns its answer.
    pub(super) async fn step(&mut self, store: &Store) -> String {
        self.now = self.now.plus(self.rng.i64(0..60_000));
        let words = match self.rng.u8(..40) {
            0..9 => self.create(store).await,
            9..19 => self.change(store).await,
            19..21 => self.submit_manifest(store).await,
            21..24 => self.change_endpoint(store).await,
            24..29 => self.deliver(store).await,
            29..32 => self.change_credentials(store).await,
            32..34 => self.change_account(store).await,
            34..35 => self.erase(store).await,
            35..36 => self.read_carrier_events(store).await,
            36..37 => self.process_mails(store).await,
            _ => self.read_lists(store).await,
        };
        without_row_ids(&words)
    }

    async fn create(&mut self, store: &Store) -> String {
        let tenant = self.tenant();
        let key = self.rng.u32(1..40);
        let mut changes = create(tenant, "ANOTHER-0001", key);
        changes.now = self.now;
        changes.trace = self.trace();
        let country = self.rng.choice([CountryCode::EC, CountryCode::MX, CountryCode::CO]).unwrap();
        let id = self.id();
        let number = match self.rng.u8(..3) {
            0 => format!("SB-GIVEN-{:04}", self.rng.u8(..30)),
            1 => self.number().to_string(),
            _ => format!("SBEC{:013}", self.draw()),
        };
        let (created_at, due) = (self.moment(), self.due());
        if let StoreOp::InsertParcel(parcel) = &mut changes.ops[0] {
            parcel.id = id;
            parcel.tracking_number = TrackingNumber::parse(&number).unwrap();
            // The end of the stored range is not a date that a list can show.
            parcel.created_at = if created_at.0 == i64::MAX { self.now } else { created_at };
            parcel.country = country;
            parcel.origin = self.text();
            parcel.destination = self.text();
            parcel.promised_day = self.rng.i32(..);
            parcel.step = self.rng.bool().then_some(Step { index: 1, due });
            let mut order = conformance::order("key-1");
            order.receiver.full_name = self.text();
            order.external_order_id = self.rng.bool().then(|| self.text());
            parcel.order = StoredOrder::to_json(&order);
            parcel.external_order_id = order.external_order_id;
        }
        if let Some(record) = &mut changes.idempotency_record {
            record.first_seen = self.now;
            record.body = self.text().into_bytes();
            record.fingerprint = [self.rng.u8(..); 32];
        }
        self.numbers.push(number);
        format!("create {key}: {:?}", store.commit(changes).await)
    }

    fn trace(&mut self) -> Option<TraceContext> {
        self.rng.bool().then(|| TraceContext::from_bytes([self.rng.u8(..); 17]))
    }

    fn event(&mut self, parcel: &ParcelRow) -> Event {
        // Sometimes it is not the next sequence, which is a conflict.
        let sequence = parcel.last_sequence + u32::from(self.rng.u8(..10) != 0);
        let states = [State::InTransit, State::PickedUp, State::Delivered, State::Voided];
        Event {
            sequence,
            state: *self.rng.choice(&states).unwrap(),
            at: self.moment(),
            location: self.text(),
            description: self.rng.bool().then(|| self.text()),
        }
    }

    async fn change(&mut self, store: &Store) -> String {
        let Some(parcel) = self.parcel(store).await else { return "no parcel".to_owned() };
        let mut ops = Vec::new();
        let mut seen = parcel.clone();
        for _ in 0..self.rng.u8(1..4) {
            let event = self.event(&seen);
            let key = parcel.key;
            let carrier = CarrierRowId(self.rng.i64(1..=2));
            let event_id = format!("evt-{}", self.rng.u8(..20));
            ops.push(match self.rng.u8(..8) {
                0 | 1 => StoreOp::Move { parcel: key, event: event.clone() },
                2 => StoreOp::AddEvent { parcel: key, event: event.clone() },
                3 => StoreOp::Schedule { parcel: key, step: Step { index: 2, due: self.due() } },
                4 => StoreOp::CancelSteps { parcel: key },
                5 => StoreOp::Reprint { parcel: key, at: event.at },
                6 => StoreOp::RecordCarrierEvent(AcceptedCarrierEvent {
                    carrier,
                    event_id,
                    parcel: key,
                    sequence: seen.last_sequence,
                    code: self.rng.bool().then(|| self.text()),
                }),
                _ => StoreOp::LogCarrierException(Box::new(CarrierException {
                    tenant: parcel.tenant,
                    parcel: key,
                    from: parcel.state,
                    report: CarrierReport {
                        carrier,
                        event_id,
                        code: None,
                        scan: Scan {
                            state: event.state,
                            at: event.at,
                            location: event.location.clone(),
                            description: event.description.clone(),
                        },
                    },
                    refused_at: self.now,
                })),
            });
            if matches!(ops.last(), Some(StoreOp::Move { .. } | StoreOp::AddEvent { .. })) {
                seen.last_sequence = event.sequence;
            }
        }
        let version = Version(parcel.version.0 + i64::from(self.rng.u8(..10) == 0));
        let (now, trace, expect) = (self.now, self.trace(), vec![(parcel.key, version)]);
        let changes = Changes { now, trace, expect, ops, ..empty_changes() };
        let outcome = match store.commit(changes).await {
            // An event that occurs twice also conflicts in the outbox, and PostgreSQL reports the conflict found first.
            CommitOutcome::Broken => CommitOutcome::VersionConflict,
            outcome => outcome,
        };
        let after =
            store.parcel_with_order(parcel.tenant.environment, &parcel.tracking_number).await;
        let events = answer_text(store.events(&seen).await);
        format!("change {outcome:?}: {} {events}", answer_text(after))
    }

    async fn submit_manifest(&mut self, store: &Store) -> String {
        let Some(parcel) = self.parcel(store).await else { return "no parcel".to_owned() };
        let awb = Awb::parse(self.rng.choice(&AWBS).unwrap()).unwrap();
        let numbers = [parcel.tracking_number.to_string(), self.number().to_string()];
        let inputs = store.manifest_inputs(parcel.tenant, &awb, &numbers).await.unwrap();
        let found: Vec<_> = inputs.found.into_iter().map(answer_text).collect();
        let id = self.id();
        let mut document = Manifest::new(
            ManifestId::unchecked(parcelo_domain::ids::public_id("man", id)),
            awb.clone(),
            vec![parcel.tracking_number.clone()],
            NOW.to_utc(),
        );
        document.reference = Some(self.text());
        let new = NewManifest {
            id,
            tenant: parcel.tenant,
            awb,
            submitted_at: self.now,
            document: to_body(&document),
            parcels: vec![parcel.key],
        };
        let ops = vec![StoreOp::InsertManifest(Box::new(new))];
        let changes = Changes { now: self.now, trace: self.trace(), ops, ..empty_changes() };
        let outcome = store.commit(changes).await;
        let manifest = answer_text(store.manifest(parcel.tenant, id).await);
        let awb = answer_text(store.awb_on_label(parcel.key, self.rng.u32(1..4)).await);
        format!("manifest {found:?} {:?} {outcome:?}: {manifest} {awb}", inputs.known)
    }

    async fn change_endpoint(&mut self, store: &Store) -> String {
        let (tenant, by) = (self.tenant(), Actor::Command.at(self.now));
        let answer = match self.rng.u8(..9) {
            0 | 1 => {
                let mut endpoint = webhooks::endpoint(tenant);
                endpoint.url = format!("https://{}.example/ñ", self.rng.u8(..3));
                let kinds = [vec!["parcel.created"], vec!["parcel.created", "parcel.voided"]];
                endpoint.kinds = WebhookEventKinds::from_codes(self.rng.choice(kinds).unwrap())
                    .unwrap_or_default();
                answer_text(store.set_endpoint(endpoint, &by).await.map(|set| set.url))
            }
            2 => {
                let secret = Secret::from_random(&[self.rng.u8(..); 32]);
                answer_text(store.rotate_secret(tenant, (None, secret), self.now, &by).await)
            }
            3 => answer_text(store.enable_endpoint(tenant, &by).await),
            4 => answer_text(store.disable_endpoint(tenant, DisabledBy::Operator, &by).await),
            5 if self.rng.bool() => answer_text(store.remove_endpoint(tenant, &by).await),
            6 => answer_text(store.hold_all().await),
            7 => {
                let what = EventsToReplay::MissedSince(self.now.plus(-100_000));
                answer_text(store.replay(tenant, what, self.now).await)
            }
            _ => {
                let event = self.id();
                let (kind, at) = (WebhookEventKind::Test, self.now);
                let test = OutboxEvent { event, kind, sequence: None, previous: None, at };
                let trace = self.trace();
                let enqueued = answer_text(store.enqueue(tenant, test, trace).await);
                format!("{enqueued} {}", answer_text(store.has_event(tenant, event).await))
            }
        };
        format!("endpoint {answer} {}", describe_endpoint(store, tenant, self.now).await)
    }

    /// Leases due events and settles them at once, because their leases may not end by the test's clock.
    async fn deliver(&mut self, store: &Store) -> String {
        let mut due = store.tenants_with_due(self.now, 4).await.unwrap();
        // The order of tenants that have waited equally long is unspecified.
        due.sort_by_key(|tenant| tenant.number());
        let next = answer_text(store.next_delivery().await);
        let shares = due.iter().map(|tenant| (*tenant, self.rng.usize(1..4))).collect();
        let mut leased = store.lease(shares, self.now).await.unwrap();
        if self.rng.u8(..4) == 0 {
            leased = self.lease_again(store, leased).await;
        }
        leased.events.sort_by_key(|(_, lease)| lease.attempt.event);
        let mut all = vec![format!("deliver {due:?} {next} {:?}", leased.disabled_endpoints)];
        for (endpoint, lease) in leased.events {
            let payload = answer_text(store.payload(&lease).await);
            let logged = store.logged_payload(lease.tenant, lease.attempt.event).await;
            assert_eq!(answer_text(logged), payload, "the log has the payload that is sent");
            let (kind, at, trace) = (lease.kind, lease.at, lease.trace);
            let event = lease.attempt.event;
            let outcome = match self.rng.u8(..3) {
                0 => Err(DeliveryError::TimedOut),
                _ => webhooks::outcome(self.now, self.rng.u16(200..600)).response,
            };
            let outcome = AttemptResult { at: self.now, millis: 3, response: outcome };
            let decision = match self.rng.u8(..12) {
                0..6 => RetryDecision::Delivered,
                6..9 => RetryDecision::Retry { at: self.now.plus(self.rng.i64(0..300_000)) },
                9 => RetryDecision::GivenUp,
                10 => RetryDecision::Gone,
                _ => RetryDecision::Unreadable,
            };
            let settled = match self.rng.u8(..15) {
                0 => answer_text(store.forget(lease).await),
                _ => answer_text(store.settle(lease, outcome, decision).await),
            };
            let url = &endpoint.url;
            all.push(format!(
                "{url} {kind:?} {at:?} {trace:?} {event} {payload} {decision:?} {settled}"
            ));
        }
        let tenant = self.tenant();
        if self.rng.u8(..6) == 0 {
            all.push(answer_text(store.reschedule_deliveries(self.now).await));
            all.push(answer_text(store.end_leases(self.now).await));
        }
        all.push(describe_endpoint(store, tenant, self.now).await);
        all.join("; ")
    }

    /// Leases all due events once the leases in `first` have ended. Answers for those come late, and so settle nothing.
    async fn lease_again(&self, store: &Store, first: LeasedBatch) -> LeasedBatch {
        store.end_leases(self.now).await.unwrap();
        let due = store.tenants_with_due(self.now, 4).await.unwrap();
        let shares = due.into_iter().map(|tenant| (tenant, 10_000)).collect();
        let second = store.lease(shares, self.now).await.unwrap();
        for (_, lease) in first.events {
            let outcome = webhooks::outcome(self.now, 200);
            let settled = store.settle(lease, outcome, RetryDecision::Delivered).await;
            assert_eq!(settled.unwrap(), Settled::Late);
        }
        LeasedBatch { disabled_endpoints: first.disabled_endpoints, ..second }
    }

    async fn change_credentials(&mut self, store: &Store) -> String {
        let number = self.rng.u8(1..12);
        let [key, carrier, token] = ["key", "car", "adt"].map(|kind| format!("{kind}_{number}"));
        let by = Actor::Command.at(self.now);
        let answer = match self.rng.u8(..6) {
            0 => {
                let new = NewCredential { id: token, ..new_credential(number, AdminScope) };
                key_text::<AdminScope>(store.insert_credential(new, &by).await.ok())
            }
            1 => key_text::<AdminScope>(
                store.revoke_credential(&token, self.now, &by).await.unwrap(),
            ),
            2 => key_text::<CarrierScope>(
                store.revoke_credential(&carrier, self.now, &by).await.unwrap(),
            ),
            3 => {
                let secret = NewSecret {
                    hash: [self.rng.u8(100..); 32],
                    last4: "abcd".to_owned(),
                    old_until: self.moment(),
                    replaces: None,
                };
                // A hash that another key has is refused.
                key_text(store.rotate_key(&key, secret, &by).await.ok().flatten())
            }
            4 if self.rng.bool() => {
                let days = BTreeMap::from([(self.rng.i64(1..3), self.rng.i64(20_000..20_009))]);
                answer_text(store.save_key_uses(days).await)
            }
            4 => {
                let uses = HashMap::from([((self.rng.i64(1..3), 20_000), self.rng.u64(..1 << 40))]);
                answer_text(store.add_legacy_uses(uses).await)
            }
            _ => key_text(store.credential_by_hash::<ApiKeyScope>(&[number; 32]).await.unwrap()),
        };
        format!("credentials {answer}")
    }

    async fn change_account(&mut self, store: &Store) -> String {
        let name = *self.rng.choice(&ACCOUNTS).unwrap();
        let account = answer_text(store.account(name, "acc_other".to_owned(), self.now).await);
        let named = store.account_named(name).await.unwrap().unwrap();
        let login = store.login(name).await.unwrap();
        let password = login.as_ref().map(|login| login.password.clone());
        let (hash, old) = ([self.rng.u8(..9); 32], [self.rng.u8(..9); 32]);
        let shop = store.shop(named).await.unwrap();
        // Each call changes the settings.
        let next = Shop::parse(if shop == Shop::default() { name } else { "" }, "").unwrap();
        let by = Actor::Command.at(self.now);
        store.set_shop(named, &next, &by).await.unwrap();
        let answer = match (self.rng.u8(..5), login) {
            (0, _) | (_, None) => {
                answer_text(store.set_password(named, self.text(), self.now, &by).await)
            }
            (1, _) => answer_text(store.end_session(hash).await),
            (2, _) => answer_text(store.purge_sessions(self.now).await),
            (_, Some(login)) => {
                let (begins_at, client) = (self.now, Ipv4Addr::LOCALHOST.into());
                let ends_at = begins_at.plus(self.rng.i64(0..200_000));
                let session = NewSession { hash, begins_at, ends_at, client };
                let old = self.rng.bool().then_some(old);
                answer_text(store.begin_session(login, session, old).await)
            }
        };
        let session = answer_text(store.session(&hash).await);
        format!("accounts {account} {password:?} {answer} {session}")
    }

    async fn erase(&mut self, store: &Store) -> String {
        let before = self.now.plus(-self.rng.i64(0..3_000_000));
        match self.rng.u8(..12) {
            0..3 => format!("purge {}", answer_text(store.purge(before).await)),
            3..6 => format!("purge outbox {}", answer_text(store.purge_outbox(before).await)),
            6..8 => {
                // Let every key expire, or only those that are old enough, and use one again.
                let early = if self.rng.bool() { self.rng.i64(0..2 * Millis::HOUR) } else { 0 };
                self.now = self.now.plus(LIFETIME_MILLIS - early);
                let purged = answer_text(store.purge_records(self.now).await);
                format!("purge records {purged} {}", self.create(store).await)
            }
            8..10 => {
                let tenant = self.tenant();
                format!("reset {tenant:?} {}", answer_text(store.reset(tenant).await))
            }
            10 => format!("reset all {}", answer_text(store.reset_all().await)),
            _ => format!("resume {}", answer_text(store.resume_resets().await)),
        }
    }

    async fn read_carrier_events(&mut self, store: &Store) -> String {
        let (tenant, max) = (self.tenant(), self.rng.u32(1..9));
        let (carrier, event) =
            (CarrierRowId(self.rng.i64(1..=2)), format!("evt-{}", self.rng.u8(..20)));
        let exceptions = answer_text(store.carrier_exceptions(tenant, max).await);
        let is_known = answer_text(store.has_carrier_event(carrier, &event).await);
        format!("carriers {is_known} {exceptions}")
    }

    /// Counts, leases, settles and purges e-mails. Row ids and lease numbers are left out, because they differ between
    /// the engines.
    async fn process_mails(&mut self, store: &Store) -> String {
        let (account, address) = (AccountRowId(self.rng.i64(1..=2)), [self.rng.u8(..9); 32]);
        let off = DisabledMailKinds::from_number(self.rng.u8(..));
        let by = Actor::Command.at(self.now);
        let since = Millis(self.rng.i64(..4));
        let mut all = vec![
            answer_text(store.mail_since(self.now).await),
            answer_text(store.next_mail().await),
            answer_text(store.opt_out(address, OptOut::Unsubscribed, self.now).await),
            answer_text(store.count_mail([(address, since), ([9; 32], since)]).await),
            answer_text(store.set_mails_off(account, off, &by).await),
        ];
        let mut leased = store.lease_mails(self.now, 10_000).await.unwrap();
        leased.sort_by_key(|mail| (mail.parcel, mail.sequence, mail.recipient.number()));
        for mail in &leased {
            let decision = match self.rng.u8(..4) {
                0 => MailDecision::Done(MailStatus::Sent),
                1 => MailDecision::Retry(self.now.plus(self.rng.i64(..90_000))),
                2 => MailDecision::Done(MailStatus::GivenUp),
                _ => continue,
            };
            all.push(answer_text(store.settle_mail(mail.id, mail.number, decision).await));
        }
        all.extend(
            leased.into_iter().map(|mail| format!("{:?}", MailLease { id: 0, number: 0, ..mail })),
        );
        match self.rng.u8(..4) {
            0 => all.push(answer_text(store.disable_mails().await)),
            1 => all.push(answer_text(store.purge_mails(self.now.plus(-Millis::HOUR)).await)),
            2 => all.push(answer_text(store.purge_audit_log(self.now.plus(-Millis::HOUR)).await)),
            _ => {}
        }
        format!("mails {}", all.join(" "))
    }

    async fn read_lists(&mut self, store: &Store) -> String {
        let tenant = self.tenant();
        let mut query =
            vec![("limit", self.rng.u8(1..6).to_string()), ("page", self.rng.u8(1..4).to_string())];
        for (name, value) in [
            ("status", "LABEL_GENERATED"),
            ("country", "MX"),
            ("externalOrderId", "Quito, EC"),
            ("search", "quito 1"),
            ("reference", "quito"),
            ("createdFrom", "2026-01-10T15:06:00Z"),
            ("createdTo", "2026-01-11"),
        ] {
            if self.rng.u8(..4) == 0 {
                query.push((name, value.to_owned()));
            }
        }
        let pairs = query.into_iter().map(|(name, value)| (name.into(), value.into()));
        let Ok(query) = check_list(pairs) else { return "no query".to_owned() };
        let (until, max) = (self.moment(), self.rng.usize(1..9));
        let search = match Search::new(&query) {
            Some(search) => answer_text(store.search(tenant, query.clone(), search).await),
            None => String::new(),
        };
        // Each engine decides by itself whether there is something to do; the results are the same.
        store.maintain_search_index().await.unwrap();
        store.merge_count_changes().await.unwrap();
        let listed = [
            search,
            answer_text(store.list(tenant, query).await),
            answer_text(store.activity(tenant, self.rng.i64(-1..20_470)).await),
            answer_text(store.due(until, max).await),
            answer_text(store.due_for_tenant(tenant, until, max).await),
            answer_text(store.next_due(until).await),
            answer_text(store.idempotency_record(&record(tenant, self.rng.u32(1..40)).key).await),
        ];
        format!("lists {}", listed.join(" "))
    }

    /// Returns everything that callers can read.
    pub(super) async fn read_all_data(&self, store: &Store) -> Vec<String> {
        let mut all = vec![
            format!("{:?}", store.secret()),
            answer_text(store.accounts().await),
            answer_text(store.account_record(AccountRowId(2)).await),
            answer_text(store.shop(AccountRowId(1)).await),
            answer_text(store.key_uses(Some(AccountRowId(1))).await),
            answer_text(store.mails_off(AccountRowId(1)).await),
            answer_text(store.audit_log(AuditFilter::All, Millis(0), 10_000).await),
            answer_text(store.audit_log(AuditFilter::Account(AccountRowId(1)), Millis(0), 9).await),
            answer_text(store.has_opted_out([1; 32]).await),
            answer_text(store.legacy_uses().await),
            answer_text(store.account_legacy_uses(AccountRowId(1)).await),
            answer_text(store.backlogs().await),
            answer_text(store.due(Millis(i64::MAX), usize::MAX >> 1).await),
            answer_text(store.next_due(Millis(i64::MIN)).await),
        ];
        let mut made: Vec<_> =
            store.creations().await.unwrap().iter().map(|parcel| format!("{parcel:?}")).collect();
        // Engines may list them by row or by time, and a later row may have an earlier time.
        made.sort();
        all.append(&mut made);
        self.describe_parcels(store, &mut all).await;
        self.describe_tenants(store, &mut all).await;
        describe_credentials(store, &mut all).await;
        all.iter().map(|words| without_row_ids(words)).collect()
    }

    async fn describe_parcels(&self, store: &Store, all: &mut Vec<String>) {
        for number in &self.numbers {
            let number = TrackingNumber::parse(number).unwrap();
            for environment in [Environment::Production, Environment::Sandbox] {
                let found = store.parcel_with_order(environment, &number).await.unwrap();
                if let Some((parcel, order)) = found {
                    let events = answer_text(store.events(&parcel).await);
                    let awb =
                        answer_text(store.awb_on_label(parcel.key, parcel.label_version).await);
                    let mails = answer_text(store.mails_of_parcel(parcel.key).await);
                    let sent = store.parcel_deliveries(parcel.tenant, parcel.key, 100).await;
                    all.push(answer_text(sent));
                    let in_row = store.parcel_in_row(parcel.key).await.unwrap();
                    assert_eq!(in_row.map(|(row, _)| row), Some(parcel.clone()));
                    all.push(format!("{parcel:?} {order:?} {events} {awb} {mails}"));
                }
            }
        }
    }

    async fn describe_tenants(&self, store: &Store, all: &mut Vec<String>) {
        let mut waiting = store.waiting_mails().await.unwrap();
        waiting.sort_by_key(|(tenant, _)| tenant.number());
        all.push(format!("{waiting:?}"));
        let tenants = |account| [conformance::sandbox(account), conformance::production(account)];
        for tenant in (1..=2).flat_map(tenants) {
            all.push(describe_endpoint(store, tenant, self.now).await);
            all.push(answer_text(store.older_deliveries(tenant, 0, 10_000).await));
            all.push(answer_text(store.failing_since(tenant).await));
            all.push(answer_text(store.held_mails(tenant).await));
            all.push(answer_text(store.carrier_exceptions(tenant, 10_000).await));
            all.push(answer_text(store.activity(tenant, i64::MIN >> 1).await));
            for text in ["quito", "n", "176", "given"] {
                let query = check_list([("search".into(), text.into())]).unwrap();
                let search = Search::new(&query).unwrap();
                all.push(answer_text(store.search(tenant, query, search).await));
            }
            for page in ["1", "2", "3"] {
                let pairs = [("page", page), ("limit", "7")]
                    .map(|(name, value)| (name.into(), value.into()));
                all.push(answer_text(store.list(tenant, check_list(pairs).unwrap()).await));
            }
            for key in 1..40 {
                all.push(answer_text(store.idempotency_record(&record(tenant, key).key).await));
            }
            for awb in AWBS {
                let known = store.manifest_inputs(tenant, &Awb::parse(awb).unwrap(), &[]).await;
                all.push(answer_text(known.map(|inputs| inputs.known)));
            }
        }
    }
}

async fn describe_credentials(store: &Store, all: &mut Vec<String>) {
    for number in 1..12_u8 {
        let hash = [number; 32];
        let [key, carrier] = ["key", "car"].map(|kind| format!("{kind}_{number}"));
        all.push(key_text::<ApiKeyScope>(store.credential(&key).await.unwrap()));
        all.push(key_text::<CarrierScope>(store.credential(&carrier).await.unwrap()));
        all.push(key_text::<AdminScope>(store.credential_by_hash(&hash).await.unwrap()));
        all.push(answer_text(store.session(&hash).await));
        let (event, carrier) = (format!("evt-{number}"), CarrierRowId(1));
        all.push(answer_text(store.has_carrier_event(carrier, &event).await));
    }
    for keys in [store.api_keys(AccountRowId(1)).await, store.credentials::<ApiKeyScope>().await] {
        all.extend(keys.unwrap().into_iter().map(|key| key_text(Some(key))));
    }
    let changed = store.credentials_since::<ApiKeyScope>(ALL_CREDENTIALS).await.unwrap();
    all.push(format!("{} {}", changed.version, changed.credentials.len()));
    for name in ACCOUNTS {
        all.push(format!("{:?}", store.login(name).await.unwrap().map(|login| login.password)));
    }
}

fn new_credential<S>(number: u8, scope: S) -> NewCredential<S> {
    let kind = std::any::type_name::<S>();
    let prefix = if kind.contains("Environment") { "car" } else { "key" };
    NewCredential {
        id: format!("{prefix}_{number}"),
        name: format!("Łódź ✓ {number}"),
        hash: [number; 32],
        last4: "wXyZ".to_owned(),
        created_at: NOW,
        scope,
    }
}

async fn describe_endpoint(store: &Store, tenant: Tenant, now: Millis) -> String {
    let endpoint = store.endpoint(tenant).await.unwrap().map(|endpoint| {
        // The signatures identify the secrets, including the old ones that still sign.
        let signed = endpoint.sign("evt_1", now, b"{}");
        format!("{} {:?} {signed} {:?}", endpoint.url, endpoint.kinds, endpoint.disabled)
    });
    let (missed, off) = (store.has_missed(tenant).await, store.disabled_endpoint(tenant).await);
    let log = answer_text(store.deliveries(tenant, 5).await);
    let mails = answer_text(store.failed_mails(tenant, Millis(0)).await);
    format!("{endpoint:?} {} {} {log} {mails}", answer_text(missed), answer_text(off))
}
