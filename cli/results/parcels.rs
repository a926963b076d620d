//! Tracked, listed and manifested parcels.

use parcelo::{
    Decimal, Language, ParcelStatus,
    model::{
        Arrival, ArrivalKind, HistoryEntry, Manifest, PageMeta, ParcelSummary, Row, TrackingRecord,
        Unreadable, Warning,
    },
};
use parcelo_types::internal::time;
use serde::{Serialize, Serializer};

use super::{
    table::{
        Cell, FoundItems, Items, Report, SECONDS, Section, Table, column, csv_only, items,
        text_only,
    },
    written::WriteResult,
};
use crate::texts;

/// The result of `parcel list`; `meta` is `None` if all pages were fetched.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    #[serde(serialize_with = "serialize_rows")]
    pub(crate) parcels: Vec<Row<ParcelSummary>>,
    pub(crate) meta: Option<PageMeta>,
}

/// The result of `track`.
impl Report for FoundItems<TrackingRecord> {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.found))
    }

    /// Returns a row for each event if the history was requested, otherwise one for each parcel.
    fn table(&self, language: Language) -> Table {
        if self.found.iter().any(|record| record.history.is_some()) {
            history_table(&self.found)
        } else {
            status_table(&self.found, language)
        }
    }

    fn sections(&self, language: Language) -> Vec<Section<'_>> {
        let with_history = self.found.iter().filter(|record| record.history.is_some());
        let histories = with_history.flat_map(|record| {
            let number = Section::Line(record.tracking_number.to_string());
            let table = Section::Table(history_table(std::slice::from_ref(record)));
            [Section::Line(String::new()), number, table]
        });
        [Section::Table(status_table(&self.found, language))].into_iter().chain(histories).collect()
    }
}

fn status_table(records: &[TrackingRecord], language: Language) -> Table {
    let columns = [
        column("trackingNumber", texts::TRACKING_NUMBER),
        column("status", texts::STATUS),
        csv_only("statusName"),
        column("estimatedDelivery", texts::ARRIVAL),
    ];
    let rows = records.iter().map(|record| {
        let estimated = match record.status {
            // The service's response still includes the promised day.
            ParcelStatus::Voided => Cell::default(),
            _ => Cell::new(record.estimated_delivery.to_rfc3339()),
        };
        [
            Cell::new(&record.tracking_number),
            Cell::status(&record.status, &record.status_name),
            Cell::new(&record.status_name),
            estimated.shown_as(arrival_of(record, language)),
        ]
    });
    Table::list(columns, rows)
}

/// Describes the arrival as reported by the service. Without a report there is only the promised day, which is valid
/// while the parcel is on its way.
fn arrival_of(record: &TrackingRecord, language: Language) -> String {
    match (&record.arrival, &record.status) {
        (Some(arrival), _) => arrival_text(arrival, language),
        (
            None,
            ParcelStatus::CustomsHold
            | ParcelStatus::DeliveryAttempted
            | ParcelStatus::Delivered
            | ParcelStatus::DeliveryFailed
            | ParcelStatus::ReturnToSender
            | ParcelStatus::Voided,
        ) => String::new(),
        (None, _) => record.estimated_delivery.date_naive().to_string(),
    }
}

fn arrival_text(arrival: &Arrival, language: Language) -> String {
    let date = arrival.date.to_string();
    let text = match arrival.kind {
        ArrivalKind::Today => texts::ARRIVES_TODAY,
        ArrivalKind::Delayed => texts::ARRIVES_LATE,
        ArrivalKind::Delivered => texts::HAS_ARRIVED,
        // A kind that this version does not know still has a day.
        _ => return date,
    };
    text.with(&[("date", &date)]).pick(language).to_owned()
}

fn history_table(records: &[TrackingRecord]) -> Table {
    let columns = [
        csv_only("trackingNumber"),
        csv_only("sequence"),
        column("timestamp", texts::TIME),
        column("status", texts::STATUS),
        csv_only("statusName"),
        column("location", texts::LOCATION),
        column("description", texts::DETAILS),
    ];
    let rows = records.iter().flat_map(|record| {
        let number = || Cell::new(&record.tracking_number);
        record.history.iter().flatten().map(move |event| match event {
            Ok(event) => event_cells(number(), event),
            Err(row) => {
                let mut cells = <[Cell; 7]>::default();
                let [first, .., last] = &mut cells;
                (*first, *last) = (number(), Cell::new(row.json()));
                cells
            }
        })
    });
    Table::list(columns, rows)
}

