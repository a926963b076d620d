//! Endpoints in the database: setting them up, turning them on and off, replaying what they missed.

use parcelo::webhook::Secret;
use rusqlite::{Connection, OptionalExtension, Row, params, types::Type};
use ulid::Ulid;

use super::{
    Store, StoreError,
    outbox::{self, HELD, MISSED, READY, Subject, WAITING},
};
use crate::{
    clock::Millis,
    core::{
        AccountKey, Tenant,
        webhooks::{DisabledBy, Endpoint, Kinds, OLD_SECRET, OLD_SECRETS, Told},
    },
};

/// Which events are sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    /// This one, delivered or not.
    One(Ulid),
    /// All that failed or were held, and came about then or later.
    MissedSince(Millis),
}

impl Store {
    /// The account with a name.
    pub fn account_named(&self, name: &str) -> Result<Option<AccountKey>, StoreError> {
        self.read(|db| {
            let sql = "SELECT id FROM accounts WHERE name = ?1";
            db.query_row(sql, [name], |row| row.get(0).map(AccountKey)).optional()
        })
    }

    /// The tenant's endpoint.
    pub fn endpoint(&self, tenant: Tenant) -> Result<Option<Endpoint>, StoreError> {
        self.read(|db| find(db, tenant))
    }

    /// Sets the tenant's endpoint up, or changes it; one that exists keeps its secret, by which the
    /// caller can tell. It is on from here on.
    pub async fn set_endpoint(&self, endpoint: Endpoint) -> Result<Endpoint, StoreError> {
        self.call(move |db| set(db, &endpoint)).await
    }

    /// Gives the tenant's endpoint a new secret; the one before signs beside it for a while.
    pub async fn rotate_secret(
        &self,
        tenant: Tenant,
        secret: Secret,
        now: Millis,
    ) -> Result<(), StoreError> {
        self.call(move |db| rotate(db, tenant.number(), &secret, now)).await
    }

    /// Sends to the tenant's endpoint from here on; what was held stays held until it is replayed.
    pub async fn enable_endpoint(&self, tenant: Tenant) -> Result<(), StoreError> {
        self.call(move |db| {
            let sql = "UPDATE webhook_endpoints SET enabled = 1, disabled_why = NULL \
                 WHERE tenant = ?1";
            db.execute(sql, [tenant.number()]).map(drop)
        })
        .await
    }

    /// Sends nothing to the tenant's endpoint from here on: its events are held.
    pub async fn disable_endpoint(&self, tenant: Tenant, by: DisabledBy) -> Result<(), StoreError> {
        self.call(move |db| disable(db, tenant.number(), by)).await
    }

    /// Removes the tenant's endpoint; what was still to be sent is held, for one that may come.
    pub async fn remove_endpoint(&self, tenant: Tenant) -> Result<(), StoreError> {
        self.call(move |db| {
            disable(db, tenant.number(), DisabledBy::Operator)?;
            take_back(db, tenant, None)?;
            let tenant = [tenant.number()];
            db.execute("DELETE FROM webhook_old_secrets WHERE tenant = ?1", tenant)?;
            db.execute("DELETE FROM webhook_endpoints WHERE tenant = ?1", tenant).map(drop)
        })
        .await
    }

    /// Puts an event that no change tells, a test, into the outbox of the tenant's endpoint.
    pub async fn tell(&self, tenant: Tenant, told: Told) -> Result<(), StoreError> {
        let made = self.call(move |db| {
            let Some(listener) = outbox::listener(db, tenant)? else { return Ok(()) };
            outbox::tell(db, listener, (Subject::default(), &told), told.at)
        });
        made.await?;
        self.wake();
        Ok(())
    }

    /// Whether an event is, or was, for the tenant's endpoint.
    pub fn has_event(&self, tenant: Tenant, event: Ulid) -> Result<bool, StoreError> {
        self.read(|db| {
            let sql =
                "SELECT EXISTS (SELECT 1 FROM living_outbox WHERE tenant = ?1 AND event_id = ?2)";
            db.query_row(sql, params![tenant.number(), event.to_bytes()], |row| row.get(0))
        })
    }

    /// Sends events again, and answers how many.
    pub async fn replay(
        &self,
        tenant: Tenant,
        what: Replay,
        now: Millis,
    ) -> Result<usize, StoreError> {
        let replayed = self.call(move |db| replay(db, tenant.number(), what, now)).await?;
        self.wake();
        Ok(replayed)
    }
}

/// The tenant's endpoint.
pub(super) fn find(db: &Connection, tenant: Tenant) -> rusqlite::Result<Option<Endpoint>> {
    let mut find = db.prepare_cached(
        "SELECT url, kinds, secret, disabled_why, created_at FROM webhook_endpoints \
         WHERE tenant = ?1",
    )?;
    find.query_row([tenant.number()], |row| read(db, row, tenant)).optional()
}

fn old_secrets(db: &Connection, tenant: Tenant) -> rusqlite::Result<Vec<(Secret, Millis)>> {
    let mut find = db.prepare_cached(
        "SELECT secret, until FROM webhook_old_secrets WHERE tenant = ?1 ORDER BY id DESC",
    )?;
    let old = |row: &Row<'_>| Ok((secret(row, 0)?, Millis(row.get(1)?)));
    find.query_map([tenant.number()], old)?.collect()
}

