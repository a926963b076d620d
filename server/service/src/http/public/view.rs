//! The data of the pages' templates, with all texts already in the page's language.

use std::sync::LazyLock;

use askama::Template;
use axum::http::HeaderValue;
use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use chrono::FixedOffset;
use parcelo_domain::{Millis, Shop};
use parcelo_types::{
    Environment, Language, ParcelStatus, TrackingNumber,
    model::{HistoryEntry, Row, TrackingRecord},
};
use sha2::{Digest, Sha256};
use url::form_urlencoded;

use crate::wording::{
    ArrivalText, DisplayDate, TrackingPageTexts, format_date, format_offset, page_texts,
    receiver_advice, status_explanation, status_name,
};

/// The content security policy of a page: it may show its own style sheet, identified by its hash, and its icon. No
/// script, no form, no frame around it, and nothing from elsewhere.
pub(super) static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| policy("'none'"));

/// The same policy for a page that may send its form to its own site.
pub(super) static POLICY_WITH_FORM: LazyLock<HeaderValue> = LazyLock::new(|| policy("'self'"));

fn policy(form: &str) -> HeaderValue {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; img-src data:; base-uri 'none'; \
         form-action {form}; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

/// The style sheet, which is part of each page.
const STYLE: &str = include_str!("../../../templates/track.css");

/// The frame of every page.
pub(super) struct Frame {
    pub(super) language: Language,
    pub(super) other: Language,
    pub(super) other_name: &'static str,
    /// The same page in the other language.
    pub(super) other_link: String,
    /// The address of the page with the field for a number.
    pub(super) lookup_url: String,
    /// The address of the same page, in the chosen language.
    pub(super) home: String,
    pub(super) texts: &'static TrackingPageTexts,
    pub(super) sandbox: bool,
    pub(super) style: &'static str,
}

/// The form with the field for a number.
pub(super) struct LookupForm {
    pub(super) typed: String,
    /// The language, if the address names it.
    pub(super) language: Option<Language>,
    pub(super) is_invalid: bool,
}

/// The page with the field for a number.
#[derive(Template)]
#[template(path = "lookup_page.html")]
pub(super) struct LookupPage {
    pub(super) frame: Frame,
    pub(super) lookup: LookupForm,
}

/// A parcel's page.
#[derive(Template)]
#[template(path = "parcel.html")]
pub(super) struct ParcelPage {
    frame: Frame,
    number: String,
    status: String,
    meaning: &'static str,
    advice: &'static [&'static str],
    shop: Option<ShopView>,
    appearance: Appearance,
    stages: Vec<Stage>,
    arrival: Option<ArrivalText>,
    events: Vec<Entry>,
    times_heading: String,
    /// The time when the page was loaded, if it reloads itself.
    updated: Option<DisplayDate>,
}

/// The shop that sent the parcel, if it describes itself.
struct ShopView {
    name: Option<String>,
    /// The address and text of a link.
    contact: Option<(String, String)>,
}

/// A page that says why there is no parcel to show.
#[derive(Template)]
#[template(path = "notice.html")]
pub(super) struct NoticePage {
    frame: Frame,
    heading: &'static str,
    text: String,
    number: Option<String>,
    advice: &'static [&'static str],
    lookup: Option<LookupForm>,
}

/// The colour and picture of a status for someone who waits for the parcel.
#[derive(Clone, Copy)]
enum Appearance {
    Start,
    Moving,
    Waiting,
    Returning,
    Done,
    Failed,
    Ended,
}

/// A stage of the journey: past, present or ahead.
struct Stage {
    name: &'static str,
    class: &'static str,
}

/// A line of the timeline; the first of a day names the day.
struct Entry {
    day: Option<DisplayDate>,
    moment: String,
    time: String,
    status: String,
    location: String,
}

