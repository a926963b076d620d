//! Files with other headings: column maps, exports of shops, and senders from options and profiles.

use serde_json::{Value, json};

use super::{assert_outcomes, row, sheet};
use crate::shop::{RunOutput, TestShop, Workdir};

pub(crate) const SENDER: &str = "fullName = 'Ana Ruiz'\nphone = '+13055550100'\n[address]\n\
    line1 = '8400 NW 25th St'\ncity = 'Miami'\nstate = 'FL'\nzipCode = '33122'\ncountry = 'US'\n";

/// A column map for the fields that exports of shops do not have.
pub(crate) const MAP: &str = "[columns]\nreceiver_national_id = ['Cedula']\n[defaults]\nweight_kg = 1.25\n\
    receiver_id_type = 'cedula'\nproduct_hs_code = '610910'\n";

/// Three orders, under some of Shopify's headings: the first has two products, the last is cancelled.
pub(crate) const SHOPIFY: &str = "\
Name,Email,Financial Status,Subtotal,Currency,Lineitem quantity,Lineitem name,Lineitem price,\
Lineitem sku,Shipping Name,Shipping Address1,Shipping Address2,Shipping City,Shipping Zip,\
Shipping Province,Shipping Country,Shipping Phone,Cancelled at,Cedula
#1001,l@example.com,paid,55.00,USD,2,Cotton shirt,22.75,SHIRT-M,Luis Paredes,Av. Amazonas N34-451,\
,Quito,'170515,Pichincha,EC,'593991234567,,1714307103
#1001,l@example.com,,,,1,Cap,9.50,CAP-1,,,,,,,,,,
#1002,r@example.com,paid,9.50,USD,1,Cap,9.50,CAP-1,Rosa Quispe,Av. Amazonas N34-451,Piso 2,Quito,\
'170515,Pichincha,EC,+593991234567,,1714307103
#1003,r@example.com,paid,9.50,USD,1,Cap,9.50,CAP-1,Rosa Quispe,Av. Amazonas N34-451,,Quito,\
'170515,Pichincha,EC,+593991234567,2026-01-02,1714307103
";

fn write_to_dir(dir: &Workdir, name: &str, content: &str) {
    std::fs::write(dir.path(name), content).unwrap();
}

fn dir_with_orders(rows: &str) -> Workdir {
    let dir = Workdir::new("", "");
    for (name, content) in [("orders.csv", rows), ("sender.toml", SENDER), ("map.toml", MAP)] {
        write_to_dir(&dir, name, content);
    }
    dir
}

/// Checks the orders without sending them. Returns the number and outcome of each row, with its faults by column.
fn check_rows(dir: &Workdir, options: &str) -> Vec<(u64, String, Vec<[String; 3]>)> {
    let output =
        dir.run(&format!("order import orders.csv --labels out --dry-run -o ndjson {options}"));
    let text = |fault: &Value, name: &str| fault[name].as_str().unwrap_or_default().to_owned();
    let fault = |fault: &Value| ["column", "code", "value"].map(|name| text(fault, name));
    let lines = output.lines();
    assert!(!lines.is_empty(), "{output:?}");
    let row = |row: &Value| {
        let faults = row["errors"].as_array().unwrap().iter().map(fault).collect();
        (row["row"].as_u64().unwrap(), text(row, "outcome"), faults)
    };
    lines.iter().map(row).collect()
}

