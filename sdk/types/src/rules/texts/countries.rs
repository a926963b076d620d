//! The faults of single countries' rules.

use super::FaultText;
use crate::model::{CountryCode, FaultCode, Language};

// Ecuador.

pub(crate) const ECUADOR_ID_REQUIRED: FaultText = FaultText::missing(
    "Parcels to Ecuador require the receiver's cédula or RUC: add it.",
    "Los envíos a Ecuador requieren la cédula o el RUC del destinatario: agréguelo.",
);
pub(crate) const ECUADOR_ID_TYPE: FaultText = FaultText::unsupported(
    "Ecuadorian customs accepts only a cédula or a RUC: set idType to cedula or ruc.",
    "La aduana del Ecuador solo acepta la cédula o el RUC: ponga cedula o ruc en idType.",
);
pub(crate) const ECUADOR_ID_FORM: FaultText = FaultText::invalid(
    "A cédula has 10 digits and a RUC has 13: check the number.",
    "La cédula tiene 10 dígitos y el RUC 13: revise el número.",
);
pub(crate) const ECUADOR_CEDULA_FORM: FaultText = FaultText::invalid(
    "A cédula has 10 digits: check the number, or use idType ruc for a RUC.",
    "La cédula tiene 10 dígitos: revise el número, o use idType ruc si es un RUC.",
);
pub(crate) const ECUADOR_RUC_FORM: FaultText = FaultText::invalid(
    "A RUC has 13 digits: check the number, or use idType cedula for a cédula.",
    "El RUC tiene 13 dígitos: revise el número, o use idType cedula si es una cédula.",
);
pub(crate) const ECUADOR_ID_PROVINCE: FaultText = FaultText::invalid(
    "An Ecuadorian ID starts with a province code, 01 to 24, or with 30 or 50: check its first two digits.",
    "Una identificación ecuatoriana empieza con el código de la provincia, 01 a 24, o con 30 o 50: revise los dos primeros dígitos.",
);
pub(crate) const ECUADOR_RUC_THIRD_DIGIT: FaultText = FaultText::invalid(
    "The third digit of a RUC is never 7 or 8: check the number.",
    "El tercer dígito de un RUC nunca es 7 ni 8: revise el número.",
);
pub(crate) const ECUADOR_RUC_ESTABLISHMENT: FaultText = FaultText::invalid(
    "A RUC ends with an establishment number, 001 or above: check the last three digits.",
    "El RUC termina con el número de establecimiento, 001 o mayor: revise los tres últimos dígitos.",
);
pub(crate) const ECUADOR_PROVINCE_REQUIRED: FaultText = FaultText::missing(
    "Addresses in Ecuador require a province, such as Pichincha: add it.",
    "Las direcciones del Ecuador requieren la provincia, por ejemplo Pichincha: agréguela.",
);
pub(crate) const ECUADOR_PROVINCE: FaultText = FaultText::unknown(
    "This is not a province of Ecuador: use its name, its ISO code (EC-P) or its INEC code (17).",
    "No es una provincia del Ecuador: indique su nombre, su código ISO (EC-P) o su código INEC (17).",
);

pub(crate) fn six_digit_zip(country: CountryCode) -> FaultText {
    let (en, es) = (country.name(Language::En), country.name(Language::Es));
    FaultText::new(
        FaultCode::InvalidFormat,
        format!("Postal codes in {en} have 6 digits: correct it or leave it out."),
        format!("Los códigos postales de {es} tienen 6 dígitos: corríjalo u omítalo."),
    )
}

pub(crate) fn zip_of_other_province(zip: &str, owner: Option<&str>, given: &str) -> FaultText {
    let (en, es) = match owner {
        Some(owner) => (
            format!(
                "{zip} belongs to {owner}, not {given}: correct the postal code or the province."
            ),
            format!(
                "{zip} pertenece a {owner}, no a {given}: corrija el código postal o la provincia."
            ),
        ),
        None => (
            format!(
                "{zip} does not belong to {given} or any other province: correct it or leave it out."
            ),
            format!(
                "{zip} no pertenece a {given} ni a ninguna otra provincia: corríjalo u omítalo."
            ),
        ),
    };
    FaultText::new(FaultCode::Mismatch, en, es)
}

// Colombia.

pub(crate) const COLOMBIA_CITY: FaultText = FaultText::unknown(
    "This is not a municipality of Colombia: use its name in the DIVIPOLA list or its 5-digit code.",
    "No es un municipio de Colombia: use su nombre en la lista DIVIPOLA o su código de 5 dígitos.",
);
pub(crate) const COLOMBIA_ID_REQUIRED: FaultText = FaultText::missing(
    "Parcels to Colombia require the receiver's cédula: add it.",
    "Los envíos a Colombia requieren la cédula del destinatario: agréguela.",
);
pub(crate) const COLOMBIA_ID_TYPE: FaultText = FaultText::unsupported(
    "Colombian customs accepts only a cédula: set idType to cedula or leave it out.",
    "La aduana de Colombia solo acepta la cédula: ponga cedula en idType u omítalo.",
);
pub(crate) const COLOMBIA_ID_FORM: FaultText = FaultText::invalid(
    "A Colombian cédula has 6 to 10 digits, not all of them zero: check the number.",
    "La cédula colombiana tiene de 6 a 10 dígitos, no todos cero: revise el número.",
);

// Mexico.

pub(crate) const MEXICO_STATE_REQUIRED: FaultText = FaultText::missing(
    "Addresses in Mexico require a state: set province to it, for example Jalisco.",
    "Las direcciones de México requieren el estado: indíquelo en province, por ejemplo Jalisco.",
);
pub(crate) const MEXICO_STATE: FaultText = FaultText::unknown(
    "This is not a state of Mexico: use its name, its ISO code (MX-JAL) or its usual abbreviation (Jal.).",
    "No es un estado de México: indique su nombre, su código ISO (MX-JAL) o su abreviatura usual (Jal.).",
);
pub(crate) const MEXICO_TWO_STATES: FaultText = FaultText::mismatch(
    "province and state name different states: send one of them.",
    "province y state indican estados distintos: envíe solo uno.",
);
pub(crate) const MEXICO_ZIP_REQUIRED: FaultText = FaultText::missing(
    "Addresses in Mexico require a postal code: add its 5 digits.",
    "Las direcciones de México requieren el código postal: agregue sus 5 dígitos.",
);
pub(crate) const MEXICO_ZIP_FORM: FaultText = FaultText::invalid(
    "A Mexican postal code has 5 digits: correct it.",
    "Un código postal mexicano tiene 5 dígitos: corríjalo.",
);
pub(crate) const MEXICO_CURP: FaultText = FaultText::invalid(
    "This looks like a CURP (18 characters): use the RFC (12 or 13) or leave it out.",
    "Parece una CURP (18 caracteres): indique el RFC (12 o 13) u omítalo.",
);
pub(crate) const MEXICO_RFC_FORM: FaultText = FaultText::invalid(
    "An RFC has 3 or 4 letters, a date as YYMMDD and 3 characters: correct it or leave it out.",
    "El RFC tiene 3 o 4 letras, una fecha AAMMDD y 3 caracteres: corríjalo u omítalo.",
);
pub(crate) const MEXICO_RFC_DATE: FaultText = FaultText::invalid(
    "The six digits of an RFC are a date as YYMMDD, and this date does not exist: check them.",
    "Los seis dígitos del RFC son una fecha AAMMDD, y esta fecha no existe: revíselos.",
);
