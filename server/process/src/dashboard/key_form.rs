//! The form that creates a key. All of its faults are reported together.

use std::borrow::Cow;

use ipnet::IpNet;
use parcelo_service::http::body::parse_environment;
use parcelo_types::{CountryCode, Environment, Language, model::FaultCode, rules::Destinations};
use parcelo_wire::MAX_IP_ADDRESSES;

use parcelo_domain::{Countries, access};
use ulid::Ulid;

use super::fields::FormFields;

/// The form as the user filled it in, not validated yet.
#[derive(Debug)]
pub(super) struct RawKeyForm {
    pub(super) name: String,
    pub(super) environment: String,
    /// Either `all` or `some`.
    pub(super) countries: String,
    pub(super) codes: String,
    pub(super) addresses: String,
    /// The form's id. The key's id derives from it, so that sending the form again does not create another.
    pub(super) form_id: String,
}

/// The key that a valid form describes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NewKey {
    pub(super) name: String,
    pub(super) environment: Environment,
    pub(super) countries: Countries,
    pub(super) addresses: Vec<IpNet>,
}

impl RawKeyForm {
    /// Returns an empty form with this id.
    pub(super) fn empty(form_id: Ulid) -> Self {
        let fields = format!("environment=sandbox&countries=all&once={form_id}");
        Self::from_fields(&FormFields::parse(fields.as_bytes()))
    }

    /// Reads the form from the submitted fields.
    pub(super) fn from_fields(fields: &FormFields) -> Self {
        let text = |name| fields.text(name).trim().to_owned();
        Self {
            name: text("name"),
            environment: fields.text("environment").to_owned(),
            countries: fields.text("countries").to_owned(),
            codes: text("codes"),
            addresses: text("addresses"),
            form_id: text("once"),
        }
    }

    /// Returns the key that the form describes, or all its faults.
    pub(super) fn validate(
        &self,
        supported: &Destinations,
        language: Language,
    ) -> Result<NewKey, Vec<Cow<'static, str>>> {
        let mut faults = Vec::new();
        if let Err(fault) = parcelo_wire::check_name(&self.name) {
            faults.push(name_fault(&fault.code, language).into());
        }
        let environment = parse_environment(&self.environment);
        if environment.is_none() {
            let text = language.pick(
                "Choose the environment: sandbox or production.",
                "Elija el entorno: pruebas o producción.",
            );
            faults.push(text.into());
        }
        let countries = self.parse_countries(supported, language);
        faults.extend(countries.as_ref().err().cloned());
        let addresses = self.parse_addresses(language);
        faults.extend(addresses.as_ref().err().cloned());
        match (environment, countries, addresses) {
            (Some(environment), Ok(countries), Ok(addresses)) if faults.is_empty() => {
                Ok(NewKey { name: self.name.clone(), environment, countries, addresses })
            }
            _ => Err(faults),
        }
    }

    /// Parses the countries. Codes together with "every country" are refused, so that no key allows more than intended.
    fn parse_countries(
        &self,
        supported: &Destinations,
        language: Language,
    ) -> Result<Countries, Cow<'static, str>> {
        let is_blank = split_words(&self.codes).next().is_none();
        let has_star = split_words(&self.codes).any(|word| word == "*");
        match self.countries.as_str() {
            "all" if is_blank => Ok(Countries::All),
            "some" if !has_star => self.parse_country_codes(supported, language),
            "all" | "some" => Err(language.pick(
                "Choose “Every supported country” and leave the codes empty, or “Only these” and enter the country codes, without *.",
                "Elija “Todos los países admitidos” y deje vacíos los códigos, o “Solo estos” y escriba los códigos de país, sin *.",
            ).into()),
            _ => Err(language.pick(
                "Choose the countries: every supported one, or only those you list.",
                "Elija los países: todos los admitidos o solo los que indique.",
            ).into()),
        }
    }

    /// Parses the codes, which must be of supported countries, each once.
    fn parse_country_codes(
        &self,
        supported: &Destinations,
        language: Language,
    ) -> Result<Countries, Cow<'static, str>> {
        let mut all = Vec::new();
        for word in split_words(&self.codes) {
            let country = CountryCode::parse(&word.to_ascii_uppercase()).ok();
            let country = country.filter(|country| supported.supports(*country));
            let country = country.ok_or_else(|| {
                let text = language.pick(
                    "“{word}” is not the code of a supported country: enter codes such as EC, MX.",
                    "“{word}” no es el código de un país admitido: escriba códigos como EC, MX.",
                );
                fault_with_word(word, text)
            })?;
            if !all.contains(&country) {
                all.push(country);
            }
        }
        if all.is_empty() {
            let text = language.pick(
                "Enter codes of supported countries, such as EC, MX.",
                "Escriba códigos de países admitidos, como EC, MX.",
            );
            return Err(text.into());
        }
        Ok(Countries::Only(all))
    }

    /// Parses the IP addresses and networks, separated like the codes.
    fn parse_addresses(&self, language: Language) -> Result<Vec<IpNet>, Cow<'static, str>> {
        let network = |word| {
            access::parse_network(word).ok_or_else(|| {
                let text = language.pick(
                    "“{word}” is not an IP address or network: enter them as 203.0.113.7 or 203.0.113.0/24, one per line.",
                    "“{word}” no es una dirección IP ni una red: escríbalas como 203.0.113.7 o 203.0.113.0/24, una por línea.",
                );
                fault_with_word(word, text)
            })
        };
        let all: Vec<_> = split_words(&self.addresses).map(network).collect::<Result<_, _>>()?;
        if all.len() > MAX_IP_ADDRESSES {
            let text = language.pick(
                "Enter at most 50 IP addresses or networks.",
                "Escriba como máximo 50 direcciones IP o redes.",
            );
            return Err(text.into());
        }
        Ok(all)
    }
}

