//! The unsubscribe link of an e-mail. It identifies the account and the address by a keyed hash, so that no address
//! appears in the link, in proxy logs or in the browser's history. It is signed, so that no one can fill the list with
//! invented hashes.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use subtle::ConstantTimeEq;

use super::{Secrets, Site};

/// The path of the unsubscribe page; the token follows it.
pub const PATH: &str = "/unsubscribe";

const HASH_BYTES: usize = 32;
const SIGNATURE_BYTES: usize = 16;

/// Returns the signed token for an account and an address, both passed as one hash.
pub fn sign_token(secrets: &Secrets, hash: &[u8; HASH_BYTES]) -> String {
    URL_SAFE_NO_PAD.encode([hash, secrets.unsubscribe_signature(hash).as_slice()].concat())
}

/// Returns the hash in a token, or `None` if this service did not sign it. Compares signatures in constant time.
pub fn read_token(secrets: &Secrets, token: &str) -> Option<[u8; HASH_BYTES]> {
    // Longer than any token, so not worth decoding.
    if token.len() > 2 * (HASH_BYTES + SIGNATURE_BYTES) {
        return None;
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
    let (hash, signature) = bytes.split_first_chunk::<HASH_BYTES>()?;
    let is_ours: bool = secrets.unsubscribe_signature(hash).as_slice().ct_eq(signature).into();
    is_ours.then_some(*hash)
}

/// Returns the public URL of the unsubscribe page for an account and an address, both passed as one hash.
pub fn unsubscribe_url(site: &Site, secrets: &Secrets, hash: &[u8; HASH_BYTES]) -> String {
    format!("{}{PATH}/{}", site.base_url(), sign_token(secrets, hash))
}

#[cfg(test)]
mod tests {
    use parcelo_types::Environment;

    use super::*;

    #[test]
    fn issued_unsubscribe_tokens_stay_valid() {
        let secrets = Secrets::derive(&[1; 32]);
        let token = sign_token(&secrets, &[7; 32]);
        // Computed with Python's hmac. Links in old e-mails must keep working.
        assert_eq!(token, TOKEN);
        assert_eq!(read_token(&secrets, &token), Some([7; 32]));
        let site = Site::new(Environment::Production, "https://parcelo.example");
        let link = unsubscribe_url(&site, &secrets, &[7; 32]);
        assert_eq!(link, format!("https://parcelo.example/unsubscribe/{TOKEN}"));
    }

    const TOKEN: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBweXR2lLQnyjkuAu9THkXLAH";

    #[test]
    fn a_forged_token_is_refused() {
        let secrets = Secrets::derive(&[1; 32]);
        let ours = sign_token(&secrets, &[7; 32]);
        let mut bytes = URL_SAFE_NO_PAD.decode(&ours).unwrap();
        for index in 0..bytes.len() {
            bytes[index] ^= 1;
            let forged = URL_SAFE_NO_PAD.encode(&bytes);
            assert_eq!(read_token(&secrets, &forged), None, "{index}");
            bytes[index] ^= 1;
        }
        let theirs = sign_token(&Secrets::derive(&[2; 32]), &[7; 32]);
        let longer = ours.repeat(40);
        for wrong in ["", "x", &ours[..63], &ours[..43], &*theirs, &*longer, "ñandú", "%00"] {
            assert_eq!(read_token(&secrets, wrong), None, "{wrong}");
        }
    }
}
