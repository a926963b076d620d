//! Manifests, as they are read by their ids.

use parcelo::model::Manifest;
use ulid::Ulid;

use super::{
    Store, StoreError,
    generations::{current, is_current},
    sql::given,
};
use crate::domain::{ParcelRowId, Tenant};

impl Store {
    /// Returns the air waybill that a version of a parcel's label names: the parcel was put under it before.
    pub async fn awb_on(
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
            db.first(sql, given![parcel, version], |row| row.get(0)).await
        })
        .await
    }

    /// Returns one of the tenant's manifests.
    pub async fn manifest(&self, tenant: Tenant, id: Ulid) -> Result<Option<Manifest>, StoreError> {
        self.query(async move |db| {
            let sql = concat!(
                "SELECT document FROM manifests WHERE public_id = $1 AND tenant = ",
                current!("$2")
            );
            let given = given![id.to_bytes(), tenant.number()];
            db.first(sql, given, |row| row.json(0)).await
        })
        .await
    }
}
