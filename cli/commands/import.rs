//! `order import`: creates the orders of a file, each with its label, as fast as the key's rate limit permits. After
//! any interruption `--resume` continues, and no row becomes two parcels.

use std::{collections::BTreeMap, io, path::Path, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use parcelo::{Client, Environment, ErrorCode, LabelFormat, Language, TrackingNumber};

use super::{
    call, label,
    row_importer::{AfterRow, RowImporter},
};
use crate::{
    encoding::Encoding,
    failure::{Exit, Failure},
    import::{
        self, Duplicate, ImportFile, ImportMode, ImportPlan, ImportResults, Journal, Origin,
        Prescan, Preset, ReportSpool, Row, RowCounts, RowFault, RowOutcome, RowReader, RowReport,
    },
    input::Source,
    output::{Progress, format::OutputOptions},
    results::{CommandOutcome, Results, SavedLabels},
    texts::{self as general, Message, Text, import as texts},
};

/// Returns a column map: a preset, or a template for a file.
pub(super) fn map_template(
    source: &Source,
    encoding: Option<Encoding>,
    preset: Option<Preset>,
    language: Language,
) -> Result<CommandOutcome, Failure> {
    let text = match preset {
        Some(preset) => preset.text().to_owned(),
        None => import::map_template(&ImportFile::open_source(source, encoding)?, language)?,
    };
    Ok(CommandOutcome::with(Results::Raw(text.into_bytes())))
}

/// Checks the rows without sending anything. Without a key the environment is unknown.
pub(super) fn check(
    environment: Option<Environment>,
    plan: &ImportPlan,
) -> Result<CommandOutcome, Failure> {
    let file = ImportFile::open_source(&plan.source, plan.encoding)?;
    let rows = || RowReader::new(&file, &plan.settings, environment);
    let prescan = prescan(rows()?)?;
    let reports = unsent(rows()?, &prescan, RowOutcome::Valid)?;
    let results = reports.finish(None).map_err(|err| temp_file_failure(&err))?;
    let failure = (prescan.invalid > 0).then(|| invalid_rows(&prescan));
    let notes = encoding_note(&file, plan).into_iter().collect();
    Ok(CommandOutcome { notes, ..outcome(results).failing(failure) })
}

/// Returns a note about the encoding of a file, unless it is UTF-8 or the user named the encoding.
fn encoding_note(file: &ImportFile, plan: &ImportPlan) -> Option<Message> {
    file.encoding().note().filter(|_| plan.encoding.is_none())
}

/// Imports the orders. The file is read twice: first to find duplicate references and whether anything can be sent,
/// then to send the rows. Keeping the orders of the first pass would need memory or disk for the whole file, and save
/// only seconds: sending 100,000 rows takes half an hour, at 100 requests per second and two requests per row.
pub(super) async fn import(
    client: &Client,
    plan: &ImportPlan,
    origin: Origin,
    options: OutputOptions,
) -> Result<CommandOutcome, Failure> {
    let file = ImportFile::open_source(&plan.source, plan.encoding)?;
    let rows = || RowReader::new(&file, &plan.settings, Some(client.environment()));
    let prescan = prescan(rows()?)?;
    label::make_directory(&plan.labels)?;
    let rows = rows()?;
    let is_refused = plan.mode == ImportMode::AllOrNothing && prescan.invalid > 0;
    if is_refused || prescan.invalid == prescan.rows {
        let results = save(unsent(rows, &prescan, RowOutcome::NotSent)?, plan)?;
        let notes = encoding_note(&file, plan).into_iter().collect();
        let failure = Some(invalid_rows(&prescan));
        return Ok(CommandOutcome { notes, ..outcome(results).failing(failure) });
    }
    let (journal, known) = Journal::open(&plan.journal(), plan.resume, origin)?;
    check_parcels_exist(client, plan, known.first_and_last.as_ref()).await?;
    let importer = RowImporter::new(client, plan, journal, known.orders);
    let mut notes: Vec<_> =
        encoding_note(&file, plan).into_iter().chain(importer.notes(&prescan)).collect();
    let reports = ReportSpool::new().map_err(|err| temp_file_failure(&err))?;
    let progress = Progress::new(prescan.rows, plan.quiet, options);
    let in_flight = BTreeMap::new();
    let run = ImportRun { importer: &importer, prescan: &prescan, reports, in_flight, progress };
    let (reports, stop) = run.send_all(rows, plan.concurrency).await;
    let counts = reports.counts();
    let done = done_rows(&counts, prescan.rows);
    // Existing orders are reported even if the results cannot be saved.
    let results = save(reports, plan).map_err(|err| {
        let existing = texts::EXISTING_ORDERS.with(&[("n", &counts.existing().to_string())]);
        stopped_failure(&counts, &err, &done.and(&existing))
    })?;
    // If the import was interrupted, the run that resumes it merges all labels.
    let (merge_note, merge_failure) = match (&plan.merge, &stop) {
        (Some((file, format)), None) => merge(client, &results, (file, *format)).await?,
        _ => MergeOutcome::default(),
    };
    let file = texts::RESULTS_IN.with(&[("file", &*plan.results().to_string_lossy())]);
    let failure = failure_for(&counts, stop, &done.and(&file)).or(merge_failure);
    notes.extend(merge_note);
    Ok(CommandOutcome { notes, failure, ..outcome(results) })
}

/// Fails if parcels in the journal no longer exist: the sandbox was reset since, and their rows would count as done.
/// Checking the first and the last parcel is enough, because a reset deletes everything before it.
async fn check_parcels_exist(
    client: &Client,
    plan: &ImportPlan,
    first_and_last: Option<&[TrackingNumber; 2]>,
) -> Result<(), Failure> {
    // In production, no parcel is deleted while its journal can be resumed.
    let numbers = first_and_last.filter(|_| client.environment() == Environment::Sandbox);
    for number in numbers.into_iter().flatten() {
        let found = client.tracking().get(number).await;
        // Any other failure will be reported by the rows.
        if found.is_err_and(|error| error.known_code() == Some(ErrorCode::ParcelNotFound)) {
            let journal = plan.journal();
            let values = [("file", &*journal.to_string_lossy()), ("number", number.as_str())];
            let message = texts::PARCELS_GONE.with(&values);
            let failure = Failure::new(Exit::Usage, "JOURNAL_OUTDATED", message);
            return Err(failure.hint(texts::REMOVE_JOURNAL.with(&values)));
        }
    }
    Ok(())
}

/// A note for the user, and the failure if there is one.
type MergeOutcome = (Option<Message>, Option<Failure>);

/// Saves the labels of all rows that have an order, including those of earlier runs, in the order of the rows.
async fn merge(
    client: &Client,
    results: &ImportResults,
    file: (&Path, LabelFormat),
) -> Result<MergeOutcome, Failure> {
    let numbers = results.tracking_numbers().map_err(|err| temp_file_failure(&err))?;
    if numbers.is_empty() {
        return Ok(MergeOutcome::default());
    }
    Ok(match super::merge::save(client, &numbers, file).await {
        Ok(SavedLabels { labels, file, .. }) => {
            let values = [("labels", &*labels.to_string()), ("file", &*file.to_string_lossy())];
            (Some(texts::MERGED_LABELS.with(&values)), None)
        }
        Err(failure) => {
            (Some(Message::from(texts::NOT_MERGED).and(&failure.message)), Some(failure))
        }
    })
}

fn outcome(results: ImportResults) -> CommandOutcome {
    CommandOutcome::with(Results::Imported(Box::new(results)))
}

fn prescan(rows: RowReader<'_>) -> Result<Prescan, Failure> {
    let prescan = Prescan::run(rows)?;
    if prescan.rows == 0 {
        return Err(Failure::invalid(general::NO_ORDERS, Vec::new()).hint(texts::SEE_COLUMNS));
    }
    Ok(prescan)
}

/// Reports all rows of a file without sending any.
fn unsent(
    mut rows: RowReader<'_>,
    prescan: &Prescan,
    valid: RowOutcome,
) -> Result<ReportSpool, Failure> {
    let mut reports = ReportSpool::new().map_err(|err| temp_file_failure(&err))?;
    for position in 0.. {
        let Some(row) = rows.next()? else { break };
        let report = rejection(&row, &rows, prescan).unwrap_or_else(|| RowReport::new(&row, valid));
        reports.add(position, report).map_err(|err| temp_file_failure(&err))?;
    }
    Ok(reports)
}

/// Returns the report of a row that must not be sent, because it is invalid or another row has its reference.
fn rejection(row: &Row, rows: &RowReader<'_>, prescan: &Prescan) -> Option<RowReport> {
    let about = |text: Text, number: u64| text.with(&[("row", &number.to_string())]);
    let duplicate = prescan.duplicate(row);
    if let (Ok(_), Duplicate::SameAs(first)) = (&row.order, duplicate) {
        let report = RowReport::new(row, RowOutcome::Repeated);
        return Some(report.with_message("REPEATED_ROW", about(texts::SAME_ROW, first)));
    }
    let conflict = match duplicate {
        Duplicate::Conflicts(other) => Some(RowFault {
            column: rows.reference_column(),
            field: Some("externalOrderId".to_owned()),
            ..RowFault::new("DUPLICATE_REFERENCE", about(texts::CONFLICTING_ROW, other))
        }),
        Duplicate::None | Duplicate::SameAs(_) => None,
    };
    let own = row.order.as_ref().err().into_iter().flatten().cloned();
    let faults: Vec<_> = own.chain(conflict).collect();
    (!faults.is_empty()).then(|| {
        let report = RowReport::new(row, RowOutcome::Invalid);
        faults.into_iter().fold(report, RowReport::with_fault)
    })
}

fn save(reports: ReportSpool, plan: &ImportPlan) -> Result<ImportResults, Failure> {
    let file = plan.results();
    reports
        .finish(Some(&file))
        .map_err(|err| Failure::for_unwritable_file(&file.to_string_lossy(), &err))
}

fn temp_file_failure(err: &io::Error) -> Failure {
    Failure::for_unwritable_file(&std::env::temp_dir().to_string_lossy(), err)
}

/// The reason that no more rows are sent.
enum ImportStop {
    Interrupted,
    /// Further rows would fail for the same reason.
    Failing(Failure),
}

/// A run over the rows of a file.
struct ImportRun<'a> {
    importer: &'a RowImporter<'a>,
    prescan: &'a Prescan,
    reports: ReportSpool,
    /// The rows being sent, by position, with the reports that they get if a second Ctrl-C abandons them.
    in_flight: BTreeMap<u64, RowReport>,
    progress: Progress,
}

