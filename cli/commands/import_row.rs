//! One row of an import: its order, its label, and what the journal must hear before and after.

use std::{fs, path::PathBuf};

use chrono::{DateTime, TimeDelta, Utc};
use parcelo::{
    Client, Error, ErrorKind, IdempotencyKey, OrderRequest, TrackingNumber,
    model::{ParcelSummary, Warning},
};

use crate::{
    clock,
    failure::Failure,
    import::{Entry, Journal, Known, Outcome, Past, Plan, Row, RowFault, RowReport, Survey},
    texts::{Said, import as texts},
};

/// Where rows are done.
pub(super) struct Desk<'a> {
    client: &'a Client,
    plan: &'a Plan,
    journal: Journal,
    known: std::collections::HashMap<String, Known>,
}

/// What a row's end means for the others.
pub(super) enum Turn {
    Fine,
    /// It failed for a reason of its own.
    OfRow,
    /// The service could not be asked, or did not answer.
    Elsewhere(Failure),
    /// Every other row would fail in the same way.
    OfAll(Failure),
}

type Ended = (RowReport, Turn);

/// An order that exists.
struct Made {
    number: TrackingNumber,
    outcome: Outcome,
    warnings: Vec<Warning>,
}

impl<'a> Desk<'a> {
    pub(super) fn new(
        client: &'a Client,
        plan: &'a Plan,
        journal: Journal,
        known: std::collections::HashMap<String, Known>,
    ) -> Self {
        let desk = Self { client, plan, journal, known };
        desk.sweep();
        desk
    }

    /// What is odd about the file, seen from the journal.
    pub(super) fn notes(&self, survey: &Survey) -> Vec<Said> {
        if self.plan.past == Past::None {
            return Vec::new();
        }
        let done = self.known.values().filter(|known| matches!(known, Known::Created { .. }));
        let gone = self.known.keys().filter(|key| !survey.has(key)).count();
        let done = texts::RESUMED.with(&[("done", &done.count().to_string())]);
        let gone = (gone > 0).then(|| texts::ROWS_GONE.with(&[("n", &gone.to_string())]));
        [done].into_iter().chain(gone).collect()
    }

