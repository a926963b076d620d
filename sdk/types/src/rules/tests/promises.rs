//! The guarantees of the validator as a whole: order, completeness, its output, and that no JSON makes it panic.

use proptest::prelude::*;
use rust_decimal::Decimal;
use serde_json::{Map, Value, json};

use super::{OFFLINE, accepted, all_fields, fault, order, set, verdict};
use crate::{
    internal::{
        KeyReading, check_batch, check_label_batch, check_manifest, check_reprint, check_void,
        destination, parse_body, read_key,
    },
    model::{
        ContentsCategory, CountryCode, CustomsInfo, IdType, IdempotencyKey, Incoterm, OrderRequest,
        Product, Receiver, ReceiverAddress, Sender, SenderAddress,
    },
    rules::{Destinations, OrderContext, check_order},
};

#[test]
fn all_faults_are_reported_in_the_order_of_the_spec() {
    let body = json!({
        "products": [{"quantity": 1, "unitFobValue": 1}, {"quantity": 0, "unitFobValue": "1", "hsCode": "x",
        }, 7],
        "customsInfo": {"hsCode": "x", "description": 1},
        "parcelDetails": {"currency": "usd", "declaredValue": -1, "heightCm": 0, "weightLbs": 0},
        "receiver": {
            "address": {"country": "EC", "zipCode": "1", "province": "xx", "deliveryInstructions": 1},
            "idType": "dni", "nationalId": 7, "email": "x", "phone": "1",
        },
        "sender": {"address": {"country": "x", "state": 1}, "email": "x", "companyName": 1},
        "customerReference": 1, "externalOrderId": 1, "trackingNumber": "x",
    });
    let expected = [
        "idempotencyKey REQUIRED",
        "trackingNumber TOO_SHORT",
        "externalOrderId INVALID_FORMAT",
        "customerReference INVALID_FORMAT",
        "sender.fullName REQUIRED",
        "sender.companyName INVALID_FORMAT",
        "sender.phone REQUIRED",
        "sender.email INVALID_FORMAT",
        "sender.address.line1 REQUIRED",
        "sender.address.city REQUIRED",
        "sender.address.state INVALID_FORMAT",
        "sender.address.country UNKNOWN_VALUE",
        "receiver.fullName REQUIRED",
        "receiver.phone INVALID_FORMAT",
        "receiver.email INVALID_FORMAT",
        "receiver.nationalId INVALID_FORMAT",
        "receiver.idType NOT_SUPPORTED",
        "receiver.address.line1 REQUIRED",
        "receiver.address.city REQUIRED",
        "receiver.address.province UNKNOWN_VALUE",
        "receiver.address.zipCode INVALID_FORMAT",
        "receiver.address.deliveryInstructions INVALID_FORMAT",
        "parcelDetails.weightLbs OUT_OF_RANGE",
        "parcelDetails.heightCm OUT_OF_RANGE",
        "parcelDetails.declaredValue OUT_OF_RANGE",
        "parcelDetails.currency UNKNOWN_VALUE",
        "customsInfo.description INVALID_FORMAT",
        "customsInfo.hsCode INVALID_FORMAT",
        "products[1].quantity OUT_OF_RANGE",
        "products[1].unitFobValue INVALID_FORMAT",
        "products[1].hsCode INVALID_FORMAT",
        "products[2] INVALID_FORMAT",
    ];
    assert_eq!(verdict(&body).0, expected);
}

