//! /unsubscribe/{token}: the target of the links in e-mails. GET shows a button and changes nothing, since scanners and
//! previews fetch links. POST acts at once, for the button and for a provider's one click (RFC 8058), which has neither
//! cookie nor session. The response does not reveal whether anyone was subscribed.

use askama::Template;
use axum::{
    Extension,
    extract::{Path, State, rejection::PathRejection},
    response::Response,
};
use parcelo_domain::unsubscribe::read_token;
use parcelo_types::{ErrorCode, Language};

use super::{PageContext, ResponseFormat, view::Frame};
use crate::http::{Api, HttpRefusal, body, response};

/// The route, with the token as its parameter.
pub(super) const ROUTE: &str = "/unsubscribe/{token}";

/// The texts of the page.
struct UnsubscribeTexts {
    title: &'static str,
    question: &'static str,
    explanation: &'static str,
    button: &'static str,
    done: &'static str,
    done_explanation: &'static str,
    invalid: &'static str,
    invalid_explanation: &'static str,
}

static EN: UnsubscribeTexts = UnsubscribeTexts {
    title: "E-mails about parcels",
    question: "Stop these e-mails?",
    explanation: "You will no longer receive e-mails about parcels from this sender at the address that received the e-mail. Your parcels will still arrive, and their tracking pages show where they are.",
    button: "Stop the e-mails",
    done: "No more e-mails",
    done_explanation: "You will no longer receive e-mails about parcels from this sender. One that is already on its way may still arrive.",
    invalid: "This link is incomplete",
    invalid_explanation: "Open the link at the end of the e-mail again, or copy all of it.",
};

static ES: UnsubscribeTexts = UnsubscribeTexts {
    title: "Correos sobre paquetes",
    question: "¿Dejar de recibir estos correos?",
    explanation: "No recibirá más correos sobre paquetes de este remitente en la dirección a la que llegó el correo. Sus paquetes llegarán igual y sus páginas de rastreo muestran dónde están.",
    button: "Dejar de recibirlos",
    done: "No habrá más correos",
    done_explanation: "No recibirá más correos sobre paquetes de este remitente. Alguno que ya esté en camino todavía puede llegar.",
    invalid: "Este enlace no está completo",
    invalid_explanation: "Abra otra vez el enlace al final del correo, o cópielo entero.",
};

#[derive(Template)]
#[template(path = "unsubscribe.html")]
struct UnsubscribePage {
    frame: Frame,
    title: &'static str,
    heading: &'static str,
    explanation: &'static str,
    button: Option<&'static str>,
}

/// Shows the page with the button.
pub(super) async fn show(
    State(api): State<Api>,
    Extension(context): Extension<PageContext>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpRefusal> {
    let texts = texts(context.language);
    if read_token(&api.service.settings().secrets, &body::path_parameter(path)).is_none() {
        return invalid_link(&context);
    }
    let page = render(&context, (texts.question, texts.explanation), Some(texts.button))?;
    Ok(context.page_with_form(page))
}

/// Unsubscribes the address of the token.
pub(super) async fn unsubscribe(
    State(api): State<Api>,
    Extension(context): Extension<PageContext>,
    path: Result<Path<String>, PathRejection>,
) -> Result<Response, HttpRefusal> {
    let token = body::path_parameter(path);
    let Some(hash) = read_token(&api.service.settings().secrets, &token) else {
        return invalid_link(&context);
    };
    api.service.unsubscribe(hash).await?;
    // A provider that acts for its user needs no page.
    if context.format == ResponseFormat::Json {
        return Ok(response::json_ok(&serde_json::json!({ "success": true })));
    }
    let texts = texts(context.language);
    Ok(context.page(render(&context, (texts.done, texts.done_explanation), None)?))
}

fn invalid_link(context: &PageContext) -> Result<Response, HttpRefusal> {
    if context.format == ResponseFormat::Json {
        return Err(ErrorCode::NotFound.into());
    }
    let texts = texts(context.language);
    let page = render(context, (texts.invalid, texts.invalid_explanation), None)?;
    let mut response = context.page(page);
    *response.status_mut() = response::http_status(ErrorCode::NotFound);
    Ok(response)
}

fn render(
    context: &PageContext,
    (heading, explanation): (&'static str, &'static str),
    button: Option<&'static str>,
) -> Result<String, HttpRefusal> {
    let title = texts(context.language).title;
    let frame = context.frame();
    response::render(&UnsubscribePage { frame, title, heading, explanation, button })
}

fn texts(language: Language) -> &'static UnsubscribeTexts {
    language.pick(&EN, &ES)
}
