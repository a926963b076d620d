//! Webhooks: one for each environment, with its deliveries.

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    response::{Redirect, Response},
};
use parcelo_domain::{
    Millis, Tenant,
    audit::Actor,
    ids::public_id,
    webhooks::{
        DeliveryError, DeliveryStatus, DisabledBy, Endpoint, LoggedDelivery, WebhookEventKind,
        WebhookEventKinds,
    },
};
use parcelo_service::{
    http::{Api, HttpRefusal, RequestIds, body},
    service::{EndpointError, EndpointRequest, Endpoints},
};
use parcelo_store::{EventsToReplay, StoreError};
use parcelo_types::{Environment, ErrorCode, Language};
use ulid::Ulid;

use super::{
    auth::{SignedInUser, SubmittedForm},
    context::{PageContext, redirect_with_flash},
    fields::FormFields,
    flash::FlashMessage,
    frame::{DisplayTime, Frame, Section, render_invalid_form, render_page},
    pagination::{self, Pagination},
    secret_page,
};

/// Number of events on a page of the log.
const EVENTS_PER_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "dashboard/webhook.html")]
struct WebhookPage {
    frame: Frame,
    environment: Environment,
    hook: Option<WebhookView>,
    url: String,
    kinds: Vec<EventKindChoice>,
    fault: Option<&'static str>,
    log: Vec<DeliveryRow>,
    pages: Pagination,
    has_undelivered: bool,
}

/// A webhook that is set up.
struct WebhookView {
    /// The token that identifies the secret to replace.
    secret_token: String,
    disabled: Option<&'static str>,
    created: DisplayTime,
    old_until: Option<DisplayTime>,
}

/// A kind of event that can be subscribed to.
struct EventKindChoice {
    code: String,
    description: &'static str,
    is_selected: bool,
}

/// An event and its delivery.
pub(super) struct DeliveryRow {
    pub(super) id: String,
    pub(super) kind: String,
    number: Option<String>,
    pub(super) status: &'static str,
    pub(super) tone: &'static str,
    pub(super) created: DisplayTime,
    due: Option<DisplayTime>,
    can_be_replayed: bool,
    attempts: Vec<AttemptRow>,
}

struct AttemptRow {
    number: u32,
    at: DisplayTime,
    status: Option<u16>,
    error: Option<String>,
    millis: i64,
    answer: String,
}

/// The state from which the page is rendered.
struct PageState {
    environment: Environment,
    url: String,
    kinds: WebhookEventKinds,
    fault: Option<&'static str>,
    /// Number of the log's page.
    page: u32,
}

/// Redirects to the webhook of the last viewed environment.
pub(super) async fn redirect_to_last_environment(context: PageContext) -> Redirect {
    Redirect::to(&address(context.environment))
}

/// Shows a webhook with its deliveries.
pub(super) async fn show(
    State(api): State<Api>,
    Path(environment): Path<String>,
    RawQuery(query): RawQuery,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let environment = parse_environment(&environment)?;
    let number =
        pagination::requested_page(&FormFields::parse(query.unwrap_or_default().as_bytes()));
    let hook = find(&api, user.tenant(environment)).await?;
    let (url, kinds) = hook.as_ref().map(|hook| (hook.url.clone(), hook.kinds)).unwrap_or_default();
    let state = PageState { environment, url, kinds, fault: None, page: number };
    render_page(&load_page(&api, &user, state).await?)
}

/// Redirects to the page of a webhook. The browser may request the address of a button with GET, for example on reload.
pub(super) async fn redirect_to_webhook_page(
    Path((environment, _)): Path<(String, String)>,
) -> Result<Redirect, HttpRefusal> {
    Ok(Redirect::to(&address(parse_environment(&environment)?)))
}

