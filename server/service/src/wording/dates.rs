//! Formats dates as text in both languages, and offsets from UTC.

use chrono::{Datelike, FixedOffset, NaiveDate};
use parcelo_types::Language;

const MONTHS: [(&str, &str); 12] = [
    ("January", "enero"),
    ("February", "febrero"),
    ("March", "marzo"),
    ("April", "abril"),
    ("May", "mayo"),
    ("June", "junio"),
    ("July", "julio"),
    ("August", "agosto"),
    ("September", "septiembre"),
    ("October", "octubre"),
    ("November", "noviembre"),
    ("December", "diciembre"),
];

const WEEKDAYS: [(&str, &str); 7] = [
    ("Monday", "lunes"),
    ("Tuesday", "martes"),
    ("Wednesday", "miércoles"),
    ("Thursday", "jueves"),
    ("Friday", "viernes"),
    ("Saturday", "sábado"),
    ("Sunday", "domingo"),
];

/// Formats a date as `Tuesday, January 13, 2026` or `martes, 13 de enero de 2026`.
pub fn format_date(date: NaiveDate, language: Language) -> String {
    let weekday = date.weekday().num_days_from_monday();
    let weekday = localized_name(&WEEKDAYS, weekday, language);
    let month = localized_name(&MONTHS, date.month0(), language);
    let (day, year) = (date.day(), date.year());
    match language {
        Language::En => format!("{weekday}, {month} {day}, {year}"),
        Language::Es => format!("{weekday}, {day} de {month} de {year}"),
    }
}

/// Formats an offset from UTC as `UTC−5`, `UTC+5:30` or `UTC`.
pub(crate) fn format_offset(offset: FixedOffset) -> String {
    let minutes = offset.local_minus_utc() / 60;
    let sign = if minutes < 0 { '−' } else { '+' };
    match (minutes.abs() / 60, minutes.abs() % 60) {
        (0, 0) => "UTC".to_owned(),
        (hours, 0) => format!("UTC{sign}{hours}"),
        (hours, rest) => format!("UTC{sign}{hours}:{rest:02}"),
    }
}

fn localized_name(
    names: &[(&'static str, &'static str)],
    index: u32,
    language: Language,
) -> &'static str {
    let index = usize::try_from(index).unwrap_or_default();
    names.get(index).map_or("", |(en, es)| language.pick(en, es))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_formatted_in_both_languages() {
        let table = [
            ("2026-01-13", "Tuesday, January 13, 2026", "martes, 13 de enero de 2026"),
            ("2028-02-29", "Tuesday, February 29, 2028", "martes, 29 de febrero de 2028"),
            ("2026-12-06", "Sunday, December 6, 2026", "domingo, 6 de diciembre de 2026"),
        ];
        for (date, en, es) in table {
            let date = date.parse().unwrap();
            assert_eq!(format_date(date, Language::En), en);
            assert_eq!(format_date(date, Language::Es), es);
        }
    }

    #[test]
    fn every_weekday_and_month_has_a_name() {
        for day in 0..366 {
            let date = NaiveDate::from_epoch_days(20_454 + day).unwrap();
            for language in [Language::En, Language::Es] {
                let text = format_date(date, language);
                assert!(!text.starts_with(',') && !text.contains("  "), "{text}");
                assert!(!text.contains("de  de"), "{text}");
            }
        }
    }

    #[test]
    fn an_offset_is_formatted_relative_to_utc() {
        let table = [(0, "UTC"), (-18_000, "UTC−5"), (19_800, "UTC+5:30"), (3_600, "UTC+1")];
        for (seconds, text) in table {
            assert_eq!(format_offset(FixedOffset::east_opt(seconds).unwrap()), text);
        }
    }
}
