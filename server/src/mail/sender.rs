//! Sends the e-mails that are due: leases them, writes each, hands it to the transport and writes down what came of
//! it. What is due is the store's, whether it is worth sending the service's, what an outcome means the domain's.
//!
//! A lease lasts two minutes and an attempt at most 45 s: when a lease ends, the process that held it is gone, and the
//! e-mail is due again, with the same Message-ID.

use std::{fmt, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use parcelo::Environment;
use tokio::{sync::Mutex, task::JoinSet};

use super::{Mail, MailSource, allow_list::AllowList, compose};
use crate::{
    domain::{
        Refusal,
        mail::{Dropped, MailOutcome},
    },
    service::{MailToSend, Service},
};

/// How often what is due is looked for. An e-mail waits a minute for further news of its parcel, so a second more is
/// not noticed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Takes e-mails to where they are read.
pub(crate) trait MailTransport: fmt::Debug + Send + Sync {
    /// Sends an e-mail; answers what came of it.
    fn send<'a>(&'a self, mail: &'a Mail) -> BoxFuture<'a, MailOutcome>;

    /// Nothing is sent any more.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// To whom the sandbox writes.
#[derive(Debug)]
pub(crate) enum SandboxRecipients {
    /// Anyone: a test's own inbox.
    Everyone,
    /// Those that the operator lists.
    Listed(AllowList),
}

/// Sends what is due.
#[derive(Debug)]
pub(crate) struct MailSender {
    work: Arc<Work>,
    /// E-mails on their way at once.
    most: usize,
    /// One round at a time.
    turn: Mutex<()>,
}

#[derive(Debug)]
struct Work {
    service: Arc<Service>,
    transport: Arc<dyn MailTransport>,
    sandbox: SandboxRecipients,
}

impl MailSender {
    pub(crate) fn new(
        service: Arc<Service>,
        transport: Arc<dyn MailTransport>,
        sandbox: SandboxRecipients,
        most: usize,
    ) -> Self {
        let work = Arc::new(Work { service, transport, sandbox });
        Self { work, most, turn: Mutex::default() }
    }

    /// Sends all that is due, until nothing is.
    pub(crate) async fn send_due(&self) -> Result<(), Refusal> {
        let _turn = self.turn.lock().await;
        loop {
            let due = self.work.service.mails_to_send(self.most).await?;
            if due.is_empty() {
                return Ok(());
            }
            for mail in due {
                self.work.send(mail).await;
            }
        }
    }

    /// Sends whatever falls due until `stop` resolves, then waits for what is on its way.
    pub(crate) async fn run(&self, stop: impl Future<Output = ()>) {
        let _turn = self.turn.lock().await;
        let mut stop = std::pin::pin!(stop);
        let (mut sending, mut ticks) = (JoinSet::new(), tokio::time::interval(POLL_INTERVAL));
        loop {
            tokio::select! {
                () = &mut stop => break,
                _ = ticks.tick() => {}
                Some(_done) = sending.join_next() => {}
            }
            // A failure is logged where it happened, and the next tick tries again.
            let free = self.most.saturating_sub(sending.len());
            if free > 0
                && let Ok(due) = self.work.service.mails_to_send(free).await
            {
                for mail in due {
                    let work = Arc::clone(&self.work);
                    sending.spawn(async move { work.send(mail).await });
                }
            }
        }
        while sending.join_next().await.is_some() {}
        self.work.transport.close().await;
    }
}

impl Work {
    /// A failure to write down what came of it is logged where it happened; the lease ends, and it is sent again.
    async fn send(&self, mail: MailToSend) {
        let outcome = self.attempt(&mail).await;
        let _ = self.service.settle_mail(&mail, outcome).await;
    }

    async fn attempt(&self, due: &MailToSend) -> MailOutcome {
        let environment = due.parcel.tenant.environment;
        if let SandboxRecipients::Listed(list) = &self.sandbox
            && environment == Environment::Sandbox
            && !list.allows(&due.address)
        {
            return MailOutcome::Dropped(Dropped::NotAllowed);
        }
        // After the list: what may not be sent takes nothing from the share of what may.
        match self.service.count_mail(due).await {
            Ok(true) => {}
            Ok(false) => return MailOutcome::Dropped(Dropped::TooMany),
            // The database does not answer; what is to be done is logged there.
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
