//! The municipalities of Colombia by every name that people use for them (DIVIPOLA).

use std::{collections::HashMap, sync::OnceLock};

use super::{
    normalize::{fold, is_digits},
    regions::{MIN_SIMILARITY, Region, Regions},
};
use crate::model::CountryCode;

const DATA: &str = include_str!("../../data/co_municipalities.csv");
const USUAL_NAMES: &str = include_str!("../../data/co_usual_names.csv");

/// Old codes and the ones that replaced them.
const OLD_CODES: &[(&str, &str)] = &[("94663", "94343"), ("27086", "27493")];

/// What people write behind Bogotá, folded.
const CAPITAL: &[&str] = &[" d c", " dc", " distrito capital"];
const CAPITAL_DEPARTMENT: &str = "11";

/// What may stand behind a city, or behind its department, folded.
const COUNTRY: &str = "colombia";
/// What people put between a city and its department.
const BETWEEN: &[char] = &[',', '(', '/', ';', '-', '–', '—'];
/// Of a department; nothing as short is one of its names.
const MAX_DEPARTMENT_CODE_LEN: usize = 3;

/// Articles that people leave out or add, folded.
const ARTICLES: &[&str] = &["el ", "la ", "los ", "las "];

struct Municipality {
    /// Five digits, of which the first two are the department.
    code: &'static str,
    name: &'static str,
}

impl Municipality {
    fn department(&self) -> &'static str {
        self.code.get(..2).unwrap_or_default()
    }
}

/// All municipalities.
pub(crate) struct Municipalities {
    list: Vec<Municipality>,
    /// Folded names and aliases, each also without its article; many names are used twice.
    places: HashMap<String, Vec<usize>>,
}

/// What a city's name may mean.
pub(crate) struct Found {
    /// The official name of the first.
    pub(crate) name: &'static str,
    /// The department that stood behind the city's name.
    pub(crate) department: Option<&'static Region>,
    departments: Vec<&'static str>,
}

impl Found {
    /// True when one of the cities is in the department of this code.
    pub(crate) fn is_in(&self, department: &str) -> bool {
        self.departments.contains(&department)
    }

    fn narrowed(mut self, department: &'static Region) -> Self {
        if self.is_in(department.code) {
            self.departments = vec![department.code];
        }
        self.department = Some(department);
        self
    }
}

