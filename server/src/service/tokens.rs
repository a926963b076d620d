//! Admin tokens: making one, and whose request has one.

use parcelo::{ErrorCode, admin::AdminToken};

use super::{KeyIssuer, Service, keys::last4};
use crate::{
    clock::Millis,
    domain::{
        Refusal,
        tokens::{NewToken, TokenRecord},
    },
    ids::named,
    store::StoreError,
};

impl Service {
    /// Whether a request's `Authorization` header has a token that is in force. It is read anew each
    /// time, so a revocation is in force at once.
    pub async fn check_token(&self, authorization: Option<&str>) -> Result<(), Refusal> {
        let given = authorization.and_then(bearer).and_then(|text| AdminToken::parse(text).ok());
        let token = given.ok_or(ErrorCode::AdminAuthFailed)?;
        let found = self.store.token_by_hash(&self.secrets().hash_of_token(&token)).await?;
        match found {
            Some(record) if record.revoked_at.is_none() => Ok(()),
            Some(_) | None => Err(ErrorCode::AdminAuthFailed.into()),
        }
    }
}

/// The scheme's word counts in any case, as HTTP has it.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl KeyIssuer<'_> {
    /// Makes an admin token. The whole token is in the answer and nowhere else: it is not stored.
    pub async fn issue_token(
        &self,
        name: String,
        now: Millis,
    ) -> Result<(AdminToken, TokenRecord), StoreError> {
        let Self { store, secrets, ids } = self;
        let token = AdminToken::from_random(&ids.key_bytes());
        let record = NewToken {
            id: named("adt", ids.ulid(now)),
            name,
            hash: secrets.hash_of_token(&token),
            last4: last4(token.secret()),
            created_at: now,
        };
        let record = store.insert_token(record).await?;
        Ok((token, record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_behind_its_scheme() {
        let table = [
            ("Bearer adm_1", Some("adm_1")),
            ("bearer  adm_1 ", Some("adm_1")),
            ("adm_1", None),
            ("Basic adm_1", None),
            ("", None),
        ];
        for (header, token) in table {
            assert_eq!(bearer(header), token, "{header}");
        }
    }
}
