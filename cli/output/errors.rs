//! Failures, faults and warnings: sentences for people, one JSON object for programs.

use std::io::{self, Write};

use parcelo::{FieldFault, Language, Warning};
use serde_json::{Value, json};

use super::plain;
use crate::{failure::Failure, texts};

const BOLD: anstyle::Style = anstyle::Style::new().bold();
const RED: anstyle::Style = anstyle::AnsiColor::Red.on_default().bold();
const YELLOW: anstyle::Style = anstyle::AnsiColor::Yellow.on_default().bold();

/// What happened, which fields are wrong, what to do, what to quote to support.
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
    for (number, item) in &failure.items {
        writeln!(
            out,
            "  {number}: {} ({})",
            plain(item.message.pick(language)),
            plain(&item.code)
        )?;
    }
    if let Some(hint) = &failure.hint {
        let what_to_do = texts::HINT.pick(language);
        writeln!(out, "{BOLD}{what_to_do}:{BOLD:#} {}", hint.pick(language))?;
    }
    match &failure.request_id {
        Some(id) => writeln!(out, "{}: {}", texts::REQUEST.pick(language), plain(id)),
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

/// Every member is always there; one that has nothing to say is null, false or empty.
pub(super) fn as_json(failure: &Failure) -> Value {
    let items = failure.items.iter().map(|(number, item)| {
        let mut item = as_json(item);
        item["trackingNumber"] = json!(number);
        item
    });
    json!({
        "code": failure.code,
        "message": failure.message.en,
        "message_es": failure.message.es,
        "hint": failure.hint.as_ref().map(|hint| &hint.en),
        "hint_es": failure.hint.as_ref().map(|hint| &hint.es),
        "status": failure.status,
        "requestId": failure.request_id,
        "retryAfter": failure.retry_after,
        "idempotencyKey": failure.idempotency_key,
        "mayHaveExecuted": failure.may_have_executed,
        "fields": failure.fields,
        "items": items.collect::<Vec<_>>(),
    })
}
