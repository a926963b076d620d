//! The countries that the service ships to: every country, unless the operator restricts them.

use std::collections::BTreeSet;

use crate::model::CountryCode;

/// The countries that a service ships to.
///
/// ```
/// use parcelo::CountryCode;
/// use parcelo::rules::Destinations;
/// let andes = Destinations::Only([CountryCode::EC, CountryCode::CO].into());
/// assert!(andes.supports(CountryCode::EC) && !andes.supports(CountryCode::MX));
/// assert!(Destinations::All.supports(CountryCode::MX));
/// ```
#[derive(Debug, Clone, Default)]
pub enum Destinations {
    /// Every assigned ISO 3166-1 code.
    #[default]
    All,
    /// Only these countries.
    Only(BTreeSet<CountryCode>),
}

impl Destinations {
    /// Returns `true` if the service ships to this country.
    pub fn supports(&self, country: CountryCode) -> bool {
        match self {
            Self::All => true,
            Self::Only(countries) => countries.contains(&country),
        }
    }
}