impl Municipalities {
    /// The whole list, read once.
    pub(crate) fn all() -> &'static Self {
        static ALL: OnceLock<Municipalities> = OnceLock::new();
        ALL.get_or_init(Self::read)
    }

    /// Every municipality that the text may mean: a code, a name, or a name with its department behind it,
    /// after a comma, in brackets, or however they are kept apart.
    pub(crate) fn find(&self, text: &str) -> Option<Found> {
        let text = text.trim();
        if is_digits(text) {
            return self.by_code(text);
        }
        let folded = fold(text);
        let at_home = folded.strip_suffix(COUNTRY).unwrap_or(&folded).trim_end();
        self.by_name(&folded)
            .or_else(|| parts(text).find_map(|(city, region)| self.city_of(city, region)))
            .or_else(|| self.by_name(at_home))
            .or_else(|| words(at_home).find_map(|(city, region)| self.city_in(city, region)))
    }

    /// A city with what follows it: its country, or its department, right or wrong.
    fn city_of(&self, city: &str, region: &str) -> Option<Found> {
        if fold(region) == COUNTRY {
            return self.find(city);
        }
        let department = Regions::for_country(CountryCode::CO).find(region)?;
        Some(self.by_name(&fold(city))?.narrowed(department))
    }

    /// The same of folded words with nothing between them: only a department that has the city is taken for
    /// one, and no code.
    fn city_in(&self, city: &str, region: &str) -> Option<Found> {
        let found = self.by_name(city)?;
        let department = Regions::for_country(CountryCode::CO).find(region)?;
        let is_name = region.len() > MAX_DEPARTMENT_CODE_LEN && found.is_in(department.code);
        is_name.then(|| found.narrowed(department))
    }

    /// The official name that was probably meant: in the department that is given, or stands behind the
    /// city's name, and in no other.
    pub(crate) fn suggest(&self, text: &str, department: Option<&str>) -> Option<&'static str> {
        let departments = Regions::for_country(CountryCode::CO);
        let (city, written) = parts(text)
            .find_map(|(city, region)| Some((city, Some(departments.find(region)?.code))))
            .unwrap_or((text, None));
        let department = department.or(written);
        let (whole, head) = (fold(text), fold(city));
        let score = |known: &str| {
            strsim::jaro_winkler(known, &whole).max(strsim::jaro_winkler(known, &head))
        };
        let alike = self.places.iter().map(|(known, places)| (score(known), places));
        let alike = alike.filter(|(score, _)| *score >= MIN_SIMILARITY);
        let each =
            alike.flat_map(|(score, places)| places.iter().map(move |place| (score, *place)));
        let rated = each.filter_map(|(score, place)| Some((score, self.list.get(place)?)));
        let here =
            rated.filter(|(_, city)| department.is_none_or(|code| code == city.department()));
        let best = here.max_by(|(one, city), (other, rival)| {
            one.total_cmp(other).then(rival.code.cmp(city.code))
        });
        best.map(|(_, city)| city.name)
    }

    fn by_code(&self, code: &str) -> Option<Found> {
        let code = OLD_CODES.iter().find(|(old, _)| *old == code).map_or(code, |(_, new)| *new);
        let place = self.list.binary_search_by(|city| city.code.cmp(code)).ok()?;
        self.found([place].iter())
    }

    fn by_name(&self, name: &str) -> Option<Found> {
        let exact = self.places.get(name);
        let bare = without_article(name).and_then(|bare| self.places.get(bare));
        self.found(exact.into_iter().chain(bare).flatten()).or_else(|| self.capital(name))
    }

    fn capital(&self, name: &str) -> Option<Found> {
        let head = CAPITAL.iter().find_map(|tail| name.strip_suffix(tail))?;
        self.found(self.places.get(head)?.iter()).filter(|found| found.is_in(CAPITAL_DEPARTMENT))
    }

    fn found<'a>(&self, places: impl Iterator<Item = &'a usize>) -> Option<Found> {
        let cities: Vec<_> = places.filter_map(|place| self.list.get(*place)).collect();
        let name = cities.first()?.name;
        let departments = cities.iter().map(|city| city.department()).collect();
        Some(Found { name, department: None, departments })
    }

    fn read() -> Self {
        let mut all = Self { list: Vec::new(), places: HashMap::new() };
        for (code, name) in DATA.lines().skip(1).filter_map(|line| line.split_once(';')) {
            all.add(all.list.len(), name);
            all.list.push(Municipality { code, name });
        }
        for line in USUAL_NAMES.lines().skip(1) {
            let mut columns = line.split(';');
            let (code, names) = (columns.next().unwrap_or_default(), columns.nth(1));
            let place = all.list.binary_search_by(|city| city.code.cmp(code));
            // A test sees that every code is one.
            let Ok(place) = place else { continue };
            names.unwrap_or_default().split('|').for_each(|name| all.add(place, name));
        }
        all
    }

    /// Gives a municipality a name.
    fn add(&mut self, place: usize, name: &str) {
        let name = fold(name);
        for known in std::iter::once(name.as_str()).chain(without_article(&name)) {
            if known.is_empty() {
                continue;
            }
            let places = self.places.entry(known.to_owned()).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
}

/// The text in two, at each sign that may stand between a city and its department.
fn parts(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.match_indices(BETWEEN).filter_map(|(at, _)| text.split_at_checked(at))
}

/// The same at each blank of folded words.
fn words(folded: &str) -> impl Iterator<Item = (&str, &str)> {
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
    fn the_list_is_whole_and_sorted() {
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
    fn every_usual_name_is_a_municipality_s_and_says_more_than_its_own() {
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
    fn a_city_by_all_its_names() {
        let table = [
            ("Bogotá, D.C.", "Bogotá, D.C."),
            ("bogota", "Bogotá, D.C."),
            ("BOGOTÁ DC", "Bogotá, D.C."),
            ("Bogotá D.C.", "Bogotá, D.C."),
            ("Bogotá Distrito Capital", "Bogotá, D.C."),
            ("Santafé de Bogotá D.C.", "Bogotá, D.C."),
            ("Bogotá, Distrito Capital", "Bogotá, D.C."),
            ("11001", "Bogotá, D.C."),
            ("Medellin", "Medellín"),
            ("Medellín, Antioquia", "Medellín"),
            ("Cali, Valle", "Cali"),
            ("Ceja", "La Ceja"),
            ("El Espinal", "Espinal"),
            ("La Medellín", "Medellín"),
            ("Cúcuta", "San José de Cúcuta"),
            ("94663", "Barrancominas"),
            ("27086", "Nuevo Belén de Bajirá"),
        ];
        for (text, name) in table {
            assert_eq!(Municipalities::all().find(text).map(|f| f.name), Some(name), "{text}");
        }
        for text in ["Bogta", "Medellín DC", "Medellín, Texas", "99999", "1100", "-", "Quito"] {
            assert!(Municipalities::all().find(text).is_none(), "{text}");
        }
    }

    #[test]
    fn names_of_several_departments_mean_all_of_them() {
        let all = Municipalities::all();
        assert!(all.find("Armenia").unwrap().is_in("05"));
        assert!(all.find("Armenia").unwrap().is_in("63"));
        let shared = all.places.values().filter(|places| places.len() > 1).count();
        assert!(shared >= 70, "{shared}");
    }

    #[test]
    fn a_typo_finds_the_name_that_was_meant() {
        let table = [
            ("Bogta", None, Some("Bogotá, D.C.")),
            ("Medelin", None, Some("Medellín")),
            ("Barranquila, Atlántico", None, Some("Barranquilla")),
            ("San Pedr", Some("05"), Some("San Pedro de los Milagros")),
            ("San Pedr", Some("70"), Some("San Pedro")),
            ("Xyzzy", None, None),
            // Never in another department than the one that is given, or written behind the city.
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
