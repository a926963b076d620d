//! `--sender FILE`: the sender of orders without one, as JSON or TOML with the field names of the API.

use parcelo::{
    model::{FaultCode, FieldFault, Warning, WarningCode},
    rules::{Destinations, OrderContext, check_order},
};
use serde_json::{Map, Value, json};
use toml_edit::{Item, TableLike};

use crate::{failure::Failure, input::Source, texts::import as texts, toml_file};

/// Reads a sender and checks it with the rules once, so that its faults are not reported again for every row.
pub(crate) fn read_sender(source: &Source) -> Result<Value, Failure> {
    let text = source.read_text()?;
    let sender = if text.trim_start().starts_with('{') {
        serde_json::from_str(&text).map_err(|err| err.line())
    } else {
        toml_file::parse(&text).map(|document| from_table(&*document))
    };
    let file = source.name();
    let sender = sender.map_err(|line| {
        let values = [("file", &*file), ("line", &*line.to_string())];
        Failure::usage(texts::SENDER_UNREADABLE.with(&values), texts::SENDER_FORM)
    })?;
    let faults = find_faults(&sender);
    if faults.is_empty() {
        return Ok(sender);
    }
    let message = texts::INVALID_SENDER.with(&[("file", &file)]);
    Err(Failure::usage(message, texts::SENDER_FORM).with(|details| details.fields = faults))
}

/// Returns the faults of the sender. A misspelt field is a fault here, because its value would be missing in every
/// order.
fn find_faults(sender: &Value) -> Vec<FieldFault> {
    let order = json!({ "sender": sender });
    let Err(rejected) = check_order(&order, &OrderContext::new(&Destinations::All)) else {
        return Vec::new();
    };
    let is_own = |field: &str| field == "sender" || field.starts_with("sender.");
    let unknown =
        |warning: &Warning| warning.code == WarningCode::UnknownField && is_own(&warning.field);
    let unknown = rejected.warnings.into_iter().filter(unknown).map(|warning| {
        let code = FaultCode::from("UNKNOWN_FIELD");
        FieldFault::new(warning.field, code, (warning.message, warning.message_es))
    });
    let own = rejected.faults.into_iter().filter(|fault| is_own(&fault.field));
    own.chain(unknown).collect()
}

fn from_table(table: &dyn TableLike) -> Value {
    let members = table.iter().map(|(name, item)| (name.to_owned(), from_item(item)));
    Value::Object(members.collect::<Map<_, _>>())
}

/// Converts TOML to JSON. All fields of a sender are texts; the rules reject any other value.
fn from_item(item: &Item) -> Value {
    match (item.as_table_like(), item.as_str()) {
        (Some(table), _) => from_table(table),
        (None, Some(text)) => Value::from(text),
        (None, None) => Value::from(item.as_integer()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TOML: &str = "fullName = 'Ana Ruiz'\nphone = '+13055550100'\n[address]\n\
        line1 = '8400 NW 25th St'\ncity = 'Miami'\nstate = 'FL'\nzipCode = '33122'\ncountry = 'US'\n";

    fn read_text(text: &str) -> Result<Value, Failure> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        read_sender(&Source::File(file.path().to_owned()))
    }

    #[test]
    fn a_sender_is_read_from_toml_and_json_alike() {
        let sender = read_text(TOML).unwrap();
        assert_eq!(sender["address"]["zipCode"], "33122");
        assert_eq!(read_text(&format!("\u{feff}{sender}")).unwrap(), sender);
    }

    #[test]
    fn a_wrong_sender_is_refused_with_its_invalid_fields() {
        for (text, field) in [
            (TOML.replace("fullName", "fulName"), "sender.fulName"),
            (TOML.replace("+13055550100", "13055550100"), "sender.phone"),
            (TOML.replace("'33122'", "33122"), "sender.address.zipCode"),
            (TOML.replace("[address]", "[adress]"), "sender.address"),
        ] {
            let failure = read_text(&text).unwrap_err();
            let found: Vec<_> = failure.fields.iter().map(|fault| &*fault.field).collect();
            assert!(found.iter().any(|found| found.starts_with(field)), "{field}: {found:?}");
        }
        for text in ["fullName =", "{\"fullName\":", "a\nb"] {
            assert!(read_text(text).unwrap_err().message.en.contains("line "), "{text}");
        }
    }
}
