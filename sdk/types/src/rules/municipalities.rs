//! The municipalities of Colombia (DIVIPOLA), found by the names in use (spec: city must be a valid Colombian city;
//! data: sdk/types/data/README.md).

use std::{collections::HashMap, sync::OnceLock};

use super::{
    normalize::{fold, is_digits},
    regions::{MIN_SIMILARITY, Region, Regions},
};
use crate::model::CountryCode;

const DATA: &str = include_str!("../../data/co_municipalities.csv");
const USUAL_NAMES: &str = include_str!("../../data/co_usual_names.csv");

/// Former codes of DIVIPOLA and the ones that replaced them.
const OLD_CODES: &[(&str, &str)] = &[("94663", "94343"), ("27086", "27493")];

/// Suffixes of Bogotá's name, folded: of the capital district.
const CAPITAL_SUFFIXES: &[&str] = &[" d c", " dc", " distrito capital"];
const CAPITAL_DEPARTMENT: &str = "11";

/// The country, which may follow a city or its department; folded.
const COUNTRY: &str = "colombia";
/// Separators between a city and its department.
const SEPARATORS: &[char] = &[',', '(', '/', ';', '-', '–', '—'];
/// Maximum length of a department's code; every department's name is longer.
const MAX_DEPARTMENT_CODE_LEN: usize = 3;

/// Articles that people omit or add, folded.
const ARTICLES: &[&str] = &["el ", "la ", "los ", "las "];

struct Municipality {
    /// Five digits; the first two are the code of the department.
    code: &'static str,
    name: &'static str,
}

impl Municipality {
    fn department(&self) -> &'static str {
        self.code.get(..2).unwrap_or_default()
    }
}

/// All municipalities, with an index of their names.
pub(crate) struct Municipalities {
    list: Vec<Municipality>,
    /// Folded names and aliases, each also without its article; 70 names occur in several departments.
    by_name: HashMap<String, Vec<usize>>,
}

/// The municipalities that a city's name may refer to.
pub(crate) struct CityMatch {
    /// The official name of the first of them.
    pub(crate) name: &'static str,
    /// The department that followed the city's name.
    pub(crate) department: Option<&'static Region>,
    departments: Vec<&'static str>,
}

impl CityMatch {
    /// Returns `true` if one of them is in the department with this code.
    pub(crate) fn is_in(&self, department: &str) -> bool {
        self.departments.contains(&department)
    }

    fn restrict_to(mut self, department: &'static Region) -> Self {
        if self.is_in(department.code) {
            self.departments = vec![department.code];
        }
        self.department = Some(department);
        self
    }
}

