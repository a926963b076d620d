//! Provinces, states and departments, found by the names and abbreviations in use (data: sdk/types/data/README.md).

use std::{collections::HashMap, ops::RangeInclusive, sync::OnceLock};

use super::normalize::fold;
use crate::model::CountryCode;

const DATA: &str = include_str!("../../data/regions.csv");

/// A first-level region of a country.
#[derive(Debug)]
pub(crate) struct Region {
    /// The two digits of the statistics office; empty for US and CA.
    pub(crate) code: &'static str,
    /// The official name.
    pub(crate) name: &'static str,
    /// The first two digits of its postal codes; `None` where no rule needs them.
    postal: Option<RangeInclusive<u8>>,
}

impl Region {
    /// Returns `true` if postal codes with these first two digits belong to the region.
    pub(crate) fn has_postal(&self, first_two: u8) -> bool {
        self.postal.as_ref().is_some_and(|range| range.contains(&first_two))
    }
}

/// The regions of one country.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    list: Vec<Region>,
    by_name: HashMap<String, usize>,
}

/// Minimum Jaro-Winkler similarity of a suggestion, between folded names: `Bogta` finds `Bogotá, D.C.`
pub(crate) const MIN_SIMILARITY: f64 = 0.9;

impl Regions {
    /// Returns the regions of a country; empty except for EC, MX, CO, US and CA, the countries whose rules name
    /// regions.
    pub(crate) fn for_country(country: CountryCode) -> &'static Self {
        static ALL: OnceLock<HashMap<&'static str, Regions>> = OnceLock::new();
        static NONE: OnceLock<Regions> = OnceLock::new();
        let all = ALL.get_or_init(parse_regions);
        all.get(country.as_str()).unwrap_or_else(|| NONE.get_or_init(Regions::default))
    }

    /// Returns the region of this name, code or alias.
    pub(crate) fn find(&self, name: &str) -> Option<&Region> {
        // `D.F.` folds to `d f`, and without its dots to `df`: both are in use.
        let index = self.by_name.get(&fold(name));
        self.list.get(*index.or_else(|| self.by_name.get(&fold(&name.replace('.', ""))))?)
    }

    /// Returns the region whose postal codes start with these two digits.
    pub(crate) fn with_postal(&self, first_two: u8) -> Option<&Region> {
        self.list.iter().find(|region| region.has_postal(first_two))
    }

    /// Returns the official name that a text probably refers to.
    pub(crate) fn suggest(&self, name: &str) -> Option<&'static str> {
        let name = fold(name);
        let (score, index) = self
            .by_name
            .iter()
            .map(|(known, index)| (strsim::jaro_winkler(known, &name), *index))
            .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))?;
        (score >= MIN_SIMILARITY).then(|| self.list.get(index).map(|region| region.name))?
    }

    fn add(&mut self, region: Region, names: impl Iterator<Item = String>) {
        for name in names {
            self.by_name.insert(fold(&name.replace('.', "")), self.list.len());
            self.by_name.insert(fold(&name), self.list.len());
        }
        self.list.push(region);
    }
}

fn parse_regions() -> HashMap<&'static str, Regions> {
    let mut all: HashMap<_, Regions> = HashMap::new();
    for line in DATA.lines().skip(1) {
        let mut columns = line.split(';');
        let mut next = || columns.next().unwrap_or_default();
        let (country, code, iso, name, postal, aliases) =
            (next(), next(), next(), next(), next(), next());
        let codes = [code.to_owned(), iso.to_owned(), format!("{country}-{iso}")];
        let names = std::iter::once(name).chain(aliases.split('|')).map(str::to_owned);
        let names = codes.into_iter().chain(names).filter(|name| !name.is_empty());
        let region = Region { code, name, postal: parse_range(postal) };
        all.entry(country).or_default().add(region, names);
    }
    all
}

fn parse_range(text: &str) -> Option<RangeInclusive<u8>> {
    let (first, last) = text.split_once('-')?;
    Some(first.parse().ok()?..=last.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_country_has_all_regions_with_unambiguous_names() {
        let table = [("CO", 33), ("EC", 24), ("MX", 32), ("US", 62), ("CA", 13)];
        for (country, count) in table {
            let regions = Regions::for_country(CountryCode::parse(country).unwrap());
            assert_eq!(regions.list.len(), count, "{country}");
        }
        let mut owners: HashMap<(String, String), String> = HashMap::new();
        for line in DATA.lines().skip(1) {
            let columns: Vec<_> = line.split(';').collect();
            assert_eq!(columns.len(), 6, "{line}");
            for name in
                [columns[1], columns[2], columns[3]].into_iter().chain(columns[5].split('|'))
            {
                for spelling in [fold(name), fold(&name.replace('.', ""))] {
                    if spelling.is_empty() {
                        continue;
                    }
                    let key = (columns[0].to_owned(), spelling.clone());
                    let owner = owners.entry(key).or_insert_with(|| columns[3].to_owned());
                    assert_eq!(owner, columns[3], "{spelling}");
                }
            }
        }
    }

    #[test]
    fn no_two_regions_share_a_postal_prefix() {
        for country in ["CO", "EC", "MX"] {
            let regions = Regions::for_country(CountryCode::parse(country).unwrap());
            for first_two in 0..100 {
                let owners = regions.list.iter().filter(|region| region.has_postal(first_two));
                assert!(owners.count() <= 1, "{country} {first_two}");
            }
        }
    }

    #[test]
    fn a_country_without_rules_has_no_regions() {
        assert!(Regions::for_country(CountryCode::parse("FR").unwrap()).find("Paris").is_none());
    }
}
