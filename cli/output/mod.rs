//! Everything that the process prints: results on standard output, all else on standard error.
//! This is the only place that does.

mod attempts;
mod csv;
mod errors;
mod events;
mod findings;
mod grid;
mod import;
mod json;
mod progress;
mod table;
mod watch;

pub(crate) use events::{EventPrinter, ReceivedEvent};
pub(crate) use progress::Progress;
pub(crate) use watch::Screen;

use std::{
    io::{self, IsTerminal, Write},
    panic::{self, PanicHookInfo},
    process::ExitCode,
};

use errors::FailureView;
use json::Layout;
use parcelo::Environment;
use tracing_subscriber::layer::SubscriberExt;

use crate::{
    failure::{Exit, Failure},
    results::{CommandOutcome, Results},
    settings::Settings,
    texts::{self, Message},
    voice::{Format, Voice},
};

/// Tells what was done and what not; the exit code says it again.
pub(crate) fn finish(done: &CommandOutcome, voice: Voice) -> ExitCode {
    let written = match &done.results {
        Some(results) => write_results(results, voice),
        None => Ok(()),
    };
    let lost = match written {
        // Who closes the pipe has seen enough.
        Err(fault) if !is_closed_pipe(&fault) => Some(Failure::output_lost(&fault)),
        _ => None,
    };
    let failure = done.failure.as_ref().or(lost.as_ref());
    // When standard error is closed too, the exit code is all that is left to say it.
    let _ = write_words(done, failure, voice);
    failure.map_or(Exit::Done, |failure| failure.exit).into()
}

/// True when nobody reads standard output any more.
pub(crate) fn is_closed_pipe(fault: &io::Error) -> bool {
    fault.kind() == io::ErrorKind::BrokenPipe || csv::cause(fault).is_some_and(is_closed_pipe)
}

fn write_results(results: &Results, voice: Voice) -> io::Result<()> {
    let mut out = io::BufWriter::new(anstream::stdout());
    match results {
        Results::Help(help) => write!(out, "{help}")?,
        Results::File(content) => {
            // Not through the filter for colours: the content may hold any bytes.
            let mut raw = io::stdout().lock();
            raw.write_all(content)?;
            raw.flush()?;
        }
        Results::Columns(columns) => import::write_sample(&mut out, columns)?,
        results => match voice.format {
            Format::Ndjson => json::write(&mut out, results, Layout::Lines)?,
            Format::Json => json::write(&mut out, results, Layout::Document)?,
            // An order to start from is JSON whatever the rest is.
            _ if matches!(results, Results::Sample(_)) => {
                json::write(&mut out, results, Layout::Document)?;
            }
            Format::Table => table::write(&mut out, results, voice.language)?,
            Format::Csv if is_terminal() => {
                let mut rows = Vec::new();
                csv::write(&mut rows, results, voice.language)?;
                write_rows(&mut out, &rows)?;
            }
            Format::Csv => csv::write(&mut out, results, voice.language)?,
        },
    }
    out.flush()
}

/// Writes rows of comma-separated values, on a terminal without what could command it.
fn write_rows(out: &mut impl Write, rows: &[u8]) -> io::Result<()> {
    if !is_terminal() {
        return out.write_all(rows);
    }
    String::from_utf8_lossy(rows).lines().try_for_each(|row| writeln!(out, "{}", plain(row)))
}

fn write_words(done: &CommandOutcome, failure: Option<&Failure>, voice: Voice) -> io::Result<()> {
    let mut err = anstream::stderr().lock();
    if voice.format.is_json() {
        return match failure {
            Some(failure) => json::one(&mut err, &FailureView::of(failure), Layout::Lines),
            None => Ok(()),
        };
    }
    for note in &done.notes {
        writeln!(err, "{}", note.pick(voice.language))?;
    }
    for warning in done.results.iter().flat_map(Results::warnings) {
        errors::write_warning(&mut err, warning, voice.language)?;
    }
    match failure {
        Some(failure) => errors::write_failure(&mut err, failure, voice.language),
        None => Ok(()),
    }
}

/// With `--verbose`, tells of every attempt and wait as they come.
pub(crate) fn tell_attempts(verbose: bool, voice: Voice) {
    if verbose {
        let subscriber = tracing_subscriber::registry().with(attempts::AttemptLog(voice.language));
        // There is no other one: this is called once, at the start.
        let _ = tracing::subscriber::set_global_default(subscriber);
    }
}

/// Says that others can read the keys in the file of profiles. Programs hear of it by `doctor`.
pub(crate) fn warn_of_exposure(settings: &Settings, voice: Voice) {
    let Some(Ok(profiles)) = settings.file.as_ref().filter(|_| settings.are_exposed()) else {
        return;
    };
    if !voice.format.is_json() {
        let values = [("file", &*plain(&profiles.file.to_string_lossy()))];
        let said = texts::EXPOSED.with(&values);
        // Who closed standard error does not want to know.
        let _ =
            errors::write_note(&mut anstream::stderr(), said.pick(voice.language), voice.language);
    }
}

/// The columns of the terminal; 80 where there is none.
pub(crate) fn columns() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| width.0.into())
}

/// Makes a panic say that it is a bug, and where, instead of its message, which may be personal.
pub(crate) fn answer_for_bugs(voice: Voice) {
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let said = texts::BUG.with(&[("place", &place)]);
        let _ = writeln!(io::stderr(), "{}", said.pick(voice.language));
    }));
}

/// Whether people see standard output as it is written.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether there is somebody to ask: standard input and error are both a terminal.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks on standard error; the answer is read elsewhere.
pub(crate) fn ask(question: impl Into<Message>, voice: Voice) {
    let question = question.into();
    // Who does not see the question does not say yes.
    let _ = write!(io::stderr(), "{} ", question.pick(voice.language));
}

/// A text without the characters that could command the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if is_command(c) { ' ' } else { c }).collect()
}

/// True for what a terminal obeys: control characters, and those that turn the direction of what
/// follows or break the line (`Bidi_Control` of Unicode; U+2028, U+2029).
fn is_command(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text as it was typed, or a mask when it is an API key.
pub(crate) fn without_keys(text: &str) -> String {
    let prefix = Environment::ALL.into_iter().map(Environment::key_prefix);
    match prefix.into_iter().find(|prefix| text.contains(prefix)) {
        Some(prefix) => format!("{prefix}***"),
        None => plain(text),
    }
}
