//! Endpoints in the database: setting them up, turning them on and off, replaying what they missed.

use std::collections::HashMap;

use parcelo::webhook::Secret;
use tokio_postgres::{Row, types::ToSql};
use ulid::Ulid;

use super::{
    Store,
    connection::{Connection, get},
    error::{DbResult, Failure},
    outbox::{self, HELD, MISSED, NewEvents, READY, Subject, Subscriptions, WAITING},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{DisabledBy, Endpoint, Kinds, OLD_SECRET, OLD_SECRETS, OutboxEvent},
    },
    store::{EventsToReplay, StoreError},
};

/// How many events one commit holds or replays: others wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

/// So many held events are counted at most.
const MAX_HELD_COUNTED: i64 = 100_000;

impl Store {
    pub(crate) async fn endpoint(&self, tenant: Tenant) -> Result<Option<Endpoint>, StoreError> {
        self.read(async move |db| find(db, tenant).await).await
    }

    pub(crate) async fn set_endpoint(&self, endpoint: Endpoint) -> Result<Endpoint, StoreError> {
        self.call(async move |db| set(db, &endpoint).await).await
    }

    pub(crate) async fn rotate_secret(
        &self,
        tenant: Tenant,
        secret: Secret,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.call(async move |db| rotate(db, tenant.number(), &secret, now).await).await
    }

    pub(crate) async fn enable_endpoint(&self, tenant: Tenant) -> Result<(), StoreError> {
        self.call(async move |db| {
            let sql = "UPDATE webhook_endpoints SET enabled = true, disabled_why = NULL \
                 WHERE tenant = $1";
            db.execute(sql, &[&tenant.number()]).await.map(drop)
        })
        .await
    }

    pub(crate) async fn disable_endpoint(
        &self,
        tenant: Tenant,
        by: DisabledBy,
    ) -> Result<(), StoreError> {
        self.call(async move |db| switch_off(db, tenant.number(), by).await).await?;
        self.hold(tenant).await
    }

    /// Holds what would have been sent to an endpoint that is off, at most 250 events a commit: nothing
    /// is sent to it meanwhile. It stops when the endpoint is turned on again.
    pub(super) async fn hold(&self, tenant: Tenant) -> Result<(), StoreError> {
        let tenant = tenant.number();
        while self.call(async move |db| hold(db, tenant).await).await?
            == MAX_EVENTS_PER_COMMIT as u64
        {}
        Ok(())
    }

    pub(crate) async fn hold_all(&self) -> Result<(), StoreError> {
        let off = self
            .read(async |db| {
                let sql = "SELECT tenant FROM webhook_endpoints WHERE NOT enabled";
                db.each(sql, &[], |row| get(row, 0).map(Tenant::from_number)).await
            })
            .await?;
        for tenant in off {
            self.hold(tenant).await?;
        }
        Ok(())
    }

    pub(crate) async fn switched_off(
        &self,
        tenant: Tenant,
    ) -> Result<Option<(DisabledBy, i64)>, StoreError> {
        self.read(async move |db| {
            // A page shows the number, and need not know more exactly how much "very many" is.
            let sql = "SELECT coalesce(disabled_why, ''), (SELECT count(*) FROM \
                 (SELECT FROM living_outbox WHERE tenant = $1 AND state = 4 LIMIT $2) AS held) \
                 FROM webhook_endpoints WHERE tenant = $1 AND NOT enabled";
            let given: [&(dyn ToSql + Sync); 2] = [&tenant.number(), &MAX_HELD_COUNTED];
            let Some(row) = db.first(sql, &given).await? else { return Ok(None) };
            Ok(Some((disabled_by(get(&row, 0)?), get(&row, 1)?)))
        })
        .await
    }

    pub(crate) async fn remove_endpoint(&self, tenant: Tenant) -> Result<(), StoreError> {
        self.disable_endpoint(tenant, DisabledBy::Operator).await?;
        self.call(async move |db| {
            take_back(db, tenant, None).await?;
            let tenant = tenant.number();
            let secrets = "DELETE FROM webhook_old_secrets WHERE tenant = $1";
            db.execute(secrets, &[&tenant]).await?;
            db.execute("DELETE FROM webhook_successes WHERE tenant = $1", &[&tenant]).await?;
            db.execute("DELETE FROM webhook_endpoints WHERE tenant = $1", &[&tenant])
                .await
                .map(drop)
        })
        .await?;
        // It may have been turned on between the two.
        self.hold(tenant).await
    }

    pub(crate) async fn enqueue(
        &self,
        tenant: Tenant,
        event: OutboxEvent,
    ) -> Result<(), StoreError> {
        self.call(async move |db| {
            let mut subscriptions = Subscriptions::default();
            subscriptions.load(db, vec![tenant]).await?;
            let Some(subscription) = subscriptions.of_tenant(tenant) else { return Ok(()) };
            let (what, now) = ((Subject::default(), event.clone()), event.at);
            let mut events = NewEvents::default();
            events.add((tenant, subscription), what, now);
            events.insert(db).await
        })
        .await?;
        self.notify_outbox();
        Ok(())
    }

