//! The shop that receivers see: its name and its contact. They appear on public pages, so only safe values are
//! accepted: text without invisible characters, and links that cannot run scripts in a browser.

use parcelo_types::{Language, internal::is_invisible};
use parcelo_wire::is_email;
use url::Url;

/// Maximum length of a shop's name in characters: one line on a phone.
pub const MAX_NAME_CHARS: usize = 60;
/// Maximum length of a contact in characters.
pub const MAX_CONTACT_CHARS: usize = 200;
/// Number of digits in an international telephone number (ITU-T E.164), as in orders.
const PHONE_DIGITS: std::ops::RangeInclusive<usize> = 7..=15;

/// The shop, as its account describes it; either part may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shop {
    /// The name.
    pub name: Option<String>,
    /// The contact for its customers.
    pub contact: Option<Contact>,
}

/// A contact for a shop's customers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contact {
    /// A page, https only.
    Page(Url),
    /// An e-mail address.
    Mail(String),
    /// A telephone number with its country code, as it was written.
    Phone(String),
}

/// A reason to refuse a shop's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShopError {
    /// The name is too long, or has invisible characters.
    Name,
    /// The contact is not one of the three kinds.
    Contact,
}

impl Shop {
    /// Parses a shop as it was typed or stored. A blank part counts as missing.
    pub fn parse(name: &str, contact: &str) -> Result<Self, ShopError> {
        let (name, contact) = (name.trim(), contact.trim());
        let is_shown = |c: char| !c.is_control() && !is_invisible(c);
        if name.chars().count() > MAX_NAME_CHARS || !name.chars().all(is_shown) {
            return Err(ShopError::Name);
        }
        let contact = match contact {
            "" => None,
            given => Some(Contact::parse(given).ok_or(ShopError::Contact)?),
        };
        Ok(Self { name: (!name.is_empty()).then(|| name.to_owned()), contact })
    }

    /// Parses a row of the database. A row that this version would refuse becomes an empty shop.
    pub fn from_stored(row: Option<(String, String)>) -> Self {
        row.and_then(|(name, contact)| Self::parse(&name, &contact).ok()).unwrap_or_default()
    }

    /// Returns the name and the contact as they are stored and as forms show them.
    pub fn to_stored(&self) -> (String, String) {
        let contact = self.contact.as_ref().map(Contact::form_value);
        (self.name.clone().unwrap_or_default(), contact.unwrap_or_default())
    }
}

impl Contact {
    /// Parses `https://…`, `mailto:…`, `tel:…`, or an e-mail address or telephone number alone.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = text.chars().count() <= MAX_CONTACT_CHARS && !text.chars().any(is_invisible);
        if !fits || text.chars().any(char::is_control) {
            return None;
        }
        if let Some(address) = strip_scheme(text, "mailto:") {
            return parse_mail(address);
        }
        if let Some(number) = strip_scheme(text, "tel:") {
            return parse_phone(number);
        }
        parse_page(text).or_else(|| parse_mail(text)).or_else(|| parse_phone(text))
    }

    /// Returns the contact as people type it.
    fn form_value(&self) -> String {
        match self {
            Self::Page(url) => url.to_string(),
            Self::Mail(text) | Self::Phone(text) => text.clone(),
        }
    }

    /// Returns the target of a link to it.
    pub fn link(&self) -> String {
        match self {
            Self::Page(url) => url.to_string(),
            Self::Mail(address) => format!("mailto:{address}"),
            Self::Phone(number) => {
                let digits: String = number.chars().filter(char::is_ascii_digit).collect();
                format!("tel:+{digits}")
            }
        }
    }

    /// Returns the text of a link to it.
    pub fn text(&self) -> String {
        match self {
            Self::Page(url) => {
                let path = url.path().trim_end_matches('/');
                format!("{}{path}", url.host_str().unwrap_or_default())
            }
            Self::Mail(text) | Self::Phone(text) => text.clone(),
        }
    }
}

impl ShopError {
    /// Explains what is wrong and what to do.
    pub fn text(self, language: Language) -> &'static str {
        match self {
            Self::Name => language.pick(
                "The name has more than 60 characters, or an invisible one.",
                "El nombre tiene más de 60 caracteres, o uno invisible.",
            ),
            Self::Contact => language.pick(
                "The contact must be an https address, an e-mail address, or a telephone number with + and its country code, of at most 200 characters.",
                "El contacto debe ser una dirección https, un correo electrónico o un teléfono con + y su código de país, de 200 caracteres como máximo.",
            ),
        }
    }
}

