//! Sends single e-mails to a relay by SMTP. It reports only the command that failed and the code of the reply; the
//! domain decides what this means for the e-mail and its address. The text of a reply is never shown or logged, because
//! it often repeats the address.

mod error;
mod message;

use std::{
    fmt,
    net::IpAddr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use lettre::{
    message::Mailbox,
    transport::smtp::{
        Error,
        authentication::{Credentials, Mechanism},
        client::{AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters},
        commands::{Data, Mail as MailFrom, Rcpt, Rset},
        extension::{ClientId, Extension, MailParameter},
    },
};
use parcelo_service::mail::{Mail, MailTransport};

#[cfg(test)]
use error::parse_enhanced_code;
use error::{Reply, SmtpError, SmtpStage};
use parcelo_domain::mail::MailOutcome;
use parcelo_system::clock::{has_elapsed, monotonic_now};

use message::{build_message, parse_recipient};

/// Maximum time to connect to each address of the relay's name.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time of a whole attempt: shorter than a lease, so that no other server sends the e-mail at the same time.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(45);
/// Time that an idle connection is kept for the next e-mail. Relays close idle connections later: after five minutes by
/// RFC 5321, although some close them after one.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum time to wait for replies that do not affect the outcome of an e-mail (to NOOP, RSET and QUIT).
const OPTIONAL_REPLY_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of connections, and thus of e-mails in flight.
pub(crate) const MAX_CONNECTIONS: usize = 4;

/// The encryption of the connection to the relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionSecurity {
    /// TLS from the first byte (`smtps`, RFC 8314).
    Tls,
    /// STARTTLS; without it nothing is sent.
    StartTls,
    /// No encryption: the relay is on this machine.
    Loopback,
}

/// The settings of the relay and the sender. `Debug` shows no password.
#[derive(Clone)]
pub(crate) struct SmtpSettings {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) security: ConnectionSecurity,
    /// User and password.
    pub(crate) login: Option<(String, String)>,
    pub(crate) from: Mailbox,
}

impl fmt::Debug for SmtpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, security, .. } = self;
        write!(f, "SmtpSettings({host}:{port}, {security:?})")
    }
}

/// A transport to a relay, which keeps idle connections for a while.
pub(crate) struct SmtpTransport {
    settings: SmtpSettings,
    tls: Option<TlsParameters>,
    idle: Mutex<Vec<(AsyncSmtpConnection, Instant)>>,
    /// `true` after the log has reported that the relay cannot be used, so that this is not logged for each e-mail.
    is_down: AtomicBool,
}

impl fmt::Debug for SmtpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SmtpTransport").field(&self.settings).finish()
    }
}

impl SmtpTransport {
    /// Creates a transport that trusts the machine's certificate authorities, or the bundled ones if it has none.
    pub(crate) fn new(settings: SmtpSettings) -> Result<Self, Error> {
        let builder = || TlsParameters::builder(settings.host.clone());
        let tls = match settings.security {
            ConnectionSecurity::Loopback => None,
            ConnectionSecurity::Tls | ConnectionSecurity::StartTls => {
                Some(builder().build_rustls().or_else(|_| with_bundled_roots(builder()))?)
            }
        };
        Ok(Self::with_tls(settings, tls))
    }

    fn with_tls(settings: SmtpSettings, tls: Option<TlsParameters>) -> Self {
        Self { settings, tls, idle: Mutex::default(), is_down: AtomicBool::new(false) }
    }

    /// Returns host and port for the log.
    pub(crate) fn relay(&self) -> String {
        format!("{}:{}", self.settings.host, self.settings.port)
    }

    /// Returns the sender's address for the log.
    pub(crate) fn from(&self) -> String {
        self.settings.from.email.to_string()
    }

    /// Sends an e-mail, and returns when the relay has accepted it.
    async fn deliver(&self, mail: &Mail) -> Result<(), SmtpError> {
        let stage = StageCell::default();
        match tokio::time::timeout(ATTEMPT_TIMEOUT, self.attempt(mail, &stage)).await {
            Ok(outcome) => outcome,
            Err(_elapsed) => Err(SmtpError::ConnectionLost(stage.get())),
        }
    }

