//! The order and the required parts of the last line of an address in each country (data: sdk/types/data/README.md). The
//! warnings of the rules and the addresses on papers use the same table.

use std::sync::OnceLock;

use crate::model::CountryCode;

const DATA: &str = include_str!("../../data/address_formats.tsv");

/// The format of a country's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressFormat {
    country: &'static str,
    /// `C` is the city, `S` the state or province, `Z` the postal code; other characters are separators.
    order: &'static str,
    pub(crate) requires_state: bool,
    pub(crate) requires_zip: bool,
}

/// The format of a country without a row.
const DEFAULT_FORMAT: AddressFormat =
    AddressFormat { country: "", order: "Z C, S", requires_state: false, requires_zip: false };

impl AddressFormat {
    /// Returns the format of a country.
    pub(crate) fn for_country(country: CountryCode) -> Self {
        let formats = formats();
        let index = formats.binary_search_by(|row| row.country.cmp(country.as_str()));
        index.ok().and_then(|index| formats.get(index)).copied().unwrap_or(DEFAULT_FORMAT)
    }
}

fn formats() -> &'static [AddressFormat] {
    static FORMATS: OnceLock<Vec<AddressFormat>> = OnceLock::new();
    FORMATS.get_or_init(|| DATA.lines().skip(1).filter_map(parse_row).collect())
}

fn parse_row(line: &'static str) -> Option<AddressFormat> {
    let mut cells = line.split('\t');
    let (country, order, required) = (cells.next()?, cells.next()?, cells.next()?);
    let [requires_state, requires_zip] = ['S', 'Z'].map(|part| required.contains(part));
    Some(AddressFormat { country, order, requires_state, requires_zip })
}

/// Returns the city, state or province and postal code as one line, in the order that is usual in a country. An empty
/// part is omitted, with the separator before it.
///
/// ```
/// use parcelo::CountryCode;
/// use parcelo_types::internal::town_line;
/// assert_eq!(town_line(CountryCode::parse("US")?, ["New York", "NY", "10118"]), "New York, NY 10118");
/// assert_eq!(town_line(CountryCode::MX, ["Guadalajara", "Jalisco", "44100"]), "44100 Guadalajara, Jalisco");
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[doc(hidden)]
pub fn town_line(country: CountryCode, [city, state, zip]: [&str; 3]) -> String {
    let (mut line, mut between) = (String::new(), String::new());
    for sign in AddressFormat::for_country(country).order.chars() {
        let part = match sign {
            'C' => city,
            'S' => state,
            'Z' => zip,
            other => {
                between.push(other);
                continue;
            }
        };
        if !part.is_empty() {
            line.push_str(if line.is_empty() { "" } else { &between });
            line.push_str(part);
        }
        between.clear();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_a_country_in_order_with_each_part_once() {
        assert_eq!(DATA.lines().count(), formats().len() + 1);
        assert!(formats().is_sorted_by(|a, b| a.country < b.country));
        for format in formats() {
            assert!(CountryCode::parse(format.country).is_ok(), "{format:?}");
            assert_ne!(AddressFormat { country: "", ..*format }, DEFAULT_FORMAT, "{format:?}");
            for part in ['C', 'S', 'Z'] {
                assert_eq!(format.order.matches(part).count(), 1, "{format:?}");
            }
        }
    }

    #[test]
    fn a_missing_part_leaves_no_gap() {
        let table = [
            ("US", ["Town, R 1", "Town, R", "Town 1", "Town"]),
            ("CA", ["Town R 1", "Town R", "Town 1", "Town"]),
            ("GB", ["Town, R 1", "Town, R", "Town 1", "Town"]),
            ("EC", ["1 Town, R", "Town, R", "1 Town", "Town"]),
            ("BR", ["Town-R 1", "Town-R", "Town 1", "Town"]),
            ("IN", ["Town 1, R", "Town, R", "Town 1", "Town"]),
        ];
        for (country, lines) in table {
            let country = CountryCode::parse(country).unwrap();
            let parts = [["R", "1"], ["R", ""], ["", "1"], ["", ""]];
            let shown = parts.map(|[state, zip]| town_line(country, ["Town", state, zip]));
            assert_eq!(shown, lines, "{country}");
        }
    }
}
