//! Carrier reports: the events that were accepted, and the events that were refused.

use parcelo_domain::{
    AcceptedCarrierEvent, CarrierException, CarrierReport, CarrierRowId, Scan, State, Tenant,
    carrier::LoggedCarrierException,
};
use parcelo_types::TrackingNumber;

use super::{
    Store, StoreError,
    generations::{current_generation, is_current},
    sql::{Row, Sql, SqlResult, params},
};

impl Store {
    /// Returns `true` if an event of a carrier was accepted before.
    pub async fn has_carrier_event(
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
            db.value(sql, params![carrier.0, &event_id]).await
        })
        .await
    }

    /// Returns the latest refused carrier events for a tenant's parcels, newest first.
    pub async fn carrier_exceptions(
        &self,
        tenant: Tenant,
        max: u32,
    ) -> Result<Vec<LoggedCarrierException>, StoreError> {
        self.long_query(Some(tenant), async move |db| {
            let sql = concat!(
                "SELECT c.name, p.number, e.tenant, e.carrier, e.event_id, e.parcel, e.from_state, e.state, \
                 e.at, e.location, e.description, e.code, e.refused_at \
                 FROM carrier_exceptions AS e JOIN carriers AS c ON c.id = e.carrier \
                 JOIN parcels AS p ON p.id = e.parcel WHERE e.tenant = ",
                current_generation!("$1"),
                " ORDER BY e.id DESC LIMIT $2"
            );
            db.query_map(sql, params![tenant.number(), max], read_exception).await
        })
        .await
    }
}

/// Marks an event as accepted. Returns `false` if it was accepted before and its parcel still exists.
pub(super) async fn record_accepted(db: Sql<'_>, event: &AcceptedCarrierEvent) -> SqlResult<bool> {
    let sql = concat!(
        "INSERT INTO carrier_events AS old (carrier, event_id, parcel, sequence, code) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT (carrier, event_id) DO UPDATE \
         SET parcel = excluded.parcel, sequence = excluded.sequence, code = excluded.code \
         WHERE NOT EXISTS (SELECT 1 FROM parcels WHERE id = old.parcel AND ",
        is_current!("tenant"),
        ")"
    );
    let AcceptedCarrierEvent { carrier, event_id, parcel, sequence, code } = event;
    let params = params![carrier.0, event_id, *parcel, *sequence, code.as_deref()];
    Ok(db.execute(sql, params).await? == 1)
}

/// Logs a refused event of a tenant's current generation. An event that is refused again becomes the latest.
pub(super) async fn log_exception(
    db: Sql<'_>,
    (tenant, exception): (i64, &CarrierException),
) -> SqlResult<()> {
    // Nothing is logged for a deleted parcel, because its deletion would have removed this row too.
    let sql = "INSERT {|OR REPLACE }INTO carrier_exceptions (tenant, carrier, event_id, parcel, \
         from_state, state, at, location, description, code, refused_at) \
         SELECT $1, $2, $3, id, $5, $6, $7, $8, $9, $10, $11 FROM parcels \
         WHERE id = $4 AND tenant = $1{ ON CONFLICT (carrier, event_id) DO UPDATE \
         SET id = DEFAULT, tenant = excluded.tenant, parcel = excluded.parcel, \
         from_state = excluded.from_state, state = excluded.state, at = excluded.at, \
         location = excluded.location, description = excluded.description, code = excluded.code, \
         refused_at = excluded.refused_at|}";
    let CarrierException { report, .. } = exception;
    let params = params![
        tenant,
        report.carrier.0,
        &report.event_id,
        exception.parcel,
        exception.from.number(),
        report.scan.state.number(),
        report.scan.at,
        &report.scan.location,
        report.scan.description.as_deref(),
        report.code.as_deref(),
        exception.refused_at
    ];
    db.execute(sql, params).await.map(drop)
}

fn read_exception(row: &Row<'_>) -> SqlResult<LoggedCarrierException> {
    let scan = Scan {
        state: row.parse_number(7, State::from_number)?,
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
        from: row.parse_number(6, State::from_number)?,
        report,
        refused_at: row.get(12)?,
    };
    Ok(LoggedCarrierException {
        carrier_name: row.get(0)?,
        tracking_number: row.parse(1, TrackingNumber::parse)?,
        exception,
    })
}
