//! Sends the e-mails that are due: leases them, composes each, passes it to the transport and stores the outcome. The
//! store knows which e-mails are due, the service checks whether they are still worth sending, and the domain evaluates
//! outcomes.
//!
//! A lease lasts two minutes and an attempt at most 45 s. If a lease ends, the process that held it is gone, and the
//! e-mail is due again with the same Message-ID.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use parcelo_domain::{
    Refusal,
    mail::{DropReason, MailOutcome},
};
use parcelo_types::Environment;
use tokio::{sync::Mutex, task::JoinSet};

use super::{Mail, MailSource, allow_list::AllowList, compose};
use crate::service::{MailToSend, Service};

/// Interval between searches for due e-mails. An e-mail has waited a minute for further news of its parcel, so another
/// second is not noticed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A transport that sends e-mails.
pub trait MailTransport: fmt::Debug + Send + Sync {
    /// Sends an e-mail and returns the outcome.
    fn send<'a>(&'a self, mail: &'a Mail) -> BoxFuture<'a, MailOutcome>;

    /// Closes the transport after the last e-mail.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The recipients that the sandbox may write to.
#[derive(Debug)]
pub enum SandboxRecipients {
    /// All recipients: the e-mails go to the inbox of a test.
    Any,
    /// The recipients that the operator lists.
    Listed(AllowList),
}

/// A background sender of due e-mails.
#[derive(Debug)]
pub struct MailSender {
    worker: Arc<MailWorker>,
    /// Maximum number of e-mails in flight.
    max_in_flight: usize,
    /// Held while e-mails are sent, so that [`Self::send_due`] and [`Self::run`] do not overlap.
    send_lock: Mutex<()>,
}

/// The part of [`MailSender`] that sends single e-mails, shared with the tasks that send in parallel.
#[derive(Debug)]
struct MailWorker {
    service: Arc<Service>,
    transport: Arc<dyn MailTransport>,
    sandbox: SandboxRecipients,
}

impl MailSender {
    /// Creates a sender that hands e-mails to a transport.
    pub fn new(
        service: Arc<Service>,
        transport: Arc<dyn MailTransport>,
        sandbox: SandboxRecipients,
        max_in_flight: usize,
    ) -> Self {
        let worker = Arc::new(MailWorker { service, transport, sandbox });
        Self { worker, max_in_flight, send_lock: Mutex::default() }
    }

    /// Sends due e-mails until there are none.
    pub async fn send_due(&self) -> Result<(), Refusal> {
        let _lock = self.send_lock.lock().await;
        loop {
            let due = self.worker.service.lease_due_mails(self.max_in_flight).await?;
            if due.is_empty() {
                return Ok(());
            }
            for mail in due {
                self.worker.send(mail).await;
            }
        }
    }

    /// Sends e-mails as they become due until `stop` resolves, then waits for the e-mails in flight.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let _lock = self.send_lock.lock().await;
        let mut stop = std::pin::pin!(stop);
        let (mut sending, mut ticks) = (JoinSet::new(), tokio::time::interval(POLL_INTERVAL));
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = ticks.tick() => {}
                Some(_done) = sending.join_next() => {}
            }
            // A failure is logged where it happened, and the next tick tries again.
            let free = self.max_in_flight.saturating_sub(sending.len());
            if free > 0
                && let Ok(due) = self.worker.service.lease_due_mails(free).await
            {
                for mail in due {
                    let worker = Arc::clone(&self.worker);
                    sending.spawn(async move { worker.send(mail).await });
                }
            }
        }
        while sending.join_next().await.is_some() {}
        self.worker.transport.close().await;
    }
}

impl MailWorker {
    /// Sends an e-mail and stores the outcome. If that fails, the store logs it, and the e-mail is sent again.
    async fn send(&self, mail: MailToSend) {
        let outcome = self.attempt(&mail).await;
        let _ = self.service.settle_mail(&mail, outcome).await;
    }

    /// Sends an e-mail unless the allow list or a limit forbids it.
    async fn attempt(&self, due: &MailToSend) -> MailOutcome {
        let environment = due.parcel.tenant.environment;
        if let SandboxRecipients::Listed(list) = &self.sandbox
            && environment == Environment::Sandbox
            && !list.allows(&due.address)
        {
            return MailOutcome::Dropped(DropReason::NotAllowed);
        }
        // Check the limits after the list, so that e-mails that may not be sent do not count.
        match self.service.count_mail(due).await {
            Ok(true) => {}
            Ok(false) => return MailOutcome::Dropped(DropReason::TooMany),
            // The database does not respond. The store logs what to do.
            Err(_) => return MailOutcome::Failed,
        }
        let source = MailSource {
            kind: due.lease.kind,
            recipient: due.lease.recipient,
            to: &due.address,
            parcel: &due.parcel,
            order: &due.order,
            shop: &due.shop,
            site: self.service.settings().site(environment),
            message_id: &due.message_id,
            unsubscribe_url: &due.unsubscribe_url,
            now: self.service.now(),
        };
        match compose(&source) {
            Ok(mail) => self.transport.send(&mail).await,
            Err(error) => {
                tracing::error!(%error, "an e-mail could not be written");
                MailOutcome::Failed
            }
        }
    }
}

#[cfg(test)]
mod tests;
