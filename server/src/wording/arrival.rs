//! The text of a parcel's arrival: a caption, the date and a hint.

use chrono::NaiveDate;
use parcelo::{
    Language,
    model::{Arrival, ArrivalKind},
};

use super::{dates::in_words, words::words};

/// The text of the day on which the parcel arrives, should have arrived, or has arrived.
pub(crate) struct ArrivalText {
    pub(crate) label: &'static str,
    /// The word before the date: `Today`.
    pub(crate) date_prefix: Option<&'static str>,
    pub(crate) hint: Option<&'static str>,
    pub(crate) date: DisplayDate,
    pub(crate) is_late: bool,
}

/// A date as ISO 8601 and as text for readers.
pub(crate) struct DisplayDate {
    pub(crate) machine: String,
    pub(crate) words: String,
}

impl ArrivalText {
    /// Creates the text; `None` for a kind that this version does not know.
    pub(crate) fn new(known: &Arrival, language: Language) -> Option<Self> {
        let words = words(language);
        let (label, lead, hint) = match known.kind {
            ArrivalKind::Expected => (words.estimated_delivery, None, Some(words.by_end_of_day)),
            ArrivalKind::Today => {
                (words.estimated_delivery, Some(words.today), Some(words.by_end_of_day))
            }
            ArrivalKind::Delayed => (words.delayed, None, Some(words.no_new_date)),
            ArrivalKind::Delivered => (words.delivered_on, None, None),
            // A kind that is newer than this server.
            _ => return None,
        };
        let is_late = known.kind == ArrivalKind::Delayed;
        Some(Self {
            label,
            date_prefix: lead,
            hint,
            date: DisplayDate::new(known.date, language),
            is_late,
        })
    }
}

impl DisplayDate {
    pub(crate) fn new(date: NaiveDate, language: Language) -> Self {
        Self { machine: date.to_string(), words: in_words(date, language) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_says_what_is_known_and_nothing_else() {
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
        for (kind, label, lead, hint, is_late) in table {
            let known = Arrival::new(kind.clone(), "2026-01-20".parse().unwrap());
            let promise = ArrivalText::new(&known, Language::En).unwrap();
            let texts =
                (promise.label, promise.date_prefix.unwrap_or(""), promise.hint.unwrap_or(""));
            assert_eq!((texts, promise.is_late), ((label, lead, hint), is_late), "{kind}");
            assert_eq!(promise.date.words, "Tuesday, January 20, 2026");
        }
        let newer = Arrival::new("TELEPORTED".into(), "2026-01-20".parse().unwrap());
        assert!(ArrivalText::new(&newer, Language::En).is_none());
    }
}