/// Interval between two updates of the progress; `TICKS_PER_LINE` depends on it.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// Number of consecutive rows without a response after which the service counts as unreachable. A lower number could be
/// exceeded by chance; a higher one would take long, because each row uses up all attempts of a call.
const MAX_CONSECUTIVE_FAILURES: usize = 10;

impl ImportRun<'_> {
    /// Sends all rows, several at a time. Rows that were not sent when it stops are reported too.
    async fn send_all(
        mut self,
        mut rows: RowReader<'_>,
        concurrency: usize,
    ) -> (ReportSpool, Option<ImportStop>) {
        let importer = self.importer;
        let (mut sending, mut positions, mut unreachable) =
            (FuturesUnordered::new(), 0.., Vec::new());
        let (mut stop, mut has_more) = (None, true);
        // The first row is sent alone, so that a problem of all rows is reported once.
        let mut at_once = 1;
        let (mut interrupts, mut ticks) =
            (call::interrupts(), tokio::time::interval(PROGRESS_INTERVAL));
        loop {
            while has_more && sending.len() < at_once {
                let position = positions.next().unwrap_or(u64::MAX);
                match self.next(&mut rows, position, stop.is_some()) {
                    Ok(NextRow::Send(row)) => {
                        sending.push(async move { (position, importer.import(*row).await) });
                    }
                    Ok(NextRow::Reported) => {}
                    Ok(NextRow::End) => has_more = false,
                    Err(failure) => {
                        (has_more, stop) = (false, stop.or(Some(ImportStop::Failing(failure))));
                    }
                }
            }
            tokio::select! {
                done = sending.next() => {
                    let Some((position, (report, next))) = done else { break };
                    at_once = concurrency;
                    stop = stop.or(stop_reason(next, &mut unreachable));
                    self.in_flight.remove(&position);
                    if let Err(err) = self.reports.add(position, report) {
                        stop = stop.or_else(|| Some(ImportStop::Failing(temp_file_failure(&err))));
                    }
                }
                Some(()) = interrupts.recv() => {
                    if matches!(stop, Some(ImportStop::Interrupted)) {
                        self.abandon();
                        break;
                    }
                    self.progress.print(&texts::FINISHING.into());
                    stop = Some(ImportStop::Interrupted);
                }
                _ = ticks.tick() => self.progress.tick(&self.reports.counts()),
            }
        }
        let counts = self.reports.counts();
        self.progress.end(&counts);
        (self.reports, stop.or_else(|| all_failed(&counts, unreachable)))
    }

    fn next(
        &mut self,
        rows: &mut RowReader<'_>,
        position: u64,
        is_stopped: bool,
    ) -> Result<NextRow, Failure> {
        let Some(row) = rows.next()? else { return Ok(NextRow::End) };
        let rejection = rejection(&row, rows, self.prescan);
        let not_sent = || is_stopped.then(|| RowReport::new(&row, RowOutcome::NotSent));
        if let Some(report) = rejection.or_else(not_sent) {
            self.reports.add(position, report).map_err(|err| temp_file_failure(&err))?;
            return Ok(NextRow::Reported);
        }
        let abandoned = RowReport::new(&row, RowOutcome::Unknown);
        let abandoned = abandoned.with_message("INTERRUPTED", general::INTERRUPTED);
        self.in_flight.insert(position, abandoned);
        Ok(NextRow::Send(Box::new(row)))
    }

    /// Reports the rows being sent without waiting for them.
    fn abandon(&mut self) {
        for (position, report) in std::mem::take(&mut self.in_flight) {
            // If the report cannot be written, the journal still has the row.
            let _ = self.reports.add(position, report);
        }
    }
}

