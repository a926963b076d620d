//! The validator of orders (spec: Order request), shared by the server, the client before it sends, and the CLI.

use serde_json::Value;

use super::{
    Accepted, Destinations, Rejected,
    field_types::Text,
    fields::{
        Fields,
        Kind::{Leaf, Nested},
    },
    goods, idempotency_key,
    reader::{Object, validate_for},
    receiver, sender,
    text::Fonts,
    texts::{FaultText, faults},
};
use crate::model::{CustomsInfo, Environment, OrderRequest, Product, TrackingNumber, json::Body};

pub(crate) const FIELDS: Fields = Fields(&[
    (idempotency_key::FIELD, Leaf),
    ("trackingNumber", Leaf),
    ("externalOrderId", Leaf),
    ("customerReference", Leaf),
    ("sender", Nested(&sender::FIELDS)),
    ("receiver", Nested(&receiver::FIELDS)),
    ("parcelDetails", Nested(&goods::DETAILS)),
    ("customsInfo", Nested(&goods::CUSTOMS)),
    ("products", Nested(&goods::PRODUCT)),
]);

/// The context of an order's check.
#[derive(Debug, Clone)]
pub struct OrderContext<'a> {
    /// The environment of the order; `None` if it is not known, as offline: then the rule about the prefix `SB` is left
    /// to the server.
    pub(crate) environment: Option<Environment>,
    /// The countries that the service ships to.
    pub(crate) destinations: &'a Destinations,
    /// The value of the header `X-Idempotency-Key`.
    pub(crate) header_key: Option<&'a str>,
    pub(crate) fonts: Fonts,
}

impl<'a> OrderContext<'a> {
    /// Checks offline, against these destinations only.
    pub const fn new(destinations: &'a Destinations) -> Self {
        Self { environment: None, destinations, header_key: None, fonts: Fonts::Usual }
    }

    /// Returns the same context for an order that will be created in this environment.
    #[must_use]
    pub fn with_environment(self, environment: Environment) -> Self {
        Self { environment: Some(environment), ..self }
    }

    /// Returns the same context with the value of the header `X-Idempotency-Key`, if there is one.
    #[doc(hidden)]
    #[must_use]
    pub fn with_header_key(self, header_key: Option<&'a str>) -> Self {
        Self { header_key, ..self }
    }

    /// Returns the same context for a service whose labels print Chinese, so that the rules do not warn of it.
    #[must_use]
    pub fn with_chinese_labels(self) -> Self {
        Self { fonts: Fonts::WithChinese, ..self }
    }
}

/// Checks an order: all faults at once, or the order with its warnings (docs/api.md, Fields and their
/// rules, Country rules, Warnings).
///
/// Texts are trimmed, and blank ones count as absent; nothing else is changed.
///
/// ```
/// use parcelo::rules::{Destinations, OrderContext, check_order};
/// let order = serde_json::json!({"idempotencyKey": "order-0001", "sender": {}});
/// let rejected = check_order(&order, &OrderContext::new(&Destinations::All)).unwrap_err();
/// let fields: Vec<_> = rejected.faults.iter().map(|fault| fault.field.as_str()).collect();
/// assert_eq!(fields[..2], ["sender.fullName", "sender.phone"]);
/// ```
pub fn check_order(
    order: &Value,
    context: &OrderContext<'_>,
) -> Result<Accepted<OrderRequest>, Rejected> {
    check_order_json(order, context)
}

/// Checks an order as [`check_order`] does, also one that borrows from the bytes of a body.
pub fn check_order_json<'a>(
    body: impl Into<Body<'a>>,
    context: &OrderContext<'_>,
) -> Result<Accepted<OrderRequest>, Rejected> {
    validate_for(context.fonts, body, &FIELDS, |order| {
        order.warn_unknown(&FIELDS);
        read_order(order, context)
    })
}

/// Reads the order; `None` if there is a fault.
fn read_order(order: &Object<'_>, context: &OrderContext<'_>) -> Option<OrderRequest> {
    let idempotency_key = idempotency_key::read_required(order, context.header_key);
    let number = |text: &str| parse_tracking_number(text, context.environment);
    let tracking_number = order.text("trackingNumber", Text::CODE).and_then(number).optional();
    let external_order_id = order.text("externalOrderId", Text::REFERENCE).optional();
    let customer_reference = order.text("customerReference", Text::REFERENCE).optional();
    let sender = order.object("sender").required();
    let sender = sender.as_ref().and_then(sender::read_sender);
    let receiver = order.object("receiver").required();
    let receiver =
        receiver.as_ref().and_then(|it| receiver::read_receiver(it, context.destinations));
    let details = order.object("parcelDetails").required();
    let details = details.as_ref().and_then(goods::read_details);
    let (customs_info, products) = read_goods(order);
    if let (Some(details), Some(products)) = (&details, &products) {
        goods::check_sum(order, details, products);
        goods::check_net_weight(order, details, products);
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

/// Reads the customs declaration and the line items, and warns about missing descriptions and HS codes.
fn read_goods(order: &Object<'_>) -> (Option<CustomsInfo>, Option<Vec<Product>>) {
    let info = order.object("customsInfo");
    let customs = info.value().and_then(goods::read_customs);
    let list = order.list("products", goods::MAX_PRODUCTS);
    let products = match list.value() {
        Some(list) => goods::read_products(list),
        None => list.is_absent().then(Vec::new),
    };
    let given = if info.is_absent() { Some(CustomsInfo::default()) } else { customs.clone() };
    if let (Some(given), Some(products)) = (given, &products) {
        goods::warn_missing(order, &given, products);
    }
    (customs, products)
}

/// Parses a tracking number chosen by the caller (spec: 10-30 characters; in the sandbox it starts with `SB`). In
/// production that prefix is refused, so that a test parcel cannot be mistaken for a real one.
fn parse_tracking_number(
    text: &str,
    environment: Option<Environment>,
) -> Result<TrackingNumber, FaultText> {
    let number = TrackingNumber::parse(text).map_err(|_| match text.chars().count() {
        0..TrackingNumber::MIN => faults::too_short(TrackingNumber::MIN),
        TrackingNumber::MIN..=TrackingNumber::MAX => faults::TRACKING_NUMBER,
        _ => faults::too_long(TrackingNumber::MAX),
    })?;
    match (environment, number.is_sandbox()) {
        (Some(Environment::Production), true) => Err(faults::TRACKING_NUMBER_RESERVED),
        (Some(Environment::Sandbox), false) => Err(faults::TRACKING_NUMBER_NOT_SANDBOX),
        (Some(Environment::Production), false) | (Some(Environment::Sandbox), true) | (None, _) => {
            Ok(number)
        }
    }
}
