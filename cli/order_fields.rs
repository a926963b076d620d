//! `--set receiver.address.city=Quito`: fields that are set in the orders of files, or in an empty order. The rules
//! decide whether they exist and are valid.

use parcelo::{
    model::WarningCode,
    rules::{Destinations, OrderContext, check_order},
};
use serde_json::{Map, Number, Value, json};

use crate::{
    failure::Failure,
    import::nearest_field,
    input::{self, Source},
    sanitize::without_keys,
    texts,
};

/// Orders from files, from fields, or from both.
#[derive(Debug)]
pub(crate) struct OrderInput {
    pub(crate) sources: Vec<Source>,
    pub(crate) fields: Vec<FieldAssignment>,
}

/// A field and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FieldAssignment {
    path: Vec<PathSegment>,
    value: Value,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PathSegment {
    Member(String),
    Item(usize),
}

/// Fields whose values are numbers. Postal codes, telephone numbers and IDs are text even if they look like numbers.
const NUMBERS: [&str; 9] = [
    "weightKg",
    "weightLbs",
    "lengthCm",
    "widthCm",
    "heightCm",
    "declaredValue",
    "quantity",
    "unitFobValue",
    "unitNetWeightKg",
];

/// Maximum index, larger than in any valid order: a huge index would only allocate memory.
const MAX_ITEMS: usize = 1000;

impl OrderInput {
    /// Reads the JSON of the only order.
    pub(crate) fn one(&self) -> Result<String, Failure> {
        let mut orders: Vec<_> = self.all()?.into_iter().flat_map(|(_, orders)| orders).collect();
        match orders.len() {
            0 | 1 => Ok(orders.pop().unwrap_or_default()),
            several => Err(several_orders(several)),
        }
    }

    /// Reads the JSON of every order, grouped by file. A file without orders yields an empty text.
    pub(crate) fn all(&self) -> Result<Vec<(String, Vec<String>)>, Failure> {
        if self.sources.is_empty() {
            return Ok(vec![("--set".to_owned(), vec![self.with_fields_set("{}")])]);
        }
        let read = |source: &Source| {
            let content = read_orders(source)?;
            let orders = match &*input::orders(&content) {
                [] => vec![String::new()],
                orders => orders.iter().map(|order| self.with_fields_set(order)).collect(),
            };
            Ok((source.name(), orders))
        };
        self.sources.iter().map(read).collect()
    }

    /// Returns the order with the fields set. Text that is not JSON is returned unchanged, for the rules to report.
    fn with_fields_set(&self, order: &str) -> String {
        match serde_json::from_str(order) {
            Ok(mut order) if !self.fields.is_empty() => {
                self.fields.iter().for_each(|field| field.set_value(&mut order));
                order.to_string()
            }
            Ok(_) | Err(_) => order.to_owned(),
        }
    }
}

/// Reads a file of orders. A table is an error, because another command imports it.
fn read_orders(source: &Source) -> Result<String, Failure> {
    // The name is checked before the text, because spreadsheets save tables in encodings that an order never has.
    let content = if source.is_sheet() { None } else { Some(source.read_text()?) };
    content.filter(|content| !input::is_table(content)).ok_or_else(|| {
        let message = texts::TABLE_OF_ORDERS.with(&[("file", &source.name())]);
        Failure::usage(message, texts::USE_IMPORT)
    })
}

fn several_orders(count: usize) -> Failure {
    let message = texts::SEVERAL_ORDERS.with(&[("n", &count.to_string())]);
    Failure::usage(message, texts::USE_IMPORT)
}

impl FieldAssignment {
    /// Parses `path=value`; the path is spelled as in faults.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            let values = [("value", &*without_keys(text)), ("option", "--set")];
            Failure::usage(texts::INVALID_VALUE.with(&values), texts::FIELD_FORM)
        };
        let (path, value) = text.split_once('=').ok_or_else(wrong)?;
        let path = parse_path(path).ok_or_else(wrong)?;
        let is_number =
            matches!(path.last(), Some(PathSegment::Member(name)) if NUMBERS.contains(&&**name));
        let number = serde_json::from_str::<Number>(value).ok().filter(|_| is_number);
        let field = Self { path, value: number.map_or_else(|| json!(value), Value::Number) };
        if field.is_unknown() { Err(unknown_field(text)) } else { Ok(field) }
    }

    /// Returns `true` if the rules do not know the field. It would be left out of the request with only a warning.
    fn is_unknown(&self) -> bool {
        // The check uses Mexico, where `state` is a field; elsewhere it is not.
        let mut order = json!({"receiver": {"address": {"country": "MX"}}});
        self.set_value(&mut order);
        let checked = check_order(&order, &OrderContext::new(&Destinations::All));
        let warnings = checked.map_or_else(|rejected| rejected.warnings, |valid| valid.warnings);
        warnings.iter().any(|warning| warning.code == WarningCode::UnknownField)
    }

    fn set_value(&self, order: &mut Value) {
        let mut target = order;
        for segment in &self.path {
            target = match segment {
                PathSegment::Member(name) => member(target, name),
                PathSegment::Item(index) => item(target, *index),
            };
        }
        *target = self.value.clone();
    }
}

