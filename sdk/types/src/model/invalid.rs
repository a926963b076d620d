//! The error of parsing a value from text.

/// A text that could not be parsed as the requested type; `Display` says what was expected.
///
/// ```
/// # use parcelo::LabelFormat;
/// let error = LabelFormat::parse("GIF").unwrap_err();
/// assert_eq!(error.to_string(), "not a label format: expected PDF, ZPL or PNG");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not {0}")]
pub struct InvalidValue(&'static str);

#[doc(hidden)]
impl InvalidValue {
    /// Not a tracking number.
    pub const TRACKING_NUMBER: Self = Self(
        "a tracking number: expected 10-30 letters, digits and hyphens, with no hyphen at either end",
    );
    /// Not an idempotency key.
    pub const IDEMPOTENCY_KEY: Self =
        Self("an idempotency key: expected 8-64 letters, digits, hyphens and underscores");
    /// Not an API key.
    pub const API_KEY: Self = Self(
        "an API key: expected pk_live_ or pk_test_ followed by more characters, without spaces",
    );
    /// Not a country.
    pub const COUNTRY_CODE: Self = Self(
        "a country code: expected an assigned ISO 3166-1 code of two upper-case letters, such as EC",
    );
    /// Not a currency.
    pub const CURRENCY_CODE: Self = Self(
        "a currency code: expected an active ISO 4217 code of three upper-case letters, such as USD",
    );
    /// Not an air waybill.
    pub const AWB: Self = Self(
        "an air waybill: expected 3 digits, a hyphen and 8 digits, the last of which is the check digit, such as 176-12345675",
    );
    /// Not a webhook secret.
    pub const WEBHOOK_SECRET: Self = Self(
        "a webhook secret: expected whsec_ followed by the base64 of 24-64 bytes; check that it is complete",
    );
    /// Not a label format.
    pub const LABEL_FORMAT: Self = Self("a label format: expected PDF, ZPL or PNG");
    /// Not a parcel id.
    pub const PARCEL_ID: Self =
        Self("a parcel ID: expected par_ followed by 1-64 letters and digits");
    /// Not a label id.
    pub const LABEL_ID: Self =
        Self("a label ID: expected lbl_ followed by 1-64 letters and digits");
    /// Not a manifest id.
    pub const MANIFEST_ID: Self =
        Self("a manifest ID: expected man_ followed by 1-64 letters and digits");
    /// Not an event id.
    pub const EVENT_ID: Self =
        Self("an event ID: expected evt_ followed by 1-64 letters and digits");
    /// Not a request id.
    pub const REQUEST_ID: Self =
        Self("a request ID: expected req_ followed by 1-64 letters and digits");
}
