//! E-mails about parcels: their text, and when they are handed to a transport. [`parcelo_domain::mail`] decides what
//! triggers an e-mail, when it is due and what its outcome means; the store keeps the e-mails that are due.

pub mod allow_list;
mod compose;
mod names;
mod sender;
mod texts;

use std::fmt;

use parcelo_domain::Millis;
use parcelo_types::Language;

pub(crate) use compose::{MailSource, compose};
pub use sender::{MailSender, MailTransport, SandboxRecipients};

/// An e-mail, ready to be sent. `Debug` shows neither address nor text.
#[derive(Clone, PartialEq, Eq)]
pub struct Mail {
    /// The part of its Message-ID before the `@`.
    pub id: String,
    /// The address of the recipient.
    pub to: String,
    /// The subject.
    pub subject: String,
    /// The plain text.
    pub text: String,
    /// The same as HTML.
    pub html: String,
    /// The language of both.
    pub language: Language,
    /// The link that unsubscribes by a POST.
    pub unsubscribe_url: String,
    /// The time at which it was composed.
    pub at: Millis,
}

impl fmt::Debug for Mail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mail").field("id", &self.id).finish_non_exhaustive()
    }
}
