//! Webhook endpoints: setting them up, turning them on and off, and holding the events of those that are off.

use std::collections::HashMap;

use parcelo::webhook::Secret;
use parcelo_domain::{
    Millis, Tenant,
    audit::{Actor, AuditAction, AuditedChange, Author},
    webhooks::{
        DisabledBy, Endpoint, MAX_OLD_SECRETS, OLD_SECRET_LIFETIME_MILLIS, WebhookEventKinds,
    },
};
use ulid::Ulid;

use super::{
    Store, StoreError, audit,
    generations::current_generation,
    outbox::{self, HELD},
    row_sets::column,
    sql::{Row, Sql, SqlResult, params},
};

/// Maximum number of held events that are counted if each must be visited. A page shows the number, and needs no exact
/// number beyond this.
const MAX_HELD_COUNTED: i64 = 100_000;
/// Maximum number of events that one commit holds, without the events that wait behind them: other writes wait for it.
const MAX_EVENTS_PER_COMMIT: u64 = 250;

impl Store {
    /// Returns the tenant's endpoint.
    pub async fn endpoint(&self, tenant: Tenant) -> Result<Option<Endpoint>, StoreError> {
        self.query(async move |db| find(db, tenant).await).await
    }

    /// Creates or changes the tenant's endpoint, and turns it on. An existing endpoint keeps its secret, which shows
    /// the caller that it existed.
    pub async fn set_endpoint(
        &self,
        endpoint: Endpoint,
        by: &Author,
    ) -> Result<Endpoint, StoreError> {
        let (by, tenant, now) = (by.clone(), endpoint.tenant, endpoint.created_at);
        let (set, replaced) = self
            .write(async move |db| {
                let set = set(db, &endpoint).await?;
                let change = AuditedChange::for_webhook(endpoint.tenant, AuditAction::WebhookSet);
                audit::record(db, &by, &change).await?;
                Ok(set)
            })
            .await?;
        if let Some(before) = replaced
            && let Err(error) = self.void_leases(tenant, before, Some(now)).await
        {
            tracing::warn!(%error, "some events are sent to a webhook's new address a minute late");
        }
        Ok(set)
    }

    /// Replaces the secret of the tenant's endpoint. The previous secret also signs for a while. Returns `false`, and
    /// changes nothing, without an endpoint, or if `replaced` is passed and is not its current secret.
    pub async fn rotate_secret(
        &self,
        tenant: Tenant,
        (replaced, new): (Option<Secret>, Secret),
        now: Millis,
        by: &Author,
    ) -> Result<bool, StoreError> {
        let by = by.clone();
        self.write(async move |db| {
            let is_done = rotate(db, tenant.number(), (replaced.as_ref(), &new), now).await?;
            if is_done {
                let change = AuditedChange::for_webhook(tenant, AuditAction::WebhookSecretRotated);
                audit::record(db, &by, &change).await?;
            }
            Ok(is_done)
        })
        .await
    }

    /// Turns the tenant's endpoint on. Held events stay held until they are replayed.
    pub async fn enable_endpoint(&self, tenant: Tenant, by: &Author) -> Result<(), StoreError> {
        let by = by.clone();
        self.write(async move |db| {
            if set_disabled_by(db, tenant.number(), None).await? != Some(false) {
                return Ok(());
            }
            let change = AuditedChange::for_webhook(tenant, AuditAction::WebhookEnabled);
            audit::record(db, &by, &change).await
        })
        .await
    }

    /// Turns the tenant's endpoint off; its events are held.
    pub async fn disable_endpoint(
        &self,
        tenant: Tenant,
        reason: DisabledBy,
        by: &Author,
    ) -> Result<(), StoreError> {
        let by = by.clone();
        self.write(async move |db| {
            if set_disabled_by(db, tenant.number(), Some(reason)).await? != Some(true) {
                return Ok(());
            }
            let change = AuditedChange::for_webhook(tenant, AuditAction::WebhookDisabled);
            audit::record(db, &by, &change).await
        })
        .await?;
        self.hold(tenant).await
    }

    /// Holds the events of endpoints that are off. A server calls this when it starts, because the previous one may
    /// have ended between two pages.
    pub async fn hold_all(&self) -> Result<(), StoreError> {
        let off = self.query(async |db| {
            let sql = "SELECT tenant FROM webhook_endpoints WHERE enabled = FALSE";
            db.query_map(sql, &[], |row| row.get(0).map(Tenant::from_number)).await
        });
        for tenant in off.await? {
            self.hold(tenant).await?;
        }
        Ok(())
    }

