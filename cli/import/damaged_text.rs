//! Text that was damaged before it came into the file: lost characters, and UTF-8 that was read as windows-1252. It
//! would be printed on labels, and no other check would notice.

use parcelo::model::{Warning, WarningCode};
use serde_json::Value;

use super::row::RowFault;
use crate::{encoding, texts::import as texts};

/// Returns a fault for each field in which characters were lost; they cannot be recovered from the file.
pub(crate) fn find_lost_characters(order: &Value) -> Vec<RowFault> {
    let lost = non_ascii_texts(order).into_iter();
    let lost = lost.filter(|(_, text)| text.contains(char::REPLACEMENT_CHARACTER));
    lost.map(|(field, _)| RowFault {
        field: Some(field),
        ..RowFault::new("LOST_CHARACTER", texts::LOST_CHARACTER)
    })
    .collect()
}

/// Returns a warning for each field that looks like UTF-8 read as windows-1252. It is not corrected, because the text
/// may be intended.
pub(crate) fn find_misread_text(order: &Value) -> Vec<Warning> {
    let misread = non_ascii_texts(order).into_iter();
    let misread = misread.filter_map(|(field, text)| Some((field, restore_text(text)?)));
    misread
        .map(|(field, meant)| {
            let message = texts::MISREAD.with(&[("meant", &meant)]);
            Warning::new(WarningCode::from("TEXT_MISREAD"), field, (message.en, message.es))
        })
        .collect()
}

/// Returns the texts that have non-ASCII characters, with their paths.
fn non_ascii_texts(value: &Value) -> Vec<(String, &str)> {
    match value {
        Value::String(text) if !text.is_ascii() => vec![(String::new(), text)],
        Value::Array(all) => all
            .iter()
            .enumerate()
            .flat_map(|(index, value)| below(&format!("[{index}]"), value))
            .collect(),
        Value::Object(members) => {
            members.iter().flat_map(|(name, value)| below(name, value)).collect()
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => Vec::new(),
    }
}

fn below<'v>(step: &str, value: &'v Value) -> Vec<(String, &'v str)> {
    let path = |rest: &str| match rest.chars().next() {
        None | Some('[') => format!("{step}{rest}"),
        Some(_) => format!("{step}.{rest}"),
    };
    non_ascii_texts(value).into_iter().map(|(rest, text)| (path(&rest), text)).collect()
}

/// Returns the original of a text in which UTF-8 was read as windows-1252, as in `JosÃ©` for `José`.
fn restore_text(text: &str) -> Option<String> {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| !c.is_ascii()) {
        let (plain, from) = rest.split_at(start);
        let end = from.find(|c: char| c.is_ascii()).unwrap_or(from.len());
        let (part, after) = from.split_at(end);
        whole.push_str(plain);
        whole.push_str(&decode_part(part).unwrap_or_else(|| part.to_owned()));
        rest = after;
    }
    whole.push_str(rest);
    // A text with lost characters has a separate fault already.
    let is_lost = whole.contains(char::REPLACEMENT_CHARACTER);
    (whole != text && !is_lost).then_some(whole)
}

/// Decodes letters and punctuation of western languages only. Other characters would come from pairs that people really
/// write, such as a capital letter and a closing quotation mark.
fn decode_part(part: &str) -> Option<String> {
    let bytes: Vec<u8> = part.chars().map(encoding::to_windows_1252).collect::<Option<_>>()?;
    let text = String::from_utf8(bytes).ok()?;
    let is_western = |c: char| matches!(c, '\u{A0}'..='\u{FF}' | '\u{2010}'..='\u{203A}' | '€');
    text.chars().all(is_western).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn utf_8_misread_as_windows_1252_is_recognised() {
        let table = [
            ("JosÃ© PeÃ±a MuÃ±oz", Some("José Peña Muñoz")),
            ("BogotÃ¡, NÂº 5", Some("Bogotá, Nº 5")),
            ("MarÃ\u{AD}a", Some("María")),
            ("Oâ€™Brien", Some("O’Brien")),
            ("JosÃ© y Peña", Some("José y Peña")),
            ("Ã‘andÃº", Some("Ñandú")),
            // Intended texts.
            ("José Peña Muñoz", None),
            ("SÃO JOÃO", None),
            ("“CAFÉ”", None),
            ("Âge, Ñ¿, É—", None),
            ("王小明", None),
            ("Jos\u{FFFD}", None),
            ("MarÃ\u{AD}a Ã\u{FFFD}ngel", None),
            ("plain", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(restore_text(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn damaged_text_is_found_in_every_field() {
        let order = json!({
            "receiver": { "fullName": "Jos\u{FFFD}", "address": { "city": "BogotÃ¡" } },
            "products": [{ "description": "plain" }, { "description": "CafÃ©", "quantity": 1 }],
        });
        let lost: Vec<_> =
            find_lost_characters(&order).into_iter().filter_map(|fault| fault.field).collect();
        assert_eq!(lost, ["receiver.fullName"]);
        let mut misread: Vec<_> =
            find_misread_text(&order).into_iter().map(|warning| warning.field).collect();
        misread.sort();
        assert_eq!(misread, ["products[1].description", "receiver.address.city"]);
    }
}
