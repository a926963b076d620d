//! The chart of parcels by day and status: a picture that the browser scales, and the same numbers as text for users
//! who cannot see it.

use std::ops::RangeInclusive;

use parcelo::{Language, ParcelStatus};

use super::frame::tone;
use crate::domain::activity::{ParcelCount, begin_of};

/// Height of the picture in its own units, without the line of dates.
const HEIGHT: u64 = 120;
/// Distance from one column to the next.
const STEP: u64 = 20;
/// Width of a column.
const WIDTH: u64 = 14;
/// The colours from the bottom of a column to its top, and their meanings.
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
    pub(super) bar: u64,
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
    pub(super) parts: Vec<Part>,
}

/// The part of a day's parcels that has one colour.
pub(super) struct Part {
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
        let sum = |day: Option<i64>, tone_of: Option<&str>| -> u64 {
            let wanted = counted.iter().filter(|one| day.is_none_or(|day| one.created_day == day));
            let wanted = wanted.filter(|one| {
                tone_of.is_none_or(|wanted| tone(&ParcelStatus::from(one.state)) == wanted)
            });
            wanted.map(|one| one.parcels).sum()
        };
        let max = days.clone().map(|day| sum(Some(day), None)).max().unwrap_or(0);
        let date = |day: i64| begin_of(day).to_utc().date_naive().to_string();
        let mut columns = Vec::new();
        for (x, day) in (0..).step_by(20).zip(days.clone()) {
            let amounts = LAYERS.map(|(tone, ..)| (tone, sum(Some(day), Some(tone))));
            let parcels = sum(Some(day), None);
            columns.push(Column { x, day: date(day), parcels, parts: parts(&amounts, max) });
        }
        let layer = |(tone, en, es): (&'static str, _, _)| {
            let parcels = sum(None, Some(tone));
            (parcels > 0).then(|| Layer { tone, name: language.pick(en, es), parcels })
        };
        Self {
            width: STEP * columns.len() as u64,
            height: HEIGHT,
            bar: WIDTH,
            columns,
            legend: LAYERS.into_iter().filter_map(layer).collect(),
            max,
            first: date(*days.start()),
            last: date(*days.end()),
        }
    }
}

/// Returns a column's parts from the bottom up. A part that is not empty is visible, however small it is.
fn parts(amounts: &[(&'static str, u64)], max: u64) -> Vec<Part> {
    let mut top = HEIGHT;
    let mut parts = Vec::new();
    for (tone, amount) in amounts.iter().filter(|(_, amount)| *amount > 0) {
        let share = amount.saturating_mul(HEIGHT).checked_div(max).unwrap_or(0);
        let height = share.clamp(2, HEIGHT).min(top);
        top -= height;
        parts.push(Part { tone, y: top, height });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::State;

    #[test]
    fn columns_are_as_high_as_their_share_of_the_fullest_day() {
        let country = parcelo::CountryCode::EC;
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
        let drawn = |column: &Column| -> Vec<_> {
            column.parts.iter().map(|part| (part.tone, part.y, part.height)).collect()
        };
        assert_eq!(drawn(&chart.columns[0]), []);
        assert_eq!(drawn(&chart.columns[1]), [("done", 30, 90), ("moving", 0, 30)]);
        assert_eq!(drawn(&chart.columns[2]), [("failed", 117, 3)]);
        assert_eq!(drawn(&chart.columns[3]), [("over", 60, 60)]);
        let legend: Vec<_> = chart.legend.iter().map(|layer| (layer.tone, layer.parcels)).collect();
        assert_eq!(legend, [("done", 30), ("moving", 10), ("over", 20), ("failed", 1)]);
    }

    #[test]
    fn every_status_has_a_colour_and_no_column_leaves_the_picture() {
        for status in ParcelStatus::KNOWN {
            assert!(LAYERS.iter().any(|(layer, ..)| *layer == tone(status)), "{status}");
        }
        let all = LAYERS.map(|(tone, ..)| (tone, 1));
        let heights: u64 = parts(&all, u64::MAX).iter().map(|part| part.height).sum();
        assert_eq!(heights, 10);
        assert!(parts(&LAYERS.map(|(tone, ..)| (tone, u64::MAX)), 1).iter().all(|p| p.y <= HEIGHT));
        assert!(
            Chart::new(&[], 0..=1, Language::Es).columns.iter().all(|one| one.parts.is_empty())
        );
    }
}
