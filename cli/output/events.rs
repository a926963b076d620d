//! What `webhook listen` shows: where it listens, each message that is believed, and why another
//! one is not.

use std::io::{self, Write};

use chrono::{DateTime, Utc};
use parcelo::{
    ErrorCode,
    model::{EventData, WebhookEvent},
    webhook::WebhookError,
};
use serde_json::{Value, json};

use super::{
    errors,
    json::{Layout, one},
    plain,
    table::moment,
    write_rows,
};
use crate::{
    failure::Failure,
    texts::{self, Message},
    voice::{Format, Voice},
};

/// Where events are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventPrinter(pub(crate) Voice);

/// A message that is believed.
#[derive(Debug)]
pub(crate) struct ReceivedEvent {
    pub(crate) id: String,
    pub(crate) event: WebhookEvent,
    /// The body as it came.
    pub(crate) body: Value,
    /// What the address said that it was forwarded to.
    pub(crate) forwarded: Option<Result<u16, Failure>>,
}

const HEADING: [&str; 5] = ["id", "event", "timestamp", "trackingNumber", "forwarded"];

impl EventPrinter {
    /// Says where messages are awaited, before the first one can come.
    pub(crate) fn listening(self, address: &str) -> io::Result<()> {
        let mut err = anstream::stderr();
        match self.0.format {
            Format::Json | Format::Ndjson => {
                one(&mut err, &json!({"listening": address}), Layout::Lines)
            }
            Format::Csv => {
                writeln!(err, "{}", said(self.0, address))?;
                row(HEADING.map(str::to_owned))
            }
            Format::Table => writeln!(err, "{}", said(self.0, address)),
        }
    }

    /// Shows a message.
    pub(crate) fn show(self, message: &ReceivedEvent) -> io::Result<()> {
        let number = number(&message.event.data).unwrap_or_default();
        let kind = message.event.data.kind();
        let forwarded = message.forwarded.as_ref();
        // What the service is told then.
        let unreached = ErrorCode::ServiceUnavailable.status();
        let status = forwarded.map(|answer| answer.as_ref().map_or(unreached, |status| *status));
        match self.0.format {
            Format::Json | Format::Ndjson => {
                let document =
                    json!({"id": message.id, "event": message.body, "forwardedStatus": status});
                one(&mut anstream::stdout(), &document, Layout::Lines)
            }
            Format::Csv => row([
                message.id.clone(),
                kind.code().to_owned(),
                parcelo::model::time::to_text(message.event.timestamp),
                number,
                status.map(|status| status.to_string()).unwrap_or_default(),
            ]),
            Format::Table => self.tell(message, &number, status),
        }?;
        match forwarded {
            Some(Err(failure)) => self.complain(failure),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    fn tell(self, message: &ReceivedEvent, number: &str, status: Option<u16>) -> io::Result<()> {
        let time = moment(message.event.timestamp);
        let kind = message.event.data.kind();
        let news = news(&message.event.data, self.0);
        let told: Vec<_> = [kind.code(), number, &news]
            .into_iter()
            .filter(|word| !word.is_empty())
            .map(plain)
            .collect();
        let forwarded = status.map(|status| format!("  → {status}")).unwrap_or_default();
        writeln!(anstream::stdout(), "{time}  {}{forwarded}", told.join("  "))
    }

    /// Says why a message is not believed.
    pub(crate) fn refuse(self, why: WebhookError, now: DateTime<Utc>) -> io::Result<()> {
        let why = reason(why);
        match self.0.format {
            Format::Json | Format::Ndjson => {
                let document = json!({"refused": why.en, "refused_es": why.es,
                    "timestamp": parcelo::model::time::to_text(now)});
                one(&mut anstream::stderr(), &document, Layout::Lines)
            }
            Format::Table | Format::Csv => {
                let refused = texts::REFUSED.with(&[("why", why.pick(self.0.language))]);
                let refused = refused.pick(self.0.language);
                writeln!(anstream::stderr(), "{}  {refused}", moment(now))
            }
        }
    }

    fn complain(self, failure: &Failure) -> io::Result<()> {
        if self.0.format.is_json() {
            return Ok(());
        }
        errors::write_failure(&mut anstream::stderr(), failure, self.0.language)
    }
}

fn said(voice: Voice, address: &str) -> String {
    texts::LISTENING.with(&[("address", address)]).pick(voice.language).to_owned()
}

fn row(cells: [String; 5]) -> io::Result<()> {
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(cells)?;
    let rows = rows.into_inner().map_err(|fault| io::Error::other(fault.to_string()))?;
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

/// What happened, in words.
fn news(data: &EventData, voice: Voice) -> String {
    match data {
        EventData::StatusChanged(change) => {
            let names = [&change.previous_status, &change.new_status];
            let [before, after] = names.map(|status| status.name(voice.language));
            format!("{before} → {after}  {}", change.location)
        }
        EventData::ManifestSubmitted(manifest) => manifest.manifest_id.to_string(),
        _ => String::new(),
    }
}

/// Why a message is not believed, in both languages.
fn reason(why: WebhookError) -> Message {
    let header = |name: &str, text: texts::Text| text.with(&[("name", name)]);
    match why {
        WebhookError::HeaderMissing(name) => header(name, texts::HEADER_MISSING),
        WebhookError::HeaderRepeated(name) => header(name, texts::HEADER_REPEATED),
        WebhookError::HeaderMalformed(name) => header(name, texts::HEADER_MALFORMED),
        WebhookError::TooOld { seconds } => {
            texts::TOO_OLD.with(&[("seconds", &seconds.to_string())])
        }
        WebhookError::TooNew { seconds } => {
            texts::TOO_NEW.with(&[("seconds", &seconds.to_string())])
        }
        WebhookError::Replayed => texts::COPY.into(),
        WebhookError::Body => texts::NO_EVENT.into(),
        _ => texts::BAD_SIGNATURE.into(),
    }
}
