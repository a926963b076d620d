//! Failures: message, remedy and exit code of a run that failed completely or in part.

use std::{fmt::Display, io, process::ExitCode};

use parcelo::{
    ErrorCode, IdempotencyKey, TrackingNumber,
    model::{FieldFault, RequestId, Unreadable, Warning},
};

use crate::{
    resume::ResumeHint,
    sanitize::without_credentials,
    texts::{self, Message},
};

/// The exit codes, which scripts rely on; `texts::help::EXIT_CODES` explains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    /// A bug, results that could not be written, or a system without something that every run needs.
    Internal = 1,
    Usage = 2,
    Validation = 3,
    Auth = 4,
    NotFound = 5,
    Conflict = 6,
    RateLimit = 7,
    NotExecuted = 8,
    OutcomeUnknown = 9,
    Partly = 10,
    /// One parcel was requested, and several match.
    Several = 11,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure. It is boxed, because it is the error type of most functions and would make their results large.
#[derive(Debug)]
pub(crate) struct Failure(Box<FailureDetails>);

/// The details of a failure.
#[derive(Debug)]
pub(crate) struct FailureDetails {
    pub(crate) exit: Exit,
    pub(crate) code: String,
    pub(crate) message: Message,
    pub(crate) hint: Option<Message>,
    pub(crate) fields: Vec<FieldFault>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) status: Option<u16>,
    pub(crate) request_id: Option<RequestId>,
    /// Seconds to wait before trying again.
    pub(crate) retry_after: Option<u64>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) may_have_executed: bool,
    /// The parcels that failed, by tracking number.
    pub(crate) items: Vec<(String, Failure)>,
}

impl std::ops::Deref for Failure {
    type Target = FailureDetails;

    fn deref(&self) -> &FailureDetails {
        &self.0
    }
}

impl Failure {
    pub(crate) fn new(exit: Exit, code: &str, message: impl Into<Message>) -> Self {
        Self(Box::new(FailureDetails {
            exit,
            code: code.to_owned(),
            message: message.into(),
            hint: None,
            fields: Vec::new(),
            warnings: Vec::new(),
            status: None,
            request_id: None,
            retry_after: None,
            idempotency_key: None,
            may_have_executed: false,
            items: Vec::new(),
        }))
    }

    pub(crate) fn with(mut self, fill: impl FnOnce(&mut FailureDetails)) -> Self {
        fill(&mut self.0);
        self
    }

    pub(crate) fn hint(self, hint: impl Into<Message>) -> Self {
        self.with(|details| details.hint = Some(hint.into()))
    }

    /// Returns the failure for an invalid command line, or for an invalid file that it names.
    pub(crate) fn usage(message: impl Into<Message>, hint: impl Into<Message>) -> Self {
        Self::new(Exit::Usage, "USAGE", message).hint(hint)
    }

    /// Returns the failure for a file that cannot be read.
    pub(crate) fn for_unreadable_file(file: &str, err: &io::Error) -> Self {
        let kind = err.kind();
        let err = match kind {
            io::ErrorKind::NotFound => texts::FILE_NOT_FOUND.into(),
            io::ErrorKind::PermissionDenied => texts::PERMISSION_DENIED.into(),
            io::ErrorKind::IsADirectory => texts::IS_DIRECTORY.into(),
            io::ErrorKind::InvalidData => texts::NOT_UTF8_FILE.into(),
            _ => texts::AS_IS.with(&[("value", &err.to_string())]),
        };
        let file = match file {
            "-" => texts::FROM_STDIN.into(),
            file => texts::AS_IS.with(&[("value", file)]),
        };
        let message = texts::UNREADABLE.with_messages(&[("file", &file), ("reason", &err)]);
        let hint = match kind {
            io::ErrorKind::InvalidData => texts::SAVE_AS_UTF8,
            _ => texts::SPECIFY_FILE,
        };
        Self::new(Exit::Usage, "FILE", message).hint(hint)
    }

    /// Returns the failure for a part of the response that this version cannot read; the message shows it unchanged.
    pub(crate) fn for_unreadable_row(exit: Exit, row: &Unreadable) -> Self {
        let json = row.json().to_string();
        Self::new(exit, "UNREADABLE_ANSWER", texts::UNREADABLE_ROW.with(&[("json", &json)]))
    }

    /// Returns the failure for a file that cannot be written.
    pub(crate) fn for_unwritable_file(file: &str, err: &io::Error) -> Self {
        let reason = match err.kind() {
            io::ErrorKind::IsADirectory => texts::IS_DIRECTORY.into(),
            _ => texts::AS_IS.with(&[("value", &err.to_string())]),
        };
        let file = texts::AS_IS.with(&[("value", file)]);
        let message = texts::UNWRITABLE.with_messages(&[("file", &file), ("reason", &reason)]);
        Self::new(Exit::Usage, "FILE", message).hint(unwritable_hint(err))
    }

    /// Returns the failure for an API key that is missing or malformed.
    pub(crate) fn key(code: ErrorCode, message: impl Into<Message>) -> Self {
        Self::new(Exit::Auth, code.code(), message).hint(texts::GIVE_KEY)
    }

    /// Returns the failure for input that breaks rules; nothing was sent.
    pub(crate) fn invalid(message: impl Into<Message>, fields: Vec<FieldFault>) -> Self {
        Self::new(Exit::Validation, ErrorCode::ValidationFailed.code(), message)
            .hint(texts::FIX_FIELDS)
            .with(|details| details.fields = fields)
    }

