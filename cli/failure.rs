//! Why a run did not do all that it was asked to: what happened, what to do, and the exit code.

use std::{fmt::Display, process::ExitCode, time::Duration};

use parcelo::{Error, ErrorCode, ErrorKind, FieldFault, IdempotencyKey, TrackingNumber, Warning};

use crate::texts::{self, Said};

/// The exit codes, which scripts rely on; `texts::EXIT_CODES` explains them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    Done = 0,
    Bug = 1,
    Usage = 2,
    Validation = 3,
    Auth = 4,
    NotFound = 5,
    Conflict = 6,
    RateLimit = 7,
    NotExecuted = 8,
    OutcomeUnknown = 9,
    Partly = 10,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure; one pointer, so that results stay small.
#[derive(Debug)]
pub(crate) struct Failure(Box<Facts>);

/// What is known about a failure.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) exit: Exit,
    pub(crate) code: String,
    pub(crate) message: Said,
    pub(crate) hint: Option<Said>,
    pub(crate) fields: Vec<FieldFault>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) status: Option<u16>,
    pub(crate) request_id: Option<String>,
    /// Whole seconds.
    pub(crate) retry_after: Option<u64>,
    pub(crate) idempotency_key: Option<IdempotencyKey>,
    pub(crate) may_have_executed: bool,
    /// The parcels that failed, when several were asked for.
    pub(crate) items: Vec<(TrackingNumber, Failure)>,
}

impl std::ops::Deref for Failure {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0
    }
}