    /// Removes the tenant's endpoint. Unsent events are held, because an endpoint may be set up again later.
    pub async fn remove_endpoint(&self, tenant: Tenant, by: &Author) -> Result<(), StoreError> {
        // One audit entry is enough, because the endpoint is turned off only as a part of being removed.
        let off = Some(DisabledBy::Operator);
        self.write(async move |db| set_disabled_by(db, tenant.number(), off).await).await?;
        self.hold(tenant).await?;
        let by = by.clone();
        let remove = async move |db: Sql<'_>| {
            // First, as in a settlement, so that the two never deadlock.
            lock(db, tenant.number()).await?;
            db.delete_tenant_rows("webhook_old_secrets", tenant.number()).await?;
            if db.is_postgres() {
                db.delete_tenant_rows("webhook_successes", tenant.number()).await?;
            }
            if db.delete_tenant_rows("webhook_endpoints", tenant.number()).await? > 0 {
                let change = AuditedChange::for_webhook(tenant, AuditAction::WebhookRemoved);
                audit::record(db, &by, &change).await?;
            }
            outbox::next_lease(db).await
        };
        let removed = self.write(remove).await?;
        // The endpoint may have been turned on between the two writes.
        self.hold(tenant).await?;
        self.void_leases(tenant, removed, None).await
    }

    /// Ends the leases with a number below `before` of an endpoint that was removed or replaced, so that the answers of
    /// attempts in progress do not count. Leased events become due at `due`, or lose their due time if it is `None`. On
    /// PostgreSQL this reads all unsent events, because a lease writes no index, so no order may wait for it.
    async fn void_leases(
        &self,
        tenant: Tenant,
        before: i64,
        due: Option<Millis>,
    ) -> Result<(), StoreError> {
        let params = params![tenant.number(), due, before].to_vec();
        let sql = concat!(
            "UPDATE outbox SET {lease_until = NULL, |}leased = FALSE, lease = $3, \
             due = CASE WHEN state = 1 THEN $2 ELSE due END \
             WHERE {id = ANY (ARRAY (SELECT id FROM outbox WHERE |}tenant = ",
            current_generation!("$1"),
            " AND leased = {TRUE)) AND leased|1} AND lease < $3"
        );
        let void = async move |db: Sql<'_>| db.execute(sql, &params).await.map(drop);
        self.write_in_own_transaction(void).await
    }

    /// Returns the reason why the tenant's endpoint is off, and the number of held events, or `None` if it is on.
    pub async fn disabled_endpoint(
        &self,
        tenant: Tenant,
    ) -> Result<Option<(DisabledBy, i64)>, StoreError> {
        self.query(async move |db| {
            let sql = concat!(
                "SELECT disabled_why, coalesce((SELECT {count(*)|events} \
                 FROM {(SELECT FROM outbox|outbox_counts} WHERE tenant = ",
                current_generation!("$1"),
                " AND {state = 4 LIMIT $2) AS held|held = 1}), 0) \
                 FROM webhook_endpoints WHERE tenant = $1 AND enabled = FALSE"
            );
            let params = params![tenant.number(), MAX_HELD_COUNTED];
            db.first(sql, params, |row| {
                Ok((read_disabled_by(row, 0)?.unwrap_or(DisabledBy::Operator), row.get(1)?))
            })
            .await
        })
        .await
    }

    /// Returns `true` if the tenant's endpoint has or had an event with this id.
    pub async fn has_event(&self, tenant: Tenant, event: Ulid) -> Result<bool, StoreError> {
        let params = params![tenant.number(), event.to_bytes()].to_vec();
        self.query(async move |db| outbox::has_event(db, "event_id = $2", &params).await).await
    }

    /// Holds the unsent events of an endpoint that is off, page by page, while nothing is sent to it. It stops when the
    /// endpoint is turned on again.
    pub(super) async fn hold(&self, tenant: Tenant) -> Result<(), StoreError> {
        while self.hold_page(tenant).await? >= MAX_EVENTS_PER_COMMIT {}
        Ok(())
    }

    /// Holds a page of the unsent events of an endpoint that is off, and returns their number. Events that wait behind
    /// an event of the page are held too: nothing would release them if the endpoint were turned on before the next
    /// page.
    pub(super) async fn hold_page(&self, tenant: Tenant) -> Result<u64, StoreError> {
        self.write(async move |db| {
            let sql = concat!(
                "WITH page AS (SELECT id, parcel FROM outbox WHERE tenant = ",
                current_generation!("$1"),
                " AND state < 2 ORDER BY {id|created_at} LIMIT 250) \
                 UPDATE outbox SET state = $2, due = NULL WHERE id IN (SELECT id FROM page UNION \
                 SELECT o.id FROM page JOIN outbox AS o ON o.parcel = page.parcel AND o.state = 0) \
                 AND state < 2 AND NOT EXISTS \
                 (SELECT 1 FROM webhook_endpoints WHERE tenant = $1 AND enabled = TRUE)"
            );
            db.execute(sql, params![tenant.number(), HELD]).await
        })
        .await
    }
}

