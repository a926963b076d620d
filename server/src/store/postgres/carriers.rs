//! Writes of carrier reports: the events that were accepted, and the events that were refused.

use tokio_postgres::types::ToSql;

use super::{connection::Connection, error::DbResult, generations::IS_CURRENT};
use crate::domain::{AcceptedCarrierEvent, CarrierException};

/// Marks an event as accepted. Returns `false` if it was accepted before and its parcel still exists.
pub(super) async fn see(db: &Connection, event: &AcceptedCarrierEvent) -> DbResult<bool> {
    let sql = format!(
        "INSERT INTO carrier_events AS old (carrier, event_id, parcel, sequence, code) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (carrier, event_id) DO UPDATE \
         SET parcel = excluded.parcel, sequence = excluded.sequence, code = excluded.code \
         WHERE NOT EXISTS (SELECT 1 FROM parcels WHERE id = old.parcel AND {IS_CURRENT})"
    );
    let given: [&(dyn ToSql + Sync); 5] = [
        &event.carrier.0,
        &event.event_id,
        &event.parcel.0,
        &i64::from(event.sequence),
        &event.code,
    ];
    Ok(db.execute(&sql, &given).await? == 1)
}

/// Logs a refused event of a tenant's present generation. An event that is refused again becomes the latest.
pub(super) async fn log(
    db: &Connection,
    (tenant, exception): (i64, &CarrierException),
) -> DbResult<()> {
    // Nothing is logged for a deleted parcel, because its deletion would have removed this row too.
    let sql = "INSERT INTO carrier_exceptions (tenant, carrier, event_id, parcel, from_state, \
         state, at, location, description, code, refused_at) \
         SELECT $1, $2, $3, id, $5, $6, $7, $8, $9, $10, $11 FROM parcels WHERE id = $4 AND tenant = $1 \
         ON CONFLICT (carrier, event_id) DO UPDATE SET id = DEFAULT, tenant = excluded.tenant, \
         parcel = excluded.parcel, from_state = excluded.from_state, state = excluded.state, \
         at = excluded.at, location = excluded.location, description = excluded.description, \
         code = excluded.code, refused_at = excluded.refused_at";
    let CarrierException { report, .. } = exception;
    let given: [&(dyn ToSql + Sync); 11] = [
        &tenant,
        &report.carrier.0,
        &report.event_id,
        &exception.parcel.0,
        &i16::from(exception.from.number()),
        &i16::from(report.scan.state.number()),
        &report.scan.at.0,
        &report.scan.location,
        &report.scan.description,
        &report.code,
        &exception.refused_at.0,
    ];
    db.execute(sql, &given).await.map(drop)
}
