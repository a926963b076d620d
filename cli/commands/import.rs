//! `order import`: the orders of a file, each with its label, as fast as the key's rate limit allows.
//! Killed at any moment, it goes on with `--resume`, and no row becomes two parcels.

use std::{collections::BTreeMap, io, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use parcelo::{Client, Environment};
use tokio::sync::mpsc;

use super::{
    import_row::{Desk, Turn},
    label,
};
use crate::{
    failure::{Exit, Failure},
    import::{
        Content, Fit, Imported, Journal, Mode, Outcome, Plan, Reports, Row, RowFault, RowReport,
        Rows, Survey, Tally,
    },
    output::Progress,
    results::{Done, Results},
    texts::{self as words, Said, import as texts},
    voice::Voice,
};

/// Checks the rows and sends nothing; without a client nobody knows the environment.
pub(super) fn check(environment: Option<Environment>, plan: &Plan) -> Result<Done, Failure> {
    let content = Content::of(&plan.source)?;
    let survey = surveyed(&content, environment)?;
    let reports = unsent(Rows::of(&content, environment)?, &survey, Outcome::Valid)?;
    let imported = reports.finish(None).map_err(|why| spool(&why))?;
    let failure = (survey.faulty > 0).then(|| invalid(survey.faulty, survey.rows));
    Ok(Done { failure, ..Done::with(Results::Imported(Box::new(imported))) })
}

pub(super) async fn import(client: &Client, plan: &Plan, voice: Voice) -> Result<Done, Failure> {
    let content = Content::of(&plan.source)?;
    let environment = Some(client.environment());
    let survey = surveyed(&content, environment)?;
    label::make_directory(&plan.labels)?;
    let rows = Rows::of(&content, environment)?;
    let strict = plan.mode == Mode::AllOrNothing && survey.faulty > 0;
    if strict || survey.faulty == survey.rows {
        let imported = saved(unsent(rows, &survey, Outcome::NotSent)?, plan)?;
        let failure = Some(invalid(survey.faulty, survey.rows));
        return Ok(Done { failure, ..Done::with(Results::Imported(Box::new(imported))) });
    }
    let (journal, known) = Journal::open(&plan.journal(), plan.past, client)?;
    let desk = Desk::new(client, plan, journal, known);
    let notes = desk.notes(&survey);
    let reports = Reports::new().map_err(|why| spool(&why))?;
    let progress = Progress::new(survey.rows, plan.quiet, voice);
    let run = Run { desk: &desk, survey: &survey, reports, waiting: BTreeMap::new(), progress };
    let (reports, stop) = run.all(rows, plan.concurrency).await;
    let imported = saved(reports, plan)?;
    let failure = failure_of(&imported.tally, stop, plan);
    Ok(Done { notes, failure, ..Done::with(Results::Imported(Box::new(imported))) })
}

fn surveyed(content: &Content, environment: Option<Environment>) -> Result<Survey, Failure> {
    let survey = Survey::of(Rows::of(content, environment)?)?;
    if survey.rows == 0 {
        return Err(Failure::invalid(words::NO_ORDERS, Vec::new()).hint(texts::SEE_COLUMNS));
    }
    Ok(survey)
}

/// The reports of rows of which none is sent.
fn unsent(mut rows: Rows<'_>, survey: &Survey, fine: Outcome) -> Result<Reports, Failure> {
    let mut reports = Reports::new().map_err(|why| spool(&why))?;
    for place in 0.. {
        let Some(row) = rows.next()? else { break };
        let report = judged(&row, &rows, survey).unwrap_or_else(|| RowReport::of(&row, fine));
        reports.add(place, report).map_err(|why| spool(&why))?;
    }
    Ok(reports)
}

/// What there is to say of a row that is not to be sent.
fn judged(row: &Row, rows: &Rows<'_>, survey: &Survey) -> Option<RowReport> {
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
    let invalid = RowReport::of(row, Outcome::Invalid);
    match (&row.order, survey.fit(row)) {
        (Err(faults), fit) => {
            let report = faults.iter().cloned().fold(invalid, RowReport::because);
            Some(match fit {
                Fit::Against(rival) => report.because(against(rival)),
                Fit::Alone | Fit::SameAs(_) => report,
            })
        }
        (Ok(_), Fit::Against(rival)) => Some(invalid.because(against(rival))),
        (Ok(_), Fit::SameAs(first)) => Some(
            RowReport::of(row, Outcome::Repeated)
                .saying("REPEATED_ROW", said(texts::SAME_ROW, first)),
        ),
        (Ok(_), Fit::Alone) => None,
    }
}

fn saved(reports: Reports, plan: &Plan) -> Result<Imported, Failure> {
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
    desk: &'a Desk<'a>,
    survey: &'a Survey,
    reports: Reports,
    /// The rows under way, as they are reported when nobody waits for their end.
    waiting: BTreeMap<u64, RowReport>,
    progress: Progress,
}

const TICK: Duration = Duration::from_millis(200);
/// So many rows in a row that fail for no reason of their own end the run.
const STREAK: usize = 10;

impl Run<'_> {
    /// Does all rows, several at a time; those that are left when it stops are reported too.
    async fn all(mut self, mut rows: Rows<'_>, concurrency: usize) -> (Reports, Option<Stop>) {
        let desk = self.desk;
        let (mut under_way, mut places, mut streak) = (FuturesUnordered::new(), 0.., Vec::new());
        let (mut stop, mut more) = (None, true);
        let (mut presses, mut ticks) = (presses(), tokio::time::interval(TICK));
        loop {
            while more && under_way.len() < concurrency {
                let place = places.next().unwrap_or(u64::MAX);
                match self.next(&mut rows, place, stop.is_some()) {
                    Ok(Next::Send(row)) => {
                        under_way.push(async move { (place, desk.carry_out(*row).await) });
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
                    stop = stop.or(turn_of(turn, &mut streak));
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
                _ = ticks.tick() => self.progress.tick(&self.reports.tally()),
            }
        }
        let tally = self.reports.tally();
        self.progress.end(&tally);
        (self.reports, stop.or_else(|| in_vain(&tally, streak)))
    }

    fn next(&mut self, rows: &mut Rows<'_>, place: u64, stopped: bool) -> Result<Next, Failure> {
        let Some(row) = rows.next()? else { return Ok(Next::End) };
        let known = judged(&row, rows, self.survey);
        let left = || stopped.then(|| RowReport::of(&row, Outcome::NotSent));
        if let Some(report) = known.or_else(left) {
            self.reports.add(place, report).map_err(|why| spool(&why))?;
            return Ok(Next::Done);
        }
        let lost = RowReport::of(&row, Outcome::Unknown);
        self.waiting.insert(place, lost.saying("INTERRUPTED", words::INTERRUPTED));
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
fn turn_of(turn: Turn, streak: &mut Vec<Failure>) -> Option<Stop> {
    match turn {
        Turn::Fine => streak.clear(),
        Turn::OfRow => {}
        Turn::OfAll(failure) => return Some(Stop::Failing(failure)),
        Turn::Elsewhere(failure) => {
            streak.push(failure);
            return (streak.len() >= STREAK).then(|| streak.pop()).flatten().map(Stop::Failing);
        }
    }
    None
}

/// A file may have too few rows for a streak: when all of them failed, and the last of a streak,
/// the reason is the same.
fn in_vain(tally: &Tally, mut streak: Vec<Failure>) -> Option<Stop> {
    let all_failed = tally.of(Outcome::Failed) == tally.all();
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

fn failure_of(tally: &Tally, stop: Option<Stop>, plan: &Plan) -> Option<Failure> {
    let (good, all) = (tally.good(), tally.all());
    let unknown = tally.of(Outcome::Unknown);
    let results = plan.results();
    let values = [
        ("done", &*good.to_string()),
        ("all", &*all.to_string()),
        ("file", &*results.to_string_lossy()),
    ];
    let said = texts::PARTLY_IMPORTED.with(&values);
    let resume =
        |exit, code: &str| Failure::new(exit, code, said.clone()).hint(texts::RESUME_IMPORT);
    let again = Said::from(texts::RESUME_IMPORT);
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
            Failure::new(exit, &why.code, said).hint(hint).with(|facts| {
                (facts.status, facts.retry_after) = (why.status, why.retry_after);
                facts.request_id.clone_from(&why.request_id);
            })
        }
        None if unknown > 0 => resume(Exit::OutcomeUnknown, "OUTCOME_UNKNOWN"),
        None if good < all => {
            Failure::new(Exit::Partly, "PARTLY_FAILED", said.clone()).hint(texts::FIX_AND_RESUME)
        }
        None => return None,
    };
    Some(failure.with(|facts| facts.may_have_executed = unknown > 0))
}

fn both(one: &Said, other: &Said) -> Said {
    Said { en: format!("{} {}", one.en, other.en), es: format!("{} {}", one.es, other.es) }
}
