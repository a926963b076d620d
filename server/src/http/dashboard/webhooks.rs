//! Webhooks: one for each environment, with its deliveries.

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    response::{Redirect, Response},
};
use parcelo::{Environment, ErrorCode, Language};
use ulid::Ulid;

use super::{
    auth::{SignedIn, SubmittedForm},
    context::{PageContext, go_to},
    fields::Fields,
    flash::Flash,
    frame::{Frame, Moment, Section, invalid_form, page},
    pagination::{self, Pagination},
    secret_page,
};
use crate::{
    clock::Millis,
    domain::{
        Tenant,
        audit::Actor,
        webhooks::{
            DeliveryError, DeliveryStatus, DisabledBy, Endpoint, Kind, Kinds, LoggedDelivery,
        },
    },
    http::{Api, Refused},
    ids::named,
    service::{EndpointError, EndpointRequest},
    store::{EventsToReplay, StoreError},
};

/// Number of events on a page of the log.
const EVENTS_PER_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "dashboard/webhook.html")]
struct Webhook {
    frame: Frame,
    environment: Environment,
    hook: Option<Hook>,
    url: String,
    kinds: Vec<Choice>,
    fault: Option<&'static str>,
    log: Vec<Delivery>,
    pages: Pagination,
    missed: bool,
}

/// A webhook that is set up.
struct Hook {
    /// The token that identifies the secret to replace.
    seen: String,
    disabled: Option<&'static str>,
    created: Moment,
    old_until: Option<Moment>,
}

/// A kind of event that can be subscribed to.
struct Choice {
    code: String,
    means: &'static str,
    chosen: bool,
}

/// An event and its delivery.
struct Delivery {
    id: String,
    kind: String,
    number: Option<String>,
    status: &'static str,
    tone: &'static str,
    created: Moment,
    due: Option<Moment>,
    again: bool,
    attempts: Vec<Attempt>,
}

struct Attempt {
    number: u32,
    at: Moment,
    status: Option<u16>,
    error: Option<String>,
    millis: i64,
    answer: String,
}

/// The state from which the page is rendered.
struct PageState {
    environment: Environment,
    url: String,
    kinds: Kinds,
    fault: Option<&'static str>,
    /// Number of the log's page.
    page: u32,
}

/// Redirects to the webhook of the last viewed environment.
pub(super) async fn last_seen(context: PageContext) -> Redirect {
    Redirect::to(&address(context.environment))
}

/// Shows a webhook with its deliveries.
pub(super) async fn show(
    State(api): State<Api>,
    Path(environment): Path<String>,
    RawQuery(query): RawQuery,
    member: SignedIn,
) -> Result<Response, Refused> {
    let environment = environment_of(&environment)?;
    let number = pagination::requested_page(&Fields::parse(query.unwrap_or_default().as_bytes()));
    let hook = find(&api, member.tenant(environment)).await?;
    let (url, kinds) = hook.as_ref().map(|hook| (hook.url.clone(), hook.kinds)).unwrap_or_default();
    let state = PageState { environment, url, kinds, fault: None, page: number };
    page(&webhook(&api, &member, state).await?)
}

/// Redirects to the webhook's page, because a browser may request a button's own address again.
pub(super) async fn back(
    Path((environment, _)): Path<(String, String)>,
) -> Result<Redirect, Refused> {
    Ok(Redirect::to(&address(environment_of(&environment)?)))
}

