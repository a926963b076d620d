//! What every store must keep ([`conformance`]), and what a file must survive.

pub(super) mod conformance;
mod deliveries;
mod durability;
mod erasure;
mod groups;
mod living_keys;
#[cfg(feature = "server")]
mod pages;
pub(crate) mod reads;
mod resets;

use super::Store;
use crate::domain::Tenant;

/// Changes a database file as nothing of ours would; answers how many rows.
#[cfg(feature = "server")]
pub(crate) fn damage_file(file: &std::path::Path, sql: &str) -> usize {
    rusqlite::Connection::open(file).unwrap().execute(sql, []).unwrap()
}

/// A database that another process writes to until this is dropped.
pub(crate) fn held(file: &std::path::Path) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

/// A row of a tenant's that is to become unreadable.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Damage {
    /// Its webhook.
    Endpoint,
    /// What its first event tells.
    Event,
    /// Its first parcel.
    Parcel,
}

/// Makes a row unreadable, as a disk does that loses bits.
pub(crate) async fn damage(store: &Store, tenant: Tenant, what: Damage) {
    let sql = match what {
        Damage::Endpoint => "UPDATE webhook_endpoints SET secret = x'00' WHERE tenant = ?1",
        Damage::Event => {
            "UPDATE outbox SET kind = 99 WHERE id = (SELECT min(id) FROM outbox WHERE tenant = ?1)"
        }
        Damage::Parcel => {
            "UPDATE parcels SET country = '?' WHERE id = (SELECT min(id) FROM parcels WHERE tenant = ?1)"
        }
    };
    let rows = store.call(move |db| db.execute(sql, [tenant.number()])).await.unwrap();
    assert_eq!(rows, 1, "{what:?}");
}
