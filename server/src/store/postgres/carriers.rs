//! What carriers reported, in the database: the events they sent, and those that were refused.

use parcelo::TrackingNumber;
use tokio_postgres::{Row, types::ToSql};

use super::{
    Store,
    connection::{Connection, get},
    error::{DbResult, Failure},
    generations::{CURRENT, IS_CURRENT},
    parcels::read_state,
};
use crate::{
    clock::Millis,
    domain::{
        AcceptedCarrierEvent, CarrierException, CarrierReport, CarrierRowId, ParcelRowId, Scan,
        Tenant, carrier::LoggedException,
    },
    store::StoreError,
};

impl Store {
    pub(crate) async fn has_seen(
        &self,
        carrier: CarrierRowId,
        event_id: &str,
    ) -> Result<bool, StoreError> {
        let event_id = event_id.to_owned();
        self.read(async move |db| {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM carrier_events JOIN parcels ON id = parcel \
                 WHERE carrier = $1 AND event_id = $2 AND {IS_CURRENT})"
            );
            db.value(&sql, &[&carrier.0, &event_id]).await
        })
        .await
    }

    pub(crate) async fn carrier_exceptions(
        &self,
        tenant: Tenant,
        most: u32,
    ) -> Result<Vec<LoggedException>, StoreError> {
        self.scan(Some(tenant), async move |db| {
            let sql = format!(
                "SELECT c.name, p.number, e.tenant, e.carrier, e.event_id, e.parcel, \
                 e.from_state, e.state, e.at, e.location, e.description, e.code, e.refused_at \
                 FROM carrier_exceptions AS e JOIN carriers AS c ON c.id = e.carrier \
                 JOIN parcels AS p ON p.id = e.parcel \
                 WHERE e.tenant = {CURRENT} ORDER BY e.id DESC LIMIT $2"
            );
            db.each(&sql, &[&tenant.number(), &i64::from(most)], read_exception).await
        })
        .await
    }
}

/// Marks an event as taken; false when it was taken before, and its parcel is still there.
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

/// Logs a refused event of a tenant's present generation; one that is refused again becomes the latest.
pub(super) async fn log(
    db: &Connection,
    (tenant, exception): (i64, &CarrierException),
) -> DbResult<()> {
    // Not of a parcel that is gone, with which it would have been deleted.
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

fn read_exception(row: &Row) -> DbResult<LoggedException> {
    let scan = Scan {
        state: read_state(row, 7)?,
        at: Millis(get(row, 8)?),
        location: get(row, 9)?,
        description: get(row, 10)?,
    };
    let report = CarrierReport {
        carrier: CarrierRowId(get(row, 3)?),
        event_id: get(row, 4)?,
        code: get(row, 11)?,
        scan,
    };
    let exception = CarrierException {
        tenant: Tenant::from_number(get(row, 2)?),
        parcel: ParcelRowId(get(row, 5)?),
        from: read_state(row, 6)?,
        report,
        refused_at: Millis(get(row, 12)?),
    };
    Ok(LoggedException {
        carrier_name: get(row, 0)?,
        tracking_number: TrackingNumber::parse(get(row, 1)?).map_err(Failure::row)?,
        exception,
    })
}
