//! Every route of the listeners, by area: the API of an environment, and the operators' listener.

use axum::{Router, middleware, routing::get};
use parcelo_types::{ErrorCode, Operation};
use url::Url;

use super::{
    Api, HttpRefusal,
    area::{AddressLimit, Area, Policy, Principal, not_found},
    carriers, health, labels, legacy, manifests,
    middleware::{AreaMiddleware, area_middleware},
    openapi, orders, parcels, public, sandbox, tracking,
};
#[cfg(feature = "server")]
use super::{admin, dashboard, metrics, swagger};

/// Returns the routes of one environment's API.
pub fn router(api: Api) -> Router {
    router_with_layer(api, |routes| routes)
}

/// Returns the same routes, with a layer between the middleware and the handlers.
pub(crate) fn router_with_layer(api: Api, between: impl Fn(Router<Api>) -> Router<Api>) -> Router {
    let areas =
        [api_v1(), legacy::area(), carrier_api(), public::area(), probes(), keyless_routes(&api)];
    let areas = areas.map(|area| area.map_routes(&between));
    assemble(api.environment.code(), areas, api)
}

/// The name of the operators' listener in logs and metrics.
#[cfg(feature = "server")]
pub(crate) const OPERATORS: &str = "operators";

/// Returns the routes of the operators' listener: the dashboard, the admin API, probes and metrics.
#[cfg(feature = "server")]
pub fn admin_router(api: Api) -> Router {
    let metrics =
        Area::new(Policy::open(AddressLimit::Unlimited)).route(metrics::PATH, get(metrics::scrape));
    let rest = Area::new(Policy::open(AddressLimit::Operators))
        .route("/", get(dashboard::redirect))
        .route(openapi::PATH, openapi::admin_route())
        .map_routes(|routes| routes.fallback(not_found));
    let areas = [dashboard::area(), admin::area(&api), probes(), metrics, rest];
    assemble(OPERATORS, areas, api)
}

/// Returns the area of the API's version 1.
fn api_v1() -> Area {
    Area::new(Policy::json(Principal::ApiKey(None)))
        .with_fallback_under("/api")
        .operation(Operation::CreateOrder, orders::create)
        .operation(Operation::VoidOrders, orders::void)
        .operation(Operation::SubmitManifest, manifests::submit)
        .operation(Operation::GetManifest, manifests::get)
        .operation(Operation::GetTracking, tracking::get)
        .operation(Operation::BatchTracking, tracking::batch)
        .operation(Operation::GetLabel, labels::metadata)
        .operation(Operation::DownloadLabel, labels::download)
        .operation(Operation::BatchLabels, labels::batch)
        .operation(Operation::DownloadInvoice, labels::invoice)
        .operation(Operation::ReprintLabel, labels::reprint)
        .operation(Operation::Health, health::check_key)
        .operation(Operation::ListParcels, parcels::list)
        .operation(Operation::ResetSandbox, sandbox::reset)
}

fn carrier_api() -> Area {
    Area::new(Policy::json(Principal::CarrierKey))
        .with_fallback_under("/carrier")
        .operation(Operation::PushCarrierEvents, carriers::push)
}

/// Returns the liveness and readiness probes, which every listener has.
fn probes() -> Area {
    Area::new(Policy::open(AddressLimit::Unlimited))
        .route(health::LIVE, get(health::check_liveness))
        .route(health::READY, get(health::check_readiness))
}

/// Returns the routes that need no key: label files behind signed links, and documentation.
fn keyless_routes(api: &Api) -> Area {
    let files = format!("{}/{{file}}", labels_path(api));
    let area = Area::new(Policy::open(AddressLimit::Unauthenticated))
        .route(&files, get(labels::download_linked))
        .route(openapi::PATH, openapi::route())
        .route(legacy::MIGRATION, get(legacy::migration))
        .map_routes(|routes| routes.fallback(not_found));
    #[cfg(feature = "server")]
    let area = area.merge(swagger::routes());
    area
}

/// Merges all areas into one router, each behind the middleware with its policy.
fn assemble(listener: &'static str, areas: impl IntoIterator<Item = Area>, api: Api) -> Router {
    let behind_middleware = |Area { policy, routes }: Area| {
        let area = AreaMiddleware { api: api.clone(), listener, policy };
        routes
            .method_not_allowed_fallback(|| async {
                HttpRefusal::from(ErrorCode::MethodNotAllowed)
            })
            .layer(middleware::from_fn_with_state(area, area_middleware))
    };
    let all = areas.into_iter().map(behind_middleware);
    all.fold(Router::new(), Router::merge).with_state(api)
}

