//! The warnings, for values that look unlikely but are accepted.

use rust_decimal::Decimal;

use super::{super::field_types::Text, WarningText};
use crate::model::{CountryCode, FieldFault, Language, Warning, WarningCode};

pub(crate) fn unknown_field(name: &str, meant: Option<&str>) -> WarningText {
    let (en, es) = match meant {
        Some(meant) => (
            format!("`{name}` is not part of the API and was ignored; did you mean `{meant}`?"),
            format!("`{name}` no forma parte de la API y se ignoró; ¿quiso decir `{meant}`?"),
        ),
        None => (
            format!("`{name}` is not part of the API and was ignored: remove it."),
            format!("`{name}` no forma parte de la API y se ignoró: elimínelo."),
        ),
    };
    WarningText::new(WarningCode::UnknownField, en, es)
}

pub(crate) fn more_unknown_fields(count: usize) -> WarningText {
    WarningText::new(
        WarningCode::UnknownField,
        format!(
            "This field and {count} more are not part of the API and were ignored: remove them."
        ),
        format!("Este campo y {count} más no forman parte de la API y se ignoraron: elimínelos."),
    )
}

/// Converts the fault of a field that is ignored if it is wrong.
pub(crate) fn value_ignored(fault: FieldFault) -> Warning {
    let FieldFault { field, message: en, message_es: es, suggestion, .. } = fault;
    let (meant, meant_es) = suggestion.map_or_else(Default::default, |meant| {
        (format!(" Did you mean {meant}?"), format!(" ¿Quiso decir {meant}?"))
    });
    let text = WarningText::new(
        WarningCode::ValueIgnored,
        format!("The value was ignored. {en}{meant}"),
        format!("El valor se ignoró. {es}{meant_es}"),
    );
    text.at(&field)
}

pub(crate) fn text_cut(text: Text) -> WarningText {
    let max = text.max_characters();
    WarningText::new(
        WarningCode::TextCut,
        format!("The text was cut after {max} characters: shorten it."),
        format!("El texto se cortó después de {max} caracteres: acórtelo."),
    )
}

pub(crate) const NOT_PRINTABLE: WarningText = WarningText::constant(
    WarningCode::TextNotPrintable,
    "Some characters cannot be printed on the label: write them in Latin, Greek or Cyrillic letters.",
    "Algunos caracteres no se pueden imprimir en la etiqueta: escríbalos en letras latinas, griegas o cirílicas.",
);
pub(crate) const HIDDEN_CHARACTER: WarningText = WarningText::constant(
    WarningCode::TextHiddenCharacter,
    "The name contains an invisible character, which its script may need: check that it belongs there.",
    "El nombre contiene un carácter invisible, que su escritura puede requerir: revise que deba estar ahí.",
);

pub(crate) fn phone_country(country: CountryCode) -> WarningText {
    let (en, es) = (country.name(Language::En), country.name(Language::Es));
    let code = country.calling_code();
    WarningText::new(
        WarningCode::PhoneCountryMismatch,
        format!(
            "The telephone number does not have the country code of the address ({en}, +{code}): check it."
        ),
        format!(
            "El teléfono no tiene el código de país de la dirección ({es}, +{code}): revíselo."
        ),
    )
}

pub(crate) fn postal_code_format(country: CountryCode) -> WarningText {
    let (en, es) = (country.name(Language::En), country.name(Language::Es));
    WarningText::new(
        WarningCode::PostalCodeFormat,
        format!("This does not look like a postal code of this country ({en}): check it."),
        format!("No parece un código postal de este país ({es}): revíselo."),
    )
}

pub(crate) const POSTAL_CODE_MISSING: WarningText = WarningText::constant(
    WarningCode::PostalCodeMissing,
    "The postal code is missing: add it for faster delivery.",
    "Falta el código postal: agréguelo para una entrega más rápida.",
);

pub(crate) fn postal_state(owner: Option<&str>, given: &str) -> WarningText {
    let (en, es) = match owner {
        Some(owner) => (
            format!("The postal code belongs to {owner}, not {given}: check both."),
            format!("El código postal pertenece a {owner}, no a {given}: revise ambos."),
        ),
        None => (
            format!("The postal code does not belong to {given}: check both."),
            format!("El código postal no pertenece a {given}: revise ambos."),
        ),
    };
    WarningText::new(WarningCode::PostalStateMismatch, en, es)
}

