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
    import::{
        ImportPlan, Journal, JournalEntry, Prescan, Recorded, ResumeMode, Row, RowFault,
        RowOutcome, RowReport,
    },
    texts::{Message, import as texts},
};

/// Where rows are done.
pub(super) struct RowImporter<'a> {
    client: &'a Client,
    plan: &'a ImportPlan,
    journal: Journal,
    known: std::collections::HashMap<String, Recorded>,
}

/// What a row's end means for the others.
pub(super) enum Continue {
    Succeeded,
    /// It failed for a reason of its own.
    Yes,
    /// The service could not be asked, or did not answer.
    Unreachable(Failure),
    /// Every other row would fail in the same way.
    No(Failure),
}

type Ended = (RowReport, Continue);

/// An order that exists.
struct Made {
    number: TrackingNumber,
    outcome: RowOutcome,
    warnings: Vec<Warning>,
}

impl<'a> RowImporter<'a> {
    pub(super) fn new(
        client: &'a Client,
        plan: &'a ImportPlan,
        journal: Journal,
        known: std::collections::HashMap<String, Recorded>,
    ) -> Self {
        let importer = Self { client, plan, journal, known };
        importer.sweep();
        importer
    }

    /// What is odd about the file, seen from the journal.
    pub(super) fn notes(&self, prescan: &Prescan) -> Vec<Message> {
        if self.plan.resume == ResumeMode::Fresh {
            return Vec::new();
        }
        let done = self.known.values().filter(|known| matches!(known, Recorded::Created { .. }));
        let gone = self.known.keys().filter(|key| !prescan.has(key)).count();
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
                Recorded::Created { tracking_number, .. } => Some(tracking_number.as_str()),
                Recorded::Sent { .. } | Recorded::NotCreated => None,
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
    pub(super) async fn import(&self, row: Row) -> Ended {
        let made = match self.order_of(&row).await {
            Ok(made) => made,
            Err(ended) => return *ended,
        };
        let report = RowReport::new(&row, made.outcome);
        let label = self.label(&made).await;
        let report = RowReport {
            tracking_number: Some(made.number),
            warnings: merged(report.warnings, made.warnings),
            ..report
        };
        match label {
            Ok(file) => (RowReport { label_file: Some(file), ..report }, Continue::Succeeded),
            Err(error) => {
                let turn = continuation(&error);
                let why = Failure::from(error);
                let report = RowReport { outcome: RowOutcome::LabelMissing, ..report };
                (faulted(report, &why), turn.unwrap_or_else(|meant| meant(why)))
            }
        }
    }

    /// The row's order, created unless the journal has it.
    async fn order_of(&self, row: &Row) -> Result<Made, Box<Ended>> {
        let first = match self.known.get(row.key.as_str()) {
            Some(Recorded::Created { tracking_number, digest }) if *digest == row.digest => {
                let number = tracking_number.clone();
                return Ok(Made { number, outcome: RowOutcome::DoneBefore, warnings: Vec::new() });
            }
            Some(Recorded::Created { tracking_number, .. }) => {
                let said = texts::ROW_CHANGED.with(&[("number", tracking_number.as_str())]);
                let report =
                    RowReport::new(row, RowOutcome::Invalid).with_message("ROW_CHANGED", said);
                return Err(Box::new((report, Continue::Yes)));
            }
            Some(Recorded::Sent { first, .. }) => Some(*first),
            Some(Recorded::NotCreated) | None => None,
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
                    parcelo::Outcome::Created => RowOutcome::Created,
                    parcelo::Outcome::Replayed => RowOutcome::Replayed,
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
                self.note(row, &JournalEntry::NotCreated { key: row.key.to_string() }).await
        {
            return ended;
        }
        let turn = continuation(&error);
        let why = Failure::from(error);
        let outcome = if is_unknown { RowOutcome::Unknown } else { RowOutcome::Failed };
        let report = faulted(RowReport::new(row, outcome), &why);
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
        let found =
            self.client.parcels().list().external_order_id(reference).limit(MAX_PAGE_SIZE).await;
        let parcels = match found {
            Ok(page) => page.into_inner().parcels,
            Err(error) => return Err(self.refused(row, error, Some(first)).await),
        };
        if parcels.is_empty() {
            self.note(row, &JournalEntry::NotCreated { key: row.key.to_string() }).await?;
            return Ok(None);
        }
        // One that cannot be read may be the one.
        let may_be = |row: &parcelo::model::Row<ParcelSummary>| {
            row.as_ref().map_or(true, |parcel| parcel.created_at >= first - MAX_CLOCK_SKEW)
        };
        let mut since = parcels.into_iter().filter(may_be);
        match (since.next(), since.next()) {
            (Some(Ok(parcel)), None) => {
                let number = parcel.tracking_number;
                self.note(row, &made(row, &number)).await?;
                Ok(Some(Made { number, outcome: RowOutcome::Replayed, warnings: Vec::new() }))
            }
            _ => Err(Box::new(unclear(row))),
        }
    }

    /// Nothing goes on before the journal knows.
    async fn note(&self, row: &Row, entry: &JournalEntry) -> Result<(), Box<Ended>> {
        self.journal.write(entry).await.map_err(|why| {
            let failure = Failure::unwritable(&self.plan.journal().to_string_lossy(), &why);
            let outcome = match entry {
                JournalEntry::Created { .. } => RowOutcome::Unknown,
                _ => RowOutcome::NotSent,
            };
            Box::new((faulted(RowReport::new(row, outcome), &failure), Continue::No(failure)))
        })
    }

    /// The label's file: whole, or not there.
    async fn label(&self, made: &Made) -> Result<PathBuf, Error> {
        let Made { number, outcome, .. } = made;
        let name = format!("label-{number}.{}", self.plan.format.extension());
        let file = self.plan.labels.join(name);
        if *outcome == RowOutcome::Created || !file.is_file() {
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
    let report = RowReport::new(row, RowOutcome::Unknown).with_message("OUTCOME_UNKNOWN", said);
    (report, Continue::Yes)
}

fn sent(row: &Row) -> JournalEntry {
    JournalEntry::Sent {
        row: row.number,
        reference: row.reference.clone(),
        key: row.key.to_string(),
        digest: row.digest.clone(),
        at: clock::now(),
    }
}

fn made(row: &Row, number: &TrackingNumber) -> JournalEntry {
    JournalEntry::Created { key: row.key.to_string(), tracking_number: number.clone() }
}

/// The most parcels of a page.
const MAX_PAGE_SIZE: u32 = 100;
/// By so much this machine's clock and the service's may differ.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::hours(1);

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
        return report.with_message(&why.code, why.message.clone());
    }
    let faults = why.fields.iter().cloned().map(|fault| RowFault::from_field(fault, None));
    faults.fold(report, RowReport::with_fault)
}

/// What a failed call means for other rows; a failure of all is still to be filled in.
fn continuation(error: &Error) -> Result<Continue, fn(Failure) -> Continue> {
    match error.kind() {
        ErrorKind::Validation
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::KeyExpired
        | ErrorKind::Executed
        | ErrorKind::CountryNotAllowed => Ok(Continue::Yes),
        ErrorKind::Authentication | ErrorKind::Forbidden | ErrorKind::Config | ErrorKind::File => {
            Err(Continue::No)
        }
        _ => Err(Continue::Unreachable),
    }
}