/// Returns the tenant's endpoint.
pub(super) async fn find(db: Sql<'_>, tenant: Tenant) -> SqlResult<Option<Endpoint>> {
    find_all(db, &[tenant]).await?.pop().map(|(_, found)| found).transpose()
}

/// Returns the endpoints of these tenants; an unreadable endpoint is returned as an error.
pub(super) async fn find_all(
    db: Sql<'_>,
    tenants: &[Tenant],
) -> SqlResult<Vec<(Tenant, SqlResult<Endpoint>)>> {
    let tenants: Vec<i64> = tenants.iter().map(|tenant| tenant.number()).collect();
    let tenants = column(&tenants);
    let sql = "SELECT url, kinds, secret, disabled_why, created_at, tenant FROM webhook_endpoints \
         WHERE tenant {= ANY($1)|= $1}";
    let read = |row: &Row<'_>| {
        let tenant = Tenant::from_number(row.get(5)?);
        Ok((tenant, read(row, tenant)))
    };
    let mut found = db.query_rows(sql, &tenants, &[], read).await?;
    let sql = "SELECT tenant, secret, until FROM webhook_old_secrets WHERE tenant {= ANY($1)|= $1} \
         ORDER BY id DESC";
    // An unreadable old secret signs nothing; the others still do.
    let old =
        |row: &Row<'_>| Ok((row.get::<i64>(0)?, read_secret(row, 1).ok().zip(row.get(2).ok())));
    let mut all = HashMap::<i64, Vec<_>>::new();
    for (tenant, old) in db.query_rows(sql, &tenants, &[], old).await? {
        all.entry(tenant).or_default().extend(old);
    }
    for (tenant, endpoint) in &mut found {
        if let (Ok(endpoint), Some(old)) = (endpoint, all.remove(&tenant.number())) {
            endpoint.old = old;
        }
    }
    Ok(found)
}

/// Reads an endpoint without its old secrets.
fn read(row: &Row<'_>, tenant: Tenant) -> SqlResult<Endpoint> {
    Ok(Endpoint {
        tenant,
        url: row.get(0)?,
        kinds: WebhookEventKinds::from_number(row.get(1)?),
        secret: read_secret(row, 2)?,
        old: Vec::new(),
        disabled: read_disabled_by(row, 3)?,
        created_at: row.get(4)?,
    })
}

fn read_disabled_by(row: &Row<'_>, column: usize) -> SqlResult<Option<DisabledBy>> {
    let code: Option<String> = row.get(column)?;
    Ok(code.map(|code| DisabledBy::from_code(&code).unwrap_or(DisabledBy::Operator)))
}

fn read_secret(row: &Row<'_>, column: usize) -> SqlResult<Secret> {
    row.bytes(column, Secret::from_bytes)
}

