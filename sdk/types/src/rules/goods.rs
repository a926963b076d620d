//! The contents of a parcel: weight, size, value, line items (spec: Parcel details, Customs info, Product).
//!
//! The spec gives no upper bounds; those here are ours (docs/api.md, Conventions), far above any parcel.

use rust_decimal::Decimal;

use super::{
    contact,
    field_types::{Bounds, Text},
    fields::{Fields, Kind::Leaf},
    normalize::{is_digits, strip_separators},
    reader::{FieldValue, List, Object},
    texts::{FaultText, faults, warnings},
};
use crate::model::{ContentsCategory, CurrencyCode, CustomsInfo, Incoterm, ParcelDetails, Product};

pub(crate) const DETAILS: Fields = Fields(&[
    ("weightLbs", Leaf),
    ("weightKg", Leaf),
    ("lengthCm", Leaf),
    ("widthCm", Leaf),
    ("heightCm", Leaf),
    ("declaredValue", Leaf),
    ("currency", Leaf),
]);

pub(crate) const CUSTOMS: Fields = Fields(&[
    ("description", Leaf),
    ("hsCode", Leaf),
    ("contentsCategory", Leaf),
    ("incoterm", Leaf),
]);

pub(crate) const PRODUCT: Fields = Fields(&[
    ("description", Leaf),
    ("quantity", Leaf),
    ("unitFobValue", Leaf),
    ("unitNetWeightKg", Leaf),
    ("countryOfOrigin", Leaf),
    ("hsCode", Leaf),
    ("sku", Leaf),
]);

/// Maximum number of line items in one order.
pub(crate) const MAX_PRODUCTS: usize = 500;

pub(crate) const MAX_QUANTITY: u32 = 1_000_000;
/// Bounds of money, 0 to 999,999,999.99 (the parts are the 96 bits of 99,999,999,999 hundredths).
pub(crate) const MONEY_BOUNDS: Bounds =
    Bounds::Between(Decimal::ZERO, Decimal::from_parts(0x4876_E7FF, 0x17, 0, false, 2));
pub(crate) const WEIGHT_KG_BOUNDS: Bounds =
    Bounds::AboveZero(Decimal::from_parts(10_000, 0, 0, false, 0), "kg");
/// 10,000 kg in pounds, rounded down to a thousandth of a pound.
pub(crate) const WEIGHT_LBS_BOUNDS: Bounds =
    Bounds::AboveZero(Decimal::from_parts(22_046_226, 0, 0, false, 3), "lb");
pub(crate) const LENGTH_CM_BOUNDS: Bounds =
    Bounds::AboveZero(Decimal::from_parts(1_000, 0, 0, false, 0), "cm");
/// Maximum difference between the two weights of a parcel, as a share of the kilograms: both are usually rounded.
const WEIGHT_TOLERANCE: Decimal = Decimal::from_parts(1, 0, 0, false, 2);
/// Maximum difference between the declared value and the sum of the line items: a cent, for prices that were rounded.
const MONEY_TOLERANCE: Decimal = Decimal::from_parts(1, 0, 0, false, 2);

/// Parses weight, size and value; `None` if there is a fault.
pub(crate) fn read_details(details: &Object<'_>) -> Option<ParcelDetails> {
    let lbs = details.number("weightLbs", WEIGHT_LBS_BOUNDS);
    let kg = details.number("weightKg", WEIGHT_KG_BOUNDS);
    check_weights(&lbs, &kg);
    let length_cm = details.number("lengthCm", LENGTH_CM_BOUNDS).optional();
    let width_cm = details.number("widthCm", LENGTH_CM_BOUNDS).optional();
    let height_cm = details.number("heightCm", LENGTH_CM_BOUNDS).optional();
    let declared_value = details.number("declaredValue", MONEY_BOUNDS).required();
    let currency = details.text("currency", Text::CODE).and_then(parse_currency).optional();
    Some(ParcelDetails {
        weight_lbs: lbs.optional(),
        weight_kg: kg.optional(),
        length_cm,
        width_cm,
        height_cm,
        declared_value: declared_value?,
        currency: currency.unwrap_or_default(),
    })
}

