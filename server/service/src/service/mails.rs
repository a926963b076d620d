//! E-mails: due ones are leased, checked again and passed to the sender with their data; the outcome is evaluated and
//! stored.

use std::sync::atomic::Ordering;

use parcelo_domain::{
    Millis, ParcelRow, Shop,
    mail::{
        DropReason, MailLease, MailOutcome, MailRecipient, OptOut, RETENTION_MILLIS, decide,
        is_within_limits, reason_to_drop,
    },
    unsubscribe,
};
use parcelo_store::StoreError;
use parcelo_types::{Environment, OrderRequest};

use super::{Refusal, Service};

/// The time from which changes send e-mails while e-mails are off: later than any change.
pub(super) const MAILS_OFF: i64 = i64::MAX;

/// A leased e-mail with the data from which it is composed. `Debug` shows only its lease.
#[derive(Clone)]
pub struct MailToSend {
    pub lease: MailLease,
    /// The keyed hash of the account and the recipient's address.
    hash: [u8; 32],
    pub address: String,
    pub parcel: ParcelRow,
    pub order: OrderRequest,
    pub shop: Shop,
    pub message_id: String,
    pub unsubscribe_url: String,
}

/// The result of preparing an e-mail: its data, or the reason why it is dropped, with its environment if known.
type PrepareMailResult = Result<MailToSend, (DropReason, Option<Environment>)>;

impl std::fmt::Debug for MailToSend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MailToSend").field(&self.lease).finish()
    }
}

impl Service {
    /// Turns e-mails on, and returns the time from which changes send them: the first time they were turned on. Older
    /// parcels never send any.
    pub async fn enable_mails(&self, now: Millis) -> Result<Millis, Refusal> {
        let since = self.store.mail_since(now).await?;
        self.mails_since.store(since.0, Ordering::Relaxed);
        self.store.send_mails();
        Ok(since)
    }

    /// Returns `true` if e-mails are turned on.
    pub fn is_mail_enabled(&self) -> bool {
        self.mails_since.load(Ordering::Relaxed) != MAILS_OFF
    }

    /// Leases up to `max` due e-mails, and settles those that must not be sent. An empty list means that none is due.
    pub async fn lease_due_mails(&self, max: usize) -> Result<Vec<MailToSend>, Refusal> {
        loop {
            let leased = self.store.lease_mails(self.now(), max).await?;
            if leased.is_empty() {
                return Ok(Vec::new());
            }
            let mut ready = Vec::with_capacity(leased.len());
            for lease in leased {
                match self.prepare_mail(&lease).await? {
                    Ok(mail) => ready.push(mail),
                    Err((reason, environment)) => {
                        self.store_decision(&lease, environment, MailOutcome::Dropped(reason))
                            .await?;
                    }
                }
            }
            if !ready.is_empty() {
                return Ok(ready);
            }
        }
    }

    /// Loads the data of an e-mail, or returns the reason why it must not be sent.
    async fn prepare_mail(&self, lease: &MailLease) -> Result<PrepareMailResult, Refusal> {
        let found = match self.store.parcel_in_row(lease.parcel).await {
            // Damage is reported where parcels are read. Without the parcel there is nothing to write.
            Err(StoreError::Damaged { .. }) => None,
            found => found?,
        };
        // A reset or a purge has deleted the parcel.
        let Some((parcel, order)) = found else { return Ok(Err((DropReason::Superseded, None))) };
        let parcel = self.bring_up_to_date(parcel).await?;
        let environment = parcel.tenant.environment;
        let (hash, address) = match self.find_recipient(lease, &parcel, &order).await? {
            Ok(recipient) => recipient,
            Err(reason) => return Ok(Err((reason, Some(environment)))),
        };
        let (site, secrets) = (self.settings.site(environment), self.secrets());
        let message_id = secrets.message_id(parcel.id, lease.sequence, lease.recipient.number());
        let unsubscribe_url = unsubscribe::unsubscribe_url(site, secrets, &hash);
        let shop = self.store.shop(parcel.tenant.account).await?;
        let lease = lease.clone();
        Ok(Ok(MailToSend {
            lease,
            hash,
            address,
            parcel,
            order: order.order,
            shop,
            message_id,
            unsubscribe_url,
        }))
    }

