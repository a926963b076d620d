//! The rules of Ecuador, Colombia and Mexico, row by row.

use serde_json::{Value, json};

use super::{
    accepted, assert_refused, assert_warned, fault, order, order_with, rules, set, verdict,
};
use crate::rules::check_order;

const PROVINCE: &str = "receiver.address.province";
const ZIP: &str = "receiver.address.zipCode";
const ID: &str = "receiver.nationalId";
const TYPE: &str = "receiver.idType";
const ID_AND_TYPE: &str = "receiver.nationalId|receiver.idType";
const ZIP_AND_PROVINCE: &str = "receiver.address.zipCode|receiver.address.province";
const CITY_AND_PROVINCE: &str = "receiver.address.city|receiver.address.province";

fn assert_message_contains(to: &str, at: &str, value: &Value, text: &str) {
    let message = fault(to, at, value).message;
    assert!(message.contains(text), "{message}");
}

#[test]
fn the_province_and_postal_code_of_ecuador_are_checked_together() {
    assert_refused(rules(
        r#"
        EC receiver.address.province REQUIRED ["Pichincha"] [null, "", " "]
        EC receiver.address.province UNKNOWN_VALUE
            ["PICHINCHA", "EC-P", "P", "p", "17", " Pichincha "] ["Pichinchas del Norte", "Jalisco", "99", "7", "..."]
        EC receiver.address.zipCode INVALID_FORMAT
            ["170150", "179999", null, ""] ["17015", "1701500", "17O150", "１７０１５０", "17 0150"]
        EC receiver.address.zipCode|receiver.address.province MISMATCH
            [["170515", "Pichincha"], ["090101", "Guayas"], ["040101", "Carchi"], ["050101", "Cotopaxi"],
             ["060101", "Chimborazo"], ["070101", "El Oro"], ["230101", "Sto. Domingo"],
             ["230101", "Santo Domingo de los Tsáchilas"], ["240101", "Santa Elena"], ["200101", "Galapagos"],
             ["140101", "Morona-Santiago"]]
            [["170515", "Guayas"], ["040101", "Cotopaxi"], ["060101", "EC-X"], ["990101", "Pichincha"],
             ["000101", "17"]]
        "#,
    ));
    assert_message_contains(
        "EC",
        ZIP_AND_PROVINCE,
        &json!(["170515", "Guayas"]),
        "170515 belongs to Pichincha, not Guayas",
    );
    assert_message_contains("EC", ZIP, &json!(170_150), "in quotes");
}

#[test]
fn an_ecuadorian_cedula_has_a_checked_form_and_check_digit() {
    assert_refused(rules(
        r#"
        EC receiver.nationalId REQUIRED ["1714307103"] [null, "", " "]
        EC receiver.nationalId INVALID_FORMAT
            ["1714307103", "171430710-3", "0926687856", "0910005917", "0602910945", "0962467429", "1710034065",
             " 171 430 7103 "]
            ["171430710", "17143071033", "123A567890", "１７１４３０７１０３", "8814307107", "0014307107", "2514307107",
             "1792060346001", "-"]
        EC receiver.idType NOT_SUPPORTED ["cedula"] ["passport", "dni"]
        EC receiver.idType UNKNOWN_VALUE ["cedula"] ["Cedula", "rfc"]
        "#,
    ));
    assert_warned(rules(
        r#"
        EC receiver.nationalId NATIONAL_ID_CHECK_DIGIT
            ["1714307103", "3000000004", "3070000009"]
            ["1714307104", "1784307108", "1770000006", "1794307106", "3000000005", "5000000001"]
        EC receiver.nationalId|receiver.idType receiver.idType NATIONAL_ID_TYPE_GUESSED
            [["1714307103", "cedula"], ["1792060346001", "ruc"]]
            [["1714307103", null], ["171430710-3", ""], ["1792060346001", null]]
        "#,
    ));
    let body = order_with("EC", ID_AND_TYPE, &json!(["171430710", null]));
    assert_eq!(verdict(&body), (vec!["receiver.nationalId INVALID_FORMAT".into()], vec![]));
}

#[test]
fn cedula_warnings_state_their_reason() {
    let message = |id: &str| {
        let body = order_with("EC", ID, &json!(id));
        check_order(&body, &super::OFFLINE).unwrap().warnings.remove(0).message
    };
    assert!(message("1784307108").contains("third digit"));
    assert!(message("1714307104").contains("check digit"));
}