fn check_weights(lbs: &FieldValue<'_, Decimal>, kg: &FieldValue<'_, Decimal>) {
    if lbs.is_absent() {
        kg.require_or(faults::WEIGHT_REQUIRED);
    }
    let (Some(lbs_given), Some(kg_given)) = (lbs.value(), kg.value()) else { return };
    let agree = lbs_given
        .checked_mul(ParcelDetails::KG_PER_LB)
        .zip(kg_given.checked_mul(WEIGHT_TOLERANCE))
        .is_some_and(|(converted, slack)| (converted - kg_given).abs() <= slack);
    if agree {
        lbs.warn(warnings::BOTH_WEIGHTS);
    } else {
        lbs.fault(faults::WEIGHTS_DISAGREE);
    }
}

/// Parses the code of a currency that is still in use.
fn parse_currency(code: &str) -> Result<CurrencyCode, FaultText> {
    let active = |code: &str| CurrencyCode::parse(code).ok().filter(|code| code.is_active());
    active(code).ok_or_else(|| {
        let meant = active(&code.trim().to_uppercase());
        faults::CURRENCY.suggest(meant.map(|currency| currency.as_str()))
    })
}

/// Parses the customs declaration of the parcel as a whole; `None` if there is a fault.
pub(crate) fn read_customs(customs: &Object<'_>) -> Option<CustomsInfo> {
    let (description, hs_code) = (customs.text("description", Text::NOTE), read_hs_code(customs));
    let contents_category = customs.lenient(|customs| {
        customs.text("contentsCategory", Text::CODE).and_then(parse_contents_category)
    });
    let incoterm =
        customs.lenient(|customs| customs.text("incoterm", Text::CODE).and_then(parse_incoterm));
    Some(CustomsInfo {
        description: description.into_result().ok()?.map(str::to_owned),
        hs_code: hs_code.into_result().ok()?.map(str::to_owned),
        contents_category,
        incoterm,
    })
}

/// Parses a category; the fault of a misspelt one suggests the right code.
fn parse_contents_category(word: &str) -> Result<ContentsCategory, FaultText> {
    match ContentsCategory::from(word) {
        ContentsCategory::Unknown(word) => {
            let word = word.trim().to_uppercase().replace([' ', '-'], "_");
            let meant = ContentsCategory::KNOWN.iter().find(|known| known.code() == word);
            Err(faults::CONTENTS_CATEGORY.suggest(meant.map(ContentsCategory::code)))
        }
        known => Ok(known),
    }
}

/// Withdrawn Incoterms, and the ones that replaced them.
const FORMER_INCOTERMS: [(&str, &str); 2] = [("DDU", "DAP"), ("DAT", "DPU")];

/// Parses an Incoterm; the fault of a withdrawn or misspelt one suggests the right code.
fn parse_incoterm(word: &str) -> Result<Incoterm, FaultText> {
    match Incoterm::from(word) {
        Incoterm::Unknown(word) => {
            let word = word.trim().to_uppercase();
            let known = Incoterm::KNOWN.iter().map(Incoterm::code).find(|code| *code == word);
            let former = FORMER_INCOTERMS.iter().find(|(former, _)| *former == word);
            Err(faults::INCOTERM.suggest(known.or(former.map(|(_, now)| *now))))
        }
        known => Ok(known),
    }
}

/// Parses the line items; `None` if there is a fault.
pub(crate) fn read_products(list: &List<'_>) -> Option<Vec<Product>> {
    let products: Vec<_> = list.objects().map(|item| read_product(&item?)).collect();
    products.into_iter().collect()
}

