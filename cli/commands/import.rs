//! `order import`: the orders of a file, each with its label, as fast as the key's rate limit allows.
//! Killed at any moment, it goes on with `--resume`, and no row becomes two parcels.

use std::{collections::BTreeMap, io, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use parcelo::{Client, Environment};
use tokio::sync::mpsc;

use super::{
    label,
    row_importer::{Continue, RowImporter},
};
use crate::{
    failure::{Exit, Failure},
    import::{
        Duplicate, ImportFile, ImportMode, ImportPlan, ImportResults, Journal, Prescan,
        ReportSpool, Row, RowCounts, RowFault, RowOutcome, RowReader, RowReport,
    },
    output::{Progress, format::OutputOptions},
    results::{CommandOutcome, Results},
    texts::{self as words, Message, import as texts},
};

/// Checks the rows and sends nothing; without a client nobody knows the environment.
pub(super) fn check(
    environment: Option<Environment>,
    plan: &ImportPlan,
) -> Result<CommandOutcome, Failure> {
    let content = ImportFile::open_source(&plan.source)?;
    let prescan = prescanned(&content, environment)?;
    let reports = unsent(RowReader::new(&content, environment)?, &prescan, RowOutcome::Valid)?;
    let imported = reports.finish(None).map_err(|why| spool(&why))?;
    let failure = (prescan.faulty > 0).then(|| invalid(prescan.faulty, prescan.rows));
    Ok(CommandOutcome { failure, ..CommandOutcome::with(Results::Imported(Box::new(imported))) })
}

pub(super) async fn import(
    client: &Client,
    plan: &ImportPlan,
    options: OutputOptions,
) -> Result<CommandOutcome, Failure> {
    let content = ImportFile::open_source(&plan.source)?;
    let environment = Some(client.environment());
    let prescan = prescanned(&content, environment)?;
    label::make_directory(&plan.labels)?;
    let rows = RowReader::new(&content, environment)?;
    let strict = plan.mode == ImportMode::AllOrNothing && prescan.faulty > 0;
    if strict || prescan.faulty == prescan.rows {
        let imported = saved(unsent(rows, &prescan, RowOutcome::NotSent)?, plan)?;
        let failure = Some(invalid(prescan.faulty, prescan.rows));
        return Ok(CommandOutcome {
            failure,
            ..CommandOutcome::with(Results::Imported(Box::new(imported)))
        });
    }
    let (journal, known) = Journal::open(&plan.journal(), plan.resume, client)?;
    let importer = RowImporter::new(client, plan, journal, known);
    let notes = importer.notes(&prescan);
    let reports = ReportSpool::new().map_err(|why| spool(&why))?;
    let progress = Progress::new(prescan.rows, plan.quiet, options);
    let run =
        Run { importer: &importer, prescan: &prescan, reports, waiting: BTreeMap::new(), progress };
    let (reports, stop) = run.all(rows, plan.concurrency).await;
    let imported = saved(reports, plan)?;
    let failure = failure_of(&imported.counts, stop, plan);
    Ok(CommandOutcome {
        notes,
        failure,
        ..CommandOutcome::with(Results::Imported(Box::new(imported)))
    })
}

fn prescanned(content: &ImportFile, environment: Option<Environment>) -> Result<Prescan, Failure> {
    let prescan = Prescan::run(RowReader::new(content, environment)?)?;
    if prescan.rows == 0 {
        return Err(Failure::invalid(words::NO_ORDERS, Vec::new()).hint(texts::SEE_COLUMNS));
    }
    Ok(prescan)
}

/// The reports of rows of which none is sent.
fn unsent(
    mut rows: RowReader<'_>,
    prescan: &Prescan,
    fine: RowOutcome,
) -> Result<ReportSpool, Failure> {
    let mut reports = ReportSpool::new().map_err(|why| spool(&why))?;
    for place in 0.. {
        let Some(row) = rows.next()? else { break };
        let report = judged(&row, &rows, prescan).unwrap_or_else(|| RowReport::new(&row, fine));
        reports.add(place, report).map_err(|why| spool(&why))?;
    }
    Ok(reports)
}

/// What there is to say of a row that is not to be sent.
fn judged(row: &Row, rows: &RowReader<'_>, prescan: &Prescan) -> Option<RowReport> {
    let other = |row: u64| [("row", row.to_string())];
    let said = |text: words::Text, number: u64| {
        let values = other(number);
        text.with(&values.each_ref().map(|(name, value)| (*name, value.as_str())))
    };
    let against = |rival| RowFault {
        column: rows.reference_column(),
        field: Some("externalOrderId".to_owned()),
        ..RowFault::new("DUPLICATE_REFERENCE", said(texts::RIVAL_ROW, rival))
    };
    let invalid = RowReport::new(row, RowOutcome::Invalid);
    match (&row.order, prescan.duplicate(row)) {
        (Err(faults), duplicate) => {
            let report = faults.iter().cloned().fold(invalid, RowReport::with_fault);
            Some(match duplicate {
                Duplicate::Conflicts(rival) => report.with_fault(against(rival)),
                Duplicate::None | Duplicate::SameAs(_) => report,
            })
        }
        (Ok(_), Duplicate::Conflicts(rival)) => Some(invalid.with_fault(against(rival))),
        (Ok(_), Duplicate::SameAs(first)) => Some(
            RowReport::new(row, RowOutcome::Repeated)
                .with_message("REPEATED_ROW", said(texts::SAME_ROW, first)),
        ),
        (Ok(_), Duplicate::None) => None,
    }
}

fn saved(reports: ReportSpool, plan: &ImportPlan) -> Result<ImportResults, Failure> {
    let results = plan.results();
    reports
        .finish(Some(&results))
        .map_err(|why| Failure::unwritable(&results.to_string_lossy(), &why))
}

/// The temporary files could not be written.
fn spool(why: &io::Error) -> Failure {
    Failure::unwritable(&std::env::temp_dir().to_string_lossy(), why)
}

/// Why no further row is sent.
enum Stop {
    Interrupted,
    /// It would only fail as those before.
    Failing(Failure),
}

/// A run over the rows of a file.
struct Run<'a> {
    importer: &'a RowImporter<'a>,
    prescan: &'a Prescan,
    reports: ReportSpool,
    /// The rows under way, as they are reported when nobody waits for their end.
    waiting: BTreeMap<u64, RowReport>,
    progress: Progress,
}

