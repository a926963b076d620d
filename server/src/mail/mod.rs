//! E-mails about parcels: their text, the message on the wire, and the sending. [`parcelo_domain::mail`] decides what
//! triggers an e-mail, when it is due and what its outcome means; the store keeps the e-mails that are due.

pub(crate) mod allow_list;
mod compose;
#[cfg(feature = "server")]
mod message;
mod names;
mod sender;
#[cfg(feature = "server")]
pub(crate) mod smtp;
mod texts;

use std::fmt;

use parcelo_domain::Millis;
use parcelo_types::Language;

pub(crate) use compose::{MailSource, compose};
pub(crate) use sender::{MailSender, MailTransport, SandboxRecipients};

/// An e-mail, ready to be sent. `Debug` shows neither address nor text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Mail {
    /// The part of its Message-ID before the `@`.
    pub(crate) id: String,
    pub(crate) to: String,
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) html: String,
    pub(crate) language: Language,
    /// The link that unsubscribes by a POST.
    pub(crate) unsubscribe_url: String,
    /// The time at which it was composed.
    pub(crate) at: Millis,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("id", &self.id).finish_non_exhaustive()
    }
}