    /// Adds warnings; one about a misspelt field, for instance, explains the absence of another field.
    pub(crate) fn with_warnings(self, warnings: Vec<Warning>) -> Self {
        self.with(|details| details.warnings = warnings)
    }

    /// Returns the failure for Ctrl-C during a call.
    pub(crate) fn for_interrupt(resume: ResumeHint<'_>) -> Self {
        Self::new(Exit::Interrupted, "INTERRUPTED", texts::INTERRUPTED).with(|details| {
            details.hint = resume.hint();
            details.idempotency_key = resume.key().cloned();
            details.may_have_executed = resume.writes();
        })
    }

    /// Adds the service's address to the message if the service could not be reached.
    pub(crate) fn at_address(self, address: &str) -> Self {
        if address.is_empty() || !["NETWORK", "TIMEOUT"].contains(&&*self.code) {
            return self;
        }
        let address = texts::AT_ADDRESS.with(&[("address", &without_credentials(address))]);
        self.with(|details| details.message = details.message.and(&address))
    }

    /// Returns the failure for a confirmation that was declined.
    pub(crate) fn for_declined_prompt(message: texts::Text) -> Self {
        Self::new(Exit::Interrupted, "DECLINED", message)
    }

    /// Returns the failure for an order that exists, but whose label could not be saved.
    pub(crate) fn for_unsaved_label(number: &TrackingNumber, err: &Self) -> Self {
        // The label of a void order cannot be saved later either.
        let is_void = err.code == ErrorCode::LabelVoided.code();
        let message = if is_void {
            texts::LABEL_VOIDED.into()
        } else {
            texts::LABEL_UNSAVED.with_message("reason", &err.message)
        };
        let get = || texts::GET_LABEL.with(&[("number", number.as_str())]);
        let hint = err.hint.clone().filter(|_| is_void).unwrap_or_else(get);
        Self::new(Exit::Partly, &err.code, message).hint(hint).with(|details| {
            details.status = err.status;
            details.request_id.clone_from(&err.request_id);
            details.retry_after = err.retry_after;
        })
    }

    /// Returns the failure for `all` parcels, of which `done` succeeded and `items` failed; any others were not tried.
    ///
    /// The exit code is that of the items if none succeeded and all failed for the same reason.
    pub(crate) fn for_items(done: usize, all: usize, items: Vec<(String, Self)>) -> Self {
        let failed = all.saturating_sub(done).to_string();
        let (done_text, all_text) = (done.to_string(), all.to_string());
        let message = if done == 0 {
            texts::ALL_FAILED.with(&[("all", &all_text)])
        } else {
            let values = [("done", &*done_text), ("all", &*all_text), ("failed", &*failed)];
            texts::PARTLY_FAILED.with(&values)
        };
        let last = items.last().map(|(_, last)| last);
        let alike = last.filter(|last| {
            let same = items.iter().all(|(_, item)| item.exit == last.exit);
            last.exit == Exit::Interrupted || (done == 0 && same)
        });
        let failure = match alike {
            Some(last) => Self::new(last.exit, &last.code, message),
            None => Self::new(Exit::Partly, "PARTLY_FAILED", message),
        };
        let hint = alike.and_then(|last| last.hint.clone());
        failure.with(|details| (details.items, details.hint) = (items, hint))
    }

    /// Returns the failure for files with invalid orders; the verdicts contain the reasons.
    pub(crate) fn for_invalid_orders(bad: usize, all: usize) -> Self {
        let values = [("bad", &*bad.to_string()), ("all", &*all.to_string())];
        Self::invalid(texts::INVALID_ORDERS.with(&values), Vec::new())
    }

    /// Returns the failure for results that could not be written to standard output.
    pub(crate) fn for_lost_output(err: &impl Display) -> Self {
        Self::new(
            Exit::Internal,
            "OUTPUT",
            texts::OUTPUT_LOST.with(&[("reason", &err.to_string())]),
        )
    }

    /// Returns the failure for a system without something that every call needs, such as file descriptors.
    pub(crate) fn for_failed_start(err: &impl Display) -> Self {
        Self::new(
            Exit::Internal,
            "NOT_STARTED",
            texts::NOT_STARTED.with(&[("reason", &err.to_string())]),
        )
    }

    /// Returns `true` if calls for other parcels may still succeed.
    pub(crate) fn is_of_one_parcel(&self) -> bool {
        matches!(self.exit, Exit::Validation | Exit::NotFound | Exit::Conflict)
    }
}

/// Returns the remedy for a file that cannot be written.
pub(crate) fn unwritable_hint(err: &io::Error) -> texts::Text {
    match err.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => texts::FREE_SPACE,
        _ => texts::SPECIFY_WRITABLE,
    }
}

#[cfg(test)]
mod tests {
    use parcelo::Language;

    use super::*;

    #[test]
    fn standard_input_is_named_and_a_full_disk_has_its_own_hint() {
        let unreadable = Failure::for_unreadable_file("-", &io::ErrorKind::InvalidData.into());
        for (language, name) in [(Language::En, "standard input"), (Language::Es, "la entrada")] {
            assert!(unreadable.message.pick(language).contains(name), "{unreadable:?}");
        }
        assert_eq!(unwritable_hint(&io::ErrorKind::StorageFull.into()), texts::FREE_SPACE);
        let denied = io::ErrorKind::PermissionDenied.into();
        assert_eq!(unwritable_hint(&denied), texts::SPECIFY_WRITABLE);
    }
}
