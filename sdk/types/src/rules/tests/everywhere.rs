//! The rules that hold for every country.

use serde_json::json;

use super::{
    OFFLINE, accepted, all_fields, assert_refused, assert_warned, environment, fault, order,
    order_with, rule, rules, set, verdict, verdict_with,
};
use crate::{
    model::{ContentsCategory, CountryCode, Environment, Warning},
    rules::{Destinations, OrderContext, check_order},
};

fn text_of(count: usize) -> String {
    "ñ".repeat(count)
}

#[test]
fn base_orders_are_valid_without_warnings() {
    for to in ["EC", "CO", "MX", "PE"] {
        assert_eq!(verdict(&order(to)), (vec![], vec![]), "{to}");
    }
}

#[test]
fn fields_that_the_spec_requires_are_required() {
    let fields = [
        ("idempotencyKey", json!("order-0002")),
        ("sender.fullName", json!("A")),
        ("sender.phone", json!("+13055550101")),
        ("sender.address.line1", json!("A")),
        ("sender.address.city", json!("A")),
        ("sender.address.country", json!("US")),
        ("receiver.fullName", json!("A")),
        ("receiver.phone", json!("+51987654321")),
        ("receiver.address.line1", json!("A")),
        ("receiver.address.city", json!("A")),
        ("receiver.address.country", json!("PE")),
    ];
    for (at, good) in fields {
        let blank = json!([null, "", "   ", "\u{200B}", "\u{A0}\u{3000}"]);
        assert_refused([rule(at, "REQUIRED", json!([good]), blank)]);
    }
    for at in ["sender", "receiver", "parcelDetails", "sender.address", "receiver.address"] {
        let mut body = order("PE");
        set(&mut body, at, json!(null));
        assert_eq!(verdict(&body).0, [format!("{at} REQUIRED")]);
    }
    assert_refused(rules(
        r"
        PE parcelDetails.declaredValue REQUIRED [39.98] [null]
        PE parcelDetails.weightKg REQUIRED [1] [null]
        PE products.0.quantity REQUIRED [2] [null]
        PE products.0.unitFobValue REQUIRED [19.99] [null]
        ",
    ));
}

/// Texts with their maximum lengths; the last two are not on the label.
const LIMITED_TEXTS: [(&str, usize); 15] = [
    ("externalOrderId", 100),
    ("customerReference", 100),
    ("sender.fullName", 255),
    ("sender.companyName", 255),
    ("sender.address.line1", 255),
    ("sender.address.line2", 255),
    ("sender.address.city", 255),
    ("receiver.fullName", 255),
    ("receiver.address.line1", 255),
    ("receiver.address.city", 255),
    ("receiver.address.province", 255),
    ("receiver.address.deliveryInstructions", 500),
    ("products.0.description", 255),
    ("receiver.nationalId", 255),
    ("products.0.sku", 255),
];

#[test]
fn maximum_lengths_count_characters_and_not_bytes() {
    for (at, limit) in LIMITED_TEXTS {
        let good = json!([text_of(limit), format!(" {} ", text_of(limit))]);
        assert_refused([rule(at, "TOO_LONG", good, json!([text_of(limit + 1)]))]);
    }
    let key = |n| "k".repeat(n);
    assert_refused(rules(
        r#"
        PE idempotencyKey INVALID_FORMAT ["a-b_c123", "12345678"] ["a b c 123", "order.0001", "ñandú-0001", " order-0001"]
        PE trackingNumber INVALID_FORMAT ["EC-0000-01"] ["EC_0000_01", "-EC0000001", "EC0000001-", "EC 00000 1", "ÑC00000001"]
        "#,
    ));
    let email = |n| format!("a@{}.com", vec!["b".repeat(n); 4].join("."));
    let description = |n| json!([{ "description": text_of(n) }]);
    assert_refused([
        rule("idempotencyKey", "TOO_LONG", json!([key(8), key(64)]), json!([key(65)])),
        rule("idempotencyKey", "TOO_SHORT", json!(["a-b_c123"]), json!([key(7)])),
        rule("trackingNumber", "TOO_LONG", json!([key(10), key(30), null, ""]), json!([key(31)])),
        rule("trackingNumber", "TOO_SHORT", json!(["EC-0000-01"]), json!([key(9)])),
        rule("sender.email", "TOO_LONG", json!([email(60)]), json!([email(62)])),
        rule("customsInfo", "customsInfo.description TOO_LONG", description(255), description(256)),
    ]);
}

