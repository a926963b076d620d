//! The frame around every page, and the pages that explain why there is nothing to show.

use askama::Template;
use axum::{
    http::header,
    response::{IntoResponse, Response},
};
use chrono::{DateTime, Utc};
use parcelo_domain::{Millis, Refusal};
use parcelo_service::http::{HttpRefusal, response};
use parcelo_types::{
    Environment, ErrorCode, Language, ParcelStatus,
    model::{Arrival, ArrivalKind},
};

use super::flash::FlashMessage;

/// The sections of the dashboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Overview,
    Parcels,
    Keys,
    Webhooks,
    Exceptions,
    Legacy,
    Settings,
}

impl Section {
    const ALL: [Self; 7] = [
        Self::Overview,
        Self::Parcels,
        Self::Keys,
        Self::Webhooks,
        Self::Exceptions,
        Self::Legacy,
        Self::Settings,
    ];

    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Overview => "/dashboard",
            Self::Parcels => "/dashboard/parcels",
            Self::Keys => "/dashboard/keys",
            Self::Webhooks => "/dashboard/webhooks",
            Self::Exceptions => "/dashboard/exceptions",
            Self::Legacy => "/dashboard/legacy",
            Self::Settings => "/dashboard/settings",
        }
    }

    fn name(self, language: Language) -> &'static str {
        match self {
            Self::Overview => language.pick("Overview", "Resumen"),
            Self::Parcels => language.pick("Parcels", "Paquetes"),
            Self::Keys => language.pick("Keys", "Claves"),
            Self::Webhooks => "Webhooks",
            Self::Exceptions => language.pick("Carrier exceptions", "Eventos rechazados"),
            Self::Legacy => language.pick("Legacy API", "API anterior"),
            Self::Settings => language.pick("Settings", "Ajustes"),
        }
    }
}

/// The frame around a page.
pub(super) struct Frame {
    pub(super) language: Language,
    pub(super) other: Language,
    pub(super) other_name: &'static str,
    pub(super) other_link: String,
    pub(super) user: Option<UserFrame>,
    pub(super) flash: Option<String>,
}

/// The parts of a frame that only signed-in users see.
pub(super) struct UserFrame {
    pub(super) account: String,
    pub(super) form_token: String,
    pub(super) tabs: Vec<Tab>,
}

pub(super) struct Tab {
    pub(super) path: &'static str,
    pub(super) name: &'static str,
    pub(super) is_current: bool,
}

impl Frame {
    pub(super) fn new(language: Language, url: &str) -> Self {
        let (other, other_name) =
            language.pick((Language::Es, "Español"), (Language::En, "English"));
        let join = if url.ends_with('?') { "" } else { "&" };
        let other_link = format!("{url}{join}lang={}", other.code());
        Self { language, other, other_name, other_link, user: None, flash: None }
    }

    pub(super) fn for_user(self, account: &str, form_token: &str, section: Section) -> Self {
        let language = self.language;
        let tab = |tab: Section| Tab {
            path: tab.path(),
            name: tab.name(language),
            is_current: tab == section,
        };
        let tabs = Section::ALL.into_iter().map(tab).collect();
        let (account, form_token) = (account.to_owned(), form_token.to_owned());
        let user = UserFrame { account, form_token, tabs };
        Self { user: Some(user), ..self }
    }

    /// Adds the flash message.
    pub(super) fn with_flash(self, flash: Option<FlashMessage>) -> Self {
        Self { flash: flash.map(|flash| flash.text(self.language)), ..self }
    }

    /// Returns the text in the page's language.
    pub(super) fn pick<'a>(&self, en: &'a str, es: &'a str) -> &'a str {
        self.language.pick(en, es)
    }

    /// Returns the token that the page's forms hold.
    pub(super) fn form_token(&self) -> &str {
        self.user.as_ref().map_or("", |user| &user.form_token)
    }

    pub(super) fn environment(&self, environment: Environment) -> &'static str {
        match environment {
            Environment::Production => self.language.pick("Production", "Producción"),
            Environment::Sandbox => self.language.pick("Sandbox", "Pruebas"),
        }
    }
}

/// A point in time, formatted for people and for machines.
pub(super) struct DisplayTime {
    pub(super) iso: String,
    pub(super) text: String,
}