/// Sets a webhook up, or changes it. The secret of a new one is shown.
pub(super) async fn set(
    State(api): State<Api>,
    Path(environment): Path<String>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let environment = parse_environment(&environment)?;
    let (tenant, address) = (user.tenant(environment), address(environment));
    let url = fields.text("url").trim().to_owned();
    let kinds = selected_kinds(&fields).ok_or(ErrorCode::NotFound)?;
    let allowed_hosts = api.service.settings().allowed_hosts(environment);
    let (request, now) = (EndpointRequest { tenant, url, kinds, allowed_hosts }, api.service.now());
    match api.service.endpoints(Actor::Session).upsert(request.clone(), now).await {
        Ok((endpoint, true)) => {
            secret_page::show(user, (None, &endpoint.secret.expose()), None, &address)
        }
        Ok((_, false)) => Ok(redirect_with_flash(&address, FlashMessage::WebhookSaved)),
        Err(EndpointError::Address(invalid)) => {
            let fault = Some(invalid.text(user.language()));
            let state = PageState { environment, url: request.url, kinds, fault, page: 1 };
            render_invalid_form(&load_page(&api, &user, state).await?)
        }
        Err(error) => Err(to_http_refusal(error)),
    }
}

/// Performs the action of a button.
pub(super) async fn perform_action(
    State(api): State<Api>,
    Path((environment, action)): Path<(String, String)>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let environment = parse_environment(&environment)?;
    let (tenant, now) = (user.tenant(environment), api.service.now());
    let trace = RequestIds::current_trace();
    let endpoints = Endpoints { trace, ..api.service.endpoints(Actor::Session) };
    let address = address(environment);
    let result = match action.as_str() {
        "test" => endpoints.send_test(tenant, now).await.map(|_| FlashMessage::TestEventSent),
        "enable" => endpoints.enable(tenant).await.map(|_| FlashMessage::WebhookEnabled),
        "remove" => endpoints.remove(tenant).await.map(|_| FlashMessage::WebhookRemoved),
        "disable" => endpoints.disable(tenant).await.map(|_| FlashMessage::WebhookDisabled),
        "replay" => {
            let events = events_to_replay(fields.text("event")).ok_or(ErrorCode::NotFound)?;
            endpoints.replay(tenant, events, now).await.map(FlashMessage::EventsReplayed)
        }
        "rotate" => {
            let is_current = |secret: &[u8]| api.service.is_form_token(secret, fields.text("seen"));
            match endpoints.replace_secret(tenant, is_current, now).await {
                Ok(Some(secret)) => {
                    return secret_page::show(user, (None, &secret.expose()), None, &address);
                }
                other => other.map(|_| FlashMessage::SecretAlreadyReplaced),
            }
        }
        _ => return Err(ErrorCode::NotFound.into()),
    };
    Ok(redirect_with_flash(
        &address,
        result.or_else(flash_for_outdated_page).map_err(to_http_refusal)?,
    ))
}

/// Loads the webhook and a page of its log.
async fn load_page(
    api: &Api,
    user: &SignedInUser,
    state: PageState,
) -> Result<WebhookPage, HttpRefusal> {
    let PageState { environment, mut url, kinds: mut chosen, fault, page } = state;
    let (tenant, now) = (user.tenant(environment), api.service.now());
    let language = user.language();
    let hook = find(api, tenant).await?;
    let is_on = hook.as_ref().is_some_and(|hook| hook.disabled.is_none());
    let offset = pagination::offset(page, EVENTS_PER_PAGE);
    let mut logged = api.service.webhook_deliveries(tenant, offset, EVENTS_PER_PAGE + 1).await?;
    let has_older = logged.len() > EVENTS_PER_PAGE;
    logged.truncate(EVENTS_PER_PAGE);
    if let Some(form) = &user.context.restored_form {
        form.text("url").clone_into(&mut url);
        chosen = selected_kinds(form).unwrap_or(chosen);
    }
    let secret_token = |hook: &Endpoint| api.service.form_token(hook.secret.as_bytes());
    Ok(WebhookPage {
        frame: user.frame(Section::Webhooks),
        environment,
        hook: hook.map(|hook| WebhookView::new(&hook, secret_token(&hook), (now, language))),
        url,
        kinds: event_kind_choices(chosen, language),
        fault,
        pages: Pagination::new(page, has_older, |page| {
            pagination::address(&address(environment), page)
        }),
        has_undelivered: is_on
            && (api.service.has_undelivered_events(tenant).await?
                || api.service.store().failing_since(tenant).await?.is_some()),
        log: logged.iter().map(|event| DeliveryRow::new(event, is_on, language)).collect(),
    })
}

