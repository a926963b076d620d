//! E-mails: what is due is leased, looked at once more, and handed to the sender with all that it is written from; what
//! came of it is judged and written down.

use std::sync::atomic::Ordering;

use parcelo::{Environment, OrderRequest};

use super::{Refusal, Service};
use crate::{
    clock::Millis,
    domain::{
        ParcelRow, Shop,
        mail::{
            Dropped, MailLease, MailOutcome, MailRecipient, OptOut, RETENTION, decide, is_outdated,
            is_within_limits,
        },
        unsubscribe,
    },
    store::StoreError,
};

/// No parcel is that young.
pub(super) const NEVER: i64 = i64::MAX;

/// An e-mail that is leased, with all that it is written from. `Debug` shows its lease only.
#[derive(Clone)]
pub(crate) struct MailToSend {
    pub(crate) lease: MailLease,
    /// To whom: the account and the address, as their keyed hash.
    hash: [u8; 32],
    pub(crate) address: String,
    pub(crate) parcel: ParcelRow,
    pub(crate) order: OrderRequest,
    pub(crate) shop: Shop,
    pub(crate) message_id: String,
    pub(crate) unsubscribe_url: String,
}

/// What is to be sent; or why it is not, and where.
type Prepared = Result<MailToSend, (Dropped, Option<Environment>)>;

impl std::fmt::Debug for MailToSend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("MailToSend").field(&self.lease).finish()
    }
}

impl Service {
    /// From here on the changes of parcels bring e-mails; those of parcels that are older than the first time none.
    pub async fn switch_mails_on(&self, now: Millis) -> Result<Millis, Refusal> {
        let since = self.store.mail_since(now).await?;
        self.mails_since.store(since.0, Ordering::Relaxed);
        self.store.send_mails();
        Ok(since)
    }

    /// Whether e-mails are sent.
    pub(crate) fn sends_mails(&self) -> bool {
        self.mails_since.load(Ordering::Relaxed) != NEVER
    }

    /// Leases up to so many e-mails that are due; those that are not to be sent are settled at once. None is left when
    /// it answers with none.
    pub(crate) async fn mails_to_send(&self, most: usize) -> Result<Vec<MailToSend>, Refusal> {
        loop {
            let leased = self.store.lease_mails(self.now(), most).await?;
            if leased.is_empty() {
                return Ok(Vec::new());
            }
            let mut ready = Vec::with_capacity(leased.len());
            for lease in leased {
                match self.prepared(&lease).await? {
                    Ok(mail) => ready.push(mail),
                    Err((why, environment)) => {
                        self.write_down(&lease, environment, MailOutcome::Dropped(why)).await?;
                    }
                }
            }
            if !ready.is_empty() {
                return Ok(ready);
            }
        }
    }

    /// All that an e-mail is written from, or why it is not to be sent.
    async fn prepared(&self, lease: &MailLease) -> Result<Prepared, Refusal> {
        let found = match self.store.parcel_in_row(lease.parcel).await {
            // It is reported where parcels are read; an e-mail about it would be a guess.
            Err(StoreError::Damaged { .. }) => None,
            found => found?,
        };
        // A reset or a purge has taken it.
        let Some((parcel, order)) = found else { return Ok(Err((Dropped::Superseded, None))) };
        let parcel = self.up_to_date(parcel).await?;
        let environment = parcel.tenant.environment;
        let (hash, address) = match self.recipient(lease, &parcel, &order).await? {
            Ok(recipient) => recipient,
            Err(why) => return Ok(Err((why, Some(environment)))),
        };
        let (site, secrets) = (self.settings.site(environment), self.secrets());
        let message_id = secrets.message_id(parcel.id, lease.sequence, lease.recipient.number());
        let unsubscribe_url = unsubscribe::url(site, secrets, &hash);
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

    /// The keyed hash and the address of who gets the e-mail, or why it gets none.
    async fn recipient(
        &self,
        lease: &MailLease,
        parcel: &ParcelRow,
        order: &OrderRequest,
    ) -> Result<Result<([u8; 32], String), Dropped>, Refusal> {
        let since = Millis(self.mails_since.load(Ordering::Relaxed));
        if let Some(why) = is_outdated(lease, parcel, since) {
            return Ok(Err(why));
        }
        let account = parcel.tenant.account;
        if self.store.mails_off(account).await?.contains(lease.kind) {
            return Ok(Err(Dropped::SwitchedOff));
        }
        let Some(address) = address(order, lease.recipient) else {
            return Ok(Err(Dropped::NoAddress));
        };
        let hash = self.secrets().hash_of_mail_address(account, address);
        if self.store.has_opted_out(hash).await? {
            return Ok(Err(Dropped::OptedOut));
        }
        Ok(Ok((hash, address.to_owned())))
    }

    /// Counts an e-mail that is about to be sent; false when its address or its tenant has had its share. Further
    /// attempts of one e-mail are not counted again.
    pub(crate) async fn count_mail(&self, mail: &MailToSend) -> Result<bool, Refusal> {
        if mail.lease.attempt > 1 {
            return Ok(true);
        }
        let now = self.now().0;
        let since = |span: i64| Millis(now - now.rem_euclid(span));
        let whose = |address| self.secrets().hash_of_mail_count(mail.parcel.tenant, address);
        let counted =
            [(whose(Some(&mail.hash)), since(Millis::DAY)), (whose(None), since(Millis::HOUR))];
        let [to_address, of_tenant] = self.store.count_mail(counted).await?;
        Ok(is_within_limits(to_address, of_tenant))
    }

    /// Writes down what came of an e-mail.
    pub(crate) async fn settle_mail(
        &self,
        mail: &MailToSend,
        outcome: MailOutcome,
    ) -> Result<(), Refusal> {
        if outcome == MailOutcome::Bounced {
            self.store.opt_out(mail.hash, OptOut::Bounced, self.now()).await?;
        }
        self.write_down(&mail.lease, Some(mail.parcel.tenant.environment), outcome).await
    }

    /// The environment is that of its parcel, if there still is one.
    async fn write_down(
        &self,
        lease: &MailLease,
        environment: Option<Environment>,
        outcome: MailOutcome,
    ) -> Result<(), Refusal> {
        let decision = decide(lease.attempt, outcome, self.now());
        if let Some(environment) = environment {
            self.metrics.mailed(environment, decision.code());
        }
        // One that is another sender's by now is that one's to settle.
        let _is_ours = self.store.settle_mail(lease.id, lease.number, decision).await?;
        Ok(())
    }

    /// When the next e-mail falls due.
    pub(crate) async fn next_mail(&self) -> Result<Option<Millis>, Refusal> {
        Ok(self.store.next_mail().await?)
    }

    /// Stops the e-mails of an account to an address, both known by their keyed hash.
    pub(crate) async fn unsubscribe(&self, hash: [u8; 32]) -> Result<(), Refusal> {
        Ok(self.store.opt_out(hash, OptOut::Unsubscribed, self.now()).await?)
    }

    /// Forgets what became of e-mails after 30 days.
    pub(crate) async fn purge_mails(&self) -> Result<u64, Refusal> {
        Ok(self.store.purge_mails(self.now().plus(-RETENTION)).await?)
    }
}

/// The address of a recipient, as the order has it.
fn address(order: &OrderRequest, recipient: MailRecipient) -> Option<&str> {
    let address = match recipient {
        MailRecipient::Receiver => &order.receiver.email,
        MailRecipient::Sender => &order.sender.email,
    };
    address.as_deref().map(str::trim).filter(|address| !address.is_empty())
}
