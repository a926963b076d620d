//! How an import goes, on standard error: a bar where there is a terminal, a line now and then
//! elsewhere, nothing for programs.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parcelo::Language;

use crate::{
    import::RowCounts,
    output::format::OutputOptions,
    texts::{Message, import as texts},
};

/// What people see of an import while it runs.
#[derive(Debug)]
pub(crate) struct Progress {
    all: u64,
    language: Language,
    display: Display,
}

#[derive(Debug)]
enum Display {
    Bar(ProgressBar),
    /// How many ticks there were; a line is written every `TICKS_PER_LINE`.
    Lines(u32),
    Nothing,
}

/// Five seconds, as often as the import tells.
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

    /// Tells how it stands.
    pub(crate) fn tick(&mut self, counts: &RowCounts) {
        let said = said(counts, self.all);
        let said = said.pick(self.language);
        match &mut self.display {
            Display::Bar(bar) => {
                bar.set_position(counts.all());
                let left = left(bar.eta());
                let left = texts::LEFT.with(&[("progress", said), ("left", &left)]);
                bar.set_message(left.pick(self.language).to_owned());
            }
            Display::Lines(ticks) => {
                *ticks += 1;
                if ticks.is_multiple_of(TICKS_PER_LINE) {
                    write(said);
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

    /// Leaves the terminal as it was.
    pub(crate) fn end(&self, counts: &RowCounts) {
        let said = said(counts, self.all);
        match &self.display {
            Display::Bar(bar) => {
                bar.finish_and_clear();
                write(said.pick(self.language));
            }
            Display::Lines(_) => write(said.pick(self.language)),
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

/// Seconds, minutes or hours as every language writes them.
fn left(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

fn said(counts: &RowCounts, all: u64) -> Message {
    let (done, good) = (counts.all(), counts.good());
    let [done_text, all, good_text, bad] =
        [done, all, good, done - good].map(|number| number.to_string());
    texts::PROGRESS.with(&[
        ("done", &done_text),
        ("all", &all),
        ("good", &good_text),
        ("bad", &bad),
    ])
}

fn write(said: &str) {
    // Who closed standard error does not want to know.
    let _ = writeln!(io::stderr(), "{said}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_is_left_is_said_in_no_language() {
        let table =
            [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7_199, "119 min"), (7_200, "2 h")];
        for (seconds, expected) in table {
            assert_eq!(left(Duration::from_secs(seconds)), expected);
        }
    }
}
