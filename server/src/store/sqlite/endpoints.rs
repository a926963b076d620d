//! Endpoints in the database: holding their events, and replaying missed events.

use rusqlite::{Connection, Row, ToSql, params};

use super::{
    Store, StoreError,
    outbox::{self, HELD, MISSED, READY, Subject, WAITING},
};
use crate::{
    clock::Millis,
    domain::{Tenant, webhooks::OutboxEvent},
    store::{EventsToReplay, generations::current},
};

/// Maximum number of events that one commit holds or replays, because other writes wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

impl Store {
    /// Holds the unsent events of an endpoint that is off, at most 250 in one commit. Nothing is sent to the endpoint
    /// while this runs. It stops when the endpoint is turned on again.
    pub(in crate::store) async fn hold(&self, tenant: Tenant) -> Result<(), StoreError> {
        while self.call(move |db| hold(db, tenant.number())).await? == MAX_EVENTS_PER_COMMIT {}
        Ok(())
    }

    /// Enqueues an event that no change caused (a test) for the tenant's endpoint.
    pub async fn enqueue(&self, tenant: Tenant, event: OutboxEvent) -> Result<(), StoreError> {
        let made = self.call(move |db| {
            let Some(subscription) = outbox::subscription(db, tenant)? else { return Ok(()) };
            outbox::enqueue(db, subscription, (Subject::default(), &event), event.at)
        });
        made.await?;
        self.notify_outbox();
        Ok(())
    }

    /// Sends events again, at most 250 in one commit, the earliest first, and returns their number. It stops when the
    /// endpoint is turned off.
    pub async fn replay(
        &self,
        tenant: Tenant,
        what: EventsToReplay,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let (mut after, mut replayed) = (0, 0);
        loop {
            let page = self.call(move |db| replay(db, (tenant, what, after), now)).await?;
            self.notify_outbox();
            replayed += page.len();
            match page.last() {
                Some(last) if page.len() == MAX_EVENTS_PER_COMMIT => after = *last,
                Some(_) | None => return Ok(replayed),
            }
        }
    }
}

/// Holds a page of the unsent events of an endpoint that is off, and returns their number.
fn hold(db: &Connection, tenant: i64) -> rusqlite::Result<usize> {
    let mut update = db.prepare_cached(concat!(
        "UPDATE outbox SET state = ?2, due = NULL WHERE id IN (SELECT id FROM outbox WHERE tenant = ",
        current!("?1"),
        " AND state < 2 ORDER BY created_at LIMIT 250) \
         AND NOT EXISTS (SELECT 1 FROM webhook_endpoints WHERE tenant = ?1 AND enabled = 1)"
    ))?;
    update.execute([tenant, HELD])
}

/// Replays a page of the tenant's events behind the row `after`, and returns the rows. Earlier rows come first, so that
/// no event of a parcel overtakes another.
fn replay(
    db: &Connection,
    (tenant, what, after): (Tenant, EventsToReplay, i64),
    now: Millis,
) -> rusqlite::Result<Vec<i64>> {
    // The endpoint may have been turned off since the check.
    if !outbox::subscription(db, tenant)?.is_some_and(|subscription| subscription.enabled) {
        return Ok(Vec::new());
    }
    let which = match what {
        EventsToReplay::One(_) => "state NOT IN (0, 1) AND event_id = ?3".to_owned(),
        EventsToReplay::MissedSince(_) => format!("{MISSED} AND created_at >= ?3"),
    };
    let sql = format!(
        concat!(
            "SELECT id, parcel FROM outbox WHERE tenant = ",
            current!("?1"),
            " AND id > ?2 AND {} ORDER BY id LIMIT 250"
        ),
        which
    );
    let given: Box<dyn ToSql> = match what {
        EventsToReplay::One(id) => Box::new(id.to_bytes()),
        EventsToReplay::MissedSince(moment) => Box::new(moment.0),
    };
    let mut find = db.prepare_cached(&sql)?;
    let both = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let missed = find.query_map(params![tenant.number(), after, given], both)?;
    let missed: Vec<(i64, Option<i64>)> = missed.collect::<Result<_, _>>()?;
    let lease = outbox::next_lease(db)?;
    let mut update = db.prepare_cached(
        "UPDATE outbox SET state = iif(parcel IS NULL, ?3, ?4), due = iif(parcel IS NULL, ?2, NULL), \
         leased = 0, lease = ?5, attempts = 0, first_attempt = NULL WHERE id = ?1",
    )?;
    for (row, parcel) in &missed {
        update.execute([*row, now.0, READY, WAITING, lease])?;
        if let Some(parcel) = parcel {
            outbox::release(db, *parcel, now)?;
        }
    }
    Ok(missed.into_iter().map(|(row, _)| row).collect())
}