/// Keeps the secrets that still sign, as many as may.
fn rotate(db: &Connection, tenant: i64, secret: &Secret, now: Millis) -> rusqlite::Result<()> {
    db.execute(
        "INSERT INTO webhook_old_secrets (tenant, secret, until) \
         SELECT tenant, secret, ?2 FROM webhook_endpoints WHERE tenant = ?1",
        [tenant, now.plus(OLD_SECRET).0],
    )?;
    db.execute(
        "DELETE FROM webhook_old_secrets WHERE tenant = ?1 AND (until <= ?2 OR id NOT IN \
         (SELECT id FROM webhook_old_secrets WHERE tenant = ?1 ORDER BY id DESC LIMIT ?3))",
        params![tenant, now.0, OLD_SECRETS],
    )?;
    let sql = "UPDATE webhook_endpoints SET secret = ?2 WHERE tenant = ?1";
    db.execute(sql, params![tenant, secret.as_bytes()]).map(drop)
}

fn set(db: &Connection, endpoint: &Endpoint) -> rusqlite::Result<Endpoint> {
    let Endpoint { tenant, created_at: now, .. } = *endpoint;
    if find(db, tenant)?.is_some_and(|before| before.url != endpoint.url) {
        take_back(db, tenant, Some(now))?;
    }
    db.execute(
        "INSERT INTO webhook_endpoints (tenant, url, kinds, secret, enabled, created_at) \
         VALUES (?1, ?2, ?3, ?4, 1, ?5) ON CONFLICT (tenant) DO UPDATE \
         SET url = excluded.url, kinds = excluded.kinds, enabled = 1, disabled_why = NULL",
        params![
            tenant.number(),
            endpoint.url,
            endpoint.kinds.number(),
            endpoint.secret.as_bytes(),
            now.0
        ],
    )?;
    find(db, tenant)?.ok_or(rusqlite::Error::QueryReturnedNoRows)
}

/// Makes what is on its way to an endpoint count for nothing, since another takes its place; that
/// one is sent what is still to be sent when `due` says so.
fn take_back(db: &Connection, tenant: Tenant, due: Option<Millis>) -> rusqlite::Result<()> {
    let sql = "UPDATE outbox SET leased = 0, lease = lease + 1, due = iif(state = 1, ?2, due) \
         WHERE tenant = ?1 AND leased = 1";
    db.execute(sql, params![tenant.number(), due.map(|due| due.0)]).map(drop)
}

/// Turns an endpoint off, and holds what would have been sent to it. What is on its way stays leased:
/// it may arrive yet.
pub(super) fn disable(db: &Connection, tenant: i64, by: DisabledBy) -> rusqlite::Result<()> {
    db.execute(
        "UPDATE webhook_endpoints SET enabled = 0, disabled_why = ?2 WHERE tenant = ?1",
        params![tenant, by.code()],
    )?;
    db.execute(
        "UPDATE outbox SET state = ?2, due = NULL WHERE tenant = ?1 AND state IN (0, 1)",
        params![tenant, HELD],
    )?;
    Ok(())
}

fn replay(db: &Connection, tenant: i64, what: Replay, now: Millis) -> rusqlite::Result<usize> {
    let which = match what {
        Replay::One(_) => "state NOT IN (0, 1) AND event_id = ?5".to_owned(),
        Replay::MissedSince(_) => format!("{MISSED} AND created_at >= ?5"),
    };
    let sql = format!(
        "UPDATE outbox SET state = iif(parcel IS NULL, ?3, ?4), due = iif(parcel IS NULL, ?2, NULL), \
         leased = 0, lease = lease + 1, attempts = 0, first_attempt = NULL \
         WHERE id IN (SELECT id FROM living_outbox WHERE tenant = ?1 AND {which}) RETURNING parcel"
    );
    let mut update = db.prepare(&sql)?;
    let (event, since);
    let given: &dyn rusqlite::ToSql = match what {
        Replay::One(id) => {
            event = id.to_bytes();
            &event
        }
        Replay::MissedSince(moment) => {
            since = moment.0;
            &since
        }
    };
    let again =
        update.query_map(params![tenant, now.0, READY, WAITING, given], |row| row.get(0))?;
    let parcels: Vec<Option<i64>> = again.collect::<Result<_, _>>()?;
    for parcel in parcels.iter().flatten() {
        outbox::release(db, *parcel, now)?;
    }
    Ok(parcels.len())
}

fn read(db: &Connection, row: &Row<'_>, tenant: Tenant) -> rusqlite::Result<Endpoint> {
    let why = row.get_ref(3)?.as_str_or_null()?;
    Ok(Endpoint {
        tenant,
        url: row.get(0)?,
        kinds: Kinds::of_number(row.get(1)?),
        secret: secret(row, 2)?,
        old: old_secrets(db, tenant)?,
        disabled: why.map(|why| DisabledBy::of_code(why).unwrap_or(DisabledBy::Operator)),
        created_at: Millis(row.get(4)?),
    })
}

fn secret(row: &Row<'_>, column: usize) -> rusqlite::Result<Secret> {
    let damaged =
        |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, Box::new(error));
    Secret::from_bytes(row.get_ref(column)?.as_blob()?).map_err(damaged)
}
