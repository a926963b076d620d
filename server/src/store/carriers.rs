//! Reads of carrier reports: the events that were accepted, and the events that were refused.

use parcelo::TrackingNumber;

use super::{
    Store, StoreError,
    generations::{current, is_current},
    sql::{Row, SqlResult, given},
};
use crate::domain::{
    CarrierException, CarrierReport, CarrierRowId, Scan, State, Tenant, carrier::LoggedException,
};

impl Store {
    /// Returns `true` if an event of a carrier was accepted before.
    pub async fn has_seen(
        &self,
        carrier: CarrierRowId,
        event_id: &str,
    ) -> Result<bool, StoreError> {
        let event_id = event_id.to_owned();
        self.query(async move |db| {
            let sql = concat!(
                "SELECT EXISTS (SELECT 1 FROM carrier_events AS e JOIN parcels AS p ON p.id = e.parcel \
                 WHERE e.carrier = $1 AND e.event_id = $2 AND ",
                is_current!("p.tenant"),
                ")"
            );
            db.value(sql, given![carrier.0, &event_id]).await
        })
        .await
    }

    /// Returns the latest refused carrier events for a tenant's parcels, newest first.
    pub async fn carrier_exceptions(
        &self,
        tenant: Tenant,
        max: u32,
    ) -> Result<Vec<LoggedException>, StoreError> {
        self.long_query(Some(tenant), async move |db| {
            let sql = concat!(
                "SELECT c.name, p.number, e.tenant, e.carrier, e.event_id, e.parcel, e.from_state, e.state, \
                 e.at, e.location, e.description, e.code, e.refused_at \
                 FROM carrier_exceptions AS e JOIN carriers AS c ON c.id = e.carrier \
                 JOIN parcels AS p ON p.id = e.parcel WHERE e.tenant = ",
                current!("$1"),
                " ORDER BY e.id DESC LIMIT $2"
            );
            db.each(sql, given![tenant.number(), max], read).await
        })
        .await
    }
}

fn read(row: &Row<'_>) -> SqlResult<LoggedException> {
    let scan = Scan {
        state: row.numbered(7, State::from_number)?,
        at: row.get(8)?,
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
        parcel: row.get(5)?,
        from: row.numbered(6, State::from_number)?,
        report,
        refused_at: row.get(12)?,
    };
    Ok(LoggedException {
        carrier_name: row.get(0)?,
        tracking_number: row.parse(1, TrackingNumber::parse)?,
        exception,
    })
}
