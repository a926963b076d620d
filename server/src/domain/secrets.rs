//! What derives from the database's one secret: the hashes of API and carrier keys and of sessions,
//! the signature of label links, the tokens of forms, each with a key of its own.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use parcelo::{
    ApiKey, Environment, TrackingNumber,
    admin::{AdminToken, CarrierKey},
};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use ulid::Ulid;

/// The keys that derive from the database's secret.
#[derive(Clone)]
pub struct Secrets {
    api_keys: [u8; 32],
    carrier_keys: [u8; 32],
    admin_tokens: [u8; 32],
    label_links: [u8; 32],
    sessions: [u8; 32],
    forms: [u8; 32],
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(***)")
    }
}

impl Secrets {
    /// Derives the keys from the secret.
    pub fn derive(secret: &[u8; 32]) -> Self {
        Self {
            api_keys: mac(secret, &[b"api keys"]),
            carrier_keys: mac(secret, &[b"carrier keys"]),
            admin_tokens: mac(secret, &[b"admin tokens"]),
            label_links: mac(secret, &[b"label links"]),
            sessions: mac(secret, &[b"dashboard sessions"]),
            forms: mac(secret, &[b"dashboard forms"]),
        }
    }

    /// The hash under which an API key is stored.
    pub fn hash_of(&self, key: &ApiKey) -> [u8; 32] {
        mac(&self.api_keys, &[key.secret().as_bytes()])
    }

    /// The hash under which a carrier key is stored.
    pub fn hash_of_carrier(&self, key: &CarrierKey) -> [u8; 32] {
        mac(&self.carrier_keys, &[key.secret().as_bytes()])
    }

    /// The hash under which a session of the dashboard is stored.
    pub fn hash_of_session(&self, token: &str) -> [u8; 32] {
        mac(&self.sessions, &[token.as_bytes()])
    }

    /// The token of the forms that are shown to the holder of this cookie, and to no one else.
    pub fn form_token(&self, cookie: &str) -> String {
        URL_SAFE_NO_PAD.encode(mac(&self.forms, &[cookie.as_bytes()]))
    }

    /// The hash under which an admin token is stored.
    pub fn hash_of_token(&self, token: &AdminToken) -> [u8; 32] {
        mac(&self.admin_tokens, &[token.secret().as_bytes()])
    }

    /// The signature of a parcel's label link. It covers the parcel's id, so that a number that is
    /// used again after a sandbox reset does not open its successor's label.
    pub fn link_signature(
        &self,
        environment: Environment,
        number: &TrackingNumber,
        id: Ulid,
    ) -> String {
        let (number, id) = (number.folded(), id.to_bytes());
        let whole =
            mac(&self.label_links, &[environment.code().as_bytes(), number.as_bytes(), &id]);
        URL_SAFE_NO_PAD.encode(whole.first_chunk::<16>().unwrap_or(&[0; 16]))
    }

    /// Whether a signature is the one expected, in the same time for any wrong one.
    pub fn is_same(expected: &str, given: &str) -> bool {
        expected.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// The key of generated tracking numbers that a database begins with; the database keeps it beside the secret, so that
/// a new secret leaves every number where it is.
pub(crate) fn fresh_number_key(secret: &[u8; 32]) -> [u8; 32] {
    mac(secret, &[b"tracking numbers"])
}

/// HMAC-SHA256 over parts that cannot run into each other.
fn mac(key: &[u8; 32], parts: &[&[u8]]) -> [u8; 32] {
    // A key shorter than the hash's block is filled up with zeros: the definition of HMAC.
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_opens_one_label_only() {
        let secrets = Secrets::derive(&[1; 32]);
        let number = TrackingNumber::parse("EC7K2M9QX4T8WD0").unwrap();
        let other = TrackingNumber::parse("EC7K2M9QX4T8WD1").unwrap();
        let (live, test) = (Environment::Production, Environment::Sandbox);
        let signature = secrets.link_signature(live, &number, Ulid::nil());
        assert_eq!(signature.len(), 22, "128 bits");
        assert!(Secrets::is_same(&signature, &secrets.link_signature(live, &number, Ulid::nil())));
        for wrong in [
            secrets.link_signature(test, &number, Ulid::nil()),
            secrets.link_signature(live, &other, Ulid::nil()),
            secrets.link_signature(live, &number, Ulid::max()),
            Secrets::derive(&[2; 32]).link_signature(live, &number, Ulid::nil()),
            String::new(),
        ] {
            assert!(!Secrets::is_same(&signature, &wrong), "{wrong}");
        }
    }
}
