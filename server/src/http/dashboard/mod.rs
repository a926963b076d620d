//! The dashboard, `/dashboard` on the operators' listener: pages for an account's owner. Pages
//! are written here and need no script; what they do is done by the service.

mod auth;
mod chart;
mod context;
mod exceptions;
mod flash;
mod frame;
mod key_form;
mod keys;
mod legacy;
mod overview;
mod pagination;
mod parcels;
mod search;
mod sign_in;
#[cfg(test)]
mod tests;
mod webhooks;

use axum::{
    Router,
    http::header,
    response::{IntoResponse, Redirect, Response},
    routing::{get, post},
};

use super::area::{AddressLimit, Area, Policy, Principal, ResponseStyle, not_found};

/// Where it is, with its pages below.
const FOLDER: &str = "/dashboard";

/// The public page's colours and parts, and what only the dashboard has.
const STYLE: &str = concat!(
    include_str!("../../../templates/track.css"),
    include_str!("../../../templates/dashboard/dashboard.css")
);

const ICON: &str = include_str!("../../../templates/dashboard/icon.svg");

/// Sends a browser to the dashboard.
pub(super) async fn redirect() -> Redirect {
    Redirect::to(FOLDER)
}

/// The dashboard's pages. Refusals are pages too, also those of paths that lead nowhere.
pub(super) fn area() -> Area {
    let policy = Policy {
        principal: Principal::Anyone(AddressLimit::Operators),
        style: ResponseStyle::Custom(context::style()),
        metrics_name: "Dashboard",
    };
    Area::new(policy)
        .map_routes(|routes| routes.nest(FOLDER, Router::new().fallback(not_found)))
        .route("/dashboard", get(overview::show))
        .route("/dashboard/", get(redirect))
        .route("/dashboard/style.css", get(|| async { file("text/css; charset=utf-8", STYLE) }))
        .route("/dashboard/icon.svg", get(|| async { file("image/svg+xml", ICON) }))
        .route("/dashboard/sign-in", get(sign_in::page).post(sign_in::enter))
        .route("/dashboard/sign-out", post(sign_in::leave))
        .route("/dashboard/keys", get(keys::list).post(keys::create))
        .route("/dashboard/keys/new", get(keys::blank))
        .route("/dashboard/keys/{id}/rotate", get(keys::ask_rotation).post(keys::rotate))
        .route("/dashboard/keys/{id}/revoke", get(keys::ask).post(keys::revoke))
        .route("/dashboard/webhooks", get(|| async { Redirect::to(webhooks::FIRST) }))
        .route("/dashboard/webhooks/{environment}", get(webhooks::show).post(webhooks::set))
        .route("/dashboard/webhooks/{environment}/{action}", post(webhooks::act))
        .route("/dashboard/parcels", get(parcels::list).post(parcels::search))
        .route("/dashboard/parcels/{environment}/{number}", get(parcels::show))
        .route("/dashboard/parcels/{environment}/{number}/{file}", get(parcels::label))
        .route("/dashboard/exceptions", get(exceptions::list))
        .route("/dashboard/legacy", get(legacy::list))
}

fn file(kind: &'static str, content: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], content).into_response()
}
