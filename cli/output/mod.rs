//! All output of the process: results on standard output, everything else on standard error. Only this module prints.

mod attempts;
mod csv;
mod errors;
mod events;
pub(crate) mod format;
mod import;
mod json;
mod progress;
mod text;
mod watch;

pub(crate) use events::{EventPrinter, ReceivedEvent};
pub(crate) use progress::Progress;
pub(crate) use watch::Screen;

use std::{
    io::{self, IsTerminal, Write},
    panic::{self, PanicHookInfo},
    process::ExitCode,
};

use errors::FailureDocument;
use format::{Format, Layout, OutputOptions};
use parcelo::Language;
use tracing_subscriber::layer::SubscriberExt;

use crate::{
    failure::{Exit, Failure},
    results::{CommandOutcome, Results, table::Report},
    sanitize::plain,
    texts::{self, Message},
};

/// Writes results, notes and failure. Returns the exit code.
pub(crate) fn finish(outcome: &CommandOutcome, options: OutputOptions) -> ExitCode {
    let written = match &outcome.results {
        Some(results) => write_results(results, options),
        None => Ok(()),
    };
    let lost = match written {
        // A reader that closes the pipe, as in `parcelo … | head`, has read enough.
        Err(error) if !is_closed_pipe(&error) => Some(Failure::for_lost_output(&error)),
        _ => None,
    };
    let failure = outcome.failure.as_ref().or(lost.as_ref());
    // If standard error is closed too, only the exit code is left.
    let _ = write_messages(outcome, failure, options);
    failure.map_or(Exit::Done, |failure| failure.exit).into()
}

/// Returns `true` if the reader of standard output has closed the pipe.
pub(crate) fn is_closed_pipe(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::BrokenPipe || csv::cause(error).is_some_and(is_closed_pipe)
}

fn write_results(results: &Results, options: OutputOptions) -> io::Result<()> {
    let mut out = io::BufWriter::new(anstream::stdout());
    match results {
        Results::Help(help) => write!(out, "{help}")?,
        Results::Raw(content) => {
            // Written without the colour filter, because the content may be any bytes.
            let mut raw = io::stdout().lock();
            raw.write_all(content)?;
            raw.flush()?;
        }
        Results::Sample(order) => {
            let is_lines = options.format == Format::Ndjson;
            let layout = if is_lines { Layout::Lines } else { Layout::Document };
            json::write_one(&mut out, order, layout)?;
        }
        Results::Imported(imported) => import::write(&mut out, imported, options)?,
        Results::Report(report) => write_report(&mut out, &**report, options)?,
    }
    out.flush()
}

fn write_report(
    out: &mut impl Write,
    report: &dyn Report,
    options: OutputOptions,
) -> io::Result<()> {
    match options.format {
        Format::Table => text::write(out, report, options.language, table_width()),
        Format::Json => json::write(out, report, Layout::Document),
        Format::Ndjson => json::write(out, report, Layout::Lines),
        Format::Csv => {
            let mut rows = Vec::new();
            csv::write(&mut rows, &report.table(options.language))?;
            write_rows(out, &rows)
        }
        Format::Numbers => csv::write_numbers(out, &report.table(options.language)),
    }
}

/// Writes CSV. On a terminal, control characters are removed.
fn write_rows(out: &mut impl Write, rows: &[u8]) -> io::Result<()> {
    if !is_terminal() {
        return out.write_all(rows);
    }
    String::from_utf8_lossy(rows).lines().try_for_each(|row| writeln!(out, "{}", plain(row)))
}

fn write_messages(
    outcome: &CommandOutcome,
    failure: Option<&Failure>,
    options: OutputOptions,
) -> io::Result<()> {
    let mut err = anstream::stderr().lock();
    let language = options.language;
    if options.format.is_json() {
        return match failure {
            Some(failure) => {
                json::write_one(&mut err, &FailureDocument::new(failure), Layout::Lines)
            }
            None => Ok(()),
        };
    }
    let mut messages = Vec::new();
    for note in &outcome.notes {
        writeln!(messages, "{}", note.pick(language))?;
    }
    for warning in outcome.results.iter().flat_map(Results::warnings) {
        errors::write_warning(&mut messages, warning, language)?;
    }
    if let Some(failure) = failure {
        errors::write_failure(&mut messages, failure, language)?;
    }
    let width = io::stderr().is_terminal().then(columns);
    text::write_wrapped(&mut err, &messages, width)
}

/// Prints attempts and waits as they happen, for `--verbose`.
pub(crate) fn log_attempts(language: Language) {
    let subscriber = tracing_subscriber::registry().with(attempts::AttemptLog(language));
    // No subscriber is set yet: this is called once, at the start.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// Writes a warning before the command runs. With JSON output, only errors are written to standard error.
pub(crate) fn warn(warning: &Message, options: OutputOptions) {
    if !options.format.is_json() {
        let text = plain(warning.pick(options.language));
        // If standard error is closed, the warning cannot be shown.
        let _ = errors::write_note(&mut anstream::stderr(), &text, options.language);
    }
}

/// Returns the maximum width of a table, in columns; `None` for a pipe, in which each row stays one line.
fn table_width() -> Option<usize> {
    is_terminal().then(columns)
}

/// The setting for coloured output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ColorMode {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

impl ColorMode {
    /// Turns colours on or off for all output.
    pub(crate) fn apply(self) {
        match self {
            Self::Auto => anstream::ColorChoice::Auto,
            Self::Always => anstream::ColorChoice::Always,
            Self::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// Returns the width of the terminal in columns, or 80 without a terminal.
fn columns() -> usize {
    terminal_size::terminal_size().map_or(80, |(width, _)| width.0.into())
}

/// Installs a panic hook that prints that the panic is a bug, and where it happened. Its own message could contain personal data.
pub(crate) fn install_panic_hook(language: Language) {
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let text = texts::BUG.with(&[("place", &place)]);
        let _ = writeln!(io::stderr(), "{}", text.pick(language));
    }));
}

/// Returns `true` if standard output is a terminal.
pub(crate) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Returns `true` if the user can be prompted: standard input and standard error are terminals.
pub(crate) fn can_prompt() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Prints a question on standard error; the caller reads the answer.
pub(crate) fn prompt(question: impl Into<Message>, language: Language) {
    let question = question.into();
    // If the prompt cannot be shown, the answer will not be yes.
    let _ = write!(io::stderr(), "{} ", question.pick(language));
}