impl WebhookView {
    fn new(endpoint: &Endpoint, secret_token: String, (now, language): (Millis, Language)) -> Self {
        let old = endpoint.old.first().map(|(_, until)| *until).filter(|until| now < *until);
        Self {
            secret_token,
            disabled: endpoint
                .disabled
                .map(|by| disabled_reason(by, endpoint.tenant.environment, language)),
            created: DisplayTime::from_millis(endpoint.created_at),
            old_until: old.map(DisplayTime::from_millis),
        }
    }
}

impl DeliveryRow {
    pub(super) fn new(event: &LoggedDelivery, is_on: bool, language: Language) -> Self {
        let (status_name, tone) = match event.delivery_status {
            DeliveryStatus::Waiting | DeliveryStatus::Ready => {
                (language.pick("Waiting", "En espera"), "moving")
            }
            DeliveryStatus::Delivered => (language.pick("Delivered", "Entregado"), "done"),
            DeliveryStatus::Failed => (language.pick("Failed", "Fallido"), "failed"),
            DeliveryStatus::Held => (language.pick("Held", "Retenido"), "waiting"),
        };
        let is_ready = event.delivery_status == DeliveryStatus::Ready;
        let is_pending = is_ready || event.delivery_status == DeliveryStatus::Waiting;
        let attempts = event.attempts.iter().map(|attempt| AttemptRow {
            number: attempt.number,
            at: DisplayTime::from_millis(attempt.at),
            status: attempt.status,
            error: attempt.error.as_deref().map(|error| delivery_error_text(error, language)),
            millis: attempt.millis,
            answer: String::from_utf8_lossy(&attempt.response).into_owned(),
        });
        Self {
            id: public_id("evt", event.event),
            kind: event.kind.to_wire().code().to_owned(),
            number: event.tracking_number.clone(),
            status: status_name,
            tone,
            created: DisplayTime::from_millis(event.created_at),
            due: event.due.filter(|_| is_pending).map(DisplayTime::from_millis),
            can_be_replayed: is_on && (!is_pending || (is_ready && !event.attempts.is_empty())),
            attempts: attempts.collect(),
        }
    }
}

/// Returns the kinds of events that can be subscribed to, with the selection.
fn event_kind_choices(kinds: WebhookEventKinds, language: Language) -> Vec<EventKindChoice> {
    let table = [
        (WebhookEventKind::ParcelCreated, "an order is created", "se cree un pedido"),
        (WebhookEventKind::ParcelVoided, "an order is voided", "se anule un pedido"),
        (WebhookEventKind::ManifestSubmitted, "a manifest is submitted", "se envíe un manifiesto"),
    ];
    let choice = |(kind, en, es): (WebhookEventKind, _, _)| EventKindChoice {
        code: kind.to_wire().code().to_owned(),
        description: language.pick(en, es),
        is_selected: kinds.contains(kind),
    };
    table.into_iter().map(choice).collect()
}

/// Returns the kinds that the form selects; `None` if one is invalid.
fn selected_kinds(fields: &FormFields) -> Option<WebhookEventKinds> {
    let test = WebhookEventKind::Test.to_wire();
    let codes: Vec<_> = fields.all("events").collect();
    if codes.contains(&test.code()) {
        return None;
    }
    WebhookEventKinds::from_codes(codes)
}

/// Parses the events to replay: all that were missed or wait for their next attempt, or one by its id.
fn events_to_replay(event: &str) -> Option<EventsToReplay> {
    if event.is_empty() {
        return Some(EventsToReplay::MissedSince(Millis(0)));
    }
    event.strip_prefix("evt_").and_then(|id| Ulid::from_string(id).ok()).map(EventsToReplay::One)
}