impl DisplayTime {
    pub(super) fn from_millis(at: Millis) -> Self {
        Self::new(at.to_utc())
    }

    pub(super) fn new(at: DateTime<Utc>) -> Self {
        let text = at.format("%Y-%m-%d %H:%M").to_string();
        Self { iso: parcelo_types::internal::time::to_text(at), text }
    }
}

/// The arrival of a parcel as one line of text, and `is_late` if the parcel is late.
pub(super) struct ArrivalLine {
    pub(super) text: String,
    pub(super) is_late: bool,
}

impl ArrivalLine {
    pub(super) fn new(arrival: Option<&Arrival>, language: Language) -> Option<Self> {
        let Arrival { kind, date, .. } = arrival?;
        let text = match kind {
            ArrivalKind::Expected => language.pick("expected on", "se espera el"),
            ArrivalKind::Today => language.pick("arrives today,", "llega hoy,"),
            ArrivalKind::Delayed => {
                language.pick("late, expected on", "con retraso, se esperaba el")
            }
            ArrivalKind::Delivered => language.pick("delivered on", "entregado el"),
            // A kind that this version does not know.
            _ => return None,
        };
        Some(Self { text: format!("{text} {date}"), is_late: *kind == ArrivalKind::Delayed })
    }
}

/// Returns the CSS class of the colour of a status.
pub(super) const fn status_tone(status: &ParcelStatus) -> &'static str {
    match status {
        ParcelStatus::CustomsHold
        | ParcelStatus::DeliveryAttempted
        | ParcelStatus::ReturnToSender => "waiting",
        ParcelStatus::Delivered => "done",
        ParcelStatus::DeliveryFailed => "failed",
        ParcelStatus::Ordered | ParcelStatus::LabelGenerated | ParcelStatus::Voided => "over",
        _ => "moving",
    }
}

/// A page that explains why there is nothing to show, and what to do.
#[derive(Template)]
#[template(path = "dashboard/notice.html")]
pub(super) struct NoticePage {
    frame: Frame,
    heading: &'static str,
    text: String,
}

impl NoticePage {
    pub(super) fn for_refusal(frame: Frame, refusal: &Refusal) -> Self {
        let language = frame.language;
        let (heading, text) = match refusal.code {
            ErrorCode::FormNotAccepted => (
                language.pick("The form was not accepted", "El formulario no fue aceptado"),
                language.pick(
                    "It was not sent from a page of this session, so nothing was changed. Go back, reload the page and try again. If this keeps happening, your browser does not keep cookies for this address: use https, or http://127.0.0.1 on the server itself.",
                    "No se envió desde una página de esta sesión, así que no se cambió nada. Regrese, vuelva a cargar la página e inténtelo de nuevo. Si sigue sucediendo, su navegador no guarda cookies de esta dirección: use https, o http://127.0.0.1 en el propio servidor.",
                ).to_owned(),
            ),
            ErrorCode::NotFound | ErrorCode::ParcelNotFound => (
                language.pick("Page not found", "Página no encontrada"),
                language.pick(
                    "It does not exist, or it belongs to another account. Parcels are searched for under “Parcels”.",
                    "No existe o pertenece a otra cuenta. Los paquetes se buscan en “Paquetes”.",
                ).to_owned(),
            ),
            ErrorCode::RateLimitExceeded => (
                language.pick("Too many attempts", "Demasiados intentos"),
                wait_text(language, refusal.retry_after.unwrap_or(1)),
            ),
            _ => (
                language.pick("Something went wrong", "Algo salió mal"),
                refusal.text(language),
            ),
        };
        Self { frame, heading, text }
    }
}

/// Returns the advice to try again after a wait.
fn wait_text(language: Language, seconds: u32) -> String {
    language.pick(
        format!("Wait {seconds} s, then reload the page."),
        format!("Espere {seconds} s y vuelva a cargar la página."),
    )
}

/// Renders a page as a response.
pub(super) fn render_page(page: &impl Template) -> Result<Response, HttpRefusal> {
    let html = response::render(page)?;
    Ok(([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response())
}

/// Renders a page with an invalid form.
pub(super) fn render_invalid_form(form: &impl Template) -> Result<Response, HttpRefusal> {
    let mut response = render_page(form)?;
    *response.status_mut() = response::http_status(ErrorCode::ValidationFailed);
    Ok(response)
}