impl Municipalities {
    /// Returns all municipalities; the list is parsed on first use.
    pub(crate) fn all() -> &'static Self {
        static ALL: OnceLock<Municipalities> = OnceLock::new();
        ALL.get_or_init(Self::from_csv)
    }

    /// Returns the municipalities that a text may refer to: a code, a name, or a name followed by its department after
    /// a comma, in brackets, or with any other separator.
    pub(crate) fn find(&self, text: &str) -> Option<CityMatch> {
        let text = text.trim();
        if is_digits(text) {
            return self.find_by_code(text);
        }
        let folded = fold(text);
        let domestic = folded.strip_suffix(COUNTRY).unwrap_or(&folded).trim_end();
        self.find_by_name(&folded)
            .or_else(|| {
                splits_at_separators(text)
                    .find_map(|(city, region)| self.find_city_and_region(city, region))
            })
            .or_else(|| self.find_by_name(domestic))
            .or_else(|| {
                splits_at_spaces(domestic)
                    .find_map(|(city, region)| self.city_in_department(city, region))
            })
    }

    /// Finds a city that is followed by its country or a department. A wrong department is reported later, as a
    /// mismatch.
    fn find_city_and_region(&self, city: &str, region: &str) -> Option<CityMatch> {
        if fold(region) == COUNTRY {
            return self.find(city);
        }
        let department = Regions::for_country(CountryCode::CO).find(region)?;
        Some(self.find_by_name(&fold(city))?.restrict_to(department))
    }

    /// Finds a city that is followed by its department without a separator; both are folded. The department must have
    /// such a city, and a code does not count: otherwise the last word of many names would count as a department.
    fn city_in_department(&self, city: &str, region: &str) -> Option<CityMatch> {
        let found = self.find_by_name(city)?;
        let department = Regions::for_country(CountryCode::CO).find(region)?;
        let is_name = region.len() > MAX_DEPARTMENT_CODE_LEN && found.is_in(department.code);
        is_name.then(|| found.restrict_to(department))
    }

    /// Returns the official name that the caller probably meant, in the department that is given or follows the city's
    /// name. Other departments are not suggested: the parcel would go to the wrong end of the country.
    pub(crate) fn suggest(&self, text: &str, department: Option<&str>) -> Option<&'static str> {
        let departments = Regions::for_country(CountryCode::CO);
        let (city, written) = splits_at_separators(text)
            .find_map(|(city, region)| Some((city, Some(departments.find(region)?.code))))
            .unwrap_or((text, None));
        let department = department.or(written);
        let (whole, head) = (fold(text), fold(city));
        let score = |known: &str| {
            strsim::jaro_winkler(known, &whole).max(strsim::jaro_winkler(known, &head))
        };
        let alike = self.by_name.iter().map(|(known, indices)| (score(known), indices));
        let alike = alike.filter(|(score, _)| *score >= MIN_SIMILARITY);
        let each =
            alike.flat_map(|(score, indices)| indices.iter().map(move |index| (score, *index)));
        let rated = each.filter_map(|(score, index)| Some((score, self.list.get(index)?)));
        let here =
            rated.filter(|(_, city)| department.is_none_or(|code| code == city.department()));
        let best = here.max_by(|(one, city), (other, rival)| {
            one.total_cmp(other).then(rival.code.cmp(city.code))
        });
        best.map(|(_, city)| city.name)
    }

    fn find_by_code(&self, code: &str) -> Option<CityMatch> {
        let code = OLD_CODES.iter().find(|(old, _)| *old == code).map_or(code, |(_, new)| *new);
        let index = self.list.binary_search_by(|city| city.code.cmp(code)).ok()?;
        self.found([index].iter())
    }

    fn find_by_name(&self, name: &str) -> Option<CityMatch> {
        let exact = self.by_name.get(name);
        let bare = without_article(name).and_then(|bare| self.by_name.get(bare));
        self.found(exact.into_iter().chain(bare).flatten()).or_else(|| self.find_capital(name))
    }

    /// Finds Bogotá by its name with the suffix of the capital district.
    fn find_capital(&self, name: &str) -> Option<CityMatch> {
        let head = CAPITAL_SUFFIXES.iter().find_map(|tail| name.strip_suffix(tail))?;
        self.found(self.by_name.get(head)?.iter()).filter(|found| found.is_in(CAPITAL_DEPARTMENT))
    }

    fn found<'a>(&self, indices: impl Iterator<Item = &'a usize>) -> Option<CityMatch> {
        let cities: Vec<_> = indices.filter_map(|index| self.list.get(*index)).collect();
        let name = cities.first()?.name;
        let departments = cities.iter().map(|city| city.department()).collect();
        Some(CityMatch { name, department: None, departments })
    }

    fn from_csv() -> Self {
        let mut all = Self { list: Vec::new(), by_name: HashMap::new() };
        for (code, name) in DATA.lines().skip(1).filter_map(|line| line.split_once(';')) {
            all.add(all.list.len(), name);
            all.list.push(Municipality { code, name });
        }
        for line in USUAL_NAMES.lines().skip(1) {
            let mut columns = line.split(';');
            let (code, names) = (columns.next().unwrap_or_default(), columns.nth(1));
            let index = all.list.binary_search_by(|city| city.code.cmp(code));
            // A test checks that every code exists.
            let Ok(index) = index else { continue };
            names.unwrap_or_default().split('|').for_each(|name| all.add(index, name));
        }
        all
    }

    /// Adds a name of a municipality.
    fn add(&mut self, index: usize, name: &str) {
        let name = fold(name);
        for known in std::iter::once(name.as_str()).chain(without_article(&name)) {
            if known.is_empty() {
                continue;
            }
            let indices = self.by_name.entry(known.to_owned()).or_default();
            if !indices.contains(&index) {
                indices.push(index);
            }
        }
    }
}

