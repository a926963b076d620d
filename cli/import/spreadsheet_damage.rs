//! Damage by spreadsheets, which treat telephone numbers and IDs as quantities: telephone numbers without their `+`,
//! and long numbers shortened to `5.93E+11`. Also currency signs and country names that people write instead of a code.

use parcelo::{
    CountryCode,
    model::{Warning, WarningCode},
};
use serde_json::Value;

use super::row::RowFault;
use crate::texts::import as texts;

const PHONES: [(&str, &str); 2] = [
    ("/sender/phone", "/sender/address/country"),
    ("/receiver/phone", "/receiver/address/country"),
];

/// Further fields whose cells may consist of digits. Two references that are shortened to the same text would be one
/// order.
const DIGITS: [&str; 6] = [
    "/externalOrderId",
    "/customerReference",
    "/trackingNumber",
    "/receiver/nationalId",
    "/customsInfo/hsCode",
    "/receiver/address/zipCode",
];

/// National numbering plans (ITU-T E.164): the calling code, the trunk prefix that is dialled only within the country,
/// and the number of digits without both. A code is certain only if all numbers of the country are shorter without it.
const NATIONAL_PLANS: [(&str, &str, std::ops::RangeInclusive<usize>); 22] = [
    ("1", "", 10..=10),
    ("34", "", 9..=9),
    ("51", "0", 8..=9),
    ("52", "", 10..=10),
    ("54", "0", 10..=11),
    ("55", "0", 10..=11),
    ("56", "", 9..=9),
    ("57", "", 10..=10),
    ("58", "0", 10..=10),
    ("86", "0", 11..=11),
    ("502", "", 8..=8),
    ("503", "", 8..=8),
    ("504", "", 8..=8),
    ("505", "", 8..=8),
    ("506", "", 8..=8),
    ("507", "", 7..=8),
    ("509", "", 8..=8),
    ("591", "0", 8..=8),
    ("593", "0", 8..=9),
    ("595", "0", 9..=9),
    ("597", "", 6..=7),
    ("598", "", 8..=8),
];

/// Fields whose cells are written with a leading apostrophe, so that a spreadsheet keeps their zeros or their `+`; the
/// exports of Shopify have it. In other fields an apostrophe is part of the text.
const MARKED_AS_TEXT: [&str; 6] = [
    "/sender/phone",
    "/sender/address/zipCode",
    "/receiver/phone",
    "/receiver/nationalId",
    "/receiver/address/zipCode",
    "/customsInfo/hsCode",
];

/// Removes the apostrophe that marks a cell as text.
pub(super) fn drop_apostrophes(order: &mut Value) {
    for path in MARKED_AS_TEXT {
        let Some(cell) = order.pointer_mut(path) else { continue };
        if let Some(text) = cell.as_str().and_then(|text| text.strip_prefix('\'')) {
            *cell = Value::from(text);
        }
    }
}

/// Restores the `+` of telephone numbers where it is certain. Returns a warning for each.
pub(super) fn repair_phones(order: &mut Value) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for (phone, country) in PHONES {
        let country = order.pointer(country).and_then(Value::as_str);
        let Some(country) = country.and_then(|code| CountryCode::parse(code).ok()) else {
            continue;
        };
        let Some(written) = order.pointer_mut(phone) else { continue };
        let Some(whole) = written.as_str().and_then(|text| restore_plus(text, country)) else {
            continue;
        };
        let message = texts::PLUS_ADDED.with(&[("phone", &whole)]);
        let field = phone.trim_start_matches('/').replace('/', ".");
        let code = WarningCode::from("PHONE_REPAIRED");
        warnings.push(Warning::new(code, field, (message.en, message.es)));
        *written = Value::from(whole);
    }
    warnings
}

/// Returns the number with its `+`, if that is all it lacks.
fn restore_plus(text: &str, country: CountryCode) -> Option<String> {
    let code = country.calling_code();
    let digits = digits(text)?;
    let rest = digits.strip_prefix(code)?;
    let (_, _, national) = NATIONAL_PLANS.iter().find(|(known, ..)| *known == code)?;
    national.contains(&rest.len()).then(|| format!("+{}", text.trim_start()))
}

/// Suggests the international form of a telephone number written as it is dialled within the country. It is only a
/// suggestion, because the number may belong to another country.
pub(super) fn suggest_international(order: &Value, field: &str) -> Option<String> {
    let path = format!("/{}", field.replace('.', "/"));
    let (phone, country) = PHONES.iter().find(|(phone, _)| *phone == path)?;
    let country = CountryCode::parse(order.pointer(country)?.as_str()?).ok()?;
    add_calling_code(order.pointer(phone)?.as_str()?, country)
}

fn add_calling_code(text: &str, country: CountryCode) -> Option<String> {
    let code = country.calling_code();
    let (_, trunk, national) = NATIONAL_PLANS.iter().find(|(known, ..)| *known == code)?;
    let digits = digits(text)?;
    let number = digits.strip_prefix(trunk).unwrap_or(&digits);
    let fits = national.contains(&number.len()) && !number.starts_with('0');
    fits.then(|| format!("+{code}{number}"))
}

/// Signs that belong to a single currency; `$` is used for a dozen.
const CURRENCY_SIGNS: [(&str, &str); 5] =
    [("US$", "USD"), ("U$S", "USD"), ("€", "EUR"), ("R$", "BRL"), ("S/", "PEN")];

