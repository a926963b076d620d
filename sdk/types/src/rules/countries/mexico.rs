//! Mexico: the state as `province` or `state`, the postal code, the RFC (spec: country rules; docs/api.md, Mexico).
//!
//! The check digit only warns: about one in sixty-five RFCs in use fails it.

use chrono::NaiveDate;
use unicode_normalization::UnicodeNormalization;

use super::ReceiverFields;
use crate::{
    model::CountryCode,
    rules::{
        normalize::{first_two, is_digits, strip_separators},
        reader::FieldValue,
        regions::{Region, Regions},
        texts::{FaultText, WarningText, countries, warnings},
    },
};

/// The RFCs for the general public and for foreigners, which do not pass the check.
const GENERIC_RFCS: [&str; 2] = ["XAXX010101000", "XEXX010101000"];

/// The characters of an RFC; a character's position is its value in the check digit.
const CHECK_ALPHABET: &str = "0123456789ABCDEFGHIJKLMN&OPQRSTUVWXYZ Ñ";

/// The length of a CURP, the national ID, which is often given instead of the RFC.
const CURP_LEN: usize = 18;

/// Checks Mexico's rules (spec: nationalId optional; state required; postal code required, 5 digits).
pub(crate) fn check(to: &ReceiverFields<'_>) {
    check_rfc(&to.national_id);
    let state = find_state(to);
    to.zip.require_or(countries::MEXICO_ZIP_REQUIRED);
    check_zip(&to.zip, state);
}

/// Returns the state that `province`, `state` or both name.
fn find_state(to: &ReceiverFields<'_>) -> Option<&'static Region> {
    if to.state.is_absent() {
        to.province.require_or(countries::MEXICO_STATE_REQUIRED);
        return parse_state(&to.province);
    }
    if to.province.is_absent() {
        return parse_state(&to.state);
    }
    let (province, state) = (parse_state(&to.province)?, parse_state(&to.state)?);
    if !std::ptr::eq(province, state) {
        to.province.fault(countries::MEXICO_TWO_STATES);
        return None;
    }
    Some(province)
}

/// Parses a state; an unknown one is a fault.
fn parse_state(given: &FieldValue<'_, &str>) -> Option<&'static Region> {
    let name = given.value()?;
    let states = Regions::for_country(CountryCode::MX);
    let state = states.find(name);
    if state.is_none() {
        given.fault(countries::MEXICO_STATE.suggest(states.suggest(name)));
    }
    state
}

fn check_zip(zip: &FieldValue<'_, &str>, state: Option<&Region>) {
    let Some(code) = zip.value() else { return };
    if code.len() != 5 || !is_digits(code) {
        zip.fault(countries::MEXICO_ZIP_FORM);
        return;
    }
    let (Some(state), Some(prefix)) = (state, first_two(code)) else { return };
    if !state.has_postal(prefix) {
        let owner =
            Regions::for_country(CountryCode::MX).with_postal(prefix).map(|owner| owner.name);
        zip.warn(warnings::postal_state(owner, state.name));
    }
}

fn check_rfc(id: &FieldValue<'_, &str>) {
    let Some(text) = id.value() else { return };
    // An Ñ may arrive as N and a combining tilde.
    let composed: String = text.nfc().collect();
    let rfc = strip_separators(&composed, &['-', '_']).to_uppercase();
    match check_rfc_form(&rfc) {
        Ok(None) => {}
        Ok(Some(warning)) => id.warn(warning),
        Err(fault) => id.fault(fault),
    }
}

/// Checks the form of an RFC: a fault is an error, and a warning is returned.
fn check_rfc_form(rfc: &str) -> Result<Option<WarningText>, FaultText> {
    let chars: Vec<char> = rfc.chars().collect();
    let letters = match chars.len() {
        12 => 3, // a company's
        13 => 4, // a person's
        CURP_LEN if rfc.bytes().all(|b| b.is_ascii_alphanumeric()) => {
            return Err(countries::MEXICO_CURP);
        }
        _ => return Err(countries::MEXICO_RFC_FORM),
    };
    let (name, rest) = chars.split_at_checked(letters).unwrap_or_default();
    let (date, tail) = rest.split_at_checked(6).unwrap_or_default();
    let fits = name.iter().all(|c| c.is_ascii_uppercase() || matches!(c, 'Ñ' | '&'))
        && date.iter().all(char::is_ascii_digit)
        && tail.iter().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit())
        && tail.last().is_some_and(|c| c.is_ascii_digit() || *c == 'A');
    if !fits {
        return Err(countries::MEXICO_RFC_FORM);
    }
    if !is_date(&date.iter().collect::<String>()) {
        return Err(countries::MEXICO_RFC_DATE);
    }
    let passes = GENERIC_RFCS.contains(&rfc) || check_character(&chars) == chars.last().copied();
    Ok((!passes).then_some(warnings::ID_CHECK_DIGIT))
}

/// Returns `true` if the date exists in either century: an RFC has only two digits of the year.
fn is_date(digits: &str) -> bool {
    ["19", "20"]
        .iter()
        .any(|century| NaiveDate::parse_from_str(&format!("{century}{digits}"), "%Y%m%d").is_ok())
}

/// Returns the check character: modulo 11 over the first twelve characters, weighted 13 to 2; a company's shorter RFC
/// is padded with a space in front.
fn check_character(rfc: &[char]) -> Option<char> {
    let (_, body) = rfc.split_last()?;
    let padding = 12_usize.saturating_sub(body.len());
    let padded = std::iter::repeat_n(&' ', padding).chain(body);
    let sum: usize = padded
        .enumerate()
        .filter_map(|(index, c)| {
            let value = CHECK_ALPHABET.chars().position(|known| known == *c)?;
            Some(value * 13_usize.saturating_sub(index))
        })
        .sum();
    CHECK_ALPHABET.chars().nth((11 - sum % 11) % 11)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_numbers_pass_the_check_digit() {
        for rfc in ["SAT970701NN3", "GODE561231GR8", "CFE370814QI0", "BNM840515VB1"] {
            assert!(matches!(check_rfc_form(rfc), Ok(None)), "{rfc}");
            let (body, own) = rfc.split_at(rfc.len() - 1);
            for end in "0123456789A".chars().filter(|end| !own.contains(*end)) {
                assert!(
                    matches!(check_rfc_form(&format!("{body}{end}")), Ok(Some(_))),
                    "{body}{end}"
                );
            }
        }
    }
}
