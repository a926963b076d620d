//! The pages as their templates see them: everything that is shown, already in words.

use std::sync::LazyLock;

use askama::Template;
use axum::http::HeaderValue;
use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use chrono::{DateTime, FixedOffset, NaiveDate};
use parcelo::{
    Environment, Language, ParcelStatus, TrackingNumber,
    model::{HistoryEntry, Row, TrackingRecord},
};
use sha2::{Digest, Sha256};

use super::{
    dates,
    words::{Words, meaning, words},
};

/// What a page may do: show its own style sheet, known by its hash, and its icon. No script, no
/// form, no frame around it, and nothing from elsewhere.
pub(super) static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
});

/// The style sheet as it stands in each page.
const STYLE: &str = include_str!("../../../templates/track.css");

/// What both pages have around them.
pub(super) struct Frame {
    language: Language,
    other: Language,
    other_name: &'static str,
    words: &'static Words,
    sandbox: bool,
    style: &'static str,
}

/// A parcel's page.
#[derive(Template)]
#[template(path = "parcel.html")]
pub(super) struct ParcelPage {
    frame: Frame,
    number: String,
    status: String,
    meaning: &'static str,
    appearance: Appearance,
    stages: Vec<Stage>,
    arrival: Option<Arrival>,
    events: Vec<Entry>,
    offset: String,
}

/// A page that says why there is no parcel to show.
#[derive(Template)]
#[template(path = "notice.html")]
pub(super) struct Notice {
    frame: Frame,
    heading: &'static str,
    text: String,
    number: Option<String>,
    advice: &'static [&'static str],
}

/// How a status looks to someone who waits for the parcel: its colour and picture.
#[derive(Clone, Copy)]
enum Appearance {
    Start,
    Moving,
    Waiting,
    Returning,
    Done,
    Failed,
    Over,
}

/// A part of the way: behind the parcel, where it is, or ahead.
struct Stage {
    name: &'static str,
    class: &'static str,
}

/// When the parcel arrives, or has arrived.
struct Arrival {
    label: &'static str,
    hint: Option<&'static str>,
    date: Day,
}

struct Day {
    machine: String,
    words: String,
}

/// One line of the timeline; the first of a day names the day.
struct Entry {
    day: Option<Day>,
    moment: String,
    time: String,
    status: String,
    location: String,
}

/// A page as HTML.
pub(super) fn render(page: &impl Template) -> Option<String> {
    page.render().inspect_err(|error| tracing::error!(%error, "a page could not be written")).ok()
}

impl Frame {
    pub(super) const fn new(language: Language, environment: Environment) -> Self {
        let (other, other_name) = match language {
            Language::En => (Language::Es, "Español"),
            Language::Es => (Language::En, "English"),
        };
        let sandbox = matches!(environment, Environment::Sandbox);
        Self { language, other, other_name, words: words(language), sandbox, style: STYLE }
    }
}

impl ParcelPage {
    pub(super) fn new(frame: Frame, record: &TrackingRecord) -> Self {
        let (language, words) = (frame.language, frame.words);
        let offset = *record.estimated_delivery.offset();
        let history = record.history.as_deref().unwrap_or_default();
        Self {
            number: record.tracking_number.to_string(),
            status: record.status_name.clone(),
            meaning: meaning(&record.status, language),
            appearance: Appearance::for_status(&record.status),
            stages: stages(&record.status, words),
            arrival: Arrival::from_record(record, language, words),
            events: entries(history, offset, language),
            offset: dates::offset_in_words(offset),
            frame,
        }
    }
}

impl Notice {
    pub(super) fn not_found(frame: Frame, number: Option<&TrackingNumber>) -> Self {
        let words = frame.words;
        let text = if number.is_some() { words.unknown_number } else { words.no_number };
        Self {
            frame,
            heading: words.not_found,
            text: text.to_owned(),
            number: number.map(ToString::to_string),
            advice: &words.advice,
        }
    }

    pub(super) fn refused(frame: Frame, text: String) -> Self {
        let words = frame.words;
        let advice = std::slice::from_ref(&words.try_again);
        Self { frame, heading: words.unavailable, text, number: None, advice }
    }
}

impl Appearance {
    const fn for_status(status: &ParcelStatus) -> Self {
        match status {
            ParcelStatus::Ordered
            | ParcelStatus::LabelGenerated
            | ParcelStatus::ManifestSubmitted => Self::Start,
            ParcelStatus::CustomsHold | ParcelStatus::DeliveryAttempted => Self::Waiting,
            ParcelStatus::ReturnToSender => Self::Returning,
            ParcelStatus::Delivered => Self::Done,
            ParcelStatus::DeliveryFailed => Self::Failed,
            ParcelStatus::Voided => Self::Over,
            // On its way, or in a status that is newer than this page.
            _ => Self::Moving,
        }
    }

    /// The colour's name in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Self::Start | Self::Moving => "moving",
            Self::Waiting | Self::Returning => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Over => "over",
        }
    }

    /// The picture's strokes on a field of 24 × 24.
    const fn strokes(self) -> &'static str {
        match self {
            Self::Start => "M12 3 4 7v10l8 4 8-4V7zM4 7l8 4 8-4M12 11v10M8 5l8 4",
            Self::Moving => {
                "M4.5 17H2V6h12v11H9.5M14 10h4l4 3.5V17h-2.5M14.5 17H14M7 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM17 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z"
            }
            Self::Waiting => "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.5 2",
            Self::Returning => "M9 5 4 10l5 5M4 10h10a5 5 0 0 1 0 10h-4",
            Self::Done => "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8 12.3l2.7 2.7L16 9.5",
            Self::Failed | Self::Over => "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9 9l6 6M15 9l-6 6",
        }
    }
}