enum NextRow {
    Send(Box<Row>),
    /// The row has a report and is not sent.
    Reported,
    End,
}

fn stop_reason(next: AfterRow, unreachable: &mut Vec<Failure>) -> Option<ImportStop> {
    match next {
        AfterRow::Succeeded => unreachable.clear(),
        AfterRow::RowFailed => {}
        AfterRow::Stop(failure) => return Some(ImportStop::Failing(failure)),
        AfterRow::Transient(failure) => {
            unreachable.push(failure);
            let is_over = unreachable.len() >= MAX_CONSECUTIVE_FAILURES;
            return is_over.then(|| unreachable.pop()).flatten().map(ImportStop::Failing);
        }
    }
    None
}

/// Returns the failure of an import in which all rows failed, the last one because the service was unreachable. Such a
/// file may have fewer rows than `MAX_CONSECUTIVE_FAILURES`.
fn all_failed(counts: &RowCounts, mut unreachable: Vec<Failure>) -> Option<ImportStop> {
    let all_failed = counts.get(RowOutcome::Failed) == counts.all();
    if all_failed { unreachable.pop().map(ImportStop::Failing) } else { None }
}

fn invalid_rows(prescan: &Prescan) -> Failure {
    let values = [("bad", &*prescan.invalid.to_string()), ("all", &*prescan.rows.to_string())];
    Failure::invalid(texts::INVALID_ROW_COUNT.with(&values), Vec::new()).hint(texts::FIX_ROWS)
}

