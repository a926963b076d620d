//! How an import goes, on standard error: a bar where there is a terminal, a line now and then
//! elsewhere, nothing for programs.

use std::{
    io::{self, IsTerminal, Write},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use parcelo::Language;

use crate::{
    import::Tally,
    texts::{Said, import as texts},
    voice::Voice,
};

/// What people see of an import while it runs.
#[derive(Debug)]
pub(crate) struct Progress {
    all: u64,
    language: Language,
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Bar(ProgressBar),
    /// How often it was told, of which only some are shown.
    Lines(u32),
    Nothing,
}

/// Five seconds, as often as the import tells.
const TICKS: u32 = 25;

impl Progress {
    pub(crate) fn new(all: u64, quiet: bool, voice: Voice) -> Self {
        let shown = if quiet || voice.format.is_json() {
            Shown::Nothing
        } else if io::stderr().is_terminal() {
            Shown::Bar(bar(all))
        } else {
            Shown::Lines(0)
        };
        Self { all, language: voice.language, shown }
    }

    /// Tells how it stands.
    pub(crate) fn tick(&mut self, tally: &Tally) {
        let said = said(tally, self.all);
        let said = said.pick(self.language);
        match &mut self.shown {
            Shown::Bar(bar) => {
                bar.set_position(tally.all());
                let left = left(bar.eta());
                let left = texts::LEFT.with(&[("progress", said), ("left", &left)]);
                bar.set_message(left.pick(self.language).to_owned());
            }
            Shown::Lines(ticks) => {
                *ticks += 1;
                if ticks.is_multiple_of(TICKS) {
                    write(said);
                }
            }
            Shown::Nothing => {}
        }
    }

    /// Says something besides.
    pub(crate) fn say(&self, said: &Said) {
        let said = said.pick(self.language);
        match &self.shown {
            Shown::Bar(bar) => bar.suspend(|| write(said)),
            Shown::Lines(_) => write(said),
            Shown::Nothing => {}
        }
    }

    /// Leaves the terminal as it was.
    pub(crate) fn end(&self, tally: &Tally) {
        let said = said(tally, self.all);
        match &self.shown {
            Shown::Bar(bar) => {
                bar.finish_and_clear();
                write(said.pick(self.language));
            }
            Shown::Lines(_) => write(said.pick(self.language)),
            Shown::Nothing => {}
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

fn said(tally: &Tally, all: u64) -> Said {
    let (done, good) = (tally.all(), tally.good());
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
