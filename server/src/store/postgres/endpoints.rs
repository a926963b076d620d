//! Endpoints in the database: reading them for deliveries, and holding their events.

use std::collections::HashMap;

use super::{
    Store,
    connection::{Connection, get},
    error::DbResult,
    generations::{CURRENT, Generations},
    outbox::{HELD, NewEvents, Subject, Subscriptions},
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        webhooks::{Endpoint, OutboxEvent},
    },
    store::{
        StoreError,
        endpoints::{self, endpoint_columns},
        sql,
    },
};
use parcelo::webhook::Secret;

/// Maximum number of events that one commit holds, without the events that wait behind them: other writes wait for it.
const MAX_EVENTS_PER_COMMIT: usize = 250;

impl Store {
    /// Holds the unsent events of an endpoint that is off, at most 250 in a commit, while nothing is sent to it. It
    /// stops when the endpoint is turned on again.
    pub(in crate::store) async fn hold(&self, tenant: Tenant) -> Result<(), StoreError> {
        let tenant = tenant.number();
        while self.call(async move |db| hold(db, tenant).await).await?
            >= MAX_EVENTS_PER_COMMIT as u64
        {}
        Ok(())
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

/// Returns the endpoints of these tenants; an unreadable endpoint is returned as a failure.
pub(super) async fn find_all(
    db: &Connection,
    tenants: &[i64],
) -> DbResult<Vec<(i64, DbResult<Endpoint>)>> {
    let sql = concat!(
        "SELECT ",
        endpoint_columns!(),
        ", tenant FROM webhook_endpoints WHERE tenant = ANY($1)"
    );
    let rows = db.all(sql, &[&tenants]).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut old = old_secrets(db, tenants).await?;
    let mut found = Vec::with_capacity(rows.len());
    for row in &rows {
        let tenant: i64 = get(row, 5)?;
        let old = old.remove(&tenant).unwrap_or_default();
        let endpoint = endpoints::read(&sql::Row::Postgres(row), Tenant::from_number(tenant));
        found.push((
            tenant,
            endpoint.map(|endpoint| Endpoint { old, ..endpoint }).map_err(Into::into),
        ));
    }
    Ok(found)
}

/// Returns the replaced secrets of these tenants that may still sign, the latest first.
async fn old_secrets(
    db: &Connection,
    tenants: &[i64],
) -> DbResult<HashMap<i64, Vec<(Secret, Millis)>>> {
    let sql = "SELECT tenant, secret, until FROM webhook_old_secrets WHERE tenant = ANY($1) \
         ORDER BY id DESC";
    let mut old = HashMap::<i64, Vec<_>>::new();
    for row in &db.all(sql, &[&tenants]).await? {
        // An unreadable secret signs nothing; the others still do.
        if let Ok(secret) = endpoints::secret(&sql::Row::Postgres(row), 1) {
            old.entry(get(row, 0)?).or_default().push((secret, Millis(get(row, 2)?)));
        }
    }
    Ok(old)
}

/// Holds a page of the unsent events of an endpoint that is off, and returns their number. Events that wait behind an
/// event of the page are held too: nothing would release them if the endpoint were turned on before the next page.
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
