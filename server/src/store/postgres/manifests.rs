//! Manifests in the database, and the parcels that are to go into one.

use parcelo::{Awb, ParcelDetails, TrackingNumber, model::Manifest};
use serde::Deserialize;
use tokio_postgres::{Row, types::ToSql};
use ulid::Ulid;

use super::{
    Store,
    connection::{Connection, bytes, get, optional_bytes},
    error::{DbResult, Failure},
    generations::CURRENT,
    parcels::{self, select_parcels},
};
use crate::{
    clock::Millis,
    domain::{NewManifest, Tenant, manifest::Candidate, webhooks::is_of_manifest},
    store::{ManifestInputs, StoreError},
};

impl Store {
    pub(crate) async fn for_manifest(
        &self,
        tenant: Tenant,
        awb: &Awb,
        numbers: &[String],
    ) -> Result<ManifestInputs, StoreError> {
        let (awb, numbers) = (awb.as_str().to_owned(), numbers.to_vec());
        let (known, found) = self
            .read(async move |db| {
                // All of one moment.
                db.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
                let known =
                    format!("SELECT document FROM manifests WHERE tenant = {CURRENT} AND awb = $2");
                let known = db.first(&known, &[&tenant.number(), &awb]).await?;
                let known = known.map(|row| document(&row)).transpose()?;
                let mut found = Vec::new();
                for number in &numbers {
                    found.push(match candidate(db, tenant, number).await {
                        Err(failure) if failure.is_row() => Err(failure),
                        found => Ok(found?),
                    });
                }
                db.run("COMMIT").await?;
                Ok((known, found))
            })
            .await?;
        let found = found.into_iter().map(|one| one.map_err(|failure| self.error(failure)));
        Ok(ManifestInputs { known, found: found.collect() })
    }
}

/// The tenant's manifest in a row, if it is the one that an event is about.
pub(super) async fn of_event(
    db: &Connection,
    (tenant, row): (Tenant, i64),
    event: Ulid,
) -> DbResult<Option<Manifest>> {
    let sql = format!(
        "SELECT document, public_id, submitted_at FROM manifests WHERE tenant = {CURRENT} AND id = $2"
    );
    let Some(row) = db.first(&sql, &[&tenant.number(), &row]).await? else { return Ok(None) };
    let (id, at) = (Ulid::from_bytes(bytes(&row, 1)?), Millis(get(&row, 2)?));
    is_of_manifest(event, id, at).then(|| document(&row)).transpose()
}

/// Keeps the manifest in its tenant's present generation with its parcels, each with its label's version, and answers its
/// row; none when the air waybill has one.
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

async fn candidate(db: &Connection, tenant: Tenant, number: &str) -> DbResult<Option<Candidate>> {
    let Ok(number) = TrackingNumber::parse(number) else { return Ok(None) };
    let sql = select_parcels!(
        ", order_json, \
         (SELECT m.public_id FROM manifest_parcels AS p JOIN manifests AS m ON m.id = p.manifest \
          WHERE p.parcel = parcels.id)",
        "JOIN orders ON orders.parcel = parcels.id WHERE environment = $1 AND upper(number) = $2"
    );
    let found = parcels::one(db, sql, (tenant.environment, &number), read).await?;
    Ok(found.filter(|candidate| candidate.parcel.tenant == tenant))
}

/// What a manifest declares of an order.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredOrder {
    parcel_details: ParcelDetails,
}

fn read(row: &Row) -> DbResult<Candidate> {
    let details = parcels::read_order::<DeclaredOrder>(row, parcels::MORE)?.parcel_details;
    let manifest = optional_bytes(row, parcels::MORE + 1)?.map(Ulid::from_bytes);
    Ok(Candidate { parcel: parcels::read(row)?, details, manifest })
}

fn document(row: &Row) -> DbResult<Manifest> {
    serde_json::from_slice(get(row, 0)?).map_err(Failure::row)
}
