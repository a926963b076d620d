//! The faults of requests; those of single countries' rules are in `countries`.

use rust_decimal::Decimal;

use super::FaultText;
use crate::model::{CurrencyCode, FaultCode};

// The body as a whole.

pub(crate) const BODY_NOT_OBJECT: FaultText = FaultText::constant(
    FaultCode::MalformedJson,
    "The body must be one JSON object: write it between { and }.",
    "El cuerpo debe ser un objeto JSON: escríbalo entre { y }.",
);

pub(crate) fn body_malformed((line, column): (usize, usize)) -> FaultText {
    FaultText::new(
        FaultCode::MalformedJson,
        format!("The body is not valid JSON: correct it at line {line}, column {column}."),
        format!("El cuerpo no es JSON válido: corríjalo en la línea {line}, columna {column}."),
    )
}

pub(crate) fn body_duplicate(name: &str) -> FaultText {
    FaultText::new(
        FaultCode::MalformedJson,
        format!("The member `{name}` appears twice in one object: keep one of the two."),
        format!("El miembro `{name}` aparece dos veces en un mismo objeto: deje solo uno."),
    )
}

// Any field.

/// The fault of an absent field.
pub const REQUIRED: FaultText =
    FaultText::missing("This field is required.", "Este campo es obligatorio.");
pub(crate) const NOT_TEXT: FaultText = FaultText::invalid(
    "This must be a string: write it in quotes.",
    "Debe ser una cadena de texto: escríbala entre comillas.",
);
pub(crate) const NUMBER_FOR_TEXT: FaultText = FaultText::invalid(
    "This must be a string, not a number: write it in quotes, so that leading zeros are kept.",
    "Debe ser una cadena de texto, no un número: escríbala entre comillas para conservar los ceros iniciales.",
);
pub(crate) const NOT_NUMBER: FaultText = FaultText::invalid(
    "This must be a JSON number, without quotes and with a decimal point, for example 1.25.",
    "Debe ser un número JSON, sin comillas y con punto decimal, por ejemplo 1.25.",
);
pub(crate) const NOT_WHOLE: FaultText = FaultText::invalid(
    "This must be a whole number: leave out the decimals.",
    "Debe ser un número entero: quite los decimales.",
);
pub(crate) const NOT_BOOLEAN: FaultText = FaultText::invalid(
    "This must be true or false, without quotes.",
    "Debe ser true o false, sin comillas.",
);
pub(crate) const NOT_OBJECT: FaultText = FaultText::invalid(
    "This must be a JSON object: write it between { and }.",
    "Debe ser un objeto JSON: escríbalo entre { y }.",
);
pub(crate) const NOT_LIST: FaultText = FaultText::invalid(
    "This must be a JSON array: write it between [ and ].",
    "Debe ser un arreglo JSON: escríbalo entre [ y ].",
);

pub(crate) fn too_long(max: usize) -> FaultText {
    FaultText::new(
        FaultCode::TooLong,
        format!("This has too many characters: use at most {max}."),
        format!("Tiene demasiados caracteres: use {max} como máximo."),
    )
}

pub(crate) fn too_short(min: usize) -> FaultText {
    FaultText::new(
        FaultCode::TooShort,
        format!("This has too few characters: use at least {min}."),
        format!("Tiene muy pocos caracteres: use {min} como mínimo."),
    )
}

pub(crate) const NOTHING_TO_SEARCH: FaultText = FaultText::constant(
    FaultCode::TooShort,
    "There is nothing to search for: type at least one letter or digit.",
    "No hay nada que buscar: escriba al menos una letra o un dígito.",
);

/// The list fields, with the singular and plural of their elements in English and Spanish.
const LISTS: [(&str, [&str; 2], [&str; 2]); 5] = [
    ("products", ["product", "products"], ["producto", "productos"]),
    (
        "trackingNumbers",
        ["tracking number", "tracking numbers"],
        ["número de rastreo", "números de rastreo"],
    ),
    ("events", ["event", "events"], ["evento", "eventos"]),
    ("allowedCountries", ["country", "countries"], ["país", "países"]),
    (
        "ipWhitelist",
        ["IP address or network", "IP addresses or networks"],
        ["dirección IP o red", "direcciones IP o redes"],
    ),
];

fn elements(list: &str) -> ([&'static str; 2], [&'static str; 2]) {
    let row = LISTS.iter().find(|(field, ..)| *field == list);
    row.map_or((["element", "elements"], ["elemento", "elementos"]), |(_, en, es)| (*en, *es))
}

pub(crate) fn too_many(max: usize, list: &str) -> FaultText {
    let ([_, en], [_, es]) = elements(list);
    FaultText::new(
        FaultCode::TooLong,
        format!("At most {max} {en} are allowed."),
        format!("Se permiten {max} {es} como máximo."),
    )
}

/// Returns the fault of an empty list; `list` is the name of its field.
pub fn too_few(list: &str) -> FaultText {
    let ([en, _], [es, _]) = elements(list);
    FaultText::new(
        FaultCode::TooShort,
        format!("This list is empty: at least one {en} is required."),
        format!("La lista está vacía: incluya al menos un {es}."),
    )
}

