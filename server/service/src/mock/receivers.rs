//! The receivers of webhooks that a test has chosen. Each is still its account's endpoint after another state was
//! restored, whose own endpoint belonged to the server that was saved.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use parcelo::webhook::Secret;
use parcelo_domain::{
    Tenant,
    audit::Actor,
    ids::public_id,
    webhooks::{Endpoint, WebhookEventKinds},
};
use parcelo_store::StoreError;
use parcelo_system::clock::Clock as _;

use super::{MockServer, expect_stored};
use crate::service::{EndpointError, EndpointRequest, Endpoints};

/// A receiver, and the secret by which it verifies.
#[derive(Debug, Clone)]
struct Receiver {
    url: String,
    kinds: WebhookEventKinds,
    secret: Secret,
}

/// The last chosen receiver of each account, by the account's name.
#[derive(Debug, Default)]
pub(super) struct Receivers(Mutex<BTreeMap<String, Receiver>>);

impl Receivers {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Receiver>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Receiver {
    /// Returns `true` if the endpoint sends to it what it can verify.
    fn is_served_by(&self, endpoint: &Endpoint) -> bool {
        let old = endpoint.old.iter().map(|(secret, _)| secret);
        self.url == endpoint.url
            && self.kinds == endpoint.kinds
            && old.chain([&endpoint.secret]).any(|one| one.as_bytes() == self.secret.as_bytes())
    }
}

impl MockServer {
    /// Makes a receiver the endpoint of an account, and returns the secret that signs its webhooks: `own`, otherwise
    /// the account's, or a new one.
    pub(super) async fn choose_receiver(
        &self,
        account: &str,
        (url, kinds): (String, WebhookEventKinds),
        own: Option<Secret>,
    ) -> Result<Secret, EndpointError> {
        let secret = self.set_endpoint(account, (url.clone(), kinds), own).await?;
        let receiver = Receiver { url, kinds, secret: secret.clone() };
        self.receivers.lock().insert(account.to_owned(), receiver);
        Ok(secret)
    }

    /// Makes each chosen receiver the endpoint of its account again, in a state that was just restored.
    pub(super) async fn keep_receivers(&self) {
        let chosen = self.receivers.lock().clone();
        for (account, receiver) in chosen {
            let endpoint = expect_stored(self.endpoint(&account).await);
            if endpoint.is_some_and(|endpoint| receiver.is_served_by(&endpoint)) {
                continue;
            }
            let Receiver { url, kinds, secret } = receiver;
            expect_stored(self.set_endpoint(&account, (url, kinds), Some(secret)).await);
        }
    }

    /// Returns the endpoint of an account, if it has one.
    pub(super) async fn endpoint(&self, account: &str) -> Result<Option<Endpoint>, StoreError> {
        let store = self.service.store();
        let Some(account) = store.account_named(account).await? else { return Ok(None) };
        store.endpoint(Tenant { account, environment: self.environment }).await
    }

    /// Returns an account in the server's environment. It is created if it does not exist.
    pub(super) async fn tenant(&self, account: &str) -> Result<Tenant, StoreError> {
        let now = self.clock.now();
        let id = public_id("acc", self.ids.ulid(now));
        let account = self.service.store().account(account, id, now).await?;
        Ok(Tenant { account, environment: self.environment })
    }

    async fn set_endpoint(
        &self,
        account: &str,
        (url, kinds): (String, WebhookEventKinds),
        own: Option<Secret>,
    ) -> Result<Secret, EndpointError> {
        let (store, now) = (self.service.store(), self.clock.now());
        let tenant = self.tenant(account).await?;
        let allowed_hosts = self.service.settings().allowed_hosts(tenant.environment);
        let request = EndpointRequest { tenant, url, kinds, allowed_hosts };
        let by = Actor::Server.at(now);
        let endpoints = Endpoints { store, ids: &self.ids, by: by.clone(), trace: None };
        let Some(own) = own else { return Ok(endpoints.set(request, now).await?.secret) };
        let (endpoint, _) = endpoints.upsert_with_secret(request, own.clone(), now).await?;
        if endpoint.secret.as_bytes() != own.as_bytes() {
            store.rotate_secret(tenant, (None, own.clone()), now, &by).await?;
        }
        Ok(own)
    }
}
