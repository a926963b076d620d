//! Lenient deserialization of the responses of a newer service: values that cannot be parsed are kept unchanged, or
//! omitted where the rest matters more. Requests are parsed strictly, by the rules.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;

/// JSON from the service that this version of the crate cannot parse, unchanged.
///
/// `Display` and `Debug` do not show it: it may hold personal data, or the link to a label.
#[derive(Clone, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[serde(transparent)]
#[error(
    "the response holds something that this version of parcelo cannot read; is there a newer one?"
)]
pub struct Unreadable {
    json: Value,
}

/// A row of a response. A row that cannot be parsed keeps its position and its JSON, and the others are returned as
/// usual.
///
/// ```
/// # use parcelo::model::{Row, TrackingRecord, Unreadable};
/// let record: TrackingRecord = serde_json::from_str(r#"{"trackingNumber": "SB-SUCCESS-0001",
///     "status": "ORDERED", "statusName": "Order created",
///     "estimatedDelivery": "2026-01-20T23:59:59-05:00",
///     "history": [{"status": "ORDERED", "timestamp": "yesterday"}]}"#)?;
/// for event in record.history.iter().flatten() {
///     match event {
///         Ok(event) => println!("{}", event.status_name),
///         Err(row) => println!("{}", row.json()["timestamp"]), // "yesterday"
///     }
/// }
/// # assert!(matches!(&record.history.unwrap()[..], [Row::Err(Unreadable { .. })]));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type Row<T> = Result<T, Unreadable>;

impl Unreadable {
    #[doc(hidden)]
    pub fn new(json: Value) -> Self {
        Self { json }
    }

    /// Returns the JSON, unchanged; the members of objects are sorted.
    pub fn json(&self) -> &Value {
        &self.json
    }

    pub(super) fn into_json(self) -> Value {
        self.json
    }

    /// Returns a member of the JSON, if it can be parsed.
    #[doc(hidden)]
    pub fn member<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        T::deserialize(self.json.get(name)?).ok()
    }
}

impl std::fmt::Debug for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unreadable").finish_non_exhaustive()
    }
}

/// Returns a text unchanged, and any other value as its JSON.
pub(super) fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Parses a row.
pub(super) fn row<T: DeserializeOwned>(value: Value) -> Row<T> {
    T::deserialize(&value).map_err(|_| Unreadable::new(value))
}

/// Returns the rows of a list; any other value counts as a single row.
fn rows_of(list: Value) -> Vec<Value> {
    match list {
        Value::Array(rows) => rows,
        other => vec![other],
    }
}

/// Deserializes a list whose element type accepts any value.
pub(super) fn list<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let rows = rows_of(Value::deserialize(deserializer)?).into_iter();
    rows.map(|row| T::deserialize(row).map_err(serde::de::Error::custom)).collect()
}

/// Deserializes a list of codes as texts.
pub(super) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(rows_of(Value::deserialize(deserializer)?).into_iter().map(text).collect())
}

/// Deserializes a list of texts for people; a text that cannot be parsed is replaced by its JSON.
pub(super) fn texts<'de, T, D>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    T: DeserializeOwned + From<Unreadable>,
    D: Deserializer<'de>,
{
    let rows = rows_of(Value::deserialize(deserializer)?).into_iter();
    Ok(rows.map(|value| row(value).unwrap_or_else(T::from)).collect())
}

/// Deserializes an optional detail; `None` if it cannot be parsed.
pub(super) fn option<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    Ok(T::deserialize(Value::deserialize(deserializer)?).ok())
}

/// Deserializes a code of an open list, or an id, from any value.
pub(super) fn word<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: for<'w> From<&'w str>,
    D: Deserializer<'de>,
{
    Value::deserialize(deserializer).map(|value| T::from(&text(value)))
}

/// A list whose rows may be unreadable. Used as `#[serde(with = "rows")]`.
pub mod rows {
    use super::{Deserialize, DeserializeOwned, Deserializer, Row, Serialize, Serializer, Value};

    /// Serializes the list.
    pub fn serialize<T: Serialize, S: Serializer>(
        rows: &[Row<T>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(rows.iter().map(Either))
    }

    /// Deserializes the list.
    pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Row<T>>, D::Error> {
        let list = Value::deserialize(deserializer)?;
        Ok(super::rows_of(list).into_iter().map(super::row).collect())
    }

    /// Serializes either variant of a row without a tag.
    struct Either<'a, T>(&'a Row<T>);

    impl<T: Serialize> Serialize for Either<'_, T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            match self.0 {
                Ok(row) => row.serialize(serializer),
                Err(unreadable) => unreadable.serialize(serializer),
            }
        }
    }

    /// Serialization of a list that may be absent: it is skipped then.
    pub mod option {
        use super::{
            Deserialize, DeserializeOwned, Deserializer, Row, Serialize, Serializer, Value,
        };

        /// Serializes the list.
        pub fn serialize<T: Serialize, S: Serializer>(
            rows: &Option<Vec<Row<T>>>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            super::serialize(rows.as_deref().unwrap_or_default(), serializer)
        }

        /// Deserializes the list.
        pub fn deserialize<'de, T: DeserializeOwned, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Vec<Row<T>>>, D::Error> {
            let list = Option::<Value>::deserialize(deserializer)?;
            list.map(super::deserialize).transpose().map_err(serde::de::Error::custom)
        }
    }
}