impl Failure {
    fn new(exit: Exit, code: &str, message: impl Into<Said>) -> Self {
        Self(Box::new(Facts {
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

    fn with(mut self, fill: impl FnOnce(&mut Facts)) -> Self {
        fill(&mut self.0);
        self
    }

    fn hint(self, hint: impl Into<Said>) -> Self {
        self.with(|facts| facts.hint = Some(hint.into()))
    }

    /// The command line, or a file that it names, is wrong.
    pub(crate) fn usage(message: impl Into<Said>, hint: impl Into<Said>) -> Self {
        Self::new(Exit::Usage, "USAGE", message).hint(hint)
    }

    /// A file that cannot be read.
    pub(crate) fn unreadable(file: &str, why: &impl Display) -> Self {
        let values = [("file", file), ("why", &why.to_string())];
        Self::new(Exit::Usage, "FILE", texts::UNREADABLE.with(&values))
    }

    /// A place where no label can be written.
    pub(crate) fn unwritable(file: &str, why: &impl Display) -> Self {
        let values = [("file", file), ("why", &why.to_string())];
        Self::new(Exit::Usage, "FILE", texts::NO_LABEL_PLACE.with(&values)).hint(texts::GIVE_PLACE)
    }

    /// The API key is missing or is none.
    pub(crate) fn key(code: ErrorCode, message: impl Into<Said>) -> Self {
        Self::new(Exit::Auth, code.code(), message).hint(texts::GIVE_KEY)
    }

    /// What was given breaks rules, and nothing was sent.
    pub(crate) fn invalid(message: impl Into<Said>, fields: Vec<FieldFault>) -> Self {
        Self::new(Exit::Validation, ErrorCode::ValidationFailed.code(), message)
            .hint(texts::FIX_FIELDS)
            .with(|facts| facts.fields = fields)
    }

    /// The same with what else was odd: a misspelt field is the reason why another is missing.
    pub(crate) fn warned(self, warnings: Vec<Warning>) -> Self {
        self.with(|facts| facts.warnings = warnings)
    }

    /// Ctrl-C while the service was being asked.
    pub(crate) fn interrupted(key: Option<&IdempotencyKey>) -> Self {
        let failure = Self::new(Exit::Interrupted, "INTERRUPTED", texts::INTERRUPTED);
        match key {
            Some(key) => failure.hint(unknown_outcome(key)).with(|facts| {
                facts.idempotency_key = Some(key.clone());
                facts.may_have_executed = true;
            }),
            None => failure,
        }
    }

    /// The order exists, its label could not be saved.
    pub(crate) fn label_unsaved(number: &TrackingNumber, why: &Self) -> Self {
        let Said { en, es } = &why.message;
        let message = Said {
            en: texts::LABEL_UNSAVED.with(&[("why", en)]).en,
            es: texts::LABEL_UNSAVED.with(&[("why", es)]).es,
        };
        Self::new(Exit::Partly, &why.code, message)
            .hint(texts::GET_LABEL.with(&[("number", number.as_str())]))
            .with(|facts| {
                facts.status = why.status;
                facts.request_id.clone_from(&why.request_id);
                facts.retry_after = why.retry_after;
            })
    }

    /// Of `all` parcels, `done` were done, and these failed; after the last nothing was tried.
    ///
    /// The exit code is theirs if they failed alike and nothing was done.
    pub(crate) fn of_items(done: usize, all: usize, items: Vec<(TrackingNumber, Self)>) -> Self {
        let (done_text, all_text) = (done.to_string(), all.to_string());
        let message = match done {
            0 => texts::NONE_DONE.with(&[("all", &all_text)]),
            _ => texts::PARTLY.with(&[("done", &done_text), ("all", &all_text)]),
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
        failure.with(|facts| (facts.items, facts.hint) = (items, hint))
    }

    /// Some orders in files are not valid; the verdicts say which and why.
    pub(crate) fn bad_orders(bad: usize, all: usize) -> Self {
        let values = [("bad", &*bad.to_string()), ("all", &*all.to_string())];
        Self::invalid(texts::BAD_ORDERS.with(&values), Vec::new())
    }

    /// Standard output took not all of the results.
    pub(crate) fn output_lost(why: &impl Display) -> Self {
        Self::new(Exit::Bug, "OUTPUT", texts::OUTPUT_LOST.with(&[("why", &why.to_string())]))
    }

    /// True when asking for another parcel may still work.
    pub(crate) fn is_of_one_parcel(&self) -> bool {
        matches!(self.exit, Exit::Validation | Exit::NotFound | Exit::Conflict)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = error.code().unwrap_or_else(|| code_of(error.kind()));
        let (en, es) = (parcelo::Language::En, parcelo::Language::Es);
        let message = Said { en: error.message(en), es: error.message(es) };
        let failure = Self::new(exit_of(&error), code, message).with(|facts| {
            facts.fields = error.field_faults().to_vec();
            facts.status = error.status();
            facts.request_id = error.request_id().map(str::to_owned);
            facts.retry_after = error.retry_after().map(whole_seconds);
            facts.idempotency_key = error.idempotency_key().cloned();
            facts.may_have_executed = error.may_have_executed();
        });
        match hint_of(&error, &failure) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Rounded up: who comes back earlier is refused again.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn exit_of(error: &Error) -> Exit {
    if error.may_have_executed() {
        return Exit::OutcomeUnknown;
    }
    match error.kind() {
        ErrorKind::Validation => Exit::Validation,
        ErrorKind::Authentication | ErrorKind::CountryNotAllowed | ErrorKind::Forbidden => {
            Exit::Auth
        }
        ErrorKind::NotFound => Exit::NotFound,
        ErrorKind::Conflict => Exit::Conflict,
        ErrorKind::RateLimited => Exit::RateLimit,
        ErrorKind::Config | ErrorKind::File => Exit::Usage,
        _ => Exit::NotExecuted,
    }
}

/// The code of an error that the service said nothing about.
fn code_of(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Validation => ErrorCode::ValidationFailed.code(),
        ErrorKind::Network => "NETWORK",
        ErrorKind::Timeout => "TIMEOUT",
        ErrorKind::Decode => "UNREADABLE_ANSWER",
        ErrorKind::Config => "USAGE",
        ErrorKind::File => "FILE",
        _ => "UNEXPECTED_ANSWER",
    }
}

fn hint_of(error: &Error, failure: &Failure) -> Option<Said> {
    let text = match (failure.exit, error.known_code()) {
        (Exit::OutcomeUnknown, _) => return error.idempotency_key().map(unknown_outcome),
        (Exit::RateLimit, _) => match failure.retry_after {
            Some(seconds) => return Some(texts::WAIT.with(&[("n", &seconds.to_string())])),
            None => texts::WAIT_A_WHILE,
        },
        (Exit::Auth, Some(ErrorCode::AuthCountryNotAllowed)) => texts::CHECK_COUNTRIES,
        (Exit::Auth, _) => texts::CHECK_KEY,
        (_, Some(ErrorCode::ParcelNotFound)) => texts::CHECK_NUMBER,
        (_, Some(ErrorCode::ParcelDuplicateTracking)) => texts::OTHER_NUMBER,
        (_, Some(ErrorCode::IdempotencyConflict)) => texts::OTHER_KEY,
        (Exit::Validation, _) if failure.fields.is_empty() => texts::FIX_REQUEST,
        (Exit::Validation, _) => texts::FIX_FIELDS,
        (Exit::NotExecuted, _) => texts::TRY_AGAIN,
        (Exit::Usage, _) if error.kind() == ErrorKind::File => texts::GIVE_PLACE,
        (Exit::Usage, _) | (Exit::NotFound, None | Some(ErrorCode::NotFound)) => {
            texts::CHECK_ADDRESS
        }
        _ => return None,
    };
    Some(text.into())
}

fn unknown_outcome(key: &IdempotencyKey) -> Said {
    texts::UNKNOWN_OUTCOME.with(&[("key", key.as_str())])
}
