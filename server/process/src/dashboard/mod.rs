//! The dashboard, `/dashboard` on the operators' listener: pages for the owners of accounts. This module renders the
//! pages, which need no scripts; the service does the work.

mod auth;
mod chart;
mod context;
mod delivery;
mod exceptions;
mod fields;
mod flash;
mod frame;
mod interrupted;
mod key_form;
mod keys;
mod labels;
mod legacy;
mod mails;
mod overview;
mod pagination;
mod parcel;
mod parcels;
mod parcels_csv;
mod search;
mod secret_page;
mod settings;
mod sign_in;
mod sign_in_form;
#[cfg(test)]
mod tests;
mod webhooks;

use axum::{
    Router,
    http::header,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};
use parcelo_service::http::area::{
    AddressLimit, Area, Policy, Principal, ResponseStyle, not_found,
};

/// Path prefix of the dashboard's pages.
const PATH_PREFIX: &str = "/dashboard";

/// The style sheet of the public page, with the rules that only the dashboard needs.
const STYLE: &str = concat!(
    include_str!("../../templates/track.css"),
    include_str!("../../templates/dashboard/dashboard.css")
);

const ICON: &str = include_str!("../../templates/dashboard/icon.svg");

/// Redirects a browser to the dashboard.
pub(super) async fn redirect() -> Redirect {
    Redirect::to(PATH_PREFIX)
}

/// Returns the dashboard's routes. Refusals are pages too, even for unknown paths.
pub(super) fn area() -> Area {
    let policy = Policy {
        principal: Principal::Anyone(AddressLimit::Operators),
        style: ResponseStyle::Custom(context::response_styler()),
        metrics_name: "Dashboard",
    };
    Area::new(policy)
        .map_routes(|routes| routes.nest(PATH_PREFIX, Router::new().fallback(not_found)))
        .route("/dashboard", get(overview::show))
        .route("/dashboard/", get(redirect))
        .route(
            "/dashboard/style.css",
            get(|| async { static_file("text/css; charset=utf-8", STYLE) }),
        )
        .route("/dashboard/icon.svg", get(|| async { static_file("image/svg+xml", ICON) }))
        .route("/dashboard/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route("/dashboard/sign-out", post(sign_in::sign_out))
        .route("/dashboard/keys", get(keys::list).post(keys::create))
        .route("/dashboard/keys/new", get(keys::new_form))
        .route("/dashboard/keys/{id}/rotate", get(keys::confirm_rotation).post(keys::rotate))
        .route("/dashboard/keys/{id}/revoke", get(keys::confirm_revocation).post(keys::revoke))
        .route("/dashboard/webhooks", get(webhooks::redirect_to_last_environment))
        .route("/dashboard/webhooks/{environment}", get(webhooks::show).post(webhooks::set))
        .route(
            "/dashboard/webhooks/{environment}/{action}",
            get(webhooks::redirect_to_webhook_page).post(webhooks::perform_action),
        )
        .route("/dashboard/webhooks/{environment}/events/{event}", get(delivery::show))
        .route("/dashboard/parcels", get(parcels::list).post(parcels::search))
        .route("/dashboard/parcels.csv", get(parcels_csv::download))
        .route("/dashboard/parcels/{file}", get(labels::download_page_labels))
        .route(
            "/dashboard/manifests/{environment}/{awb}/{file}",
            get(labels::download_manifest_labels),
        )
        .route(
            "/dashboard/parcels/{environment}/{number}",
            get(parcel::show).post(parcel::perform_action),
        )
        .route("/dashboard/parcels/{environment}/{number}/{file}", get(parcel::download_document))
        .route("/dashboard/settings", get(settings::show).post(settings::set))
        .route("/dashboard/settings/password", post(settings::set_password))
        .route("/dashboard/settings/mails", post(mails::set))
        .route("/dashboard/exceptions", get(exceptions::list))
        .route("/dashboard/legacy", get(legacy::list))
}

/// Responds with a file that is embedded in the program.
fn static_file(kind: &'static str, content: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], content).into_response()
}