impl Frame {
    pub(super) fn new(
        (language, is_chosen): (Language, bool),
        environment: Environment,
        lookup_url: String,
    ) -> Self {
        let (other, other_name) =
            language.pick((Language::Es, "Español"), (Language::En, "English"));
        let sandbox = matches!(environment, Environment::Sandbox);
        let other_link = format!("?lang={}", other.code());
        let (texts, style) = (page_texts(language), STYLE);
        let chosen = if is_chosen { format!("?lang={}", language.code()) } else { String::new() };
        let home = format!("{lookup_url}{chosen}");
        Self { language, other, other_name, other_link, lookup_url, home, texts, sandbox, style }
    }

    /// Makes the link to the other language keep the typed text.
    fn with_typed_text(self, lookup: &LookupForm) -> Self {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if !lookup.typed.is_empty() {
            query.append_pair(super::NUMBER, &lookup.typed);
        }
        query.append_pair("lang", self.other.code());
        Self { other_link: format!("{}?{}", self.lookup_url, query.finish()), ..self }
    }

    /// Returns the locale for link previews, which need a region: Spanish is Latin American Spanish.
    pub(super) fn locale(&self) -> &'static str {
        self.language.pick("en_US", "es_LA")
    }
}

impl ParcelPage {
    pub(super) fn new(frame: Frame, record: &TrackingRecord, (shop, now): (Shop, Millis)) -> Self {
        let (language, texts) = (frame.language, frame.texts);
        let offset = *record.estimated_delivery.offset();
        let is_on_its_way = !record.status.is_final();
        let history = record.history.as_deref().unwrap_or_default();
        Self {
            number: record.tracking_number.to_string(),
            status: status_name(&record.status, language).to_owned(),
            meaning: status_explanation(&record.status, language),
            advice: receiver_advice(&record.status, language),
            shop: ShopView::new(shop),
            appearance: Appearance::for_status(&record.status),
            stages: stages(&record.status, texts),
            arrival: record
                .arrival
                .as_ref()
                .and_then(|arrival| ArrivalText::new(arrival, language)),
            events: entries(history, offset, language),
            times_heading: times_heading(offset, texts),
            updated: is_on_its_way.then(|| dated_time(now, offset, language)),
            frame,
        }
    }
}

/// Returns the heading of the history's times. They are in UTC for a destination that has several time zones, or an
/// unknown one.
fn times_heading(offset: FixedOffset, texts: &TrackingPageTexts) -> String {
    match offset.local_minus_utc() {
        0 => texts.times_in_utc.to_owned(),
        _ => format!("{} ({})", texts.times, format_offset(offset)),
    }
}

/// Returns the time of day with its date, because the page may have been open for days.
fn dated_time(at: Millis, offset: FixedOffset, language: Language) -> DisplayDate {
    let at = at.to_utc();
    let local = at.with_timezone(&offset);
    let text = format!("{}, {}", format_date(local.date_naive(), language), local.format("%H:%M"));
    DisplayDate { iso: parcelo_types::internal::time::to_text(at), text }
}

impl ShopView {
    fn new(shop: Shop) -> Option<Self> {
        let contact = shop.contact.map(|contact| (contact.link(), contact.text()));
        (shop.name.is_some() || contact.is_some()).then_some(Self { name: shop.name, contact })
    }
}

impl NoticePage {
    /// Returns the notice for an unknown number, or for a text that is not a number.
    pub(super) fn not_found(frame: Frame, lookup: LookupForm) -> Self {
        let texts = frame.texts;
        let number = TrackingNumber::parse(&lookup.typed).ok();
        let text = if number.is_some() { texts.unknown_number } else { texts.no_number };
        Self {
            frame: frame.with_typed_text(&lookup),
            heading: texts.not_found,
            text: text.to_owned(),
            number: number.map(|number| number.to_string()),
            advice: &texts.advice,
            lookup: Some(LookupForm { is_invalid: true, ..lookup }),
        }
    }