fn event_cells(number: Cell, event: &HistoryEntry) -> [Cell; 7] {
    [
        number,
        Cell::optional(event.sequence),
        Cell::new(time::to_text(event.timestamp)).shown_as(event.timestamp.format(SECONDS)),
        Cell::status(&event.status, &event.status_name),
        Cell::new(&event.status_name),
        Cell::new(&event.location),
        Cell::optional(event.description.as_ref()),
    ]
}

/// A parcel, or a row that this version cannot read.
#[derive(Serialize)]
#[serde(untagged)]
enum RowDocument<'a> {
    Read(&'a ParcelSummary),
    Unreadable(&'a Unreadable),
}

fn rows(parcels: &[Row<ParcelSummary>]) -> impl Iterator<Item = RowDocument<'_>> {
    parcels.iter().map(|row| match row {
        Ok(parcel) => RowDocument::Read(parcel),
        Err(row) => RowDocument::Unreadable(row),
    })
}

fn serialize_rows<S: Serializer>(
    parcels: &[Row<ParcelSummary>],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows(parcels))
}

impl Report for Listing {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(rows(&self.parcels)))
    }

    fn table(&self, language: Language) -> Table {
        let columns = [
            csv_only("id"),
            column("trackingNumber", texts::TRACKING_NUMBER),
            column("status", texts::STATUS),
            csv_only("statusName"),
            column("externalOrderId", texts::ORDER_ID),
            column("customerReference", texts::REFERENCE),
            column("destinationCountry", texts::DESTINATION),
            csv_only("labelUrl"),
            csv_only("manifestId"),
            column("awbNumber", texts::AWB),
            column("createdAt", texts::CREATED),
            csv_only("updatedAt"),
            column("arrival", texts::ARRIVAL),
            csv_only("arrivalDate"),
        ];
        let rows = self.parcels.iter().flatten().map(|parcel| {
            let arrival = parcel.arrival.as_ref();
            let kind = Cell::optional(arrival.map(|known| &known.kind));
            let shown = arrival.map(|known| arrival_text(known, language)).unwrap_or_default();
            [
                Cell::new(&parcel.id),
                Cell::new(&parcel.tracking_number),
                Cell::status(&parcel.status, &parcel.status_name),
                Cell::new(&parcel.status_name),
                Cell::optional(parcel.external_order_id.as_ref()),
                Cell::optional(parcel.customer_reference.as_ref()),
                Cell::new(parcel.destination_country.as_str()),
                Cell::optional(parcel.label_url.as_ref()),
                Cell::optional(parcel.manifest_id.as_ref()),
                Cell::optional(parcel.awb_number.as_ref()),
                Cell::time(parcel.created_at),
                Cell::time(parcel.updated_at),
                kind.shown_as(shown),
                Cell::optional(arrival.map(|known| known.date)),
            ]
        });
        Table::list(columns, rows)
    }
}

/// The result of `parcel show`: the data of a parcel in the list, and its history.
#[derive(Debug, Serialize)]
pub(crate) struct ShownParcel {
    pub(crate) parcel: ParcelSummary,
    pub(crate) tracking: TrackingRecord,
}

impl Report for ShownParcel {
    fn table(&self, _: Language) -> Table {
        history_table(std::slice::from_ref(&self.tracking))
    }

    fn sections(&self, language: Language) -> Vec<Section<'_>> {
        let Self { parcel, tracking } = self;
        let facts = Table::details(
            [
                (texts::TRACKING_NUMBER, Cell::new(&parcel.tracking_number)),
                (texts::STATUS, Cell::status(&tracking.status, &tracking.status_name)),
                (texts::ORDER_ID, Cell::optional(parcel.external_order_id.as_ref())),
                (texts::REFERENCE, Cell::optional(parcel.customer_reference.as_ref())),
                (texts::DESTINATION, Cell::new(parcel.destination_country.as_str())),
                (texts::AWB, Cell::optional(parcel.awb_number.as_ref())),
                (texts::MANIFEST, Cell::optional(parcel.manifest_id.as_ref())),
                (texts::ARRIVAL, Cell::new(arrival_of(tracking, language))),
                (texts::CREATED, Cell::time(parcel.created_at)),
            ]
            .map(|(heading, cell)| (text_only(heading), cell)),
        );
        let history = Section::Table(history_table(std::slice::from_ref(tracking)));
        vec![Section::Table(facts), Section::Line(String::new()), history]
    }
}

