//! Constructors and setters of orders: `new` takes the required fields of a part, and there is a setter for every other
//! field. They validate nothing; the rules and the server do.

use rust_decimal::Decimal;

use super::{
    ContentsCategory, CountryCode, CurrencyCode, CustomsInfo, IdType, IdempotencyKey, Incoterm,
    OrderRequest, ParcelDetails, Product, Receiver, ReceiverAddress, Sender, SenderAddress,
    TrackingNumber, macros::setters,
};

impl OrderRequest {
    /// Returns an order with the required fields. The server checks it; [`OrderRequest::builder`] makes one that is
    /// checked here.
    ///
    /// ```
    /// use parcelo::ParcelDetails;
    /// use parcelo::{
    ///     CountryCode, IdempotencyKey, OrderRequest, Receiver, ReceiverAddress, Sender,
    ///     SenderAddress,
    /// };
    ///
    /// let from = SenderAddress::new("8400 NW 25th St", "Miami", CountryCode::US);
    /// let to = ReceiverAddress::new("Calle 93 11-27", "Bogotá", CountryCode::CO);
    /// let order = OrderRequest::new(
    ///     IdempotencyKey::derive("my-shop", "order 1001"),
    ///     Sender::new("Ana Ruiz", "+13055550100", from),
    ///     Receiver::new("Luis Paredes", "+573001234567", to),
    ///     ParcelDetails::new("45.50".parse()?).with_weight_kg("1.25".parse()?),
    /// );
    /// let next = order.with_idempotency_key(IdempotencyKey::derive("my-shop", "order 1002"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(
        idempotency_key: IdempotencyKey,
        sender: Sender,
        receiver: Receiver,
        parcel_details: ParcelDetails,
    ) -> Self {
        Self {
            idempotency_key,
            tracking_number: None,
            external_order_id: None,
            customer_reference: None,
            sender,
            receiver,
            parcel_details,
            customs_info: None,
            products: Vec::new(),
        }
    }
}

setters! { OrderRequest {
    /// Sets the idempotency key; with another key it is a different order.
    with_idempotency_key(idempotency_key: IdempotencyKey);
    /// Sets the caller's own tracking number.
    with_tracking_number(tracking_number: some TrackingNumber);
    /// Sets the order's id in the caller's system, at most 100 characters.
    with_external_order_id(external_order_id: text);
    /// Sets the customer's reference, at most 100 characters.
    with_customer_reference(customer_reference: text);
    /// Sets the sender.
    with_sender(sender: Sender);
    /// Sets the receiver.
    with_receiver(receiver: Receiver);
    /// Sets the weight, size and value.
    with_parcel_details(parcel_details: ParcelDetails);
    /// Sets the customs declaration.
    with_customs_info(customs_info: some CustomsInfo);
    /// Sets the line items, at most 500.
    with_products(products: Vec<Product>);
} }

impl ParcelDetails {
    /// Returns details with the value declared to customs, in US dollars; a weight must be added.
    pub fn new(declared_value: Decimal) -> Self {
        Self {
            weight_lbs: None,
            weight_kg: None,
            length_cm: None,
            width_cm: None,
            height_cm: None,
            declared_value,
            currency: CurrencyCode::USD,
        }
    }
}

setters! { ParcelDetails {
    /// Sets the weight in pounds.
    with_weight_lbs(weight_lbs: some Decimal);
    /// Sets the weight in kilograms.
    with_weight_kg(weight_kg: some Decimal);
    /// Sets the length in centimetres.
    with_length_cm(length_cm: some Decimal);
    /// Sets the width in centimetres.
    with_width_cm(width_cm: some Decimal);
    /// Sets the height in centimetres.
    with_height_cm(height_cm: some Decimal);
    /// Sets the declared value.
    with_declared_value(declared_value: Decimal);
    /// Sets the currency.
    with_currency(currency: CurrencyCode);
} }

impl Sender {
    /// Returns a sender with name and telephone.
    pub fn new(
        full_name: impl Into<String>,
        phone: impl Into<String>,
        address: SenderAddress,
    ) -> Self {
        let (full_name, phone) = (full_name.into(), phone.into());
        Self { full_name, company_name: None, phone, email: None, address }
    }
}

setters! { Sender {
    /// Sets the name, at most 255 characters.
    with_full_name(full_name: string);
    /// Sets the company, at most 255 characters.
    with_company_name(company_name: text);
    /// Sets the telephone.
    with_phone(phone: string);
    /// Sets the e-mail address for notifications.
    with_email(email: text);
    /// Sets the address.
    with_address(address: SenderAddress);
} }

