//! Failures, faults and warnings: text for people, one JSON object for programs.

use std::io::{self, Write};

use parcelo::{
    IdempotencyKey, Language,
    model::{FieldFault, RequestId, Warning},
};
use serde::Serialize;

use crate::{failure::Failure, sanitize::plain, texts};

const BOLD: anstyle::Style = anstyle::Style::new().bold();
const RED: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const YELLOW: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();

/// Writes the message, the faults, the hint, and the request ID for support.
pub(super) fn write_failure(
    out: &mut impl Write,
    failure: &Failure,
    language: Language,
) -> io::Result<()> {
    let message = plain(failure.message.pick(language));
    let error = texts::ERROR.pick(language);
    writeln!(out, "{RED}{error}:{RED:#} {message} ({})", plain(&failure.code))?;
    for fault in &failure.fields {
        write_fault(out, fault, language)?;
    }
    for warning in &failure.warnings {
        write!(out, "  ")?;
        write_warning(out, warning, language)?;
    }
    for (number, item) in &failure.items {
        // An unreadable row may lack even a tracking number.
        let number = if number.is_empty() { "?" } else { number };
        writeln!(
            out,
            "  {}: {} ({})",
            plain(number),
            plain(item.message.pick(language)),
            plain(&item.code)
        )?;
    }
    if let Some(hint) = &failure.hint {
        let what_to_do = texts::HINT.pick(language);
        writeln!(out, "{BOLD}{what_to_do}:{BOLD:#} {}", hint.pick(language))?;
    }
    match &failure.request_id {
        Some(id) => writeln!(out, "{}: {}", texts::REQUEST.pick(language), plain(id.as_str())),
        None => Ok(()),
    }
}

pub(super) fn write_fault(
    out: &mut impl Write,
    fault: &FieldFault,
    language: Language,
) -> io::Result<()> {
    write!(out, "  {}: {}", plain(&fault.field), plain(fault.text(language)))?;
    if let Some(suggestion) = &fault.suggestion {
        let meant = texts::SUGGESTION.with(&[("value", &plain(suggestion))]);
        write!(out, " {}", meant.pick(language))?;
    }
    writeln!(out)
}

pub(super) fn write_warning(
    out: &mut impl Write,
    warning: &Warning,
    language: Language,
) -> io::Result<()> {
    let (field, text) = (plain(&warning.field), plain(warning.text(language)));
    writeln!(out, "{YELLOW}{}:{YELLOW:#} {field}: {text}", texts::WARNING.pick(language))
}

/// Writes a warning without a field.
pub(super) fn write_note(out: &mut impl Write, text: &str, language: Language) -> io::Result<()> {
    writeln!(out, "{YELLOW}{}:{YELLOW:#} {text}", texts::WARNING.pick(language))
}

/// A failure for programs. All members except `trackingNumber` are always present; without a value they are null, false
/// or empty.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FailureDocument<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    tracking_number: Option<&'a str>,
    code: &'a str,
    message: &'a str,
    #[serde(rename = "message_es")]
    message_es: &'a str,
    hint: Option<&'a str>,
    #[serde(rename = "hint_es")]
    hint_es: Option<&'a str>,
    status: Option<u16>,
    request_id: Option<&'a RequestId>,
    retry_after: Option<u64>,
    idempotency_key: Option<&'a IdempotencyKey>,
    may_have_executed: bool,
    fields: &'a [FieldFault],
    warnings: &'a [Warning],
    items: Vec<Self>,
}

impl<'a> FailureDocument<'a> {
    pub(super) fn new(failure: &'a Failure) -> Self {
        let item = |(number, item): &'a (String, Failure)| Self {
            tracking_number: Some(number),
            ..Self::new(item)
        };
        Self {
            tracking_number: None,
            code: &failure.code,
            message: &failure.message.en,
            message_es: &failure.message.es,
            hint: failure.hint.as_ref().map(|hint| &*hint.en),
            hint_es: failure.hint.as_ref().map(|hint| &*hint.es),
            status: failure.status,
            request_id: failure.request_id.as_ref(),
            retry_after: failure.retry_after,
            idempotency_key: failure.idempotency_key.as_ref(),
            may_have_executed: failure.may_have_executed,
            fields: &failure.fields,
            warnings: &failure.warnings,
            items: failure.items.iter().map(item).collect(),
        }
    }
}
