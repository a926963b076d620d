//! The value of a cell in an order: text, or a number if it is unambiguous.

use parcelo::Decimal;
use serde_json::{Map, Value};

use super::columns::{CellType, Column};

/// Sets the field of a column to the value of a cell.
pub(super) fn set(order: &mut Value, column: &Column, cell: &str) {
    let value = match column.kind {
        CellType::Text => Value::from(cell),
        CellType::Number => parse_number(cell).unwrap_or_else(|| Value::from(cell)),
    };
    let mut target = order;
    for name in column.path.split('.') {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        target = &mut target[name];
    }
    *target = value;
}

/// Returns the two numbers that a cell such as `1,250` may mean.
pub(super) fn possible_numbers(cell: &str) -> Option<[String; 2]> {
    let (whole, rest) = cell.split_once(',')?;
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_either = (1..=3).contains(&whole.len()) && rest.len() == 3;
    (is_either && is_digits(whole) && is_digits(rest))
        .then(|| [format!("{whole}{rest}"), format!("{whole}.{rest}")])
}

/// Parses a number with a decimal point, or with a decimal comma followed by one or two digits. `1,250` is ambiguous,
/// so it stays text, which the rules reject.
fn parse_number(cell: &str) -> Option<Value> {
    let text = match cell.split_once(',') {
        // A thousands separator never follows a single zero.
        Some((whole, rest)) if whole == "0" || (1..=2).contains(&rest.len()) => {
            format!("{whole}.{rest}")
        }
        Some(_) => return None,
        None => cell.to_owned(),
    };
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-');
    let decimal = text.parse::<Decimal>().ok().filter(|_| plain)?;
    parcelo_types::internal::decimal::to_number(decimal).map(Value::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_is_a_number_only_if_unambiguous() {
        let table = [
            ("45.50", Some(json!(45.5))),
            ("45,50", Some(json!(45.5))),
            ("7", Some(json!(7))),
            ("007", Some(json!(7))),
            ("-1", Some(json!(-1))),
            ("0,5", Some(json!(0.5))),
            ("0,250", Some(json!(0.25))),
            ("1,250", None),
            ("1,250.00", None),
            ("1.250,00", None),
            ("$5", None),
            ("1e3", None),
            ("1_000", None),
            ("", None),
            ("kg", None),
        ];
        for (cell, expected) in table {
            assert_eq!(parse_number(cell), expected, "{cell}");
        }
        for (cell, is_either) in
            [("1,250", true), ("1,250.00", false), ("1,25", false), ("1,2a0", false)]
        {
            assert_eq!(possible_numbers(cell).is_some(), is_either, "{cell}");
        }
    }
}
