//! Replays: sending one event again, or all events that an endpoint missed.

use tokio_postgres::Row;

use super::{
    Store,
    connection::{Connection, get},
    error::DbResult,
    generations::CURRENT,
    outbox::{self, MISSED, READY, Subscriptions, WAITING},
};
use crate::{
    clock::Millis,
    domain::Tenant,
    store::{EventsToReplay, StoreError},
};

/// Maximum number of events that one commit replays, because other writes wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

impl Store {
    pub(crate) async fn replay(
        &self,
        tenant: Tenant,
        what: EventsToReplay,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let (mut after, mut replayed) = (0, 0);
        loop {
            let page =
                self.call(async move |db| replay(db, (tenant, what, after), now).await).await?;
            self.notify_outbox();
            replayed += page.replayed;
            match page.rows.last() {
                Some(last) if page.rows.len() == MAX_EVENTS_PER_COMMIT => after = *last,
                Some(_) | None => return Ok(usize::try_from(replayed).unwrap_or(usize::MAX)),
            }
        }
    }
}

/// The events that a page of a replay checked, and the number of events that are sent again.
#[derive(Default)]
struct Replayed {
    rows: Vec<i64>,
    replayed: u64,
}

/// Replays a page of the tenant's events after the row `after`. Earlier rows come first, so that no event of a parcel
/// overtakes an earlier one.
async fn replay(
    db: &Connection,
    (tenant, what, after): (Tenant, EventsToReplay, i64),
    now: Millis,
) -> DbResult<Replayed> {
    let mut subscriptions = Subscriptions::default();
    subscriptions.load(db, vec![tenant]).await?;
    // The endpoint may have been turned off since the check.
    if !subscriptions.of_tenant(tenant).is_some_and(|subscription| subscription.enabled) {
        return Ok(Replayed::default());
    }
    let missed = missed(db, (tenant, what, after)).await?;
    // Sorted by id, the order in which writers of orders lock parcels.
    let mut parcels: Vec<i64> = missed.iter().filter_map(|(_, parcel)| *parcel).collect();
    parcels.sort_unstable();
    parcels.dedup();
    outbox::lock_parcels(db, &parcels).await?;
    let rows: Vec<i64> = missed.into_iter().map(|(row, _)| row).collect();
    let lease = outbox::next_lease(db).await?;
    // Another replay may have sent the event again in between.
    let sql = format!(
        "UPDATE outbox SET state = CASE WHEN parcel IS NULL THEN $3::smallint ELSE $4 END, \
         due = CASE WHEN parcel IS NULL THEN $2::bigint END, leased = false, lease_until = NULL, \
         lease = $5, attempts = 0, first_attempt = NULL WHERE id = ANY($1) AND {}",
        states(what)
    );
    let replayed = db.execute(&sql, &[&rows, &now.0, &READY, &WAITING, &lease]).await?;
    let parcels: Vec<_> = parcels.into_iter().map(|parcel| (parcel, now)).collect();
    outbox::release(db, &parcels).await?;
    Ok(Replayed { rows, replayed })
}

/// Returns the condition on the states of events that are sent again.
const fn states(what: EventsToReplay) -> &'static str {
    match what {
        EventsToReplay::One(_) => "state NOT IN (0, 1)",
        EventsToReplay::MissedSince(_) => MISSED,
    }
}

/// Returns the events to send again, with their parcels.
async fn missed(
    db: &Connection,
    (tenant, what, after): (Tenant, EventsToReplay, i64),
) -> DbResult<Vec<(i64, Option<i64>)>> {
    let which = match what {
        EventsToReplay::One(_) => "event_id = $3",
        EventsToReplay::MissedSince(_) => "created_at >= $3",
    };
    let states = states(what);
    let sql = format!(
        "SELECT id, parcel FROM outbox WHERE tenant = {CURRENT} AND id > $2 AND {states} AND {which} \
         ORDER BY id LIMIT 250"
    );
    let both = |row: &Row| Ok((get(row, 0)?, get(row, 1)?));
    match what {
        EventsToReplay::One(id) => {
            db.each(&sql, &[&tenant.number(), &after, &id.to_bytes().as_slice()], both).await
        }
        EventsToReplay::MissedSince(moment) => {
            db.each(&sql, &[&tenant.number(), &after, &moment.0], both).await
        }
    }
}
