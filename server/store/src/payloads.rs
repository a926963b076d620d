//! Events of the outbox as they are sent: leased events, and their payloads.

use parcelo_domain::{
    ParcelRowId, State, Tenant, history,
    webhooks::{DeliveryAttempt, DeliveryLease, EventPayload, EventSubject, WebhookEventKind},
};
use ulid::Ulid;

use super::{
    Store, StoreError,
    generations::current_generation,
    manifests,
    parcels::{self, select_parcels},
    sql::{Row, Sql, SqlResult, params},
};

/// The columns that [`read_lease`] reads.
macro_rules! lease_columns {
    () => {
        "event_id, kind, parcel, manifest, sequence, previous, happened_at, attempts, trace"
    };
}
pub(super) use lease_columns;

impl Store {
    /// Returns the payload of a leased event, or `None` if its parcel or manifest is deleted.
    pub async fn payload(&self, lease: &DeliveryLease) -> Result<Option<EventPayload>, StoreError> {
        let lease = lease.clone();
        self.query(async move |db| build_payload(db, &lease).await).await
    }

    /// Returns the payload of an event of the tenant, leased or not, or `None` if it, its parcel or manifest is gone.
    pub async fn logged_payload(
        &self,
        tenant: Tenant,
        event: Ulid,
    ) -> Result<Option<EventPayload>, StoreError> {
        self.query(async move |db| {
            let sql = concat!(
                "SELECT ",
                lease_columns!(),
                " FROM outbox WHERE tenant = ",
                current_generation!("$1"),
                " AND event_id = $2"
            );
            let params = params![tenant.number(), event.to_bytes()];
            match db.first(sql, params, |row| read_lease(row, tenant, 0)).await? {
                Some(event) => build_payload(db, &event).await,
                None => Ok(None),
            }
        })
        .await
    }
}

/// Reads an event from the columns of `lease_columns!`, under the lease with this number. The caller knows the URL.
pub(super) fn read_lease(row: &Row<'_>, tenant: Tenant, number: i64) -> SqlResult<DeliveryLease> {
    let previous = row.get::<Option<u8>>(5)?;
    let attempt = row.get::<u32>(7)?.saturating_add(1);
    Ok(DeliveryLease {
        tenant,
        url: String::new(),
        attempt: DeliveryAttempt {
            environment: tenant.environment,
            event: Ulid::from_bytes(row.get(0)?),
            number: attempt,
        },
        kind: row.parse_number(1, WebhookEventKind::from_number)?,
        at: row.get(6)?,
        parcel: row.get(2)?,
        manifest: row.get(3)?,
        sequence: row.get(4)?,
        previous: previous.map(|_| row.parse_number(5, State::from_number)).transpose()?,
        trace: row.get(8)?,
        number,
    })
}

async fn build_payload(db: Sql<'_>, lease: &DeliveryLease) -> SqlResult<Option<EventPayload>> {
    let DeliveryAttempt { environment, event, .. } = lease.attempt;
    let subject = match (lease.parcel, lease.manifest) {
        (Some(parcel), _) => parcel_subject(db, parcel, lease).await?,
        (None, Some(manifest)) => {
            let found = manifests::find_for_event(db, (lease.tenant, manifest), event).await?;
            found.map(|manifest| EventSubject::Manifest(Box::new(manifest)))
        }
        (None, None) => Some(EventSubject::Test),
    };
    Ok(subject.map(|subject| EventPayload {
        event,
        environment,
        kind: lease.kind,
        at: lease.at,
        subject,
    }))
}

async fn parcel_subject(
    db: Sql<'_>,
    parcel: ParcelRowId,
    lease: &DeliveryLease,
) -> SqlResult<Option<EventSubject>> {
    let sql = select_parcels!(
        ", external_order_id",
        "WHERE parcels.id = $1 AND tenant = ",
        current_generation!("$2")
    );
    let both = |row: &Row<'_>| Ok((parcels::read(row)?, row.get(parcels::FIRST_EXTRA_COLUMN)?));
    let found = db.first(sql, params![parcel, lease.tenant.number()], both).await?;
    let Some((parcel, external_order_id)) = found else { return Ok(None) };
    let events = parcels::events(db, &parcel).await?;
    let event = events.into_iter().find(|event| Some(event.sequence) == lease.sequence);
    let [ordered, _] = history::first_events(&parcel);
    let previous = lease.previous.unwrap_or(ordered.state);
    let parcel = Box::new(parcel);
    Ok(event.map(|event| EventSubject::Parcel { parcel, previous, event, external_order_id }))
}