fn invalid_fields(output: &RunOutput) -> Vec<(String, String)> {
    let text = |fault: &Value, name: &str| fault[name].as_str().unwrap_or_default().to_owned();
    let fields = output.error()["fields"].as_array().unwrap().clone();
    fields.iter().map(|fault| (text(fault, "field"), text(fault, "suggestion"))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shopify_export_becomes_parcels_with_all_products() {
    let shop = TestShop::open().await;
    shop.write_file("orders.csv", SHOPIFY);
    shop.write_file("sender.toml", SENDER);
    shop.write_file("map.toml", MAP);
    let output = shop.import("--preset shopify --map map.toml --sender sender.toml -o ndjson");
    assert_outcomes(&output, 10, &["created", "created", "invalid"]);
    let rows = output.lines();
    let cancelled = &rows[2]["errors"][0];
    assert_eq!(
        (&cancelled["column"], &cancelled["code"]),
        (&json!("Cancelled at"), &json!("MUST_BE_EMPTY"))
    );
    assert_eq!(
        (&cancelled["value"], &rows[2]["reference"]),
        (&json!("\"2026-01-02\""), &json!("#1003"))
    );
    assert!(cancelled["message"].as_str().unwrap().contains("cancelled"), "{cancelled}");
    assert_eq!(rows.iter().map(|row| &row["row"]).collect::<Vec<_>>(), [2, 4, 5]);
    let number = rows[0]["trackingNumber"].as_str().unwrap();
    let label = shop.run(&format!("label show {number}"));
    assert!(label.text().to_uppercase().contains("LUIS PAREDES"), "{label:?}");
    let creations = shop.server.requests().of(parcelo::Operation::CreateOrder);
    let order = creations.for_order("#1001").all().remove(0).request.json().unwrap();
    assert_eq!(order["externalOrderId"], "#1001");
    assert_eq!(order["receiver"]["address"]["zipCode"], "170515");
    assert_eq!(order["receiver"]["phone"], "+593991234567");
    assert_eq!(order["parcelDetails"]["declaredValue"], json!(55));
    let products: Vec<_> = order["products"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (&one["sku"], &one["hsCode"]))
        .collect();
    assert_eq!(
        products,
        [(&json!("SHIRT-M"), &json!("610910")), (&json!("CAP-1"), &json!("610910"))]
    );
    shop.server.assert_exactly_once();
}

#[test]
fn country_names_and_national_numbers_get_suggestions() {
    let rows = SHOPIFY.replace("Pichincha,EC,+593991234567,,", "Pichincha,Ecuador,0991234567,,");
    let rows = rows.replace("Pichincha,EC,'593991234567,,", "Pichincha,EC,0991234567,,");
    let dir = dir_with_orders(&rows);
    let options = "--dry-run -o json --preset shopify --map map.toml --sender sender.toml";
    let output = dir.run(&format!("order import orders.csv --labels out {options}"));
    let rows = output.json()["rows"].as_array().unwrap().clone();
    let suggested = |row: usize, column: &str| -> Value {
        let faults = rows[row]["errors"].as_array().unwrap();
        faults.iter().find(|fault| fault["column"] == column).unwrap()["suggestion"].clone()
    };
    assert_eq!(suggested(0, "Shipping Phone"), "+593991234567");
    assert_eq!(suggested(1, "Shipping Country"), "EC");
    // The country decides which country's number it is.
    assert_eq!(suggested(1, "Shipping Phone"), Value::Null);
}

#[test]
fn a_woocommerce_export_is_read_with_both_extensions_headings() {
    let skyverge = "order_number,order_currency,billing_email,billing_phone,shipping_first_name,\
        shipping_last_name,shipping_address_1,shipping_city,shipping_state,shipping_postcode,\
        shipping_country,item_name,item_sku,item_quantity,item_price,tracking_number,Cedula\n\
        77,USD,l@example.com,593991234567,Luis,Paredes,Av. Amazonas N34-451,Quito,Pichincha,170515,EC,\
        Cotton shirt,SHIRT-M,2,22.75,1Z999,1714307103\n\
        77,USD,l@example.com,593991234567,Luis,Paredes,Av. Amazonas N34-451,Quito,Pichincha,170515,EC,\
        Cap,CAP-1,1,9.5,1Z999,1714307103\n";
    let algol = "\"Order Number\",\"Order Status\",\"First Name (Shipping)\",\"Last Name (Shipping)\",\
        \"Address 1&2 (Shipping)\",\"City (Shipping)\",\"State Code (Shipping)\",\"Postcode (Shipping)\",\
        \"Country Code (Shipping)\",\"Email (Billing)\",\"Phone (Billing)\",SKU,\"Item #\",\"Item Name\",\
        \"Quantity (- Refund)\",\"Item Cost\",Cedula\n\
        77,processing,Luis,Paredes,\"Av. Amazonas N34-451\",Quito,Pichincha,170515,EC,l@example.com,\
        593991234567,SHIRT-M,1,\"Cotton shirt\",2,22.75,1714307103\n";
    for rows in [skyverge, algol] {
        let dir = dir_with_orders(&rows.replace("\n        ", "\n"));
        let rows = check_rows(&dir, "--preset woocommerce --map map.toml --sender sender.toml");
        assert_eq!(rows, [(2, "valid".to_owned(), vec![])]);
    }
}

#[test]
fn fields_missing_in_an_export_are_named_with_their_option() {
    let dir = dir_with_orders(SHOPIFY);
    let output = dir.run("order import orders.csv --labels out --dry-run --preset shopify -o json");
    assert_eq!(output.code, 3, "{output:?}");
    let names: Vec<_> = invalid_fields(&output).into_iter().map(|(field, _)| field).collect();
    assert!(names.contains(&"sender_name".to_owned()), "{names:?}");
    assert!(names.contains(&"weight_kg".to_owned()), "{names:?}");
    let hint = output.error()["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("--sender") && hint.contains("--map"), "{hint}");
}

#[test]
fn the_rows_of_an_order_are_imported_together_or_not_at_all() {
    let other_city = SHOPIFY.replace("Cap,9.50,CAP-1,,,,,,,,,,", "Cap,9.50,CAP-1,,,,Cuenca,,,,,,");
    let much = SHOPIFY.replace("#1001,l@example.com,,,,1,", "#1001,l@example.com,,,,one,");
    let open = SHOPIFY.replace("#1001,l@example.com,,,,1,", "\"#1001,l@example.com,,,,1,");
    let wide = SHOPIFY.replace("CAP-1,,,,,,,,,,\n", "CAP-1,,,,,,,,,,,surplus\n");
    for (rows, column, code, value) in [
        (other_city, "Shipping City", "ROWS_DIFFER", ""),
        (much, "Lineitem quantity", "INVALID_FORMAT", "\"one\""),
        (wide, "", "TOO_MANY_CELLS", "\"surplus\""),
        (open, "", "QUOTE_NOT_CLOSED", ""),
    ] {
        let dir = dir_with_orders(&rows);
        let options = "--preset shopify --map map.toml --sender sender.toml";
        let (number, outcome, faults) = check_rows(&dir, options).remove(0);
        assert_eq!((number, &*outcome), (2, "invalid"), "{code}");
        assert!(faults.contains(&[column, code, value].map(str::to_owned)), "{code}: {faults:?}");
        let output = dir.run(&format!("order import orders.csv --labels out --dry-run {options}"));
        let says_where = output.text().contains("row 3") || output.text().contains("Row 3");
        assert!(says_where, "{code}: {output:?}");
    }
    // If the rows of an order are not adjacent, they are two orders with one reference.
    let lines: Vec<_> = SHOPIFY.lines().collect();
    let dir = dir_with_orders(&[lines[0], lines[1], lines[3], lines[2], ""].join("\n"));
    let rows = check_rows(&dir, "--preset shopify --map map.toml --sender sender.toml");
    assert_eq!(
        rows.iter().map(|(_, outcome, _)| &**outcome).collect::<Vec<_>>(),
        ["invalid", "valid", "invalid"]
    );
}

#[test]
fn a_column_map_starts_as_a_template_and_is_validated() {
    let file = sheet(&[row("A-1")]);
    let dir = dir_with_orders(
        &file.replace("reference,", "Order Nr,").replace("receiver_city", "Reciever city"),
    );
    let template = dir.run("order import orders.csv --map-template");
    assert_eq!((template.code, &*template.stderr), (0, ""), "{template:?}");
    assert!(template.text().contains("\n# receiver_city = \"Reciever city\"\n"), "{template:?}");
    let map = template.text().replace("# receiver_city", "receiver_city");
    let map = map.replace("# field = \"Order Nr\"", "reference = \"Order Nr\"");
    write_to_dir(&dir, "map.toml", &map);
    assert_eq!(check_rows(&dir, "--map map.toml"), [(2, "valid".to_owned(), vec![])]);

    let run = || dir.run("order import orders.csv --labels out --dry-run --map map.toml -o json");
    write_to_dir(&dir, "map.toml", &map.replacen("receiver_city =", "reciever_city =", 1));
    let output = run();
    assert_eq!(output.code, 2, "{output:?}");
    assert_eq!(invalid_fields(&output), [("columns.reciever_city".into(), "receiver_city".into())]);
    write_to_dir(&dir, "map.toml", &map.replace("\"Order Nr\"", "\"Order No\""));
    let output = run();
    assert_eq!(output.code, 3, "{output:?}");
    assert!(
        invalid_fields(&output).contains(&("Order No".into(), "Order Nr".into())),
        "{output:?}"
    );
    let preset = dir.run("order import orders.csv --map-template --preset shopify");
    assert!(preset.text().contains("\"Lineitem quantity\""), "{preset:?}");
}

#[test]
fn a_sender_comes_from_row_option_or_profile_in_this_order() {
    let blank =
        row("A-1").replace("Ana Ruiz,+13055550100,8400 NW 25th St,Miami,FL,33122,US", ",,,,,,");
    let dir = dir_with_orders(&sheet(&[blank, row("A-2")]));
    let valid = |row| (row, "valid".to_owned(), vec![]);
    assert_eq!(check_rows(&dir, "--sender sender.toml"), [valid(2), valid(3)]);
    assert_eq!(check_rows(&dir, "")[0].1, "invalid");
    let folder = dir.path(".config/parcelo");
    std::fs::create_dir_all(&folder).unwrap();
    write_to_dir(
        &dir,
        ".config/parcelo/config.toml",
        "[profiles.default]\nsender = 'sender.toml'\n",
    );
    write_to_dir(&dir, ".config/parcelo/sender.toml", SENDER);
    assert_eq!(check_rows(&dir, ""), [valid(2), valid(3)]);
    write_to_dir(&dir, "wrong.toml", &SENDER.replace("fullName", "fulName"));
    let output =
        dir.run("order import orders.csv --labels out --dry-run --sender wrong.toml -o json");
    assert_eq!(output.code, 2, "{output:?}");
    assert!(output.stderr.contains("fullName"), "{output:?}");
    // The sender can be missing in NDJSON too.
    let mut order = crate::shop::order("SB-A-000001");
    order["externalOrderId"] = json!("A-1");
    order.as_object_mut().unwrap().remove("sender");
    write_to_dir(&dir, "orders.ndjson", &order.to_string());
    let output = dir.run("order import orders.ndjson --labels out --dry-run --sender sender.toml");
    assert_eq!(output.code, 0, "{output:?}");
    let output = dir.run("order import orders.ndjson --labels out --dry-run --preset shopify");
    assert_eq!(output.code, 2, "{output:?}");
}

#[test]
fn an_invalid_cell_is_shown_without_control_characters() {
    let wrong = row("A-1").replace("170515", "\u{1b}[31m99").replace("1.25", "=1+1");
    let dir = dir_with_orders(&sheet(&[wrong]));
    let rows = check_rows(&dir, "");
    let values: Vec<_> = rows[0].2.iter().map(|[column, _, value]| (&**column, &**value)).collect();
    assert!(values.contains(&("receiver_zip", "\"\\u{1b}[31m99\"")), "{values:?}");
    assert!(values.contains(&("weight_kg", "\"=1+1\"")), "{values:?}");
    for options in ["", "-o csv"] {
        let output = dir.run(&format!("order import orders.csv --labels out --dry-run {options}"));
        assert!(
            output.text().contains("[31m99") && !output.text().contains('\u{1b}'),
            "{output:?}"
        );
    }
}
