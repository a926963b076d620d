//! The chart of parcels by day and status: a picture that the browser scales, and the same numbers as text for users
//! who cannot see it.

use std::ops::RangeInclusive;

use parcelo_domain::activity::{ParcelCount, day_start};
use parcelo_types::{Language, ParcelStatus};

use super::frame::status_tone;

/// Height of the picture in its own units, without the line of dates.
const CHART_HEIGHT: u64 = 120;
/// Distance from one column to the next.
const COLUMN_STEP: u64 = 20;
/// Width of a column.
const COLUMN_WIDTH: u64 = 14;
/// The colours from the bottom of a column to its top, each with its name in both languages.
const LAYERS: [(&str, &str, &str); 5] = [
    ("done", "Delivered", "Entregados"),
    ("moving", "On the way", "En camino"),
    ("over", "Not yet sent, or voided", "Por enviar o anulados"),
    ("waiting", "Held up or returning", "Detenidos o de regreso"),
    ("failed", "Not delivered", "No entregados"),
];

/// The columns of one environment.
pub(super) struct Chart {
    pub(super) width: u64,
    pub(super) height: u64,
    /// Width of a column.
    pub(super) column_width: u64,
    pub(super) columns: Vec<Column>,
    pub(super) legend: Vec<Layer>,
    pub(super) max: u64,
    pub(super) first: String,
    pub(super) last: String,
}

/// The column of one day.
pub(super) struct Column {
    pub(super) x: u64,
    pub(super) day: String,
    pub(super) parcels: u64,
    pub(super) segments: Vec<Segment>,
}

/// The segment of a column that has one colour.
pub(super) struct Segment {
    pub(super) tone: &'static str,
    pub(super) y: u64,
    pub(super) height: u64,
}

/// An entry of the legend.
pub(super) struct Layer {
    pub(super) tone: &'static str,
    pub(super) name: &'static str,
    pub(super) parcels: u64,
}

impl Chart {
    pub(super) fn new(
        counted: &[ParcelCount],
        days: RangeInclusive<i64>,
        language: Language,
    ) -> Self {
        let sum = |day: Option<i64>, only_tone: Option<&str>| -> u64 {
            let matching =
                counted.iter().filter(|count| day.is_none_or(|day| count.created_day == day));
            let matching = matching.filter(|count| {
                only_tone.is_none_or(|expected| {
                    status_tone(&ParcelStatus::from(count.state)) == expected
                })
            });
            matching.map(|count| count.parcels).sum()
        };
        let max = days.clone().map(|day| sum(Some(day), None)).max().unwrap_or(0);
        let date = |day: i64| day_start(day).to_utc().date_naive().to_string();
        let mut columns = Vec::new();
        for (x, day) in (0..).step_by(20).zip(days.clone()) {
            let amounts = LAYERS.map(|(tone, ..)| (tone, sum(Some(day), Some(tone))));
            let parcels = sum(Some(day), None);
            columns.push(Column { x, day: date(day), parcels, segments: segments(&amounts, max) });
        }
        let layer = |(tone, en, es): (&'static str, _, _)| {
            let parcels = sum(None, Some(tone));
            (parcels > 0).then(|| Layer { tone, name: language.pick(en, es), parcels })
        };
        Self {
            width: COLUMN_STEP * columns.len() as u64,
            height: CHART_HEIGHT,
            column_width: COLUMN_WIDTH,
            columns,
            legend: LAYERS.into_iter().filter_map(layer).collect(),
            max,
            first: date(*days.start()),
            last: date(*days.end()),
        }
    }
}

/// Returns a column's segments from the bottom up. A segment that is not empty is visible, however small it is.
fn segments(amounts: &[(&'static str, u64)], max: u64) -> Vec<Segment> {
    let mut top = CHART_HEIGHT;
    let mut segments = Vec::new();
    for (tone, amount) in amounts.iter().filter(|(_, amount)| *amount > 0) {
        let share = amount.saturating_mul(CHART_HEIGHT).checked_div(max).unwrap_or(0);
        let height = share.clamp(2, CHART_HEIGHT).min(top);
        top -= height;
        segments.push(Segment { tone, y: top, height });
    }
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use parcelo_domain::State;

    #[test]
    fn column_heights_are_relative_to_the_busiest_day() {
        let country = parcelo_types::CountryCode::EC;
        let counted =
            |created_day, state, parcels| ParcelCount { created_day, state, country, parcels };
        let counts = [
            counted(11, State::Delivered, 30),
            counted(11, State::InTransit, 10),
            counted(12, State::DeliveryFailed, 1),
            counted(13, State::Voided, 20),
        ];
        let chart = Chart::new(&counts, 10..=13, Language::En);
        assert_eq!((chart.max, chart.width, chart.columns.len()), (40, 80, 4));
        let segments = |column: &Column| -> Vec<_> {
            column
                .segments
                .iter()
                .map(|segment| (segment.tone, segment.y, segment.height))
                .collect()
        };
        assert_eq!(segments(&chart.columns[0]), []);
        assert_eq!(segments(&chart.columns[1]), [("done", 30, 90), ("moving", 0, 30)]);
        assert_eq!(segments(&chart.columns[2]), [("failed", 117, 3)]);
        assert_eq!(segments(&chart.columns[3]), [("over", 60, 60)]);
        let legend: Vec<_> = chart.legend.iter().map(|layer| (layer.tone, layer.parcels)).collect();
        assert_eq!(legend, [("done", 30), ("moving", 10), ("over", 20), ("failed", 1)]);
    }

    #[test]
    fn every_status_has_a_colour_and_every_column_fits() {
        for status in ParcelStatus::KNOWN {
            assert!(LAYERS.iter().any(|(layer, ..)| *layer == status_tone(status)), "{status}");
        }
        let all = LAYERS.map(|(tone, ..)| (tone, 1));
        let heights: u64 = segments(&all, u64::MAX).iter().map(|segment| segment.height).sum();
        assert_eq!(heights, 10);
        assert!(
            segments(&LAYERS.map(|(tone, ..)| (tone, u64::MAX)), 1)
                .iter()
                .all(|p| p.y <= CHART_HEIGHT)
        );
        assert!(
            Chart::new(&[], 0..=1, Language::Es).columns.iter().all(|one| one.segments.is_empty())
        );
    }
}
