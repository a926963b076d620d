//! Writes of manifests to the database.

use tokio_postgres::types::ToSql;

use super::{
    connection::{Connection, get},
    error::DbResult,
};
use crate::domain::NewManifest;

/// Inserts the manifest into its tenant's present generation with its parcels, each with its label's version. Returns
/// its row, or `None` if the air waybill already has a manifest.
pub(super) async fn insert(
    db: &Connection,
    (tenant, manifest): (i64, &NewManifest),
    labels: &[(i64, i64)],
) -> DbResult<Option<i64>> {
    let sql = "INSERT INTO manifests (tenant, awb, public_id, submitted_at, document) \
         VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING RETURNING id";
    let (awb, id) = (manifest.awb.as_str(), manifest.id.to_bytes());
    let given: [&(dyn ToSql + Sync); 5] =
        [&tenant, &awb, &id.as_slice(), &manifest.submitted_at.0, &manifest.document];
    let Some(inserted) = db.first(sql, &given).await? else { return Ok(None) };
    let row: i64 = get(&inserted, 0)?;
    let (parcels, versions): (Vec<i64>, Vec<i64>) = labels.iter().copied().unzip();
    let sql = "INSERT INTO manifest_parcels (parcel, manifest, label_version) \
         SELECT n.parcel, $3, n.label_version FROM unnest($1::bigint[], $2::bigint[]) \
         AS n (parcel, label_version) ORDER BY n.parcel";
    db.execute(sql, &[&parcels, &versions, &row]).await?;
    Ok(Some(row))
}
