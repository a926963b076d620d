//! The route code, which is printed large in the header because parcels are sorted by it: the hub of the destination
//! and the first three characters of the postal code, as in `UIO-170`.

use parcelo_types::{CountryCode, ReceiverAddress};
use unicode_normalization::UnicodeNormalization;

/// Returns the route code of an address.
pub(super) fn route_code(address: &ReceiverAddress) -> String {
    let postal = postal_prefix(address.zip_code.as_deref().unwrap_or_default());
    let hub = destination_hub(address, &postal);
    if postal.is_empty() { hub.to_owned() } else { format!("{hub}-{postal}") }
}

/// Returns the first three letters or digits of a postal code.
fn postal_prefix(zip_code: &str) -> String {
    let characters = zip_code.chars().filter(char::is_ascii_alphanumeric);
    characters.take(3).map(|c| c.to_ascii_uppercase()).collect()
}

/// Returns the airport code of the hub that serves an address; the country code if no hub is known.
fn destination_hub(address: &ReceiverAddress, postal: &str) -> &'static str {
    if address.country == CountryCode::EC && is_served_by_coast_hub(address, postal) {
        return COAST_HUB;
    }
    let country = address.country.as_str();
    HUBS.iter().find(|(code, _)| *code == country).map_or(country, |(_, hub)| hub)
}

/// Returns `true` if Guayaquil serves the address: by its postal code or, if it has no postal code, by its province.
fn is_served_by_coast_hub(address: &ReceiverAddress, postal: &str) -> bool {
    let province = normalize(address.province.as_deref().unwrap_or_default());
    ECUADOR_COAST.iter().any(|(prefix, name)| {
        if postal.is_empty() { province == *name } else { postal.starts_with(prefix) }
    })
}

/// Returns the letters of a name in lower case, without accents.
fn normalize(name: &str) -> String {
    name.nfd().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()).collect()
}

/// Countries with the airport codes of their hubs.
const HUBS: [(&str, &str); 4] = [("CO", "BOG"), ("EC", "UIO"), ("MX", "MEX"), ("PE", "LIM")];

/// The hub of Guayaquil, which serves the coast of Ecuador.
const COAST_HUB: &str = "GYE";

/// Provinces of Ecuador that Guayaquil serves, each with its postal prefix and plain name.
const ECUADOR_COAST: [(&str, &str); 5] =
    [("07", "eloro"), ("09", "guayas"), ("12", "losrios"), ("13", "manabi"), ("24", "santaelena")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_code_is_the_hub_and_a_postal_prefix() {
        let rows = [
            ("EC", "170150", "Pichincha", "UIO-170"),
            ("EC", "090101", "Guayas", "GYE-090"),
            ("EC", "", "Manabí", "GYE"),
            ("EC", "", "Los Ríos", "GYE"),
            ("EC", "", "Azuay", "UIO"),
            ("CO", "110111", "", "BOG-110"),
            ("MX", "01000", "", "MEX-010"),
            ("PE", "15001", "", "LIM-150"),
            ("CA", "k1a 0b1", "", "CA-K1A"),
            ("GB", " - ", "", "GB"),
        ];
        for (country, zip, province, code) in rows {
            let country = CountryCode::parse(country).unwrap();
            let address = ReceiverAddress::new("", "", country);
            let address = address.with_province(province).with_zip_code(zip);
            assert_eq!(super::route_code(&address), code);
        }
    }
}
