//! An area of a listener: routes with one policy. The policy names the callers, the limit and the format of responses.
//! It also applies to paths under the area's prefixes that have no route.

use std::{fmt, sync::Arc};

use axum::{
    Router,
    extract::Request,
    handler::Handler,
    response::Response,
    routing::{MethodFilter, MethodRouter, any, on},
};
use parcelo_domain::{Millis, Refusal};
use parcelo_types::{ErrorCode, Operation, internal::Method};

use super::{Api, HttpRefusal};
use crate::service::Caller;

/// The middleware's rules for requests to an area.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The callers that are admitted, and the subject of their rate limit.
    pub principal: Principal,
    /// The format of responses.
    pub style: ResponseStyle,
    /// The name in metrics of a route that is not in the table of operations.
    pub metrics_name: &'static str,
}

/// The callers of an area, and the subject of its rate limit.
#[derive(Debug, Clone, Copy)]
pub enum Principal {
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
#[derive(Debug, Clone, Copy)]
pub enum AddressLimit {
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
pub enum ResponseStyle {
    /// The format of `/api/v1`: a refusal is a JSON envelope.
    Json,
    /// The area's own format.
    Custom(ResponseStyler),
}

/// A function that prepares the rendering of a response from its request. It may leave data for the handler in the
/// request's extensions, and returns the function that finishes the response.
pub type ResponseStyler = Arc<dyn Fn(&Api, &mut Request) -> FinishResponse + Send + Sync>;

/// A function that gives a response its final form. A refusal that it leaves unchanged becomes the JSON envelope.
pub type FinishResponse = Box<dyn FnOnce(Response) -> Response + Send>;

impl fmt::Debug for ResponseStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "Json",
            Self::Custom(_) => "Custom",
        })
    }
}

impl Policy {
    /// Returns a policy that admits anyone, with JSON refusals.
    pub const fn open(limit: AddressLimit) -> Self {
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
#[derive(Debug)]
pub struct Area {
    pub(super) policy: Policy,
    pub(super) routes: Router<Api>,
}

impl Area {
    /// Creates an area without routes.
    pub fn new(policy: Policy) -> Self {
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

    /// Adds a route outside the table of operations.
    #[must_use]
    pub fn route(self, path: &str, handlers: MethodRouter<Api>) -> Self {
        self.map_routes(|routes| routes.route(path, handlers))
    }

    /// Changes the routes as a whole.
    #[must_use]
    pub fn map_routes(self, change: impl FnOnce(Router<Api>) -> Router<Api>) -> Self {
        Self { routes: change(self.routes), ..self }
    }
}

/// Responds with 404 to a path that has no route.
pub async fn not_found() -> HttpRefusal {
    ErrorCode::NotFound.into()
}
