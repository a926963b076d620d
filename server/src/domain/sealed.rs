//! Encrypts flashes, which are messages that the dashboard shows once. The database, or a copy of it, does
//! not reveal them without the cookie of the session that they are for.

use chacha20poly1305::{
    ChaCha20Poly1305, KeyInit,
    aead::{Aead, Payload},
};

/// Length of a nonce, which precedes the encrypted text. A session has few flashes, so random nonces do not repeat.
const NONCE_BYTES: usize = 12;

/// Encrypts a message that only the given page can open.
pub(crate) fn seal(
    key: &[u8; 32],
    nonce: [u8; NONCE_BYTES],
    page: &str,
    plain: &[u8],
) -> Option<Vec<u8>> {
    let payload = Payload { msg: plain, aad: page.as_bytes() };
    let sealed = ChaCha20Poly1305::new(&(*key).into()).encrypt(&nonce.into(), payload).ok()?;
    Some([&nonce, sealed.as_slice()].concat())
}

/// Decrypts a message; none if it was sealed with another key or for another page.
pub(crate) fn open(key: &[u8; 32], page: &str, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    let payload = Payload { msg: sealed, aad: page.as_bytes() };
    ChaCha20Poly1305::new(&(*key).into()).decrypt(&(*nonce).into(), payload).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_opens_only_with_its_key_and_on_its_page() {
        let (key, nonce, plain) = ([1; 32], [2; NONCE_BYTES], b"sk_sandbox_1".as_slice());
        let sealed = seal(&key, nonce, "keys", plain).unwrap();
        assert!(!sealed.windows(4).any(|part| part == &plain[..4]));
        assert_eq!(open(&key, "keys", &sealed).as_deref(), Some(plain));
        assert_eq!(open(&[2; 32], "keys", &sealed), None);
        assert_eq!(open(&key, "webhook", &sealed), None);
        for place in 0..sealed.len() {
            let mut broken = sealed.clone();
            broken[place] ^= 1;
            assert_eq!(open(&key, "keys", &broken), None, "{place}");
        }
        assert_eq!(open(&key, "keys", &sealed[..5]), None);
    }
}
