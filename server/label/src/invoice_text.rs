//! The fixed texts of an invoice, in both languages. The destination's language comes first.

use parcelo_types::{ContentsCategory, Language};

/// A text in English and Spanish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BilingualText {
    en: &'static str,
    es: &'static str,
}

const fn bilingual(en: &'static str, es: &'static str) -> BilingualText {
    BilingualText { en, es }
}

impl BilingualText {
    pub(super) fn pick(self, language: Language) -> &'static str {
        language.pick(self.en, self.es)
    }

    /// Returns the text in both languages, `first` first; a text that is the same in both appears once.
    pub(super) fn both(self, first: Language) -> String {
        let (one, other) = (self.pick(first), self.pick(other_language(first)));
        if one == other { one.to_owned() } else { format!("{one} / {other}") }
    }
}

/// Returns the other language of the invoice.
pub(super) fn other_language(first: Language) -> Language {
    match first {
        Language::En => Language::Es,
        Language::Es => Language::En,
    }
}

pub(super) const TITLE: BilingualText = bilingual("COMMERCIAL INVOICE", "FACTURA COMERCIAL");
pub(super) const EXPORTER: BilingualText = bilingual("EXPORTER", "EXPORTADOR");
pub(super) const CONSIGNEE: BilingualText = bilingual("CONSIGNEE", "CONSIGNATARIO");
pub(super) const NUMBER: BilingualText = bilingual("Number", "Número");
pub(super) const DATE: BilingualText = bilingual("Date", "Fecha");
pub(super) const ORDER: BilingualText = bilingual("Order", "Pedido");
pub(super) const REFERENCE: BilingualText = bilingual("Reference", "Referencia");
pub(super) const AWB: BilingualText = bilingual("Air waybill", "Guía aérea");
pub(super) const INCOTERM: BilingualText = bilingual("Incoterms 2020", "Incoterms 2020");
pub(super) const CONTENTS: BilingualText = bilingual("Contents", "Contenido");
pub(super) const DESTINATION: BilingualText = bilingual("Destination", "Destino");
pub(super) const PACKAGES: BilingualText = bilingual("Packages", "Bultos");
pub(super) const GROSS_WEIGHT: BilingualText = bilingual("Gross weight", "Peso bruto");
pub(super) const CURRENCY: BilingualText = bilingual("Currency", "Moneda");
pub(super) const SIZE: BilingualText = bilingual("Size", "Medidas");
pub(super) const ITEM_NUMBER: BilingualText = bilingual("No.", "N.º");
pub(super) const DESCRIPTION: BilingualText =
    bilingual("Description of the goods", "Descripción de la mercancía");
pub(super) const HS_CODE: BilingualText = bilingual("HS code", "Código SA");
pub(super) const ORIGIN: BilingualText = bilingual("Origin", "Origen");
pub(super) const QUANTITY: BilingualText = bilingual("Quantity", "Cantidad");
pub(super) const NET_KG: BilingualText = bilingual("Net kg", "Neto kg");
pub(super) const UNIT_VALUE: BilingualText = bilingual("Unit value", "Valor unitario");
pub(super) const AMOUNT: BilingualText = bilingual("Amount", "Importe");
pub(super) const SUM: BilingualText = bilingual("Total of the items", "Total de los artículos");
pub(super) const DECLARED: BilingualText =
    bilingual("Declared customs value", "Valor declarado en aduana");
pub(super) const STATEMENT: BilingualText = bilingual(
    "I declare that the information on this invoice is true and correct.",
    "Declaro que los datos de esta factura son verdaderos y correctos.",
);
pub(super) const SIGNATURE: BilingualText = bilingual("Name and signature", "Nombre y firma");
pub(super) const PLACE: BilingualText = bilingual("Place and date", "Lugar y fecha");
pub(super) const PAGE: BilingualText = bilingual("Page", "Página");

/// Returns the name of a category of contents, or `None` for a category of a later version.
pub(super) fn contents_category(category: &ContentsCategory) -> Option<BilingualText> {
    Some(match category {
        ContentsCategory::SaleOfGoods => bilingual("Sale of goods", "Venta de mercancías"),
        ContentsCategory::Gift => bilingual("Gift", "Regalo"),
        ContentsCategory::Documents => bilingual("Documents", "Documentos"),
        ContentsCategory::CommercialSample => bilingual("Commercial sample", "Muestra comercial"),
        ContentsCategory::ReturnedGoods => bilingual("Returned goods", "Mercancía devuelta"),
        ContentsCategory::Other => bilingual("Other", "Otro"),
        // `ContentsCategory` is non-exhaustive.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use parcelo_types::CountryCode;

    use super::*;
    use parcelo_domain::country_language;

    #[test]
    fn every_contents_category_has_its_name() {
        for category in ContentsCategory::KNOWN {
            assert!(contents_category(category).is_some(), "{category}");
        }
    }

    #[test]
    fn the_destination_language_comes_first() {
        let table = [
            ("EC", "FACTURA COMERCIAL / COMMERCIAL INVOICE"),
            ("MX", "FACTURA COMERCIAL / COMMERCIAL INVOICE"),
            ("US", "COMMERCIAL INVOICE / FACTURA COMERCIAL"),
            ("BR", "COMMERCIAL INVOICE / FACTURA COMERCIAL"),
        ];
        for (country, title) in table {
            let first = country_language(CountryCode::parse(country).unwrap());
            assert_eq!(TITLE.both(first), title, "{country}");
        }
        assert_eq!(INCOTERM.both(Language::Es), "Incoterms 2020");
    }
}
