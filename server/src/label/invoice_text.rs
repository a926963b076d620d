//! The fixed texts of an invoice, in both languages. The destination's language comes first.

use parcelo::{ContentsCategory, Language};

/// A text in English and Spanish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term {
    en: &'static str,
    es: &'static str,
}

const fn term(en: &'static str, es: &'static str) -> Term {
    Term { en, es }
}

impl Term {
    pub(super) fn pick(self, language: Language) -> &'static str {
        language.pick(self.en, self.es)
    }

    /// Returns both languages; a text that is the same in both appears once.
    pub(super) fn both(self, first: Language) -> String {
        let (one, other) = (self.pick(first), self.pick(second(first)));
        if one == other { one.to_owned() } else { format!("{one} / {other}") }
    }
}

/// Returns the other language of the paper.
pub(super) fn second(first: Language) -> Language {
    match first {
        Language::En => Language::Es,
        Language::Es => Language::En,
    }
}

pub(super) const TITLE: Term = term("COMMERCIAL INVOICE", "FACTURA COMERCIAL");
pub(super) const EXPORTER: Term = term("EXPORTER", "EXPORTADOR");
pub(super) const CONSIGNEE: Term = term("CONSIGNEE", "CONSIGNATARIO");
pub(super) const NUMBER: Term = term("Number", "Número");
pub(super) const DATE: Term = term("Date", "Fecha");
pub(super) const ORDER: Term = term("Order", "Pedido");
pub(super) const REFERENCE: Term = term("Reference", "Referencia");
pub(super) const AWB: Term = term("Air waybill", "Guía aérea");
pub(super) const INCOTERM: Term = term("Incoterms 2020", "Incoterms 2020");
pub(super) const CONTENTS: Term = term("Contents", "Contenido");
pub(super) const DESTINATION: Term = term("Destination", "Destino");
pub(super) const PACKAGES: Term = term("Packages", "Bultos");
pub(super) const GROSS_WEIGHT: Term = term("Gross weight", "Peso bruto");
pub(super) const CURRENCY: Term = term("Currency", "Moneda");
pub(super) const SIZE: Term = term("Size", "Medidas");
pub(super) const ITEM_NUMBER: Term = term("No.", "N.º");
pub(super) const DESCRIPTION: Term =
    term("Description of the goods", "Descripción de la mercancía");
pub(super) const HS_CODE: Term = term("HS code", "Código SA");
pub(super) const ORIGIN: Term = term("Origin", "Origen");
pub(super) const QUANTITY: Term = term("Quantity", "Cantidad");
pub(super) const NET_KG: Term = term("Net kg", "Neto kg");
pub(super) const UNIT_VALUE: Term = term("Unit value", "Valor unitario");
pub(super) const AMOUNT: Term = term("Amount", "Importe");
pub(super) const SUM: Term = term("Total of the items", "Total de los artículos");
pub(super) const DECLARED: Term = term("Declared customs value", "Valor declarado en aduana");
pub(super) const STATEMENT: Term = term(
    "I declare that the information on this invoice is true and correct.",
    "Declaro que los datos de esta factura son verdaderos y correctos.",
);
pub(super) const SIGNATURE: Term = term("Name and signature", "Nombre y firma");
pub(super) const PLACE: Term = term("Place and date", "Lugar y fecha");
pub(super) const PAGE: Term = term("Page", "Página");

/// Returns the name of a category of contents, or `None` for a category of a later version.
pub(super) fn contents_category(category: &ContentsCategory) -> Option<Term> {
    Some(match category {
        ContentsCategory::SaleOfGoods => term("Sale of goods", "Venta de mercancías"),
        ContentsCategory::Gift => term("Gift", "Regalo"),
        ContentsCategory::Documents => term("Documents", "Documentos"),
        ContentsCategory::CommercialSample => term("Commercial sample", "Muestra comercial"),
        ContentsCategory::ReturnedGoods => term("Returned goods", "Mercancía devuelta"),
        ContentsCategory::Other => term("Other", "Otro"),
        // `ContentsCategory` is non-exhaustive.
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use parcelo::CountryCode;

    use super::*;
    use crate::domain::country_language;

    #[test]
    fn every_contents_category_has_its_name() {
        for category in ContentsCategory::KNOWN {
            assert!(contents_category(category).is_some(), "{category}");
        }
    }

    #[test]
    fn the_destinations_language_is_first_and_the_other_beside_it() {
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
