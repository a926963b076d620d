//! The results of a search as a CSV file for spreadsheets. Cells that begin like a formula are written as text.

use axum::{
    extract::{RawQuery, State},
    response::Response,
};
use parcelo_service::http::{Api, HttpRefusal, response};
use parcelo_types::{
    ErrorCode,
    internal::{spreadsheet::to_cell, time},
    model::ParcelSummary,
};

use super::{auth::SignedInUser, fields::FormFields, search::ParcelListFilter};

/// Maximum number of parcels in a file. The dates of a search can divide a longer list.
const MAX_ROWS: u64 = 10_000;

const COLUMNS: [&str; 11] = [
    "trackingNumber",
    "status",
    "statusName",
    "destinationCountry",
    "externalOrderId",
    "customerReference",
    "awbNumber",
    "arrival",
    "arrivalDate",
    "createdAt",
    "updatedAt",
];

/// Sends all pages of a search in one file.
pub(super) async fn download(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let fields = FormFields::parse(query.unwrap_or_default().as_bytes());
    let filter = ParcelListFilter::from_fields(&fields).map_err(|_| ErrorCode::NotFound)?;
    let tenant = user.tenant(filter.environment);
    let (mut query, mut writer) = (filter.full_list_query(), csv::Writer::from_writer(Vec::new()));
    write_row(&mut writer, COLUMNS.map(str::to_owned))?;
    for page in 1.. {
        query.page = page;
        let (found, meta) =
            api.service.list_tenant_parcels(tenant, &query, user.language()).await?;
        for parcel in &found {
            write_row(&mut writer, row(parcel).map(|cell| to_cell(&cell).into_owned()))?;
        }
        let rows = u64::from(page) * u64::from(query.limit);
        if found.is_empty() || rows >= meta.total.min(MAX_ROWS) {
            break;
        }
    }
    let file = writer.into_inner().map_err(|_| ErrorCode::InternalError)?;
    let name = format!("attachment; filename=\"parcels-{}.csv\"", filter.environment.code());
    Ok(response::file("text/csv; charset=utf-8", name, file))
}

/// Writes a row.
fn write_row(writer: &mut csv::Writer<Vec<u8>>, cells: [String; 11]) -> Result<(), HttpRefusal> {
    writer.write_record(cells).map_err(|_| ErrorCode::InternalError.into())
}

/// Returns the cells of a parcel, in the order of [`COLUMNS`].
fn row(parcel: &ParcelSummary) -> [String; 11] {
    let arrival = parcel.arrival.as_ref();
    [
        parcel.tracking_number.to_string(),
        parcel.status.code().to_owned(),
        parcel.status_name.clone(),
        parcel.destination_country.to_string(),
        parcel.external_order_id.clone().unwrap_or_default(),
        parcel.customer_reference.clone().unwrap_or_default(),
        parcel.awb_number.as_ref().map(ToString::to_string).unwrap_or_default(),
        arrival.map(|arrival| arrival.kind.code().to_owned()).unwrap_or_default(),
        arrival.map(|arrival| arrival.date.to_string()).unwrap_or_default(),
        time::to_text(parcel.created_at),
        time::to_text(parcel.updated_at),
    ]
}
