//! The rules of Ecuador, Colombia and Mexico, row by row.

use serde_json::{Value, json};

use super::{Rule, accepted, assert_refused, assert_warned, order, order_with, set, verdict};
use crate::rules::check_order;

const PROVINCE: &str = "receiver.address.province";
const ZIP: &str = "receiver.address.zipCode";
const CITY: &str = "receiver.address.city";
const ID: &str = "receiver.nationalId";
const TYPE: &str = "receiver.idType";
const ID_AND_TYPE: &str = "receiver.nationalId|receiver.idType";
const ZIP_AND_PROVINCE: &str = "receiver.address.zipCode|receiver.address.province";
const CITY_AND_PROVINCE: &str = "receiver.address.city|receiver.address.province";

const RUCS: [&str; 8] = [
    "1792060346001",
    "0992397535001",
    "1760001550001",
    "1793213150001",
    "1793189906001",
    "0993366721001",
    "0993370026001",
    "0993381661001",
];

fn suggestion(body: &Value) -> Option<String> {
    check_order(body, &super::OFFLINE).unwrap_err().faults.remove(0).suggestion
}

#[test]
fn the_province_and_postal_code_of_ecuador_are_checked_together() {
    assert_refused(vec![
        Rule(
            "EC",
            PROVINCE,
            json!(["Pichincha"]),
            json!([null, "", " "]),
            "receiver.address.province REQUIRED",
        ),
        Rule(
            "EC",
            PROVINCE,
            json!(["PICHINCHA", "EC-P", "P", "p", "17", " Pichincha "]),
            json!(["Pichinchas del Norte", "Jalisco", "99", "7", "..."]),
            "receiver.address.province UNKNOWN_VALUE",
        ),
        Rule(
            "EC",
            ZIP,
            json!(["170150", "179999", null, ""]),
            json!(["17015", "1701500", "17O150", "１７０１５０", "17 0150"]),
            "receiver.address.zipCode INVALID_FORMAT",
        ),
        Rule(
            "EC",
            ZIP_AND_PROVINCE,
            json!([
                ["170515", "Pichincha"],
                ["090101", "Guayas"],
                ["040101", "Carchi"],
                ["050101", "Cotopaxi"],
                ["060101", "Chimborazo"],
                ["070101", "El Oro"],
                ["230101", "Sto. Domingo"],
                ["230101", "Santo Domingo de los Tsáchilas"],
                ["240101", "Santa Elena"],
                ["200101", "Galapagos"],
                ["140101", "Morona-Santiago"],
            ]),
            json!([
                ["170515", "Guayas"],
                ["040101", "Cotopaxi"],
                ["060101", "EC-X"],
                ["990101", "Pichincha"],
                ["000101", "17"]
            ]),
            "receiver.address.zipCode MISMATCH",
        ),
    ]);
    let body = order_with("EC", ZIP_AND_PROVINCE, &json!(["170515", "Guayas"]));
    let fault = check_order(&body, &super::OFFLINE).unwrap_err().faults.remove(0);
    assert!(
        fault.message.starts_with("170515 belongs to Pichincha, not Guayas"),
        "{}",
        fault.message
    );
    assert_eq!(
        suggestion(&order_with("EC", PROVINCE, &json!("Pichinca"))).as_deref(),
        Some("Pichincha")
    );
    let body = order_with("EC", ZIP, &json!(170_150));
    let fault = check_order(&body, &super::OFFLINE).unwrap_err().faults.remove(0);
    assert!(fault.message.contains("in quotes"), "{}", fault.message);
}

#[test]
fn an_ecuadorian_cedula_has_a_valid_form_and_a_likely_check_digit() {
    let good = json!([
        "1714307103",
        "171430710-3",
        "0926687856",
        "0910005917",
        "0602910945",
        "0962467429",
        "1710034065",
        " 171 430 7103 ",
    ]);
    assert_refused(vec![
        Rule(
            "EC",
            ID,
            json!(["1714307103"]),
            json!([null, "", " "]),
            "receiver.nationalId REQUIRED",
        ),
        Rule(
            "EC",
            ID,
            good,
            json!([
                "171430710",
                "17143071033",
                "123A567890",
                "１７１４３０７１０３",
                "8814307107",
                "0014307107",
                "2514307107",
                "1792060346001",
                "-"
            ]),
            "receiver.nationalId INVALID_FORMAT",
        ),
        Rule(
            "EC",
            TYPE,
            json!(["cedula"]),
            json!(["passport", "dni"]),
            "receiver.idType NOT_SUPPORTED",
        ),
        Rule(
            "EC",
            TYPE,
            json!(["cedula"]),
            json!(["Cedula", "rfc"]),
            "receiver.idType UNKNOWN_VALUE",
        ),
    ]);
    assert_warned(vec![
        Rule(
            "EC",
            ID,
            json!(["1714307103", "3000000004", "3070000009"]),
            json!([
                "1714307104",
                "1784307108",
                "1770000006",
                "1794307106",
                "3000000005",
                "5000000001"
            ]),
            "receiver.nationalId NATIONAL_ID_CHECK_DIGIT",
        ),
        Rule(
            "EC",
            ID_AND_TYPE,
            json!([["1714307103", "cedula"], ["1792060346001", "ruc"]]),
            json!([["1714307103", null], ["171430710-3", ""], ["1792060346001", null]]),
            "receiver.idType NATIONAL_ID_TYPE_GUESSED",
        ),
    ]);
    let body = order_with("EC", ID_AND_TYPE, &json!(["171430710", null]));
    assert_eq!(verdict(&body), (vec!["receiver.nationalId INVALID_FORMAT".into()], vec![]));
}

