//! Created, voided and checked orders.

use parcelo::{
    IdempotencyKey, Language, Outcome, Parcel, ParcelStatus,
    model::{FieldFault, RequestId, Row, VoidResult, VoidedOrders, Warning},
};
use serde::Serialize;

use super::{
    labels::SavedLabel,
    table::{Cell, Items, Report, Section, Table, column, csv_only, items},
    written::{WriteResult, outcome_code, serialize_outcome},
};
use crate::texts;

/// The result of `order create`: an order that exists.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Created {
    #[serde(serialize_with = "serialize_outcome")]
    pub(crate) outcome: Outcome,
    pub(crate) parcel: Parcel,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) idempotency_key: IdempotencyKey,
    pub(crate) request_id: Option<RequestId>,
    pub(crate) label: Option<SavedLabel>,
}

/// The result of `order validate`: a verdict on each order of the files. It is always an array, because a file may
/// contain any number of orders.
#[derive(Debug, Serialize)]
pub(crate) struct Verdicts(pub(crate) Vec<Verdict>);

/// The verdict on an order in a file.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    pub(crate) file: String,
    /// The order's position in its file, from 0.
    pub(crate) index: usize,
    pub(crate) valid: bool,
    pub(crate) errors: Vec<FieldFault>,
    pub(crate) warnings: Vec<Warning>,
}

impl Report for Created {
    fn table(&self, language: Language) -> Table {
        let Parcel { tracking_number, status, label_url, created_at, id, .. } = &self.parcel;
        let file = self.label.as_ref().map(|label| label.file.to_string_lossy());
        Table::details([
            (column("trackingNumber", texts::TRACKING_NUMBER), Cell::new(tracking_number)),
            (column("status", texts::STATUS), Cell::status(status, status.name(language))),
            (column("labelUrl", texts::LABEL), Cell::optional(label_url.as_ref())),
            (column("createdAt", texts::CREATED), Cell::optional_time(*created_at)),
            (csv_only("id"), Cell::new(id)),
            (csv_only("outcome"), outcome_code(self.outcome).into()),
            (column("idempotencyKey", texts::IDEMPOTENCY_KEY), Cell::new(&self.idempotency_key)),
            (column("labelFile", texts::LABEL_FILE), Cell::optional(file)),
        ])
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// The result of `order void`.
impl Report for WriteResult<VoidedOrders> {
    /// Returns a row for each requested order, voided or not.
    fn table(&self, language: Language) -> Table {
        self.table_of(self.value.results.iter(), language)
    }

    /// Returns the orders that are void now; the failure contains the reasons for the others.
    fn sections(&self, language: Language) -> Vec<Section<'_>> {
        let is_voided = |row: &&Row<VoidResult>| row.as_ref().is_ok_and(|result| result.voided);
        let voided = self.value.results.iter().filter(is_voided);
        let key = column("idempotencyKey", texts::IDEMPOTENCY_KEY);
        vec![
            Section::Table(self.table_of(voided, language)),
            Section::Table(Table::details([(key, Cell::optional(self.idempotency_key.as_ref()))])),
        ]
    }
}

impl WriteResult<VoidedOrders> {
    fn table_of<'a>(
        &self,
        results: impl Iterator<Item = &'a Row<VoidResult>>,
        language: Language,
    ) -> Table {
        let columns = [
            column("trackingNumber", texts::TRACKING_NUMBER),
            csv_only("voided"),
            csv_only("alreadyVoided"),
            column("previousStatus", texts::PREVIOUS_STATUS),
            column("status", texts::STATUS),
            column("voidedAt", texts::VOIDED),
            csv_only("code"),
            csv_only("message"),
            csv_only("idempotencyKey"),
        ];
        let key = || Cell::optional(self.idempotency_key.as_ref());
        let rows = results.map(|row| match row {
            Ok(result) => void_cells(result, key(), language),
            Err(row) => {
                let mut cells = <[Cell; 9]>::default();
                let [.., code, message, last] = &mut cells;
                (*code, *message, *last) =
                    ("UNREADABLE_ANSWER".into(), Cell::new(row.json()), key());
                cells
            }
        });
        Table::list(columns, rows)
    }
}

fn void_cells(result: &VoidResult, key: Cell, language: Language) -> [Cell; 9] {
    let status = |status: &Option<ParcelStatus>| {
        let cell = status.as_ref().map(|status| Cell::status(status, status.name(language)));
        cell.unwrap_or_default()
    };
    let before = status(&result.previous_status);
    let error = result.error.as_ref();
    [
        Cell::new(&result.tracking_number),
        Cell::new(result.voided),
        Cell::optional(result.already_voided),
        match result.already_voided {
            Some(true) => before.shown_as(texts::ALREADY_VOID.pick(language)),
            Some(false) | None => before,
        },
        status(&result.status),
        Cell::optional_time(result.voided_at),
        Cell::optional(error.map(|error| &error.code)),
        Cell::optional(error.map(|error| language.pick(&error.message, &error.message_es))),
        key,
    ]
}

impl Report for Verdicts {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.0))
    }

    /// Returns a row for each fault and each warning; an order without any has one row.
    fn table(&self, language: Language) -> Table {
        let columns =
            ["file", "index", "valid", "severity", "field", "code", "message", "suggestion"];
        let rows = self.0.iter().flat_map(|verdict| {
            let faults = verdict.errors.iter().map(|fault| fault_cells(fault, language));
            let warnings = verdict.warnings.iter().map(|warning| warning_cells(warning, language));
            let none = (verdict.errors.is_empty() && verdict.warnings.is_empty())
                .then(<[Cell; 5]>::default);
            faults.chain(warnings).chain(none).map(
                |[severity, field, code, message, suggestion]| {
                    let (file, index) = (Cell::new(&verdict.file), Cell::new(verdict.index));
                    [
                        file,
                        index,
                        Cell::new(verdict.valid),
                        severity,
                        field,
                        code,
                        message,
                        suggestion,
                    ]
                },
            )
        });
        Table::list(columns.map(csv_only), rows)
    }

    fn sections(&self, language: Language) -> Vec<Section<'_>> {
        let sections = self.0.iter().flat_map(|verdict| {
            let word = if verdict.valid { texts::VALID } else { texts::INVALID };
            let line = format!("{}[{}]: {}", verdict.file, verdict.index, word.pick(language));
            let faults = verdict.errors.iter().map(Section::Fault);
            let warnings = verdict.warnings.iter().map(Section::Warning);
            [Section::Line(line)].into_iter().chain(faults).chain(warnings)
        });
        sections.collect()
    }
}

fn fault_cells(fault: &FieldFault, language: Language) -> [Cell; 5] {
    [
        "error".into(),
        Cell::new(&fault.field),
        Cell::new(fault.code.code()),
        Cell::new(fault.text(language)),
        Cell::optional(fault.suggestion.as_ref()),
    ]
}

fn warning_cells(warning: &Warning, language: Language) -> [Cell; 5] {
    [
        "warning".into(),
        Cell::new(&warning.field),
        Cell::new(warning.code.code()),
        Cell::new(warning.text(language)),
        Cell::default(),
    ]
}
