//! The text of a parcel's arrival: a caption, the date and a hint.

use chrono::NaiveDate;
use parcelo_types::{
    Language,
    model::{Arrival, ArrivalKind},
};

use super::{dates::format_date, texts::page_texts};

/// The texts about the arrival of a parcel: when it is expected, was expected, or happened.
pub(crate) struct ArrivalText {
    pub label: &'static str,
    /// The text before the date: `Today`.
    pub date_prefix: Option<&'static str>,
    pub hint: Option<&'static str>,
    pub date: DisplayDate,
    pub is_late: bool,
}

/// A date in ISO 8601 and in words.
pub(crate) struct DisplayDate {
    pub iso: String,
    pub text: String,
}

impl ArrivalText {
    /// Returns the texts for an arrival; `None` for a kind that this version does not know.
    pub(crate) fn new(arrival: &Arrival, language: Language) -> Option<Self> {
        let texts = page_texts(language);
        let (label, date_prefix, hint) = match arrival.kind {
            ArrivalKind::Expected => (texts.estimated_delivery, None, Some(texts.by_end_of_day)),
            ArrivalKind::Today => {
                (texts.estimated_delivery, Some(texts.today), Some(texts.by_end_of_day))
            }
            ArrivalKind::Delayed => (texts.delayed, None, Some(texts.no_new_date)),
            ArrivalKind::Delivered => (texts.delivered_on, None, None),
            // A kind that is newer than this server.
            _ => return None,
        };
        let is_late = arrival.kind == ArrivalKind::Delayed;
        Some(Self {
            label,
            date_prefix,
            hint,
            date: DisplayDate::new(arrival.date, language),
            is_late,
        })
    }
}

impl DisplayDate {
    pub(crate) fn new(date: NaiveDate, language: Language) -> Self {
        Self { iso: date.to_string(), text: format_date(date, language) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_arrival_has_its_text() {
        let table = [
            (ArrivalKind::Expected, "Estimated delivery", "", "By the end of the day", false),
            (ArrivalKind::Today, "Estimated delivery", "Today", "By the end of the day", false),
            (
                ArrivalKind::Delayed,
                "Delayed: expected on",
                "",
                "The new date is not known yet.",
                true,
            ),
            (ArrivalKind::Delivered, "Delivered on", "", "", false),
        ];
        for (kind, label, date_prefix, hint, is_late) in table {
            let arrival = Arrival::new(kind.clone(), "2026-01-20".parse().unwrap());
            let text = ArrivalText::new(&arrival, Language::En).unwrap();
            let texts = (text.label, text.date_prefix.unwrap_or(""), text.hint.unwrap_or(""));
            assert_eq!((texts, text.is_late), ((label, date_prefix, hint), is_late), "{kind}");
            assert_eq!(text.date.text, "Tuesday, January 20, 2026");
        }
        let newer = Arrival::new("TELEPORTED".into(), "2026-01-20".parse().unwrap());
        assert!(ArrivalText::new(&newer, Language::En).is_none());
    }
}