pub(crate) const DUPLICATE: FaultText = FaultText::constant(
    FaultCode::Duplicate,
    "This appears twice in the list: list it once.",
    "Aparece dos veces en la lista: inclúyalo una sola vez.",
);
pub(crate) const CONTROL_CHARACTER: FaultText = FaultText::invalid(
    "This contains a control character, such as a line break: remove it.",
    "Contiene un carácter de control, como un salto de línea: elimínelo.",
);
pub(crate) const HIDDEN_CHARACTER: FaultText = FaultText::invalid(
    "This contains an invisible character: type the text again without it.",
    "Contiene un carácter invisible: escriba el texto de nuevo sin él.",
);

pub(crate) fn above_zero(max: Decimal, unit: &str) -> FaultText {
    let (en, es) = group_thousands(max);
    FaultText::new(
        FaultCode::OutOfRange,
        format!("This must be more than 0 and at most {en} {unit}."),
        format!("Debe ser mayor que 0 y como máximo {es} {unit}."),
    )
}

pub(crate) fn between(min: Decimal, max: Decimal) -> FaultText {
    let (en, es) = group_thousands(max);
    FaultText::new(
        FaultCode::OutOfRange,
        format!("This must be at least {min} and at most {en}."),
        format!("Debe ser como mínimo {min} y como máximo {es}."),
    )
}

/// Returns a number with separated thousands, in English and Spanish. In Spanish the separator is a space, which no
/// country reads as a decimal point, and numbers of four digits have none.
fn group_thousands(number: Decimal) -> (String, String) {
    let number = number.to_string();
    let (whole, decimals) = number.split_at(number.find('.').unwrap_or(number.len()));
    let apart = |separator: &str| {
        let mut text = String::new();
        for (index, digit) in whole.chars().enumerate() {
            let is_apart = index > 0 && (whole.len() - index).is_multiple_of(3);
            text.push_str(if is_apart { separator } else { "" });
            text.push(digit);
        }
        text + decimals
    };
    let es = if whole.len() > 4 { apart("\u{a0}") } else { number.clone() };
    (apart(","), es)
}

// The order itself.

pub(crate) const KEY_REQUIRED: FaultText = FaultText::missing(
    "An idempotency key is required: send it here or in the header X-Idempotency-Key.",
    "La clave de idempotencia es obligatoria: envíela aquí o en el encabezado X-Idempotency-Key.",
);
pub(crate) const KEY_CHARACTERS: FaultText = FaultText::invalid(
    "Use letters (A-Z, a-z), digits, hyphens and underscores only.",
    "Use solo letras (A-Z, a-z), dígitos, guiones y guiones bajos.",
);
pub(crate) const KEY_MISMATCH: FaultText = FaultText::mismatch(
    "The idempotency keys in the body and in the headers X-Idempotency-Key and Idempotency-Key differ, or one header is sent twice: send a single key, and each header once.",
    "Las claves de idempotencia del cuerpo y de los encabezados X-Idempotency-Key e Idempotency-Key son distintas, o un encabezado está repetido: envíe una sola clave, y cada encabezado una vez.",
);
pub(crate) const TRACKING_NUMBER: FaultText = FaultText::invalid(
    "Use letters (A-Z, a-z), digits and hyphens only, with no hyphen at either end.",
    "Use solo letras (A-Z, a-z), dígitos y guiones, sin guion al inicio ni al final.",
);
pub(crate) const TRACKING_NUMBER_RESERVED: FaultText = FaultText::unsupported(
    "Tracking numbers that start with SB are reserved for the sandbox: choose another one or leave it out.",
    "Los números de rastreo que empiezan con SB están reservados para el entorno de pruebas: elija otro u omítalo.",
);
pub(crate) const TRACKING_NUMBER_NOT_SANDBOX: FaultText = FaultText::unsupported(
    "In the sandbox a tracking number must start with SB: put SB in front or leave the number out.",
    "En el entorno de pruebas el número de rastreo debe empezar con SB: antepóngale SB u omítalo.",
);

// People and places.

pub(crate) const PHONE: FaultText = FaultText::invalid(
    "Write the telephone number with + and include the country code, such as +593 99 123 4567.",
    "Escriba el teléfono con + e incluya el código de país, por ejemplo +593 99 123 4567.",
);
pub(crate) const EMAIL: FaultText = FaultText::invalid(
    "This is not an e-mail address: write it as name@example.com, without a display name.",
    "No es un correo electrónico: escríbalo como nombre@ejemplo.com, sin un nombre delante.",
);
pub(crate) const COUNTRY: FaultText = FaultText::unknown(
    "This is not an assigned ISO 3166-1 country code: use one such as EC, in upper case.",
    "No es un código de país asignado en ISO 3166-1: use uno como EC, en mayúsculas.",
);
pub(crate) const DESTINATION_UNSUPPORTED: FaultText = FaultText::unsupported(
    "Parcels are not shipped to this country: choose another destination or ask your account manager.",
    "No se envían paquetes a este país: elija otro destino o consulte a su ejecutivo de cuenta.",
);
pub(crate) const ID_TYPE: FaultText =
    FaultText::unknown("Use cedula, ruc, passport or dni.", "Use cedula, ruc, passport o dni.");