const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// So many rows in a row that fail for no reason of their own end the run.
const MAX_CONSECUTIVE_FAILURES: usize = 10;

impl Run<'_> {
    /// Does all rows, several at a time; those that are left when it stops are reported too.
    async fn all(
        mut self,
        mut rows: RowReader<'_>,
        concurrency: usize,
    ) -> (ReportSpool, Option<Stop>) {
        let importer = self.importer;
        let (mut under_way, mut places, mut streak) = (FuturesUnordered::new(), 0.., Vec::new());
        let (mut stop, mut more) = (None, true);
        let (mut presses, mut ticks) = (presses(), tokio::time::interval(PROGRESS_INTERVAL));
        loop {
            while more && under_way.len() < concurrency {
                let place = places.next().unwrap_or(u64::MAX);
                match self.next(&mut rows, place, stop.is_some()) {
                    Ok(Next::Send(row)) => {
                        under_way.push(async move { (place, importer.import(*row).await) });
                    }
                    Ok(Next::Done) => {}
                    Ok(Next::End) => more = false,
                    Err(failure) => {
                        (more, stop) = (false, stop.or(Some(Stop::Failing(failure))));
                    }
                }
            }
            tokio::select! {
                done = under_way.next() => {
                    let Some((place, (report, turn))) = done else { break };
                    stop = stop.or(continuation(turn, &mut streak));
                    self.waiting.remove(&place);
                    if let Err(why) = self.reports.add(place, report) {
                        stop = stop.or_else(|| Some(Stop::Failing(spool(&why))));
                    }
                }
                Some(()) = presses.recv() => {
                    if matches!(stop, Some(Stop::Interrupted)) {
                        self.abandon();
                        break;
                    }
                    self.progress.say(&texts::FINISHING.into());
                    stop = Some(Stop::Interrupted);
                }
                _ = ticks.tick() => self.progress.tick(&self.reports.counts()),
            }
        }
        let counts = self.reports.counts();
        self.progress.end(&counts);
        (self.reports, stop.or_else(|| in_vain(&counts, streak)))
    }

    fn next(
        &mut self,
        rows: &mut RowReader<'_>,
        place: u64,
        stopped: bool,
    ) -> Result<Next, Failure> {
        let Some(row) = rows.next()? else { return Ok(Next::End) };
        let known = judged(&row, rows, self.prescan);
        let left = || stopped.then(|| RowReport::new(&row, RowOutcome::NotSent));
        if let Some(report) = known.or_else(left) {
            self.reports.add(place, report).map_err(|why| spool(&why))?;
            return Ok(Next::Done);
        }
        let lost = RowReport::new(&row, RowOutcome::Unknown);
        self.waiting.insert(place, lost.with_message("INTERRUPTED", words::INTERRUPTED));
        Ok(Next::Send(Box::new(row)))
    }

    /// Nobody waits for the rows under way any more.
    fn abandon(&mut self) {
        for (place, report) in std::mem::take(&mut self.waiting) {
            // What cannot be written is in the journal all the same.
            let _ = self.reports.add(place, report);
        }
    }
}

