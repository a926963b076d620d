//! The webhooks of a mock server: what was sent, and the fault that a receiver has to survive.

use std::time::Duration;

use parcelo::webhook::Secret;
use parcelo_domain::audit::Actor;
use parcelo_system::clock::Clock as _;

use super::{
    MockServer,
    inbox::DEFAULT_ACCOUNT,
    sync::block_on,
    webhook_chaos::{WebhookDelivery, WebhookFault, WebhookFaultKind},
};
use crate::service::{EndpointError, Endpoints};

/// A handle on a server's webhooks.
///
/// A fault hits the first attempt of every event from now on; further attempts are without one. The last planned fault
/// replaces the one before.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
///
/// use parcelo_server::mock::MockServer;
///
/// let server = MockServer::start().await;
/// let inbox = server.webhook_inbox().start().await;
/// let client = server.client(&server.key().issue());
/// server.webhooks().duplicate();
/// client.orders().create(&MockServer::order("SB-NORMAL-0001")).await?;
/// server.clock().advance(Duration::from_secs(10)).await;
/// assert_eq!(inbox.deliveries().len(), 2); // with one id, each with a timestamp and a signature of its own
/// assert_eq!(inbox.events().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Webhooks<'a>(&'a MockServer);

impl MockServer {
    /// Returns the handle on its webhooks.
    pub fn webhooks(&self) -> Webhooks<'_> {
        Webhooks(self)
    }
}

impl Webhooks<'_> {
    /// Loses the response to each event, which the service therefore sends again, about 5 s later by the server's clock.
    pub fn duplicate(&self) {
        self.plan_kind(WebhookFaultKind::Duplicate, None);
    }

    /// Collects events for this time, by the server's clock, and then sends them in a random order, which derives
    /// from the server's seed; the first one last.
    ///
    /// # Panics
    ///
    /// If it is zero.
    #[track_caller]
    pub fn reorder(&self, collect: Duration) {
        self.plan_kind(WebhookFaultKind::Reorder, Some(collect));
    }

    /// Sends each event later by this time of the server's clock, signed with the time at which it is sent. A parcel's
    /// later events do not wait for it.
    ///
    /// # Panics
    ///
    /// If it is zero.
    #[track_caller]
    pub fn delay(&self, by: Duration) {
        self.plan_kind(WebhookFaultKind::Delay, Some(by));
    }

    /// Signs each event with a secret that the receiver does not have. A receiver that refuses it gets it again.
    pub fn wrong_signature(&self) {
        self.plan_kind(WebhookFaultKind::WrongSignature, None);
    }

    /// Signs each event with the right secret and a timestamp of ten minutes ago, as a replayed message has. A receiver
    /// that refuses it gets it again.
    pub fn old_signature(&self) {
        self.plan_kind(WebhookFaultKind::OldSignature, None);
    }

    /// Deletes the fault. Events that are held back are sent when they are due.
    pub fn clear_fault(&self) {
        self.0.dispatcher.plan(None);
    }

    /// Gives the endpoint of the account `default` a new secret, and returns it. As in the service, the old one also
    /// signs for 24 hours, so that deliveries have two signatures.
    ///
    /// # Panics
    ///
    /// If the account has no endpoint.
    pub fn rotate_secret(&self) -> Secret {
        #[expect(clippy::expect_used, reason = "a test's own mistake; documented")]
        let secret = self.try_rotate_secret().expect("an endpoint");
        secret
    }

    /// Rotates the secret like [`Webhooks::rotate_secret`], if there is an endpoint.
    pub(super) fn try_rotate_secret(&self) -> Result<Secret, EndpointError> {
        let server = self.0;
        let (store, ids, now) = (server.service.store(), &server.ids, server.clock.now());
        block_on(async {
            let tenant = server.tenant(DEFAULT_ACCOUNT).await?;
            let endpoints = Endpoints { store, ids, by: Actor::Server.at(now), trace: None };
            endpoints.rotate_secret(tenant, now).await
        })
    }

    /// Returns the newest 10,000 deliveries to receivers of any kind, oldest first, each once it got its response.
    pub fn deliveries(&self) -> Vec<WebhookDelivery> {
        self.0.dispatcher.deliveries()
    }

    /// Returns the planned fault.
    pub(super) fn fault(&self) -> Option<WebhookFault> {
        self.0.dispatcher.fault()
    }

    /// Plans a fault that was checked.
    pub(super) fn plan(&self, fault: WebhookFault) {
        self.0.dispatcher.plan(Some(fault));
    }

    #[track_caller]
    fn plan_kind(&self, fault: WebhookFaultKind, hold: Option<Duration>) {
        let fault = WebhookFault { fault, seconds: hold.map(|hold| hold.as_secs_f64()) };
        let violation = fault.violation().map(|(english, _)| english);
        assert!(violation.is_none(), "{}", violation.unwrap_or_default());
        self.plan(fault);
    }
}