#[test]
fn a_fault_names_its_limit_with_the_unit() {
    let product = json!({"quantity": 1, "unitFobValue": 1});
    let table = [
        (
            "parcelDetails.weightKg",
            json!(10_001),
            "This must be more than 0 and at most 10,000 kg.",
            "Debe ser mayor que 0 y como máximo 10\u{a0}000 kg.",
        ),
        (
            "parcelDetails.weightLbs",
            json!(30_000),
            "This must be more than 0 and at most 22,046.226 lb.",
            "Debe ser mayor que 0 y como máximo 22\u{a0}046.226 lb.",
        ),
        (
            "parcelDetails.lengthCm",
            json!(0),
            "This must be more than 0 and at most 1,000 cm.",
            "Debe ser mayor que 0 y como máximo 1000 cm.",
        ),
        (
            "products.0.quantity",
            json!(0),
            "This must be at least 1 and at most 1,000,000.",
            "Debe ser como mínimo 1 y como máximo 1\u{a0}000\u{a0}000.",
        ),
        (
            "products",
            json!(vec![product; 501]),
            "At most 500 products are allowed.",
            "Se permiten 500 productos como máximo.",
        ),
        (
            "parcelDetails.declaredValue",
            json!(1),
            "The products add up to USD 39.98, more than the declared value: declare at least that amount.",
            "Los productos suman USD 39.98, más que el valor declarado: declare al menos esa suma.",
        ),
        (
            "receiver.address.country",
            json!("XX"),
            "This is not an assigned ISO 3166-1 country code: use one such as EC, in upper case.",
            "No es un código de país asignado en ISO 3166-1: use uno como EC, en mayúsculas.",
        ),
    ];
    for (at, value, en, es) in table {
        let fault = fault("EC", at, &value);
        assert_eq!((&*fault.message, &*fault.message_es), (en, es));
    }
    let none = check_batch(&json!({"trackingNumbers": []})).unwrap_err();
    assert_eq!(
        none.faults[0].message,
        "This list is empty: at least one tracking number is required."
    );
}

#[test]
fn warnings_have_a_fixed_order_with_unknown_fields_last() {
    let mut body = order("CO");
    for (at, value) in [
        ("zzz", json!(1)),
        ("aaa", json!(1)),
        ("products.0.hsCode", json!(null)),
        ("products.0.colour", json!("red")),
        ("receiver.address.zipCode", json!(null)),
        ("receiver.address.province", json!("Texas")),
        ("receiver.phone", json!("+13055550100")),
        ("sender.address.zipCode", json!("1")),
    ] {
        set(&mut body, at, value);
    }
    let expected = [
        "sender.address.zipCode POSTAL_CODE_FORMAT",
        "receiver.phone PHONE_COUNTRY_MISMATCH",
        "receiver.address.province CITY_DEPARTMENT_MISMATCH",
        "receiver.address.zipCode POSTAL_CODE_MISSING",
        "products[0].hsCode HS_CODE_MISSING",
        "products[0].colour UNKNOWN_FIELD",
        "aaa UNKNOWN_FIELD",
        "zzz UNKNOWN_FIELD",
    ];
    assert_eq!(verdict(&body), (vec![], expected.map(str::to_owned).to_vec()));
}

#[test]
fn the_order_is_trimmed_and_otherwise_unchanged() {
    let mut body = order("EC");
    for (at, value) in [
        ("externalOrderId", json!(" 1001 ")),
        ("customerReference", json!("  ")),
        ("sender.companyName", json!("")),
        ("receiver.address.province", json!(" EC-P ")),
        ("receiver.nationalId", json!(" 171430710-3 ")),
        ("products.0.quantity", json!(2.0)),
    ] {
        set(&mut body, at, value);
    }
    let order = accepted(&body);
    assert_eq!(order.external_order_id.as_deref(), Some("1001"));
    assert_eq!((order.customer_reference, order.sender.company_name), (None, None));
    assert_eq!(order.receiver.address.province.as_deref(), Some("EC-P"));
    assert_eq!(order.receiver.national_id.as_deref(), Some("171430710-3"));
    assert_eq!(order.receiver.id_type, Some(IdType::Cedula));
    assert_eq!(order.sender.phone, "+1 (305) 555-0100");
    assert_eq!(order.products[0].quantity, 2);
    assert_eq!(order.products[0].unit_fob_value, Decimal::new(1999, 2));
    assert_eq!(order.parcel_details.currency.as_str(), "USD");
}

#[test]
fn an_accepted_order_is_accepted_again_unchanged() {
    for to in ["EC", "CO", "MX", "PE"] {
        let first = accepted(&order(to));
        assert_eq!(accepted(&serde_json::to_value(&first).unwrap()), first, "{to}");
    }
}