fn failure_for(counts: &RowCounts, stop: Option<ImportStop>, done: &Message) -> Option<Failure> {
    let unknown = counts.get(RowOutcome::Unknown);
    let resume =
        |exit, code: &str| Failure::new(exit, code, done.clone()).hint(texts::RESUME_IMPORT);
    let failure = match stop {
        Some(ImportStop::Interrupted) => resume(Exit::Interrupted, "INTERRUPTED"),
        Some(ImportStop::Failing(err)) => stopped_failure(counts, &err, done),
        None if unknown > 0 => resume(Exit::OutcomeUnknown, "OUTCOME_UNKNOWN"),
        None if counts.complete() < counts.all() => {
            Failure::new(Exit::Partly, "PARTLY_FAILED", done.clone()).hint(texts::FIX_AND_RESUME)
        }
        None => return None,
    };
    Some(failure.with(|details| details.may_have_executed = unknown > 0))
}

/// Returns a message with the number of successful rows of the file; an interrupted run has reports of only some.
fn done_rows(counts: &RowCounts, rows: u64) -> Message {
    let values = [("done", &*counts.complete().to_string()), ("all", &*rows.to_string())];
    texts::DONE_ROWS.with(&values)
}

/// Returns the failure of a run that cannot continue: the existing orders, the reason, and how to resume.
fn stopped_failure(counts: &RowCounts, err: &Failure, done: &Message) -> Failure {
    let exit = match (counts.get(RowOutcome::Unknown), counts.complete()) {
        (1.., _) => Exit::OutcomeUnknown,
        (0, 1..) => Exit::Partly,
        (0, 0) => err.exit,
    };
    let again = Message::from(texts::RESUME_IMPORT);
    let hint = match &err.hint {
        // The failure's own hint is about a single request, and about a run without --resume.
        _ if err.code == "UNEXPECTED_ANSWER" => Message::from(general::CHECK_ADDRESS).and(&again),
        _ if err.exit == Exit::NotExecuted && err.status.is_some() => again,
        _ if err.exit == Exit::NotExecuted => Message::from(texts::CHECK_NETWORK).and(&again),
        Some(hint) => hint.and(&again),
        None => again,
    };
    Failure::new(exit, &err.code, done.and(&err.message)).hint(hint).with(|details| {
        (details.status, details.retry_after) = (err.status, err.retry_after);
        details.request_id.clone_from(&err.request_id);
        details.may_have_executed = exit == Exit::OutcomeUnknown;
    })
}
