//! The progress of an import on standard error: a bar on a terminal, a line every few seconds elsewhere, and nothing
//! with JSON output.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parcelo::Language;

use crate::{
    import::RowCounts,
    output::format::OutputOptions,
    texts::{self as general, Message, import as texts},
};

/// The progress of an import.
#[derive(Debug)]
pub(crate) struct Progress {
    all: u64,
    language: Language,
    display: Display,
}

#[derive(Debug)]
enum Display {
    Bar(ProgressBar),
    /// The number of ticks; a line is written every `TICKS_PER_LINE`.
    Lines(u32),
    Nothing,
}

/// Number of ticks between two lines: five seconds, with a tick every 200 ms.
const TICKS_PER_LINE: u32 = 25;

impl Progress {
    pub(crate) fn new(all: u64, quiet: bool, options: OutputOptions) -> Self {
        let display = if quiet || options.format.is_json() {
            Display::Nothing
        } else if io::stderr().is_terminal() {
            Display::Bar(bar(all))
        } else {
            Display::Lines(0)
        };
        Self { all, language: options.language, display }
    }

    /// Shows the current counts.
    pub(crate) fn tick(&mut self, counts: &RowCounts) {
        let text = counts_text(counts, self.all);
        match &mut self.display {
            Display::Bar(bar) => {
                bar.set_position(counts.all());
                let text = with_eta(text, bar.eta());
                bar.set_message(text.pick(self.language).to_owned());
            }
            Display::Lines(ticks) => {
                *ticks += 1;
                if ticks.is_multiple_of(TICKS_PER_LINE) {
                    write(text.pick(self.language));
                }
            }
            Display::Nothing => {}
        }
    }

    /// Prints a message without disturbing the bar.
    pub(crate) fn print(&self, message: &Message) {
        let text = message.pick(self.language);
        match &self.display {
            Display::Bar(bar) => bar.suspend(|| write(text)),
            Display::Lines(_) => write(text),
            Display::Nothing => {}
        }
    }

    /// Removes the bar, and prints the final counts.
    pub(crate) fn end(&self, counts: &RowCounts) {
        let text = counts_text(counts, self.all);
        match &self.display {
            Display::Bar(bar) => {
                bar.finish_and_clear();
                write(text.pick(self.language));
            }
            Display::Lines(_) => write(text.pick(self.language)),
            Display::Nothing => {}
        }
    }
}

fn bar(all: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template("{bar:24} {percent}% {wide_msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Adds the estimated time left as soon as there is an estimate; until then the bar reports 0. A narrow terminal cuts
/// off the end.
fn with_eta(counts: Message, eta: Duration) -> Message {
    if eta.is_zero() {
        return counts;
    }
    let left = general::AS_IS.with(&[("value", &format_eta(eta))]);
    texts::TIME_LEFT.with_messages(&[("progress", &counts), ("left", &left)])
}

/// Formats a duration with units that are the same in both languages.
fn format_eta(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

fn counts_text(counts: &RowCounts, all: u64) -> Message {
    let (done, good) = (counts.all(), counts.complete());
    let [done_text, all, good_text, bad] =
        [done, all, good, done - good].map(|number| number.to_string());
    texts::PROGRESS.with(&[
        ("done", &done_text),
        ("all", &all),
        ("good", &good_text),
        ("bad", &bad),
    ])
}

fn write(text: &str) {
    // Without a standard error it cannot be shown.
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_remaining_time_is_shown_without_an_estimate() {
        let counts = counts_text(&RowCounts::default(), 500);
        assert_eq!(with_eta(counts.clone(), Duration::ZERO), counts);
        let text = with_eta(counts.clone(), Duration::from_secs(90)).en;
        assert_eq!(text, format!("about 90 s left; {}", counts.en));
    }

    #[test]
    fn the_remaining_time_needs_no_translation() {
        let table =
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "119 min"), (7_200, "2 h")];
        for (seconds, expected) in table {
            assert_eq!(format_eta(Duration::from_secs(seconds)), expected);
        }
    }
}