/// Sets a webhook up, or changes it. The secret of a new one is shown.
pub(super) async fn set(
    State(api): State<Api>,
    Path(environment): Path<String>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, Refused> {
    let environment = environment_of(&environment)?;
    let (tenant, place) = (member.tenant(environment), address(environment));
    let url = fields.text("url").trim().to_owned();
    let kinds = kinds(&fields).ok_or(ErrorCode::NotFound)?;
    let reach = api.service.settings().reach(environment);
    let (request, now) = (EndpointRequest { tenant, url, kinds, reach }, api.service.now());
    match api.service.endpoints(Actor::Session).set_up(request.clone(), now).await {
        Ok((endpoint, true)) => {
            secret_page::show(member, (None, &endpoint.secret.expose()), None, &place)
        }
        Ok((_, false)) => Ok(go_to(&place, Flash::WebhookSet)),
        Err(EndpointError::Address(bad)) => {
            let fault = Some(bad.text(member.language()));
            let state = PageState { environment, url: request.url, kinds, fault, page: 1 };
            invalid_form(&webhook(&api, &member, state).await?)
        }
        Err(error) => Err(refused(error)),
    }
}

/// Carries out the action of a button.
pub(super) async fn act(
    State(api): State<Api>,
    Path((environment, action)): Path<(String, String)>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, Refused> {
    let environment = environment_of(&environment)?;
    let (tenant, now) = (member.tenant(environment), api.service.now());
    let endpoints = api.service.endpoints(Actor::Session);
    let place = address(environment);
    let done = match action.as_str() {
        "test" => endpoints.test(tenant, now).await.map(|_| Flash::TestSent),
        "enable" => endpoints.enable(tenant).await.map(|_| Flash::Enabled),
        "remove" => endpoints.remove(tenant).await.map(|_| Flash::Removed),
        "disable" => endpoints.disable(tenant).await.map(|_| Flash::Disabled),
        "replay" => {
            let what = replay(fields.text("event")).ok_or(ErrorCode::NotFound)?;
            endpoints.replay(tenant, what, now).await.map(Flash::Replayed)
        }
        "rotate" => {
            let is_seen = |secret: &[u8]| api.service.is_form_token(secret, fields.text("seen"));
            match endpoints.replace_secret(tenant, is_seen, now).await {
                Ok(Some(secret)) => {
                    return secret_page::show(member, (None, &secret.expose()), None, &place);
                }
                done => done.map(|_| Flash::SecretReplacedBefore),
            }
        }
        _ => return Err(ErrorCode::NotFound.into()),
    };
    Ok(go_to(&place, done.or_else(outdated).map_err(refused)?))
}

async fn webhook(api: &Api, member: &SignedIn, state: PageState) -> Result<Webhook, Refused> {
    let PageState { environment, mut url, kinds: mut chosen, fault, page } = state;
    let (tenant, now) = (member.tenant(environment), api.service.now());
    let language = member.language();
    let hook = find(api, tenant).await?;
    let is_on = hook.as_ref().is_some_and(|hook| hook.disabled.is_none());
    let skipped = pagination::offset(page, EVENTS_PER_PAGE);
    let mut logged = api.service.deliveries_of(tenant, skipped, EVENTS_PER_PAGE + 1).await?;
    let has_older = logged.len() > EVENTS_PER_PAGE;
    logged.truncate(EVENTS_PER_PAGE);
    if let Some(form) = &member.context.typed {
        form.text("url").clone_into(&mut url);
        chosen = kinds(form).unwrap_or(chosen);
    }
    let seen = |hook: &Endpoint| api.service.form_token(hook.secret.as_bytes());
    Ok(Webhook {
        frame: member.frame(Section::Webhooks),
        environment,
        hook: hook.map(|hook| Hook::new(&hook, seen(&hook), (now, language))),
        url,
        kinds: choices(chosen, language),
        fault,
        pages: Pagination::new(page, has_older, |page| {
            pagination::address(&address(environment), page)
        }),
        missed: is_on && api.service.has_missed(tenant).await?,
        log: logged.iter().map(|event| Delivery::new(event, is_on, language)).collect(),
    })
}

impl Hook {
    fn new(endpoint: &Endpoint, seen: String, (now, language): (Millis, Language)) -> Self {
        let old = endpoint.old.first().map(|(_, until)| *until).filter(|until| now < *until);
        Self {
            seen,
            disabled: endpoint.disabled.map(|by| why(by, endpoint.tenant.environment, language)),
            created: Moment::from_millis(endpoint.created_at),
            old_until: old.map(Moment::from_millis),
        }
    }
}

impl Delivery {
    fn new(event: &LoggedDelivery, is_on: bool, language: Language) -> Self {
        let (status_word, tone) = match event.delivery_status {
            DeliveryStatus::Waiting | DeliveryStatus::Ready => {
                (language.pick("Waiting", "En espera"), "moving")
            }
            DeliveryStatus::Delivered => (language.pick("Delivered", "Entregado"), "done"),
            DeliveryStatus::Failed => (language.pick("Failed", "Fallido"), "failed"),
            DeliveryStatus::Held => (language.pick("Held", "Retenido"), "waiting"),
        };
        let is_pending =
            matches!(event.delivery_status, DeliveryStatus::Waiting | DeliveryStatus::Ready);
        let attempts = event.attempts.iter().map(|attempt| Attempt {
            number: attempt.number,
            at: Moment::from_millis(attempt.at),
            status: attempt.status,
            error: attempt.error.as_deref().map(|error| undelivered(error, language)),
            millis: attempt.millis,
            answer: String::from_utf8_lossy(&attempt.answer).into_owned(),
        });
        Self {
            id: named("evt", event.event),
            kind: event.kind.to_wire().code().to_owned(),
            number: event.tracking_number.clone(),
            status: status_word,
            tone,
            created: Moment::from_millis(event.created_at),
            due: event.due.filter(|_| is_pending).map(Moment::from_millis),
            again: is_on && !is_pending,
            attempts: attempts.collect(),
        }
    }
}

fn choices(kinds: Kinds, language: Language) -> Vec<Choice> {
    let table = [
        (Kind::ParcelCreated, "an order is created", "se cree un pedido"),
        (Kind::ParcelVoided, "an order is voided", "se anule un pedido"),
        (Kind::ManifestSubmitted, "a manifest is submitted", "se envíe un manifiesto"),
    ];
    let choice = |(kind, en, es): (Kind, _, _)| Choice {
        code: kind.to_wire().code().to_owned(),
        means: language.pick(en, es),
        chosen: kinds.wants(kind),
    };
    table.into_iter().map(choice).collect()
}

fn kinds(fields: &Fields) -> Option<Kinds> {
    let test = Kind::Test.to_wire();
    let asked: Vec<_> = fields.all("events").collect();
    if asked.contains(&test.code()) {
        return None;
    }
    Kinds::named(asked)
}

fn replay(event: &str) -> Option<EventsToReplay> {
    if event.is_empty() {
        return Some(EventsToReplay::MissedSince(Millis(0)));
    }
    event.strip_prefix("evt_").and_then(|id| Ulid::from_string(id).ok()).map(EventsToReplay::One)
}

/// Returns the reason why there was no answer; the log has it in English.
fn undelivered(error: &str, language: Language) -> String {
    let table = [
        (
            DeliveryError::NotAllowed,
            "la dirección no está permitida: los webhooks van a direcciones públicas, en producción por https",
        ),
        (
            DeliveryError::NotConnected,
            "no hubo conexión con el receptor: revise su nombre, puerto y certificado",
        ),
        (DeliveryError::TimedOut, "el receptor no respondió en 15 s"),
        (DeliveryError::Broken, "la conexión se cortó antes de la respuesta"),
        (DeliveryError::Unreadable, "el evento no se puede leer de la base de datos y no se envió"),
    ];
    let known = table.into_iter().find(|(reason, _)| reason.to_string() == error);
    known.map_or(error, |(_, spanish)| language.pick(error, spanish)).to_owned()
}

/// Returns the reason why nothing is sent, and what to do about it.
pub(super) fn why(by: DisabledBy, environment: Environment, language: Language) -> &'static str {
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
async fn find(api: &Api, tenant: Tenant) -> Result<Option<Endpoint>, Refused> {
    match api.service.store().endpoint(tenant).await {
        Err(StoreError::Damaged { .. }) => Ok(None),
        found => Ok(found?),
    }
}

pub(super) fn address(environment: Environment) -> String {
    format!("/dashboard/webhooks/{}", environment.code())
}

/// Returns the message for a button that was pressed on an outdated page.
fn outdated(error: EndpointError) -> Result<Flash, EndpointError> {
    match error {
        // The page then shows the form that sets the webhook up again.
        EndpointError::None | EndpointError::Unreadable => Ok(Flash::IsGone),
        EndpointError::Disabled => Ok(Flash::IsOff),
        other => Err(other),
    }
}

fn refused(error: EndpointError) -> Refused {
    match error {
        EndpointError::Store(error) => error.into(),
        EndpointError::None
        | EndpointError::Unreadable
        | EndpointError::Disabled
        | EndpointError::UnknownEvent
        | EndpointError::Address(_) => ErrorCode::NotFound.into(),
    }
}

pub(super) fn environment_of(word: &str) -> Result<Environment, Refused> {
    let found = Environment::ALL.into_iter().find(|environment| environment.code() == word);
    found.ok_or_else(|| ErrorCode::NotFound.into())
}