#[test]
fn an_address_without_a_required_part_has_a_warning() {
    let warned = |country: &str, state: &str, zip: &str| {
        let at = "receiver.address.country|receiver.address.province|receiver.address.zipCode";
        let body = order_with("US", at, &json!([country, state, zip]));
        let warnings = check_order(&body, &super::OFFLINE).unwrap().warnings;
        let codes = warnings.iter().map(|one| format!("{:?}", one.code));
        codes.filter(|code| code.ends_with("Missing")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(warned("US", "NY", "10118"), "");
    assert_eq!(warned("US", "", ""), "StateMissing PostalCodeMissing");
    assert_eq!(warned("CA", "ON", ""), "PostalCodeMissing");
    assert_eq!(warned("GB", "", ""), "PostalCodeMissing");
    assert_eq!(warned("PA", "", ""), "", "it has no postal codes in use");
}

#[test]
fn an_ecuadorian_ruc_has_a_checked_form_and_check_digit() {
    assert_refused(rules(
        r#"
        EC receiver.nationalId|receiver.idType INVALID_FORMAT
            [["1792060346001", "ruc"], ["0992397535001", "ruc"], ["1760001550001", "ruc"], ["1793213150001", "ruc"],
             ["1793189906001", "ruc"], ["0993366721001", "ruc"], ["0993370026001", "ruc"], ["0993381661001", "ruc"],
             ["1714307103001", "ruc"], ["1714307103002", "ruc"], ["1714307103999", "ruc"], ["3000000004001", "ruc"],
             ["3080000007001", "ruc"], ["1790000000001", "ruc"]]
            [["179206034601", "ruc"], ["17920603460011", "ruc"], ["8892060346001", "ruc"], ["1792060346000", "ruc"],
             ["1714307103000", "ruc"], ["1772060346001", "ruc"], ["1782060346001", "ruc"], ["179206034600A", "ruc"],
             ["1714307103", "ruc"]]
        "#,
    ));
    assert_warned(rules(
        r#"
        EC receiver.nationalId|receiver.idType NATIONAL_ID_CHECK_DIGIT
            [["1792060346001", "ruc"]]
            [["1714307104001", "ruc"], ["3000000005001", "ruc"], ["3070000005001", "ruc"]]
        "#,
    ));
}

#[test]
fn a_colombian_city_must_exist_and_its_department_should_match() {
    assert_refused(rules(
        r#"
        CO receiver.address.city|receiver.address.province UNKNOWN_VALUE
            [["Medellín", "Antioquia"], ["MEDELLIN", "ant"], ["Medellín, Antioquia", null], ["05001", "05"],
             ["Medellín", "CO-ANT"], ["La Ceja", null], ["Ceja", null]]
            [["Bogta", null], ["Springfield", null], ["99999", null], ["Quito", "Antioquia"]]
        CO receiver.address.city REQUIRED ["Medellín"] [null, "\u0020\u3000"]
        "#,
    ));
    assert_warned(rules(
        r#"
        CO receiver.address.city|receiver.address.province CITY_DEPARTMENT_MISMATCH
            [["Medellín", "Antioquia"], ["Medellín", null], ["Armenia", "Antioquia"]]
            [["Medellín", "Tolima"], ["Medellín, Tolima", null]]
        CO receiver.address.province CITY_DEPARTMENT_MISMATCH ["Antioquia"] ["Texas", "Antioqia"]
        "#,
    ));
    for (province, meant) in [("Antioquia", Some("Medellín")), ("Valle", None)] {
        let fault = fault("CO", CITY_AND_PROVINCE, &json!(["Medelin", province]));
        assert_eq!(fault.suggestion.as_deref(), meant, "{province}");
    }
}

#[test]
fn bogota_is_found_by_all_its_names() {
    let at = "receiver.address.city|receiver.address.province|receiver.address.zipCode";
    for city in [
        "Bogotá",
        "Bogotá, D.C.",
        "BOGOTA DC",
        "Bogotá D.C.",
        "Bogotá Distrito Capital",
        "Bogotá, Distrito Capital",
        "Santafé de Bogotá D.C.",
        "11001",
    ] {
        for province in
            [json!(null), json!("Bogotá D.C."), json!("DC"), json!("11"), json!("Distrito Capital")]
        {
            let body = order_with("CO", at, &json!([city, province, "110111"]));
            assert_eq!(verdict(&body), (vec![], vec![]), "{city} {province}");
        }
    }
    let body = order_with("CO", at, &json!(["Bogotá", "Cundinamarca", "110111"]));
    assert_eq!(verdict(&body).1, ["receiver.address.city CITY_DEPARTMENT_MISMATCH"]);
}

#[test]
fn colombia_requires_a_cedula_and_warns_of_a_wrong_postal_code() {
    assert_refused(rules(
        r#"
        CO receiver.nationalId REQUIRED ["123456"] [null, ""]
        CO receiver.nationalId INVALID_FORMAT
            ["123456", "1.020.304.050", "52,345,678", "52 345-678"]
            ["12345", "12345678901", "000000", "0000000000", "12345A", "１２３４５６"]
        CO receiver.idType NOT_SUPPORTED ["cedula", null, ""] ["ruc", "passport", "dni"]
        CO receiver.address.zipCode INVALID_FORMAT ["050021"] ["05002", "0500211", "05OO21", "０５００２１"]
        "#,
    ));
    assert_warned(rules(
        r#"
        CO receiver.address.zipCode POSTAL_STATE_MISMATCH ["050021", "059999"] ["110111", "990001", "000001"]
        CO receiver.address.zipCode POSTAL_CODE_MISSING ["050021"] [null, ""]
        CO receiver.address.zipCode|receiver.address.province POSTAL_STATE_MISMATCH
            [["050021", null]] [["110111", null]]
        "#,
    ));
    let city_decides = "receiver.address.city|receiver.address.province|receiver.address.zipCode";
    for (province, zip, odd) in
        [("Quindío", "630001", 0), ("Antioquia", "050001", 0), ("Quindío", "050001", 1)]
    {
        let body = order_with("CO", city_decides, &json!(["Armenia", province, zip]));
        assert_eq!(verdict(&body).1.len(), odd, "{province} {zip}");
    }
    for zip in ["630001", "050001"] {
        let body = order_with("CO", city_decides, &json!(["Armenia", null, zip]));
        assert_eq!(verdict(&body), (vec![], vec![]), "either Armenia may be meant");
    }
}

#[test]
fn a_mexican_state_is_accepted_as_province_or_state() {
    let both = "receiver.address.province|receiver.address.state";
    assert_refused(rules(
        r#"
        MX receiver.address.province|receiver.address.state REQUIRED
            [["Jalisco", null], [null, "Jalisco"], ["", "Jal."], ["JAL", "jalisco"], ["MX-JAL", "14"],
             ["Jalisco", " "]]
            [[null, null], ["", " "]]
        MX receiver.address.province|receiver.address.state UNKNOWN_VALUE
            [["Jalisco", null]] [["Texas", null], [null, "Texas"], ["Jalisco", "Texas"], ["33", null]]
        MX receiver.address.province|receiver.address.state MISMATCH
            [["Jalisco", null]] [["Jalisco", "Colima"]]
        MX receiver.address.province|receiver.address.state INVALID_FORMAT
            [["Jalisco", null]] [["Jalisco", 14], [null, 14]]
        "#,
    ));
    let body = order_with("MX", both, &json!([null, " Jal. "]));
    assert_eq!(accepted(&body).receiver.address.province.as_deref(), Some("Jal."));
}

#[test]
fn every_mexican_state_is_found_by_number_code_and_short_form() {
    let order = "AGU BCN BCS CAM COA COL CHP CHH CMX DUR GUA GRO HID JAL MEX MIC MOR NAY NLE OAX PUE QUE ROO SLP SIN SON TAB TAM TLA VER YUC ZAC";
    let short = "Ags.|B.C.|BCS|Camp.|Coah.|Col.|Chis.|Chih.|CDMX|Dgo.|Gto.|Gro.|Hgo.|Jal.|Edomex|Mich.|Mor.|Nay.|N.L.|Oax.|Pue.|Qro.|Q.R.|S.L.P.|Sin.|Son.|Tab.|Tamps.|Tlax.|Ver.|Yuc.|Zac.";
    let prefixes = "20 21-22 23 24 25-27 28 29-30 31-33 01-16 34-35 36-38 39-41 42-43 44-49 50-57 58-61 62 63 64-67 68-71 72-75 76 77 78-79 80-82 83-85 86 87-89 90 91-96 97 98-99";
    let rows = order.split(' ').zip(short.split('|')).zip(prefixes.split(' ')).enumerate();
    for (i, ((iso, short), prefix)) in rows {
        let (first, last) = prefix.split_once('-').unwrap_or((prefix, prefix));
        for name in [iso.to_owned(), format!("MX-{iso}"), format!("{:02}", i + 1), short.to_owned()]
        {
            for zip in [format!("{first}000"), format!("{last}999")] {
                let body = order_with("MX", ZIP_AND_PROVINCE, &json!([zip, name]));
                assert_eq!(verdict(&body), (vec![], vec![]), "{name} {zip}");
            }
        }
        let odd = order_with("MX", ZIP_AND_PROVINCE, &json!(["17000", iso]));
        assert_eq!(verdict(&odd).1, ["receiver.address.zipCode POSTAL_STATE_MISMATCH"], "{iso}");
    }
    let names = [
        ("Distrito Federal", "06600"),
        ("D.F.", "06600"),
        ("DF", "06600"),
        ("Mexico City", "06600"),
        ("Ciudad de México", "06600"),
        ("Estado de México", "50000"),
        ("México", "50000"),
        ("EDOMEX", "50000"),
        ("Coahuila de Zaragoza", "25000"),
        ("Coahuila", "25000"),
        ("Michoacán", "58000"),
        ("Veracruz", "91000"),
        ("Nuevo Leon", "64000"),
        ("NL", "64000"),
    ];
    for (name, zip) in names {
        let body = order_with("MX", ZIP_AND_PROVINCE, &json!([zip, name]));
        assert_eq!(verdict(&body), (vec![], vec![]), "{name}");
    }
}

#[test]
fn a_mexican_postal_code_has_5_digits_and_matches_its_state() {
    assert_refused(rules(
        r#"
        MX receiver.address.zipCode REQUIRED ["44100"] [null, "", " "]
        MX receiver.address.zipCode INVALID_FORMAT
            ["44100", " 49999 "] [44100, "4410", "441000", "4410O", "４４１００", "44-100"]
        "#,
    ));
    assert_warned(rules(
        r#"
        MX receiver.address.zipCode POSTAL_STATE_MISMATCH ["44100"] ["06600", "17000", "00100"]
        "#,
    ));
    assert_message_contains("MX", ZIP, &json!(44100), "in quotes");
}

#[test]
fn a_mexican_rfc_has_a_checked_form_and_check_digit() {
    assert_refused(rules(
        r#"
        MX receiver.nationalId INVALID_FORMAT
            [null, "", "GODE561231GR8", "gode 561231-gr8", "GODE_561231_GR8", "SAT970701NN3", "BNM840515VB1",
             "XAXX010101000", "XEXX010101000"]
            ["GODE561231GR", "GODE5612311GR8", "GODE561231GRB", "GO1E561231GR8", "GODE56I231GR8", "GODE561331GR8",
             "GODE560230GR8", "GODE560431GR8", "GODE560100GR8", "GODE010229GR8", "GODE561231ÑR8", "GODE561231GR88AB",
             "GODE561231HDFRRN09", "１２３", "-"]
        "#,
    ));
    assert_warned(rules(
        r#"
        MX receiver.nationalId NATIONAL_ID_CHECK_DIGIT
            ["GODE561231GR8"] ["GODE561231GR7", "SAT970701NNA", "ÑAÑ&561231GRA", "GODE000229GR8"]
        "#,
    ));
    assert_message_contains("MX", ID, &json!("GODE561231HDFRRN09"), "CURP");
    for kind in ["cedula", "ruc", "passport", "dni"] {
        let body = order_with("MX", TYPE, &json!(kind));
        assert_eq!(verdict(&body), (vec![], vec![]), "idType is ignored: {kind}");
    }
}

#[test]
fn other_countries_have_no_rules_for_an_id() {
    let mut body = order("PE");
    set(&mut body, ID, json!("anything 123"));
    set(&mut body, TYPE, json!("passport"));
    set(&mut body, PROVINCE, json!("Lima"));
    assert_eq!(verdict(&body), (vec![], vec![]));
    set(&mut body, PROVINCE, json!(null));
    for name in ["state", ""] {
        body["receiver"]["address"][name] = json!("Lima");
        assert_eq!(accepted(&body).receiver.address.province, None, "`{name}` is no province");
    }
}