    /// Returns the keyed hash and the address of the recipient, or the reason why the e-mail must not be sent.
    async fn find_recipient(
        &self,
        lease: &MailLease,
        parcel: &ParcelRow,
        order: &OrderRequest,
    ) -> Result<Result<([u8; 32], String), DropReason>, Refusal> {
        let since = Millis(self.mails_since.load(Ordering::Relaxed));
        if let Some(reason) = reason_to_drop(lease, parcel, since) {
            return Ok(Err(reason));
        }
        let account = parcel.tenant.account;
        if self.store.mails_off(account).await?.contains(lease.kind) {
            return Ok(Err(DropReason::SwitchedOff));
        }
        let Some(address) = address(order, lease.recipient) else {
            return Ok(Err(DropReason::NoAddress));
        };
        let hash = self.secrets().hash_mail_address(account, address);
        if self.store.has_opted_out(hash).await? {
            return Ok(Err(DropReason::OptedOut));
        }
        Ok(Ok((hash, address.to_owned())))
    }

    /// Counts an e-mail that is about to be sent. Returns `false` if its address or its tenant has reached a limit.
    /// Further attempts of one e-mail are not counted again.
    pub async fn count_mail(&self, mail: &MailToSend) -> Result<bool, Refusal> {
        if mail.lease.attempt > 1 {
            return Ok(true);
        }
        let now = self.now().0;
        let since = |span: i64| Millis(now - now.rem_euclid(span));
        let key = |address| self.secrets().mail_count_key(mail.parcel.tenant, address);
        let counted =
            [(key(Some(&mail.hash)), since(Millis::DAY)), (key(None), since(Millis::HOUR))];
        let [daily_to_address, hourly_from_tenant] = self.store.count_mail(counted).await?;
        Ok(is_within_limits(daily_to_address, hourly_from_tenant))
    }

    /// Stores the outcome of an attempt, and the decision that follows from it.
    pub async fn settle_mail(
        &self,
        mail: &MailToSend,
        outcome: MailOutcome,
    ) -> Result<(), Refusal> {
        if outcome == MailOutcome::Bounced {
            self.store.opt_out(mail.hash, OptOut::Bounced, self.now()).await?;
        }
        self.store_decision(&mail.lease, Some(mail.parcel.tenant.environment), outcome).await
    }

    /// Stores the decision on an e-mail. The environment is its parcel's, if the parcel still exists.
    async fn store_decision(
        &self,
        lease: &MailLease,
        environment: Option<Environment>,
        outcome: MailOutcome,
    ) -> Result<(), Refusal> {
        let decision = decide(lease.attempt, outcome, self.now());
        if let Some(environment) = environment {
            self.metrics.count_mail(environment, decision.code());
        }
        // If another sender has leased the e-mail meanwhile, that one settles it.
        let _is_ours = self.store.settle_mail(lease.id, lease.number, decision).await?;
        Ok(())
    }

    /// Returns when the next e-mail falls due.
    pub async fn next_mail_due(&self) -> Result<Option<Millis>, Refusal> {
        Ok(self.store.next_mail().await?)
    }

    /// Stops the e-mails of an account to an address, both identified by a keyed hash.
    pub async fn unsubscribe(&self, hash: [u8; 32]) -> Result<(), Refusal> {
        Ok(self.store.opt_out(hash, OptOut::Unsubscribed, self.now()).await?)
    }

    /// Deletes the outcomes of e-mails that are older than 30 days.
    pub async fn purge_mails(&self) -> Result<u64, Refusal> {
        Ok(self.store.purge_mails(self.now().plus(-RETENTION_MILLIS)).await?)
    }
}

/// Returns the e-mail address that the order gives for a recipient.
fn address(order: &OrderRequest, recipient: MailRecipient) -> Option<&str> {
    let address = match recipient {
        MailRecipient::Receiver => &order.receiver.email,
        MailRecipient::Sender => &order.sender.email,
    };
    address.as_deref().map(str::trim).filter(|address| !address.is_empty())
}
