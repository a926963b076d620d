//! What carriers reported, in the database: the events they sent, and those that were refused.

use parcelo::TrackingNumber;
use rusqlite::{Connection, Row, params};

use super::{
    Store, StoreError,
    parcels::{damaged, read_state},
};
use crate::{
    clock::Millis,
    domain::{
        AcceptedCarrierEvent, CarrierException, CarrierReport, CarrierRowId, ParcelRowId, Scan,
        Tenant, carrier::LoggedException,
    },
    store::generations::{current, is_current},
};

impl Store {
    /// Whether an event of a carrier was taken before.
    pub async fn has_seen(
        &self,
        carrier: CarrierRowId,
        event_id: &str,
    ) -> Result<bool, StoreError> {
        self.read(|db| find_seen(db, carrier, event_id))
    }

    /// The latest refused carrier events on a tenant's parcels, newest first.
    pub async fn carrier_exceptions(
        &self,
        tenant: Tenant,
        most: u32,
    ) -> Result<Vec<LoggedException>, StoreError> {
        let read = move |store: &Self| store.read(|db| exceptions(db, tenant, most));
        self.scan(Some(tenant), read).await
    }
}

/// Whether an event of a carrier was taken before.
fn find_seen(db: &Connection, carrier: CarrierRowId, event_id: &str) -> rusqlite::Result<bool> {
    db.prepare_cached(concat!(
        "SELECT 1 FROM carrier_events AS e JOIN parcels AS p ON p.id = e.parcel \
         WHERE carrier = ?1 AND event_id = ?2 AND ",
        is_current!("p.tenant")
    ))?
    .exists(params![carrier.0, event_id])
}

/// Marks an event as taken; false when it was taken before, and its parcel is still there.
pub(super) fn see(db: &Connection, event: &AcceptedCarrierEvent) -> rusqlite::Result<bool> {
    let mut insert = db.prepare_cached(concat!(
        "INSERT INTO carrier_events (carrier, event_id, parcel, sequence, code) \
         VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT DO UPDATE SET parcel = excluded.parcel, sequence = excluded.sequence, code = excluded.code \
         WHERE NOT EXISTS (SELECT 1 FROM parcels AS p WHERE p.id = carrier_events.parcel AND ",
        is_current!("p.tenant"),
        ")"
    ))?;
    let (carrier, parcel) = (event.carrier.0, event.parcel.0);
    let row = params![carrier, event.event_id, parcel, event.sequence, event.code];
    Ok(insert.execute(row)? == 1)
}

/// Logs a refused event, of the generation with this number, in the place of an earlier refusal of the same one.
pub(super) fn log(
    db: &Connection,
    exception: &CarrierException,
    number: i64,
) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT OR REPLACE INTO carrier_exceptions (tenant, carrier, event_id, parcel, from_state, \
         state, at, location, description, code, refused_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let CarrierException { report, .. } = exception;
    insert.execute(params![
        number,
        report.carrier.0,
        report.event_id,
        exception.parcel.0,
        exception.from.number(),
        report.scan.state.number(),
        report.scan.at.0,
        report.scan.location,
        report.scan.description,
        report.code,
        exception.refused_at.0,
    ])?;
    Ok(())
}

/// The latest refused events on a tenant's parcels, newest first.
fn exceptions(
    db: &Connection,
    tenant: Tenant,
    most: u32,
) -> rusqlite::Result<Vec<LoggedException>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT c.name, p.number, e.tenant, e.carrier, e.event_id, e.parcel, e.from_state, e.state, \
         e.at, e.location, e.description, e.code, e.refused_at \
         FROM carrier_exceptions e JOIN carriers c ON c.id = e.carrier \
         JOIN parcels p ON p.id = e.parcel WHERE e.tenant = ",
        current!("?1"),
        " ORDER BY e.id DESC LIMIT ?2"
    ))?;
    find.query_map(params![tenant.number(), most], read_exception)?.collect()
}

fn read_exception(row: &Row<'_>) -> rusqlite::Result<LoggedException> {
    let number = row.get_ref(1)?.as_str()?;
    let scan = Scan {
        state: read_state(row, 7)?,
        at: Millis(row.get(8)?),
        location: row.get(9)?,
        description: row.get(10)?,
    };
    let report = CarrierReport {
        carrier: CarrierRowId(row.get(3)?),
        event_id: row.get(4)?,
        code: row.get(11)?,
        scan,
    };
    let exception = CarrierException {
        tenant: Tenant::from_number(row.get(2)?),
        parcel: ParcelRowId(row.get(5)?),
        from: read_state(row, 6)?,
        report,
        refused_at: Millis(row.get(12)?),
    };
    Ok(LoggedException {
        carrier_name: row.get(0)?,
        tracking_number: TrackingNumber::parse(number).map_err(|error| damaged(1, error))?,
        exception,
    })
}
