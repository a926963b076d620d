//! The faults: what refuses a request.

use rust_decimal::Decimal;

use super::Wrong;
use crate::model::{CountryCode, FaultCode, Language};

fn invalid(en: &'static str, es: &'static str) -> Wrong {
    Wrong::new(FaultCode::InvalidFormat, en, es)
}

fn missing(en: &'static str, es: &'static str) -> Wrong {
    Wrong::new(FaultCode::Required, en, es)
}

fn unknown(en: &'static str, es: &'static str) -> Wrong {
    Wrong::new(FaultCode::UnknownValue, en, es)
}

fn mismatch(en: &'static str, es: &'static str) -> Wrong {
    Wrong::new(FaultCode::Mismatch, en, es)
}

fn unsupported(en: &'static str, es: &'static str) -> Wrong {
    Wrong::new(FaultCode::NotSupported, en, es)
}

// The body as a whole.

pub(crate) fn body_no_object() -> Wrong {
    Wrong::new(
        FaultCode::MalformedJson,
        "The body must be one JSON object: write it between { and }.",
        "El cuerpo debe ser un objeto JSON: escríbalo entre { y }.",
    )
}

pub(crate) fn body_malformed(line: usize, column: usize) -> Wrong {
    Wrong::new(
        FaultCode::MalformedJson,
        format!("The body is not valid JSON: correct it at line {line}, column {column}."),
        format!("El cuerpo no es JSON válido: corríjalo en la línea {line}, columna {column}."),
    )
}

pub(crate) fn body_duplicate(name: &str) -> Wrong {
    Wrong::new(
        FaultCode::MalformedJson,
        format!("The member `{name}` stands twice in one object: keep one of the two."),
        format!("El miembro `{name}` está dos veces en un objeto: deje solo uno."),
    )
}

// Any field.

pub(crate) fn required() -> Wrong {
    missing("This field is required: give it a value.", "Este campo es obligatorio: complételo.")
}

pub(crate) fn not_text() -> Wrong {
    invalid("This must be a text in quotes.", "Debe ser un texto entre comillas.")
}

pub(crate) fn number_for_text() -> Wrong {
    invalid(
        "This is a number where a text is needed: write it in quotes, so that zeros in front are kept.",
        "Es un número donde se necesita un texto: escríbalo entre comillas para conservar los ceros iniciales.",
    )
}

pub(crate) fn not_number() -> Wrong {
    invalid(
        "This must be a JSON number: write it without quotes and with a decimal point.",
        "Debe ser un número JSON: escríbalo sin comillas y con punto decimal.",
    )
}

pub(crate) fn not_whole() -> Wrong {
    invalid(
        "This must be a whole number: leave out the decimals.",
        "Debe ser un número entero: quite los decimales.",
    )
}

pub(crate) fn not_truth() -> Wrong {
    invalid("This must be true or false, without quotes.", "Debe ser true o false, sin comillas.")
}

pub(crate) fn not_object() -> Wrong {
    invalid(
        "This must be a JSON object: write it between { and }.",
        "Debe ser un objeto JSON: escríbalo entre { y }.",
    )
}

pub(crate) fn not_list() -> Wrong {
    invalid(
        "This must be a JSON array: write it between [ and ].",
        "Debe ser un arreglo JSON: escríbalo entre [ y ].",
    )
}

pub(crate) fn too_long(most: usize) -> Wrong {
    Wrong::new(
        FaultCode::TooLong,
        format!("This has too many characters: use at most {most}."),
        format!("Tiene demasiados caracteres: use {most} como máximo."),
    )
}

pub(crate) fn too_short(least: usize) -> Wrong {
    Wrong::new(
        FaultCode::TooShort,
        format!("This has too few characters: use at least {least}."),
        format!("Tiene muy pocos caracteres: use {least} como mínimo."),
    )
}

pub(crate) fn too_many(most: usize) -> Wrong {
    Wrong::new(
        FaultCode::TooLong,
        format!("This list has too many elements: send at most {most} at a time."),
        format!("La lista tiene demasiados elementos: envíe {most} como máximo por vez."),
    )
}

