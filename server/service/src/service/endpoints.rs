//! Setting endpoints up, turning them on and off and testing them: for the admin commands, the admin API, the
//! dashboard and the mock server. An endpoint is a tenant's webhook.

use parcelo::webhook::Secret;
use parcelo_domain::{
    Millis, Refusal, Tenant, TraceContext,
    audit::Author,
    webhooks::{
        AllowedHosts, DisabledBy, Endpoint, InvalidWebhookUrl, OutboxEvent, WebhookEventKind,
        WebhookEventKinds, check_url,
    },
};
use parcelo_store::{EventsToReplay, Store, StoreError};
use parcelo_system::ids::Ids;
use parcelo_types::ErrorCode;
use ulid::Ulid;

/// The settings of an endpoint to set up.
#[derive(Debug, Clone)]
pub struct EndpointRequest {
    /// The tenant that owns it.
    pub tenant: Tenant,
    /// The URL that events are sent to.
    pub url: String,
    /// The kinds of event sent to it.
    pub kinds: WebhookEventKinds,
    /// The hosts that it may be on.
    pub allowed_hosts: AllowedHosts,
}

/// A reason why an endpoint cannot be set up or used.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The address is not allowed.
    #[error(transparent)]
    Address(#[from] InvalidWebhookUrl),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The tenant has no endpoint.
    #[error("there is no webhook; `parcelo-server webhooks set` sets one up")]
    NotFound,
    /// The endpoint has no event with this id.
    #[error(
        "the webhook has no event with this id; `parcelo-server webhooks deliveries` shows them"
    )]
    UnknownEvent,
    /// The endpoint's row is damaged.
    #[error(
        "the webhook's settings cannot be read; `parcelo-server webhooks set` sets it up again"
    )]
    Unreadable,
    /// The endpoint is turned off.
    #[error("the webhook is disabled; `parcelo-server webhooks enable` turns it on")]
    Disabled,
}

impl From<EndpointError> for Refusal {
    fn from(error: EndpointError) -> Self {
        match error {
            EndpointError::Address(invalid) => Self::invalid(&[invalid.to_fault()]),
            EndpointError::Store(error) => error.into(),
            EndpointError::UnknownEvent => ErrorCode::EventNotFound.into(),
            EndpointError::NotFound => ErrorCode::WebhookNotFound.into(),
            EndpointError::Disabled => ErrorCode::WebhookDisabled.into(),
            EndpointError::Unreadable => ErrorCode::WebhookUnreadable.into(),
        }
    }
}

/// A handle that sets endpoints up, changes them and tests them.
#[derive(Debug, Clone)]
pub struct Endpoints<'a> {
    /// The store that keeps them.
    pub store: &'a Store,
    /// The source of secrets and of the ids of tests.
    pub ids: &'a Ids,
    /// The author for the audit log.
    pub by: Author,
    /// The trace of the present request, which its test events continue.
    pub trace: Option<TraceContext>,
}

