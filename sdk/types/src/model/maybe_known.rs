//! Values in responses that this version may not know, which are then kept unchanged.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, IntoDeserializer, value::Error as NotKnown},
};
use serde_json::Value;

use super::{CountryCode, Language, lenient};

/// A value in a response that this version knows, or an unknown one, unchanged.
///
/// So a response with the country, currency, environment or label format of a later version can be read.
/// Requests take the value itself, which exists only when this version knows it.
///
/// ```
/// use parcelo::CurrencyCode;
/// use parcelo::model::MaybeKnown;
///
/// let [old, new]: [MaybeKnown<CurrencyCode>; 2] = serde_json::from_str(r#"["USD", "XYZ"]"#)?;
/// assert_eq!(old, CurrencyCode::USD);
/// assert_eq!((new.known(), new.as_str()), (None, "XYZ"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum MaybeKnown<T> {
    /// A value that this version knows.
    Known(T),
    /// A value that this version does not know, unchanged. A value that is not a text is kept as JSON.
    Unknown(String),
}

impl<T> MaybeKnown<T> {
    /// Returns the value, if this version knows it.
    pub fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Unknown(_) => None,
        }
    }
}

impl<T: Spelled> MaybeKnown<T> {
    /// Returns the value as the service spells it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(value) => value.spelling(),
            Self::Unknown(text) => text,
        }
    }
}

/// A value of which a response may have one that this version does not know. Only types of this crate implement it.
pub trait Spelled {
    /// Returns the value as the service spells it.
    fn spelling(&self) -> &str;
}

impl MaybeKnown<CountryCode> {
    /// Returns the country's name, or the code of an unknown country.
    pub fn name(&self, language: Language) -> &str {
        match self {
            Self::Known(country) => country.name(language),
            Self::Unknown(code) => code,
        }
    }
}

impl<T> From<T> for MaybeKnown<T> {
    fn from(value: T) -> Self {
        Self::Known(value)
    }
}

impl<T: PartialEq> PartialEq<T> for MaybeKnown<T> {
    fn eq(&self, other: &T) -> bool {
        self.known() == Some(other)
    }
}

impl<T: fmt::Display> fmt::Display for MaybeKnown<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown(text) => f.write_str(text),
        }
    }
}

impl<T: Serialize> Serialize for MaybeKnown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Unknown(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for MaybeKnown<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = lenient::text(Value::deserialize(deserializer)?);
        let known: Result<T, NotKnown> = T::deserialize(text.as_str().into_deserializer());
        Ok(known.map_or(Self::Unknown(text), Self::Known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Awb, CurrencyCode, Environment, TrackingNumber, label::LabelFormat};

    fn assert_round_trip<T: DeserializeOwned + Serialize>(known: &str, unknown: &str) {
        let read = |text| serde_json::from_value::<MaybeKnown<T>>(Value::from(text)).unwrap();
        assert!(matches!(read(known), MaybeKnown::Known(_)), "{known}");
        assert!(matches!(read(unknown), MaybeKnown::Unknown(_)), "{unknown}");
        for text in [known, unknown] {
            assert_eq!(serde_json::to_value(read(text)).unwrap(), text);
        }
    }

    #[test]
    fn an_unknown_word_is_kept_and_written_unchanged() {
        assert_round_trip::<CountryCode>("EC", "XK");
        assert_round_trip::<CurrencyCode>("USD", "XYZ");
        assert_round_trip::<Environment>("sandbox", "staging");
        assert_round_trip::<LabelFormat>("PDF", "SVG");
        assert_round_trip::<TrackingNumber>("SB-SUCCESS-0001", "EC/1");
        assert_round_trip::<Awb>("176-12345675", "176-1");
    }

    #[test]
    fn a_value_that_is_not_a_text_is_kept_as_json() {
        for odd in [Value::Null, 7.into(), serde_json::json!({"code": "EC"})] {
            let read: MaybeKnown<CountryCode> = serde_json::from_value(odd.clone()).unwrap();
            assert_eq!(read, MaybeKnown::Unknown(odd.to_string()));
        }
    }
}