    async fn attempt(&self, mail: &Mail, stage: &StageCell) -> Result<(), SmtpError> {
        let message =
            build_message(mail, &self.settings.from).map_err(|_| SmtpError::UnusableAddress)?;
        let bytes = message.formatted();
        let to = parse_recipient(&mail.to).map_err(|_| SmtpError::UnusableAddress)?;
        let mut session = SmtpSession { connection: self.connection(stage).await?, stage };
        match session.transfer(&self.settings.from, to, &bytes).await {
            Ok(()) => {
                self.keep_idle(session.connection);
                Ok(())
            }
            // The connection still works, and can serve the next e-mail.
            Err(fault @ SmtpError::Rejected(_, reply)) if reply.code != SERVICE_CLOSING => {
                if with_optional_reply_timeout(session.connection.command(Rset))
                    .await
                    .is_some_and(|reply| reply.is_ok())
                {
                    self.keep_idle(session.connection);
                }
                Err(fault)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Returns an idle connection that still responds, or a new one.
    async fn connection(&self, stage: &StageCell) -> Result<AsyncSmtpConnection, SmtpError> {
        while let Some(mut connection) = self.take_idle() {
            if with_optional_reply_timeout(connection.test_connected()).await == Some(true) {
                return Ok(connection);
            }
        }
        self.connect(stage).await
    }

    async fn connect(&self, stage: &StageCell) -> Result<AsyncSmtpConnection, SmtpError> {
        let Self { settings, tls, .. } = self;
        let name = client_name(settings);
        stage.set(SmtpStage::Connect);
        let implicit_tls = tls.clone().filter(|_| settings.security == ConnectionSecurity::Tls);
        let address = (settings.host.as_str(), settings.port);
        let connected = AsyncSmtpConnection::connect_tokio1(
            address,
            Some(CONNECT_TIMEOUT),
            &name,
            implicit_tls,
            None,
        )
        .await;
        let mut connection = connected.map_err(|error| stage.to_smtp_error(&error))?;
        if let (ConnectionSecurity::StartTls, Some(tls)) = (settings.security, tls.clone()) {
            if !connection.can_starttls() {
                connection.abort().await;
                return Err(SmtpError::Insecure);
            }
            connection.starttls(tls, &name).await.map_err(|error| stage.to_smtp_error(&error))?;
        }
        if let Some((user, password)) = &settings.login {
            stage.set(SmtpStage::Login);
            let login = Credentials::new(user.clone(), password.clone());
            let mechanisms = [Mechanism::Plain, Mechanism::Login];
            connection
                .auth(&mechanisms, &login)
                .await
                .map_err(|error| stage.to_smtp_error(&error))?;
        }
        Ok(connection)
    }

    fn take_idle(&self) -> Option<AsyncSmtpConnection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // Drop connections that the relay may have closed.
        idle.retain(|(_, since)| !has_elapsed(*since, IDLE_TIMEOUT));
        idle.pop().map(|(connection, _)| connection)
    }

    fn keep_idle(&self, connection: AsyncSmtpConnection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_CONNECTIONS {
            idle.push((connection, monotonic_now()));
        }
    }

    fn log_outcome(&self, mail: &Mail, outcome: Result<(), SmtpError>) {
        let id = &mail.id;
        match outcome {
            Err(fault) if fault.is_relay_unavailable() => {
                if !self.is_down.swap(true, Ordering::Relaxed) {
                    tracing::warn!(reason = %fault, "the mail relay cannot be used; e-mails wait and are tried again");
                }
            }
            Err(fault) => tracing::warn!(id, reason = %fault, "an e-mail was not taken"),
            Ok(()) => {
                if self.is_down.swap(false, Ordering::Relaxed) {
                    tracing::info!("the mail relay takes e-mails again");
                }
                tracing::debug!(id, "an e-mail was taken");
            }
        }
    }

    async fn close_idle(&self) {
        while let Some(mut connection) = self.take_idle() {
            let _unanswered = with_optional_reply_timeout(connection.quit()).await;
        }
    }
}

async fn with_optional_reply_timeout<T>(call: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(OPTIONAL_REPLY_TIMEOUT, call).await.ok()
}

impl MailTransport for SmtpTransport {
    fn send<'a>(&'a self, mail: &'a Mail) -> BoxFuture<'a, MailOutcome> {
        Box::pin(async move {
            let sent = self.deliver(mail).await;
            self.log_outcome(mail, sent);
            sent.map_or_else(SmtpError::outcome, |()| MailOutcome::Sent)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close_idle())
    }
}

/// Code of a reply with which the relay closes the connection.
const SERVICE_CLOSING: u16 = 421;

/// A connection and the stage of the attempt that uses it.
struct SmtpSession<'a> {
    connection: AsyncSmtpConnection,
    stage: &'a StageCell,
}

impl SmtpSession<'_> {
    async fn transfer(
        &mut self,
        from: &Mailbox,
        to: lettre::Address,
        bytes: &[u8],
    ) -> Result<(), SmtpError> {
        let mut options = Vec::new();
        if !to.to_string().is_ascii() {
            if !self.connection.server_info().supports_feature(Extension::SmtpUtfEight) {
                return Err(SmtpError::UnusableAddress);
            }
            options.push(MailParameter::SmtpUtfEight);
        }
        self.command(SmtpStage::Sender, MailFrom::new(Some(from.email.clone()), options)).await?;
        self.command(SmtpStage::Recipient, Rcpt::new(to, Vec::new())).await?;
        self.command(SmtpStage::Data, Data).await?;
        self.stage.set(SmtpStage::Message);
        self.connection.message(bytes).await.map_err(|error| self.stage.to_smtp_error(&error))?;
        Ok(())
    }

    async fn command(
        &mut self,
        stage: SmtpStage,
        command: impl fmt::Display,
    ) -> Result<(), SmtpError> {
        self.stage.set(stage);
        self.connection.command(command).await.map_err(|error| self.stage.to_smtp_error(&error))?;
        Ok(())
    }
}

/// The current stage of an attempt, for the error if the attempt times out.
#[derive(Default)]
struct StageCell(Mutex<SmtpStage>);

impl StageCell {
    fn set(&self, stage: SmtpStage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    fn get(&self) -> SmtpStage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Converts an error of the current stage.
    fn to_smtp_error(&self, error: &Error) -> SmtpError {
        let stage = self.get();
        match Reply::from_error(error) {
            Some(reply) => SmtpError::Rejected(stage, reply),
            // The only client error possible here is a login that the relay does not offer.
            None if error.is_tls() || error.is_client() => SmtpError::Insecure,
            None => SmtpError::ConnectionLost(stage),
        }
    }
}

/// Returns the client name for `EHLO`: the sender's domain, which exists in the DNS, unlike a container's host name.
fn client_name(settings: &SmtpSettings) -> ClientId {
    ClientId::Domain(settings.from.email.domain().to_owned())
}

/// Returns `true` if a host is this machine, by name or by address.
pub(crate) fn is_loopback(host: &str) -> bool {
    let number = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    number.map_or_else(|_| host.eq_ignore_ascii_case("localhost"), |ip| ip.is_loopback())
}

fn with_bundled_roots(
    builder: lettre::transport::smtp::client::TlsParametersBuilder,
) -> Result<TlsParameters, Error> {
    let builder = builder.certificate_store(CertificateStore::None);
    let roots = webpki_root_certs::TLS_SERVER_ROOT_CERTS.iter();
    let mut certificates = roots.map(|root| Certificate::from_der(root.to_vec()));
    let builder = certificates
        .try_fold(builder, |builder, root| Ok::<_, Error>(builder.add_root_certificate(root?)))?;
    builder.build_rustls()
}

#[cfg(test)]
mod tests;
