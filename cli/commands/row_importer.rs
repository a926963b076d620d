//! Imports a row: its order, its label, and the journal entries before and after each step.

use std::{fs, path::PathBuf};

use chrono::TimeDelta;
use parcelo::{
    Client, Error, ErrorCode, ErrorKind, IdempotencyKey, OrderRequest, TrackingNumber,
    model::{KeyState, ParcelSummary, Warning},
};

use super::{MAX_PAGE_SIZE, label};
use crate::{
    api_error::existing_order,
    clock,
    failure::Failure,
    import::{
        ImportPlan, Journal, JournalEntry, Prescan, RecordedOrder, RecordedOrders, ResumeMode, Row,
        RowFault, RowOutcome, RowReport,
    },
    texts::{Message, import as texts},
};

/// Imports single rows, and records each step in the journal.
pub(super) struct RowImporter<'a> {
    client: &'a Client,
    plan: &'a ImportPlan,
    journal: Journal,
    recorded: RecordedOrders,
}

/// The consequence of a row for the rows after it.
pub(super) enum AfterRow {
    Succeeded,
    /// It failed for a reason that concerns only this row.
    RowFailed,
    /// The service did not respond, failed, or limited the rate. Other rows are sent, unless too many in succession end
    /// like this.
    Transient(Failure),
    /// Every other row would fail for the same reason.
    Stop(Failure),
}

type RowResult = (RowReport, AfterRow);
type ParcelRow = parcelo::model::Row<ParcelSummary>;

/// An existing order.
struct ImportedOrder {
    number: TrackingNumber,
    outcome: RowOutcome,
    warnings: Vec<Warning>,
}

impl<'a> RowImporter<'a> {
    pub(super) fn new(
        client: &'a Client,
        plan: &'a ImportPlan,
        journal: Journal,
        recorded: RecordedOrders,
    ) -> Self {
        let importer = Self { client, plan, journal, recorded };
        importer.remove_partial_labels();
        importer
    }

    /// Returns notes about an earlier run's journal.
    pub(super) fn notes(&self, prescan: &Prescan) -> Vec<Message> {
        if self.plan.resume == ResumeMode::Fresh {
            return Vec::new();
        }
        let done =
            self.recorded.values().filter(|order| matches!(order, RecordedOrder::Created { .. }));
        let removed_rows = self.recorded.keys().filter(|key| !prescan.contains_key(key)).count();
        let done = texts::RESUMED.with(&[("done", &done.count().to_string())]);
        let removed_rows =
            (removed_rows > 0).then(|| texts::ROWS_GONE.with(&[("n", &removed_rows.to_string())]));
        [done].into_iter().chain(removed_rows).collect()
    }

