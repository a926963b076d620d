//! Why a text is not the value it should be.

/// A text that is no value of the kind asked for; `Display` says what the kind looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidValue {
    /// Not a tracking number.
    #[error(
        "a tracking number has 10-30 letters, digits and hyphens, with no hyphen at either end"
    )]
    TrackingNumber,
    /// Not an idempotency key.
    #[error("an idempotency key has 8-64 letters, digits, hyphens and underscores")]
    IdempotencyKey,
    /// Not an API key, or one with a typo.
    #[error("an API key is pk_live_ or pk_test_ and 38 letters and digits; check it for typos")]
    ApiKey,
    /// Not a carrier key, or one with a typo.
    #[error("a carrier key is ck_live_ or ck_test_ and 38 letters and digits; check it for typos")]
    CarrierKey,
    /// Not an admin token, or one with a typo.
    #[error("an admin token is adm_ and 38 letters and digits; check it for typos")]
    AdminToken,
    /// Not a country.
    #[error("a country is an assigned ISO 3166-1 code of two upper-case letters, such as EC")]
    CountryCode,
    /// Not a currency.
    #[error("a currency is an active ISO 4217 code of three upper-case letters, such as USD")]
    CurrencyCode,
    /// Not an air waybill.
    #[error(
        "an air waybill is 3 digits, a hyphen and 8 digits, the last of them the check digit, such as 176-12345675"
    )]
    Awb,
    /// Not a webhook secret.
    #[error("a webhook secret is whsec_ and base64 of 24-64 bytes; check that it is whole")]
    WebhookSecret,
    /// Not a label format.
    #[error("a label format is PDF, ZPL or PNG")]
    LabelFormat,
    /// Not a parcel id.
    #[error("a parcel id is par_ and 1-64 letters and digits")]
    ParcelId,
    /// Not a manifest id.
    #[error("a manifest id is man_ and 1-64 letters and digits")]
    ManifestId,
    /// Not an event id.
    #[error("an event id is evt_ and 1-64 letters and digits")]
    EventId,
    /// Not a request id.
    #[error("a request id is req_ and 1-64 letters and digits")]
    RequestId,
}