#[test]
fn names_phones_and_addresses_have_their_formats() {
    assert_refused(rules(
        r#"
        PE sender.phone INVALID_FORMAT
            ["+13055550100", " +1 305 555.0100 ", "+1 (305) 555-0100", "+1234567"]
            ["3055550100", "001305555010", "+0305555010", "+1 305 CALL NOW", "+123456", "+1234567890123456",
             "++13055550100", "+", "+1/305/5550100", "+1305555010a"]
        PE receiver.phone INVALID_FORMAT ["+51(1)5550100"] ["987654321", "+５１９８７６５４３２１"]
        PE sender.email INVALID_FORMAT
            ["ana@example.com", "a.b+c@mail.example.ec", "o'neil@example.co", null, " "]
            ["ana@example", "Ana <ana@example.com>", "ana", "ana@[10.0.0.1]", "ana@", "@example.com", "ana@localhost",
             "ana@example..com", "ana@example.com,bob@example.com", "ana maria@example.com", "ana@.com",
             "ana@example.com."]
        PE receiver.email INVALID_FORMAT
            ["ana@example.com", null, " "] ["ana@example", "Ana <ana@example.com>", "ana", "ana@[10.0.0.1]"]
        PE sender.address.country UNKNOWN_VALUE ["US"] ["us", "USA", "XX", " US", "AC", "EU"]
        PE receiver.address.country UNKNOWN_VALUE ["PE"] ["pe", "PER", "Peru", "ZZ"]
        PE receiver.idType UNKNOWN_VALUE ["cedula", "ruc", "passport", "dni", null, ""] ["Cedula", "rfc", "DNI"]
        PE parcelDetails.currency UNKNOWN_VALUE
            ["USD", "PEN", "VES", null, ""] ["usd", "US", "ZZZ", "DEM", "HRK", "hrk", "BGN", "CUC", "SLL", "ZWL"]
        PE products.0.hsCode INVALID_FORMAT ["610910", "6109.10.00", "6109 10"] ["61O910", "6109-10", "."]
        "#,
    ));
}

#[test]
fn a_wrong_json_type_is_a_fault_of_its_field() {
    const NUMBERS: [&str; 8] = [
        "weightKg",
        "weightLbs",
        "lengthCm",
        "widthCm",
        "heightCm",
        "declaredValue",
        "quantity",
        "unitFobValue",
    ];
    let wrong = |(at, is_leaf): (String, bool)| {
        let values = match NUMBERS.iter().any(|number| at.ends_with(number)) {
            true => json!(["7", "", true, [], {}]),
            false if is_leaf => json!([7, 1.5, true, [], {}]),
            false => json!(["x", 7, false, []]),
        };
        (at, values)
    };
    // Mexico's second name for the province is an unknown field elsewhere.
    let is_read = |at: &str| at != "receiver.address.state" && !BEYOND_SPECIFICATION.contains(&at);
    let all = all_fields().into_iter().filter(|(at, _)| is_read(at)).map(wrong);
    for (at, values) in all.chain([("products".to_owned(), json!(["x", 7, {}]))]) {
        for value in values.as_array().unwrap() {
            let mut body = order("PE");
            set(&mut body, &at, value.clone());
            let expected = format!("{} INVALID_FORMAT", at.replace(".0", "[0]"));
            assert_eq!(verdict(&body).0, [expected], "{value}");
        }
    }
}

#[test]
fn control_characters_are_refused_except_line_breaks() {
    let lines = ["receiver.address.deliveryInstructions", "products.0.description"];
    for at in lines {
        let bad = json!(["a\u{0}b", "a\u{7}", "a\u{85}b"]);
        assert_refused([rule(at, "INVALID_FORMAT", json!(["a\nb\r\n\tc", "x"]), bad)]);
    }
    for at in [
        "sender.fullName",
        "receiver.address.line1",
        "externalOrderId",
        "sender.phone",
        "receiver.nationalId",
        "products.0.sku",
    ] {
        let mut body = order("PE");
        set(&mut body, at, json!("+1305\n5550100"));
        let expected = format!("{} INVALID_FORMAT", at.replace(".0", "[0]"));
        assert_eq!(verdict(&body).0, [expected]);
    }
    let mut body = order("PE");
    set(&mut body, "sender.address.line1", json!("\u{202B}1 Main\u{200F} St\u{200B}\n"));
    assert_eq!(
        verdict(&body),
        (vec![], vec![]),
        "format characters are accepted, ends are trimmed"
    );
}

