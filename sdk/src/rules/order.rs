//! The validator of orders: the same for the server, the client before it sends, and the CLI
//! (spec: Order request).

use std::{cell::RefCell, fmt};

use serde_json::Value;

use super::{
    Destinations,
    fields::{
        Fields,
        Kind::{Leaf, Nested},
    },
    goods,
    key::{self, KeyReading, read_key},
    reader::{Object, Report, Text},
    receiver, sender,
    texts::{Wrong, faults},
};
use crate::model::{
    CustomsInfo, Environment, FieldFault, IdempotencyKey, OrderRequest, Product, TrackingNumber,
    Warning,
};

const FIELDS: Fields = Fields(&[
    (key::FIELD, Leaf),
    ("trackingNumber", Leaf),
    ("externalOrderId", Leaf),
    ("customerReference", Leaf),
    ("sender", Nested(&sender::FIELDS)),
    ("receiver", Nested(&receiver::FIELDS)),
    ("parcelDetails", Nested(&goods::DETAILS)),
    ("customsInfo", Nested(&goods::CUSTOMS)),
    ("products", Nested(&goods::PRODUCT)),
]);

/// What an order is checked against besides itself.
#[derive(Debug, Clone, Copy)]
pub struct OrderContext<'a> {
    /// Where the order will be created; `None` offline, when it is not known yet and the rule about
    /// `SB` is left to the server.
    pub environment: Option<Environment>,
    /// Where parcels can go.
    pub destinations: &'a Destinations,
    /// The header `X-Idempotency-Key`.
    pub header_key: Option<&'a str>,
}

/// A request that keeps the rules.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted<T> {
    /// What it asks for.
    pub value: T,
    /// What is odd about it.
    pub warnings: Vec<Warning>,
}

/// A request that breaks rules: every fault, in the order of the spec's tables.
///
/// `Display` is one line of paths and codes, without a word of what the request said.
#[derive(Clone, PartialEq, Eq)]
pub struct Rejected {
    /// What is wrong with it.
    pub faults: Vec<FieldFault>,
    /// What is odd about it besides.
    pub warnings: Vec<Warning>,
}

/// Checks an order: all faults at once, or the order with its warnings.
///
/// Texts come out trimmed and blank ones absent; nothing else is changed.
///
/// ```
/// use parcelo::rules::{Destinations, OrderContext, check_order};
/// let context = OrderContext {
///     environment: None,
///     destinations: &Destinations::All,
///     header_key: Some("order-0001"),
/// };
/// let rejected = check_order(&serde_json::json!({"sender": {}}), &context).unwrap_err();
/// let fields: Vec<_> = rejected.faults.iter().map(|fault| fault.field.as_str()).collect();
/// assert_eq!(fields[..2], ["sender.fullName", "sender.phone"]);
/// ```
pub fn check_order(
    body: &Value,
    context: &OrderContext<'_>,
) -> Result<Accepted<OrderRequest>, Rejected> {
    let report = RefCell::default();
    let order = Object::body(body, &report).and_then(|order| {
        FIELDS.warn_unknown(order.members(), &mut report.borrow_mut());
        read(&order, key_of(body, context, &report), context)
    });
    let mut report = report.into_inner();
    FIELDS.sort(&mut report);
    let Report { faults, warnings } = report;
    match order {
        Some(value) if faults.is_empty() => Ok(Accepted { value, warnings }),
        Some(_) | None => Err(Rejected { faults, warnings }),
    }
}

fn key_of(
    body: &Value,
    context: &OrderContext<'_>,
    report: &RefCell<Report>,
) -> Option<IdempotencyKey> {
    let fault = match read_key(body, context.header_key) {
        KeyReading::Key(key) => return Some(key),
        KeyReading::Missing => faults::key_required().at(key::FIELD),
        KeyReading::Faulty(fault) => fault,
    };
    report.borrow_mut().faults.push(fault);
    None
}

fn read(
    order: &Object<'_>,
    idempotency_key: Option<IdempotencyKey>,
    context: &OrderContext<'_>,
) -> Option<OrderRequest> {
    let number = |text: &str| tracking_number(text, context.environment);
    let tracking_number = order.text("trackingNumber", Text::CODE).then(number).optional();
    let external_order_id = order.text("externalOrderId", Text::LINE.most(100)).optional();
    let customer_reference = order.text("customerReference", Text::LINE.most(100)).optional();
    let sender = order.object("sender").required();
    let sender = sender.as_ref().and_then(sender::read);
    let receiver = order.object("receiver").required();
    let receiver = receiver.as_ref().and_then(|it| receiver::read(it, context.destinations));
    let details = order.object("parcelDetails").required();
    let details = details.as_ref().and_then(goods::details);
    let (customs_info, products) = read_goods(order);
    if let (Some(details), Some(products)) = (&details, &products) {
        goods::check_sum(order, details.declared_value, products);
    }
    Some(OrderRequest {
        idempotency_key: idempotency_key?,
        tracking_number,
        external_order_id: external_order_id.map(str::to_owned),
        customer_reference: customer_reference.map(str::to_owned),
        sender: sender?,
        receiver: receiver?,
        parcel_details: details?,
        customs_info,
        products: products?,
    })
}

fn read_goods(order: &Object<'_>) -> (Option<CustomsInfo>, Option<Vec<Product>>) {
    let info = order.object("customsInfo");
    let customs = info.value().and_then(goods::customs);
    let list = order.list("products", goods::PRODUCTS);
    let products = match list.value() {
        Some(list) => goods::products(list),
        None => list.is_absent().then(Vec::new),
    };
    let told = if info.is_absent() { Some(CustomsInfo::default()) } else { customs.clone() };
    if let (Some(told), Some(products)) = (told, &products) {
        goods::warn_missing(order, &told, products);
    }
    (customs, products)
}

fn tracking_number(text: &str, environment: Option<Environment>) -> Result<TrackingNumber, Wrong> {
    let number = TrackingNumber::parse(text).map_err(|_| match text.chars().count() {
        0..TrackingNumber::MIN => faults::too_short(TrackingNumber::MIN),
        TrackingNumber::MIN..=TrackingNumber::MAX => faults::tracking_number(),
        _ => faults::too_long(TrackingNumber::MAX),
    })?;
    match (environment, number.is_sandbox()) {
        (Some(Environment::Production), true) => Err(faults::tracking_number_reserved()),
        (Some(Environment::Sandbox), false) => Err(faults::tracking_number_of_production()),
        (Some(Environment::Production), false) | (Some(Environment::Sandbox), true) | (None, _) => {
            Ok(number)
        }
    }
}

/// Faults that `Display` names one by one.
const NAMED: usize = 5;

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request breaks the rules:")?;
        for (i, fault) in self.faults.iter().take(NAMED).enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma} {} {}", fault.field, fault.code)?;
        }
        match self.faults.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl fmt::Debug for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults = self.faults.iter().map(|fault| (&fault.field, &fault.code));
        let warnings = self.warnings.iter().map(|warning| (&warning.field, &warning.code));
        f.debug_struct("Rejected")
            .field("faults", &faults.collect::<Vec<_>>())
            .field("warnings", &warnings.collect::<Vec<_>>())
            .finish()
    }
}

impl std::error::Error for Rejected {}
