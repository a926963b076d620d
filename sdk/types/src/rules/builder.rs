//! Orders built in Rust, checked by the same validator as any other order.

use rust_decimal::Decimal;
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Accepted, Destinations, OrderContext, Rejected, check_order, idempotency_key};
use crate::model::{
    CurrencyCode, CustomsInfo, IdempotencyKey, OrderRequest, Product, Receiver, Sender,
    TrackingNumber, decimal,
};

/// Builds an order field by field; [`build`](Self::build) checks it as the server will.
///
/// ```
/// use parcelo::*;
/// let from = SenderAddress::new("1 Main St", "Miami", CountryCode::US).with_state("FL");
/// let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC)
///     .with_province("Pichincha")
///     .with_zip_code("170150");
/// let receiver = Receiver::new("Luis Paz", "+593991234567", to);
/// let receiver = receiver.with_national_id(IdType::Cedula, "1714307103");
/// let order = OrderRequest::builder()
///     .idempotency_key(IdempotencyKey::derive("shop-7", "order 1001"))
///     .external_order_id("1001")
///     .sender(Sender::new("Ana Ruiz", "+13055550100", from))
///     .receiver(receiver)
///     .weight_kg("1.2".parse()?)
///     .declared_value("39.98".parse()?)
///     .product(Product::new("Shirt", 2, "19.99".parse()?).with_hs_code("610910"))
///     .build()?;
/// assert_eq!(order.receiver.address.country, CountryCode::EC);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "`build` returns the order"]
pub struct OrderBuilder {
    idempotency_key: Option<IdempotencyKey>,
    body: Map<String, Value>,
    details: Map<String, Value>,
    products: Vec<Value>,
}

impl OrderRequest {
    /// Starts building an order.
    pub fn builder() -> OrderBuilder {
        let (body, details) = (Map::new(), Map::new());
        OrderBuilder { idempotency_key: None, body, details, products: Vec::new() }
    }
}

impl OrderBuilder {
    /// Sets the idempotency key of this write; required. The order's key shares the state of this one. See
    /// [`IdempotencyKey`].
    pub fn idempotency_key(self, key: IdempotencyKey) -> Self {
        let body = self.with(idempotency_key::FIELD, &key);
        Self { idempotency_key: Some(key), ..body }
    }

    /// Sets a tracking number chosen by the caller; otherwise the service generates one. It must start with `SB` in the
    /// sandbox, and must not in production.
    pub fn tracking_number(self, number: TrackingNumber) -> Self {
        self.with("trackingNumber", number)
    }

    /// Sets the order's id in the caller's system, at most 100 characters.
    pub fn external_order_id(self, id: impl AsRef<str>) -> Self {
        self.with("externalOrderId", id.as_ref())
    }

    /// Sets the customer's reference, at most 100 characters.
    pub fn customer_reference(self, reference: impl AsRef<str>) -> Self {
        self.with("customerReference", reference.as_ref())
    }

    /// Sets the sender; required.
    pub fn sender(self, sender: Sender) -> Self {
        self.with("sender", sender)
    }

    /// Sets the receiver; required.
    pub fn receiver(self, receiver: Receiver) -> Self {
        self.with("receiver", receiver)
    }

    /// Sets the weight in kilograms, above 0. Kilograms or pounds are required; both must agree within 1 %.
    pub fn weight_kg(self, kilograms: Decimal) -> Self {
        self.detail("weightKg", kilograms)
    }

    /// Sets the weight in pounds, above 0. Pounds or kilograms are required.
    pub fn weight_lbs(self, pounds: Decimal) -> Self {
        self.detail("weightLbs", pounds)
    }

    /// Sets length, width and height in centimetres, each above 0.
    pub fn size_cm(self, length: Decimal, width: Decimal, height: Decimal) -> Self {
        self.detail("lengthCm", length).detail("widthCm", width).detail("heightCm", height)
    }

    /// Sets the value declared to customs, in the order's currency; required, and at least the sum of the products.
    pub fn declared_value(self, value: Decimal) -> Self {
        self.detail("declaredValue", value)
    }

    /// Sets the currency of all amounts of the order; USD by default.
    pub fn currency(mut self, currency: CurrencyCode) -> Self {
        self.details.insert("currency".to_owned(), currency.as_str().into());
        self
    }

    /// Sets the customs declaration of the parcel as a whole.
    pub fn customs_info(self, customs: CustomsInfo) -> Self {
        self.with("customsInfo", customs)
    }

    /// Adds a line item; an order has at most 500.
    pub fn product(mut self, product: Product) -> Self {
        self.products.extend(serde_json::to_value(product));
        self
    }

    /// Adds line items.
    pub fn products(self, products: impl IntoIterator<Item = Product>) -> Self {
        products.into_iter().fold(self, Self::product)
    }

    /// Returns the order, or every fault. Its warnings are dropped; [`check`](Self::check) returns them.
    pub fn build(self) -> Result<OrderRequest, Rejected> {
        self.check().map(|accepted| accepted.value)
    }

    /// Returns the order with its warnings, or every fault.
    ///
    /// ```
    /// use parcelo::*;
    /// use parcelo::model::WarningCode;
    /// # let from = SenderAddress::new("1 Main St", "Miami", CountryCode::US).with_state("FL").with_zip_code("33101");
    /// # let to = ReceiverAddress::new("Av. Amazonas N34-451", "Quito", CountryCode::EC).with_province("P");
    /// # let receiver = Receiver::new("Luis Paz", "+593991234567", to).with_national_id(IdType::Cedula, "1714307103");
    /// # let almost = OrderRequest::builder()
    /// #     .idempotency_key(IdempotencyKey::derive("shop-7", "order 1001"))
    /// #     .sender(Sender::new("Ana Ruiz", "+13055550100", from))
    /// #     .receiver(receiver)
    /// #     .weight_kg("1.2".parse()?)
    /// #     .declared_value("19.99".parse()?);
    /// let accepted = almost.product(Product::new("Shirt", 1, "19.99".parse()?)).check()?;
    /// assert_eq!(accepted.warnings[0].code, WarningCode::HsCodeMissing);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(self) -> Result<Accepted<OrderRequest>, Rejected> {
        let Self { idempotency_key, mut body, details, products } = self;
        body.insert("parcelDetails".to_owned(), details.into());
        if !products.is_empty() {
            body.insert("products".to_owned(), products.into());
        }
        let context = OrderContext::new(&Destinations::All);
        let mut accepted = check_order(&Value::from(body), &context)?;
        // The checked key has the same text, but not the state.
        if let Some(key) = idempotency_key {
            accepted.value.idempotency_key = key;
        }
        Ok(accepted)
    }

    fn with(mut self, name: &str, part: impl Serialize) -> Self {
        // Every part consists of texts and numbers, so serializing it cannot fail.
        self.body.extend(serde_json::to_value(part).map(|value| (name.to_owned(), value)));
        self
    }

    fn detail(mut self, name: &str, number: Decimal) -> Self {
        self.details.extend(decimal::to_number(number).map(|n| (name.to_owned(), n.into())));
        self
    }
}

/// Shows the parts that are present, but not their content.
impl std::fmt::Debug for OrderBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrderBuilder")
            .field("parts", &self.body.keys().collect::<Vec<_>>())
            .field("products", &self.products.len())
            .finish_non_exhaustive()
    }
}
