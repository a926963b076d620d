//! Parcels that were tracked, listed or submitted in a manifest.

use parcelo::{
    Language,
    model::{
        HistoryEntry, Manifest, PageMeta, ParcelSummary, Row, TrackingRecord, Unreadable, Warning,
        time,
    },
};
use serde::{Serialize, Serializer};

use super::{
    table::{
        Cell, Found, Items, Report, SECONDS, Section, Table, column, csv_only, items, text_only,
    },
    written::Written,
};
use crate::texts;

/// `parcel list`; `meta` is null when all pages are here.
#[derive(Debug, Serialize)]
pub(crate) struct Listing {
    #[serde(serialize_with = "serialize_rows")]
    pub(crate) parcels: Vec<Row<ParcelSummary>>,
    pub(crate) meta: Option<PageMeta>,
}

/// `track`.
impl Report for Found<TrackingRecord> {
    fn items(&self) -> Option<Items<'_>> {
        Some(items(&self.found))
    }

    /// With history a row for each event, else one for each parcel.
    fn table(&self, _: Language) -> Table {
        if self.found.iter().any(|record| record.history.is_some()) {
            history_table(&self.found)
        } else {
            status_table(&self.found)
        }
    }

    fn sections(&self, _: Language) -> Vec<Section<'_>> {
        let with_history = self.found.iter().filter(|record| record.history.is_some());
        let histories = with_history.flat_map(|record| {
            let number = Section::Line(record.tracking_number.to_string());
            let table = Section::Table(history_table(std::slice::from_ref(record)));
            [Section::Line(String::new()), number, table]
        });
        [Section::Table(status_table(&self.found))].into_iter().chain(histories).collect()
    }
}

fn status_table(records: &[TrackingRecord]) -> Table {
    let columns = [
        column("trackingNumber", texts::TRACKING_NUMBER),
        column("status", texts::STATUS),
        csv_only("statusName"),
        column("estimatedDelivery", texts::ESTIMATED),
    ];
    let rows = records.iter().map(|record| {
        let estimated = record.estimated_delivery;
        [
            Cell::new(&record.tracking_number),
            Cell::status(&record.status, &record.status_name),
            Cell::new(&record.status_name),
            Cell::new(estimated.to_rfc3339()).shown_as(estimated.date_naive()),
        ]
    });
    Table::list(columns, rows)
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

/// A parcel, or what the service sent that this version cannot read.
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

    fn table(&self, _: Language) -> Table {
        let columns = [
            csv_only("id"),
            column("trackingNumber", texts::TRACKING_NUMBER),
            column("status", texts::STATUS),
            csv_only("statusName"),
            column("externalOrderId", texts::ORDER_ID),
            csv_only("customerReference"),
            column("destinationCountry", texts::DESTINATION),
            csv_only("labelUrl"),
            csv_only("manifestId"),
            column("awbNumber", texts::AWB),
            column("createdAt", texts::CREATED),
            csv_only("updatedAt"),
        ];
        let rows = self.parcels.iter().flatten().map(|parcel| {
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
            ]
        });
        Table::list(columns, rows)
    }
}

/// `manifest show`.
impl Report for Manifest {
    /// A row for each parcel, so that a manifest can be joined to other lists.
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
            Ok(sum) => format!("{} {}", sum.amount, sum.currency),
            Err(row) => row.json().to_string(),
        });
        let values: Vec<_> = values.collect();
        let countries: Vec<_> =
            self.destination_countries.iter().map(ToString::to_string).collect();
        let route = [&self.origin_airport, &self.destination_airport].map(Option::as_deref);
        let route: Vec<_> = route.into_iter().flatten().collect();
        let facts = Table::facts(
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

/// `manifest submit`.
impl Report for Written<Manifest> {
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
