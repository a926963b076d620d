//! The fixed texts of a label, in English and Spanish.

use parcelo_domain::Layout;
use parcelo_types::IdType;

pub(super) const BRAND: &str = "PARCELO";
pub(super) const CROSS_BORDER: &str = "CROSS-BORDER / TRANSFRONTERIZO";
pub(super) const DOMESTIC: &str = "DOMESTIC / NACIONAL";
pub(super) const EXPORT: &str = "EXPORT / EXPORTACIÓN";
pub(super) const FROM: &str = "FROM / REMITENTE";
pub(super) const TO: &str = "TO / DESTINATARIO";
pub(super) const WEIGHT: &str = "WEIGHT / PESO";
pub(super) const PIECES: &str = "PCS / PZAS";
pub(super) const DATE: &str = "DATE / FECHA";
pub(super) const AWB: &str = "AWB / GUÍA AÉREA";
pub(super) const REFERENCE: &str = "REF / REFERENCIA";
pub(super) const CUSTOMS: &str = "CUSTOMS / ADUANA";
pub(super) const QUANTITY: &str = "QTY / CANT";
pub(super) const HS_CODE: &str = "HS / SA";
pub(super) const ORIGIN: &str = "ORIG.";
pub(super) const VALUE: &str = "VALUE / VALOR";
pub(super) const TOTAL: &str = "TOTAL";
pub(super) const ITEM: &str = "item / artículo";
pub(super) const ITEMS: &str = "items / artículos";
pub(super) const INSTRUCTIONS: &str = "DELIVERY / ENTREGA";
pub(super) const MORE_ITEMS: &str = "more: see the invoice / más: ver la factura";

/// The number of pieces, 1 of 1: every order is a single parcel.
pub(super) const ONE_PIECE: &str = "1 / 1";
/// The sign for a missing value.
pub(super) const MISSING_VALUE: &str = "—";

/// Returns the text of the sandbox band.
pub(super) const fn sandbox_notice(layout: Layout) -> &'static str {
    match layout {
        Layout::First => "SANDBOX  NO VÁLIDO / NOT FOR SHIPMENT",
        Layout::Second => "SANDBOX  NOT FOR SHIPMENT / NO VÁLIDO",
    }
}

/// Returns the name of a kind of national id, as it is printed.
pub(super) fn id_type_name(kind: Option<&IdType>) -> &'static str {
    match kind {
        Some(IdType::Cedula) => "CÉDULA",
        Some(IdType::Ruc) => "RUC",
        Some(IdType::Passport) => "PASSPORT / PASAPORTE",
        Some(IdType::Dni) => "DNI",
        // No kind, or one of a later version of the SDK: `IdType` is non-exhaustive.
        _ => "ID",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_national_id_has_its_name() {
        for kind in IdType::KNOWN {
            assert_ne!(id_type_name(Some(kind)), id_type_name(None), "{kind:?}");
        }
    }
}
