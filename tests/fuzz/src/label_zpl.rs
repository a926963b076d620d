//! Labels in ZPL: the texts of an order are printed, and never executed by the printer as commands.

use parcelo_server::mock::sample;
use serde_json::{Value, json};

use crate::{
    Target,
    service::{Service, with_service},
};

pub(crate) const TARGET: Target = Target { name: "label_zpl", check, cases: 300 };

/// The fields of an order whose values are the lines of an input, in this order.
const FIELDS: [&str; 14] = [
    "/receiver/fullName",
    "/receiver/address/line1",
    "/receiver/address/deliveryInstructions",
    "/receiver/address/city",
    "/sender/fullName",
    "/sender/companyName",
    "/sender/address/line1",
    "/sender/address/line2",
    "/sender/address/city",
    "/customerReference",
    "/externalOrderId",
    "/customsInfo/description",
    "/receiver/phone",
    "/sender/phone",
];

/// All commands that a label may contain.
const COMMANDS: [&str; 20] = [
    "XA", "XZ", "CI", "PW", "LL", "LH", "FO", "FT", "GB", "A0", "FB", "FR", "FH", "FD", "FS", "BY",
    "BC", "BQ", "GF", "FN",
];

fn check(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines: Vec<&str> = text.split('\n').collect();
    with_service(|service| {
        if let Some(number) = create_order(service, &lines) {
            let key = service.key("default");
            let path = format!("/api/v1/labels/{number}/download?format=zpl");
            let label = service.get(&key, &path);
            assert_eq!(label.status, 200, "{label:?}");
            assert_is_label(&label.text());
        }
    });
}

/// Creates an order with these texts; a field whose text is rejected keeps its sample value. Returns the tracking
/// number, or `None` if the order is still rejected.
fn create_order(service: &Service, lines: &[&str]) -> Option<String> {
    let key = service.key("default");
    let mut order = sample::order();
    order.as_object_mut().unwrap().remove("trackingNumber");
    let sample_order = order.clone();
    for (field, line) in FIELDS.iter().zip(lines).filter(|(_, line)| !line.trim().is_empty()) {
        set_field(&mut order, field, json!(line));
    }
    for _ in 0..2 {
        let response = service.post(&key, "/api/v1/orders/create", order.to_string().as_bytes());
        if response.status == 201 {
            return Some(response.json()["parcel"]["trackingNumber"].as_str().unwrap().to_owned());
        }
        for (field, _) in response.faults() {
            let pointer = format!("/{}", field.replace('.', "/"));
            let sample_value = sample_order.pointer(&pointer).cloned().unwrap_or(Value::Null);
            set_field(&mut order, &pointer, sample_value);
        }
    }
    None
}

fn set_field(order: &mut Value, pointer: &str, value: Value) {
    if let Some((parent, name)) = pointer.rsplit_once('/')
        && let Some(Value::Object(members)) = order.pointer_mut(parent)
    {
        members.insert(name.to_owned(), value);
    }
}

/// Checks the label as a printer reads it: `^` or `~` and two characters are a command, wherever they are.
fn assert_is_label(zpl: &str) {
    assert!(zpl.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)), "{zpl}");
    assert!(zpl.starts_with("^XA\n") && zpl.ends_with("^XZ\n") && !zpl.contains('~'), "{zpl}");
    let parts: Vec<(&str, &str)> = zpl.split('^').skip(1).map(|part| part.split_at(2)).collect();
    let count = |name: &str| parts.iter().filter(|(command, _)| *command == name).count();
    assert_eq!((count("XA"), count("XZ")), (1, 1), "{zpl}");
    let mut has_escapes = false;
    let mut is_in_field = false;
    for (command, data) in &parts {
        assert!(COMMANDS.contains(command), "^{command} in {zpl}");
        match *command {
            "FH" => has_escapes = true,
            "FD" => {
                is_in_field = true;
                assert_is_text(data, has_escapes);
            }
            "FS" => {
                assert!(data.trim().is_empty(), "text outside a field: {data}");
                (has_escapes, is_in_field) = (false, false);
            }
            _ => assert!(!is_in_field, "^{command} within a field: {zpl}"),
        }
    }
}

/// Checks the data of a field, in which `_XX` stands for a byte after `^FH`: it must be one line of UTF-8, without a
/// `\&` that would break it.
fn assert_is_text(data: &str, has_escapes: bool) {
    assert!(!data.contains('\n') && !data.contains("\\&") && !data.contains("_5C&"), "{data}");
    let mut bytes = Vec::new();
    let mut rest = data.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if has_escapes && *first == b'_' {
            let digits = std::str::from_utf8(&after[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &after[2..];
        } else {
            assert!(has_escapes || *first != b'_', "{data}");
            bytes.push(*first);
            rest = after;
        }
    }
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.chars().any(char::is_control), "{text:?}");
}