#[test]
fn invisible_characters_are_valid_if_the_script_needs_them() {
    let hidden = json!([
        "Ana\u{202E}ziuR",
        "Ana\u{200B} Ruiz",
        "\u{FEFF}Ana Ruiz",
        "Ana Ru\u{AD}iz",
        "Ana\u{3164}",
        "Ana\u{200D}Ruiz",
        "Ana\u{200F}",
        "Ana\u{2066}Ruiz",
        "Ana\u{2800}Ruiz",
        "Ana\u{2028}Ruiz",
    ]);
    for at in ["sender.fullName", "sender.companyName", "receiver.fullName"] {
        assert_refused([rule(
            at,
            "INVALID_FORMAT",
            json!(["Ana Ruiz", "José Muñoz"]),
            hidden.clone(),
        )]);
    }
    for name in ["علی\u{200C}رضا", "क्\u{200D}ष", "שלום\u{200F}!", "葛\u{E0100}西", "ᠠ\u{180B}"]
    {
        let mut body = order("PE");
        set(&mut body, "receiver.fullName", json!(name));
        let (faults, warnings) = verdict(&body);
        assert_eq!(faults, Vec::<String>::new(), "{name:?}");
        let expected = "receiver.fullName TEXT_HIDDEN_CHARACTER".to_owned();
        assert!(warnings.contains(&expected), "{name:?} {warnings:?}");
    }
    let mut body = order("PE");
    set(&mut body, "receiver.fullName", json!("علی\u{202E}رضا"));
    assert_eq!(
        verdict(&body).0,
        ["receiver.fullName INVALID_FORMAT"],
        "an override is never needed"
    );
}

#[test]
fn numbers_outside_their_bounds_are_refused() {
    let value_and_goods = "parcelDetails.declaredValue|products";
    assert_refused(rules(
        r"
        PE parcelDetails.weightKg OUT_OF_RANGE [0.001, 10000, 1e4] [0, -1, -0.0, 10000.001, 1e28, 1e300]
        PE parcelDetails.weightLbs|parcelDetails.weightKg OUT_OF_RANGE
            [[0.01, null], [22046.0, null]] [[0.0, null], [-3.0, null], [22046.3, null], [1e300, null]]
        PE parcelDetails.lengthCm OUT_OF_RANGE [0.1, 1000, null] [0, -1, 1000.1]
        PE parcelDetails.widthCm OUT_OF_RANGE [0.1, 1000, null] [0, -1, 1000.1]
        PE parcelDetails.heightCm OUT_OF_RANGE [0.1, 1000, null] [0, -1, 1000.1]
        PE products.0.quantity OUT_OF_RANGE [2, 2.0, 2e0] [0, -1, 1000001, 1e300]
        PE products.0.quantity INVALID_FORMAT [2] [1.5, 2.0001]
        PE products.0.unitFobValue OUT_OF_RANGE [19.99] [-0.01, 1000000000, 1e300]
        PE parcelDetails.declaredValue OUT_OF_RANGE [39.98] [-0.01, 1000000000, 1e300]
        ",
    ));
    let goods = |value: f64| json!([{"description": "Gold", "quantity": 1, "unitFobValue": value, "hsCode": "710812"}]);
    for value in [0.0, 0.1, 999_999_999.99] {
        let body = super::order_with("PE", value_and_goods, &json!([value, goods(value)]));
        assert_eq!(verdict(&body), (vec![], vec![]), "{value}");
    }
}

#[test]
fn kilograms_and_pounds_must_agree_within_1_percent() {
    let both = "parcelDetails.weightLbs|parcelDetails.weightKg";
    let lbs = |kg: f64| kg / 0.453_592_37;
    let one = json!([[null, 100], [3, null]]);
    let apart = json!([[lbs(101.01), 100], [lbs(98.99), 100], [3, 3]]);
    assert_refused([rule(both, "MISMATCH", one.clone(), apart)]);
    let near = json!([[lbs(100.99), 100], [lbs(99.01), 100], [3, 1.36]]);
    assert_warned([rule(both, "BOTH_WEIGHTS_GIVEN", one, near)]);
}

