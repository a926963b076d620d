//! Endpoints in the database: setting them up, turning them on and off.

use std::collections::HashMap;

use parcelo::webhook::Secret;
use tokio_postgres::{Row, types::ToSql};

use super::{
    Store,
    connection::{Connection, get},
    error::{DbResult, Failure},
    generations::{CURRENT, Generations},
    outbox::{HELD, NewEvents, Subject, Subscriptions},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        audit::{Actor, AuditAction, AuditedChange, Author},
        webhooks::{DisabledBy, Endpoint, Kinds, OutboxEvent},
    },
    store::{StoreError, audit_entry},
};

/// Maximum number of events that one commit holds, with those that wait behind them: others wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

/// So many held events are counted at most.
const MAX_HELD_COUNTED: i64 = 100_000;

impl Store {
    /// Holds what would have been sent to an endpoint that is off, at most 250 events a commit: nothing
    /// is sent to it meanwhile. It stops when the endpoint is turned on again.
    pub(in crate::store) async fn hold(&self, tenant: Tenant) -> Result<(), StoreError> {
        let tenant = tenant.number();
        while self.call(async move |db| hold(db, tenant).await).await?
            >= MAX_EVENTS_PER_COMMIT as u64
        {}
        Ok(())
    }

    pub(crate) async fn switched_off(
        &self,
        tenant: Tenant,
    ) -> Result<Option<(DisabledBy, i64)>, StoreError> {
        self.read(async move |db| {
            // A page shows the number, and need not know more exactly how much "very many" is.
            let sql = format!(
                "SELECT coalesce(disabled_why, ''), (SELECT count(*) FROM \
                 (SELECT FROM outbox WHERE tenant = {CURRENT} AND state = 4 LIMIT $2) AS held) \
                 FROM webhook_endpoints WHERE tenant = $1 AND NOT enabled"
            );
            let given: [&(dyn ToSql + Sync); 2] = [&tenant.number(), &MAX_HELD_COUNTED];
            let Some(row) = db.first(&sql, &given).await? else { return Ok(None) };
            Ok(Some((disabled_by(get(&row, 0)?), get(&row, 1)?)))
        })
        .await
    }

    pub(crate) async fn enqueue(
        &self,
        tenant: Tenant,
        event: OutboxEvent,
    ) -> Result<(), StoreError> {
        self.call(async move |db| {
            let generations = Generations::hold(db, [tenant], &[]).await?;
            let mut subscriptions = Subscriptions::default();
            subscriptions.load(db, vec![tenant]).await?;
            let Some(subscription) = subscriptions.of_tenant(tenant) else { return Ok(()) };
            let (what, now) = ((Subject::default(), event.clone()), event.at);
            let mut events = NewEvents::default();
            events.add((generations.number(tenant), subscription), what, now);
            events.insert(db).await
        })
        .await?;
        self.notify_outbox();
        Ok(())
    }
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

/// Turns an endpoint off by the server itself, which the audit log says.
pub(super) async fn give_up(
    db: &Connection,
    tenant: Tenant,
    why: DisabledBy,
    now: Millis,
) -> DbResult<bool> {
    let was_on = switch_off(db, tenant.number(), why).await?;
    if was_on {
        let change = AuditedChange::of_webhook(tenant, AuditAction::WebhookDisabled);
        record(db, &Actor::Server.at(now), &change).await?;
    }
    Ok(was_on)
}

/// Turns an endpoint off; says whether it was on. What is on its way stays leased: it may arrive yet.
async fn switch_off(db: &Connection, tenant: i64, by: DisabledBy) -> DbResult<bool> {
    let was_on = "SELECT enabled FROM webhook_endpoints WHERE tenant = $1 FOR UPDATE";
    let was_on = db.first(was_on, &[&tenant]).await?.map(|row| get(&row, 0)).transpose()?;
    let sql = "UPDATE webhook_endpoints SET enabled = false, disabled_why = $2 WHERE tenant = $1";
    db.execute(sql, &[&tenant, &by.code()]).await?;
    Ok(was_on.unwrap_or(false))
}

/// Holds a page of what would have been sent to an endpoint that is off, and answers how many events. What waits behind an
/// event of the page is held with it: should the endpoint be on again before the next page, nothing would release it.
pub(super) async fn hold(db: &Connection, tenant: i64) -> DbResult<u64> {
    let sql = format!(
        "WITH page AS (SELECT id, parcel FROM outbox \
         WHERE tenant = {CURRENT} AND state IN (0, 1) ORDER BY id LIMIT 250) \
         UPDATE outbox SET state = $2, due = NULL WHERE id IN (SELECT id FROM page UNION \
         SELECT o.id FROM page JOIN outbox AS o ON o.parcel = page.parcel AND o.state = 0) \
         AND state IN (0, 1) \
         AND NOT EXISTS (SELECT 1 FROM webhook_endpoints WHERE tenant = $1 AND enabled)"
    );
    db.execute(&sql, &[&tenant, &HELD]).await
}

/// Writes a change into the audit log, in the transaction that makes it.
async fn record(db: &Connection, by: &Author, change: &AuditedChange) -> DbResult<()> {
    let values = audit_entry::values(by, change);
    let given: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
    db.execute(audit_entry::INSERT, &given).await.map(drop)
}

fn disabled_by(code: &str) -> DisabledBy {
    DisabledBy::from_code(code).unwrap_or(DisabledBy::Operator)
}

fn secret(row: &Row, column: usize) -> DbResult<Secret> {
    Secret::from_bytes(get(row, column)?).map_err(Failure::row)
}
