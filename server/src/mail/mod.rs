//! E-mails about parcels: what they say, the message that goes out, and how it is sent. What brings an e-mail, when it
//! is due and what came of it is decided in [`crate::domain::mail`]; what is due is the store's.

pub(crate) mod allow_list;
mod compose;
#[cfg(feature = "server")]
mod message;
mod names;
mod sender;
#[cfg(feature = "server")]
pub(crate) mod smtp;
mod words;

use std::fmt;

use parcelo::Language;

use crate::clock::Millis;
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
    /// Where a POST unsubscribes.
    pub(crate) unsubscribe_url: String,
    /// When it was written.
    pub(crate) at: Millis,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("id", &self.id).finish_non_exhaustive()
    }
}