#[test]
fn the_declared_value_is_at_least_the_sum_of_the_products() {
    let at = "parcelDetails.declaredValue";
    assert_refused(rules(
        r"
        PE parcelDetails.declaredValue MISMATCH [39.97, 39.98, 39.99] [39.969, 0, 19.99]
        ",
    ));
    assert_warned(rules(
        r"
        PE parcelDetails.declaredValue DECLARED_VALUE_ABOVE_PRODUCTS [39.98] [39.991, 50, 999999999.99]
        ",
    ));
    let mut body = order("PE");
    set(&mut body, at, json!(0));
    set(&mut body, "products.0.quantity", json!("two"));
    assert_eq!(
        verdict(&body).0,
        ["products[0].quantity INVALID_FORMAT"],
        "no sum if a product cannot be read"
    );
}

#[test]
fn goods_heavier_than_their_parcel_are_a_warning() {
    let item = |quantity: u32, net: Option<f64>| json!({"quantity": quantity, "unitFobValue": 0, "unitNetWeightKg": net, "description": "Pin", "hsCode": "731940"});
    let kg = json!({ "weightKg": 1, "declaredValue": 0 });
    let lbs = json!({ "weightLbs": 3, "declaredValue": 0 });
    let at = "parcelDetails|products";
    let within = json!([
        [kg, [item(2, Some(0.5))]],
        [kg, [item(2, Some(0.2)), item(3, Some(0.2))]],
        [kg, [item(2, None)]],
    ]);
    let above = json!([
        [kg, [item(2, Some(0.501))]],
        [kg, [item(2, Some(0.2)), item(4, Some(0.2)), item(9, None)]],
    ]);
    let (light, heavy) =
        (json!([[lbs, [item(1, Some(1.361))]]]), json!([[lbs, [item(1, Some(1.362))]]]));
    assert_warned([
        rule(at, "parcelDetails.weightKg NET_WEIGHT_ABOVE_WEIGHT", within, above),
        rule(at, "parcelDetails.weightLbs NET_WEIGHT_ABOVE_WEIGHT", light, heavy),
    ]);
}

#[test]
fn the_intended_value_is_suggested() {
    let rows = [
        ("PE", "receiver.idType", "CEDULA|Cédula| Ruc |pasaporte", "cedula|cedula|ruc|"),
        (
            "PE",
            "receiver.address.country",
            "ec|Ecuador|Estados Unidos|United States",
            "EC|EC|US|US",
        ),
        ("PE", "receiver.address.country", "EE. UU.|UK|MEXICO|Atlantis", "US|GB|MX|"),
        ("PE", "receiver.address.country", "República  Dominicana|Republica Dominicana", "DO|DO"),
        ("EC", "receiver.address.province", "Pichinca", "Pichincha"),
        ("MX", "receiver.address.province", "Jalsico", "Jalisco"),
    ];
    for (to, at, written, meant) in rows {
        for (written, meant) in written.split('|').zip(meant.split('|')) {
            let fault = fault(to, at, &json!(written));
            assert_eq!(
                (&*fault.field, fault.suggestion.unwrap_or_default().as_str()),
                (at, meant),
                "{written}"
            );
        }
    }
}

/// The fields that earlier versions ignored.
const BEYOND_SPECIFICATION: [&str; 6] = [
    "receiver.companyName",
    "receiver.address.line2",
    "customsInfo.contentsCategory",
    "customsInfo.incoterm",
    "products.0.unitNetWeightKg",
    "products.0.countryOfOrigin",
];