// Weight, value and goods.

pub(crate) const WEIGHT_REQUIRED: FaultText = FaultText::missing(
    "The weight is required: set weightKg or weightLbs.",
    "El peso es obligatorio: indique weightKg o weightLbs.",
);
pub(crate) const WEIGHTS_DISAGREE: FaultText = FaultText::mismatch(
    "weightLbs and weightKg differ by more than 1 %: correct one or leave it out.",
    "weightLbs y weightKg difieren en más del 1 %: corrija uno u omítalo.",
);
pub(crate) const CURRENCY: FaultText = FaultText::unknown(
    "This is not the code of an active ISO 4217 currency: use one such as USD, in upper case.",
    "No es el código de una moneda ISO 4217 vigente: use uno como USD, en mayúsculas.",
);
pub(crate) const MANY_LABELS: FaultText = FaultText::unknown(
    "Use PDF or ZPL: a PNG file has one label.",
    "Use PDF o ZPL: un archivo PNG tiene una sola etiqueta.",
);
pub(crate) const CONTENTS_CATEGORY: FaultText = FaultText::unknown(
    "Use SALE_OF_GOODS, GIFT, DOCUMENTS, COMMERCIAL_SAMPLE, RETURNED_GOODS or OTHER.",
    "Use SALE_OF_GOODS, GIFT, DOCUMENTS, COMMERCIAL_SAMPLE, RETURNED_GOODS u OTHER.",
);
pub(crate) const INCOTERM: FaultText = FaultText::unknown(
    "This is not a rule of Incoterms 2020: use one such as DAP or DDP, in upper case.",
    "No es una regla de Incoterms 2020: use una como DAP o DDP, en mayúsculas.",
);

pub(crate) fn under_declared(sum: Decimal, currency: CurrencyCode) -> FaultText {
    // An amount of money: 45.5 is 45.50.
    let mut sum = sum.normalize();
    sum.rescale(sum.scale().max(2));
    FaultText::new(
        FaultCode::Mismatch,
        format!(
            "The products add up to {currency} {sum}, more than the declared value: declare at least that amount."
        ),
        format!(
            "Los productos suman {currency} {sum}, más que el valor declarado: declare al menos esa suma."
        ),
    )
}

pub(crate) const HS_CODE_FORM: FaultText = FaultText::invalid(
    "An HS code consists of digits, optionally with dots, such as 6109.10.",
    "Un código arancelario (HS) consta de dígitos, con puntos opcionales, como 6109.10.",
);

// Manifests.

pub(crate) const AWB: FaultText = FaultText::invalid(
    "An air waybill has 3 digits, a hyphen and 8 digits, the last of which is a check digit: check the number.",
    "Una guía aérea tiene 3 dígitos, un guion y 8 dígitos, el último de ellos verificador: revise el número.",
);

pub(crate) fn awb_check_digit(expected: u32) -> FaultText {
    FaultText::new(
        FaultCode::InvalidFormat,
        format!("The check digit, the last one, is wrong: expected {expected}. Check the number."),
        format!(
            "El dígito verificador, el último, no es correcto: se espera {expected}. Revise el número."
        ),
    )
}

pub(crate) const FLIGHT_NUMBER: FaultText = FaultText::invalid(
    "Write the flight as airline and number, such as EK213.",
    "Escriba el vuelo como aerolínea y número, por ejemplo EK213.",
);
pub(crate) const DATE: FaultText = FaultText::invalid(
    "Write the date as YYYY-MM-DD, such as 2026-01-11.",
    "Escriba la fecha como AAAA-MM-DD, por ejemplo 2026-01-11.",
);
pub(crate) const AIRPORT: FaultText = FaultText::invalid(
    "An airport is an IATA code of 3 letters, such as MIA.",
    "Un aeropuerto es un código IATA de 3 letras, como MIA.",
);

// Carrier events and lists.

pub(crate) const PARCEL_STATUS: FaultText = FaultText::unknown(
    "This is not a parcel status: use one of the documented codes, such as IN_TRANSIT.",
    "No es un estado de paquete: use uno de los códigos documentados, como IN_TRANSIT.",
);

// Lists.

pub(crate) const DATE_OR_TIME: FaultText = FaultText::invalid(
    "Write a date such as 2026-01-10 or a time such as 2026-01-10T15:05:00Z; encode + as %2B.",
    "Escriba una fecha como 2026-01-10 o una hora como 2026-01-10T15:05:00Z; codifique + como %2B.",
);
pub(crate) const ENDS_BEFORE_START: FaultText = FaultText::mismatch(
    "createdTo is before createdFrom: swap them.",
    "createdTo es anterior a createdFrom: intercámbielos.",
);