pub(crate) fn too_few() -> Wrong {
    Wrong::new(
        FaultCode::TooShort,
        "This list is empty: give it at least one element.",
        "La lista está vacía: incluya al menos un elemento.",
    )
}

pub(crate) fn duplicate() -> Wrong {
    Wrong::new(
        FaultCode::Duplicate,
        "This element stands in the list already: send it once.",
        "Este elemento ya está en la lista: envíelo una sola vez.",
    )
}

pub(crate) fn control_character() -> Wrong {
    invalid(
        "This contains a control character, such as a line break: remove it.",
        "Contiene un carácter de control, como un salto de línea: elimínelo.",
    )
}

pub(crate) fn above_zero(most: Decimal) -> Wrong {
    Wrong::new(
        FaultCode::OutOfRange,
        format!("This must be above 0 and at most {most}."),
        format!("Debe ser mayor que 0 y como máximo {most}."),
    )
}

pub(crate) fn between(least: Decimal, most: Decimal) -> Wrong {
    Wrong::new(
        FaultCode::OutOfRange,
        format!("This must be at least {least} and at most {most}."),
        format!("Debe ser como mínimo {least} y como máximo {most}."),
    )
}

// The order itself.

pub(crate) fn key_required() -> Wrong {
    missing(
        "An idempotency key is required: give it here or in the header X-Idempotency-Key.",
        "La clave de idempotencia es obligatoria: envíela aquí o en el encabezado X-Idempotency-Key.",
    )
}

pub(crate) fn key_characters() -> Wrong {
    invalid(
        "Use letters (A-Z, a-z), digits, hyphens and underscores only.",
        "Use solo letras (A-Z, a-z), dígitos, guiones y guiones bajos.",
    )
}

pub(crate) fn key_mismatch() -> Wrong {
    mismatch(
        "The body and the header X-Idempotency-Key name different keys: send one of them, or the same twice.",
        "El cuerpo y el encabezado X-Idempotency-Key indican claves distintas: envíe una sola, o la misma en ambos.",
    )
}

pub(crate) fn tracking_number() -> Wrong {
    invalid(
        "Use letters (A-Z, a-z), digits and hyphens only, with no hyphen at either end.",
        "Use solo letras (A-Z, a-z), dígitos y guiones, sin guion al inicio ni al final.",
    )
}

pub(crate) fn tracking_number_reserved() -> Wrong {
    unsupported(
        "Numbers that start with SB are reserved for the sandbox: choose another one, or leave it out.",
        "Los números que empiezan con SB están reservados para el sandbox: elija otro u omítalo.",
    )
}

pub(crate) fn tracking_number_of_production() -> Wrong {
    unsupported(
        "In the sandbox a tracking number starts with SB: put SB in front, or leave the number out.",
        "En el sandbox el número de guía empieza con SB: antepóngale SB u omita el número.",
    )
}

// People and places.

pub(crate) fn phone() -> Wrong {
    invalid(
        "Write the telephone number with + and include the country code, such as +593 99 123 4567.",
        "Escriba el teléfono con + e incluya el código de país, por ejemplo +593 99 123 4567.",
    )
}

pub(crate) fn email() -> Wrong {
    invalid(
        "This is no e-mail address: write it as name@example.com, with no name before it.",
        "No es un correo electrónico: escríbalo como nombre@ejemplo.com, sin un nombre delante.",
    )
}

pub(crate) fn country() -> Wrong {
    unknown(
        "This is no ISO 3166-1 country code: use two upper-case letters, such as EC.",
        "No es un código de país ISO 3166-1: use dos letras mayúsculas, como EC.",
    )
}

pub(crate) fn destination_unsupported() -> Wrong {
    unsupported(
        "Parcels are not shipped to this country: choose another destination or ask your account manager.",
        "No se envían paquetes a este país: elija otro destino o consulte a su ejecutivo de cuenta.",
    )
}

pub(crate) fn id_type() -> Wrong {
    unknown("Use cedula, ruc, passport or dni.", "Use cedula, ruc, passport o dni.")
}