impl Endpoints<'_> {
    /// Sets a tenant's endpoint up or changes it. An existing one keeps its secret.
    pub async fn set(
        &self,
        request: EndpointRequest,
        now: Millis,
    ) -> Result<Endpoint, EndpointError> {
        self.upsert(request, now).await.map(|(endpoint, _)| endpoint)
    }

    /// Sets a tenant's endpoint up or changes it, like [`Self::set`]. The flag is `true` if there was none before.
    pub async fn upsert(
        &self,
        request: EndpointRequest,
        now: Millis,
    ) -> Result<(Endpoint, bool), EndpointError> {
        self.upsert_with_secret(request, Secret::from_random(&self.ids.array()), now).await
    }

    /// Sets a tenant's endpoint up or changes it, like [`Self::upsert`]. A new one has this secret.
    pub async fn upsert_with_secret(
        &self,
        request: EndpointRequest,
        new_secret: Secret,
        now: Millis,
    ) -> Result<(Endpoint, bool), EndpointError> {
        let EndpointRequest { tenant, url, kinds, allowed_hosts } = request;
        check_url(&url, allowed_hosts)?;
        let endpoint = Endpoint {
            tenant,
            url,
            kinds,
            secret: new_secret.clone(),
            old: Vec::new(),
            disabled: None,
            created_at: now,
        };
        let endpoint = self.store.set_endpoint(endpoint, &self.by).await?;
        let is_new = endpoint.secret.as_bytes() == new_secret.as_bytes();
        Ok((endpoint, is_new))
    }

    /// Returns the tenant's endpoint.
    pub async fn find(&self, tenant: Tenant) -> Result<Endpoint, EndpointError> {
        match self.store.endpoint(tenant).await {
            Err(StoreError::Damaged { .. }) => Err(EndpointError::Unreadable),
            found => found?.ok_or(EndpointError::NotFound),
        }
    }

    /// Gives the endpoint a new secret. Each earlier one also signs until 24 hours after it was replaced.
    pub async fn rotate_secret(
        &self,
        tenant: Tenant,
        now: Millis,
    ) -> Result<Secret, EndpointError> {
        self.find(tenant).await?;
        let secret = Secret::from_random(&self.ids.array());
        self.store.rotate_secret(tenant, (None, secret.clone()), now, &self.by).await?;
        Ok(secret)
    }

    /// Replaces the current secret if `is_match` accepts it. Returns `None` if the endpoint has another secret by now.
    pub async fn replace_secret(
        &self,
        tenant: Tenant,
        is_match: impl Fn(&[u8]) -> bool,
        now: Millis,
    ) -> Result<Option<Secret>, EndpointError> {
        let current = self.find(tenant).await?.secret;
        if !is_match(current.as_bytes()) {
            return Ok(None);
        }
        let new = Secret::from_random(&self.ids.array());
        let secrets = (Some(current), new.clone());
        let is_done = self.store.rotate_secret(tenant, secrets, now, &self.by).await?;
        Ok(is_done.then_some(new))
    }

    /// Turns a tenant's endpoint on.
    pub async fn enable(&self, tenant: Tenant) -> Result<Endpoint, EndpointError> {
        self.find(tenant).await?;
        self.store.enable_endpoint(tenant, &self.by).await?;
        self.find(tenant).await
    }

    /// Turns a tenant's endpoint off; its events are held.
    pub async fn disable(&self, tenant: Tenant) -> Result<Endpoint, EndpointError> {
        self.find(tenant).await?;
        self.store.disable_endpoint(tenant, DisabledBy::Operator, &self.by).await?;
        self.find(tenant).await
    }

    /// Removes a tenant's endpoint. Unsent events are held for an endpoint that may be set up later.
    pub async fn remove(&self, tenant: Tenant) -> Result<Endpoint, EndpointError> {
        let endpoint = self.find(tenant).await?;
        self.store.remove_endpoint(tenant, &self.by).await?;
        Ok(endpoint)
    }

    /// Puts a test event into the outbox and returns its id.
    pub async fn send_test(&self, tenant: Tenant, now: Millis) -> Result<Ulid, EndpointError> {
        self.check_enabled(tenant).await?;
        let event = self.ids.ulid(now);
        let kind = WebhookEventKind::Test;
        let test = OutboxEvent { event, kind, sequence: None, previous: None, at: now };
        self.store.enqueue(tenant, test, self.trace).await?;
        Ok(event)
    }

    /// Sends events again and returns their number.
    pub async fn replay(
        &self,
        tenant: Tenant,
        events: EventsToReplay,
        now: Millis,
    ) -> Result<usize, EndpointError> {
        self.check_enabled(tenant).await?;
        if let EventsToReplay::One(event) = events
            && !self.store.has_event(tenant, event).await?
        {
            return Err(EndpointError::UnknownEvent);
        }
        Ok(self.store.replay(tenant, events, now).await?)
    }

    async fn check_enabled(&self, tenant: Tenant) -> Result<(), EndpointError> {
        match self.find(tenant).await?.disabled {
            Some(_) => Err(EndpointError::Disabled),
            None => Ok(()),
        }
    }
}