impl SenderAddress {
    /// Returns an address with street and city.
    pub fn new(line1: impl Into<String>, city: impl Into<String>, country: CountryCode) -> Self {
        let (line1, city) = (line1.into(), city.into());
        Self { line1, line2: None, city, state: None, zip_code: None, country }
    }
}

setters! { SenderAddress {
    /// Sets the street and number.
    with_line1(line1: string);
    /// Sets the second line, such as a suite.
    with_line2(line2: text);
    /// Sets the city.
    with_city(city: string);
    /// Sets the state, for US and CA.
    with_state(state: text);
    /// Sets the postal code.
    with_zip_code(zip_code: text);
    /// Sets the country.
    with_country(country: CountryCode);
} }

impl Receiver {
    /// Returns a receiver with name and telephone.
    pub fn new(
        full_name: impl Into<String>,
        phone: impl Into<String>,
        address: ReceiverAddress,
    ) -> Self {
        let (full_name, phone) = (full_name.into(), phone.into());
        let (company_name, email, national_id, id_type) = (None, None, None, None);
        Self { full_name, company_name, phone, email, national_id, id_type, address }
    }

    /// Sets the national id; Ecuador and Colombia need one.
    #[must_use]
    pub fn with_national_id(self, kind: IdType, number: impl Into<String>) -> Self {
        Self { id_type: Some(kind), national_id: Some(number.into()), ..self }
    }

    /// Sets the Mexican RFC, which has no kind.
    #[must_use]
    pub fn with_rfc(self, number: impl Into<String>) -> Self {
        Self { id_type: None, national_id: Some(number.into()), ..self }
    }
}

setters! { Receiver {
    /// Sets the name, at most 255 characters.
    with_full_name(full_name: string);
    /// Sets the company, at most 255 characters.
    with_company_name(company_name: text);
    /// Sets the telephone.
    with_phone(phone: string);
    /// Sets the e-mail address for tracking notifications.
    with_email(email: text);
    /// Sets the address.
    with_address(address: ReceiverAddress);
} }

impl ReceiverAddress {
    /// Returns an address with street and city.
    pub fn new(line1: impl Into<String>, city: impl Into<String>, country: CountryCode) -> Self {
        let (line1, city) = (line1.into(), city.into());
        let (line2, province, zip_code, delivery_instructions) = (None, None, None, None);
        Self { line1, line2, city, province, zip_code, country, delivery_instructions }
    }
}

setters! { ReceiverAddress {
    /// Sets the street and number.
    with_line1(line1: string);
    /// Sets the second line, such as a flat.
    with_line2(line2: text);
    /// Sets the city.
    with_city(city: string);
    /// Sets the province, state or department.
    with_province(province: text);
    /// Sets the postal code.
    with_zip_code(zip_code: text);
    /// Sets the country.
    with_country(country: CountryCode);
    /// Sets the notes for the driver, at most 500 characters.
    with_delivery_instructions(delivery_instructions: text);
} }

impl CustomsInfo {
    /// Returns a declaration of these goods.
    pub fn new(description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..Self::default() }
    }
}

setters! { CustomsInfo {
    /// Sets the description of the goods.
    with_description(description: text);
    /// Sets the Harmonized System code.
    with_hs_code(hs_code: text);
    /// Sets the reason for which the goods are sent.
    with_contents_category(contents_category: some ContentsCategory);
    /// Sets the party that pays for carriage and duties.
    with_incoterm(incoterm: some Incoterm);
} }

impl Product {
    /// Returns a line item with this quantity, at the free-on-board value of one.
    pub fn new(description: impl Into<String>, quantity: u32, unit_fob_value: Decimal) -> Self {
        let description = Some(description.into());
        let (unit_net_weight_kg, country_of_origin, hs_code, sku) = (None, None, None, None);
        Self {
            description,
            quantity,
            unit_fob_value,
            unit_net_weight_kg,
            country_of_origin,
            hs_code,
            sku,
        }
    }
}

setters! { Product {
    /// Sets the description.
    with_description(description: text);
    /// Sets the quantity.
    with_quantity(quantity: u32);
    /// Sets the free-on-board value of one item.
    with_unit_fob_value(unit_fob_value: Decimal);
    /// Sets the kilograms that one item weighs without its packaging.
    with_unit_net_weight_kg(unit_net_weight_kg: some Decimal);
    /// Sets the country in which the product was made.
    with_country_of_origin(country_of_origin: some CountryCode);
    /// Sets the Harmonized System code.
    with_hs_code(hs_code: text);
    /// Sets the stock-keeping unit.
    with_sku(sku: text);
} }
