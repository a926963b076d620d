//! Constructors and setters of the parts of orders: `new` takes the required fields of a part, and there is a setter for
//! every other field. They validate nothing; the rules and the server do.

use rust_decimal::Decimal;

use super::{
    ContentsCategory, CountryCode, CustomsInfo, IdType, IdempotencyKey, Incoterm, OrderRequest,
    Product, Receiver, ReceiverAddress, Sender, SenderAddress, macros::setters,
};

impl OrderRequest {
    setters! {
        /// Sets the idempotency key; with another key it is a different order.
        with_idempotency_key(idempotency_key: IdempotencyKey);
        /// Sets the order's id in the caller's system, at most 100 characters.
        with_external_order_id(external_order_id: text);
    }
}

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

    setters! {
        /// Sets the company, at most 255 characters.
        with_company_name(company_name: text);
        /// Sets the e-mail address for notifications.
        with_email(email: text);
    }
}

impl SenderAddress {
    /// Returns an address with street and city.
    pub fn new(line1: impl Into<String>, city: impl Into<String>, country: CountryCode) -> Self {
        let (line1, city) = (line1.into(), city.into());
        Self { line1, line2: None, city, state: None, zip_code: None, country }
    }

    setters! {
        /// Sets the second line, such as a suite.
        with_line2(line2: text);
        /// Sets the state, for US and CA.
        with_state(state: text);
        /// Sets the postal code.
        with_zip_code(zip_code: text);
    }
}

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

    setters! {
        /// Sets the company, at most 255 characters.
        with_company_name(company_name: text);
        /// Sets the e-mail address for tracking notifications.
        with_email(email: text);
    }
}

impl ReceiverAddress {
    /// Returns an address with street and city.
    pub fn new(line1: impl Into<String>, city: impl Into<String>, country: CountryCode) -> Self {
        let (line1, city) = (line1.into(), city.into());
        let (line2, province, zip_code, delivery_instructions) = (None, None, None, None);
        Self { line1, line2, city, province, zip_code, country, delivery_instructions }
    }

    setters! {
        /// Sets the second line, such as a flat.
        with_line2(line2: text);
        /// Sets the province, state or department.
        with_province(province: text);
        /// Sets the postal code.
        with_zip_code(zip_code: text);
        /// Sets the notes for the driver, at most 500 characters.
        with_delivery_instructions(delivery_instructions: text);
    }
}

impl CustomsInfo {
    /// Returns a declaration of these goods.
    pub fn new(description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..Self::default() }
    }

    setters! {
        /// Sets the Harmonized System code.
        with_hs_code(hs_code: text);
        /// Sets the reason for which the goods are sent.
        with_contents_category(contents_category: some ContentsCategory);
        /// Sets the party that pays for carriage and duties.
        with_incoterm(incoterm: some Incoterm);
    }
}

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

    setters! {
        /// Sets the kilograms that one item weighs without its packaging.
        with_unit_net_weight_kg(unit_net_weight_kg: some Decimal);
        /// Sets the country in which the product was made.
        with_country_of_origin(country_of_origin: some CountryCode);
        /// Sets the Harmonized System code.
        with_hs_code(hs_code: text);
        /// Sets the stock-keeping unit.
        with_sku(sku: text);
    }
}
