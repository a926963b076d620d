//! The error of parsing a key or a token from text.

/// A text that is not a carrier key or admin token; `Display` says what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCredential {
    /// Not a carrier key, or one with a typo.
    #[error(
        "not a carrier key: expected ck_live_ or ck_test_ followed by 38 letters and digits; check for typos"
    )]
    CarrierKey,
    /// Not an admin token, or one with a typo.
    #[error("not an admin token: expected adm_ followed by 38 letters and digits; check for typos")]
    AdminToken,
}
