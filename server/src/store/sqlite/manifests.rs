//! Writes of manifests to the file.

use rusqlite::{Connection, params};

use crate::domain::NewManifest;

/// Inserts the manifest with its parcels into the generation with this number. Returns its row, or `None` if the air
/// waybill already has a manifest.
pub(super) fn insert(
    db: &Connection,
    manifest: &NewManifest,
    number: i64,
) -> rusqlite::Result<Option<i64>> {
    let mut insert = db.prepare_cached(
        "INSERT INTO manifests (id, tenant, awb, public_id, submitted_at, document) \
         VALUES ((SELECT id + 1 FROM last_manifest), ?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
    )?;
    let inserted = insert.execute(params![
        number,
        manifest.awb.as_str(),
        manifest.id.to_bytes(),
        manifest.submitted_at.0,
        manifest.document,
    ])?;
    if inserted == 0 {
        return Ok(None);
    }
    let row = db.last_insert_rowid();
    db.prepare_cached("UPDATE last_manifest SET id = ?1")?.execute([row])?;
    let mut insert = db.prepare_cached(
        "INSERT INTO manifest_parcels (parcel, manifest, label_version) \
         SELECT id, ?2, label_version FROM parcels WHERE id = ?1 AND tenant = ?3",
    )?;
    for parcel in &manifest.parcels {
        insert.execute([parcel.0, row, number])?;
    }
    Ok(Some(row))
}
