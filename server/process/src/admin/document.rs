//! The OpenAPI document of the admin API, assembled from the `description` module of each group of handlers.

use parcelo_domain::webhooks::target::MAX_URL_CHARS;
use parcelo_service::http::openapi::{
    call::{self, Call},
    operation_doc::{self, QueryParameter, Schemas, add_schema, schema_name, text_schema},
};
use parcelo_types::{
    ErrorCode::{
        AdminAuthFailed, InternalError, MethodNotAllowed, NotFound, PayloadTooLarge,
        RateLimitExceeded, RequestTimeout, ServiceUnavailable, UnsupportedMediaType,
        ValidationFailed,
    },
    internal::{ErrorEnvelope, Meta},
};
use parcelo_wire::WebhookRequest;
use utoipa::openapi::{
    ComponentsBuilder, OpenApi, OpenApiBuilder,
    security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
};

use super::{PATH_PREFIX, accounts, carriers, keys, webhooks};

/// The query parameter that names the account.
pub(super) const ACCOUNT: QueryParameter =
    QueryParameter("account", "The account's name; `default` when absent.", text_schema);

const TOKEN: &str = "adminToken";

const ABOUT: &str = "For the operator's programs: keys, webhooks, carriers and accounts. It is served on \
    the operators' listener only; every call needs an admin token (`adm_…`).";

/// The groups of calls, with their descriptions.
const TAGS: &[(&str, &str)] = &[
    ("keys", "API keys."),
    ("carriers", "Carriers and their keys."),
    ("carrier-exceptions", "What carriers reported that could not be true."),
    ("accounts", "Accounts."),
    ("webhooks", "Where accounts are sent events, and what was sent."),
];

/// Returns the OpenAPI document of the admin API.
pub(super) fn document() -> OpenApi {
    let mut schemas = Schemas::new();
    add_schema::<Meta>(&mut schemas);
    add_schema::<ErrorEnvelope>(&mut schemas);
    let calls = [
        keys::description::calls(),
        carriers::description::calls(),
        accounts::description::calls(),
        webhooks::description::calls(),
    ];
    let calls = calls.into_iter().flatten().map(complete);
    let paths = call::paths(calls, PATH_PREFIX, &mut schemas);
    for (_, schema) in
        schemas.iter_mut().filter(|(named, _)| *named == schema_name::<WebhookRequest>())
    {
        parcelo_wire::limit_length(schema, "url", MAX_URL_CHARS);
    }
    let token = SecurityScheme::Http(HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build());
    let components = ComponentsBuilder::new().schemas_from_iter(schemas);
    OpenApiBuilder::new()
        .info(operation_doc::document_info("Parcelo admin", ABOUT))
        .servers(Some([operation_doc::server_entry("/")]))
        .tags(Some(operation_doc::tag_entries(TAGS)))
        .paths(paths)
        .components(Some(components.security_scheme(TOKEN, token).build()))
        .build()
}

/// Adds what all calls of the admin API have in common.
fn complete(mut call: Call) -> Call {
    let mut refusals = vec![
        AdminAuthFailed,
        RateLimitExceeded,
        MethodNotAllowed,
        InternalError,
        ServiceUnavailable,
    ];
    if call.request.is_some() {
        refusals.extend([PayloadTooLarge, RequestTimeout, UnsupportedMediaType]);
    }
    if call.request.is_some() || !call.query.is_empty() {
        refusals.push(ValidationFailed);
    }
    if call.path.contains("{environment}") || call.query.len() > 1 {
        refusals.push(NotFound);
    }
    refusals.extend(&call.refusals);
    call.tag = call.path.split('/').nth(1).unwrap_or_default();
    (call.about, call.refusals, call.security) = ("Needs an admin token.", refusals, Some(TOKEN));
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `PARCELO_BLESS=1` writes the document that the code describes.
    #[test]
    fn the_checked_in_document_matches_the_code() {
        let written = serde_json::to_value(document()).unwrap();
        operation_doc::assert_checked_in(
            "docs/openapi-admin.json",
            &written,
            crate::admin::DOCUMENT,
        );
    }
}
