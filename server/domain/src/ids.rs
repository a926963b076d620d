//! The format of public ids: a prefix for their kind, and a ULID.

use parcelo_types::model::{LabelId, ManifestId, ParcelId};
use ulid::{ULID_LEN, Ulid};

/// Crockford's alphabet of base 32.
pub const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Returns the public id of a parcel.
pub fn parcel_id(ulid: Ulid) -> ParcelId {
    ParcelId::unchecked(public_id("par", ulid))
}

/// Returns the id of a parcel's label.
pub fn label_id(ulid: Ulid) -> LabelId {
    LabelId::unchecked(public_id("lbl", ulid))
}

/// Returns the public id of a manifest.
pub fn manifest_id(ulid: Ulid) -> ManifestId {
    ManifestId::unchecked(public_id("man", ulid))
}

/// Returns a public id: a prefix for its kind, and a ULID.
pub fn public_id(kind: &str, ulid: Ulid) -> String {
    [kind, "_", &*ulid.array_to_str(&mut [0; ULID_LEN])].concat()
}