/// Returns a text with the invalid word in it, or with the beginning of a long word.
fn fault_with_word(word: &str, text: &str) -> Cow<'static, str> {
    let shown: String = word.chars().take(60).collect();
    text.replace("{word}", &shown).into()
}

/// Returns the text for an invalid name.
fn name_fault(code: &FaultCode, language: Language) -> &'static str {
    match code {
        FaultCode::InvalidFormat => language.pick(
            "The name contains an invisible character: type it again without it.",
            "El nombre contiene un carácter invisible: escríbalo de nuevo sin él.",
        ),
        _ => language.pick(
            "Give the key a name of 1 to 100 characters.",
            "Dé a la clave un nombre de 1 a 100 caracteres.",
        ),
    }
}

/// Splits a text at commas, semicolons and white space.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validate(text: &str) -> Result<NewKey, usize> {
        let form = RawKeyForm::from_fields(&FormFields::parse(text.as_bytes()));
        form.validate(&Destinations::All, Language::En).map_err(|faults| faults.len())
    }

    #[test]
    fn a_valid_form_describes_a_key() {
        let key = validate(
            "name=+Shop+&environment=production&countries=some&codes=ec,+MX%0AEC&addresses=10.0.0.7%0D%0A10.1.0.0/16",
        );
        let Countries::Only(countries) = key.as_ref().unwrap().countries.clone() else {
            panic!("{key:?}")
        };
        assert_eq!(countries, [CountryCode::EC, CountryCode::MX]);
        let key = key.unwrap();
        assert_eq!((key.name.as_str(), key.environment), ("Shop", Environment::Production));
        assert_eq!(key.addresses.len(), 2);
        let all = validate("name=Shop&environment=sandbox&countries=all&codes=+,%0A").unwrap();
        assert_eq!((all.countries, all.environment), (Countries::All, Environment::Sandbox));
    }

    #[test]
    fn all_faults_of_a_form_are_reported_together() {
        let all = "environment=sandbox&countries=all&name=";
        let some = "environment=sandbox&countries=some&name=Shop";
        let long = format!("{all}{}", "a".repeat(101));
        let many = format!("{all}Shop&addresses={}", "10.0.0.1+".repeat(51));
        let table = [
            ("", 3),
            ("environment=production&countries=all&name=++", 1),
            (&long, 1),
            (some, 1),
            (&format!("{some}&codes=EC,XX"), 1),
            (&format!("{some}&codes=EC,*"), 1),
            (&format!("{all}Shop&codes=EC"), 1),
            (&format!("{all}Shop&addresses=10.0.0.0/99"), 1),
            (&many, 1),
            ("name=Shop&environment=Sandbox&countries=EC,*", 2),
            ("name=&countries=some&codes=Ecuador&addresses=here", 4),
        ];
        for (text, faults) in table {
            assert_eq!(validate(text), Err(faults), "{text}");
        }
    }

    #[test]
    fn a_fault_quotes_the_invalid_word() {
        let table = [
            ("countries=some&codes=EC,colombia", "“colombia” is not the code"),
            ("countries=some&codes=EC,XX", "“XX” is not the code"),
            ("countries=all&addresses=10.0.0.1%0A192.168.0.300", "“192.168.0.300” is not an IP"),
        ];
        for (fields, named) in table {
            let fields = format!("name=Shop&environment=sandbox&{fields}");
            let form = RawKeyForm::from_fields(&FormFields::parse(fields.as_bytes()));
            let faults = form.validate(&Destinations::All, Language::En).unwrap_err();
            assert!(faults.len() == 1 && faults[0].contains(named), "{faults:?}");
        }
    }

    #[test]
    fn an_unsupported_country_is_refused() {
        let only = Destinations::Only([CountryCode::EC].into_iter().collect());
        let form = RawKeyForm::from_fields(&FormFields::parse(
            b"name=Shop&environment=sandbox&countries=some&codes=MX",
        ));
        assert!(form.validate(&only, Language::Es).is_err());
    }
}
