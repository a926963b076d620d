//! Parses a body as one JSON object, strictly: a repeated member is an error, because two readers of such a body
//! could see two different orders.

use std::{borrow::Cow, cell::RefCell, collections::btree_map::Entry, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Number, Value};

use super::{
    path,
    texts::{FaultText, faults},
};
use crate::model::{
    FieldFault,
    json::{Json, Members},
};

/// The name of the member in which `serde_json` wraps a number if any crate of the build enables its feature
/// `arbitrary_precision`.
const NUMBER_MEMBER: &str = "$serde_json::private::Number";

/// Parses a body. It must be one JSON object in UTF-8, nested at most 128 deep (`serde_json`'s limit, which keeps the
/// stack small), without repeated members; anything else is one fault of the field `body`.
///
/// ```
/// use parcelo::model::FaultCode;
/// use parcelo_types::internal::parse_body;
/// let fault = parse_body(br#"{"a": 1, "a": 2}"#).unwrap_err();
/// assert_eq!((fault.field.as_str(), fault.code), ("body", FaultCode::MalformedJson));
/// assert!(parse_body(br#"{"a": 1}"#).is_ok());
/// ```
pub fn parse_body(bytes: &[u8]) -> Result<Value, FieldFault> {
    parse_json(bytes).map(Value::from)
}

/// Parses the body as JSON that borrows from the bytes.
#[doc(hidden)]
pub fn parse_json(bytes: &[u8]) -> Result<Json<'_>, FieldFault> {
    // UTF-8 is checked once for the whole body, which costs a tenth of a check of each text. In a body that is not
    // UTF-8, the parser finds the position of the fault.
    match str::from_utf8(bytes) {
        Ok(text) => parse(bytes, serde_json::Deserializer::from_str(text)),
        Err(_) => parse(bytes, serde_json::Deserializer::from_slice(bytes)),
    }
}

fn parse<'a>(
    bytes: &'a [u8],
    mut reader: serde_json::Deserializer<impl serde_json::de::Read<'a>>,
) -> Result<Json<'a>, FieldFault> {
    let repeated = RefCell::new(None);
    let read = Reader { repeated: &repeated }.deserialize(&mut reader);
    let fault = match read.and_then(|value| reader.end().map(|()| value)) {
        Ok(json @ Json::Object(_)) => return Ok(json),
        Ok(_) => faults::BODY_NOT_OBJECT,
        Err(error) => malformed(bytes, &error, repeated.into_inner()),
    };
    Err(fault.at("body"))
}

fn malformed(bytes: &[u8], error: &serde_json::Error, repeated: Option<String>) -> FaultText {
    match repeated {
        Some(name) => faults::body_duplicate(path::shorten_name(&name)),
        None => faults::body_malformed(position(bytes, error)),
    }
}

/// Returns the line and column of a fault. For one at the end of a line `serde_json` says column 0 of the next line.
fn position(bytes: &[u8], error: &serde_json::Error) -> (usize, usize) {
    let (line, column) = (error.line(), error.column());
    match line.checked_sub(2) {
        Some(before) if column == 0 => {
            let length = bytes.split(|byte| *byte == b'\n').nth(before).map_or(0, <[u8]>::len);
            (line - 1, length + 1)
        }
        Some(_) | None => (line, column),
    }
}

/// Parses a value and remembers a repeated member, which an error of `serde_json` cannot carry.
#[derive(Clone, Copy)]
struct Reader<'r> {
    repeated: &'r RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Json<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Json<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json<'de>, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json<'de>, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json<'de>, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Json<'de>, E> {
        Number::from_f64(value).map(Json::Number).ok_or_else(|| E::custom("no finite number"))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json<'de>, E> {
        Ok(Json::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json<'de>, A::Error> {
        let mut object = Members::new();
        while let Some(Name(name)) = members.next_key::<Name<'de>>()? {
            if name == NUMBER_MEMBER && object.is_empty() {
                return members.next_value::<WrittenNumber>().map(|number| number.0);
            }
            match object.entry(name) {
                Entry::Vacant(place) => place.insert(members.next_value_seed(self)?),
                Entry::Occupied(first) => {
                    self.repeated.replace(Some(first.key().to_string()));
                    return Err(de::Error::custom("a repeated member"));
                }
            };
        }
        Ok(Json::Object(object))
    }
}

/// The name of a member. It must be requested as a text: `serde_json` does not return [`NUMBER_MEMBER`] otherwise.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

/// A number as the text in which it was written.
struct WrittenNumber<'a>(Json<'a>);

impl<'de> Deserialize<'de> for WrittenNumber<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(|number| Self(Json::Number(number))).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FaultCode;

    #[test]
    fn a_body_is_read_unchanged() {
        let text = r#"{"a":[1,-2,2.5,1e2,true,false,null,"\u00e9",{}],"b":{"c":{"a":1}}}"#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parse_body(text.as_bytes()), Ok(expected));
    }

    #[test]
    fn a_fault_has_its_line_and_column_or_its_member() {
        let table = [
            ("{\n\"a\": 1\n\"b\": 2}", "line 3, column 1."),
            ("{\n\"a\": 1,\n\"b\": tru\n}", "line 3, column 9."),
            ("{\"a\": \"x\ny\"}", "line 1, column 9."),
            ("{\"a\"\n", "line 1, column 5."),
            ("{", "line 1, column 1."),
            ("{\n \"a\": x}", "line 2, column 7."),
        ];
        for (text, place) in table {
            let fault = parse_body(text.as_bytes()).unwrap_err();
            assert!(fault.message.ends_with(place), "{text:?}: {}", fault.message);
        }
        assert!(parse_body(br#"{"ab":1,"ab":2}"#).unwrap_err().message.contains("`ab`"));
    }

    #[test]
    fn invalid_json_is_a_single_fault_of_the_body() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let table: &[&[u8]] = &[
            b"",
            b"   ",
            b"null",
            b"[]",
            b"\"text\"",
            b"17",
            b"{",
            b"{}{}",
            b"{} x",
            b"{'a':1}",
            b"{\"a\":NaN}",
            b"{\"a\":01}",
            b"{\"a\":1,}",
            b"{\"a\":\"\xff\"}",
            b"{\"a\":\"\\ud800\"}",
            b"{\"a\":\"\x01\"}",
            b"\xef\xbb\xbf{}",
            b"{\"a\":1,\"a\":1}",
            b"{\"a\":{\"b\":[{\"c\":1,\"c\":2}]}}",
            b"{\"\\u0061\":1,\"a\":1}",
            b"{\"$serde_json::private::Number\":\"x\"}",
            deep.as_bytes(),
        ];
        for bytes in table {
            let shown = String::from_utf8_lossy(bytes);
            let fault = parse_body(bytes).unwrap_err();
            assert_eq!((fault.field.as_str(), fault.code), ("body", FaultCode::MalformedJson));
            assert_ne!(fault.message, fault.message_es, "{shown}");
        }
    }
}
