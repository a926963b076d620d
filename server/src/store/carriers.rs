//! Carriers in the database: their keys, the events they sent, and those that were refused.

use parcelo::{Environment, TrackingNumber};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{
    KeyChanges, Store, StoreError,
    keys::changes,
    parcels::{damaged, environment, read_state},
};
use crate::{
    clock::Millis,
    domain::{
        CarrierException, CarrierKeyRecord, CarrierNumber, NewCarrierKey, ParcelKey, Report, Scan,
        SeenEvent, Tenant, carrier::LoggedException,
    },
};

/// The hash under which a carrier key is found.
#[derive(Clone, Copy)]
pub struct CarrierHash {
    /// The key's number inside the database.
    pub row: i64,
    /// Its keyed hash.
    pub hash: [u8; 32],
}

// As of API keys, no log shows the hash.
impl std::fmt::Debug for CarrierHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CarrierHash").field("row", &self.row).finish_non_exhaustive()
    }
}

impl Store {
    /// Keeps a new carrier key, and its carrier if this is its first.
    pub async fn insert_carrier_key(
        &self,
        key: NewCarrierKey,
    ) -> Result<CarrierKeyRecord, StoreError> {
        self.write_keys(move |db| insert_key(db, &key)).await
    }

    /// The hashes of the carrier keys that were made after `version`, revoked or not.
    pub async fn carrier_hashes_since(
        &self,
        version: i64,
    ) -> Result<KeyChanges<CarrierHash>, StoreError> {
        self.read(|db| {
            let sql =
                "SELECT id, hash, changed FROM carrier_keys WHERE changed > ?1 ORDER BY changed";
            let read = |row: &Row<'_>| {
                Ok((row.get(2)?, CarrierHash { row: row.get(0)?, hash: row.get(1)? }))
            };
            changes(version, db.prepare_cached(sql)?.query_map([version], read)?)
        })
    }

    /// The carrier key with a hash, revoked or not.
    pub async fn carrier_key_by_hash(
        &self,
        hash: &[u8; 32],
    ) -> Result<Option<CarrierKeyRecord>, StoreError> {
        self.read(|db| key_by_hash(db, hash))
    }

    /// Every carrier key, oldest first, revoked or not.
    pub async fn carrier_keys(&self) -> Result<Vec<CarrierKeyRecord>, StoreError> {
        self.read(all_keys)
    }

    /// Revokes a carrier key; a second time changes nothing. None if there is no such key.
    pub async fn revoke_carrier_key(
        &self,
        id: &str,
        now: Millis,
    ) -> Result<Option<CarrierKeyRecord>, StoreError> {
        let id = id.to_owned();
        self.call(move |db| revoke_key(db, &id, now)).await
    }

    /// Whether an event of a carrier was taken before.
    pub async fn has_seen(
        &self,
        carrier: CarrierNumber,
        event_id: &str,
    ) -> Result<bool, StoreError> {
        self.read(|db| find_seen(db, carrier, event_id))
    }

    /// The latest refused carrier events on a tenant's parcels, newest first.
    pub async fn carrier_exceptions(
        &self,
        tenant: Tenant,
        most: u32,
    ) -> Result<Vec<LoggedException>, StoreError> {
        let read = move |store: &Self| store.read(|db| exceptions(db, tenant, most));
        self.scan(Some(tenant), read).await
    }
}

/// The columns of a [`CarrierKeyRecord`] in the order in which [`read_key`] takes them.
macro_rules! select_keys {
    ($rest:literal) => {
        concat!(
            "SELECT k.id, k.public_id, k.carrier, c.environment, c.name, k.last4, k.created_at, \
             k.revoked_at FROM carrier_keys k JOIN carriers c ON c.id = k.carrier ",
            $rest
        )
    };
}

/// Keeps a new key, and its carrier if this is its first.
fn insert_key(db: &Connection, key: &NewCarrierKey) -> rusqlite::Result<CarrierKeyRecord> {
    let carrier = params![environment(key.environment), key.name];
    db.execute(
        "INSERT INTO carriers (environment, name) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        carrier,
    )?;
    db.execute(
        "INSERT INTO carrier_keys (public_id, carrier, hash, last4, created_at, changed) \
         SELECT ?3, id, ?4, ?5, ?6, (SELECT coalesce(max(changed), 0) + 1 FROM carrier_keys) \
         FROM carriers WHERE environment = ?1 AND name = ?2",
        params![
            environment(key.environment),
            key.name,
            key.id,
            key.hash,
            key.last4,
            key.created_at.0
        ],
    )?;
    db.query_row(select_keys!("WHERE k.id = ?1"), [db.last_insert_rowid()], read_key)
}

/// The key with a hash, revoked or not.
fn key_by_hash(db: &Connection, hash: &[u8; 32]) -> rusqlite::Result<Option<CarrierKeyRecord>> {
    db.prepare_cached(select_keys!("WHERE k.hash = ?1"))?.query_row([hash], read_key).optional()
}

