//! Every route of an environment's API, by area. Those of the operators' listener are in `parcelo-process`.

use std::sync::Arc;

use axum::{Router, routing::get};
use parcelo_types::{ErrorCode, Operation};
use url::Url;

#[cfg(feature = "docs")]
use super::swagger;
use super::{
    Api, HttpRefusal,
    area::{AddressLimit, Area, Policy, Principal, not_found},
    carriers, health, labels, legacy, manifests,
    middleware::{AreaLayer, AreaMiddleware},
    openapi, orders, parcels, public, sandbox, tracking,
};

/// Returns the routes of one environment's API.
pub fn router(api: Api) -> Router {
    router_with_layer(api, |routes| routes)
}

/// Returns the same routes, with a layer between the middleware and the handlers.
pub fn router_with_layer(api: Api, between: impl Fn(Router<Api>) -> Router<Api>) -> Router {
    let areas =
        [api_v1(), legacy::area(), carrier_api(), public::area(), probes(), keyless_routes(&api)];
    let areas = areas.map(|area| area.map_routes(&between));
    assemble(api.environment.code(), areas, api)
}

/// Returns the area of the API's version 1.
fn api_v1() -> Area {
    Area::new(Policy::json(Principal::ApiKey(None)))
        .with_fallback_under("/api")
        .operation(Operation::CreateOrder, orders::create)
        .operation(Operation::VoidOrders, orders::void)
        .operation(Operation::GetOrder, orders::get)
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
pub fn probes() -> Area {
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
    #[cfg(feature = "docs")]
    let area = area.map_routes(|routes| routes.merge(swagger::routes()));
    area
}

/// Merges all areas into one router, each behind the middleware with its policy.
pub fn assemble(listener: &'static str, areas: impl IntoIterator<Item = Area>, api: Api) -> Router {
    let behind_middleware = |Area { policy, routes }: Area| {
        let area = AreaMiddleware { api: api.clone(), listener, policy };
        routes
            .method_not_allowed_fallback(|| async {
                HttpRefusal::from(ErrorCode::MethodNotAllowed)
            })
            .layer(AreaLayer(Arc::new(area)))
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
#[cfg(any(test, feature = "test-util"))]
pub fn open_routes(routes: Router<Api>, api: Api) -> Router {
    let area = Area::new(Policy::open(AddressLimit::Unauthenticated));
    let area = area.map_routes(|all| all.merge(routes).fallback(not_found));
    assemble("sandbox", [area], api)
}
