//! The ids of the objects of the service, with a type for each kind, so that they cannot be confused.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{InvalidValue, lenient, macros::text_traits};

/// Maximum number of characters after an id's prefix.
const MAX_LENGTH: usize = 64;

/// Returns `true` if a text is the prefix followed by letters and digits.
fn has_form(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|rest| {
        (1..=MAX_LENGTH).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_alphanumeric())
    })
}

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident = $prefix:literal, $error:ident, $example:literal;)+) => {$(
        $(#[$meta])*
        ///
        /// An id from a response is kept as the service sent it, whatever its form.
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            #[doc = concat!("Parses an id: `", $prefix, "` and 1-64 letters and digits.")]
            pub fn parse(text: &str) -> Result<Self, InvalidValue> {
                if has_form(text, $prefix) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidValue::$error)
                }
            }

            /// Returns this text as an id without checking its form.
            #[doc(hidden)]
            pub fn unchecked(text: impl Into<Box<str>>) -> Self {
                Self(text.into())
            }

            /// Returns the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        text_traits!($name, concat!("^", $prefix, "[0-9A-Za-z]{1,64}$"), $example);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Value::deserialize(deserializer).map(|value| Self(lenient::text(value).into()))
            }
        }
    )+};
}

ids! {
    /// The id of a parcel: `par_…`.
    ///
    /// ```
    /// # use parcelo::model::ParcelId;
    /// let id = ParcelId::parse("par_01KEBQ5R8T7J3N6V9X2Z4B8D0F")?;
    /// assert_eq!(id.as_str(), "par_01KEBQ5R8T7J3N6V9X2Z4B8D0F");
    /// assert!(ParcelId::parse("man_01KEBQ5R8T7J3N6V9X2Z4B8D0F").is_err());
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    ParcelId = "par_", PARCEL_ID, "par_01KEBQ5R8T7J3N6V9X2Z4B8D0F";
    /// The id of a label: `lbl_…`.
    ///
    /// ```
    /// # use parcelo::model::LabelId;
    /// assert!(LabelId::parse("lbl_01KEBQ5R8T7J3N6V9X2Z4B8D0F").is_ok());
    /// ```
    LabelId = "lbl_", LABEL_ID, "lbl_01KEBQ5R8T7J3N6V9X2Z4B8D0F";
    /// The id of a manifest: `man_…`.
    ///
    /// ```
    /// # use parcelo::model::ManifestId;
    /// assert!(ManifestId::parse("man_01KEBQ5R8T7J3N6V9X2Z4B8D0F").is_ok());
    /// assert!(ManifestId::parse("176-12345675").is_err()); // an air waybill
    /// ```
    ManifestId = "man_", MANIFEST_ID, "man_01KEBQ5R8T7J3N6V9X2Z4B8D0F";
    /// The id of an event: `evt_…`.
    ///
    /// ```
    /// # use parcelo::model::EventId;
    /// assert!(EventId::parse("evt_01KEBQ5R8T7J3N6V9X2Z4B8D0F").is_ok());
    /// ```
    EventId = "evt_", EVENT_ID, "evt_01KEBQ5R8T7J3N6V9X2Z4B8D0F";
    /// The id of a request, to quote to support: `req_…`.
    ///
    /// ```
    /// # use parcelo::model::RequestId;
    /// let id: RequestId = serde_json::from_str("\"7d2f-of-a-proxy\"")?; // in a response
    /// assert_eq!(id.to_string(), "7d2f-of-a-proxy");
    /// assert!(RequestId::parse(id.as_str()).is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    RequestId = "req_", REQUEST_ID, "req_01KEBQ5R8T7J3N6V9X2Z4B8D0F";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_ids_are_validated_but_ids_in_responses_are_not() {
        for good in ["par_1", "par_01KEBQ5R8T", &format!("par_{}", "a".repeat(64))] {
            assert_eq!(ParcelId::parse(good).unwrap().as_str(), good);
        }
        for bad in
            ["", "par_", "PAR_1", "man_1", "par_1/2", "par_ñ", &format!("par_{}", "a".repeat(65))]
        {
            assert_eq!(ParcelId::parse(bad), Err(InvalidValue::PARCEL_ID), "{bad}");
            let read: ParcelId = serde_json::from_value(bad.into()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), bad);
        }
        assert_eq!(serde_json::from_str::<ParcelId>("7").unwrap().as_str(), "7");
    }
}
