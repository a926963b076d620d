//! The background task of `serve` that sends e-mails, if they are on.

use std::sync::Arc;

use parcelo_service::{
    http::Stop,
    mail::{MailSender, SandboxRecipients, allow_list::AllowList},
    service::Service,
};
use tokio::task::JoinHandle;

use super::{
    Failure,
    mail_args::{MailArgsError, MailSettings},
    serve_args::Serve,
    shared_args::EnvironmentArg,
};
use crate::smtp::{MAX_CONNECTIONS, SmtpTransport};

/// The transport to the relay, and the sandbox's allowed recipients.
pub(super) struct MailDelivery {
    transport: SmtpTransport,
    sandbox_allow: AllowList,
}

/// Returns the transport that the flags describe, or `None` if e-mails are off. Invalid flags are an error, which ends
/// the process.
pub(super) fn configure(options: &Serve) -> Result<Option<MailDelivery>, Failure> {
    let Some(MailSettings { smtp, sandbox_allow }) = options.mail.resolve()? else {
        return Ok(None);
    };
    check_public_addresses(options, &sandbox_allow)?;
    let transport =
        SmtpTransport::new(smtp).map_err(|error| MailArgsError::Certificates(error.to_string()))?;
    Ok(Some(MailDelivery { transport, sandbox_allow }))
}

/// Checks that public addresses are set: e-mails have links to pages, and receivers cannot open a default address.
fn check_public_addresses(options: &Serve, sandbox_allow: &AllowList) -> Result<(), MailArgsError> {
    let serves = |environment| options.environments.contains(&environment);
    if serves(EnvironmentArg::Production) && options.base_url.is_none() {
        return Err(MailArgsError::NoBaseUrl("--base-url"));
    }
    let writes = serves(EnvironmentArg::Sandbox) && !sandbox_allow.is_empty();
    if writes && options.sandbox_base_url.is_none() {
        return Err(MailArgsError::NoBaseUrl("--sandbox-base-url"));
    }
    Ok(())
}

/// Starts the task that sends e-mails until the stop, or logs that e-mails are off.
pub(super) async fn start(
    delivery: Option<MailDelivery>,
    service: &Arc<Service>,
    stop: &Stop,
) -> Result<Option<JoinHandle<()>>, Failure> {
    let store = service.store();
    let Some(MailDelivery { transport, sandbox_allow }) = delivery else {
        store.disable_mails().await?;
        tracing::info!(
            "e-mails are off: receivers and senders get none; --smtp-url switches them on"
        );
        return Ok(None);
    };
    let since =
        service.enable_mails(service.now()).await.map_err(|_logged| MailArgsError::Database)?;
    let (relay, from) = (transport.relay(), transport.from());
    let sandbox = if sandbox_allow.is_empty() { "no one" } else { "listed addresses" };
    tracing::info!(relay, from, sandbox, since = %since.to_utc(), "e-mails are on");
    let recipients = SandboxRecipients::Listed(sandbox_allow);
    let (service, stop) = (Arc::clone(service), stop.clone());
    let sender = MailSender::new(service, Arc::new(transport), recipients, MAX_CONNECTIONS);
    Ok(Some(tokio::spawn(async move { sender.run(stop.requested()).await })))
}