/// Every key, oldest first.
fn all_keys(db: &Connection) -> rusqlite::Result<Vec<CarrierKeyRecord>> {
    db.prepare(select_keys!("ORDER BY k.id"))?.query_map([], read_key)?.collect()
}

/// Revokes a key; one that is revoked keeps its first moment.
fn revoke_key(
    db: &Connection,
    id: &str,
    now: Millis,
) -> rusqlite::Result<Option<CarrierKeyRecord>> {
    db.execute(
        "UPDATE carrier_keys SET revoked_at = ?2 WHERE public_id = ?1 AND revoked_at IS NULL",
        params![id, now.0],
    )?;
    db.query_row(select_keys!("WHERE k.public_id = ?1"), [id], read_key).optional()
}

/// Whether an event of a carrier was taken before.
fn find_seen(db: &Connection, carrier: CarrierNumber, event_id: &str) -> rusqlite::Result<bool> {
    db.prepare_cached(
        "SELECT 1 FROM carrier_events AS e JOIN living_parcels AS p ON p.id = e.parcel \
         WHERE carrier = ?1 AND event_id = ?2",
    )?
    .exists(params![carrier.0, event_id])
}

/// Marks an event as taken; false when it was taken before, and its parcel is still there.
pub(super) fn see(db: &Connection, event: &SeenEvent) -> rusqlite::Result<bool> {
    let mut insert = db.prepare_cached(
        "INSERT INTO carrier_events (carrier, event_id, parcel, sequence, code) \
         VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT DO UPDATE SET parcel = excluded.parcel, sequence = excluded.sequence, code = excluded.code \
         WHERE NOT EXISTS (SELECT 1 FROM living_parcels AS p WHERE p.id = carrier_events.parcel)",
    )?;
    let (carrier, parcel) = (event.carrier.0, event.parcel.0);
    let row = params![carrier, event.event_id, parcel, event.sequence, event.code];
    Ok(insert.execute(row)? == 1)
}

/// Logs a refused event in the place of an earlier refusal of the same one.
pub(super) fn log(db: &Connection, exception: &CarrierException) -> rusqlite::Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT OR REPLACE INTO carrier_exceptions (tenant, carrier, event_id, parcel, from_state, \
         state, at, location, description, code, refused_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?;
    let CarrierException { report, .. } = exception;
    insert.execute(params![
        exception.tenant.number(),
        report.carrier.0,
        report.event_id,
        exception.parcel.0,
        exception.from.number(),
        report.scan.state.number(),
        report.scan.at.0,
        report.scan.location,
        report.scan.description,
        report.code,
        exception.refused_at.0,
    ])?;
    Ok(())
}

/// The latest refused events on a tenant's parcels, newest first.
fn exceptions(
    db: &Connection,
    tenant: Tenant,
    most: u32,
) -> rusqlite::Result<Vec<LoggedException>> {
    let mut find = db.prepare_cached(
        "SELECT c.name, p.number, e.tenant, e.carrier, e.event_id, e.parcel, e.from_state, e.state, \
         e.at, e.location, e.description, e.code, e.refused_at \
         FROM carrier_exceptions e JOIN carriers c ON c.id = e.carrier \
         JOIN living_parcels p ON p.id = e.parcel WHERE e.tenant = ?1 ORDER BY e.id DESC LIMIT ?2",
    )?;
    find.query_map(params![tenant.number(), most], read_exception)?.collect()
}

fn read_key(row: &Row<'_>) -> rusqlite::Result<CarrierKeyRecord> {
    Ok(CarrierKeyRecord {
        row: row.get(0)?,
        id: row.get(1)?,
        carrier: CarrierNumber(row.get(2)?),
        environment: read_environment(row, 3)?,
        name: row.get(4)?,
        last4: row.get(5)?,
        created_at: Millis(row.get(6)?),
        revoked_at: row.get::<_, Option<i64>>(7)?.map(Millis),
    })
}

fn read_environment(row: &Row<'_>, column: usize) -> rusqlite::Result<Environment> {
    let number: i64 = row.get(column)?;
    Environment::ALL
        .into_iter()
        .find(|known| environment(*known) == number)
        .ok_or(rusqlite::Error::IntegralValueOutOfRange(column, number))
}

fn read_exception(row: &Row<'_>) -> rusqlite::Result<LoggedException> {
    let number = row.get_ref(1)?.as_str()?;
    let scan = Scan {
        state: read_state(row, 7)?,
        at: Millis(row.get(8)?),
        location: row.get(9)?,
        description: row.get(10)?,
    };
    let report = Report {
        carrier: CarrierNumber(row.get(3)?),
        event_id: row.get(4)?,
        code: row.get(11)?,
        scan,
    };
    let exception = CarrierException {
        tenant: Tenant::of_number(row.get(2)?),
        parcel: ParcelKey(row.get(5)?),
        from: read_state(row, 6)?,
        report,
        refused_at: Millis(row.get(12)?),
    };
    Ok(LoggedException {
        carrier_name: row.get(0)?,
        tracking_number: TrackingNumber::parse(number).map_err(|error| damaged(1, error))?,
        exception,
    })
}
