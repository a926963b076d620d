//! Money and weights: decimals in storage and arithmetic, and numbers in JSON, without conversion to binary floating
//! point. Used as `#[serde(with = "decimal")]`.

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use serde_json::Number;

/// Converts a JSON number by its shortest text, so that `19.99` is exactly 19.99.
///
/// Returns `None` if the number is outside the range of a decimal.
pub fn from_number(number: &Number) -> Option<Decimal> {
    let text = number.to_string();
    text.parse().ok().or_else(|| Decimal::from_scientific(&text).ok())
}

/// Converts a decimal to the JSON number with the same shortest text.
///
/// Never returns `None` for values within the API's bounds.
pub fn to_number(decimal: Decimal) -> Option<Number> {
    let plain = decimal.normalize();
    if plain.scale() == 0
        && let Ok(whole) = i64::try_from(plain)
    {
        return Some(Number::from(whole));
    }
    plain.to_string().parse::<f64>().ok().and_then(Number::from_f64)
}

pub(super) fn serialize<S: Serializer>(
    decimal: &Decimal,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let number =
        to_number(*decimal).ok_or_else(|| ser::Error::custom("the number is too large"))?;
    number.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Decimal, D::Error> {
    in_range(&Number::deserialize(deserializer)?)
}

fn in_range<E: de::Error>(number: &Number) -> Result<Decimal, E> {
    from_number(number).ok_or_else(|| E::custom("the number is out of range"))
}

/// Serialization of a field that may be absent.
pub(super) mod option {
    use super::{Decimal, Deserialize, Deserializer, Number, Serializer, in_range};

    #[expect(clippy::ref_option, reason = "serde gives a reference to the field")]
    pub(in super::super) fn serialize<S: Serializer>(
        decimal: &Option<Decimal>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match decimal {
            Some(decimal) => super::serialize(decimal, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Decimal>, D::Error> {
        let number = Option::<Number>::deserialize(deserializer)?;
        number.map(|number| in_range(&number)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_survives_a_round_trip() {
        for text in ["19.99", "0.1", "999999999.99", "1e2", "0", "1.0", "123456789.123456"] {
            let number: Number = serde_json::from_str(text).unwrap();
            let decimal = from_number(&number).unwrap();
            let back = to_number(decimal).unwrap();
            assert_eq!(from_number(&back), Some(decimal), "{text}");
        }
        assert_eq!(to_number(Decimal::new(1999, 2)).unwrap().to_string(), "19.99");
        assert_eq!(to_number(Decimal::new(4550, 2)).unwrap().to_string(), "45.5");
        assert_eq!(to_number(Decimal::new(300, 2)).unwrap().to_string(), "3");
    }

    #[test]
    fn numbers_outside_the_decimal_range_are_refused() {
        let number: Number = serde_json::from_str("1e300").unwrap();
        assert_eq!(from_number(&number), None);
    }
}
