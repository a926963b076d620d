//! Manifests in the database, and the parcels that are to go into one.

use parcelo::{Awb, ParcelDetails, TrackingNumber, model::Manifest};
use rusqlite::{Connection, OptionalExtension, Row, params};
use ulid::Ulid;

use super::{
    Store, StoreError,
    error::is_damaged,
    parcels::{self, damaged, select_parcels},
};
use crate::{
    clock::Millis,
    domain::{NewManifest, Tenant, manifest::Candidate, webhooks::is_of_manifest},
    store::generations::current,
};

/// What a submission is decided on, all of one moment.
#[derive(Debug)]
pub struct ManifestInputs {
    /// The tenant's manifest under the air waybill.
    pub known: Option<Manifest>,
    /// The tenant's parcels with the numbers, in their order; one that cannot be read is its own error.
    pub found: Vec<Result<Option<Candidate>, StoreError>>,
}

impl Store {
    /// What a manifest under an air waybill, of parcels with these numbers, is decided on.
    pub async fn for_manifest(
        &self,
        tenant: Tenant,
        awb: &Awb,
        numbers: &[String],
    ) -> Result<ManifestInputs, StoreError> {
        self.read(|db| {
            let moment = db.unchecked_transaction()?;
            let known = concat!(
                "SELECT document FROM manifests WHERE tenant = ",
                current!("?1"),
                " AND awb = ?2"
            );
            let mut known = moment.prepare_cached(known)?;
            let known = known.query_row(params![tenant.number(), awb.as_str()], document);
            let found = numbers.iter().map(|number| {
                let Ok(number) = TrackingNumber::parse(number) else { return Ok(Ok(None)) };
                match candidate(&moment, tenant, &number) {
                    Err(error) if is_damaged(&error) => Ok(Err(self.read_error(error))),
                    found => found.map(Ok),
                }
            });
            Ok(ManifestInputs { known: known.optional()?, found: found.collect::<Result<_, _>>()? })
        })
    }
}

/// The tenant's manifest in a row, if it is the one that an event is about.
pub(super) fn of_event(
    db: &Connection,
    (tenant, row): (Tenant, i64),
    event: Ulid,
) -> rusqlite::Result<Option<Manifest>> {
    let mut find = db.prepare_cached(concat!(
        "SELECT document, public_id, submitted_at FROM manifests WHERE id = ?1 AND tenant = ",
        current!("?2")
    ))?;
    let mut rows = find.query([row, tenant.number()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (id, at) = (Ulid::from_bytes(row.get(1)?), Millis(row.get(2)?));
    is_of_manifest(event, id, at).then(|| document(row)).transpose()
}

/// Keeps the manifest with its parcels in the generation with this number. Returns its row; none when the air waybill has
/// one.
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

fn candidate(
    db: &Connection,
    tenant: Tenant,
    number: &TrackingNumber,
) -> rusqlite::Result<Option<Candidate>> {
    let sql = select_parcels!(
        ", json_extract(order_json, '$.parcelDetails'), \
         (SELECT m.public_id FROM manifest_parcels AS p JOIN manifests AS m ON m.id = p.manifest \
          WHERE p.parcel = parcels.id)",
        "WHERE id = ?1"
    );
    let found = parcels::one(db, sql, (tenant.environment, number), read)?;
    Ok(found.filter(|candidate| candidate.parcel.tenant == tenant))
}

fn read(row: &Row<'_>) -> rusqlite::Result<Candidate> {
    let details = row.get_ref(parcels::MORE)?.as_str()?;
    let details: ParcelDetails =
        serde_json::from_str(details).map_err(|error| damaged(parcels::MORE, error))?;
    let manifest = row.get::<_, Option<_>>(parcels::MORE + 1)?.map(Ulid::from_bytes);
    Ok(Candidate { parcel: parcels::read(row)?, details, manifest })
}

fn document(row: &Row<'_>) -> rusqlite::Result<Manifest> {
    let document = row.get_ref(0)?.as_blob()?;
    serde_json::from_slice(document).map_err(|error| damaged(0, error))
}
