//! The errors of attempts to send an e-mail, and what they mean for the e-mail and its address.

use std::fmt;

use lettre::transport::smtp::Error;
use parcelo_domain::mail::MailOutcome;

/// The stage that an attempt has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SmtpStage {
    /// Connecting, greeting and TLS.
    #[default]
    Connect,
    /// Authentication.
    Login,
    /// `MAIL FROM`.
    Sender,
    /// `RCPT TO`.
    Recipient,
    /// `DATA`.
    Data,
    /// The message, and the reply to its final dot.
    Message,
}

/// The reason why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SmtpError {
    /// The relay refused a command.
    Rejected(SmtpStage, Reply),
    /// The connection failed or was lost, or no response came in time. After the message, the e-mail may have arrived.
    ConnectionLost(SmtpStage),
    /// The relay offers no STARTTLS, its certificate is not trusted, or it offers no login that we support.
    Insecure,
    /// No message can be built for the address, or the relay does not support such addresses.
    UnusableAddress,
}

/// A negative reply: its code, and the subject and detail of its enhanced code (RFC 3463).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The reply code, 4xx or 5xx.
    pub(crate) code: u16,
    /// Subject and detail: `5.1.1` is `(1, 1)`.
    pub(crate) enhanced: Option<(u16, u16)>,
}

impl Reply {
    pub(super) fn from_error(error: &Error) -> Option<Self> {
        let code = error.status()?.into();
        let text = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        Some(Self { code, enhanced: parse_enhanced_code(&text) })
    }

    const fn is_permanent(self) -> bool {
        self.code >= 500
    }

    /// Returns `true` if the address itself is refused. A relay that refuses all our e-mails also replies 550, but no
    /// address may be given up for that.
    const fn is_address_refused(self) -> bool {
        match self.enhanced {
            // 5.1: addressing; 5.2.1: a mailbox that is disabled. 5.1.7 and 5.1.8 are about the sender's address.
            Some((1, detail)) => !matches!(detail, 7 | 8),
            Some((subject, detail)) => subject == 2 && detail == 1,
            None => matches!(self.code, 550 | 551 | 553),
        }
    }
}

/// Returns the subject and detail of the enhanced code at the beginning of a reply's text.
pub(super) fn parse_enhanced_code(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split_whitespace().next()?.split('.').map(str::parse::<u16>);
    let (class, subject, detail) =
        (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    (matches!(class, 4 | 5) && numbers.next().is_none()).then_some((subject, detail))
}

impl SmtpError {
    /// Returns the outcome of the e-mail.
    pub(crate) const fn outcome(self) -> MailOutcome {
        match self {
            Self::Rejected(SmtpStage::Recipient, reply)
                if reply.is_permanent() && reply.is_address_refused() =>
            {
                MailOutcome::Bounced
            }
            // The relay has read the message: it would refuse it again tomorrow.
            Self::Rejected(SmtpStage::Data | SmtpStage::Message, reply) if reply.is_permanent() => {
                MailOutcome::Refused
            }
            Self::UnusableAddress => MailOutcome::Refused,
            // A relay that is down, full or misconfigured will be repaired. After the message stage, it is unknown
            // whether the e-mail arrived; the same Message-ID lets the receiving side recognise a duplicate.
            Self::Rejected(..) | Self::ConnectionLost(_) | Self::Insecure => MailOutcome::Failed,
        }
    }

    /// Returns `true` if the relay cannot be used for any e-mail.
    pub(crate) const fn is_relay_unavailable(self) -> bool {
        matches!(
            self,
            Self::Insecure
                | Self::Rejected(SmtpStage::Connect | SmtpStage::Login | SmtpStage::Sender, _)
                | Self::ConnectionLost(SmtpStage::Connect | SmtpStage::Login)
        )
    }
}

/// Writes the error for the log, without the address and without the relay's text.
impl fmt::Display for SmtpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(stage, Reply { code, enhanced: None }) => {
                write!(f, "{code} at {stage}")
            }
            Self::Rejected(stage, Reply { code, enhanced: Some((subject, detail)) }) => {
                write!(f, "{code} {}.{subject}.{detail} at {stage}", code / 100)
            }
            Self::ConnectionLost(stage) => write!(f, "no answer at {stage}"),
            Self::Insecure => f.write_str(
                "no STARTTLS, a certificate that is not trusted, or no login by PLAIN or LOGIN",
            ),
            Self::UnusableAddress => f.write_str("an address that no e-mail can be sent to"),
        }
    }
}

impl fmt::Display for SmtpStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "the connection",
            Self::Login => "the login",
            Self::Sender => "MAIL FROM",
            Self::Recipient => "RCPT TO",
            Self::Data => "DATA",
            Self::Message => "the message",
        })
    }
}
