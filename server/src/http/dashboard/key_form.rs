//! The form from which a key is made: all that is wrong with it at once.

use ipnet::IpNet;
use parcelo::{
    CountryCode, Environment, FaultCode, Language,
    rules::{self, Destinations},
};

use super::member::Fields;
use crate::core::{Countries, access};

/// The most addresses and networks that a key may be tied to.
const MOST_ADDRESSES: usize = 50;

/// The form as it was filled in.
#[derive(Debug, Default)]
pub(super) struct KeyForm {
    pub(super) name: String,
    pub(super) production: bool,
    pub(super) some: bool,
    pub(super) countries: String,
    pub(super) addresses: String,
}

/// What it asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) name: String,
    pub(super) environment: Environment,
    pub(super) countries: Countries,
    pub(super) addresses: Vec<IpNet>,
}

impl KeyForm {
    pub(super) fn of(fields: &Fields) -> Self {
        Self {
            name: fields.text("name").trim().to_owned(),
            production: fields.text("environment") == Environment::Production.code(),
            some: fields.text("countries") == "some",
            countries: fields.text("codes").trim().to_owned(),
            addresses: fields.text("addresses").trim().to_owned(),
        }
    }

    /// What is wanted, or what is wrong.
    pub(super) fn check(
        &self,
        supported: &Destinations,
        language: Language,
    ) -> Result<Wanted, Vec<&'static str>> {
        let mut faults = Vec::new();
        if let Err(fault) = rules::check_name(&self.name) {
            faults.push(nameless(&fault.code, language));
        }
        let countries = self.countries(supported);
        if countries.is_none() {
            faults.push(language.pick(
                "Name the countries by their codes, as EC, MX: each one that parcels can be sent to.",
                "Indique los países por sus códigos, como EC, MX: cada uno al que se puedan enviar paquetes.",
            ));
        }
        let addresses = self.addresses();
        if addresses.is_none() {
            faults.push(language.pick(
                "Write at most 50 addresses or networks, as 203.0.113.7 or 203.0.113.0/24, each on its own line.",
                "Escriba como máximo 50 direcciones o redes, como 203.0.113.7 o 203.0.113.0/24, cada una en su línea.",
            ));
        }
        match (countries, addresses) {
            (Some(countries), Some(addresses)) if faults.is_empty() => {
                let environment =
                    if self.production { Environment::Production } else { Environment::Sandbox };
                Ok(Wanted { name: self.name.clone(), environment, countries, addresses })
            }
            _ => Err(faults),
        }
    }

    fn countries(&self, supported: &Destinations) -> Option<Countries> {
        if !self.some {
            return Some(Countries::All);
        }
        let mut all = Vec::new();
        for word in words(&self.countries) {
            let country = CountryCode::parse(&word.to_ascii_uppercase()).ok();
            let country = country.filter(|country| supported.supports(*country))?;
            if !all.contains(&country) {
                all.push(country);
            }
        }
        (!all.is_empty()).then_some(Countries::Only(all))
    }

    fn addresses(&self) -> Option<Vec<IpNet>> {
        let all: Vec<_> = words(&self.addresses).map(access::network).collect::<Option<_>>()?;
        (all.len() <= MOST_ADDRESSES).then_some(all)
    }
}

fn nameless(code: &FaultCode, language: Language) -> &'static str {
    match code {
        FaultCode::InvalidFormat => language.pick(
            "The name holds a character that cannot be seen: type it again without it.",
            "El nombre tiene un carácter que no se ve: escríbalo de nuevo sin él.",
        ),
        _ => language.pick(
            "Give the key a name of 1 to 100 characters.",
            "Dé a la clave un nombre de 1 a 100 caracteres.",
        ),
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<Wanted, usize> {
        let form = KeyForm::of(&Fields::of(text.as_bytes()));
        form.check(&Destinations::All, Language::En).map_err(|faults| faults.len())
    }

    #[test]
    fn a_form_that_is_right_says_what_is_wanted() {
        let wanted = check(
            "name=+Shop+&environment=production&countries=some&codes=ec,+MX%0AEC&addresses=10.0.0.7%0D%0A10.1.0.0/16",
        );
        let Countries::Only(countries) = wanted.as_ref().unwrap().countries.clone() else {
            panic!("{wanted:?}")
        };
        assert_eq!(countries, [CountryCode::EC, CountryCode::MX]);
        let wanted = wanted.unwrap();
        assert_eq!((wanted.name.as_str(), wanted.environment), ("Shop", Environment::Production));
        assert_eq!(wanted.addresses.len(), 2);
        let all = check("name=Shop&countries=all&codes=nonsense").unwrap();
        assert_eq!((all.countries, all.environment), (Countries::All, Environment::Sandbox));
    }

    #[test]
    fn all_that_is_wrong_is_said_at_once() {
        let long = format!("name={}", "a".repeat(101));
        let many = format!("name=Shop&addresses={}", "10.0.0.1+".repeat(51));
        let table = [
            ("", 1),
            ("name=++", 1),
            (&long, 1),
            ("name=Shop&countries=some", 1),
            ("name=Shop&countries=some&codes=EC,XX", 1),
            ("name=Shop&addresses=10.0.0.0/99", 1),
            (&many, 1),
            ("name=&countries=some&codes=Ecuador&addresses=here", 3),
        ];
        for (text, faults) in table {
            assert_eq!(check(text), Err(faults), "{text}");
        }
    }

    #[test]
    fn a_country_that_is_not_served_is_refused() {
        let only = Destinations::Only([CountryCode::EC].into_iter().collect());
        let form = KeyForm::of(&Fields::of(b"name=Shop&countries=some&codes=MX"));
        assert!(form.check(&only, Language::Es).is_err());
    }
}
