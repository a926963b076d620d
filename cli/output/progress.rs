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
                let left = indicatif::HumanDuration(whole(bar.eta())).to_string();
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
    match ProgressStyle::with_template("{bar:24} {percent}% {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn whole(left: Duration) -> Duration {
    Duration::from_secs(left.as_secs())
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