fn strip_scheme<'a>(text: &'a str, scheme: &str) -> Option<&'a str> {
    let head = text.get(..scheme.len())?;
    head.eq_ignore_ascii_case(scheme).then(|| text.get(scheme.len()..)).flatten()
}

/// Accepts a page under a domain name, without credentials: they would become public, and an IP address has no owner.
fn parse_page(text: &str) -> Option<Contact> {
    let url = Url::parse(text).ok()?;
    let is_plain = url.scheme() == "https"
        && url.domain().is_some_and(|name| name.contains('.'))
        && url.username().is_empty()
        && url.password().is_none();
    is_plain.then_some(Contact::Page(url))
}

/// Accepts an address alone: `?bcc=` or `?body=` in a link would add text that the reader did not write.
fn parse_mail(text: &str) -> Option<Contact> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "@.+-_".contains(c);
    (is_email(text) && text.chars().all(is_plain)).then(|| Contact::Mail(text.to_owned()))
}

fn parse_phone(text: &str) -> Option<Contact> {
    let rest = text.strip_prefix('+')?;
    let digits = rest.chars().filter(char::is_ascii_digit).count();
    let is_number = rest.chars().all(|c| c.is_ascii_digit() || " ().-".contains(c));
    (is_number && PHONE_DIGITS.contains(&digits)).then(|| Contact::Phone(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contact_is_a_page_an_address_or_a_number() {
        let table = [
            ("https://shop.example/help", "https://shop.example/help", "shop.example/help"),
            ("https://shop.example", "https://shop.example/", "shop.example"),
            ("HTTPS://Shop.Example/?q=1", "https://shop.example/?q=1", "shop.example"),
            ("mailto:help@shop.example", "mailto:help@shop.example", "help@shop.example"),
            (" help@shop.example ", "mailto:help@shop.example", "help@shop.example"),
            ("tel:+593 99 123 4567", "tel:+593991234567", "+593 99 123 4567"),
            ("+1 (305) 555-0100", "tel:+13055550100", "+1 (305) 555-0100"),
        ];
        for (typed, link, text) in table {
            let shop = Shop::parse("", typed).unwrap();
            let contact = shop.contact.clone().unwrap();
            assert_eq!((&*contact.link(), &*contact.text()), (link, text), "{typed}");
            assert_eq!(Shop::from_stored(Some(shop.to_stored())), shop, "{typed}");
        }
    }

    #[test]
    fn unsafe_names_and_contacts_are_refused() {
        let long = format!("https://shop.example/{}", "x".repeat(MAX_CONTACT_CHARS));
        let table = [
            "javascript:alert(1)",
            "http://shop.example",
            "data:text/html,x",
            "//shop.example",
            "shop.example",
            "https://user:secret@shop.example/",
            "https://192.0.2.1/",
            "https://localhost/",
            "https://shop.example/\u{202e}gpj.exe",
            "mailto:help@shop.example?bcc=spy@example.com",
            "mailto:help@shop.example,other@shop.example",
            "Help <help@shop.example>",
            "tel:1234567",
            "tel:+123",
            "+593 99 call me",
            "whatsapp://send?phone=1",
            &long,
        ];
        for typed in table {
            assert_eq!(Shop::parse("", typed), Err(ShopError::Contact), "{typed}");
        }
        for name in ["a\u{202e}b", "a\u{7}b", &"ñ".repeat(MAX_NAME_CHARS + 1)] {
            assert_eq!(Shop::parse(name, ""), Err(ShopError::Name), "{name}");
        }
        let fits = "ñ".repeat(MAX_NAME_CHARS);
        assert_eq!(Shop::parse(&fits, " ").unwrap(), Shop { name: Some(fits), contact: None });
        assert_eq!(Shop::parse("  ", "").unwrap(), Shop::default());
    }

    #[test]
    fn each_error_is_explained_in_both_languages() {
        for error in [ShopError::Name, ShopError::Contact] {
            assert_ne!(error.text(Language::En), error.text(Language::Es), "{error:?}");
        }
    }
}