    pub(crate) async fn has_event(&self, tenant: Tenant, event: Ulid) -> Result<bool, StoreError> {
        self.read(async move |db| {
            let sql = "SELECT EXISTS (SELECT 1 FROM living_outbox \
                 WHERE tenant = $1 AND event_id = $2)";
            db.value(sql, &[&tenant.number(), &event.to_bytes().as_slice()]).await
        })
        .await
    }

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

/// The tenant's endpoint.
pub(super) async fn find(db: &Connection, tenant: Tenant) -> DbResult<Option<Endpoint>> {
    let found = find_all(db, &[tenant.number()]).await?.pop();
    found.map(|(_, endpoint)| endpoint).transpose()
}

/// The endpoints of these tenants, those that cannot be read as failures.
pub(super) async fn find_all(
    db: &Connection,
    tenants: &[i64],
) -> DbResult<Vec<(i64, DbResult<Endpoint>)>> {
    let sql = "SELECT tenant, url, kinds, secret, disabled_why, created_at \
         FROM webhook_endpoints WHERE tenant = ANY($1)";
    let rows = db.all(sql, &[&tenants]).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut old = old_secrets(db, tenants).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let tenant: i64 = get(row, 0)?;
        found.push((tenant, read(row, old.remove(&tenant).unwrap_or_default())));
    }
    Ok(found)
}

fn read(row: &Row, old: Vec<(Secret, Millis)>) -> DbResult<Endpoint> {
    let why: Option<&str> = get(row, 4)?;
    let kinds = u8::try_from(get::<i16>(row, 2)?).map_err(Failure::row)?;
    Ok(Endpoint {
        tenant: Tenant::from_number(get(row, 0)?),
        url: get(row, 1)?,
        kinds: Kinds::from_number(kinds),
        secret: secret(row, 3)?,
        old,
        disabled: why.map(disabled_by),
        created_at: Millis(get(row, 5)?),
    })
}

