//! Manifests, and reads of the parcels that may go into one.

use parcelo_domain::{
    NewManifest, ParcelRowId, Tenant, manifest::ManifestCandidate, webhooks::is_manifest_event,
};
use parcelo_types::{Awb, ParcelDetails, TrackingNumber, model::Manifest};
use serde::Deserialize;
use ulid::Ulid;

use super::{
    Store, StoreError,
    generations::{current_generation, is_current},
    parcels::{self, by_number, select_parcels, with_order},
    sql::{Row, Sql, SqlResult, params},
    values::Value,
};

/// The data from which a submission is decided, read from one snapshot.
#[derive(Debug)]
pub struct ManifestInputs {
    /// The tenant's manifest for the air waybill.
    pub known: Option<Manifest>,
    /// The tenant's parcels with these numbers, in order. Each unreadable parcel is a separate error.
    pub found: Vec<Result<Option<ManifestCandidate>, StoreError>>,
}

impl Store {
    /// Returns the data from which a manifest for an air waybill, with parcels of these numbers, is decided.
    pub async fn manifest_inputs(
        &self,
        tenant: Tenant,
        awb: &Awb,
        numbers: &[String],
    ) -> Result<ManifestInputs, StoreError> {
        let (awb, numbers) = (awb.as_str().to_owned(), numbers.to_vec());
        let inputs = self.query(async move |db| {
            db.in_snapshot(async || {
                let known = find(db, tenant, ("awb", &awb), |row| row.json(0)).await?;
                let mut found = Vec::with_capacity(numbers.len());
                for number in &numbers {
                    found.push(match find_candidate(db, tenant, number).await {
                        Err(error) if error.is_row_error() => Err(error),
                        found => Ok(found?),
                    });
                }
                Ok((known, found))
            })
            .await
        });
        let (known, found) = inputs.await?;
        let found = found.into_iter().map(|one| one.map_err(|error| self.error(error)));
        Ok(ManifestInputs { known, found: found.collect() })
    }

    /// Returns the air waybill on a version of a parcel's label, to which the parcel was assigned before that version.
    pub async fn awb_on_label(
        &self,
        parcel: ParcelRowId,
        version: u32,
    ) -> Result<Option<String>, StoreError> {
        self.query(async move |db| {
            let sql = concat!(
                "SELECT m.awb FROM manifest_parcels AS p JOIN manifests AS m ON m.id = p.manifest \
                 WHERE p.parcel = $1 AND p.label_version < $2 AND ",
                is_current!("m.tenant")
            );
            db.first(sql, params![parcel, version], |row| row.get(0)).await
        })
        .await
    }

    /// Returns one of the tenant's manifests.
    pub async fn manifest(&self, tenant: Tenant, id: Ulid) -> Result<Option<Manifest>, StoreError> {
        let column = ("public_id", id.to_bytes());
        self.query(async move |db| find(db, tenant, column, |row| row.json(0)).await).await
    }
}

/// Finds the tenant's manifest with a value in a column. `read` gets its document, id and time of submission.
async fn find<T>(
    db: Sql<'_>,
    tenant: Tenant,
    (column, value): (&str, impl Into<Value>),
    read: impl FnMut(&Row<'_>) -> SqlResult<T>,
) -> SqlResult<Option<T>> {
    let sql = concat!(
        "SELECT document, public_id, submitted_at FROM manifests WHERE tenant = ",
        current_generation!("$1")
    );
    let params = [tenant.number().into(), value.into()];
    db.first(&format!("{sql} AND {column} = $2"), &params, read).await
}

/// Inserts the manifest into its tenant's current generation with its parcels, each with its label's version. Returns
/// its row id, or `None` if the air waybill already has a manifest.
pub(super) async fn insert(
    db: Sql<'_>,
    (tenant, manifest): (i64, &NewManifest),
    labels: &[(i64, i64)],
) -> SqlResult<Option<i64>> {
    let sql = "INSERT INTO manifests ({|id, }tenant, awb, public_id, submitted_at, document) \
         VALUES ({|(SELECT id + 1 FROM last_manifest), }$1, $2, $3, $4, $5) \
         ON CONFLICT DO NOTHING RETURNING id";
    let NewManifest { id, awb, submitted_at, document, .. } = manifest;
    let params = params![tenant, awb.as_str(), id.to_bytes(), *submitted_at, document];
    let Some(row_id) = db.first(sql, params, |row| row.get::<i64>(0)).await? else {
        return Ok(None);
    };
    if !db.is_postgres() {
        db.execute("UPDATE last_manifest SET id = $1", params![row_id]).await?;
    }
    let parcel = |(parcel, version): &(i64, i64)| params![*parcel, row_id, *version].to_vec();
    let parcels: Vec<_> = labels.iter().map(parcel).collect();
    let insert = "INSERT INTO manifest_parcels (parcel, manifest, label_version) {SELECT * \
         FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])|VALUES ($1, $2, $3)}";
    db.execute_rows(insert, &parcels, &[]).await?;
    Ok(Some(row_id))
}

/// Returns the tenant's manifest with a row id, if the event is about that manifest.
pub(super) async fn find_for_event(
    db: Sql<'_>,
    (tenant, row_id): (Tenant, i64),
    event: Ulid,
) -> SqlResult<Option<Manifest>> {
    let found = find(db, tenant, ("id", row_id), |row| {
        let (id, at) = (Ulid::from_bytes(row.get(1)?), row.get(2)?);
        is_manifest_event(event, id, at).then(|| row.json(0)).transpose()
    });
    Ok(found.await?.flatten())
}

async fn find_candidate(
    db: Sql<'_>,
    tenant: Tenant,
    number: &str,
) -> SqlResult<Option<ManifestCandidate>> {
    let Ok(number) = TrackingNumber::parse(number) else { return Ok(None) };
    let sql = select_parcels!(
        ", order_json, \
         (SELECT m.public_id FROM manifest_parcels AS p JOIN manifests AS m ON m.id = p.manifest \
          WHERE p.parcel = parcels.id)",
        with_order!(),
        by_number!()
    );
    let found =
        parcels::find_by_number(db, sql, (tenant.environment, &number), read_candidate).await?;
    Ok(found.filter(|candidate| candidate.parcel.tenant == tenant))
}

/// The part of an order that a manifest contains.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredOrder {
    parcel_details: ParcelDetails,
}

fn read_candidate(row: &Row<'_>) -> SqlResult<ManifestCandidate> {
    let details =
        parcels::read_order::<DeclaredOrder>(row, parcels::FIRST_EXTRA_COLUMN)?.parcel_details;
    let manifest =
        row.get::<Option<[u8; 16]>>(parcels::FIRST_EXTRA_COLUMN + 1)?.map(Ulid::from_bytes);
    Ok(ManifestCandidate { parcel: parcels::read(row)?, details, manifest })
}