/// The four parts of the way; none when the parcel has left it.
fn stages(status: &ParcelStatus, words: &Words) -> Vec<Stage> {
    let at = match status {
        ParcelStatus::Ordered | ParcelStatus::LabelGenerated | ParcelStatus::ManifestSubmitted => 0,
        ParcelStatus::PickedUp
        | ParcelStatus::CustomsClearance
        | ParcelStatus::CustomsHold
        | ParcelStatus::InTransit => 1,
        ParcelStatus::OutForDelivery | ParcelStatus::DeliveryAttempted => 2,
        ParcelStatus::Delivered => 3,
        _ => return Vec::new(),
    };
    let class = |place| match usize::cmp(&place, &at) {
        std::cmp::Ordering::Less => "past",
        std::cmp::Ordering::Equal => "here",
        std::cmp::Ordering::Greater => "ahead",
    };
    let names = words.stages.into_iter().enumerate();
    names.map(|(place, name)| Stage { name, class: class(place) }).collect()
}

impl Arrival {
    /// The promise while it holds, and the day of delivery once it is kept.
    fn from_record(record: &TrackingRecord, language: Language, words: &Words) -> Option<Self> {
        let promised = record.estimated_delivery;
        match record.status {
            ParcelStatus::Delivered => {
                let mut history = record.history.iter().flatten().flatten();
                let last = history.rfind(|entry| entry.status == ParcelStatus::Delivered)?;
                let date = local(last, *promised.offset()).date_naive();
                let date = Day::new(date, language);
                Some(Self { label: words.delivered_on, hint: None, date })
            }
            ParcelStatus::DeliveryFailed | ParcelStatus::ReturnToSender | ParcelStatus::Voided => {
                None
            }
            _ => Some(Self {
                label: words.estimated_delivery,
                hint: Some(words.by_end_of_day),
                date: Day::new(promised.date_naive(), language),
            }),
        }
    }
}

impl Day {
    fn new(date: NaiveDate, language: Language) -> Self {
        Self { machine: date.to_string(), words: dates::in_words(date, language) }
    }
}

/// The timeline, newest first.
fn entries(history: &[Row<HistoryEntry>], offset: FixedOffset, language: Language) -> Vec<Entry> {
    let mut day = None;
    let lines = history.iter().flatten().rev().map(|entry| {
        let at = local(entry, offset);
        let today = Some(at.date_naive());
        let is_first = day != today;
        day = today;
        Entry {
            day: is_first.then(|| Day::new(at.date_naive(), language)),
            moment: parcelo::model::time::to_text(entry.timestamp),
            time: at.format("%H:%M").to_string(),
            status: entry.status_name.clone(),
            location: entry.location.clone(),
        }
    });
    lines.collect()
}

fn local(entry: &HistoryEntry, offset: FixedOffset) -> DateTime<FixedOffset> {
    entry.timestamp.with_timezone(&offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: &ParcelStatus, language: Language) -> TrackingRecord {
        let entry = |status: &ParcelStatus, at: &str| {
            HistoryEntry::new(status.clone(), at.parse().unwrap(), "Quito <b>, EC")
                .with_status_name(status.name(language))
        };
        let history = vec![
            Ok(entry(&ParcelStatus::Ordered, "2026-01-10T03:00:00Z")),
            Ok(entry(status, "2026-01-12T15:20:00Z")),
        ];
        let number = TrackingNumber::parse("EC7K2M9QX4T8WD0").unwrap();
        let estimated = "2026-01-20T23:59:59-05:00".parse().unwrap();
        TrackingRecord::new(number, status.clone(), estimated)
            .with_status_name(status.name(language))
            .with_history(history)
    }

    #[test]
    fn every_status_has_a_page_in_both_languages_with_its_times_at_the_destination() {
        for status in
            ParcelStatus::KNOWN.iter().chain([&ParcelStatus::Unknown("TELEPORTED".to_owned())])
        {
            for language in [Language::En, Language::Es] {
                let frame = Frame::new(language, Environment::Production);
                let page = render(&ParcelPage::new(frame, &record(status, language))).unwrap();
                assert!(
                    page.contains(&format!("<h1 id=\"now\">{}</h1>", status.name(language))),
                    "{status}"
                );
                // The day before in UTC's eyes, and ten in the morning rather than three in the afternoon.
                assert!(
                    page.contains("datetime=\"2026-01-09\"") && page.contains(">10:20<"),
                    "{status}"
                );
                assert!(page.contains("Quito &#60;b&#62;, EC"), "{status}: {page}");
            }
        }
    }

    #[test]
    fn a_promise_is_shown_while_it_holds_and_the_day_once_it_is_kept() {
        let words = words(Language::En);
        let day = |status: &ParcelStatus| {
            let arrival = Arrival::from_record(&record(status, Language::En), Language::En, words);
            arrival.map(|arrival| (arrival.label, arrival.date.machine))
        };
        let promised = Some((words.estimated_delivery, "2026-01-20".to_owned()));
        assert_eq!(day(&ParcelStatus::InTransit), promised);
        assert_eq!(day(&ParcelStatus::CustomsHold), promised);
        let kept = Some((words.delivered_on, "2026-01-12".to_owned()));
        assert_eq!(day(&ParcelStatus::Delivered), kept);
        for status in
            [ParcelStatus::Voided, ParcelStatus::ReturnToSender, ParcelStatus::DeliveryFailed]
        {
            assert_eq!(day(&status), None, "{status}");
        }
    }
}