// Ecuador.

pub(crate) fn ecuador_id_required() -> Wrong {
    missing(
        "Parcels to Ecuador need the receiver's cédula or RUC: add it.",
        "Los envíos a Ecuador requieren la cédula o el RUC del destinatario: agréguelo.",
    )
}

pub(crate) fn ecuador_id_type() -> Wrong {
    unsupported(
        "Ecuador's customs accepts a cedula or a ruc: give one of them.",
        "La aduana del Ecuador acepta cedula o ruc: indique uno de ellos.",
    )
}

pub(crate) fn ecuador_id_form() -> Wrong {
    invalid(
        "A cédula has 10 digits and a RUC has 13: check the number.",
        "La cédula tiene 10 dígitos y el RUC 13: revise el número.",
    )
}

pub(crate) fn ecuador_cedula_form() -> Wrong {
    invalid(
        "A cédula has 10 digits: check the number, or use idType ruc for a RUC.",
        "La cédula tiene 10 dígitos: revise el número, o use idType ruc si es un RUC.",
    )
}

pub(crate) fn ecuador_ruc_form() -> Wrong {
    invalid(
        "A RUC has 13 digits: check the number, or use idType cedula for a cédula.",
        "El RUC tiene 13 dígitos: revise el número, o use idType cedula si es una cédula.",
    )
}

pub(crate) fn ecuador_id_province() -> Wrong {
    invalid(
        "An Ecuadorian id starts with a province, 01 to 24, or with 30 or 50: check its first two digits.",
        "Una identificación ecuatoriana empieza con la provincia, 01 a 24, o con 30 o 50: revise los dos primeros dígitos.",
    )
}

pub(crate) fn ecuador_ruc_third_digit() -> Wrong {
    invalid(
        "The third digit of a RUC is never 7 or 8: check the number.",
        "El tercer dígito de un RUC nunca es 7 ni 8: revise el número.",
    )
}

pub(crate) fn ecuador_ruc_establishment() -> Wrong {
    invalid(
        "A RUC ends with its establishment, 001 or above: check the last three digits.",
        "El RUC termina con el establecimiento, 001 o mayor: revise los tres últimos dígitos.",
    )
}

pub(crate) fn ecuador_province_required() -> Wrong {
    missing(
        "Addresses in Ecuador need their province, such as Pichincha: add it.",
        "Las direcciones del Ecuador requieren la provincia, por ejemplo Pichincha: agréguela.",
    )
}

pub(crate) fn ecuador_province() -> Wrong {
    unknown(
        "This is no province of Ecuador: give its name, its ISO code (EC-P) or its INEC code (17).",
        "No es una provincia del Ecuador: indique su nombre, su código ISO (EC-P) o su código INEC (17).",
    )
}

pub(crate) fn six_digit_zip(country: CountryCode) -> Wrong {
    let (en, es) = (country.name(Language::En), country.name(Language::Es));
    Wrong::new(
        FaultCode::InvalidFormat,
        format!("A postal code of {en} has 6 digits: correct it or leave it out."),
        format!("Un código postal de {es} tiene 6 dígitos: corríjalo u omítalo."),
    )
}

pub(crate) fn zip_of_other_province(zip: &str, owner: Option<&str>, given: &str) -> Wrong {
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
            format!("{zip} belongs to no province, and not to {given}: correct or leave it out."),
            format!("{zip} no pertenece a ninguna provincia, ni a {given}: corríjalo u omítalo."),
        ),
    };
    Wrong::new(FaultCode::Mismatch, en, es)
}

// Colombia.

pub(crate) fn colombia_city() -> Wrong {
    unknown(
        "This is no municipality of Colombia: use its name in the DIVIPOLA list or its 5-digit code.",
        "No es un municipio de Colombia: use su nombre en la lista DIVIPOLA o su código de 5 dígitos.",
    )
}

pub(crate) fn colombia_id_required() -> Wrong {
    missing(
        "Parcels to Colombia need the receiver's cédula: add it.",
        "Los envíos a Colombia requieren la cédula del destinatario: agréguela.",
    )
}

