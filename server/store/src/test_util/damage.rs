//! Damage to a file, and other processes that hold it.

use std::path::Path;

use parcelo_domain::Tenant;
use rusqlite::Connection;

use crate::Store;

/// A row of a tenant that becomes unreadable.
#[derive(Debug, Clone, Copy)]
pub enum Damage {
    /// The tenant's webhook.
    Endpoint,
    /// The content of the tenant's first event.
    Event,
    /// The tenant's key.
    Key,
    /// The tenant's first parcel.
    Parcel,
}

/// Makes a row unreadable, as a disk does that loses bits.
pub async fn damage(store: &Store, tenant: Tenant, what: Damage) {
    let sql = match what {
        Damage::Endpoint => "UPDATE webhook_endpoints SET secret = x'00' WHERE tenant = ?1",
        Damage::Event => {
            "UPDATE outbox SET kind = 99 WHERE id = (SELECT min(id) FROM outbox WHERE tenant = ?1)"
        }
        Damage::Key => "UPDATE api_keys SET hash = x'00' WHERE tenant = ?1",
        Damage::Parcel => {
            "UPDATE parcels SET country = '?' WHERE id = (SELECT min(id) FROM parcels WHERE tenant = ?1)"
        }
    };
    let rows =
        store.sqlite().unwrap().call(move |db| db.execute(sql, [tenant.number()])).await.unwrap();
    assert_eq!(rows, 1, "{what:?}");
}

/// Changes a database file as no program of ours would, and returns the number of rows.
pub fn damage_file(file: &Path, sql: &str) -> usize {
    Connection::open(file).unwrap().execute(sql, []).unwrap()
}

/// Opens a connection of another process that writes to a database until it is dropped.
pub fn hold_write_lock(file: &Path) -> Connection {
    let other = Connection::open(file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}
