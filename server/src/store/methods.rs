//! The methods that each engine has of its own: what they promise, and that both have them. The others have one body, in the
//! file of their topic beside this one.
//!
//! The promises are kept by the conformance suite, which runs on every engine. A forgotten one is a
//! compile error here.

use parcelo::model::Deleted;

use super::{
    Backlog, CommitOutcome, Engine, EventsToReplay, LeasedBatch, Settled, Store, StoreError,
};
#[cfg(feature = "server")]
use crate::domain::login_throttle::{BegunLogin, LoginAttempt};
use crate::{
    clock::Millis,
    domain::{
        Changes, IdempotencyRecord, RecordKey, Tenant,
        mail::MailLease,
        shared_limit::{Claim, Grant, ServerCount},
        webhooks::{AttemptResult, Lease, OutboxEvent, RetryDecision},
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
    pub async fn meet_servers(&self) -> Result<Option<ServerCount>, StoreError>;

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

    /// Enqueues an event that no change brings about (a test) for the tenant's endpoint.
    pub async fn enqueue(&self, tenant: Tenant, event: OutboxEvent) -> Result<(), StoreError>;

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

    /// Ends every lease: for a server that starts, since no other can hold one.
    pub async fn end_leases(&self, now: Millis) -> Result<(), StoreError>;

    /// Adds up what writes have changed in the counts, unless they did it themselves. Reads show it already.
    pub async fn fold_counts(&self) -> Result<(), StoreError>;

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

    /// Makes deliveries whose last attempt lies in the future due after their own pause from `now`, and
    /// answers how many.
    pub async fn bring_deliveries_forward(&self, now: Millis) -> Result<usize, StoreError>;

    /// Commits changes whole or not at all, with the e-mails that they bring if this process sends any. Once polled they
    /// complete, whatever becomes of this future.
    pub async fn commit(&self, changes: Changes) -> CommitOutcome;

    /// Commits as [`Store::commit`] and returns the body of the idempotency record as it was kept. It is another than was
    /// given in when a generated tracking number was taken.
    pub async fn keep(&self, changes: Changes) -> Result<Vec<u8>, CommitOutcome>;

    /// Leases up to so many e-mails that are due, in one commit: no other sender gets them until the lease ends. Of
    /// those that wait for one recipient of a parcel it is the last; the others are superseded.
    pub async fn lease_mails(&self, now: Millis, most: usize) -> Result<Vec<MailLease>, StoreError>;

    /// Truncates the log if it may hold what was erased, nothing is being erased, and no one reads from it.
    pub async fn truncate_log(&self);
}