/// Translates the reason why there was no response. The log stores it in English.
fn delivery_error_text(error: &str, language: Language) -> String {
    let table = [
        (
            DeliveryError::NotAllowed,
            "la dirección no está permitida: los webhooks van a direcciones públicas, en producción por https",
        ),
        (
            DeliveryError::NotConnected,
            "no hubo conexión con el receptor: revise su nombre, puerto y certificado",
        ),
        (
            DeliveryError::Untrusted,
            "el certificado del receptor no es de confianza: ha vencido, es para otro nombre o le falta una parte de su cadena",
        ),
        (DeliveryError::TimedOut, "el receptor no respondió en 15 s"),
        (DeliveryError::Broken, "la conexión se cortó antes de la respuesta"),
        (DeliveryError::Unreadable, "el evento no se puede leer de la base de datos y no se envió"),
    ];
    let known = table.into_iter().find(|(reason, _)| reason.to_string() == error);
    known.map_or(error, |(_, spanish)| language.pick(error, spanish)).to_owned()
}

/// Returns the reason why nothing is sent, and what to do about it.
pub(super) fn disabled_reason(
    by: DisabledBy,
    environment: Environment,
    language: Language,
) -> &'static str {
    match by {
        DisabledBy::Operator => language.pick("It was turned off by hand.", "Se desactivó manualmente."),
        DisabledBy::Gone => language.pick(
            "The receiver answered that it is gone (410). Check the address, then turn it on.",
            "El receptor respondió que ya no existe (410). Revise la dirección y active el webhook.",
        ),
        DisabledBy::Unreadable => language.pick(
            "Its settings cannot be read from the database. Set it up again.",
            "Su configuración no se puede leer de la base de datos. Configúrelo de nuevo.",
        ),
        DisabledBy::Failures => match environment {
            Environment::Production => language.pick(
                "An event could not be delivered for three days. Fix the receiver, then turn it on.",
                "Un evento no se pudo entregar durante tres días. Repare el receptor y active el webhook.",
            ),
            Environment::Sandbox => language.pick(
                "An event could not be delivered for about a minute. Fix the receiver, then turn it on.",
                "Un evento no se pudo entregar durante cerca de un minuto. Repare el receptor y active el webhook.",
            ),
        },
    }
}

/// Returns the tenant's webhook. An unreadable webhook counts as absent, so that the page shows the form to replace it.
async fn find(api: &Api, tenant: Tenant) -> Result<Option<Endpoint>, HttpRefusal> {
    match api.service.store().endpoint(tenant).await {
        Err(StoreError::Damaged { .. }) => Ok(None),
        found => Ok(found?),
    }
}

/// Returns the address of a webhook's page.
pub(super) fn address(environment: Environment) -> String {
    format!("/dashboard/webhooks/{}", environment.code())
}

/// Returns the message for a button that was pressed on an outdated page.
fn flash_for_outdated_page(error: EndpointError) -> Result<FlashMessage, EndpointError> {
    match error {
        // The page then shows the form that sets the webhook up again.
        EndpointError::NotFound | EndpointError::Unreadable => Ok(FlashMessage::WebhookNotFound),
        EndpointError::Disabled => Ok(FlashMessage::NotSentWhileDisabled),
        other => Err(other),
    }
}

/// Converts an error to a refusal.
fn to_http_refusal(error: EndpointError) -> HttpRefusal {
    match error {
        EndpointError::Store(error) => error.into(),
        EndpointError::NotFound
        | EndpointError::Unreadable
        | EndpointError::Disabled
        | EndpointError::UnknownEvent
        | EndpointError::Address(_) => ErrorCode::NotFound.into(),
    }
}

/// Parses an environment in a path; an unknown code is a 404.
pub(super) fn parse_environment(code: &str) -> Result<Environment, HttpRefusal> {
    body::parse_environment(code).ok_or_else(|| ErrorCode::NotFound.into())
}
