//! Lists as they stand in a column of text, in both engines.

use std::str::FromStr;

use parcelo::CountryCode;

use crate::domain::Countries;

/// How all countries are stored.
const ALL_COUNTRIES: &str = "*";

pub(super) fn write_countries(countries: &Countries) -> String {
    match countries {
        Countries::All => ALL_COUNTRIES.to_owned(),
        Countries::Only(list) => joined(list),
    }
}

pub(super) fn read_countries(text: &str) -> Result<Countries, <CountryCode as FromStr>::Err> {
    if text == ALL_COUNTRIES {
        return Ok(Countries::All);
    }
    read_list(text).map(Countries::Only)
}

pub(super) fn joined(list: &[impl ToString]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn read_list<T: FromStr>(text: &str) -> Result<Vec<T>, T::Err> {
    text.split(',').filter(|item| !item.is_empty()).map(str::parse).collect()
}
