//! Settings: the account's name and contact on the public page of its parcels, the e-mails that receivers get, and the
//! password.

use askama::Template;
use axum::{extract::State, response::Response};

use parcelo::Language;

use super::{
    auth::{SignedIn, SubmittedForm},
    context::{redirect_with_flash, with_session_cookie},
    fields::Fields,
    flash::Flash,
    frame::{Frame, Moment, Section, invalid_form, page},
    mails::{self, Choice},
};
use crate::{
    clock::Millis,
    domain::{
        Refusal,
        audit::{Actor, AuditEntry},
        session::{MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS, is_valid_password},
        shop::{MAX_CONTACT_CHARS, MAX_NAME_CHARS, Shop, ShopFault},
    },
    http::{Api, HttpRefusal},
    service::{LoginOutcome, LoginRequest},
};

/// Number of the latest changes that are shown.
const MAX_CHANGES: u32 = 50;

#[derive(Template)]
#[template(path = "dashboard/settings.html")]
struct Settings {
    frame: Frame,
    name: String,
    contact: String,
    fault: Option<Fault>,
    max_name: usize,
    max_contact: usize,
    password_fault: Option<String>,
    max_password: usize,
    /// The kinds of e-mails; `None` if the server sends no e-mails.
    mails: Option<Vec<Choice>>,
    changes: Vec<Change>,
}

/// An entry of the audit log.
struct Change {
    at: Moment,
    action: &'static str,
    subject: String,
    actor: String,
}

impl Change {
    fn new(entry: AuditEntry, language: Language) -> Self {
        Self {
            at: Moment::from_millis(entry.at),
            action: entry.action.text(language),
            subject: entry.subject,
            actor: entry.actor.text(language),
        }
    }
}

/// An invalid field and the reason.
struct Fault {
    is_name: bool,
    text: &'static str,
}

impl Settings {
    fn new(
        frame: Frame,
        (name, contact): (String, String),
        mails: Option<Vec<Choice>>,
        fault: Option<Fault>,
    ) -> Self {
        Self {
            frame,
            name,
            contact,
            fault,
            max_name: MAX_NAME_CHARS,
            max_contact: MAX_CONTACT_CHARS,
            password_fault: None,
            max_password: MAX_PASSWORD_CHARS,
            mails,
            changes: Vec::new(),
        }
    }

    /// Adds the latest changes of the account.
    async fn with_changes(self, api: &Api, member: &SignedIn) -> Result<Self, HttpRefusal> {
        let account = Some(member.session.account);
        let log = api.service.store().audit_log(account, Millis(0), MAX_CHANGES).await?;
        let language = member.language();
        let changes = log.into_iter().map(|entry| Change::new(entry, language)).collect();
        Ok(Self { changes, ..self })
    }
}

/// Shows the form, filled with the current settings.
pub(super) async fn show(
    State(api): State<Api>,
    member: SignedIn,
) -> Result<Response, HttpRefusal> {
    let shop = api.service.store().shop(member.session.account).await?;
    let restored = |form: &Fields| (form.text("name").to_owned(), form.text("contact").to_owned());
    let shown = member.context.restored_form.as_ref().map_or_else(|| shop.to_stored(), restored);
    let frame = member.frame(Section::Settings);
    let shown = Settings::new(frame, shown, mails::choices(&api, &member).await?, None);
    page(&shown.with_changes(&api, &member).await?)
}

/// Sets the shop's name and contact.
pub(super) async fn set(
    State(api): State<Api>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let (name, contact) = (fields.text("name"), fields.text("contact"));
    match Shop::parse(name, contact) {
        Ok(shop) => {
            let (store, account) = (api.service.store(), member.session.account);
            // A form that changes nothing is not recorded in the audit log.
            if store.shop(account).await? != shop {
                store.set_shop(account, &shop, &Actor::Session.at(api.service.now())).await?;
            }
        }
        Err(fault) => {
            let text = fault.text(member.language());
            let fault = Some(Fault { is_name: fault == ShopFault::Name, text });
            let typed = (name.trim().to_owned(), contact.trim().to_owned());
            let frame = member.frame(Section::Settings);
            let mails = mails::choices(&api, &member).await?;
            let form = Settings::new(frame, typed, mails, fault);
            return invalid_form(&form.with_changes(&api, &member).await?);
        }
    }
    Ok(redirect_with_flash(Section::Settings.path(), Flash::SettingsSaved))
}

/// Changes the password. The browser continues with a new session.
pub(super) async fn set_password(
    State(api): State<Api>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let new = fields.text("new");
    if let Some(fault) = password_fault(&fields, member.language()) {
        return password_form(&api, &member, fault).await;
    }
    let request = LoginRequest {
        client: member.context.client,
        account: &member.session.name,
        password: fields.text("password"),
        previous_token: Some(&member.token),
    };
    match api.service.change_password(request, new).await? {
        LoginOutcome::SignedIn(token) => Ok(with_session_cookie(
            redirect_with_flash(Section::Settings.path(), Flash::PasswordChanged),
            &token,
        )),
        LoginOutcome::Wait(seconds) => Err(Refusal::rate_limited(seconds).into()),
        LoginOutcome::Rejected => {
            let fault = member.language().pick(
                "The present password is not right. Nothing was changed.",
                "La contraseña actual no es correcta. No se cambió nada.",
            );
            password_form(&api, &member, fault.to_owned()).await
        }
    }
}

fn password_fault(fields: &Fields, language: Language) -> Option<String> {
    let new = fields.text("new");
    if !is_valid_password(new) {
        return Some(match language {
            Language::En => format!(
                "A password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters on one line."
            ),
            Language::Es => format!(
                "Una contraseña tiene de {MIN_PASSWORD_CHARS} a {MAX_PASSWORD_CHARS} caracteres en una línea."
            ),
        });
    }
    (new != fields.text("again")).then(|| {
        let text = language.pick(
            "The two new passwords differ. Type the new one twice.",
            "Las dos contraseñas nuevas son distintas. Escriba la nueva dos veces.",
        );
        text.to_owned()
    })
}

/// Shows the form again with its faults; passwords are not filled in.
async fn password_form(
    api: &Api,
    member: &SignedIn,
    fault: String,
) -> Result<Response, HttpRefusal> {
    let shop = api.service.store().shop(member.session.account).await?;
    let (frame, mails) = (member.frame(Section::Settings), mails::choices(api, member).await?);
    let shown = Settings::new(frame, shop.to_stored(), mails, None);
    let shown = Settings { password_fault: Some(fault), ..shown };
    invalid_form(&shown.with_changes(api, member).await?)
}
