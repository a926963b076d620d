//! Ecuador: the province, its postal codes, the cédula and the RUC (spec: country rules; docs/api.md, Ecuador).
//!
//! Check digits only warn: Ecuador's tax office issues company numbers that follow no check-digit algorithm.

use super::ReceiverFields;
use crate::{
    model::{CountryCode, IdType},
    rules::{
        normalize::{first_two, is_digits, strip_separators},
        reader::FieldValue,
        regions::{Region, Regions},
        texts::{FaultText, WarningText, countries, warnings},
    },
};

/// Checks Ecuador's rules (spec: nationalId and province required; postal code must match the province).
pub(crate) fn check(to: &ReceiverFields<'_>) {
    to.national_id.require_or(countries::ECUADOR_ID_REQUIRED);
    to.province.require_or(countries::ECUADOR_PROVINCE_REQUIRED);
    check_id(to);
    let province = find_province(&to.province);
    check_zip(&to.zip, province);
}

/// Finds the province; an unknown one is a fault.
fn find_province(given: &FieldValue<'_, &str>) -> Option<&'static Region> {
    let name = given.value()?;
    let provinces = Regions::for_country(CountryCode::EC);
    let province = provinces.find(name);
    if province.is_none() {
        given.fault(countries::ECUADOR_PROVINCE.suggest(provinces.suggest(name)));
    }
    province
}

fn check_zip(zip: &FieldValue<'_, &str>, province: Option<&Region>) {
    let Some(code) = zip.value() else { return };
    if code.len() != 6 || !is_digits(code) {
        zip.fault(countries::six_digit_zip(CountryCode::EC));
        return;
    }
    let (Some(province), Some(prefix)) = (province, first_two(code)) else { return };
    if !province.has_postal(prefix) {
        let owner =
            Regions::for_country(CountryCode::EC).with_postal(prefix).map(|owner| owner.name);
        zip.fault(countries::zip_of_other_province(code, owner, province.name));
    }
}

/// The type of a national ID.
#[derive(Clone, Copy)]
enum Kind {
    Cedula,
    Ruc,
}

fn check_id(to: &ReceiverFields<'_>) {
    let id = to.national_id.value().map(|id| strip_separators(id, &['-']));
    let kind = match to.id_type.value() {
        Some(IdType::Cedula) => Some(Kind::Cedula),
        Some(IdType::Ruc) => Some(Kind::Ruc),
        Some(IdType::Passport | IdType::Dni | IdType::Unknown(_)) => {
            to.id_type.fault(countries::ECUADOR_ID_TYPE);
            None
        }
        None if to.id_type.is_absent() => id.as_deref().and_then(|id| infer_id_kind(to, id)),
        None => None,
    };
    let (Some(id), Some(kind)) = (id, kind) else { return };
    match check_number(&id, kind) {
        Ok(None) => {}
        Ok(Some(warning)) => to.national_id.warn(warning),
        Err(fault) => to.national_id.fault(fault),
    }
}

/// Infers the type from the number of digits if `idType` is missing.
fn infer_id_kind(to: &ReceiverFields<'_>, id: &str) -> Option<Kind> {
    let kind = match id.len() {
        10 if is_digits(id) => Kind::Cedula,
        13 if is_digits(id) => Kind::Ruc,
        _ => {
            to.national_id.fault(countries::ECUADOR_ID_FORM);
            return None;
        }
    };
    to.id_type.warn(warnings::ID_TYPE_GUESSED);
    Some(kind)
}

/// Checks a number: a fault is an error, and a warning is returned.
fn check_number(id: &str, kind: Kind) -> Result<Option<WarningText>, FaultText> {
    let (length, form) = match kind {
        Kind::Cedula => (10, countries::ECUADOR_CEDULA_FORM),
        Kind::Ruc => (13, countries::ECUADOR_RUC_FORM),
    };
    if id.len() != length || !is_digits(id) {
        return Err(form);
    }
    let digits: Vec<u32> = id.bytes().map(|digit| u32::from(digit - b'0')).collect();
    // The province's code, 01-24, or one of the registers outside the provinces.
    let prefix = first_two(id).filter(|prefix| matches!(prefix, 1..=24 | 30 | 50));
    let (Some(prefix), Some(third)) = (prefix, digits.get(2).copied()) else {
        return Err(countries::ECUADOR_ID_PROVINCE);
    };
    match kind {
        Kind::Cedula => Ok(cedula_warning(&digits, prefix, third)),
        Kind::Ruc => check_ruc(id, &digits, prefix, third),
    }
}

fn check_ruc(
    id: &str,
    digits: &[u32],
    prefix: u8,
    third: u32,
) -> Result<Option<WarningText>, FaultText> {
    // The last three digits number the establishments, from 001.
    if id.ends_with("000") {
        return Err(countries::ECUADOR_RUC_ESTABLISHMENT);
    }
    // The third digit is 0-5 for persons, whose RUC starts with their cédula, 6 for public bodies and 9 for companies,
    // whose numbers have no check digit to test; 7 and 8 do not exist. 30 is for persons registered abroad: their
    // number is a cédula whatever its third digit.
    match (prefix, third) {
        (30, _) | (_, 0..=5) => Ok(check_digit_warning(digits)),
        (_, 7 | 8) => Err(countries::ECUADOR_RUC_THIRD_DIGIT),
        _ => Ok(None),
    }
}

fn cedula_warning(digits: &[u32], prefix: u8, third: u32) -> Option<WarningText> {
    // 6 is rare but real; a digit above that is unlikely.
    if third > 6 && prefix != 30 {
        return Some(warnings::ID_THIRD_DIGIT);
    }
    check_digit_warning(digits)
}

/// Checks a cédula: every second digit is doubled, less 9 if the result is above 9; all ten must add up to a multiple of 10.
fn check_digit_warning(digits: &[u32]) -> Option<WarningText> {
    let weigh = |(index, digit): (usize, &u32)| match (index % 2, digit * 2) {
        (0, doubled) if doubled > 9 => doubled - 9,
        (0, doubled) => doubled,
        _ => *digit,
    };
    let sum: u32 = digits.iter().take(10).enumerate().map(weigh).sum();
    (!sum.is_multiple_of(10)).then_some(warnings::ID_CHECK_DIGIT)
}
