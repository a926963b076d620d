//! The mock server's e-mails, which are kept for tests and not sent.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use chrono::{DateTime, Utc};
use futures_util::{FutureExt, future::BoxFuture};
use parcelo_domain::mail::MailOutcome;
use parcelo_types::internal::time;
use serde::Serialize;

use super::MockServer;
use crate::mail::{Mail, MailTransport};

/// Maximum number of e-mails that are kept, the newest.
const MAX_MAILS: usize = 10_000;

/// An e-mail that the service would have sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReceivedMail {
    /// The part of its Message-ID before the `@`: one for each event and recipient.
    pub id: String,
    /// The time when it was sent, by the server's clock.
    #[serde(serialize_with = "time::serialize")]
    pub at: DateTime<Utc>,
    /// The recipient's address.
    pub to: String,
    /// The subject.
    pub subject: String,
    /// The text.
    pub text: String,
    /// The text as HTML.
    pub html: String,
    /// `en` or `es`.
    pub language: String,
    /// The link of `List-Unsubscribe`: a POST to it stops the e-mails.
    pub unsubscribe_url: String,
}

/// The transport that keeps the e-mails.
#[derive(Debug, Default)]
pub(super) struct MailInbox(Mutex<VecDeque<ReceivedMail>>);

impl MailInbox {
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl MailTransport for MailInbox {
    fn send<'a>(&'a self, mail: &'a Mail) -> BoxFuture<'a, MailOutcome> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() == MAX_MAILS {
            all.pop_front();
        }
        all.push_back(ReceivedMail {
            id: mail.id.clone(),
            at: mail.at.to_utc(),
            to: mail.to.clone(),
            subject: mail.subject.clone(),
            text: mail.text.clone(),
            html: mail.html.clone(),
            language: mail.language.code().to_owned(),
            unsubscribe_url: mail.unsubscribe_url.clone(),
        });
        std::future::ready(MailOutcome::Sent).boxed()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        std::future::ready(()).boxed()
    }
}

impl MockServer {
    /// Returns the e-mails so far, oldest first: those to receivers and senders whose orders have an address. The
    /// newest 10,000 are kept, until [`MockServer::reset`].
    ///
    /// An e-mail is sent a minute after its event, so that a burst of events is one e-mail: move the clock past it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), parcelo::Error> {
    /// use std::time::Duration;
    ///
    /// use parcelo_server::mock::MockServer;
    ///
    /// let server = MockServer::start().await;
    /// let client = server.client(&server.key().issue());
    /// let mut order = MockServer::order("SB-SUCCESS-0001");
    /// order.receiver.email = Some("luis@example.org".into());
    /// client.orders().create(&order).await?;
    /// server.clock().advance(Duration::from_secs(30 * 60)).await;
    /// let mails = server.mails();
    /// assert_eq!(mails.last().unwrap().to, "luis@example.org");
    /// assert_eq!(mails.last().unwrap().subject, "[Sandbox] Su paquete fue entregado: SB-SUCCESS-0001");
    /// # Ok(())
    /// # }
    /// ```
    pub fn mails(&self) -> Vec<ReceivedMail> {
        self.mail_inbox.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
