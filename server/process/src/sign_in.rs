//! Signing in to the dashboard, and changing its password.

use std::net::IpAddr;

use parcelo_domain::{Refusal, audit::Actor, login_throttle::LoginAttempt, session::PasswordLogin};
use parcelo_service::service::Service;
use parcelo_store::StoreError;
use parcelo_types::ErrorCode;
use tokio::sync::Semaphore;

use crate::passwords;

/// Maximum number of passwords checked at once: each check takes a CPU and 19 MiB.
const MAX_PASSWORD_CHECKS: usize = 2;

/// An attempt to sign in to the dashboard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoginRequest<'a> {
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
pub(crate) enum LoginOutcome {
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

/// The permits for checking passwords, for all services of the process.
static PASSWORD_CHECKS: Semaphore = Semaphore::const_new(MAX_PASSWORD_CHECKS);

/// Logs an error from taking back the count of a successful attempt. The attempt counts as a failure for a while, but
/// the user must not lose the session that has begun.
fn log_failure(counted: Result<(), StoreError>) {
    if let Err(error) = counted {
        tracing::warn!(%error, "an attempt to sign in still counts as a failure");
    }
}

/// Signs in to the dashboard. After too many failures, the next attempt has to wait.
pub(crate) async fn sign_in(
    service: &Service,
    request: LoginRequest<'_>,
) -> Result<LoginOutcome, Refusal> {
    let LoginRequest { account, client, .. } = request;
    let attempt =
        LoginAttempt { account, client, is_signed_in: is_signed_in(service, request).await? };
    // The store counts attempts, so that several servers allow no more of them than one server.
    let pending = match service.store().begin_login(attempt, service.now()).await? {
        Ok(pending) => pending,
        Err(seconds) => return Ok(LoginOutcome::Wait(seconds)),
    };
    let outcome = try_sign_in(service, request).await;
    if !matches!(outcome, Ok(LoginOutcome::Rejected)) {
        log_failure(service.store().take_back_login(pending).await);
    }
    if matches!(outcome, Ok(LoginOutcome::SignedIn(_))) {
        log_failure(service.store().remember_login(attempt, service.now()).await);
    }
    outcome
}

/// Changes the password of a session's account. All its sessions end, including this one, and a new one begins,
/// unless another password was set meanwhile.
pub(crate) async fn change_password(
    service: &Service,
    request: LoginRequest<'_>,
    new: &str,
) -> Result<LoginOutcome, Refusal> {
    let LoginRequest { account, client, .. } = request;
    let attempt = LoginAttempt { account, client, is_signed_in: true };
    let pending = match service.store().begin_login(attempt, service.now()).await? {
        Ok(pending) => pending,
        Err(seconds) => return Ok(LoginOutcome::Wait(seconds)),
    };
    let changed = replace_password(service, request, new.to_owned()).await;
    if !matches!(changed, Ok(LoginOutcome::Rejected)) {
        log_failure(service.store().take_back_login(pending).await);
    }
    changed
}

async fn replace_password(
    service: &Service,
    request: LoginRequest<'_>,
    new: String,
) -> Result<LoginOutcome, Refusal> {
    let found = service.store().login(request.account).await?;
    let hash = found.as_ref().map(|login| login.password.clone());
    let is_correct = check_password(hash, request.password.to_owned()).await?;
    let Some(login) = found.filter(|_| is_correct) else { return Ok(LoginOutcome::Rejected) };
    let (account, salt) = (login.account, service.ids().array());
    let hashed = tokio::task::spawn_blocking(move || passwords::hash_password(&new, salt));
    let password = hashed.await.map_err(|_| ErrorCode::InternalError)??;
    let now = service.now();
    service.store().set_password(account, password.clone(), now, &Actor::Session.at(now)).await?;
    let (login, client) = (PasswordLogin { account, password }, request.client);
    let token = service.begin_session(login, client, None, service.now()).await?;
    Ok(token.map_or(LoginOutcome::Rejected, LoginOutcome::SignedIn))
}

/// Returns `true` if the request came with a valid session of the account.
async fn is_signed_in(service: &Service, request: LoginRequest<'_>) -> Result<bool, Refusal> {
    let Some(token) = request.previous_token else { return Ok(false) };
    let session = service.find_session(token).await?;
    Ok(session.is_some_and(|session| session.name == request.account))
}

async fn try_sign_in(
    service: &Service,
    request: LoginRequest<'_>,
) -> Result<LoginOutcome, Refusal> {
    let found = service.store().login(request.account).await?;
    let hash = found.as_ref().map(|login| login.password.clone());
    let is_correct = check_password(hash, request.password.to_owned()).await?;
    let Some(login) = found.filter(|_| is_correct) else { return Ok(LoginOutcome::Rejected) };
    let LoginRequest { client, previous_token, .. } = request;
    let token = service.begin_session(login, client, previous_token, service.now()).await?;
    Ok(token.map_or(LoginOutcome::Rejected, LoginOutcome::SignedIn))
}

async fn check_password(hash: Option<String>, password: String) -> Result<bool, Refusal> {
    let _permit = PASSWORD_CHECKS.acquire().await.map_err(|_| Refusal::unavailable())?;
    let check = move || passwords::verify_password(hash.as_deref(), &password);
    tokio::task::spawn_blocking(check).await.map_err(|_| ErrorCode::InternalError.into())
}

#[cfg(test)]
#[cfg(feature = "postgres")]
mod tests {
    use std::sync::Arc;

    use parcelo_domain::{Millis, Secrets, sample::TEST_AUTHOR};
    use parcelo_service::service::Settings;
    use parcelo_store::{
        Store,
        test_util::{database, run_sql},
    };
    use parcelo_system::{clock::ManualClock, ids::Ids};

    use super::*;

    const NOW: Millis = Millis(1_767_600_000_000);

    #[tokio::test(flavor = "multi_thread")]
    async fn a_session_begins_even_if_its_attempt_stays_counted() {
        let Some(address) = database() else { return };
        let store = Store::connect(address.clone(), [1; 32]).await.unwrap();
        let settings = Settings::new("", Secrets::derive(&store.secret()));
        let (clock, ids) = (Arc::new(ManualClock::at(NOW)), Arc::new(Ids::seeded(1)));
        let server = Service::new(store.clone(), clock, ids, settings);
        let account = store.account("shop", "acc_1".to_owned(), NOW).await.unwrap();
        let password = "correct horse battery";
        let hash = passwords::hash_password(password, [1; 16]).unwrap();
        store.set_password(account, hash, NOW, &TEST_AUTHOR).await.unwrap();
        let client = "203.0.113.7".parse().unwrap();
        let request = LoginRequest { client, account: "shop", password, previous_token: None };
        for refuse in [
            "ALTER TABLE login_networks ADD CONSTRAINT no_room CHECK (false) NOT VALID",
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no room''; END'; \
             CREATE TRIGGER no_room BEFORE UPDATE ON login_failures FOR EACH ROW \
             WHEN (new.failures < old.failures) EXECUTE FUNCTION no_room()",
        ] {
            run_sql(&address, refuse);
            let LoginOutcome::SignedIn(token) = sign_in(&server, request).await.unwrap() else {
                panic!("the password is right");
            };
            assert!(server.find_session(&token).await.unwrap().is_some());
        }
    }
}
