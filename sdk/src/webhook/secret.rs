//! A webhook's secret and its signatures.

use base64::{Engine, engine::general_purpose::STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use parcelo_types::{InvalidValue, internal::secret_text};
use sha2::Sha256;

const PREFIX: &str = "whsec_";

/// Permitted length of a secret, as Standard Webhooks defines it.
const LENGTH_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The secret of a webhook: `whsec_` and 24-64 random bytes in base64; Parcelo's secrets have 32.
///
/// `Debug` prints `Secret(whsec_***)`, and it cannot be serialised. It can be parsed and deserialised from text,
/// which errors do not repeat.
///
/// ```
/// # use parcelo::webhook::Secret;
/// let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
/// let body = br#"{"test": 2432232314}"#;
/// let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
/// assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
/// assert_eq!(format!("{secret:?}"), "Secret(whsec_***)");
/// # Ok::<(), parcelo::InvalidValue>(())
/// ```
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Parses a secret as the service shows it.
    ///
    /// Errors: when it is malformed, for instance cut off.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let encoded = text.strip_prefix(PREFIX).ok_or(InvalidValue::WEBHOOK_SECRET)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| InvalidValue::WEBHOOK_SECRET)?;
        Self::from_bytes(&bytes)
    }

    /// Returns a secret made from 32 random bytes.
    #[doc(hidden)]
    pub fn from_random(random: &[u8; 32]) -> Self {
        Self(random.to_vec())
    }

    /// Returns a secret from 24-64 stored bytes.
    #[doc(hidden)]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidValue> {
        if LENGTH_BYTES.contains(&bytes.len()) {
            Ok(Self(bytes.to_vec()))
        } else {
            Err(InvalidValue::WEBHOOK_SECRET)
        }
    }

    /// Returns the bytes, for storing them. Keep them out of logs.
    #[doc(hidden)]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the whole secret as text, for showing it once. Keep it out of logs.
    #[doc(hidden)]
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Returns the signature of a message as it appears in `webhook-signature`: `v1,` and base64. The timestamp is in
    /// Unix seconds. Use it in tests of a receiver.
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let tag = self.tag(&[id.as_bytes(), timestamp.to_string().as_bytes(), body]);
        format!("v1,{}", STANDARD.encode(tag))
    }

    /// Computes the HMAC-SHA256 of the parts with dots between them.
    pub(super) fn tag(&self, [id, timestamp, body]: &[&[u8]; 3]) -> [u8; 32] {
        #[expect(clippy::expect_used, reason = "HMAC takes a key of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("any length");
        for part in [id, b".".as_slice(), timestamp, b".".as_slice(), body] {
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({PREFIX}***)")
    }
}

secret_text!(Secret, InvalidValue);

impl TryFrom<&str> for Secret {
    type Error = InvalidValue;

    fn try_from(text: &str) -> Result<Self, InvalidValue> {
        Self::parse(text)
    }
}

impl TryFrom<String> for Secret {
    type Error = InvalidValue;

    fn try_from(text: String) -> Result<Self, InvalidValue> {
        Self::parse(&text)
    }
}

impl TryFrom<&String> for Secret {
    type Error = InvalidValue;

    fn try_from(text: &String) -> Result<Self, InvalidValue> {
        Self::parse(text)
    }
}