#[test]
fn a_wrong_value_beyond_the_specification_is_ignored_with_a_warning() {
    assert_warned(rules(
        r#"
        PE receiver.companyName VALUE_IGNORED ["Andes SAC", null, " "] [7, true, [], "A\u0007", "Ana\u202EziuR"]
        PE receiver.address.line2 VALUE_IGNORED ["Dpto. 402", null, ""] [402, {}, "4\u00002"]
        PE products.0.countryOfOrigin VALUE_IGNORED ["CO", "CN", null, ""] ["co", "COL", "China", "ZZ", " CO", 7]
        PE products.0.unitNetWeightKg VALUE_IGNORED [0.001, 0.5, null] [0, -1, 10000.001, 1e300, "1", []]
        PE customsInfo customsInfo.contentsCategory VALUE_IGNORED
            [{"contentsCategory": "SALE_OF_GOODS"}, {"contentsCategory": "GIFT"}, {"contentsCategory": "DOCUMENTS"},
             {"contentsCategory": "COMMERCIAL_SAMPLE"}, {"contentsCategory": "RETURNED_GOODS"},
             {"contentsCategory": "OTHER"}, {"contentsCategory": null}, {"contentsCategory": " "}]
            [{"contentsCategory": "gift"}, {"contentsCategory": "MERCHANDISE"}, {"contentsCategory": 1}]
        PE customsInfo customsInfo.incoterm VALUE_IGNORED
            [{"incoterm": "DAP"}, {"incoterm": "DDP"}, {"incoterm": "EXW"}, {"incoterm": null}]
            [{"incoterm": "dap"}, {"incoterm": "DDU"}, {"incoterm": "DAP Quito"}, {"incoterm": {}}]
        "#,
    ));
    for at in BEYOND_SPECIFICATION {
        let wrong = accepted(&order_with("PE", at, &json!([])));
        assert_eq!(wrong, accepted(&order_with("PE", at, &json!(null))), "{at}");
    }
}

#[test]
fn a_long_text_beyond_the_specification_is_cut_with_a_warning() {
    for at in ["receiver.companyName", "receiver.address.line2"] {
        let good = json!([text_of(255), format!(" {} ", text_of(255))]);
        assert_warned([rule(at, "TEXT_CUT", good, json!([text_of(256), text_of(10_000)]))]);
        let long = format!("{} {}", text_of(254), text_of(9));
        let cut = accepted(&order_with("PE", at, &json!(long)));
        assert_eq!(cut, accepted(&order_with("PE", at, &json!(text_of(254)))), "{at}");
    }
}

/// Returns the warning of a wrong value beyond the specification.
fn ignored(at: &str, value: &str) -> Warning {
    check_order(&order_with("PE", at, &json!(value)), &OFFLINE).unwrap().warnings.remove(0)
}

#[test]
fn the_warning_of_an_ignored_value_suggests_the_intended_one() {
    let rows = [
        ("customsInfo.incoterm", "DDU|DAT|ddp| DAP", "DAP|DPU|DDP|DAP"),
        ("customsInfo.contentsCategory", "gift|sale of goods", "GIFT|SALE_OF_GOODS"),
        ("products.0.countryOfOrigin", "China|colombia", "CN|CO"),
    ];
    for (at, written, meant) in rows {
        for (written, meant) in written.split('|').zip(meant.split('|')) {
            let warning = ignored(at, written);
            let (en, es) = (warning.message, warning.message_es);
            assert!(en.starts_with("The value was ignored. "), "{en}");
            assert!(en.ends_with(&format!(" Did you mean {meant}?")), "{written}: {en}");
            assert!(es.ends_with(&format!(" ¿Quiso decir {meant}?")), "{written}: {es}");
        }
    }
}

#[test]
fn the_warning_of_a_wrong_category_lists_all_categories() {
    let warning = ignored("customsInfo.contentsCategory", "MERCHANDISE");
    for category in ContentsCategory::KNOWN {
        assert!(warning.message.contains(category.code()), "{category}: {}", warning.message);
        assert!(warning.message_es.contains(category.code()), "{category}: {}", warning.message_es);
    }
}

#[test]
fn an_order_has_at_most_500_products() {
    let product =
        json!({"description": "Pin", "quantity": 1, "unitFobValue": 0.1, "hsCode": "731940"});
    let sum = |n: u16| json!([f64::from(n) / 10.0, vec![product.clone(); n.into()]]);
    let at = "parcelDetails.declaredValue|products";
    assert_refused([rule(at, "products TOO_LONG", json!([sum(500)]), json!([sum(501)]))]);
}

