//! The error of parsing a value from text.

/// A text that could not be parsed as the requested type; `Display` says what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidValue {
    /// Not a tracking number.
    #[error(
        "not a tracking number: expected 10-30 letters, digits and hyphens, with no hyphen at either end"
    )]
    TrackingNumber,
    /// Not an idempotency key.
    #[error("not an idempotency key: expected 8-64 letters, digits, hyphens and underscores")]
    IdempotencyKey,
    /// Not an API key.
    #[error(
        "not an API key: expected pk_live_ or pk_test_ followed by more characters, without spaces"
    )]
    ApiKey,
    /// Not a country.
    #[error(
        "not a country code: expected an assigned ISO 3166-1 code of two upper-case letters, such as EC"
    )]
    CountryCode,
    /// Not a currency.
    #[error(
        "not a currency code: expected an active ISO 4217 code of three upper-case letters, such as USD"
    )]
    CurrencyCode,
    /// Not an air waybill.
    #[error(
        "not an air waybill: expected 3 digits, a hyphen and 8 digits, the last of which is the check digit, such as 176-12345675"
    )]
    Awb,
    /// Not a webhook secret.
    #[error(
        "not a webhook secret: expected whsec_ followed by the base64 of 24-64 bytes; check that it is complete"
    )]
    WebhookSecret,
    /// Not a label format.
    #[error("not a label format: expected PDF, ZPL or PNG")]
    LabelFormat,
    /// Not a parcel id.
    #[error("not a parcel ID: expected par_ followed by 1-64 letters and digits")]
    ParcelId,
    /// Not a manifest id.
    #[error("not a manifest ID: expected man_ followed by 1-64 letters and digits")]
    ManifestId,
    /// Not an event id.
    #[error("not an event ID: expected evt_ followed by 1-64 letters and digits")]
    EventId,
    /// Not a request id.
    #[error("not a request ID: expected req_ followed by 1-64 letters and digits")]
    RequestId,
}
