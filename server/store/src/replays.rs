//! Replays: sending one event again, or all events that an endpoint missed. A pending event that waits for its next
//! attempt is replayed too, so that an endpoint that was mended need not wait for it.

use parcelo_domain::{Millis, Tenant};

use super::{
    EventsToReplay, Store, StoreError,
    generations::current_generation,
    outbox,
    row_sets::column,
    sql::{Sql, SqlResult, params},
    values::Value,
};

/// Maximum number of events that one commit replays, because other writes wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

/// Condition for pending events that wait for their next attempt, at the time `$2`. A leased event is being sent, and
/// one that is due is sent next. One that waits for an earlier event of its parcel is sent after it.
const PAUSED: &str = "(state = 1 AND NOT leased AND due > $2)";

/// An event's row, and that of its parcel if it has one.
type EventRow = (i64, Option<i64>);

impl Store {
    /// Sends events again, the earliest first and at most 250 in a commit, and returns their number. It stops when the
    /// endpoint is turned off.
    pub async fn replay(
        &self,
        tenant: Tenant,
        selection: EventsToReplay,
        now: Millis,
    ) -> Result<usize, StoreError> {
        // No index has paused events by their ids. They are read once and for all pages, while writes go on.
        let read = async move |db: Sql<'_>| paused_events(db, (tenant, selection), now).await;
        let paused = self.long_query(Some(tenant), read).await?;
        let (mut after, mut replayed) = (0, 0);
        loop {
            let start = paused.partition_point(|(id, _)| *id <= after);
            let next = paused.iter().skip(start).take(MAX_EVENTS_PER_COMMIT);
            let next: Vec<_> = next.copied().collect();
            let page =
                async move |db: Sql<'_>| replay(db, (tenant, selection, after), &next, now).await;
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

/// Returns a selection's condition with its value, which is `$3`, and the condition for settled events. The latter is
/// written exactly as in the partial index `outbox_missed`, or it would not be used.
fn conditions(selection: EventsToReplay) -> (&'static str, Value, &'static str) {
    match selection {
        EventsToReplay::One(id) => ("event_id = $3", id.to_bytes().into(), "state > 1"),
        EventsToReplay::MissedSince(moment) => ("created_at >= $3", moment.into(), "state > 2"),
    }
}

/// Returns the events of a tenant (`$1`) that meet a condition.
async fn events(db: Sql<'_>, condition: &str, params: &[Value]) -> SqlResult<Vec<EventRow>> {
    let sql = concat!(
        "SELECT id, parcel FROM outbox WHERE tenant = ",
        current_generation!("$1"),
        " AND "
    );
    let sql = format!("{sql}{condition}");
    db.query_map(&sql, params, |row| Ok((row.get(0)?, row.get(1)?))).await
}

/// Returns the selected events that wait for their next attempt, in the order of their rows.
async fn paused_events(
    db: Sql<'_>,
    (tenant, selection): (Tenant, EventsToReplay),
    now: Millis,
) -> SqlResult<Vec<EventRow>> {
    let (selected, value, _) = conditions(selection);
    let params = params![tenant.number(), now, value];
    let mut paused = events(db, &format!("{PAUSED} AND {selected}"), params).await?;
    paused.sort_unstable();
    Ok(paused)
}

/// Replays a page of the tenant's events after the row `after`, of which `paused` are the first that wait for their next
/// attempt. Earlier rows come first, so that no event of a parcel overtakes an earlier one. Returns the events that were
/// checked, and the number of events that are sent again.
async fn replay(
    db: Sql<'_>,
    (tenant, selection, after): (Tenant, EventsToReplay, i64),
    paused: &[EventRow],
    now: Millis,
) -> SqlResult<(Vec<i64>, u64)> {
    // The endpoint may have been turned off since the check.
    let subscription = outbox::subscriptions(db, &[tenant.number()], "SHARE").await?;
    if !subscription.first().is_some_and(|(_, subscription)| subscription.enabled) {
        return Ok((Vec::new(), 0));
    }
    let (selected, value, settled) = conditions(selection);
    let condition = format!("id > $2 AND {settled} AND {selected} ORDER BY id LIMIT 250");
    let mut found = events(db, &condition, params![tenant.number(), after, value]).await?;
    found.extend_from_slice(paused);
    found.sort_unstable();
    // A paused event may have been settled since it was read.
    found.dedup();
    found.truncate(MAX_EVENTS_PER_COMMIT);
    let (rows, parcels): (Vec<i64>, Vec<Option<i64>>) = found.into_iter().unzip();
    // Sorted by id, the order in which writers of orders lock parcels.
    let mut parcels: Vec<i64> = parcels.into_iter().flatten().collect();
    parcels.sort_unstable();
    parcels.dedup();
    outbox::lock_parcels(db, &parcels).await?;
    let lease = outbox::next_lease(db).await?;
    // Another replay may have sent the event again in between, a server may have leased it, or a reset may have ended its
    // generation.
    let sql = format!(
        concat!(
            "UPDATE outbox SET state = CASE WHEN parcel IS NULL THEN 1 ELSE 0 END, ",
            "due = CASE WHEN parcel IS NULL THEN $2{{::bigint|}} END, leased = FALSE, ",
            "{{lease_until = NULL, |}}lease = $3, attempts = 0, first_attempt = NULL ",
            "WHERE id {{= ANY($1)|= $1}} AND tenant = ",
            current_generation!("$4"),
            " AND ({} OR {})"
        ),
        settled, PAUSED
    );
    let params = params![now, lease, tenant.number()];
    let replayed = db.execute_rows(&sql, &column(&rows), params).await?;
    let parcels: Vec<_> = parcels.into_iter().map(|parcel| (parcel, now)).collect();
    outbox::release(db, &parcels).await?;
    Ok((rows, replayed))
}