    pub(super) fn for_refusal(frame: Frame, text: String) -> Self {
        let texts = frame.texts;
        let advice = std::slice::from_ref(&texts.try_again);
        let heading = texts.unavailable;
        Self { frame, heading, text, number: None, advice, lookup: None }
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
            ParcelStatus::Voided => Self::Ended,
            // The parcel is in transit, or in a status that is newer than this page.
            _ => Self::Moving,
        }
    }

    /// Returns the class in the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Self::Start | Self::Moving => "moving",
            Self::Waiting | Self::Returning => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Ended => "over",
        }
    }

    /// Returns the picture as an SVG path in a 24 × 24 view box.
    const fn svg_path(self) -> &'static str {
        match self {
            Self::Start => "M12 3 4 7v10l8 4 8-4V7zM4 7l8 4 8-4M12 11v10M8 5l8 4",
            Self::Moving => {
                "M4.5 17H2V6h12v11H9.5M14 10h4l4 3.5V17h-2.5M14.5 17H14M7 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4zM17 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z"
            }
            Self::Waiting => "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 7v5l3.5 2",
            Self::Returning => "M9 5 4 10l5 5M4 10h10a5 5 0 0 1 0 10h-4",
            Self::Done => "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM8 12.3l2.7 2.7L16 9.5",
            Self::Failed | Self::Ended => "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM9 9l6 6M15 9l-6 6",
        }
    }
}

/// Returns the four stages of the journey, or none if the parcel has left it.
fn stages(status: &ParcelStatus, texts: &TrackingPageTexts) -> Vec<Stage> {
    let current = match status {
        ParcelStatus::Ordered | ParcelStatus::LabelGenerated | ParcelStatus::ManifestSubmitted => 0,
        ParcelStatus::PickedUp
        | ParcelStatus::CustomsClearance
        | ParcelStatus::CustomsHold
        | ParcelStatus::InTransit => 1,
        ParcelStatus::OutForDelivery | ParcelStatus::DeliveryAttempted => 2,
        ParcelStatus::Delivered => 3,
        _ => return Vec::new(),
    };
    let class = |index| match usize::cmp(&index, &current) {
        std::cmp::Ordering::Less => "past",
        std::cmp::Ordering::Equal => "here",
        std::cmp::Ordering::Greater => "ahead",
    };
    let names = texts.stages.into_iter().enumerate();
    names.map(|(index, name)| Stage { name, class: class(index) }).collect()
}

/// Returns the timeline, newest first.
fn entries(history: &[Row<HistoryEntry>], offset: FixedOffset, language: Language) -> Vec<Entry> {
    let mut day = None;
    let lines = history.iter().flatten().rev().map(|entry| {
        let at = entry.timestamp.with_timezone(&offset);
        let date = Some(at.date_naive());
        let is_first = day != date;
        day = date;
        Entry {
            day: is_first.then(|| DisplayDate::new(at.date_naive(), language)),
            moment: parcelo_types::internal::time::to_text(entry.timestamp),
            time: at.format("%H:%M").to_string(),
            status: status_name(&entry.status, language).to_owned(),
            location: entry.location.clone(),
        }
    });
    lines.collect()
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
    fn every_status_has_a_page_with_local_times_in_both_languages() {
        for status in
            ParcelStatus::KNOWN.iter().chain([&ParcelStatus::Unknown("TELEPORTED".to_owned())])
        {
            for language in [Language::En, Language::Es] {
                let frame =
                    Frame::new((language, false), Environment::Production, "/track".to_owned());
                let record = record(status, language);
                let page = ParcelPage::new(frame, &record, (Shop::default(), Millis(0)));
                let page = page.render().unwrap();
                assert!(
                    page.contains(&format!(
                        "<h1 id=\"now\">{}</h1>",
                        status_name(status, language)
                    )),
                    "{status}"
                );
                // In UTC it would be the next day, and three in the afternoon instead of ten in the morning.
                assert!(
                    page.contains("datetime=\"2026-01-09\"") && page.contains(">10:20<"),
                    "{status}"
                );
                assert!(page.contains("Quito &#60;b&#62;, EC"), "{status}: {page}");
            }
        }
    }

    #[test]
    fn times_in_utc_are_not_called_local() {
        let heading = |hours: i32| {
            times_heading(FixedOffset::east_opt(hours * 3_600).unwrap(), page_texts(Language::En))
        };
        assert_eq!(heading(-5), "Times at the destination (UTC−5)");
        assert_eq!(heading(0), "Times in UTC");
    }
}