pub(crate) fn colombia_id_type() -> Wrong {
    unsupported(
        "Colombia's customs accepts a cedula: give it, or leave idType out.",
        "La aduana de Colombia acepta cedula: indíquela u omita idType.",
    )
}

pub(crate) fn colombia_id_form() -> Wrong {
    invalid(
        "A Colombian cédula has 6 to 10 digits, not all of them zero: check the number.",
        "La cédula colombiana tiene de 6 a 10 dígitos, no todos cero: revise el número.",
    )
}

// Mexico.

pub(crate) fn mexico_state_required() -> Wrong {
    missing(
        "Addresses in Mexico need their state: give it in province, such as Jalisco.",
        "Las direcciones de México requieren el estado: indíquelo en province, por ejemplo Jalisco.",
    )
}

pub(crate) fn mexico_state() -> Wrong {
    unknown(
        "This is no state of Mexico: give its name, its ISO code (MX-JAL) or its usual short form (Jal.).",
        "No es un estado de México: indique su nombre, su código ISO (MX-JAL) o su abreviatura (Jal.).",
    )
}

pub(crate) fn mexico_two_states() -> Wrong {
    mismatch(
        "province and state name different states: send one of them.",
        "province y state indican estados distintos: envíe solo uno.",
    )
}

pub(crate) fn mexico_zip_required() -> Wrong {
    missing(
        "Addresses in Mexico need their postal code: add its 5 digits.",
        "Las direcciones de México requieren el código postal: agregue sus 5 dígitos.",
    )
}

pub(crate) fn mexico_zip_form() -> Wrong {
    invalid(
        "A Mexican postal code has 5 digits: correct it.",
        "Un código postal mexicano tiene 5 dígitos: corríjalo.",
    )
}

pub(crate) fn mexico_curp() -> Wrong {
    invalid(
        "This looks like a CURP (18 characters): give the RFC (12 or 13) or leave it out.",
        "Parece una CURP (18 caracteres): indique el RFC (12 o 13) u omítalo.",
    )
}

pub(crate) fn mexico_rfc_form() -> Wrong {
    invalid(
        "An RFC has 3 or 4 letters, a date as YYMMDD and 3 characters: correct it or leave it out.",
        "El RFC tiene 3 o 4 letras, una fecha AAMMDD y 3 caracteres: corríjalo u omítalo.",
    )
}

pub(crate) fn mexico_rfc_date() -> Wrong {
    invalid(
        "The six digits of an RFC are a date as YYMMDD, and this date does not exist: check them.",
        "Los seis dígitos del RFC son una fecha AAMMDD, y esta fecha no existe: revíselos.",
    )
}

// Weight, value and goods.

pub(crate) fn weight_required() -> Wrong {
    missing(
        "The weight is required: give weightKg or weightLbs.",
        "El peso es obligatorio: indique weightKg o weightLbs.",
    )
}

pub(crate) fn weights_disagree() -> Wrong {
    mismatch(
        "weightLbs and weightKg are more than 1 % apart: correct one or leave it out.",
        "weightLbs y weightKg difieren en más de 1 %: corrija uno u omítalo.",
    )
}

pub(crate) fn currency() -> Wrong {
    unknown(
        "This is no active ISO 4217 currency: use three upper-case letters, such as USD.",
        "No es una moneda ISO 4217 vigente: use tres letras mayúsculas, como USD.",
    )
}

pub(crate) fn under_declared(sum: Decimal) -> Wrong {
    let sum = sum.normalize();
    Wrong::new(
        FaultCode::Mismatch,
        format!(
            "The products add up to {sum}, more than the declared value: declare at least that."
        ),
        format!(
            "Los productos suman {sum}, más que el valor declarado: declare al menos esa suma."
        ),
    )
}

pub(crate) fn hs_code() -> Wrong {
    invalid(
        "An HS code has digits only, with dots if you like, such as 6109.10.",
        "Un código HS tiene solo dígitos, con puntos si se desea, como 6109.10.",
    )
}
