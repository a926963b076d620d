//! Endpoints in the database: setting them up, turning them on and off.

use std::collections::HashMap;

use parcelo::webhook::Secret;
use tokio_postgres::{Row, types::ToSql};
use ulid::Ulid;

use super::{
    Store,
    connection::{Connection, get},
    error::{DbResult, Failure},
    generations::{CURRENT, Generations},
    outbox::{self, HELD, NewEvents, Subject, Subscriptions},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        audit::{Actor, AuditAction, AuditedChange, Author},
        webhooks::{DisabledBy, Endpoint, Kinds, OLD_SECRET, OLD_SECRETS, OutboxEvent},
    },
    store::{StoreError, audit_entry},
};

/// Maximum number of events that one commit holds, with those that wait behind them: others wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

/// So many held events are counted at most.
const MAX_HELD_COUNTED: i64 = 100_000;

impl Store {
    pub(crate) async fn endpoint(&self, tenant: Tenant) -> Result<Option<Endpoint>, StoreError> {
        self.read(async move |db| find(db, tenant).await).await
    }

    pub(crate) async fn set_endpoint(
        &self,
        endpoint: Endpoint,
        by: &Author,
    ) -> Result<Endpoint, StoreError> {
        let by = by.clone();
        self.call(async move |db| {
            let set = set(db, &endpoint).await?;
            let change = AuditedChange::of_webhook(endpoint.tenant, AuditAction::WebhookSet);
            record(db, &by, &change).await?;
            Ok(set)
        })
        .await
    }

    pub(crate) async fn rotate_secret(
        &self,
        tenant: Tenant,
        secret: Secret,
        now: Millis,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.call(async move |db| {
            if rotate(db, tenant.number(), &secret, now).await? == 0 {
                return Ok(());
            }
            let change = AuditedChange::of_webhook(tenant, AuditAction::WebhookSecretRotated);
            record(db, &by, &change).await
        })
        .await
    }

    pub(crate) async fn enable_endpoint(
        &self,
        tenant: Tenant,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.call(async move |db| {
            let sql = "UPDATE webhook_endpoints SET enabled = true, disabled_why = NULL \
                 WHERE tenant = $1 AND NOT enabled";
            if db.execute(sql, &[&tenant.number()]).await? == 0 {
                return Ok(());
            }
            let change = AuditedChange::of_webhook(tenant, AuditAction::WebhookEnabled);
            record(db, &by, &change).await
        })
        .await
    }

    pub(crate) async fn disable_endpoint(
        &self,
        tenant: Tenant,
        why: DisabledBy,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.call(async move |db| {
            if !switch_off(db, tenant.number(), why).await? {
                return Ok(());
            }
            let change = AuditedChange::of_webhook(tenant, AuditAction::WebhookDisabled);
            record(db, &by, &change).await
        })
        .await?;
        self.hold(tenant).await
    }

    /// Holds what would have been sent to an endpoint that is off, at most 250 events a commit: nothing
    /// is sent to it meanwhile. It stops when the endpoint is turned on again.
    pub(super) async fn hold(&self, tenant: Tenant) -> Result<(), StoreError> {
        let tenant = tenant.number();
        while self.call(async move |db| hold(db, tenant).await).await?
            >= MAX_EVENTS_PER_COMMIT as u64
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

    pub(crate) async fn remove_endpoint(
        &self,
        tenant: Tenant,
        by: &Author,
    ) -> Result<(), StoreError> {
        // One entry says it all: it was not turned off apart from being removed.
        let off = DisabledBy::Operator;
        self.call(async move |db| switch_off(db, tenant.number(), off).await).await?;
        self.hold(tenant).await?;
        let by = by.clone();
        self.call(async move |db| {
            take_back(db, tenant, None).await?;
            let change = AuditedChange::of_webhook(tenant, AuditAction::WebhookRemoved);
            let tenant = tenant.number();
            let secrets = "DELETE FROM webhook_old_secrets WHERE tenant = $1";
            db.execute(secrets, &[&tenant]).await?;
            db.execute("DELETE FROM webhook_successes WHERE tenant = $1", &[&tenant]).await?;
            let remove = "DELETE FROM webhook_endpoints WHERE tenant = $1";
            match db.execute(remove, &[&tenant]).await? {
                0 => Ok(()),
                _ => record(db, &by, &change).await,
            }
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

    pub(crate) async fn has_event(&self, tenant: Tenant, event: Ulid) -> Result<bool, StoreError> {
        self.read(async move |db| {
            let sql = format!(
                "SELECT EXISTS (SELECT 1 FROM outbox WHERE tenant = {CURRENT} AND event_id = $2)"
            );
            db.value(&sql, &[&tenant.number(), &event.to_bytes().as_slice()]).await
        })
        .await
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
async fn rotate(db: &Connection, tenant: i64, secret: &Secret, now: Millis) -> DbResult<u64> {
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
    db.execute(sql, &[&tenant, &secret.as_bytes()]).await
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
    let sql = format!(
        "UPDATE outbox SET leased = false, lease_until = NULL, lease = $3, \
         due = CASE WHEN state = 1 THEN $2 ELSE due END WHERE tenant = {CURRENT} AND leased"
    );
    db.execute(&sql, &[&tenant.number(), &due.map(|due| due.0), &lease]).await.map(drop)
}

/// The same by the server itself, which the audit log says.
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