fn unknown_field(text: &str) -> Failure {
    let (path, _) = text.split_once('=').unwrap_or((text, ""));
    let message = texts::UNKNOWN_SET_FIELD.with(&[("field", &without_keys(path))]);
    match nearest_field(path) {
        Some(field) => Failure::usage(message, texts::DID_YOU_MEAN.with(&[("value", &field)])),
        None => Failure::usage(message, texts::FIELD_FORM),
    }
}

/// Returns a member of the target, which is replaced by an object if it is not one.
fn member<'a>(target: &'a mut Value, name: &str) -> &'a mut Value {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    &mut target[name]
}

/// Returns an element of the target, which is replaced by an array if it is not one, and extended if necessary.
fn item(target: &mut Value, index: usize) -> &mut Value {
    if !target.is_array() {
        *target = json!([]);
    }
    if let Some(items) = target.as_array_mut()
        && items.len() <= index
    {
        items.resize(index + 1, json!({}));
    }
    &mut target[index]
}

/// Parses a path such as `products[0].description`.
fn parse_path(path: &str) -> Option<Vec<PathSegment>> {
    let mut segments = Vec::new();
    for part in path.split('.') {
        let (name, items) =
            part.split_once('[').map_or((part, None), |(name, rest)| (name, Some(rest)));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric()) {
            return None;
        }
        segments.push(PathSegment::Member(name.to_owned()));
        if let Some(items) = items {
            for index in items.strip_suffix(']')?.split("][") {
                segments.push(PathSegment::Item(
                    index.parse().ok().filter(|index| *index < MAX_ITEMS)?,
                ));
            }
        }
    }
    Some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(order: &Value, fields: &[&str]) -> Value {
        let mut order = order.clone();
        for field in fields {
            FieldAssignment::parse(field).unwrap().set_value(&mut order);
        }
        order
    }

    #[test]
    fn fields_are_set_at_their_path() {
        let order = json!({"sender": {"fullName": "Ana"}, "products": [{"sku": "A"}]});
        let fields = [
            "sender.fullName=Eva = Ruiz",
            "receiver.address.zipCode=170515",
            "parcelDetails.weightKg=1.25",
            "parcelDetails.declaredValue=much",
            "products[0].quantity=2",
            "products[1].description=",
        ];
        let expected = json!({"sender": {"fullName": "Eva = Ruiz"},
            "receiver": {"address": {"zipCode": "170515"}},
            "parcelDetails": {"weightKg": 1.25, "declaredValue": "much"},
            "products": [{"sku": "A", "quantity": 2}, {"description": ""}]});
        assert_eq!(with(&order, &fields), expected);
    }

    #[test]
    fn an_unknown_field_is_refused_with_a_suggestion() {
        let table = [
            ("sender.fulName=Ana", "sender.fullName"),
            ("reciever.address.city=Quito", "receiver.address.city"),
            ("products[2].quantiy=3", "products[2].quantity"),
            ("idempotencykey=order-1", "idempotencyKey"),
        ];
        for (text, meant) in table {
            let failure = FieldAssignment::parse(text).unwrap_err();
            let hint = failure.hint.clone().unwrap().en;
            assert!(hint.contains(&format!("{meant}?")), "{text}: {hint}");
        }
        for text in ["receiver.address.state=Jalisco", "products[0].sku=", "customerReference=7"] {
            assert!(FieldAssignment::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn an_invalid_path_is_refused() {
        for text in [
            "",
            "a",
            "=b",
            "a..b=c",
            ".a=b",
            "a[=b",
            "a[x]=b",
            "a[-1]=b",
            "a[1000]=b",
            "a b=c",
            "a]=b",
            "a[0]x=1",
        ] {
            assert!(FieldAssignment::parse(text).is_err(), "{text}");
        }
    }
}
