//! Colombia: the city by DIVIPOLA, its department, the cédula (spec: country rules; docs/api.md, Colombia).

use super::ReceiverFields;
use crate::{
    model::{CountryCode, IdType},
    rules::{
        municipalities::{CityMatch, Municipalities},
        normalize::{first_two, is_digits, strip_separators},
        reader::FieldValue,
        regions::{Region, Regions},
        texts::{countries, warnings},
    },
};

/// Checks Colombia's rules. The spec requires the cédula and a valid city; the department and the postal code are not
/// in its rules, so a mismatch there only warns.
pub(crate) fn check(to: &ReceiverFields<'_>) {
    to.national_id.require_or(countries::COLOMBIA_ID_REQUIRED);
    check_id(to);
    let given = find_department(&to.province);
    let found = find_city(&to.city, given);
    let department = match &found {
        Some(found) => check_department(to, found, given),
        None => given,
    };
    check_zip(&to.zip, found.as_ref(), department);
}

fn check_id(to: &ReceiverFields<'_>) {
    if to.id_type.value().is_some_and(|kind| *kind != IdType::Cedula) {
        to.id_type.fault(countries::COLOMBIA_ID_TYPE);
        return;
    }
    let Some(id) = to.national_id.value() else { return };
    // 6 to 10 digits: old numbers are shorter, and there is no check digit. All zeros stand for a missing number.
    let digits = strip_separators(id, &['.', ',', '-']);
    let fits = (6..=10).contains(&digits.len()) && is_digits(&digits);
    if !fits || digits.bytes().all(|digit| digit == b'0') {
        to.national_id.fault(countries::COLOMBIA_ID_FORM);
    }
}

/// Finds the department; an unknown one is a warning.
fn find_department(province: &FieldValue<'_, &str>) -> Option<&'static Region> {
    let name = province.value()?;
    let found = Regions::for_country(CountryCode::CO).find(name);
    if found.is_none() {
        province.warn(warnings::DEPARTMENT_UNKNOWN);
    }
    found
}

/// Finds the city; an unknown one is a fault, with a suggestion from the department.
fn find_city(city: &FieldValue<'_, &str>, department: Option<&Region>) -> Option<CityMatch> {
    let name = city.value()?;
    let found = Municipalities::all().find(name);
    if found.is_none() {
        let suggestion = Municipalities::all().suggest(name, department.map(|region| region.code));
        city.fault(countries::COLOMBIA_CITY.suggest(suggestion));
    }
    found
}

/// Returns the department of the city, if it is known: 70 names occur in more than one department, and the province
/// decides.
fn check_department(
    to: &ReceiverFields<'_>,
    found: &CityMatch,
    given: Option<&'static Region>,
) -> Option<&'static Region> {
    match given.or(found.department) {
        Some(region) if found.is_in(region.code) => Some(region),
        Some(region) => {
            to.city.warn(warnings::city_of_other_department(region.name));
            None
        }
        None => None,
    }
}

fn check_zip(zip: &FieldValue<'_, &str>, found: Option<&CityMatch>, department: Option<&Region>) {
    if zip.is_absent() {
        zip.warn(warnings::POSTAL_CODE_MISSING);
    }
    let Some(code) = zip.value() else { return };
    if code.len() != 6 || !is_digits(code) {
        zip.fault(countries::six_digit_zip(CountryCode::CO));
        return;
    }
    let Some(prefix) = first_two(code) else { return };
    let departments = Regions::for_country(CountryCode::CO);
    let owner = departments.with_postal(prefix).map(|region| region.name);
    match (department, found) {
        (Some(region), _) if !region.has_postal(prefix) => {
            zip.warn(warnings::postal_state(owner, region.name));
        }
        (None, Some(found)) if !found.is_in(code.get(..2).unwrap_or_default()) => {
            zip.warn(warnings::postal_state(owner, found.name));
        }
        _ => {}
    }
}