/// Parses a line item; `None` if there is a fault.
fn read_product(product: &Object<'_>) -> Option<Product> {
    let description = product.text("description", Text::NOTE);
    let quantity = product.whole_number("quantity", MAX_QUANTITY).required();
    let unit_fob_value = product.number("unitFobValue", MONEY_BOUNDS).required();
    let unit_net_weight_kg =
        product.lenient(|product| product.number("unitNetWeightKg", WEIGHT_KG_BOUNDS));
    let country_of_origin = product.lenient(|product| {
        product.text("countryOfOrigin", Text::CODE).and_then(contact::parse_country)
    });
    let hs_code = read_hs_code(product);
    let sku = product.text("sku", Text::DATA).optional();
    Some(Product {
        description: description.into_result().ok()?.map(str::to_owned),
        quantity: quantity?,
        unit_fob_value: unit_fob_value?,
        unit_net_weight_kg,
        country_of_origin,
        hs_code: hs_code.into_result().ok()?.map(str::to_owned),
        sku: sku.map(str::to_owned),
    })
}

/// Reads an HS code: digits, optionally with dots.
fn read_hs_code<'a>(goods: &'a Object<'a>) -> FieldValue<'a, &'a str> {
    let digits = |code: &str| strip_separators(code, &['.']);
    let code = goods.text("hsCode", Text::DATA).and_then(|code| {
        if is_digits(&digits(code)) { Ok(code) } else { Err(faults::HS_CODE_FORM) }
    });
    // The Harmonized System has 6 digits, and countries add up to 4; the spec states no length, so another one only
    // warns.
    if code.value().is_some_and(|code| !(6..=10).contains(&digits(code).len())) {
        code.warn(warnings::HS_CODE_LENGTH);
    }
    code
}

/// Warns once about missing descriptions and once about missing HS codes, at the first product without one;
/// `customsInfo` counts for all products.
pub(crate) fn warn_missing(order: &Object<'_>, customs: &CustomsInfo, products: &[Product]) {
    let at = |missing: Option<usize>, name: &str| match missing {
        _ if products.is_empty() => Some(format!("customsInfo.{name}")),
        Some(index) => Some(format!("products[{index}].{name}")),
        None => None,
    };
    if customs.description.is_none() {
        let missing = products.iter().position(|product| product.description.is_none());
        if let Some(path) = at(missing, "description") {
            order.warn_at(&path, warnings::DESCRIPTION_MISSING);
        }
    }
    if customs.hs_code.is_none() {
        let missing = products.iter().position(|product| product.hs_code.is_none());
        if let Some(path) = at(missing, "hsCode") {
            order.warn_at(&path, warnings::HS_CODE_MISSING);
        }
    }
}

/// Compares the declared value with the sum of the line items, if there are any (spec: `products` are for checksum
/// validation). Below the sum it is a fault, since it under-declares; above the sum only a warning, since freight
/// or insurance may be included.
pub(crate) fn check_sum(order: &Object<'_>, details: &ParcelDetails, products: &[Product]) {
    let Some(sum) = products.iter().try_fold(Decimal::ZERO, add_value) else { return };
    let path = "parcelDetails.declaredValue";
    match details.declared_value - sum {
        _ if products.is_empty() => {}
        difference if difference < -MONEY_TOLERANCE => {
            order.fault_at(path, faults::under_declared(sum, details.currency));
        }
        difference if difference > MONEY_TOLERANCE => {
            order.warn_at(path, warnings::OVER_DECLARED);
        }
        _ => {}
    }
}

/// Warns if the products weigh more without their packaging than the parcel with it. The weights of a parcel are often
/// rounded, so this is no fault.
pub(crate) fn check_net_weight(order: &Object<'_>, details: &ParcelDetails, products: &[Product]) {
    let net = |product: &Product| {
        product.unit_net_weight_kg?.checked_mul(Decimal::from(product.quantity))
    };
    let sum = products.iter().filter_map(net).try_fold(Decimal::ZERO, Decimal::checked_add);
    let Some((sum, gross)) = sum.zip(details.kilograms()) else { return };
    if sum > gross {
        let path = if details.weight_kg.is_some() { "weightKg" } else { "weightLbs" };
        order.warn_at(&format!("parcelDetails.{path}"), warnings::net_weight_above(sum));
    }
}

/// Adds the value of a line item to a sum; `None` if the result is too large.
fn add_value(sum: Decimal, product: &Product) -> Option<Decimal> {
    sum.checked_add(Decimal::from(product.quantity).checked_mul(product.unit_fob_value)?)
}