/// Suggests the currency code for a sign in its place.
pub(super) fn suggest_currency(order: &Value, field: &str) -> Option<String> {
    let cell =
        order.pointer("/parcelDetails/currency").filter(|_| field == "parcelDetails.currency")?;
    let cell = cell.as_str()?.to_uppercase();
    let (_, code) = CURRENCY_SIGNS.iter().find(|(sign, _)| *sign == cell)?;
    Some((*code).to_owned())
}

/// Returns the digits of a number that consists of digits and separators.
fn digits(text: &str) -> Option<String> {
    let is_written_so = text.chars().all(|c| c.is_ascii_digit() || " ().-".contains(c));
    is_written_so.then(|| text.chars().filter(char::is_ascii_digit).collect())
}

/// Returns a fault for each number that was shortened; its missing digits cannot be recovered.
pub(super) fn find_shortened_numbers(order: &Value) -> impl Iterator<Item = RowFault> + '_ {
    let paths = PHONES.iter().map(|(phone, _)| *phone).chain(DIGITS);
    paths.filter_map(|path| {
        let text = order.pointer(path)?.as_str().filter(|text| is_shortened(text))?;
        let field = Some(path.trim_start_matches('/').replace('/', "."));
        let message = texts::SHORTENED.with(&[("cell", text)]);
        Some(RowFault { field, ..RowFault::new("SHORTENED_NUMBER", message) })
    })
}

/// Returns `true` if a text looks like `5.93991E+11`, with a decimal point or comma.
fn is_shortened(text: &str) -> bool {
    let Some((mantissa, exponent)) = text.split_once(['E', 'e']) else { return false };
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (whole, decimals) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, "0"));
    exponent.strip_prefix('+').is_some_and(all_digits) && all_digits(whole) && all_digits(decimals)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lost_plus_is_restored_if_code_and_length_fit() {
        let table = [
            ("593991234567", "EC", Some("+593991234567")),
            ("593 99 123-4567", "EC", Some("+593 99 123-4567")),
            ("13055550100", "US", Some("+13055550100")),
            ("573001234567", "CO", Some("+573001234567")),
            // The number is complete, local, another country's, too long, or too short.
            ("+593991234567", "EC", None),
            ("0991234567", "EC", None),
            ("5712345678", "CO", None),
            ("573001234567", "EC", None),
            ("5939912345678", "EC", None),
            ("59399", "EC", None),
            ("593991234567x", "EC", None),
        ];
        for (written, country, expected) in table {
            let country = CountryCode::parse(country).unwrap();
            assert_eq!(restore_plus(written, country).as_deref(), expected, "{written}");
        }
    }

    #[test]
    fn a_national_number_gets_its_country_code_suggested() {
        let table = [
            ("0991234567", "EC", Some("+593991234567")),
            ("099 123-4567", "EC", Some("+593991234567")),
            // The spreadsheet removed the leading zero.
            ("991234567", "EC", Some("+593991234567")),
            ("(305) 555-0100", "US", Some("+13055550100")),
            ("3001234567", "CO", Some("+573001234567")),
            // Zeros that mean something else, other lengths, no number, a country whose plan is not known.
            ("00593991234567", "EC", None),
            ("0099123456", "EC", None),
            ("0300123456", "CO", None),
            ("099123", "EC", None),
            ("+0991234567", "EC", None),
            ("0991234567", "FR", None),
            ("", "EC", None),
        ];
        for (written, country, expected) in table {
            let country = CountryCode::parse(country).unwrap();
            assert_eq!(add_calling_code(written, country).as_deref(), expected, "{written}");
        }
        let order =
            json!({ "receiver": { "phone": "0991234567", "address": { "country": "EC" } } });
        let suggested = |field| suggest_international(&order, field);
        assert_eq!(suggested("receiver.phone").as_deref(), Some("+593991234567"));
        assert_eq!((suggested("sender.phone"), suggested("receiver.email")), (None, None));
    }

    #[test]
    fn each_repaired_number_has_a_warning() {
        let mut order = json!({
            "sender": { "phone": "13055550100", "address": { "country": "US" } },
            "receiver": { "phone": "+593991234567", "address": { "country": "EC" } },
        });
        let warnings = repair_phones(&mut order);
        assert_eq!(order["sender"]["phone"], "+13055550100");
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        assert_eq!(warning.field, "sender.phone");
        assert!(repair_phones(&mut order).is_empty());
        assert!(repair_phones(&mut json!({ "sender": { "phone": 5 } })).is_empty());
    }

    #[test]
    fn a_leading_apostrophe_is_removed_where_it_is_a_text_mark() {
        let mut order = json!({"externalOrderId": "'1", "receiver":
            {"fullName": "'t Hooft", "address": {"zipCode": "'01234"}}});
        drop_apostrophes(&mut order);
        let expected = json!({"externalOrderId": "'1", "receiver":
            {"fullName": "'t Hooft", "address": {"zipCode": "01234"}}});
        assert_eq!(order, expected);
    }

    #[test]
    fn a_number_in_scientific_notation_is_reported() {
        for shortened in ["5.93991E+11", "5,93E+11", "1.7e+09", "6E+11"] {
            assert!(is_shortened(shortened), "{shortened}");
        }
        for sound in ["593991234567", "E+11", "5.93E11", "1,5", "SB-E+1", ""] {
            assert!(!is_shortened(sound), "{sound}");
        }
        let faults: Vec<_> =
            find_shortened_numbers(&json!({ "receiver": { "phone": "5,93E+11" } })).collect();
        assert_eq!(faults[0].field.as_deref(), Some("receiver.phone"));
    }
}