/// The replaced secrets of these tenants that may still sign, the latest first.
async fn old_secrets(
    db: &Connection,
    tenants: &[i64],
) -> DbResult<HashMap<i64, Vec<(Secret, Millis)>>> {
    let sql = "SELECT tenant, secret, until FROM webhook_old_secrets WHERE tenant = ANY($1) \
         ORDER BY id DESC";
    let mut old = HashMap::<i64, Vec<_>>::new();
    for row in &db.all(sql, &[&tenants]).await? {
        match secret(row, 1) {
            Ok(secret) => {
                old.entry(get(row, 0)?).or_default().push((secret, Millis(get(row, 2)?)));
            }
            // One that cannot be read signs nothing; the others go on.
            Err(failure) if failure.is_row() => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(old)
}

/// Keeps the secrets that still sign, as many as may.
async fn rotate(db: &Connection, tenant: i64, secret: &Secret, now: Millis) -> DbResult<()> {
    db.execute(
        "INSERT INTO webhook_old_secrets (tenant, secret, until) \
         SELECT tenant, secret, $2 FROM webhook_endpoints WHERE tenant = $1 FOR UPDATE",
        &[&tenant, &now.plus(OLD_SECRET).0],
    )
    .await?;
    db.execute(
        "DELETE FROM webhook_old_secrets WHERE tenant = $1 AND (until <= $2 OR id NOT IN \
         (SELECT id FROM webhook_old_secrets WHERE tenant = $1 ORDER BY id DESC LIMIT $3))",
        &[&tenant, &now.0, &i64::from(OLD_SECRETS)],
    )
    .await?;
    let sql = "UPDATE webhook_endpoints SET secret = $2 WHERE tenant = $1";
    db.execute(sql, &[&tenant, &secret.as_bytes()]).await.map(drop)
}

async fn set(db: &Connection, endpoint: &Endpoint) -> DbResult<Endpoint> {
    let Endpoint { tenant, created_at: now, .. } = *endpoint;
    // Two servers that change it at once do so one after the other.
    let lock = "SELECT 1 FROM webhook_endpoints WHERE tenant = $1 FOR UPDATE";
    db.execute(lock, &[&tenant.number()]).await?;
    match find(db, tenant).await {
        Ok(before) if before.as_ref().is_some_and(|before| before.url != endpoint.url) => {
            take_back(db, tenant, Some(now)).await?;
        }
        Ok(_) => {}
        // One that cannot be read has no secret to keep: a new one takes its place.
        Err(failure) if failure.is_row() => {
            take_back(db, tenant, Some(now)).await?;
            let sql = "DELETE FROM webhook_endpoints WHERE tenant = $1";
            db.execute(sql, &[&tenant.number()]).await?;
        }
        Err(failure) => return Err(failure),
    }
    let sql = "INSERT INTO webhook_endpoints (tenant, url, kinds, secret, enabled, created_at) \
         VALUES ($1, $2, $3, $4, true, $5) ON CONFLICT (tenant) DO UPDATE \
         SET url = excluded.url, kinds = excluded.kinds, enabled = true, disabled_why = NULL";
    let given: [&(dyn ToSql + Sync); 5] = [
        &tenant.number(),
        &endpoint.url,
        &i16::from(endpoint.kinds.number()),
        &endpoint.secret.as_bytes(),
        &now.0,
    ];
    db.execute(sql, &given).await?;
    let set = find(db, tenant).await?;
    set.ok_or_else(|| Failure::row("the endpoint that was written is not there"))
}

/// Makes what is on its way to an endpoint count for nothing, since another takes its place; that
/// one is sent what is still to be sent when `due` says so.
async fn take_back(db: &Connection, tenant: Tenant, due: Option<Millis>) -> DbResult<()> {
    let lease = outbox::next_lease(db).await?;
    let sql = "UPDATE outbox SET leased = false, lease_until = NULL, lease = $3, \
         due = CASE WHEN state = 1 THEN $2 ELSE due END WHERE tenant = $1 AND leased";
    db.execute(sql, &[&tenant.number(), &due.map(|due| due.0), &lease]).await.map(drop)
}

/// Turns an endpoint off; says whether it was on. What is on its way stays leased: it may arrive yet.
pub(super) async fn switch_off(db: &Connection, tenant: i64, by: DisabledBy) -> DbResult<bool> {
    let was_on = "SELECT enabled FROM webhook_endpoints WHERE tenant = $1 FOR UPDATE";
    let was_on = db.first(was_on, &[&tenant]).await?.map(|row| get(&row, 0)).transpose()?;
    let sql = "UPDATE webhook_endpoints SET enabled = false, disabled_why = $2 WHERE tenant = $1";
    db.execute(sql, &[&tenant, &by.code()]).await?;
    Ok(was_on.unwrap_or(false))
}

/// Holds a page of what would have been sent to an endpoint that is off, and answers how many events.
async fn hold(db: &Connection, tenant: i64) -> DbResult<u64> {
    let sql = "UPDATE outbox SET state = $2, due = NULL WHERE id IN \
         (SELECT id FROM living_outbox WHERE tenant = $1 AND state IN (0, 1) \
         ORDER BY id LIMIT 250) AND state IN (0, 1) \
         AND NOT EXISTS (SELECT 1 FROM webhook_endpoints WHERE tenant = $1 AND enabled)";
    db.execute(sql, &[&tenant, &HELD]).await
}

/// The events that a page of a replay looked at, and how many of them are sent again.
#[derive(Default)]
struct Replayed {
    rows: Vec<i64>,
    replayed: u64,
}

/// Replays a page of the tenant's events behind the row `after`. Earlier rows
/// first, so that no event of a parcel overtakes another.
async fn replay(
    db: &Connection,
    (tenant, what, after): (Tenant, EventsToReplay, i64),
    now: Millis,
) -> DbResult<Replayed> {
    let mut subscriptions = Subscriptions::default();
    subscriptions.load(db, vec![tenant]).await?;
    // It may have been turned off since it was looked at.
    if !subscriptions.of_tenant(tenant).is_some_and(|subscription| subscription.enabled) {
        return Ok(Replayed::default());
    }
    let missed = missed(db, (tenant, what, after)).await?;
    // In the order of their ids, as writers of orders lock them.
    let mut parcels: Vec<i64> = missed.iter().filter_map(|(_, parcel)| *parcel).collect();
    parcels.sort_unstable();
    parcels.dedup();
    outbox::lock_parcels(db, &parcels).await?;
    let rows: Vec<i64> = missed.into_iter().map(|(row, _)| row).collect();
    let lease = outbox::next_lease(db).await?;
    // Another replay may have sent it again meanwhile.
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

/// In which states an event is that is sent again.
const fn states(what: EventsToReplay) -> &'static str {
    match what {
        EventsToReplay::One(_) => "state NOT IN (0, 1)",
        EventsToReplay::MissedSince(_) => MISSED,
    }
}

/// The events that are to be sent again, with their parcels.
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
        "SELECT id, parcel FROM living_outbox WHERE tenant = $1 AND id > $2 AND {states} AND {which} \
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

fn disabled_by(code: &str) -> DisabledBy {
    DisabledBy::from_code(code).unwrap_or(DisabledBy::Operator)
}

fn secret(row: &Row, column: usize) -> DbResult<Secret> {
    Secret::from_bytes(get(row, column)?).map_err(Failure::row)
}
