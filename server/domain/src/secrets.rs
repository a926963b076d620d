//! Keys derived from the database's single secret, one for each purpose: hashes of credentials and sessions, signatures
//! of links, tokens of forms, and ids of the keys that forms create.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use hmac::{Hmac, KeyInit, Mac};
use parcelo_types::{ApiKey, Environment, TrackingNumber};
use parcelo_wire::{AdminToken, CarrierKey};
use sha2::Sha256;
use subtle::ConstantTimeEq;
use ulid::Ulid;

use super::tenant::{AccountRowId, Tenant};

/// HMAC-SHA256 with its key already set. Setting the key is half the cost of a signature, and a page of parcels has
/// many signatures.
type HmacSha256 = Hmac<Sha256>;

/// The keys that are derived from the database's secret.
#[derive(Clone)]
pub struct Secrets {
    api_keys: HmacSha256,
    carrier_keys: HmacSha256,
    admin_tokens: HmacSha256,
    label_links: HmacSha256,
    sessions: HmacSha256,
    forms: HmacSha256,
    mail_addresses: HmacSha256,
    message_ids: HmacSha256,
    unsubscribe_links: HmacSha256,
    new_keys: HmacSha256,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secrets(***)")
    }
}

impl Secrets {
    /// Derives the keys from the secret.
    pub fn derive(secret: &[u8; 32]) -> Self {
        let secret = new_hmac(secret);
        let derived = |purpose: &[u8]| new_hmac(&compute_mac(&secret, &[purpose]));
        Self {
            api_keys: derived(b"api keys"),
            carrier_keys: derived(b"carrier keys"),
            admin_tokens: derived(b"admin tokens"),
            label_links: derived(b"label links"),
            sessions: derived(b"dashboard sessions"),
            forms: derived(b"dashboard forms"),
            mail_addresses: derived(b"mail addresses"),
            message_ids: derived(b"message ids"),
            unsubscribe_links: derived(b"unsubscribe links"),
            new_keys: derived(b"dashboard keys"),
        }
    }

    /// Returns the hash under which an API key, a carrier key or an admin token is stored.
    pub fn hash_credential<K: HashedKey>(&self, key: &K) -> [u8; 32] {
        compute_mac(K::hash_key(self), &[key.text().as_bytes()])
    }

    /// Returns the hash under which a session of the dashboard is stored.
    pub fn hash_session_token(&self, token: &str) -> [u8; 32] {
        compute_mac(&self.sessions, &[token.as_bytes()])
    }

    /// Derives the anti-forgery token of a form from `holder`: its viewer's cookie, or the hash or secret of the key or
    /// webhook that it changes. The token does not reveal `holder`.
    pub fn form_token(&self, holder: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(compute_mac(&self.forms, &[holder]))
    }

    /// Returns the id of the key that an account's form creates. Its time is the time at which the form was shown.
    pub fn new_key_id(&self, account: AccountRowId, form: Ulid) -> Ulid {
        let whole = compute_mac(&self.new_keys, &[&account.0.to_be_bytes(), &form.to_bytes()]);
        let random = whole.first_chunk::<16>().copied().unwrap_or_default();
        Ulid::from_parts(form.timestamp_ms(), u128::from_be_bytes(random))
    }

    /// Returns the signature of a parcel's label link. It covers the parcel's id, so that an old link does not open
    /// the label of a parcel that uses the number again after a sandbox reset.
    pub fn link_signature(
        &self,
        environment: Environment,
        number: &TrackingNumber,
        id: Ulid,
    ) -> String {
        let (number, id) = (number.folded(), id.to_bytes());
        let whole = compute_mac(
            &self.label_links,
            &[environment.code().as_bytes(), number.as_bytes(), &id],
        );
        URL_SAFE_NO_PAD.encode(whole.first_chunk::<16>().unwrap_or(&[0; 16]))
    }

    /// Returns the hash under which an address opts out of an account's e-mails, so that no address is stored. Case
    /// does not matter in domains and, in practice, in mailboxes.
    pub fn hash_mail_address(&self, account: AccountRowId, address: &str) -> [u8; 32] {
        let address = address.trim().to_lowercase();
        compute_mac(
            &self.mail_addresses,
            &[b"address", &account.0.to_be_bytes(), address.as_bytes()],
        )
    }

    /// Returns the hash under which a tenant's e-mails are counted: in total, or to an address, passed as its hash.
    pub fn mail_count_key(&self, tenant: Tenant, address: Option<&[u8; 32]>) -> [u8; 32] {
        let address = address.map_or(&[][..], <[u8; 32]>::as_slice);
        compute_mac(&self.mail_addresses, &[b"count", &tenant.number().to_be_bytes(), address])
    }

    /// Returns the part of a Message-ID before the `@`. It is the same at every attempt, and opaque.
    pub fn message_id(&self, parcel: Ulid, sequence: u32, recipient: u8) -> String {
        let parts = [&parcel.to_bytes()[..], &sequence.to_be_bytes(), &[recipient]];
        let whole = compute_mac(&self.message_ids, &parts);
        URL_SAFE_NO_PAD.encode(whole.first_chunk::<16>().unwrap_or(&[0; 16]))
    }

    /// Returns the signature of the link that unsubscribes an address from an account, both passed as one hash.
    pub fn unsubscribe_signature(&self, hash: &[u8; 32]) -> [u8; 16] {
        let whole = compute_mac(&self.unsubscribe_links, &[hash]);
        *whole.first_chunk::<16>().unwrap_or(&[0; 16])
    }

    /// Compares signatures in constant time.
    pub fn is_equal_in_constant_time(expected: &str, given: &str) -> bool {
        expected.as_bytes().ct_eq(given.as_bytes()).into()
    }
}