#[test]
fn missing_customs_data_is_a_warning() {
    let goods = |rest: serde_json::Value| {
        let mut goods = json!({ "quantity": 1, "unitFobValue": 39.98 });
        goods.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        goods
    };
    let (bare, coded) = (goods(json!({})), goods(json!({ "hsCode": "610910" })));
    let line = goods(json!({ "description": "Shirt" }));
    let full = goods(json!({ "description": "Shirt", "hsCode": "610910" }));
    let free = goods(json!({ "unitFobValue": 0, "description": "Leaflet", "hsCode": "490110" }));
    let both = json!({ "description": "Clothes", "hsCode": "610910" });
    let (text, code) = (json!({ "description": "x" }), json!({ "hsCode": "610910" }));
    let blank = json!({ "hsCode": "610910", "description": " " });
    let at = "customsInfo|products";
    let (no_code, no_text) = ("HS_CODE_MISSING", "CUSTOMS_DESCRIPTION_MISSING");
    let rows = [
        (
            "products.0",
            no_code,
            json!([[both, [bare]], [null, [full]], [code, [line]]]),
            json!([[null, [line]]]),
        ),
        ("products.0", no_text, json!([[text, [coded]]]), json!([[null, [coded]]])),
        ("products.1", no_code, json!([[null, [free, full]]]), json!([[null, [free, line]]])),
        (
            "customsInfo",
            no_code,
            json!([[both, null], [both, []]]),
            json!([[text, null], [text, []]]),
        ),
        ("customsInfo", no_text, json!([[both, null]]), json!([[code, null], [blank, []]])),
    ];
    for (place, code, good, bad) in rows {
        let field = if code == no_code { "hsCode" } else { "description" };
        assert_warned([rule(at, &format!("{place}.{field} {code}"), good, bad)]);
    }
    assert_warned(rules(
        r#"
        PE products.0.hsCode HS_CODE_FORMAT ["610910", "6109.10.0022"] ["6109", "61.09", "61091000221"]
        PE customsInfo customsInfo.hsCode HS_CODE_FORMAT [{"hsCode": "6109.10"}] [{"hsCode": "6109"}]
        "#,
    ));
    let mut body = order("PE");
    set(&mut body, "products", json!([bare.clone(), bare]));
    set(&mut body, "parcelDetails.declaredValue", json!(79.96));
    let once = [
        "products[0].description CUSTOMS_DESCRIPTION_MISSING",
        "products[0].hsCode HS_CODE_MISSING",
    ];
    assert_eq!(verdict(&body).1, once, "once for all goods, not once for each");
}

#[test]
fn unlikely_values_are_warnings() {
    assert_warned(rules(
        r#"
        PE sender.phone PHONE_COUNTRY_MISMATCH ["+13055550100"] ["+593991234567", "+442071234567"]
        PE receiver.phone PHONE_COUNTRY_MISMATCH ["+5115550100"] ["+13055550100"]
        PE sender.address.state STATE_UNKNOWN
            ["FL", "fl", "Florida", "D.C.", "Puerto Rico", "AE", null, ""] ["Pichincha", "XX", "Ontario"]
        PE sender.address.country|sender.phone|sender.address.state|sender.address.zipCode sender.address.state STATE_UNKNOWN
            [["CA", "+14165550100", "ON", "M5V 3L9"], ["CA", "+14165550100", "Québec", "h2x 1y4"],
             ["FR", "+33155550100", "Paris", "75001"]]
            [["CA", "+14165550100", "FL", "M5V 3L9"]]
        PE sender.address.zipCode POSTAL_CODE_FORMAT ["33101", "33101-1234", null, ""] ["3310", "ABCDE"]
        PE sender.address.country|sender.phone|sender.address.state|sender.address.zipCode sender.address.zipCode POSTAL_CODE_FORMAT
            [["CA", "+14165550100", "ON", "m5v3l9"], ["AE", "+97145550100", null, "any"]]
            [["CA", "+14165550100", "ON", "33101"]]
        PE receiver.address.zipCode POSTAL_CODE_FORMAT ["15074", "Lima 14", null] ["150740", "9999"]
        "#,
    ));
}

#[test]
fn texts_that_the_label_cannot_draw_are_faults() {
    let extra = ["receiver.companyName", "receiver.address.line2"];
    for at in LIMITED_TEXTS[..13].iter().map(|(at, _)| *at).chain(extra) {
        let good = json!(["Ñandú Œuvre Łódź Ξένια Жуков “1”", "Mun\u{303}oz"]);
        assert_warned([rule(at, "TEXT_NOT_PRINTABLE", good, json!(["ひろし", "Ana 😀", "יוסי"]))]);
    }
}