/// Returns every way to split a text in two at a separator.
fn splits_at_separators(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(SEPARATORS).filter_map(|(at, _)| text.split_at_checked(at))
}

/// Returns every way to split folded words in two at a space.
fn splits_at_spaces(folded: &str) -> impl Iterator<Item = (&str, &str)> {
    folded.match_indices(' ').filter_map(|(at, _)| {
        let (city, region) = folded.split_at_checked(at)?;
        Some((city, region.trim_start()))
    })
}

fn without_article(name: &str) -> Option<&str> {
    ARTICLES.iter().find_map(|article| name.strip_prefix(article))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_municipalities_are_complete_and_sorted() {
        let all = Municipalities::all();
        assert_eq!(all.list.len(), 1122);
        assert!(all.list.is_sorted_by(|a, b| a.code < b.code));
        let departments = Regions::for_country(CountryCode::CO);
        for city in &all.list {
            assert_eq!(city.code.len(), 5);
            assert!(departments.find(city.department()).is_some(), "{}", city.code);
            assert!(all.find(city.name).unwrap().is_in(city.department()), "{}", city.name);
            assert!(all.find(city.code).unwrap().is_in(city.department()), "{}", city.code);
        }
    }

    #[test]
    fn every_alias_is_a_new_name_for_a_municipality() {
        let mut before = "";
        for line in USUAL_NAMES.lines().skip(1) {
            let columns: Vec<_> = line.split(';').collect();
            assert_eq!(columns.len(), 3, "{line}");
            let city = Municipalities::all().list.iter().find(|city| city.code == columns[0]);
            assert_eq!(city.map(|city| city.name), Some(columns[1]), "{line}");
            assert!(before < columns[0], "{line} is in its place");
            before = columns[0];
            for name in columns[2].split('|') {
                assert!(!name.is_empty() && fold(name) != fold(columns[1]), "{line}: {name}");
            }
        }
    }

    #[test]
    fn a_city_is_found_by_a_former_code_and_with_an_article() {
        let table = [
            ("94663", "Barrancominas"),
            ("27086", "Nuevo Belén de Bajirá"),
            ("La Medellín", "Medellín"),
        ];
        for (text, name) in table {
            assert_eq!(Municipalities::all().find(text).map(|f| f.name), Some(name), "{text}");
        }
    }

    #[test]
    fn a_name_in_several_departments_matches_all_of_them() {
        let all = Municipalities::all();
        assert!(all.find("Armenia").unwrap().is_in("05"));
        assert!(all.find("Armenia").unwrap().is_in("63"));
        let shared = all.by_name.values().filter(|places| places.len() > 1).count();
        assert!(shared >= 70, "{shared}");
    }

    #[test]
    fn a_typo_finds_the_intended_name() {
        let table = [
            ("Bogta", None, Some("Bogotá, D.C.")),
            ("Medelin", None, Some("Medellín")),
            ("Barranquila, Atlántico", None, Some("Barranquilla")),
            ("San Pedr", Some("05"), Some("San Pedro de los Milagros")),
            ("San Pedr", Some("70"), Some("San Pedro")),
            ("Xyzzy", None, None),
            // A department other than the given one, or the one after the city, is never suggested.
            ("Bogta", Some("11"), Some("Bogotá, D.C.")),
            ("Bogta", Some("05"), None),
            ("Medelin", Some("76"), None),
            ("Medelin, Valle", None, None),
            ("Medelin (Antioquia)", None, Some("Medellín")),
            ("Medelin, Antioquia", Some("76"), None),
            ("Armeni", Some("63"), Some("Armenia")),
            ("San Jose de Cucut", Some("54"), Some("San José de Cúcuta")),
            ("Puerto Inirda", Some("94"), Some("Inírida")),
            ("Barranquila / Atlántico", None, Some("Barranquilla")),
        ];
        for (text, department, name) in table {
            assert_eq!(Municipalities::all().suggest(text, department), name, "{text}");
        }
    }
}