#[test]
fn the_warnings_of_a_cedula_say_why() {
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
fn an_ecuadorian_ruc_has_a_valid_form_and_a_likely_check_digit() {
    let as_ruc = |ids: &[&str]| -> Value { ids.iter().map(|id| json!([id, "ruc"])).collect() };
    let branches = [
        "1714307103001",
        "1714307103002",
        "1714307103999",
        "3000000004001",
        "3080000007001",
        "1790000000001",
    ];
    let good = [&RUCS[..], &branches[..]].concat();
    let bad = [
        "179206034601",
        "17920603460011",
        "8892060346001",
        "1792060346000",
        "1714307103000",
        "1772060346001",
        "1782060346001",
        "179206034600A",
        "1714307103",
    ];
    assert_refused(vec![Rule(
        "EC",
        ID_AND_TYPE,
        as_ruc(&good),
        as_ruc(&bad),
        "receiver.nationalId INVALID_FORMAT",
    )]);
    let odd = ["1714307104001", "3000000005001", "3070000005001"];
    assert_warned(vec![Rule(
        "EC",
        ID_AND_TYPE,
        as_ruc(&RUCS),
        as_ruc(&odd),
        "receiver.nationalId NATIONAL_ID_CHECK_DIGIT",
    )]);
}

#[test]
fn a_colombian_city_must_exist_and_its_department_should_match() {
    assert_refused(vec![
        Rule(
            "CO",
            CITY_AND_PROVINCE,
            json!([
                ["Medellín", "Antioquia"],
                ["MEDELLIN", "ant"],
                ["Medellín, Antioquia", null],
                ["05001", "05"],
                ["Medellín", "CO-ANT"],
                ["La Ceja", null],
                ["Ceja", null],
            ]),
            json!([
                ["Bogta", null],
                ["Springfield", null],
                ["99999", null],
                ["Quito", "Antioquia"]
            ]),
            "receiver.address.city UNKNOWN_VALUE",
        ),
        Rule("CO", CITY, json!(["Medellín"]), json!([null, " "]), "receiver.address.city REQUIRED"),
    ]);
    let warning = "receiver.address.city CITY_DEPARTMENT_MISMATCH";
    assert_warned(vec![
        Rule(
            "CO",
            CITY_AND_PROVINCE,
            json!([["Medellín", "Antioquia"], ["Medellín", null], ["Armenia", "Antioquia"]]),
            json!([["Medellín", "Tolima"], ["Medellín, Tolima", null], ["Cali", "Antioquia"]])
                .as_array()
                .unwrap()[..2]
                .iter()
                .cloned()
                .collect(),
            warning,
        ),
        Rule(
            "CO",
            PROVINCE,
            json!(["Antioquia"]),
            json!(["Texas", "Antioqia"]),
            "receiver.address.province CITY_DEPARTMENT_MISMATCH",
        ),
    ]);
    for (city, province, meant) in [
        ("Bogta", json!(null), Some("Bogotá, D.C.")),
        ("Bogta", json!("D.C."), Some("Bogotá, D.C.")),
        ("Bogta", json!("Antioquia"), None),
        ("Medelin", json!("Antioquia"), Some("Medellín")),
        ("Medelin", json!("Valle"), None),
    ] {
        let body = order_with("CO", CITY_AND_PROVINCE, &json!([city, province]));
        assert_eq!(suggestion(&body).as_deref(), meant, "{city} in {province}");
    }
}

#[test]
fn bogota_is_found_by_all_its_names() {
    let at = "receiver.address.city|receiver.address.province|receiver.address.zipCode";
    for city in
        ["Bogotá", "Bogotá, D.C.", "BOGOTA DC", "Bogotá D.C.", "Bogotá Distrito Capital", "11001"]
    {
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
fn a_colombian_cedula_is_required_and_a_wrong_postal_code_is_a_warning() {
    assert_refused(vec![
        Rule("CO", ID, json!(["123456"]), json!([null, ""]), "receiver.nationalId REQUIRED"),
        Rule(
            "CO",
            ID,
            json!(["123456", "1.020.304.050", "52,345,678", "52 345-678"]),
            json!(["12345", "12345678901", "000000", "0000000000", "12345A", "１２３４５６"]),
            "receiver.nationalId INVALID_FORMAT",
        ),
        Rule(
            "CO",
            TYPE,
            json!(["cedula", null, ""]),
            json!(["ruc", "passport", "dni"]),
            "receiver.idType NOT_SUPPORTED",
        ),
        Rule(
            "CO",
            ZIP,
            json!(["050021"]),
            json!(["05002", "0500211", "05OO21", "０５００２１"]),
            "receiver.address.zipCode INVALID_FORMAT",
        ),
    ]);
    assert_warned(vec![
        Rule(
            "CO",
            ZIP,
            json!(["050021", "059999"]),
            json!(["110111", "990001", "000001"]),
            "receiver.address.zipCode POSTAL_STATE_MISMATCH",
        ),
        Rule(
            "CO",
            ZIP,
            json!(["050021"]),
            json!([null, ""]),
            "receiver.address.zipCode POSTAL_CODE_MISSING",
        ),
        Rule(
            "CO",
            ZIP_AND_PROVINCE,
            json!([["050021", null]]),
            json!([["110111", null]]),
            "receiver.address.zipCode POSTAL_STATE_MISMATCH",
        ),
    ]);
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
    let jalisco = json!([
        ["Jalisco", null],
        [null, "Jalisco"],
        ["", "Jal."],
        ["JAL", "jalisco"],
        ["MX-JAL", "14"],
        ["Jalisco", " "]
    ]);
    assert_refused(vec![
        Rule(
            "MX",
            both,
            jalisco.clone(),
            json!([[null, null], ["", " "]]),
            "receiver.address.province REQUIRED",
        ),
        Rule(
            "MX",
            both,
            jalisco.clone(),
            json!([["Texas", null], [null, "Texas"], ["Jalisco", "Texas"], ["33", null]]),
            "receiver.address.province UNKNOWN_VALUE",
        ),
        Rule(
            "MX",
            both,
            jalisco.clone(),
            json!([["Jalisco", "Colima"]]),
            "receiver.address.province MISMATCH",
        ),
        Rule(
            "MX",
            both,
            jalisco,
            json!([["Jalisco", 14], [null, 14]]),
            "receiver.address.province INVALID_FORMAT",
        ),
    ]);
    let body = order_with("MX", both, &json!([null, " Jal. "]));
    assert_eq!(accepted(&body).receiver.address.province.as_deref(), Some("Jal."));
    assert_eq!(
        suggestion(&order_with("MX", PROVINCE, &json!("Jalsico"))).as_deref(),
        Some("Jalisco")
    );
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
    assert_refused(vec![
        Rule(
            "MX",
            ZIP,
            json!(["44100"]),
            json!([null, "", " "]),
            "receiver.address.zipCode REQUIRED",
        ),
        Rule(
            "MX",
            ZIP,
            json!(["44100", " 49999 "]),
            json!([44100, "4410", "441000", "4410O", "４４１００", "44-100"]),
            "receiver.address.zipCode INVALID_FORMAT",
        ),
    ]);
    assert_warned(vec![Rule(
        "MX",
        ZIP,
        json!(["44100"]),
        json!(["06600", "17000", "00100"]),
        "receiver.address.zipCode POSTAL_STATE_MISMATCH",
    )]);
    let body = order_with("MX", ZIP, &json!(44100));
    let fault = check_order(&body, &super::OFFLINE).unwrap_err().faults.remove(0);
    assert!(fault.message.contains("in quotes"), "{}", fault.message);
}

#[test]
fn a_mexican_rfc_has_a_valid_form_and_a_likely_check_digit() {
    let good = json!([
        null,
        "",
        "GODE561231GR8",
        "gode 561231-gr8",
        "GODE_561231_GR8",
        "SAT970701NN3",
        "BNM840515VB1",
        "XAXX010101000",
        "XEXX010101000",
    ]);
    let bad = json!([
        "GODE561231GR",
        "GODE5612311GR8",
        "GODE561231GRB",
        "GO1E561231GR8",
        "GODE56I231GR8",
        "GODE561331GR8",
        "GODE560230GR8",
        "GODE010229GR8",
        "GODE561231ÑR8",
        "GODE561231GR88AB",
        "GODE561231HDFRRN09",
        "１２３",
        "-",
    ]);
    assert_refused(vec![Rule("MX", ID, good, bad, "receiver.nationalId INVALID_FORMAT")]);
    assert_warned(vec![Rule(
        "MX",
        ID,
        json!(["GODE561231GR8"]),
        json!(["GODE561231GR7", "SAT970701NNA", "ÑAÑ&561231GRA", "GODE000229GR8"]),
        "receiver.nationalId NATIONAL_ID_CHECK_DIGIT",
    )]);
    let curp = order_with("MX", ID, &json!("GODE561231HDFRRN09"));
    let fault = check_order(&curp, &super::OFFLINE).unwrap_err().faults.remove(0);
    assert!(fault.message.contains("CURP"), "{}", fault.message);
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