enum Next {
    Send(Box<Row>),
    Done,
    End,
}

/// Whether a row's end is a reason to stop.
fn continuation(turn: Continue, streak: &mut Vec<Failure>) -> Option<Stop> {
    match turn {
        Continue::Succeeded => streak.clear(),
        Continue::Yes => {}
        Continue::No(failure) => return Some(Stop::Failing(failure)),
        Continue::Unreachable(failure) => {
            streak.push(failure);
            return (streak.len() >= MAX_CONSECUTIVE_FAILURES)
                .then(|| streak.pop())
                .flatten()
                .map(Stop::Failing);
        }
    }
    None
}

/// A file may have too few rows for a streak: when all of them failed, and the last of a streak,
/// the reason is the same.
fn in_vain(counts: &RowCounts, mut streak: Vec<Failure>) -> Option<Stop> {
    let all_failed = counts.get(RowOutcome::Failed) == counts.all();
    if all_failed { streak.pop().map(Stop::Failing) } else { None }
}

/// Each time that Ctrl-C is pressed.
fn presses() -> mpsc::UnboundedReceiver<()> {
    let (tell, told) = mpsc::unbounded_channel();
    tokio::spawn(
        async move { while tokio::signal::ctrl_c().await.is_ok() && tell.send(()).is_ok() {} },
    );
    told
}

fn invalid(faulty: u64, rows: u64) -> Failure {
    let values = [("bad", &*faulty.to_string()), ("all", &*rows.to_string())];
    Failure::invalid(texts::BAD_ROWS.with(&values), Vec::new()).hint(texts::FIX_ROWS)
}

fn failure_of(counts: &RowCounts, stop: Option<Stop>, plan: &ImportPlan) -> Option<Failure> {
    let (good, all) = (counts.good(), counts.all());
    let unknown = counts.get(RowOutcome::Unknown);
    let results = plan.results();
    let values = [
        ("done", &*good.to_string()),
        ("all", &*all.to_string()),
        ("file", &*results.to_string_lossy()),
    ];
    let said = texts::PARTLY_IMPORTED.with(&values);
    let resume =
        |exit, code: &str| Failure::new(exit, code, said.clone()).hint(texts::RESUME_IMPORT);
    let again = Message::from(texts::RESUME_IMPORT);
    let failure = match stop {
        Some(Stop::Interrupted) => resume(Exit::Interrupted, "INTERRUPTED"),
        Some(Stop::Failing(why)) => {
            let exit = match (unknown, good) {
                (1.., _) => Exit::OutcomeUnknown,
                (0, 1..) => Exit::Partly,
                (0, 0) => why.exit,
            };
            let said = both(&said, &why.message);
            let hint = match &why.hint {
                // It would speak of one request, and of a run without --resume.
                _ if why.exit == Exit::NotExecuted => both(&texts::CHECK_NETWORK.into(), &again),
                Some(hint) => both(hint, &again),
                None => again,
            };
            Failure::new(exit, &why.code, said).hint(hint).with(|details| {
                (details.status, details.retry_after) = (why.status, why.retry_after);
                details.request_id.clone_from(&why.request_id);
            })
        }
        None if unknown > 0 => resume(Exit::OutcomeUnknown, "OUTCOME_UNKNOWN"),
        None if good < all => {
            Failure::new(Exit::Partly, "PARTLY_FAILED", said.clone()).hint(texts::FIX_AND_RESUME)
        }
        None => return None,
    };
    Some(failure.with(|details| details.may_have_executed = unknown > 0))
}

fn both(one: &Message, other: &Message) -> Message {
    Message { en: format!("{} {}", one.en, other.en), es: format!("{} {}", one.es, other.es) }
}