/// Returns the path of label files. If their address begins with the API's, it is the rest of the address, because
/// the proxy strips the API's own path; on another host it is the whole path.
fn labels_path(api: &Api) -> String {
    let site = api.service.settings().site(api.environment);
    let suffix = site.labels_base_url.strip_prefix(site.base_url());
    if let Some(path) = suffix.filter(|path| path.is_empty() || path.starts_with('/')) {
        return path.to_owned();
    }
    let path =
        Url::parse(&site.labels_base_url).map(|url| url.path().trim_end_matches('/').to_owned());
    path.unwrap_or_default()
}

/// Returns routes that anyone may call, behind the middleware.
#[cfg(test)]
pub(super) fn open_routes(routes: Router<Api>, api: Api) -> Router {
    let area = Area::new(Policy::open(AddressLimit::Unauthenticated));
    let area = area.merge(routes).map_routes(|routes| routes.fallback(not_found));
    assemble("sandbox", [area], api)
}

#[cfg(feature = "server")]
#[cfg(test)]
mod tests {
    use axum::{
        body::Body,
        http::{Request, StatusCode},
    };
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::{http::client_address::PeerAddress, mock::MockServer};

    async fn get_form(routes: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).header("accept", "text/html");
        let request = request.body(Body::empty()).unwrap();
        let response = routes.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = String::from_utf8(body.to_vec()).unwrap();
        let form = match body.get(..9) {
            Some("<!doctype") => "page",
            _ if body.contains("\"ok\":false") => "legacy",
            _ if body.contains("\"success\":false") => "json",
            _ => "other",
        };
        (status, form.to_owned())
    }

    #[tokio::test]
    async fn a_bad_host_at_the_operators_listener_counts_only_there() {
        let server = MockServer::builder().rate_limits(true).start().await;
        let remaining = async |routes: Router, path: &str, host: &str| {
            let mut request = Request::get(path).header("host", host).body(Body::empty()).unwrap();
            request.extensions_mut().insert(PeerAddress([192, 0, 2, 1].into()));
            let response = routes.oneshot(request).await.unwrap();
            let remaining =
                response.headers()["x-ratelimit-remaining"].to_str().unwrap().to_owned();
            (response.status().as_u16(), remaining.parse::<u32>().unwrap())
        };
        let (_, all) = remaining(router(server.api()), "/nowhere", "a.test").await;
        for path in ["/nowhere", "/admin/v1/keys", "/metrics"] {
            let (status, _) = remaining(admin_router(server.api()), path, "x@a.test").await;
            assert_eq!(status, 400, "{path}");
        }
        let next = remaining(router(server.api()), "/nowhere", "a.test").await;
        assert_eq!(next, (404, all - 1));
    }

    #[tokio::test]
    async fn an_unknown_path_gets_the_policy_of_its_prefix() {
        let server = MockServer::start().await;
        let (service, operators) = (router(server.api()), admin_router(server.api()));
        let table = [
            (&service, "/", 200, "page"),
            (&service, "/nowhere", 404, "json"),
            (&service, "/apix", 404, "json"),
            (&service, "/api", 401, "json"),
            (&service, "/api/", 401, "json"),
            (&service, "/api//", 401, "json"),
            (&service, "/api/v1/nowhere", 401, "json"),
            (&service, "/api/v1/orders/create", 401, "json"),
            (&service, "/api/ordersx", 401, "json"),
            (&service, "/api/orders", 401, "legacy"),
            (&service, "/api/orders/", 401, "legacy"),
            (&service, "/api/orders/X/nowhere", 401, "legacy"),
            (&service, "/api/tracking/", 401, "legacy"),
            (&service, "/api/labels", 401, "legacy"),
            (&service, "/api/labels/", 401, "legacy"),
            (&service, "/carrier", 401, "json"),
            (&service, "/carrier/", 401, "json"),
            (&service, "/carrier/v1/nowhere", 401, "json"),
            (&service, "/track", 200, "page"),
            (&service, "/track/", 200, "page"),
            (&service, "/track/X/nowhere", 404, "page"),
            (&service, "/tracks", 404, "json"),
            (&service, "/dashboard", 404, "json"),
            (&operators, "/nowhere", 404, "json"),
            (&operators, "/api/v1/health", 404, "json"),
            (&operators, "/admin/v1", 404, "json"),
            (&operators, "/admin/v1/nowhere", 404, "json"),
            (&operators, "/admin/v1/keys", 401, "json"),
            (&operators, "/dashboard/nowhere", 404, "page"),
            (&operators, "/dashboard/keys/", 404, "page"),
            (&operators, "/dashboards", 404, "json"),
        ];
        for (routes, path, status, form) in table {
            let (response_status, shown) = get_form(routes, path).await;
            assert_eq!((response_status.as_u16(), shown.as_str()), (status, form), "{path}");
        }
    }
}