pub(crate) fn state_unknown(country: CountryCode) -> WarningText {
    let (en, es) = (country.name(Language::En), country.name(Language::Es));
    WarningText::new(
        WarningCode::StateUnknown,
        format!("This is not a state or province of this country ({en}): check it."),
        format!("No es un estado o provincia de este país ({es}): revíselo."),
    )
}

pub(crate) const STATE_MISSING: WarningText = WarningText::constant(
    WarningCode::StateMissing,
    "The state or province is missing: add it for faster delivery.",
    "Falta el estado o la provincia: agréguelo para una entrega más rápida.",
);
pub(crate) const ID_TYPE_GUESSED: WarningText = WarningText::constant(
    WarningCode::NationalIdTypeGuessed,
    "The type of ID was inferred from its length: send idType cedula or ruc to be sure.",
    "El tipo de identificación se dedujo de su longitud: envíe idType cedula o ruc para asegurarlo.",
);
pub(crate) const ID_THIRD_DIGIT: WarningText = WarningText::constant(
    WarningCode::NationalIdCheckDigit,
    "The third digit of a cédula is rarely above 6: check the number.",
    "El tercer dígito de una cédula rara vez es mayor que 6: revise el número.",
);
pub(crate) const ID_CHECK_DIGIT: WarningText = WarningText::constant(
    WarningCode::NationalIdCheckDigit,
    "The check digit is wrong: check the number for typos.",
    "El dígito verificador no coincide: revise si el número tiene un error.",
);

pub(crate) fn city_of_other_department(given: &str) -> WarningText {
    WarningText::new(
        WarningCode::CityDepartmentMismatch,
        format!(
            "There is no municipality of this name in {given}: check the city and the department."
        ),
        format!(
            "No hay ningún municipio con este nombre en {given}: revise la ciudad y el departamento."
        ),
    )
}

pub(crate) const DEPARTMENT_UNKNOWN: WarningText = WarningText::constant(
    WarningCode::CityDepartmentMismatch,
    "This is not a department of Colombia: check it.",
    "No es un departamento de Colombia: revíselo.",
);
pub(crate) const BOTH_WEIGHTS: WarningText = WarningText::constant(
    WarningCode::BothWeightsGiven,
    "Both weights are given, and weightKg is used: send only one.",
    "Se indicaron ambos pesos y se usa weightKg: envíe solo uno.",
);

pub(crate) fn net_weight_above(net: Decimal) -> WarningText {
    let net = net.normalize();
    WarningText::new(
        WarningCode::NetWeightAboveWeight,
        format!(
            "The products weigh {net} kg without packaging, more than the parcel: check the weights."
        ),
        format!("Los productos pesan {net} kg sin embalaje, más que el paquete: revise los pesos."),
    )
}

pub(crate) const OVER_DECLARED: WarningText = WarningText::constant(
    WarningCode::DeclaredValueAboveProducts,
    "The declared value exceeds the sum of the products: check that freight or insurance explains it.",
    "El valor declarado supera la suma de los productos: verifique que el flete o el seguro lo expliquen.",
);
pub(crate) const HS_CODE_MISSING: WarningText = WarningText::constant(
    WarningCode::HsCodeMissing,
    "The HS code is missing: add it here or in customsInfo for faster customs clearance.",
    "Falta el código arancelario (HS): agréguelo aquí o en customsInfo para un trámite aduanero más rápido.",
);
pub(crate) const DESCRIPTION_MISSING: WarningText = WarningText::constant(
    WarningCode::CustomsDescriptionMissing,
    "The description of the goods is missing: add it here or in customsInfo for customs.",
    "Falta la descripción de la mercancía: agréguela aquí o en customsInfo para la aduana.",
);
pub(crate) const HS_CODE_LENGTH: WarningText = WarningText::constant(
    WarningCode::HsCodeFormat,
    "An HS code usually has 6 to 10 digits: check it.",
    "Un código arancelario (HS) suele tener de 6 a 10 dígitos: revíselo.",
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Warning;

    #[test]
    fn country_names_need_no_article() {
        let Warning { message, message_es, .. } = state_unknown(CountryCode::US).at("state");
        assert_eq!(
            [message, message_es],
            [
                "This is not a state or province of this country (United States): check it.",
                "No es un estado o provincia de este país (Estados Unidos): revíselo."
            ]
        );
    }
}