    /// Takes away the drafts of labels that an earlier run was killed at.
    fn sweep(&self) {
        let numbers: std::collections::HashSet<_> = self
            .known
            .values()
            .filter_map(|known| match known {
                Known::Created { tracking_number, .. } => Some(tracking_number.as_str()),
                Known::Sent { .. } | Known::NotCreated => None,
            })
            .collect();
        if numbers.is_empty() {
            return;
        }
        // A draft that stays behind does no harm.
        for entry in fs::read_dir(&self.plan.labels).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let draft = name.strip_prefix(".label-").and_then(|rest| rest.strip_suffix(".part"));
            let number = draft.and_then(|draft| draft.split('.').next());
            if number.is_some_and(|number| numbers.contains(number)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Does a row that is valid.
    pub(super) async fn carry_out(&self, row: Row) -> Ended {
        let made = match self.order_of(&row).await {
            Ok(made) => made,
            Err(ended) => return *ended,
        };
        let report = RowReport::of(&row, made.outcome);
        let label = self.label(&made).await;
        let report = RowReport {
            tracking_number: Some(made.number),
            warnings: merged(report.warnings, made.warnings),
            ..report
        };
        match label {
            Ok(file) => (RowReport { label_file: Some(file), ..report }, Turn::Fine),
            Err(error) => {
                let turn = turn_of(&error);
                let why = Failure::from(error);
                let report = RowReport { outcome: Outcome::LabelMissing, ..report };
                (faulted(report, &why), turn.unwrap_or_else(|meant| meant(why)))
            }
        }
    }

    /// The row's order, created unless the journal has it.
    async fn order_of(&self, row: &Row) -> Result<Made, Box<Ended>> {
        let first = match self.known.get(row.key.as_str()) {
            Some(Known::Created { tracking_number, digest }) if *digest == row.digest => {
                let number = tracking_number.clone();
                return Ok(Made { number, outcome: Outcome::DoneBefore, warnings: Vec::new() });
            }
            Some(Known::Created { tracking_number, .. }) => {
                let said = texts::ROW_CHANGED.with(&[("number", tracking_number.as_str())]);
                let report = RowReport::of(row, Outcome::Invalid).saying("ROW_CHANGED", said);
                return Err(Box::new((report, Turn::OfRow)));
            }
            Some(Known::Sent { first, .. }) => Some(*first),
            Some(Known::NotCreated) | None => None,
        };
        match self.create(row, first).await? {
            Some(made) => Ok(made),
            // Longer ago than the service remembers keys; it had none of this reference.
            None => match self.create(row, None).await? {
                Some(made) => Ok(made),
                None => Err(Box::new(unclear(row))),
            },
        }
    }

    /// Sends the order; `first` is when an earlier run did, without hearing what came of it.
    ///
    /// `None` when its key has expired and there is no such order.
    async fn create(
        &self,
        row: &Row,
        first: Option<DateTime<Utc>>,
    ) -> Result<Option<Made>, Box<Ended>> {
        let Ok(order) = &row.order else { return Err(Box::new(unclear(row))) };
        let key = key(row, first);
        let order = OrderRequest::clone(order).with_idempotency_key(key);
        self.note(row, &sent(row)).await?;
        match self.client.orders().create(&order).await {
            Ok(reply) => {
                let outcome = match reply.outcome() {
                    parcelo::Outcome::Created => Outcome::Created,
                    parcelo::Outcome::Replayed => Outcome::Replayed,
                };
                let created = reply.into_inner();
                let (number, warnings) = (created.parcel.tracking_number, created.warnings);
                self.note(row, &made(row, &number)).await?;
                Ok(Some(Made { number, outcome, warnings }))
            }
            Err(error) if error.kind() == ErrorKind::KeyExpired => self.look_up(row, first).await,
            Err(error) => Err(self.refused(row, error, first).await),
        }
    }

    /// An order that was not created, as far as the service says.
    async fn refused(&self, row: &Row, error: Error, first: Option<DateTime<Utc>>) -> Box<Ended> {
        // What this call did not do, an earlier one may have done.
        let is_unknown = error.may_have_executed() || first.is_some();
        if !is_unknown
            && let Err(ended) =
                self.note(row, &Entry::NotCreated { key: row.key.to_string() }).await
        {
            return ended;
        }
        let turn = turn_of(&error);
        let why = Failure::from(error);
        let outcome = if is_unknown { Outcome::Unknown } else { Outcome::Failed };
        let report = faulted(RowReport::of(row, outcome), &why);
        Box::new((report, turn.unwrap_or_else(|meant| meant(why))))
    }

    /// Whether an order exists that was sent longer ago than the service remembers keys.
    async fn look_up(
        &self,
        row: &Row,
        first: Option<DateTime<Utc>>,
    ) -> Result<Option<Made>, Box<Ended>> {
        let reference = row.order.as_ref().ok().and_then(|order| order.external_order_id.clone());
        let (Some(reference), Some(first)) = (reference, first) else {
            return Err(Box::new(unclear(row)));
        };
        let found = self.client.parcels().list().external_order_id(reference).limit(MOST).await;
        let parcels = match found {
            Ok(page) => page.into_inner().parcels,
            Err(error) => return Err(self.refused(row, error, Some(first)).await),
        };
        if parcels.is_empty() {
            self.note(row, &Entry::NotCreated { key: row.key.to_string() }).await?;
            return Ok(None);
        }
        // One that cannot be read may be the one.
        let may_be = |row: &parcelo::model::Row<ParcelSummary>| {
            row.as_ref().map_or(true, |parcel| parcel.created_at >= first - SKEW)
        };
        let mut since = parcels.into_iter().filter(may_be);
        match (since.next(), since.next()) {
            (Some(Ok(parcel)), None) => {
                let number = parcel.tracking_number;
                self.note(row, &made(row, &number)).await?;
                Ok(Some(Made { number, outcome: Outcome::Replayed, warnings: Vec::new() }))
            }
            _ => Err(Box::new(unclear(row))),
        }
    }

    /// Nothing goes on before the journal knows.
    async fn note(&self, row: &Row, entry: &Entry) -> Result<(), Box<Ended>> {
        self.journal.write(entry).await.map_err(|why| {
            let failure = Failure::unwritable(&self.plan.journal().to_string_lossy(), &why);
            let outcome = match entry {
                Entry::Created { .. } => Outcome::Unknown,
                _ => Outcome::NotSent,
            };
            Box::new((faulted(RowReport::of(row, outcome), &failure), Turn::OfAll(failure)))
        })
    }

    /// The label's file: whole, or not there.
    async fn label(&self, made: &Made) -> Result<PathBuf, Error> {
        let Made { number, outcome, .. } = made;
        let name = format!("label-{number}.{}", self.plan.format.extension());
        let file = self.plan.labels.join(name);
        if *outcome == Outcome::Created || !file.is_file() {
            self.client.labels().download(number, self.plan.format).save_to(&file).await?;
        }
        Ok(file)
    }
}

/// A key that knows no more than when it was first sent.
fn key(row: &Row, first: Option<DateTime<Utc>>) -> IdempotencyKey {
    let fresh = IdempotencyKey::parse(row.key.as_str()).unwrap_or_else(|_| row.key.clone());
    first.map_or(fresh.clone(), |first| fresh.first_sent_at(first))
}

fn unclear(row: &Row) -> Ended {
    let values = [("reference", &*row.reference)];
    let said = texts::UNCLEAR.with(&values);
    let report = RowReport::of(row, Outcome::Unknown).saying("OUTCOME_UNKNOWN", said);
    (report, Turn::OfRow)
}

fn sent(row: &Row) -> Entry {
    Entry::Sent {
        row: row.number,
        reference: row.reference.clone(),
        key: row.key.to_string(),
        digest: row.digest.clone(),
        at: clock::now(),
    }
}

fn made(row: &Row, number: &TrackingNumber) -> Entry {
    Entry::Created { key: row.key.to_string(), tracking_number: number.clone() }
}

/// The most parcels of a page.
const MOST: u32 = 100;
/// By so much this machine's clock and the service's may differ.
const SKEW: TimeDelta = TimeDelta::hours(1);

fn merged(mut told: Vec<Warning>, more: Vec<Warning>) -> Vec<Warning> {
    for warning in more {
        if !told.contains(&warning) {
            told.push(warning);
        }
    }
    told
}

fn faulted(report: RowReport, why: &Failure) -> RowReport {
    if why.fields.is_empty() {
        return report.saying(&why.code, why.message.clone());
    }
    let faults = why.fields.iter().cloned().map(|fault| RowFault::of(fault, None));
    faults.fold(report, RowReport::because)
}

/// What a failed call means for other rows; a failure of all is still to be filled in.
fn turn_of(error: &Error) -> Result<Turn, fn(Failure) -> Turn> {
    match error.kind() {
        ErrorKind::Validation
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::KeyExpired
        | ErrorKind::Executed
        | ErrorKind::CountryNotAllowed => Ok(Turn::OfRow),
        ErrorKind::Authentication | ErrorKind::Forbidden | ErrorKind::Config | ErrorKind::File => {
            Err(Turn::OfAll)
        }
        _ => Err(Turn::Elsewhere),
    }
}
