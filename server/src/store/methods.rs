//! Every method of the store, once: what it promises, and that each engine has it.
//!
//! The promises are kept by the conformance suite, which runs on every engine. A forgotten one is a
//! compile error here.

use std::collections::HashMap;

use parcelo::{
    Awb, Environment, TrackingNumber,
    model::{Deleted, Manifest},
    rules::ListQuery,
    webhook::Secret,
};
use ulid::Ulid;

use super::{
    Backlog, CommitOutcome, CreationRecord, CredentialChanges, Engine, EventsToReplay, LeasedBatch,
    ManifestInputs, SearchPage, Settled, Store, StoreError, StoredScope,
};
#[cfg(feature = "server")]
use crate::domain::login_throttle::{BegunLogin, LoginAttempt};
use crate::{
    clock::Millis,
    domain::{
        AccountRecord, AccountRowId, ApiKeyRecord, CarrierRowId, Changes, Event, IdempotencyRecord,
        NewCredential, ParcelListRow, ParcelRow, ParcelRowId, RecordKey, Shop, StoredOrder, Tenant,
        activity::ParcelCount,
        audit::{AuditEntry, Author},
        carrier::LoggedException,
        credentials::{Credential, NewSecret},
        key_uses::LastUses,
        legacy::Uses,
        mail::{LoggedMail, MailDecision, MailLease, MailsOff, OptOut},
        search::Search,
        session::{Login, SealedFlash, Session},
        shared_limit::{Claim, Grant, Meeting},
        webhooks::{
            AttemptResult, DisabledBy, Endpoint, EventPayload, Lease, LoggedDelivery, OutboxEvent,
            RetryDecision,
        },
    },
};

