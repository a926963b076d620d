//! The output of `webhook listen`: its address, each verified webhook, and the reasons that others were rejected.

use std::io::{self, Write};

use chrono::{DateTime, Utc};
use parcelo::{
    ErrorCode, Language,
    model::{EventData, WebhookEvent},
    webhook::WebhookError,
};
use parcelo_types::internal::spreadsheet::to_cell;
use serde_json::{Value, json};

use super::{
    errors,
    format::{Format, Layout, OutputOptions},
    json::write_one,
    write_rows,
};
use crate::{
    failure::Failure,
    results::table::format_moment,
    sanitize::plain,
    texts::{self, Message},
};

/// Prints webhooks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventPrinter(pub(crate) OutputOptions);

/// A webhook whose signature was verified.
#[derive(Debug)]
pub(crate) struct ReceivedEvent {
    pub(crate) id: String,
    pub(crate) event: WebhookEvent,
    /// The body, unchanged.
    pub(crate) body: Value,
    /// The status that the forwarding target returned.
    pub(crate) forwarded: Option<Result<u16, Failure>>,
}

const COLUMNS: [&str; 5] = ["id", "event", "timestamp", "trackingNumber", "forwarded"];

impl EventPrinter {
    /// Writes the address, before any webhook can arrive.
    pub(crate) fn listening(self, address: &str) -> io::Result<()> {
        let mut err = anstream::stderr();
        if self.0.format.is_json() {
            return write_one(&mut err, &json!({"listening": address}), Layout::Lines);
        }
        let text = texts::LISTENING.with(&[("address", address)]);
        writeln!(err, "{}", text.pick(self.0.language))?;
        if self.0.format == Format::Csv {
            write_row(COLUMNS.map(str::to_owned))?;
        }
        Ok(())
    }

    pub(crate) fn accepted(self, received: &ReceivedEvent) -> io::Result<()> {
        let ReceivedEvent { id, event, body, forwarded } = received;
        let number = number(&event.data).unwrap_or_default();
        // If the target cannot be reached, the service gets this status.
        let unreached = ErrorCode::ServiceUnavailable.status();
        let status = forwarded.as_ref().map(|outcome| *outcome.as_ref().unwrap_or(&unreached));
        match self.0.format {
            Format::Json | Format::Ndjson => {
                let document = json!({"id": id, "event": body, "forwardedStatus": status});
                write_one(&mut anstream::stdout(), &document, Layout::Lines)
            }
            Format::Csv => write_row([
                id.clone(),
                event.data.kind().code().to_owned(),
                parcelo_types::internal::time::to_text(event.timestamp),
                number,
                status.map(|status| status.to_string()).unwrap_or_default(),
            ]),
            Format::Numbers if number.is_empty() => Ok(()),
            Format::Numbers => writeln!(anstream::stdout(), "{}", plain(&number)),
            Format::Table => self.write_line(event, &number, status),
        }?;
        match forwarded {
            Some(Err(failure)) if !self.0.format.is_json() => {
                errors::write_failure(&mut anstream::stderr(), failure, self.0.language)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn write_line(self, event: &WebhookEvent, number: &str, status: Option<u16>) -> io::Result<()> {
        let summary = summary(&event.data, self.0.language);
        let parts = [event.data.kind().code(), number, &summary].map(plain);
        let parts: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let forwarded = status.map(|status| format!("  → {status}")).unwrap_or_default();
        let time = format_moment(event.timestamp);
        writeln!(anstream::stdout(), "{time}  {}{forwarded}", parts.join("  "))
    }

    pub(crate) fn rejected(self, error: WebhookError, now: DateTime<Utc>) -> io::Result<()> {
        let reason = reason(error);
        if self.0.format.is_json() {
            let document = json!({"refused": reason.en, "refused_es": reason.es,
                "timestamp": parcelo_types::internal::time::to_text(now)});
            return write_one(&mut anstream::stderr(), &document, Layout::Lines);
        }
        let text = texts::REJECTED.with(&[("reason", reason.pick(self.0.language))]);
        writeln!(anstream::stderr(), "{}  {}", format_moment(now), text.pick(self.0.language))
    }
}

fn write_row(cells: [String; 5]) -> io::Result<()> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(cells.map(|cell| to_cell(&cell).into_owned()))?;
    let rows = rows.into_inner().map_err(|error| io::Error::other(error.to_string()))?;
    let mut out = anstream::stdout();
    write_rows(&mut out, &rows)?;
    out.flush()
}

fn number(data: &EventData) -> Option<String> {
    match data {
        EventData::StatusChanged(change) => Some(change.tracking_number.to_string()),
        EventData::ParcelCreated(created) => Some(created.tracking_number.to_string()),
        EventData::ParcelVoided(voided) => Some(voided.tracking_number.to_string()),
        _ => None,
    }
}

/// Returns a description of the event for people.
fn summary(data: &EventData, language: Language) -> String {
    match data {
        EventData::StatusChanged(change) => {
            let names = [&change.previous_status, &change.new_status];
            let [before, after] = names.map(|status| status.name(language));
            format!("{before} → {after}  {}", change.location)
        }
        EventData::ManifestSubmitted(manifest) => manifest.manifest_id.to_string(),
        _ => String::new(),
    }
}

/// Returns the reason that a webhook is rejected.
fn reason(error: WebhookError) -> Message {
    let header = |name: &str, text: texts::Text| text.with(&[("name", name)]);
    match error {
        WebhookError::HeaderMissing(name) => header(name, texts::HEADER_MISSING),
        WebhookError::HeaderRepeated(name) => header(name, texts::HEADER_REPEATED),
        WebhookError::HeaderMalformed(name) => header(name, texts::HEADER_MALFORMED),
        WebhookError::TooOld { seconds } => {
            texts::TOO_OLD.with(&[("seconds", &seconds.to_string())])
        }
        WebhookError::TooNew { seconds } => {
            texts::TOO_NEW.with(&[("seconds", &seconds.to_string())])
        }
        WebhookError::Replayed => texts::DUPLICATE_EVENT.into(),
        WebhookError::Body => texts::INVALID_EVENT.into(),
        _ => texts::SIGNATURE_MISMATCH.into(),
    }
}
