//! Settings: the account's name and contact on the public page of its parcels, the e-mails that receivers get, the
//! password, and the account's latest sign-ins and changes.

use askama::Template;
use axum::{extract::State, response::Response};
use parcelo_service::http::{Api, HttpRefusal};

use parcelo_domain::{
    Millis, Refusal,
    audit::{Actor, AuditEntry},
    session::{MAX_PASSWORD_CHARS, MIN_PASSWORD_CHARS, is_valid_password},
    shop::{MAX_CONTACT_CHARS, MAX_NAME_CHARS, Shop, ShopError},
};
use parcelo_store::AuditFilter;
use parcelo_types::Language;

use super::{
    auth::{SignedInUser, SubmittedForm},
    context::{redirect_with_flash, with_session_cookie},
    fields::FormFields,
    flash::FlashMessage,
    frame::{DisplayTime, Frame, Section, render_invalid_form, render_page},
    mails::{self, MailKindChoice},
};
use crate::sign_in::{LoginOutcome, LoginRequest};

/// Number of the latest changes that are shown.
const MAX_CHANGES: u32 = 50;
/// Number of the latest sign-ins that are shown.
const MAX_SIGN_INS: u32 = 20;

#[derive(Template)]
#[template(path = "dashboard/settings.html")]
struct SettingsPage {
    frame: Frame,
    name: String,
    contact: String,
    fault: Option<ShopFieldFault>,
    max_name: usize,
    max_contact: usize,
    password_fault: Option<String>,
    max_password: usize,
    /// The kinds of e-mails; `None` if the server sends no e-mails.
    mails: Option<Vec<MailKindChoice>>,
    sign_ins: Vec<ChangeRow>,
    changes: Vec<ChangeRow>,
}

/// An entry of the audit log.
struct ChangeRow {
    at: DisplayTime,
    action: &'static str,
    subject: String,
    actor: String,
}

impl ChangeRow {
    fn new(entry: AuditEntry, language: Language) -> Self {
        Self {
            at: DisplayTime::from_millis(entry.at),
            action: entry.action.text(language),
            subject: entry.subject,
            actor: entry.actor.text(language),
        }
    }
}

/// An invalid field and the reason.
struct ShopFieldFault {
    is_name: bool,
    text: &'static str,
}

impl SettingsPage {
    /// Returns the page with this name and contact in its form.
    async fn load(
        api: &Api,
        user: &SignedInUser,
        (name, contact): (String, String),
    ) -> Result<Self, HttpRefusal> {
        let (store, account) = (api.service.store(), user.session.account);
        let rows = async |filter, max| -> Result<Vec<ChangeRow>, HttpRefusal> {
            let log = store.audit_log(filter, Millis(0), max).await?;
            Ok(log.into_iter().map(|entry| ChangeRow::new(entry, user.language())).collect())
        };
        Ok(Self {
            frame: user.frame(Section::Settings),
            name,
            contact,
            fault: None,
            max_name: MAX_NAME_CHARS,
            max_contact: MAX_CONTACT_CHARS,
            password_fault: None,
            max_password: MAX_PASSWORD_CHARS,
            mails: mails::mail_kind_choices(api, user).await?,
            sign_ins: rows(AuditFilter::SignIns(account), MAX_SIGN_INS).await?,
            changes: rows(AuditFilter::Changes(account), MAX_CHANGES).await?,
        })
    }
}

/// Shows the form, filled with the current settings.
pub(super) async fn show(
    State(api): State<Api>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let shop = api.service.store().shop(user.session.account).await?;
    let restored =
        |form: &FormFields| (form.text("name").to_owned(), form.text("contact").to_owned());
    let shown = user.context.restored_form.as_ref().map_or_else(|| shop.to_stored(), restored);
    render_page(&SettingsPage::load(&api, &user, shown).await?)
}

/// Sets the shop's name and contact.
pub(super) async fn set(
    State(api): State<Api>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let (name, contact) = (fields.text("name"), fields.text("contact"));
    match Shop::parse(name, contact) {
        Ok(shop) => {
            let (store, account) = (api.service.store(), user.session.account);
            // A form that changes nothing is not recorded in the audit log.
            if store.shop(account).await? != shop {
                store.set_shop(account, &shop, &Actor::Session.at(api.service.now())).await?;
            }
        }
        Err(fault) => {
            let text = fault.text(user.language());
            let fault = Some(ShopFieldFault { is_name: fault == ShopError::Name, text });
            let typed = (name.trim().to_owned(), contact.trim().to_owned());
            let form = SettingsPage::load(&api, &user, typed).await?;
            return render_invalid_form(&SettingsPage { fault, ..form });
        }
    }
    Ok(redirect_with_flash(Section::Settings.path(), FlashMessage::SettingsSaved))
}

/// Changes the password. The browser continues with a new session.
pub(super) async fn set_password(
    State(api): State<Api>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let new = fields.text("new");
    if let Some(fault) = password_fault(&fields, user.language()) {
        return render_password_form(&api, &user, fault).await;
    }
    let request = LoginRequest {
        client: user.context.client,
        account: &user.session.name,
        password: fields.text("password"),
        previous_token: Some(&user.token),
    };
    match crate::sign_in::change_password(&api.service, request, new).await? {
        LoginOutcome::SignedIn(token) => Ok(with_session_cookie(
            redirect_with_flash(Section::Settings.path(), FlashMessage::PasswordChanged),
            &token,
        )),
        LoginOutcome::Wait(seconds) => Err(Refusal::rate_limited(seconds).into()),
        LoginOutcome::Rejected => {
            let fault = user.language().pick(
                "The present password is not right. Nothing was changed.",
                "La contraseña actual no es correcta. No se cambió nada.",
            );
            render_password_form(&api, &user, fault.to_owned()).await
        }
    }
}

/// Returns the fault of the two new passwords, if there is one.
fn password_fault(fields: &FormFields, language: Language) -> Option<String> {
    let new = fields.text("new");
    if !is_valid_password(new) {
        return Some(language.pick(
            format!("A password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters on one line."),
            format!("Una contraseña tiene de {MIN_PASSWORD_CHARS} a {MAX_PASSWORD_CHARS} caracteres en una línea."),
        ));
    }
    (new != fields.text("again")).then(|| {
        let text = language.pick(
            "The two new passwords differ. Type the new one twice.",
            "Las dos contraseñas nuevas son distintas. Escriba la nueva dos veces.",
        );
        text.to_owned()
    })
}

/// Shows the form again with the fault of the password; passwords are not filled in again.
async fn render_password_form(
    api: &Api,
    user: &SignedInUser,
    fault: String,
) -> Result<Response, HttpRefusal> {
    let shop = api.service.store().shop(user.session.account).await?;
    let shown = SettingsPage::load(api, user, shop.to_stored()).await?;
    render_invalid_form(&SettingsPage { password_fault: Some(fault), ..shown })
}
