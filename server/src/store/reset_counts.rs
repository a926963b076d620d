//! What a reset that is under way has deleted so far. Writes that need the place of a hidden row delete it
//! themselves, and count it as the reset's.

use parcelo::model::Deleted;
use rusqlite::Connection;

use crate::domain::RecordKey;

/// Adds to what a reset has deleted.
pub(super) fn add(db: &Connection, tenant: i64, deleted: Deleted) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE resets SET parcels = parcels + ?2, manifests = manifests + ?3, \
         events = events + ?4, keys = keys + ?5, deliveries = deliveries + ?6 WHERE tenant = ?1",
    )?;
    let Deleted { parcels, manifests, tracking_events: events, .. } = deleted;
    let Deleted { idempotency_keys: keys, webhook_deliveries: deliveries, .. } = deleted;
    let [parcels, manifests, events, keys, deliveries] =
        [parcels, manifests, events, keys, deliveries].map(u64::cast_signed);
    update.execute([tenant, parcels, manifests, events, keys, deliveries]).map(drop)
}

/// Counts an idempotency record that is about to be deleted, if a reset hides it.
pub(super) fn add_record(db: &Connection, key: &RecordKey) -> rusqlite::Result<()> {
    let mut update = db.prepare_cached(
        "UPDATE resets SET keys = keys + 1 FROM idempotency AS i \
         WHERE i.key = ?1 AND i.tenant = resets.tenant AND i.id <= resets.idempotency",
    )?;
    update.execute([key.0]).map(drop)
}
