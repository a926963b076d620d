//! Writes of carrier reports: the accepted events and the refused events.

use rusqlite::{Connection, params};

use crate::{
    domain::{AcceptedCarrierEvent, CarrierException},
    store::generations::is_current,
};

/// Marks an event as accepted. Returns `false` if it was accepted before and its parcel still exists.
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

/// Logs a refused event in the generation with this number, in place of an earlier refusal of the same event.
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
