//! Sessions of the dashboard, and the tokens of its forms.

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parcelo_domain::{
    Millis, Refusal, Secrets,
    session::{NewSession, PasswordLogin, SESSION_LIFETIME_MILLIS, Session},
};
use ulid::Ulid;

use super::Service;

impl Service {
    /// Begins a session after a client's login, in place of a previous one, and returns its token. Returns `None` if the password
    /// has changed meanwhile.
    pub async fn begin_session(
        &self,
        login: PasswordLogin,
        client: IpAddr,
        previous_token: Option<&str>,
        now: Millis,
    ) -> Result<Option<String>, Refusal> {
        let token = self.new_token();
        let hash = |token: &str| self.secrets().hash_session_token(token);
        let ends_at = now.plus(SESSION_LIFETIME_MILLIS);
        let session = NewSession { hash: hash(&token), begins_at: now, ends_at, client };
        let has_begun = self.store.begin_session(login, session, previous_token.map(hash)).await?;
        Ok(has_begun.then_some(token))
    }

    /// Returns the session that a token belongs to.
    pub async fn find_session(&self, token: &str) -> Result<Option<Session>, Refusal> {
        let found = self.store.session(&self.secrets().hash_session_token(token)).await?;
        Ok(found.filter(|session| session.is_alive(self.expiry_now())))
    }

    /// Ends a session.
    pub async fn sign_out(&self, token: &str) -> Result<(), Refusal> {
        Ok(self.store.end_session(self.secrets().hash_session_token(token)).await?)
    }

    /// Deletes expired sessions.
    pub async fn purge_sessions(&self) -> Result<(), Refusal> {
        Ok(self.store.purge_sessions(self.now()).await?)
    }

    /// Returns a new random token of 256 bits.
    pub fn new_token(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.ids.array::<32>())
    }

    /// Returns the anti-forgery token of forms that are shown to the holder of a cookie, or that change a secret.
    pub fn form_token(&self, holder: impl AsRef<[u8]>) -> String {
        self.secrets().form_token(holder.as_ref())
    }

    /// Returns `true` if the anti-forgery token of a form was issued for this cookie or this secret.
    pub fn is_form_token(&self, holder: impl AsRef<[u8]>, given: &str) -> bool {
        Secrets::is_equal_in_constant_time(&self.form_token(holder), given)
    }

    /// Returns the id of a form. A form that is sent twice is recognised by it.
    pub fn new_form_id(&self) -> Ulid {
        self.ids.ulid(self.now())
    }
}