/// Returns the hash under which servers count failed sign-ins, so that neither address nor name is stored.
pub fn hash_login_failure(secret: &[u8; 32], parts: [&str; 3]) -> [u8; 32] {
    let key = compute_mac(&new_hmac(secret), &[b"failures to sign in"]);
    compute_mac(&new_hmac(&key), &parts.map(str::as_bytes))
}

fn new_hmac(key: &[u8; 32]) -> HmacSha256 {
    // By the definition of HMAC, a key shorter than the hash's block is padded with zeros.
    let mut block = [0; 64];
    block.iter_mut().zip(key).for_each(|(to, from)| *to = *from);
    HmacSha256::new(&block.into())
}

/// Computes the message authentication code of several parts. It covers their lengths, so that no bytes can move from
/// one part to the next.
fn compute_mac(hmac: &HmacSha256, parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = hmac.clone();
    for part in parts {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// A credential's secret. Only its hash is stored.
pub trait HashedKey: Send {
    /// Returns the whole secret.
    fn text(&self) -> &str;
    /// Returns the key that hashes secrets of its kind.
    fn hash_key(secrets: &Secrets) -> &HmacSha256;
}

macro_rules! hashed_keys {
    ($($key:ty: $hash_key:ident),+) => {$(
        impl HashedKey for $key {
            fn text(&self) -> &str {
                self.secret()
            }

            fn hash_key(secrets: &Secrets) -> &HmacSha256 {
                &secrets.$hash_key
            }
        }
    )+};
}

hashed_keys!(ApiKey: api_keys, CarrierKey: carrier_keys, AdminToken: admin_tokens);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issued_label_links_stay_valid() {
        let number = TrackingNumber::parse("EC7K2M9QX4T8WD0").unwrap();
        let secrets = Secrets::derive(&[1; 32]);
        let signature = secrets.link_signature(Environment::Sandbox, &number, Ulid::nil());
        // Computed with Python's hmac.
        assert_eq!(signature, "tN2Btlx4aZYviuBTutHFag");
    }

    #[test]
    fn a_signature_opens_one_label_only() {
        let secrets = Secrets::derive(&[1; 32]);
        let number = TrackingNumber::parse("EC7K2M9QX4T8WD0").unwrap();
        let other = TrackingNumber::parse("EC7K2M9QX4T8WD1").unwrap();
        let (live, test) = (Environment::Production, Environment::Sandbox);
        let signature = secrets.link_signature(live, &number, Ulid::nil());
        assert_eq!(signature.len(), 22, "128 bits");
        assert!(Secrets::is_equal_in_constant_time(
            &signature,
            &secrets.link_signature(live, &number, Ulid::nil())
        ));
        for wrong in [
            secrets.link_signature(test, &number, Ulid::nil()),
            secrets.link_signature(live, &other, Ulid::nil()),
            secrets.link_signature(live, &number, Ulid::max()),
            Secrets::derive(&[2; 32]).link_signature(live, &number, Ulid::nil()),
            String::new(),
        ] {
            assert!(!Secrets::is_equal_in_constant_time(&signature, &wrong), "{wrong}");
        }
    }

    /// Computed with Python's hmac. A change would invalidate every key, session, opt-out and open form.
    #[test]
    fn stored_hashes_and_issued_tokens_stay_valid() {
        let secrets = Secrets::derive(&[1; 32]);
        let account = AccountRowId(7);
        let tenant = Tenant { account, environment: Environment::Sandbox };
        let text = |hash: [u8; 32]| URL_SAFE_NO_PAD.encode(hash);
        let api_key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
        let carrier_key = CarrierKey::from_random(Environment::Sandbox, &[7; 32]);
        let admin_token = AdminToken::from_random(&[7; 32]);
        let table = [
            (
                text(secrets.hash_credential(&api_key)),
                "I1RghJJlZe__ezbHNftXmmDvQSulc2vFVS0dJMEL_ss",
            ),
            (
                text(secrets.hash_credential(&carrier_key)),
                "44L8mqnuJTmYcG0J7FsenzLtVCkQHXCs3uc2lCAHpHE",
            ),
            (
                text(secrets.hash_credential(&admin_token)),
                "Rq4c5Vp5J5JX0bPAZgeNaHCV3KTBqNttGVbv1YdLXmQ",
            ),
            (
                text(secrets.hash_session_token("token")),
                "mV7Sht2FUIUm7z-vpiWG7CeRnokNlLUiGBHLlVnknFQ",
            ),
            (secrets.form_token(b"cookie"), "cejn1vkcTAkWPVrh2YUMg6WqxuBpS3qbC2OfNp20gHA"),
            (secrets.new_key_id(account, Ulid::nil()).to_string(), "00000000005DMBRXW16WTF6F35"),
            (
                text(secrets.hash_mail_address(account, " Ana@Shop.example")),
                "0mhFLlUNwW3-aq4CzMZ69J9UExotgT2e3fnrQlmM9co",
            ),
            (
                text(secrets.mail_count_key(tenant, None)),
                "WN7RCALM-jQSncW6lSU3sIkGQcA_QtX4PNwxhY1VjJw",
            ),
            (
                text(secrets.mail_count_key(tenant, Some(&[9; 32]))),
                "4OORKkVJCqgcAghAC1h_oDcR4eVAJK9dldbI_cBGrto",
            ),
            (secrets.message_id(Ulid::nil(), 3, 1), "YFl5HDsp2Hl3DNJqEdHIDA"),
            (
                text(hash_login_failure(&[1; 32], ["account", "shop", ""])),
                "Df5fhTav-SfqYmHIA1qOC_qA3ZRNZSMEI3eZjLjLVjU",
            ),
        ];
        for (computed, expected) in table {
            assert_eq!(computed, expected);
        }
    }
}
