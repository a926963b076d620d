//! An area of a listener: routes with one policy. The policy names the callers, the limit and the format of responses.
//! It also applies to paths under the area's prefixes that have no route.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    handler::Handler,
    response::Response,
    routing::{MethodFilter, MethodRouter, any, on},
};
use parcelo_domain::{Millis, Refusal};
use parcelo_types::{ErrorCode, Operation, model::Method};

use super::{Api, HttpRefusal};
use crate::service::Caller;

/// The middleware's rules for requests to an area.
#[derive(Clone)]
pub(super) struct Policy {
    /// The callers that are admitted, and the subject of their rate limit.
    pub(super) principal: Principal,
    /// The format of responses.
    pub(super) style: ResponseStyle,
    /// The name in metrics of a route that is not in the table of operations.
    pub(super) metrics_name: &'static str,
}

/// The callers of an area, and the subject of its rate limit.
#[derive(Clone, Copy)]
pub(super) enum Principal {
    /// The holder of an API key, counted by key; a further check may refuse the caller.
    ApiKey(Option<CallerCheck>),
    /// The holder of a carrier key, counted by key.
    CarrierKey,
    /// Anyone, counted by address.
    Anyone(AddressLimit),
}

/// An additional check of a caller whose key is valid and within its limit.
pub(super) type CallerCheck = fn(&Api, &Caller, Millis) -> Result<(), Refusal>;

/// The limit that counts the requests of an address.
#[derive(Clone, Copy)]
pub(super) enum AddressLimit {
    /// No limit: orchestrators probe often, and a refusal would look like an outage.
    Unlimited,
    /// The limit of callers without a valid key.
    Unauthenticated,
    /// The limit of public pages.
    PublicPages,
    /// The limit of the operators' listener. It is counted apart from the public ones, so that strangers' requests
    /// cannot lock an operator out.
    Operators,
}

/// The format of an area's responses.
#[derive(Clone)]
pub(super) enum ResponseStyle {
    /// The format of `/api/v1`: a refusal is a JSON envelope.
    Json,
    /// The area's own format.
    Custom(ResponseStyler),
}

/// A function that prepares the rendering of a response from its request. It may leave data for the handler in the
/// request's extensions, and returns the function that finishes the response.
pub(super) type ResponseStyler = Arc<dyn Fn(&Api, &mut Request) -> FinishResponse + Send + Sync>;

/// A function that gives a response its final form. A refusal that it leaves unchanged becomes the JSON envelope.
pub(super) type FinishResponse = Box<dyn FnOnce(Response) -> Response + Send>;

impl Policy {
    /// Returns a policy that admits anyone, with JSON refusals.
    pub(super) const fn open(limit: AddressLimit) -> Self {
        Self::json(Principal::Anyone(limit))
    }

    /// Returns a policy with JSON refusals.
    pub(super) const fn json(principal: Principal) -> Self {
        Self { principal, style: ResponseStyle::Json, metrics_name: "Other" }
    }

    /// Returns `true` if the area has the public tracking pages.
    pub(super) const fn is_public_page(&self) -> bool {
        matches!(self.principal, Principal::Anyone(AddressLimit::PublicPages))
    }

    /// Returns `true` if machines call the area all the time: probes and scrapes, which have no limit.
    pub(super) const fn is_probed(&self) -> bool {
        matches!(self.principal, Principal::Anyone(AddressLimit::Unlimited))
    }
}

/// A set of routes with their policy.
pub(super) struct Area {
    pub(super) policy: Policy,
    pub(super) routes: Router<Api>,
}

impl Area {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, routes: Router::new() }
    }

    /// Adds a fallback for the paths under a prefix that have no route, so that the policy applies before their 404.
    pub(super) fn with_fallback_under(self, prefix: &str) -> Self {
        let area = self.map_routes(|routes| routes.nest(prefix, Router::new().fallback(not_found)));
        // A nested router does not match its prefix with a trailing slash.
        area.route(&format!("{prefix}/"), any(not_found))
    }

    /// Serves an operation under its method and path.
    pub(super) fn operation<H, T>(self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        let method = match operation.method() {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
        };
        self.route(operation.path(), on(method, handler))
    }

    pub(super) fn route(self, path: &str, handlers: MethodRouter<Api>) -> Self {
        self.map_routes(|routes| routes.route(path, handlers))
    }

    pub(super) fn merge(self, further: Router<Api>) -> Self {
        self.map_routes(|routes| routes.merge(further))
    }

    pub(super) fn map_routes(self, change: impl FnOnce(Router<Api>) -> Router<Api>) -> Self {
        Self { routes: change(self.routes), ..self }
    }
}

/// Responds with 404 to a path that has no route.
pub(super) async fn not_found() -> HttpRefusal {
    ErrorCode::NotFound.into()
}
