//! What a reset that is under way has deleted so far. Writes that need the place of a hidden row delete it
//! themselves, and count it as the reset's.

use parcelo::model::Deleted;
use rusqlite::Connection;

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
