//! Passwords of the dashboard, hashed with argon2id in the PHC string format.

use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use parcelo_domain::Refusal;
use parcelo_types::ErrorCode;

/// Hashes a password. This takes about 20 ms of CPU time and 19 MiB of memory, which makes guessing expensive.
pub fn hash_password(password: &str, salt: [u8; 16]) -> Result<String, Refusal> {
    let hashed = Argon2::default().hash_password_with_salt(password.as_bytes(), &salt);
    hashed.map(|hash| hash.to_string()).map_err(|error| {
        tracing::error!(%error, "a password could not be hashed");
        ErrorCode::InternalError.into()
    })
}

/// Returns `true` if a password matches a hash. Without a hash it does the same work.
pub(crate) fn verify_password(hash: Option<&str>, password: &str) -> bool {
    let Some(hash) = hash else {
        // The time it takes must not reveal which accounts exist.
        let _same_work = hash_password(password, [0; 16]);
        return false;
    };
    Argon2::default().verify_password(password.as_bytes(), hash).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_argon2id_and_verifies_only_its_password() {
        let hash = hash_password("correct horse", [7; 16]).unwrap();
        assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
        assert_ne!(hash, hash_password("correct horse", [8; 16]).unwrap());
        assert!(verify_password(Some(&hash), "correct horse"));
        for wrong in ["", "correct hors", "correct horse ", "Correct horse"] {
            assert!(!verify_password(Some(&hash), wrong), "{wrong}");
        }
        assert!(!verify_password(None, "correct horse") && !verify_password(Some("broken"), ""));
    }
}
