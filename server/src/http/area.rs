//! An area of a listener: routes with one policy. The policy says who may call, what is counted and how
//! responses look, and holds for the paths of the area's folders that have no route, too.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    handler::Handler,
    response::Response,
    routing::{MethodFilter, MethodRouter, any, on},
};
use parcelo::{ErrorCode, Operation, model::Method};

use super::{Api, Refused};
use crate::{clock::Millis, domain::Refusal, service::Caller};

/// What the middleware does with each request to an area.
#[derive(Clone)]
pub(super) struct Policy {
    /// Who may call.
    pub(super) principal: Principal,
    /// How responses look.
    pub(super) style: ResponseStyle,
    /// How metrics count a route that is not in the table of operations.
    pub(super) metrics_name: &'static str,
}

/// Who may call an area, and whose requests are counted.
#[derive(Clone, Copy)]
pub(super) enum Principal {
    /// The holder of an API key, counted by key; a further check may refuse the caller.
    ApiKey(Option<CallerCheck>),
    /// The holder of a carrier key, counted by key.
    CarrierKey,
    /// Anyone, counted by address.
    Anyone(AddressLimit),
}

/// Decides about a caller whose key is valid and within its limit.
pub(super) type CallerCheck = fn(&Api, &Caller, Millis) -> Result<(), Refusal>;

/// Which limit counts the requests of an address.
#[derive(Clone, Copy)]
pub(super) enum AddressLimit {
    /// None: orchestrators probe as often as they like, and a limit would look like an outage.
    Unlimited,
    /// That of callers without a valid key.
    Unauthenticated,
    /// That of public pages.
    PublicPages,
    /// That of the operators' listener, counted apart from the public ones so that no stranger's
    /// requests can lock an operator out.
    Operators,
}

/// How the responses of an area look.
#[derive(Clone)]
pub(super) enum ResponseStyle {
    /// As those of `/api/v1`: a refusal is a JSON envelope.
    Json,
    /// In the area's own form.
    Custom(ResponseStyler),
}

/// Reads from a request how its response is to look, leaves that for the handler among the request's
/// extensions, and returns what is done with the response.
pub(super) type ResponseStyler = Arc<dyn Fn(&Api, &mut Request) -> FinishResponse + Send + Sync>;

/// Gives a response its final form; a refusal that it leaves alone becomes the JSON envelope.
pub(super) type FinishResponse = Box<dyn FnOnce(Response) -> Response + Send>;

impl Policy {
    /// Anyone may call, and refusals are JSON.
    pub(super) const fn open(limit: AddressLimit) -> Self {
        Self::json(Principal::Anyone(limit))
    }

    /// Refusals are JSON.
    pub(super) const fn json(principal: Principal) -> Self {
        Self { principal, style: ResponseStyle::Json, metrics_name: "Other" }
    }

    /// Whether it is for people who follow a parcel.
    pub(super) const fn is_public_page(&self) -> bool {
        matches!(self.principal, Principal::Anyone(AddressLimit::PublicPages))
    }

    /// Whether machines call it all the time: probes and scrapes, which are not limited.
    pub(super) const fn is_probed(&self) -> bool {
        matches!(self.principal, Principal::Anyone(AddressLimit::Unlimited))
    }
}

/// Routes with their policy.
pub(super) struct Area {
    pub(super) policy: Policy,
    pub(super) routes: Router<Api>,
}

impl Area {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, routes: Router::new() }
    }

    /// Claims the paths under a prefix that have no route: the policy comes before their 404.
    pub(super) fn path_prefix(self, prefix: &str) -> Self {
        let area = self.map_routes(|routes| routes.nest(prefix, Router::new().fallback(not_found)));
        // To a nested router, the prefix with a slash and nothing behind it is not one of its paths.
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

/// The answer for a path that has no route.
pub(super) async fn not_found() -> Refused {
    ErrorCode::NotFound.into()
}