/// Replaces the secret, and keeps the old secrets that still sign, up to the maximum. Returns `false` if `replaced` is
/// not the current secret.
async fn rotate(
    db: Sql<'_>,
    tenant: i64,
    (replaced, new): (Option<&Secret>, &Secret),
    now: Millis,
) -> SqlResult<bool> {
    let keep = "INSERT INTO webhook_old_secrets (tenant, secret, until) \
         SELECT tenant, secret, $2 FROM webhook_endpoints \
         WHERE tenant = $1 AND secret = coalesce($3, secret){ FOR UPDATE|}";
    let replaced = replaced.map(Secret::as_bytes);
    if db.execute(keep, params![tenant, now.plus(OLD_SECRET_LIFETIME_MILLIS), replaced]).await? == 0
    {
        return Ok(false);
    }
    let forget = "DELETE FROM webhook_old_secrets WHERE tenant = $1 AND (until <= $2 OR id NOT IN \
         (SELECT id FROM webhook_old_secrets WHERE tenant = $1 ORDER BY id DESC LIMIT $3))";
    db.execute(forget, params![tenant, now, MAX_OLD_SECRETS]).await?;
    let sql = "UPDATE webhook_endpoints SET secret = $2 WHERE tenant = $1";
    db.execute(sql, params![tenant, new.as_bytes()]).await?;
    Ok(true)
}

/// Sets an endpoint. If it replaces an endpoint with another URL or an unreadable one, also returns the lease number
/// below which leases must end.
pub(super) async fn set(db: Sql<'_>, endpoint: &Endpoint) -> SqlResult<(Endpoint, Option<i64>)> {
    let Endpoint { tenant, created_at: now, .. } = *endpoint;
    // Makes two servers that change the endpoint at once take turns.
    lock(db, tenant.number()).await?;
    let is_replaced = match find(db, tenant).await {
        Ok(before) => before.is_some_and(|before| before.url != endpoint.url),
        // The secret of an unreadable endpoint cannot be kept, so a new one replaces it.
        Err(error) if error.is_row_error() => {
            db.delete_tenant_rows("webhook_endpoints", tenant.number()).await?;
            true
        }
        Err(error) => return Err(error),
    };
    let params = params![
        tenant.number(),
        &endpoint.url,
        endpoint.kinds.number(),
        endpoint.secret.as_bytes(),
        now
    ];
    let sql = "INSERT INTO webhook_endpoints (tenant, url, kinds, secret, enabled, created_at) \
         VALUES ($1, $2, $3, $4, TRUE, $5) ON CONFLICT (tenant) DO UPDATE \
         SET url = excluded.url, kinds = excluded.kinds, enabled = TRUE, disabled_why = NULL";
    db.execute(sql, params).await?;
    if !db.is_postgres() {
        // From then on, triggers maintain the column.
        let due = concat!(
            "UPDATE webhook_endpoints SET next_due = (SELECT min(due) FROM outbox WHERE tenant = ",
            current_generation!("$1"),
            " AND due IS NOT NULL) WHERE tenant = $1"
        );
        db.execute(due, params![tenant.number()]).await?;
    }
    let replaced = if is_replaced { Some(outbox::next_lease(db).await?) } else { None };
    let set = find(db, tenant).await?;
    Ok((db.require(set)?, replaced))
}

/// Turns an endpoint off for a reason, or on (`None`). Returns `true` if it was on, or `None` if there is no endpoint.
/// Events in transit stay leased, because they may still arrive.
async fn set_disabled_by(
    db: Sql<'_>,
    tenant: i64,
    off: Option<DisabledBy>,
) -> SqlResult<Option<bool>> {
    let was_on = lock(db, tenant).await?;
    let sql = "UPDATE webhook_endpoints SET enabled = $2, disabled_why = $3 WHERE tenant = $1";
    db.execute(sql, params![tenant, off.is_none(), off.map(DisabledBy::code)]).await?;
    Ok(was_on)
}

/// Locks the row of an endpoint until the commit. Returns `true` if the endpoint is on.
async fn lock(db: Sql<'_>, tenant: i64) -> SqlResult<Option<bool>> {
    let sql = "SELECT enabled FROM webhook_endpoints WHERE tenant = $1{ FOR UPDATE|}";
    db.first(sql, params![tenant], |row| row.get(0)).await
}

/// Turns an endpoint off on behalf of the server, and records that in the audit log. Returns `true` if it was on.
pub(super) async fn disable_by_server(
    db: Sql<'_>,
    tenant: Tenant,
    reason: DisabledBy,
    now: Millis,
) -> SqlResult<bool> {
    let was_on = set_disabled_by(db, tenant.number(), Some(reason)).await? == Some(true);
    if was_on {
        let change = AuditedChange::for_webhook(tenant, AuditAction::WebhookDisabled);
        audit::record(db, &Actor::Server.at(now), &change).await?;
    }
    Ok(was_on)
}