#[test]
fn fields_beyond_the_specification_are_read_and_kept() {
    let mut body = order("PE");
    let fields = [
        ("receiver.companyName", json!("Andes SAC")),
        ("receiver.address.line2", json!("Dpto. 402")),
        ("customsInfo", json!({"contentsCategory": "GIFT", "incoterm": "DAP"})),
        ("products.0.countryOfOrigin", json!("CO")),
        ("products.0.unitNetWeightKg", json!(0.25)),
    ];
    for (at, value) in &fields {
        set(&mut body, at, value.clone());
    }
    assert_eq!(verdict(&body), (vec![], vec![]));
    let stored = serde_json::to_value(accepted(&body)).unwrap();
    for (at, value) in fields {
        let pointer = format!("/{}", at.replace('.', "/"));
        assert_eq!(stored.pointer(&pointer), Some(&value), "{at}");
    }
    assert_eq!(accepted(&stored), accepted(&body));
    let without = serde_json::to_string(&accepted(&order("PE"))).unwrap();
    for name in
        ["companyName", "line2", "contentsCategory", "incoterm", "countryOfOrigin", "unitNet"]
    {
        assert!(!without.contains(name), "{name} in an order without it: {without}");
    }
}

#[test]
fn the_key_in_the_header_replaces_a_missing_key() {
    let mut body = order("PE");
    set(&mut body, "idempotencyKey", json!(null));
    let context = OrderContext { header_key: Some("from-header-1"), ..OFFLINE };
    let key = check_order(&body, &context).unwrap().value.idempotency_key;
    assert_eq!(key.as_str(), "from-header-1");
    let context = OrderContext { header_key: Some("another-key-1"), ..OFFLINE };
    let rejected = check_order(&order("PE"), &context).unwrap_err();
    assert_eq!(rejected.to_string(), "the request breaks the rules: idempotencyKey MISMATCH");
}

#[test]
fn a_rejection_has_paths_and_codes_but_no_personal_data() {
    let mut body = order("EC");
    for at in ["sender.phone", "receiver.phone", "receiver.nationalId", "receiver.address.province"]
    {
        set(&mut body, at, json!("CANARY"));
    }
    set(&mut body, "sender.email", json!("CANARY"));
    set(&mut body, "receiver.email", json!("CANARY"));
    let rejected = check_order(&body, &OFFLINE).unwrap_err();
    let shown = format!("{rejected} {rejected:?}");
    assert!(!shown.contains("CANARY"), "{shown}");
    assert_eq!(
        rejected.to_string(),
        "the request breaks the rules: sender.phone INVALID_FORMAT, sender.email INVALID_FORMAT, \
         receiver.phone INVALID_FORMAT, receiver.email INVALID_FORMAT, \
         receiver.nationalId INVALID_FORMAT and 1 more"
    );
}

#[test]
fn the_destination_is_known_despite_other_faults() {
    let at = |country: Value| json!({"receiver": {"address": {"country": country}}});
    assert_eq!(destination(&at(json!("MX"))), Some(CountryCode::MX));
    for body in [at(json!("mx")), at(json!("XX")), at(json!(7)), json!({}), json!([]), json!(null)]
    {
        assert_eq!(destination(&body), None, "{body}");
    }
}