#[test]
fn chinese_is_warned_of_unless_the_labels_print_it() {
    let body = |name| order_with("EC", "receiver.fullName", &json!(name));
    let warned = vec!["receiver.fullName TEXT_NOT_PRINTABLE".to_owned()];
    assert_eq!(verdict(&body("王伟（Wei）")).1, warned);
    let chinese = OFFLINE.with_chinese_labels();
    assert_eq!(verdict_with(&body("王伟（Wei）"), &chinese), (vec![], vec![]));
    assert_eq!(verdict_with(&body("王伟 あ"), &chinese).1, warned);
}

#[test]
fn the_prefix_sb_is_reserved_for_the_sandbox() {
    let production = environment(Environment::Production);
    let sandbox = environment(Environment::Sandbox);
    let reserved = vec!["trackingNumber NOT_SUPPORTED".to_owned()];
    let table = [
        ("SB-SUCCESS-0001", &production, reserved.clone()),
        ("sb-success-0001", &production, reserved.clone()),
        ("EC7K2M9QX4T8WD0", &production, vec![]),
        ("SB-SUCCESS-0001", &sandbox, vec![]),
        ("sbEC7K2M9QX4T8W", &sandbox, vec![]),
        ("EC7K2M9QX4T8WD0", &sandbox, reserved),
        ("SB-SUCCESS-0001", &super::OFFLINE, vec![]),
        ("EC7K2M9QX4T8WD0", &super::OFFLINE, vec![]),
    ];
    for (number, context, faults) in table {
        let mut body = order("PE");
        set(&mut body, "trackingNumber", json!(number));
        assert_eq!(verdict_with(&body, context).0, faults, "{number} {context:?}");
    }
}

#[test]
fn unsupported_destinations_are_refused() {
    let andes = Destinations::Only([CountryCode::EC, CountryCode::CO].into());
    let context = OrderContext { destinations: &andes, ..super::OFFLINE };
    assert_eq!(verdict_with(&order("EC"), &context), (vec![], vec![]));
    let faults = verdict_with(&order("MX"), &context).0;
    assert_eq!(faults, ["receiver.address.country NOT_SUPPORTED"]);
}

#[test]
fn unknown_fields_are_reported_with_suggestions() {
    let table = [
        ("reciever", json!({}), "reciever", Some("receiver")),
        ("sender.full_name", json!("x"), "sender.full_name", Some("fullName")),
        ("sender.address.postalCode", json!("x"), "sender.address.postalCode", Some("zipCode")),
        ("sender.address.province", json!("x"), "sender.address.province", Some("state")),
        ("receiver.address.state", json!("x"), "receiver.address.state", Some("province")),
        ("receiver.zipCode", json!("x"), "receiver.zipCode", Some("address.zipCode")),
        ("parcelDetails.weight", json!(1), "parcelDetails.weight", Some("weightKg")),
        ("products.0.qty", json!(1), "products[0].qty", Some("quantity")),
        ("products.0.origin", json!("CO"), "products[0].origin", Some("countryOfOrigin")),
        ("products.0.netWeight", json!(1), "products[0].netWeight", Some("unitNetWeightKg")),
        ("receiver.company", json!("x"), "receiver.company", Some("companyName")),
        ("receiver.address.apartment", json!("x"), "receiver.address.apartment", Some("line2")),
        ("metadata", json!(null), "metadata", None),
    ];
    for (at, value, path, meant) in table {
        let mut body = order("PE");
        set(&mut body, at, value);
        assert_eq!(verdict(&body), (vec![], vec![format!("{path} UNKNOWN_FIELD")]), "{at}");
        let warnings = super::check_order(&body, &super::OFFLINE).unwrap().warnings.remove(0);
        let ending = meant.map_or("remove it.".to_owned(), |meant| format!("`{meant}`?"));
        assert!(warnings.message.ends_with(&ending), "{}", warnings.message);
    }
}

#[test]
fn a_body_of_unknown_fields_gets_a_short_response() {
    let mut body = order("PE");
    for i in 0..5000 {
        body[format!("x{i}")] = json!(i);
    }
    let warnings = super::check_order(&body, &super::OFFLINE).unwrap().warnings;
    assert_eq!(warnings.len(), 20);
    assert!(warnings[19].message.contains("and 4980 more"), "{}", warnings[19].message);
}