/// The result of `manifest show`.
impl Report for Manifest {
    /// Returns a row for each parcel, so that manifests can be joined with other tables.
    fn table(&self, _: Language) -> Table {
        let columns = [
            "manifestId",
            "awbNumber",
            "trackingNumber",
            "flightNumber",
            "departureDate",
            "originAirport",
            "destinationAirport",
            "reference",
            "submittedAt",
        ];
        let rows = self.tracking_numbers.iter().map(|number| {
            [
                Cell::new(&self.manifest_id),
                Cell::new(&self.awb_number),
                Cell::new(number),
                Cell::optional(self.flight_number.as_ref()),
                Cell::optional(self.departure_date),
                Cell::optional(self.origin_airport.as_ref()),
                Cell::optional(self.destination_airport.as_ref()),
                Cell::optional(self.reference.as_ref()),
                Cell::time(self.submitted_at),
            ]
        });
        Table::list(columns.map(csv_only), rows)
    }

    fn sections(&self, _: Language) -> Vec<Section<'_>> {
        let values = self.declared_values.iter().map(|sum| match sum {
            Ok(sum) => format!("{} {}", sum.currency, with_cents(sum.amount)),
            Err(row) => row.json().to_string(),
        });
        let values: Vec<_> = values.collect();
        let countries: Vec<_> =
            self.destination_countries.iter().map(ToString::to_string).collect();
        let route = [&self.origin_airport, &self.destination_airport].map(Option::as_deref);
        let route: Vec<_> = route.into_iter().flatten().collect();
        let facts = Table::details(
            [
                (texts::MANIFEST, Cell::new(&self.manifest_id)),
                (texts::AWB, Cell::new(&self.awb_number)),
                (texts::PARCELS, Cell::new(self.parcel_count)),
                (texts::WEIGHT, Cell::new(self.total_weight_kg)),
                (texts::VALUE, Cell::new(values.join(", "))),
                (texts::COUNTRIES, Cell::new(countries.join(", "))),
                (texts::FLIGHT, Cell::optional(self.flight_number.as_ref())),
                (texts::DEPARTURE, Cell::optional(self.departure_date)),
                (texts::ROUTE, Cell::new(route.join(" → "))),
                (texts::REFERENCE, Cell::optional(self.reference.as_ref())),
                (texts::SUBMITTED, Cell::time(self.submitted_at)),
            ]
            .map(|(heading, cell)| (text_only(heading), cell)),
        );
        let numbers =
            self.tracking_numbers.iter().map(|number| Section::Line(format!("  {number}")));
        [Section::Table(facts)].into_iter().chain(numbers).collect()
    }

    fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

/// The result of `manifest submit`.
impl Report for WriteResult<Manifest> {
    fn table(&self, language: Language) -> Table {
        self.value.table(language)
    }

    fn sections(&self, language: Language) -> Vec<Section<'_>> {
        self.value.sections(language)
    }

    fn warnings(&self) -> &[Warning] {
        &self.value.warnings
    }
}

/// Returns an amount of money with at least two decimals.
fn with_cents(amount: Decimal) -> String {
    let mut amount = amount.normalize();
    amount.rescale(amount.scale().max(2));
    amount.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(status: &str, arrival: Option<&str>) -> TrackingRecord {
        let mut record = serde_json::json!({ "trackingNumber": "SB-NORMAL-0001", "status": status,
            "statusName": status, "estimatedDelivery": "2026-01-13T23:59:59-05:00" });
        if let Some(kind) = arrival {
            record["arrival"] = serde_json::json!({ "kind": kind, "date": "2026-01-13" });
        }
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn the_arrival_is_the_estimate_or_the_promised_day() {
        let table = [
            ("IN_TRANSIT", Some("EXPECTED"), "2026-01-13", "2026-01-13"),
            ("OUT_FOR_DELIVERY", Some("TODAY"), "today", "hoy"),
            (
                "IN_TRANSIT",
                Some("DELAYED"),
                "late, due 2026-01-13",
                "con retraso, se esperaba el 2026-01-13",
            ),
            ("DELIVERED", Some("DELIVERED"), "delivered 2026-01-13", "entregado el 2026-01-13"),
            ("IN_TRANSIT", Some("TELEPORTED"), "2026-01-13", "2026-01-13"),
            ("IN_TRANSIT", None, "2026-01-13", "2026-01-13"),
            ("CUSTOMS_HOLD", None, "", ""),
            ("DELIVERED", None, "", ""),
            ("VOIDED", None, "", ""),
        ];
        for (status, arrival, en, es) in table {
            let record = record(status, arrival);
            assert_eq!(arrival_of(&record, Language::En), en, "{status} {arrival:?}");
            assert_eq!(arrival_of(&record, Language::Es), es, "{status} {arrival:?}");
        }
    }
}