    /// Removes the temporary files of label downloads that were in progress when an earlier run was killed.
    fn remove_partial_labels(&self) {
        let numbers: std::collections::HashSet<_> = self
            .recorded
            .values()
            .filter_map(|order| match order {
                RecordedOrder::Created { tracking_number, .. } => Some(tracking_number.as_str()),
                RecordedOrder::Sent { .. } | RecordedOrder::NotCreated => None,
            })
            .collect();
        if numbers.is_empty() {
            return;
        }
        // Failures are ignored, because a leftover temporary file does no harm.
        for entry in fs::read_dir(&self.plan.labels).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            // The SDK's `TempFile::path_beside` gives them these names.
            let temporary =
                name.strip_prefix(".label-").and_then(|rest| rest.strip_suffix(".part"));
            let number = temporary.and_then(|name| name.split('.').next());
            if number.is_some_and(|number| numbers.contains(number)) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Creates the order of a valid row, and saves its label.
    pub(super) async fn import(&self, row: Row) -> RowResult {
        let imported = match self.find_or_create_order(&row).await {
            Ok(imported) => imported,
            Err(ended) => return *ended,
        };
        let report = RowReport::new(&row, imported.outcome);
        let label = self.save_label(&imported).await;
        let report = RowReport {
            tracking_number: Some(imported.number),
            warnings: merge_warnings(report.warnings, imported.warnings),
            ..report
        };
        match label {
            Ok(file) => (RowReport { label_file: Some(file), ..report }, AfterRow::Succeeded),
            Err(error) => {
                let kind = error.kind();
                let err = Failure::from(error);
                let report = RowReport { outcome: RowOutcome::LabelMissing, ..report };
                (with_failure(report, &err), after_failure(kind, err))
            }
        }
    }

    /// Returns the row's order: the one in the journal, or a new one.
    async fn find_or_create_order(&self, row: &Row) -> Result<ImportedOrder, Box<RowResult>> {
        let before = match self.recorded.get(row.key.as_str()) {
            Some(RecordedOrder::Created { tracking_number, digest }) if *digest == row.digest => {
                let number = tracking_number.clone();
                return Ok(ImportedOrder {
                    number,
                    outcome: RowOutcome::DoneBefore,
                    warnings: Vec::new(),
                });
            }
            Some(RecordedOrder::Created { tracking_number, .. }) => {
                let message = texts::ROW_CHANGED.with(&[("number", tracking_number.as_str())]);
                let report =
                    RowReport::new(row, RowOutcome::Invalid).with_message("ROW_CHANGED", message);
                return Err(Box::new((report, AfterRow::RowFailed)));
            }
            Some(RecordedOrder::Sent { key, .. }) => Some(key.state()),
            Some(RecordedOrder::NotCreated) | None => None,
        };
        match self.create(row, before.as_ref()).await? {
            Some(imported) => Ok(imported),
            // The key has expired, and the service has no order with this reference, so it is sent as new.
            None => match self.create(row, None).await? {
                Some(imported) => Ok(imported),
                None => Err(Box::new(unknown_outcome(row))),
            },
        }
    }

    /// Sends the order. `before` is the state of the key if an earlier run sent it without getting a response.
    ///
    /// Returns `None` if the key has expired since then and the order does not exist.
    async fn create(
        &self,
        row: &Row,
        before: Option<&KeyState>,
    ) -> Result<Option<ImportedOrder>, Box<RowResult>> {
        let Ok(order) = &row.order else { return Err(Box::new(unknown_outcome(row))) };
        let key = key_with_history(row, before);
        let about_to_be_sent = key.clone().first_sent_at(clock::now()).state();
        self.record(row, &sent_entry(row, about_to_be_sent)).await?;
        let order = OrderRequest::clone(order).with_idempotency_key(key);
        match self.client.orders().create(&order).await {
            Ok(reply) => {
                let outcome = match reply.outcome() {
                    parcelo::Outcome::Created => RowOutcome::Created,
                    parcelo::Outcome::Replayed => RowOutcome::Replayed,
                };
                let created = reply.into_inner();
                let (number, warnings) = (created.parcel.tracking_number, created.warnings);
                self.record(row, &created_entry(row, &number)).await?;
                Ok(Some(ImportedOrder { number, outcome, warnings }))
            }
            Err(error) if error.kind() == ErrorKind::KeyExpired => {
                self.find_by_reference(row, before).await
            }
            Err(error) if error.known_code() == Some(ErrorCode::IdempotencyConflict) => {
                Err(self.order_exists(row, error, before).await)
            }
            Err(error) => {
                if error.may_have_executed() {
                    self.record(row, &sent_entry(row, order.idempotency_key.state())).await?;
                }
                Err(self.failed_result(row, error, before).await)
            }
        }
    }

    /// Returns the result of a row whose reference belongs to an existing order with different content.
    async fn order_exists(
        &self,
        row: &Row,
        conflict: Error,
        before: Option<&KeyState>,
    ) -> Box<RowResult> {
        if before.is_none()
            && let Err(ended) = self.record_not_created(row).await
        {
            return ended;
        }
        let number = existing_order(&conflict);
        let report = RowReport::new(row, RowOutcome::Failed);
        let report = match &number {
            Some(number) => {
                let values = [("reference", &*row.reference), ("number", number.as_str())];
                report.with_message("ORDER_EXISTS", texts::ORDER_EXISTS.with(&values))
            }
            None => with_failure(report, &Failure::from(conflict)),
        };
        Box::new((RowReport { tracking_number: number, ..report }, AfterRow::RowFailed))
    }

    async fn record_not_created(&self, row: &Row) -> Result<(), Box<RowResult>> {
        self.record(row, &JournalEntry::NotCreated { key: row.key.to_string() }).await
    }

    /// Returns the parcels with the row's reference.
    async fn find_parcels(&self, row: &Row) -> Result<Vec<ParcelRow>, Error> {
        let reference = row.order.as_ref().ok().and_then(|order| order.external_order_id.clone());
        let Some(reference) = reference else { return Ok(Vec::new()) };
        let page = self.client.parcels().list().external_order_id(reference).limit(MAX_PAGE_SIZE);
        Ok(page.await?.into_inner().parcels)
    }

    /// Returns the result of a call that failed.
    async fn failed_result(
        &self,
        row: &Row,
        error: Error,
        before: Option<&KeyState>,
    ) -> Box<RowResult> {
        // An earlier call may have created the order even if this one did not.
        let is_unknown = error.may_have_executed() || before.is_some();
        if !is_unknown && let Err(ended) = self.record_not_created(row).await {
            return ended;
        }
        let kind = error.kind();
        let err = Failure::from(error);
        let outcome = if is_unknown { RowOutcome::Unknown } else { RowOutcome::Failed };
        let report = with_failure(RowReport::new(row, outcome), &err);
        Box::new((report, after_failure(kind, err)))
    }

    /// Searches for an order that was sent so long ago that its key has expired.
    async fn find_by_reference(
        &self,
        row: &Row,
        before: Option<&KeyState>,
    ) -> Result<Option<ImportedOrder>, Box<RowResult>> {
        let has_reference = row.order.as_ref().is_ok_and(|order| order.external_order_id.is_some());
        let first_sent_at = before.and_then(KeyState::first_sent).filter(|_| has_reference);
        let Some(first_sent_at) = first_sent_at else {
            return Err(Box::new(unknown_outcome(row)));
        };
        let parcels = match self.find_parcels(row).await {
            Ok(parcels) => parcels,
            Err(error) => return Err(self.failed_result(row, error, before).await),
        };
        if parcels.is_empty() {
            self.record_not_created(row).await?;
            return Ok(None);
        }
        // An unreadable parcel counts, because it may be the one that is searched for.
        let is_candidate = |row: &ParcelRow| {
            row.as_ref().map_or(true, |parcel| parcel.created_at >= first_sent_at - MAX_CLOCK_SKEW)
        };
        let mut candidates = parcels.into_iter().filter(is_candidate);
        match (candidates.next(), candidates.next()) {
            (Some(Ok(parcel)), None) => {
                let number = parcel.tracking_number;
                self.record(row, &created_entry(row, &number)).await?;
                Ok(Some(ImportedOrder {
                    number,
                    outcome: RowOutcome::Replayed,
                    warnings: Vec::new(),
                }))
            }
            _ => Err(Box::new(unknown_outcome(row))),
        }
    }

    /// Writes the entry to the journal, and returns once it is on disk: the next step must not be taken before.
    async fn record(&self, row: &Row, entry: &JournalEntry) -> Result<(), Box<RowResult>> {
        self.journal.write(entry).await.map_err(|err| {
            let failure =
                Failure::for_unwritable_file(&self.plan.journal().to_string_lossy(), &err);
            let outcome = match entry {
                JournalEntry::Created { .. } => RowOutcome::Unknown,
                _ => RowOutcome::NotSent,
            };
            Box::new((
                with_failure(RowReport::new(row, outcome), &failure),
                AfterRow::Stop(failure),
            ))
        })
    }

    /// Saves the label's file, unless an earlier run did.
    async fn save_label(&self, imported: &ImportedOrder) -> Result<PathBuf, Error> {
        let ImportedOrder { number, outcome, .. } = imported;
        let file = self.plan.labels.join(label::file_name(number, self.plan.format));
        if *outcome == RowOutcome::Created || !file.is_file() {
            self.client.labels().download(number, self.plan.format).save_to(&file).await?;
        }
        Ok(file)
    }
}

/// Returns the row's key with its history, so that the client refuses it once it has expired. The key is parsed again,
/// because clones share their history, and a row that is sent as new must not have the old one.
fn key_with_history(row: &Row, before: Option<&KeyState>) -> IdempotencyKey {
    let fresh = IdempotencyKey::parse(row.key.as_str()).unwrap_or_else(|_| row.key.clone());
    fresh.with_state(before.unwrap_or(&KeyState::default()))
}

fn unknown_outcome(row: &Row) -> RowResult {
    let values = [("reference", &*row.reference)];
    let message = texts::OUTCOME_UNKNOWN.with(&values);
    let report = RowReport::new(row, RowOutcome::Unknown).with_message("OUTCOME_UNKNOWN", message);
    (report, AfterRow::RowFailed)
}

fn sent_entry(row: &Row, state: KeyState) -> JournalEntry {
    JournalEntry::Sent {
        row: row.number,
        reference: row.reference.clone(),
        key: row.key.clone(),
        digest: row.digest.clone(),
        at: clock::now(),
        state: Some(state),
    }
}

fn created_entry(row: &Row, number: &TrackingNumber) -> JournalEntry {
    JournalEntry::Created { key: row.key.to_string(), tracking_number: number.clone() }
}

/// Maximum difference between the service's clock, which dates the parcel, and this machine's, which dates the journal:
/// a parcel that seems slightly older than its row can still belong to it.
const MAX_CLOCK_SKEW: TimeDelta = TimeDelta::hours(1);

fn merge_warnings(mut warnings: Vec<Warning>, more: Vec<Warning>) -> Vec<Warning> {
    for warning in more {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

fn with_failure(report: RowReport, err: &Failure) -> RowReport {
    if err.fields.is_empty() {
        return report.with_message(&err.code, err.message.clone());
    }
    let faults = err.fields.iter().cloned().map(|fault| RowFault::from_field(fault, None));
    faults.fold(report, RowReport::with_fault)
}

/// Returns the consequence of a failed call for other rows.
fn after_failure(kind: ErrorKind, err: Failure) -> AfterRow {
    match kind {
        // An unknown endpoint means that the response does not come from the service's API.
        ErrorKind::NotFound if err.code == ErrorCode::NotFound.code() => AfterRow::Stop(err),
        ErrorKind::Validation
        | ErrorKind::NotFound
        | ErrorKind::Conflict
        | ErrorKind::KeyExpired
        | ErrorKind::KeyReused
        | ErrorKind::Executed
        | ErrorKind::CountryNotAllowed => AfterRow::RowFailed,
        ErrorKind::Authentication
        | ErrorKind::Forbidden
        | ErrorKind::Config
        | ErrorKind::File
        | ErrorKind::Unexpected => AfterRow::Stop(err),
        // Network, Timeout, RateLimited, Server, Decode, and kinds that a later SDK adds.
        _ => AfterRow::Transient(err),
    }
}
