//! Every route of the operators' listener.

use axum::{Router, routing::get};
use parcelo_service::http::{
    Api,
    area::{AddressLimit, Area, Policy, not_found},
    openapi,
    routes::{assemble, probes},
};

use super::{admin, dashboard, metrics};

/// The name of the operators' listener in logs and metrics.
pub const OPERATORS: &str = "operators";

/// Returns the routes of the operators' listener: the dashboard, the admin API, probes and metrics.
pub fn admin_router(api: Api) -> Router {
    let metrics =
        Area::new(Policy::open(AddressLimit::Unlimited)).route(metrics::PATH, get(metrics::scrape));
    let rest = Area::new(Policy::open(AddressLimit::Operators))
        .route("/", get(dashboard::redirect))
        .route(openapi::PATH, openapi::fixed_route(admin::DOCUMENT))
        .map_routes(|routes| routes.fallback(not_found));
    let areas = [dashboard::area(), admin::area(&api), probes(), metrics, rest];
    assemble(OPERATORS, areas, api)
}

#[cfg(test)]
mod tests {
    use axum::{
        body::Body,
        http::{Request, StatusCode},
    };
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use parcelo_service::{
        http::{client_address::PeerAddress, router},
        mock::MockServer,
    };

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
