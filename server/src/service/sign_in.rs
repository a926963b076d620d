//! Signing in to the dashboard and signing out.

use std::net::IpAddr;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use parcelo_domain::{
    Millis, Secrets,
    audit::Actor,
    login_throttle::LoginAttempt,
    session::{PasswordLogin, SESSION_LIFETIME_MILLIS, Session},
};
use parcelo_store::StoreError;
use parcelo_types::ErrorCode;
use tokio::sync::Semaphore;
use ulid::Ulid;

use super::{Refusal, Service, passwords};

/// Maximum number of passwords checked at once: each check takes a CPU and 19 MiB.
const MAX_PASSWORD_CHECKS: usize = 2;

/// An attempt to sign in to the dashboard.
#[derive(Debug, Clone, Copy)]
pub struct LoginRequest<'a> {
    /// The client's address.
    pub client: IpAddr,
    /// The account's name.
    pub account: &'a str,
    /// The password.
    pub password: &'a str,
    /// The token of an existing session, which the new one replaces.
    pub previous_token: Option<&'a str>,
}

/// The outcome of an attempt to sign in.
#[derive(Clone, PartialEq, Eq)]
pub enum LoginOutcome {
    /// A session with this token has begun.
    SignedIn(String),
    /// No account has this name and password.
    Rejected,
    /// There were too many attempts: wait this number of seconds.
    Wait(u32),
}

// A token gives the same access as the password, so `Debug` must not show it.
impl std::fmt::Debug for LoginOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::SignedIn(_) => "SignedIn(***)",
            Self::Rejected => "Rejected",
            Self::Wait(_) => "Wait",
        })
    }
}

/// The permits for checking passwords.
#[derive(Debug)]
pub(super) struct PasswordChecks(Semaphore);

impl Default for PasswordChecks {
    fn default() -> Self {
        Self(Semaphore::new(MAX_PASSWORD_CHECKS))
    }
}

/// Logs an error from taking back the count of a successful attempt. The attempt counts as a failure for a while, but
/// the user must not lose the session that has begun.
fn log_failure(counted: Result<(), StoreError>) {
    if let Err(error) = counted {
        tracing::warn!(%error, "an attempt to sign in still counts as a failure");
    }
}

impl Service {
    /// Signs in to the dashboard. After too many failures, the next attempt has to wait.
    pub async fn sign_in(&self, request: LoginRequest<'_>) -> Result<LoginOutcome, Refusal> {
        let LoginRequest { account, client, .. } = request;
        let attempt =
            LoginAttempt { account, client, is_signed_in: self.is_signed_in(request).await? };
        // The store counts attempts, so that several servers allow no more of them than one server.
        let pending = match self.store.begin_login(attempt, self.now()).await? {
            Ok(pending) => pending,
            Err(seconds) => return Ok(LoginOutcome::Wait(seconds)),
        };
        let outcome = self.try_sign_in(request).await;
        if !matches!(outcome, Ok(LoginOutcome::Rejected)) {
            log_failure(self.store.take_back_login(pending).await);
        }
        if matches!(outcome, Ok(LoginOutcome::SignedIn(_))) {
            log_failure(self.store.remember_login(attempt, self.now()).await);
        }
        outcome
    }

    /// Changes the password of a session's account. All its sessions end, including this one, and a new one begins,
    /// unless another password was set meanwhile.
    pub async fn change_password(
        &self,
        request: LoginRequest<'_>,
        new: &str,
    ) -> Result<LoginOutcome, Refusal> {
        let LoginRequest { account, client, .. } = request;
        let attempt = LoginAttempt { account, client, is_signed_in: true };
        let pending = match self.store.begin_login(attempt, self.now()).await? {
            Ok(pending) => pending,
            Err(seconds) => return Ok(LoginOutcome::Wait(seconds)),
        };
        let changed = self.replace_password(request, new.to_owned()).await;
        if !matches!(changed, Ok(LoginOutcome::Rejected)) {
            log_failure(self.store.take_back_login(pending).await);
        }
        changed
    }

    async fn replace_password(
        &self,
        request: LoginRequest<'_>,
        new: String,
    ) -> Result<LoginOutcome, Refusal> {
        let found = self.store.login(request.account).await?;
        let hash = found.as_ref().map(|login| login.password.clone());
        let is_correct = self.check_password(hash, request.password.to_owned()).await?;
        let Some(login) = found.filter(|_| is_correct) else { return Ok(LoginOutcome::Rejected) };
        let (account, salt) = (login.account, self.ids.array());
        let hashed = tokio::task::spawn_blocking(move || passwords::hash_password(&new, salt));
        let password = hashed.await.map_err(|_| ErrorCode::InternalError)??;
        let now = self.now();
        self.store.set_password(account, password.clone(), now, &Actor::Session.at(now)).await?;
        let token =
            self.begin_session(PasswordLogin { account, password }, None, self.now()).await?;
        Ok(token.map_or(LoginOutcome::Rejected, LoginOutcome::SignedIn))
    }

    /// Returns `true` if the request came with a valid session of the account.
    async fn is_signed_in(&self, request: LoginRequest<'_>) -> Result<bool, Refusal> {
        let Some(token) = request.previous_token else { return Ok(false) };
        let session = self.find_session(token).await?;
        Ok(session.is_some_and(|session| session.name == request.account))
    }

    async fn try_sign_in(&self, request: LoginRequest<'_>) -> Result<LoginOutcome, Refusal> {
        let found = self.store.login(request.account).await?;
        let hash = found.as_ref().map(|login| login.password.clone());
        let is_correct = self.check_password(hash, request.password.to_owned()).await?;
        let Some(login) = found.filter(|_| is_correct) else { return Ok(LoginOutcome::Rejected) };
        let token = self.begin_session(login, request.previous_token, self.now()).await?;
        Ok(token.map_or(LoginOutcome::Rejected, LoginOutcome::SignedIn))
    }

    async fn check_password(
        &self,
        hash: Option<String>,
        password: String,
    ) -> Result<bool, Refusal> {
        let _permit = self.password_checks.0.acquire().await.map_err(|_| Refusal::unavailable())?;
        let check = move || passwords::verify_password(hash.as_deref(), &password);
        tokio::task::spawn_blocking(check).await.map_err(|_| ErrorCode::InternalError.into())
    }

    pub(super) async fn begin_session(
        &self,
        login: PasswordLogin,
        previous_token: Option<&str>,
        now: Millis,
    ) -> Result<Option<String>, Refusal> {
        let token = self.new_token();
        let hash = |token: &str| self.secrets().hash_session_token(token);
        let session = (hash(&token), now.plus(SESSION_LIFETIME_MILLIS));
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
