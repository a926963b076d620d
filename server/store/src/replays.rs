//! Replays: sending one event again, or all events that an endpoint missed. A pending event that waits for its next
//! attempt is replayed too, so that an endpoint that was mended need not wait for it.

use parcelo_domain::{Millis, Tenant};

use super::{
    EventsToReplay, Store, StoreError,
    generations::current_generation,
    outbox,
    row_sets::column,
    sql::{Row, Sql, SqlResult, params},
    values::Value,
};

/// Maximum number of events that one commit replays, because other writes wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

/// Condition for pending events that wait for their next attempt, at the time `$2`. A leased event is being sent, and
/// one that is due is sent next. One that waits for an earlier event of its parcel is sent after it.
const PAUSED: &str = "(state = 1 AND NOT leased AND due > $2)";

impl Store {
    /// Sends events again, the earliest first and at most 250 in a commit, and returns their number. It stops when the
    /// endpoint is turned off.
    pub async fn replay(
        &self,
        tenant: Tenant,
        selection: EventsToReplay,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let (mut after, mut replayed) = (0, 0);
        loop {
            let page = async move |db: Sql<'_>| replay(db, (tenant, selection, after), now).await;
            let page = self.write(page).await?;
            self.notify_outbox();
            replayed += page.1;
            match page.0.last() {
                Some(last) if page.0.len() == MAX_EVENTS_PER_COMMIT => after = *last,
                Some(_) | None => return Ok(usize::try_from(replayed).unwrap_or(usize::MAX)),
            }
        }
    }
}

/// Replays a page of the tenant's events after the row `after`. Earlier rows come first, so that no event of a parcel
/// overtakes an earlier one. Returns the events that were checked, and the number of events that are sent again.
async fn replay(
    db: Sql<'_>,
    (tenant, selection, after): (Tenant, EventsToReplay, i64),
    now: Millis,
) -> SqlResult<(Vec<i64>, u64)> {
    // The endpoint may have been turned off since the check.
    let subscription = outbox::subscriptions(db, &[tenant.number()], "SHARE").await?;
    if !subscription.first().is_some_and(|(_, subscription)| subscription.enabled) {
        return Ok((Vec::new(), 0));
    }
    // The conditions are written exactly as in the partial index `outbox_missed`, or it would not be used.
    let (condition, settled, value) = match selection {
        EventsToReplay::One(id) => ("event_id = $4", "state > 1", id.to_bytes().into()),
        EventsToReplay::MissedSince(moment) => {
            ("created_at >= $4", "state > 2", Value::from(moment))
        }
    };
    // With `+`, SQLite finds paused events by their due time, instead of reading the whole log by its ids.
    let page = |states: &str, id: &str| {
        format!(
            concat!(
                "(SELECT id, parcel FROM outbox WHERE tenant = ",
                current_generation!("$1"),
                " AND {} > $3 AND {} AND {} ORDER BY {} LIMIT 250)"
            ),
            id, states, condition, id
        )
    };
    let sql = format!(
        "SELECT * FROM {} AS settled UNION ALL SELECT * FROM {} AS paused ORDER BY id LIMIT 250",
        page(settled, "id"),
        page(PAUSED, "{|+}id")
    );
    let both = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.get::<Option<i64>>(1)?));
    let found = db.query_map(&sql, params![tenant.number(), now, after, value], both).await?;
    let (rows, parcels): (Vec<i64>, Vec<Option<i64>>) = found.into_iter().unzip();
    // Sorted by id, the order in which writers of orders lock parcels.
    let mut parcels: Vec<i64> = parcels.into_iter().flatten().collect();
    parcels.sort_unstable();
    parcels.dedup();
    outbox::lock_parcels(db, &parcels).await?;
    let lease = outbox::next_lease(db).await?;
    // Another replay may have sent the event again in between, or a server may have leased it.
    let sql = format!(
        "UPDATE outbox SET state = CASE WHEN parcel IS NULL THEN 1 ELSE 0 END, \
         due = CASE WHEN parcel IS NULL THEN $2{{::bigint|}} END, leased = FALSE, \
         {{lease_until = NULL, |}}lease = $3, attempts = 0, first_attempt = NULL \
         WHERE id {{= ANY($1)|= $1}} AND ({settled} OR {PAUSED})"
    );
    let replayed = db.execute_rows(&sql, &column(&rows), params![now, lease]).await?;
    let parcels: Vec<_> = parcels.into_iter().map(|parcel| (parcel, now)).collect();
    outbox::release(db, &parcels).await?;
    Ok((rows, replayed))
}