#[test]
fn a_built_order_is_validated_like_any_other() {
    let from = SenderAddress::new("1 Main St", "Miami", CountryCode::US)
        .with_state("FL")
        .with_zip_code("33101");
    let to = ReceiverAddress::new("Av. Vallarta 1020", "Guadalajara", CountryCode::MX)
        .with_province("Jalisco")
        .with_zip_code("44100")
        .with_line2("Int. 4")
        .with_delivery_instructions("Ring twice");
    let sender = Sender::new("Ana Ruiz", "+13055550100", from).with_email("ana@example.com");
    let receiver = Receiver::new("Iñaki Peña", "+523312345678", to)
        .with_company_name("Peña S.A.")
        .with_rfc("GODE561231GR8");
    let customs = CustomsInfo::new("Clothes")
        .with_hs_code("610910")
        .with_contents_category(ContentsCategory::Gift)
        .with_incoterm(Incoterm::Dap);
    let shirt = Product::new("Shirt", 2, Decimal::new(1999, 2))
        .with_sku("S-1")
        .with_country_of_origin(CountryCode::CO)
        .with_unit_net_weight_kg(Decimal::new(25, 2));
    let builder = OrderRequest::builder()
        .idempotency_key(IdempotencyKey::derive("shop", "1001"))
        .sender(sender)
        .receiver(receiver)
        .weight_lbs(Decimal::new(3, 0))
        .size_cm(Decimal::TEN, Decimal::TEN, Decimal::TEN)
        .declared_value(Decimal::new(3998, 2))
        .customs_info(customs)
        .products([shirt]);
    assert!(!format!("{builder:?}").contains("Ana"), "{builder:?}");
    let checked = builder.clone().check().unwrap();
    assert_eq!(checked.warnings, []);
    assert_eq!(builder.clone().build().unwrap(), checked.value);
    let rejected = builder.declared_value(Decimal::ONE).build().unwrap_err();
    assert_eq!(rejected.faults[0].field, "parcelDetails.declaredValue");
    let empty = OrderRequest::builder().build().unwrap_err();
    let fields: Vec<_> = empty.faults.iter().map(|fault| fault.field.as_str()).collect();
    let expected = [
        "idempotencyKey",
        "sender",
        "receiver",
        "parcelDetails.weightKg",
        "parcelDetails.declaredValue",
    ];
    assert_eq!(fields, expected);
}

/// Generates any JSON, with the field names, codes and numbers that reach deep into the rules.
fn any_json() -> impl Strategy<Value = Value> {
    const WORDS: &[&str] = &[
        "EC",
        "MX",
        "CO",
        "US",
        "PE",
        "cedula",
        "ruc",
        "1714307103",
        "1792060346001",
        "GODE561231GR8",
        "Bogotá, D.C.",
        "Medellín,",
        ",",
        "17",
        "170150",
        "44100",
        "+593991234567",
        "+",
        "ñ",
        "\u{0}",
        "\u{200B}",
        "1e5",
        "SB-SUCCESS-0001",
        "D.C.",
        "0",
        "00000000000000000000",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(WORDS).prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 64, 8, |inner| {
        let member = (proptest::sample::select(names()), inner.clone());
        prop_oneof![
            proptest::collection::vec(inner, 0..6).prop_map(Value::from),
            proptest::collection::vec(member, 0..8)
                .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Returns the names of an order's fields, and others.
fn names() -> Vec<String> {
    let others =
        ["trackingNumbers", "awbNumber", "departureDate", "flightNumber", "other", "ñ.[0]"];
    let last = |(path, _): (String, bool)| path.rsplit('.').next().unwrap().to_owned();
    all_fields().into_iter().map(last).chain(others.map(str::to_owned)).collect()
}

fn run_every_check(body: &Value) {
    let all = Destinations::All;
    for header_key in [None, Some("order-0001")] {
        let context = OrderContext::new(&all).with_header_key(header_key);
        if let Ok(accepted) = check_order(body, &context) {
            let again = serde_json::to_value(&accepted.value).unwrap();
            assert!(check_order(&again, &context).is_ok(), "{again}");
            assert!(matches!(read_key(body, header_key), KeyReading::Key(_)));
            assert_eq!(destination(body), Some(accepted.value.receiver.address.country));
        }
    }
    let _ = (
        check_void(body, None),
        check_manifest(body, None),
        check_reprint(body, None),
        check_batch(body),
        check_label_batch(body),
    );
    let written = serde_json::to_vec(body).unwrap();
    assert_eq!(parse_body(&written).is_ok(), body.is_object());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_json_makes_the_validator_panic(body in any_json()) {
        run_every_check(&body);
    }

    #[test]
    fn no_value_in_an_order_makes_the_validator_panic(
        to in proptest::sample::select(&["EC", "CO", "MX", "PE"][..]),
        place in proptest::sample::select(all_fields()),
        value in any_json(),
    ) {
        let mut body = order(to);
        set(&mut body, &place.0, value);
        run_every_check(&body);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_body(&bytes);
    }
}
