//! Why an attempt to send an e-mail failed, and what that means for the e-mail and its address.

use std::fmt;

use lettre::transport::smtp::Error;

use crate::domain::mail::MailOutcome;

/// How far an attempt had come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// Connecting, greeting and TLS.
    Connect,
    /// The login.
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

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SmtpFault {
    /// The relay refused.
    Replied(Stage, Reply),
    /// The connection failed, or was lost, or nothing came in time; after the message, it may have arrived.
    Lost(Stage),
    /// The relay offers no STARTTLS, its certificate is not trusted, or it takes no login of ours.
    Insecure,
    /// No message can be made for the address, or the relay takes none of its kind.
    Unusable,
}

/// A refusal: its code, and its enhanced one (RFC 3463) as far as it says what is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reply {
    /// 4xx or 5xx.
    pub(crate) code: u16,
    /// Subject and detail: `5.1.1` is `(1, 1)`.
    pub(crate) enhanced: Option<(u16, u16)>,
}

impl Reply {
    pub(super) fn read(error: &Error) -> Option<Self> {
        let code = error.status()?.into();
        let text = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
        Some(Self { code, enhanced: enhanced(&text) })
    }

    const fn is_permanent(self) -> bool {
        self.code >= 500
    }

    /// Whether the address itself is refused. A relay that wants nothing of ours says 550 as well, and for that no
    /// address must be given up.
    const fn is_about_the_address(self) -> bool {
        match self.enhanced {
            // 5.1: addressing; 5.2.1: a mailbox that takes no messages any more. 5.1.7 and 5.1.8 are about the sender's.
            Some((1, detail)) => !matches!(detail, 7 | 8),
            Some((subject, detail)) => subject == 2 && detail == 1,
            None => matches!(self.code, 550 | 551 | 553),
        }
    }
}

/// The enhanced code with which a reply's text begins.
pub(super) fn enhanced(text: &str) -> Option<(u16, u16)> {
    let mut numbers = text.split_whitespace().next()?.split('.').map(str::parse::<u16>);
    let (class, subject, detail) =
        (numbers.next()?.ok()?, numbers.next()?.ok()?, numbers.next()?.ok()?);
    (matches!(class, 4 | 5) && numbers.next().is_none()).then_some((subject, detail))
}

impl SmtpFault {
    /// What a fault means for its e-mail.
    pub(crate) const fn outcome(self) -> MailOutcome {
        match self {
            Self::Replied(Stage::Recipient, reply)
                if reply.is_permanent() && reply.is_about_the_address() =>
            {
                MailOutcome::Bounced
            }
            // What the relay has read it will not like better tomorrow.
            Self::Replied(Stage::Data | Stage::Message, reply) if reply.is_permanent() => {
                MailOutcome::Refused
            }
            Self::Unusable => MailOutcome::Refused,
            // A relay that is down, full or wrongly set up gets better; after the message it is not known whether it
            // arrived, and the same Message-ID lets the receiver's side see one e-mail in two.
            Self::Replied(..) | Self::Lost(_) | Self::Insecure => MailOutcome::Failed,
        }
    }

    /// Whether the relay as a whole cannot be used, whatever the e-mail.
    pub(crate) const fn is_of_the_relay(self) -> bool {
        matches!(
            self,
            Self::Insecure
                | Self::Replied(Stage::Connect | Stage::Login | Stage::Sender, _)
                | Self::Lost(Stage::Connect | Stage::Login)
        )
    }
}

/// For the log: no address, and nothing that the relay wrote.
impl fmt::Display for SmtpFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replied(stage, Reply { code, enhanced: None }) => {
                write!(f, "{code} at {stage}")
            }
            Self::Replied(stage, Reply { code, enhanced: Some((subject, detail)) }) => {
                write!(f, "{code} {}.{subject}.{detail} at {stage}", code / 100)
            }
            Self::Lost(stage) => write!(f, "no answer at {stage}"),
            Self::Insecure => f.write_str(
                "no STARTTLS, a certificate that is not trusted, or no login by PLAIN or LOGIN",
            ),
            Self::Unusable => f.write_str("an address that no e-mail can be sent to"),
        }
    }
}

impl fmt::Display for Stage {
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