/// Makes of each signature a method that hands its arguments to the engine.
macro_rules! methods {
    ($($(#[$doc:meta])* pub async fn $name:ident$(<$scope:ident: $bound:ident>)?(
        &self $(, $given:ident: $type:ty)*
    ) $(-> $answer:ty)?;)+) => {
        impl Store {$(
            $(#[$doc])*
            pub async fn $name$(<$scope: $bound>)?(&self $(, $given: $type)*) $(-> $answer)? {
                let call = async {
                    match &self.0 {
                        Engine::Sqlite(engine) => engine.$name$(::<$scope>)?($($given),*).await,
                        #[cfg(feature = "postgres")]
                        Engine::Postgres(engine) => engine.$name$(::<$scope>)?($($given),*).await,
                    }
                };
                #[cfg(test)]
                let call = super::delays::around(stringify!($name), call);
                call.await
            }
        )+}
    };
}

methods! {
    /// Whether the database has no account yet.
    pub async fn is_new(&self) -> Result<bool, StoreError>;

    /// True for the one caller that is to furnish a new database, however many servers start on it at once.
    pub async fn claim_new(&self) -> Result<bool, StoreError>;

    /// The account with a name; it is made, as `public_id`, if it does not exist.
    pub async fn account(&self, name: &str, public_id: String, now: Millis) -> Result<AccountRowId, StoreError>;

    /// The account with a name.
    pub async fn account_named(&self, name: &str) -> Result<Option<AccountRowId>, StoreError>;

    /// An account that is known to exist.
    pub async fn account_record(&self, account: AccountRowId) -> Result<AccountRecord, StoreError>;

    /// Every account, oldest first.
    pub async fn accounts(&self) -> Result<Vec<AccountRecord>, StoreError>;

    /// What receivers see of an account; nothing until it is set.
    pub async fn shop(&self, account: AccountRowId) -> Result<Shop, StoreError>;

    /// Sets what receivers see of an account.
    pub async fn set_shop(&self, account: AccountRowId, shop: &Shop, by: &Author) -> Result<(), StoreError>;

    /// The latest entries of the audit log since a moment, newest first: one account's, or all.
    pub async fn audit_log(&self, account: Option<AccountRowId>, since: Millis, most: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Deletes the entries of `before` and earlier, page by page, and answers how many.
    pub async fn purge_audit_log(&self, before: Millis) -> Result<u64, StoreError>;

    /// Whether an event of a carrier was taken before.
    pub async fn has_seen(&self, carrier: CarrierRowId, event_id: &str) -> Result<bool, StoreError>;

    /// The latest refused carrier events on a tenant's parcels, newest first.
    pub async fn carrier_exceptions(&self, tenant: Tenant, most: u32) -> Result<Vec<LoggedException>, StoreError>;

    /// Keeps a new credential.
    pub async fn insert_credential<S: StoredScope>(&self, new: NewCredential<S::New>, by: &Author) -> Result<Credential<S>, StoreError>;

    /// The credential with an id, revoked or not.
    pub async fn credential<S: StoredScope>(&self, id: &str) -> Result<Option<Credential<S>>, StoreError>;

    /// The credential whose present secret has this hash, revoked or not.
    pub async fn credential_by_hash<S: StoredScope>(&self, hash: &[u8; 32]) -> Result<Option<Credential<S>>, StoreError>;

    /// Every credential of a kind, oldest first, revoked or not.
    pub async fn credentials<S: StoredScope>(&self) -> Result<Vec<Credential<S>>, StoreError>;

    /// The API or carrier keys that were made, given a new secret, or revoked after `version`. When there
    /// are none it costs one look into an index.
    pub async fn credentials_since<S: StoredScope>(&self, version: i64) -> Result<CredentialChanges<Credential<S>>, StoreError>;

    /// Revokes a credential with all its secrets; a second time changes nothing. None if it is unknown.
    pub async fn revoke_credential<S: StoredScope>(&self, id: &str, now: Millis, by: &Author) -> Result<Option<Credential<S>>, StoreError>;

    /// An account's API keys, newest first, revoked or not.
    pub async fn keys_of(&self, account: AccountRowId) -> Result<Vec<ApiKeyRecord>, StoreError>;

    /// Gives an API key a new secret; old ones keep working as long as it says. One that is
    /// revoked stays as it is. None if no key has the id.
    pub async fn rotate_key(&self, id: &str, secret: NewSecret, by: &Author) -> Result<Option<ApiKeyRecord>, StoreError>;

    /// The events that have not reached their endpoints yet, tenant by tenant.
    pub async fn backlogs(&self) -> Result<Vec<Backlog>, StoreError>;

    /// Writes down an attempt and what it means for the event, its successors and the endpoint. When the
    /// event was replayed or its endpoint replaced meanwhile, the attempt is logged and means nothing;
    /// when the event is deleted, there is nothing to log it for.
    pub async fn settle(&self, lease: Lease, outcome: AttemptResult, decision: RetryDecision) -> Result<Settled, StoreError>;

    /// Sends what waits for an earlier event that its parcel does not have, and answers how many events: with
    /// several servers a net under their locks. Each call goes through a part of what waits.
    pub async fn release_stranded(&self, now: Millis) -> Result<u64, StoreError>;

    /// Deletes a leased event that has nothing left to tell, with its log.
    pub async fn forget(&self, lease: Lease) -> Result<(), StoreError>;

    /// Deletes what came about at `before` or earlier, with its log, page by page.
    pub async fn purge_outbox(&self, before: Millis) -> Result<usize, StoreError>;

    /// Takes what is asked for from the limits that servers share; a grant for each claim, in their order.
    pub async fn claim_requests(&self, claims: Vec<Claim>) -> Result<Vec<Grant>, StoreError>;

    /// Says that this server is there, and answers how many are; none when no other can be.
    pub async fn meet_servers(&self) -> Result<Option<Meeting>, StoreError>;

    /// Lets an attempt to sign in through, or says how many seconds it has to wait. It counts as a failure, on
    /// every server, until it is taken back.
    #[cfg(feature = "server")]
    pub async fn begin_login(&self, attempt: LoginAttempt<'_>, now: Millis) -> Result<Result<BegunLogin, u32>, StoreError>;

    /// The attempt did not fail, or its outcome is unknown.
    #[cfg(feature = "server")]
    pub async fn take_back_login(&self, begun: BegunLogin) -> Result<(), StoreError>;

    /// The sign-in succeeded: further attempts from there are counted apart.
    #[cfg(feature = "server")]
    pub async fn remember_login(&self, attempt: LoginAttempt<'_>, now: Millis) -> Result<(), StoreError>;

    /// Keeps a sealed flash for a session's page.
    pub async fn leave_flash(&self, session: [u8; 32], page: &'static str, flash: SealedFlash) -> Result<(), StoreError>;

    /// Takes the flashes of a session's page, oldest first: no one else gets them.
    pub async fn take_flashes(&self, session: [u8; 32], page: &'static str) -> Result<Vec<SealedFlash>, StoreError>;

    /// The tenant's latest events and their attempts, newest first.
    pub async fn deliveries(&self, tenant: Tenant, most: usize) -> Result<Vec<LoggedDelivery>, StoreError>;

    /// The same after the `skipped` latest.
    pub async fn older_deliveries(&self, tenant: Tenant, skipped: usize, most: usize) -> Result<Vec<LoggedDelivery>, StoreError>;

    /// True when an event of the tenant's failed or is held.
    pub async fn has_missed(&self, tenant: Tenant) -> Result<bool, StoreError>;

    /// The tenant's endpoint.
    pub async fn endpoint(&self, tenant: Tenant) -> Result<Option<Endpoint>, StoreError>;

    /// Sets the tenant's endpoint up, or changes it; one that exists keeps its secret, by which the
    /// caller can tell. It is on from here on.
    pub async fn set_endpoint(&self, endpoint: Endpoint, by: &Author) -> Result<Endpoint, StoreError>;

    /// Gives the tenant's endpoint a new secret; the one before signs beside it for a while.
    pub async fn rotate_secret(&self, tenant: Tenant, secret: Secret, now: Millis, by: &Author) -> Result<(), StoreError>;

    /// Sends to the tenant's endpoint from here on; what was held stays held until it is replayed.
    pub async fn enable_endpoint(&self, tenant: Tenant, by: &Author) -> Result<(), StoreError>;

    /// Sends nothing to the tenant's endpoint from here on: its events are held.
    pub async fn disable_endpoint(&self, tenant: Tenant, why: DisabledBy, by: &Author) -> Result<(), StoreError>;

    /// The same for every endpoint that is off: a server before this one may have ended between two pages.
    pub async fn hold_all(&self) -> Result<(), StoreError>;

    /// Why nothing is sent to the tenant's endpoint, when it is off, and how many events are held.
    pub async fn switched_off(&self, tenant: Tenant) -> Result<Option<(DisabledBy, i64)>, StoreError>;

    /// Removes the tenant's endpoint; what was still to be sent is held, for one that may come.
    pub async fn remove_endpoint(&self, tenant: Tenant, by: &Author) -> Result<(), StoreError>;

    /// Enqueues an event that no change brings about (a test) for the tenant's endpoint.
    pub async fn enqueue(&self, tenant: Tenant, event: OutboxEvent) -> Result<(), StoreError>;

    /// Whether an event is, or was, for the tenant's endpoint.
    pub async fn has_event(&self, tenant: Tenant, event: Ulid) -> Result<bool, StoreError>;

    /// Sends events again, at most 250 a commit and first the first, and answers how many. It stops when
    /// the endpoint is turned off.
    pub async fn replay(&self, tenant: Tenant, what: EventsToReplay, now: Millis) -> Result<usize, StoreError>;

    /// Deletes what all sandboxes have from `before` and earlier, page by page.
    pub async fn purge(&self, before: Millis) -> Result<Deleted, StoreError>;

    /// Resolves when an event was enqueued, or had been since the last call.
    pub async fn outbox_changed(&self);

    /// Up to `most` tenants to whose endpoints something is to be sent, who waits longest first.
    pub async fn tenants_with_due(&self, now: Millis, most: usize) -> Result<Vec<Tenant>, StoreError>;

    /// When the next delivery is due.
    pub async fn next_delivery(&self) -> Result<Option<Millis>, StoreError>;

    /// Leases up to so many due events of each tenant, in one commit: no other sender gets them until the
    /// lease ends. Rows that cannot be read are set aside, so that they hold up no others.
    pub async fn lease(&self, shares: Vec<(Tenant, usize)>, now: Millis) -> Result<LeasedBatch, StoreError>;

    /// What the body of a leased event says; none when its parcel or manifest is deleted.
    pub async fn payload(&self, lease: &Lease) -> Result<Option<EventPayload>, StoreError>;

    /// The same of an event of the tenant's, leased or not; none when there is no such event either.
    #[cfg(feature = "server")]
    pub async fn logged_payload(&self, tenant: Tenant, event: Ulid) -> Result<Option<EventPayload>, StoreError>;

    /// Ends every lease: for a server that starts, since no other can hold one.
    pub async fn end_leases(&self, now: Millis) -> Result<(), StoreError>;

    /// Adds requests by key (its row) and day (since 1970 began). It waits until it is known whether they
    /// were added: after an error they were not, and can be added again.
    pub async fn add_legacy_uses(&self, counted: HashMap<(i64, i64), u64>) -> Result<(), StoreError>;

    /// All that was counted, the latest day first.
    pub async fn legacy_uses(&self) -> Result<Vec<Uses>, StoreError>;

    /// The same of one account's keys.
    pub async fn legacy_uses_of(&self, account: AccountRowId) -> Result<Vec<Uses>, StoreError>;

    /// Notes the last days on which keys were used; an earlier day than is known changes nothing.
    pub async fn keep_key_uses(&self, days: LastUses) -> Result<(), StoreError>;

    /// The last day of each of an account's keys that was ever used.
    pub async fn key_uses(&self, account: AccountRowId) -> Result<LastUses, StoreError>;

    /// A page of a tenant's parcels, newest first, and how many the whole list has. What cannot be read is
    /// left out, logged and counted.
    pub async fn list(&self, tenant: Tenant, query: ListQuery) -> Result<(Vec<ParcelListRow>, u64), StoreError>;

    /// A page of a tenant's parcels that a search finds, newest first, how many it finds, and whether there may be more.
    pub async fn search(&self, tenant: Tenant, query: ListQuery, search: Search) -> Result<SearchPage, StoreError>;

    /// Does a page of the work on the search's index: adds parcels, merges runs. Says whether there is more to do.
    pub async fn tend_search(&self) -> Result<bool, StoreError>;

    /// Adds up what writes have changed in the counts, unless they did it themselves. Reads show it already.
    pub async fn fold_counts(&self) -> Result<(), StoreError>;

    /// Counts a tenant's parcels that were created on that day or later, by day, state and country.
    pub async fn activity(&self, tenant: Tenant, first: i64) -> Result<Vec<ParcelCount>, StoreError>;

    /// What a manifest under an air waybill, of parcels with these numbers, is decided on.
    pub async fn for_manifest(&self, tenant: Tenant, awb: &Awb, numbers: &[String]) -> Result<ManifestInputs, StoreError>;

    /// The air waybill that a version of a parcel's label names: the parcel was put under it before.
    pub async fn awb_on(&self, parcel: ParcelRowId, version: u32) -> Result<Option<String>, StoreError>;

    /// One of the tenant's manifests.
    pub async fn manifest(&self, tenant: Tenant, id: Ulid) -> Result<Option<Manifest>, StoreError>;

    /// The parcel with a number, in any case, whosever it is: the caller checks the tenant.
    pub async fn parcel(&self, environment: Environment, number: &TrackingNumber) -> Result<Option<ParcelRow>, StoreError>;

    /// As [`Store::parcel`], with its order.
    pub async fn parcel_with_order(&self, environment: Environment, number: &TrackingNumber) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError>;

    /// The parcel in a row, with its order.
    pub async fn parcel_in_row(&self, parcel: ParcelRowId) -> Result<Option<(ParcelRow, StoredOrder)>, StoreError>;

    /// The whole history of a parcel as of its row, by time, then sequence.
    pub async fn events(&self, parcel: &ParcelRow) -> Result<Vec<Event>, StoreError>;

    /// What every parcel was created by, oldest first.
    pub async fn creations(&self) -> Result<Vec<CreationRecord>, StoreError>;

    /// Up to `most` parcels whose next step is due at `until`, earliest first.
    pub async fn due(&self, until: Millis, most: usize) -> Result<Vec<ParcelRow>, StoreError>;

    /// As [`Store::due`], of one tenant's parcels.
    pub async fn due_of(&self, tenant: Tenant, until: Millis, most: usize) -> Result<Vec<ParcelRow>, StoreError>;

    /// When the next step after a moment is due.
    pub async fn next_due(&self, after: Millis) -> Result<Option<Millis>, StoreError>;

    /// The idempotency record under a key; it may be past its 24 h, which the domain judges.
    pub async fn record(&self, key: &RecordKey) -> Result<Option<IdempotencyRecord>, StoreError>;

    /// Deletes dead idempotency records, page by page, and answers how many.
    pub async fn purge_records(&self, now: Millis) -> Result<u64, StoreError>;

    /// Deletes all data of a sandbox as it is at this moment; its keys and settings stay. Once
    /// polled it completes, whatever becomes of this future.
    pub async fn reset(&self, tenant: Tenant) -> Result<Deleted, StoreError>;

    /// The same for every sandbox, in one commit: for a server of tests.
    pub async fn reset_all(&self) -> Result<Deleted, StoreError>;

    /// Goes on with the resets that a server before this one began.
    pub async fn resume_resets(&self) -> Result<(), StoreError>;

    /// The account with a name and its password's hash; none when it has no password.
    pub async fn login(&self, account: &str) -> Result<Option<Login>, StoreError>;

    /// Gives an account a password; its sessions end.
    pub async fn set_password(&self, account: AccountRowId, hash: String, now: Millis, by: &Author) -> Result<(), StoreError>;

    /// Begins a session in the place of the one before, unless the password has changed since it
    /// was checked; answers whether it has begun.
    pub async fn begin_session(&self, login: Login, session: ([u8; 32], Millis), before: Option<[u8; 32]>) -> Result<bool, StoreError>;

    /// The session with a hash, over or not.
    pub async fn session(&self, hash: &[u8; 32]) -> Result<Option<Session>, StoreError>;

    /// Ends a session, with its flashes.
    pub async fn end_session(&self, hash: [u8; 32]) -> Result<(), StoreError>;

    /// Forgets the flashes that were not looked at.
    pub async fn purge_flashes(&self, now: Millis) -> Result<(), StoreError>;

    /// Forgets the sessions that are over, and failures to sign in that are long ago.
    pub async fn purge_sessions(&self, now: Millis) -> Result<(), StoreError>;

    /// Makes deliveries whose last attempt lies in the future due after their own pause from `now`, and
    /// answers how many.
    pub async fn bring_deliveries_forward(&self, now: Millis) -> Result<usize, StoreError>;

    /// Commits changes whole or not at all, with the e-mails that they bring if this process sends any. Once polled they
    /// complete, whatever becomes of this future.
    pub async fn commit(&self, changes: Changes) -> CommitOutcome;

    /// Commits as [`Store::commit`] and returns the body of the idempotency record as it was kept. It is another than was
    /// given in when a generated tracking number was taken.
    pub async fn keep(&self, changes: Changes) -> Result<Vec<u8>, CommitOutcome>;

    /// Since when e-mails are sent: since now, if they were not.
    pub async fn mail_since(&self, now: Millis) -> Result<Millis, StoreError>;

    /// E-mails are not sent: parcels of before will send none when they are again.
    pub async fn forget_mail_since(&self) -> Result<(), StoreError>;

    /// Leases up to so many e-mails that are due, in one commit: no other sender gets them until the lease ends. Of
    /// those that wait for one recipient of a parcel it is the last; the others are superseded.
    pub async fn lease_mails(&self, now: Millis, most: usize) -> Result<Vec<MailLease>, StoreError>;

    /// When the next e-mail is due.
    pub async fn next_mail(&self) -> Result<Option<Millis>, StoreError>;

    /// Writes down what an attempt under a lease means; false when the e-mail is another sender's by now, or gone.
    pub async fn settle_mail(&self, id: i64, lease: i64, decision: MailDecision) -> Result<bool, StoreError>;

    /// A parcel's e-mails, oldest first.
    pub async fn mails_of_parcel(&self, parcel: ParcelRowId) -> Result<Vec<LoggedMail>, StoreError>;

    /// How many e-mails of a tenant's that came about at `since` or later failed for good, and the latest parcel that has one.
    pub async fn failed_mails(&self, tenant: Tenant, since: Millis) -> Result<(u64, Option<ParcelRowId>), StoreError>;

    /// Adds one to each of two numbers of e-mails, of someone since a moment; answers them.
    pub async fn count_mail(&self, whose: [([u8; 32], Millis); 2]) -> Result<[u32; 2], StoreError>;

    /// Keeps that an address gets no e-mails of an account, by the keyed hash of both; the first reason stays.
    pub async fn opt_out(&self, address: [u8; 32], why: OptOut, now: Millis) -> Result<(), StoreError>;

    /// Whether an address gets no e-mails of an account.
    pub async fn has_opted_out(&self, address: [u8; 32]) -> Result<bool, StoreError>;

    /// The kinds of e-mails that an account has switched off.
    pub async fn mails_off(&self, account: AccountRowId) -> Result<MailsOff, StoreError>;

    /// Switches kinds of e-mails off, and all others on.
    pub async fn set_mails_off(&self, account: AccountRowId, off: MailsOff, by: &Author) -> Result<(), StoreError>;

    /// Forgets e-mails of `before` and earlier, and numbers of then; answers how many e-mails.
    pub async fn purge_mails(&self, before: Millis) -> Result<u64, StoreError>;

    /// Truncates the log if it may hold what was erased, nothing is being erased, and no one reads from it.
    pub async fn truncate_log(&self);
}
