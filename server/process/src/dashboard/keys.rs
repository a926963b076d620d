//! API keys: the list, creating one, rotating its secret, revoking it.

use std::borrow::Cow;

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    response::Response,
};
use parcelo_domain::{
    ApiKeyRecord, Millis,
    audit::Actor,
    credentials::{ApiKeyScope, DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS},
    key_uses::{LastUseDays, date_text},
};
use parcelo_service::{
    http::{Api, HttpRefusal},
    service::RotationOutcome,
};
use parcelo_types::{Environment, ErrorCode};
use ulid::Ulid;

use super::{
    auth::{SignedInUser, SubmittedForm},
    context::redirect_with_flash,
    fields::FormFields,
    flash::FlashMessage,
    frame::{DisplayTime, Frame, Section, render_invalid_form, render_page},
    key_form::RawKeyForm,
    pagination::{self, Pagination},
    secret_page,
};

/// Number of keys on a page.
const KEYS_PER_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "dashboard/keys.html")]
struct KeysPage {
    frame: Frame,
    all: Vec<KeyRow>,
    pages: Pagination,
}

/// A row of the list of keys.
struct KeyRow {
    id: String,
    name: String,
    environment: Environment,
    masked_secret: String,
    countries: String,
    addresses: Vec<String>,
    created: DisplayTime,
    /// The day of the key's last use.
    last_used: Option<String>,
    old_until: Option<DisplayTime>,
    revoked: Option<DisplayTime>,
}

#[derive(Template)]
#[template(path = "dashboard/new_key.html")]
struct NewKeyPage {
    frame: Frame,
    form: RawKeyForm,
    faults: Vec<Cow<'static, str>>,
}

#[derive(Template)]
#[template(path = "dashboard/rotate.html")]
struct RotatePage {
    frame: Frame,
    key: KeyRow,
    /// The token that identifies the secret to replace.
    secret_token: String,
    overlaps: [(u32, &'static str, &'static str); 4],
    fault: Option<&'static str>,
}

/// The choices of how many seconds the old secret may keep working, in English and Spanish. The usual one comes first.
const OVERLAP_CHOICES: [(u32, &str, &str); 4] = [
    (DEFAULT_OVERLAP_SECONDS, "for 24 hours", "durante 24 horas"),
    (MAX_OVERLAP_SECONDS, "for 7 days", "durante 7 días"),
    (60 * 60, "for 1 hour", "durante 1 hora"),
    (0, "no: end it now (it may have leaked)", "no: desactivarlo ya (puede haberse filtrado)"),
];

#[derive(Template)]
#[template(path = "dashboard/revoke.html")]
struct RevokePage {
    frame: Frame,
    key: KeyRow,
}

impl RotatePage {
    fn new(api: &Api, user: &SignedInUser, record: &ApiKeyRecord) -> Self {
        Self {
            frame: user.frame(Section::Keys),
            key: KeyRow::new(record, api.service.now()),
            secret_token: api.service.form_token(record.hash),
            overlaps: OVERLAP_CHOICES,
            fault: None,
        }
    }
}

impl KeyRow {
    fn new(record: &ApiKeyRecord, now: Millis) -> Self {
        let environment = record.scope.tenant.environment;
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            environment,
            masked_secret: format!("{}…{}", environment.key_prefix(), record.last4),
            countries: record.scope.countries.to_wire().join(", "),
            addresses: record.scope.ip_list.iter().map(ToString::to_string).collect(),
            created: DisplayTime::from_millis(record.created_at),
            last_used: None,
            old_until: record.old_secret_until(now).map(DisplayTime::from_millis),
            revoked: record.revoked_at.map(DisplayTime::from_millis),
        }
    }

    /// Adds the day of the key's last use.
    fn with_last_use(self, uses: &LastUseDays, record: &ApiKeyRecord) -> Self {
        Self { last_used: uses.get(&record.row).copied().map(date_text), ..self }
    }
}

/// Shows the account's keys.
pub(super) async fn list(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let records = api.service.store().api_keys(user.session.account).await?;
    let requested =
        pagination::requested_page(&FormFields::parse(query.unwrap_or_default().as_bytes()));
    let last = u32::try_from(records.len().div_ceil(KEYS_PER_PAGE)).unwrap_or(u32::MAX).max(1);
    let number = requested.min(last);
    let shown = records.iter().skip(pagination::offset(number, KEYS_PER_PAGE)).take(KEYS_PER_PAGE);
    let last_uses = api.service.key_uses(Some(user.session.account)).await?;
    let now = api.service.now();
    render_page(&KeysPage {
        frame: user.frame(Section::Keys),
        all: shown
            .map(|record| KeyRow::new(record, now).with_last_use(&last_uses, record))
            .collect(),
        pages: Pagination::new(number, number < last, |number| {
            pagination::address(Section::Keys.path(), number)
        }),
    })
}

/// Shows an empty form, or restores the form that the end of a session interrupted.
pub(super) async fn new_form(
    State(api): State<Api>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let empty = || RawKeyForm::empty(api.service.new_form_id());
    let form = user.context.restored_form.as_ref().map_or_else(empty, RawKeyForm::from_fields);
    render_page(&NewKeyPage { frame: user.frame(Section::Keys), form, faults: Vec::new() })
}

/// Creates a key and shows its secret. Sending the form again does not create another key.
pub(super) async fn create(
    State(api): State<Api>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let form = RawKeyForm::from_fields(&fields);
    let new_key = match form.validate(&api.service.settings().destinations, user.language()) {
        Ok(new_key) => new_key,
        Err(faults) => {
            return render_invalid_form(&NewKeyPage {
                frame: user.frame(Section::Keys),
                form,
                faults,
            });
        }
    };
    let form_id = Ulid::from_string(&form.form_id).map_err(|_| ErrorCode::FormNotAccepted)?;
    let scope = ApiKeyScope {
        tenant: user.tenant(new_key.environment),
        account: user.session.name.clone(),
        countries: new_key.countries,
        ip_list: new_key.addresses,
        rate_limit: None,
    };
    let next = Section::Keys.path();
    match api.service.issue_key_once(form_id, new_key.name.clone(), scope).await? {
        Some(key) => secret_page::show(user, (Some(&new_key.name), key.secret()), None, next),
        None => Ok(redirect_with_flash(next, FlashMessage::KeyAlreadyCreated)),
    }
}

/// Asks whether to rotate a key's secret, and how long the old secret may keep working.
pub(super) async fn confirm_rotation(
    State(api): State<Api>,
    Path(id): Path<String>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    render_page(&RotatePage::new(&api, &user, &find(&api, &user, &id).await?))
}

/// Gives a key a new secret and shows it, unless the secret has changed since the form was shown.
pub(super) async fn rotate(
    State(api): State<Api>,
    Path(id): Path<String>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let key = find(&api, &user, &id).await?;
    let choice = fields.text("overlap");
    let mut choices = OVERLAP_CHOICES.into_iter().map(|(seconds, ..)| seconds);
    let Some(overlap) = choices.find(|seconds| seconds.to_string() == choice) else {
        let fault = Some(user.language().pick(
            "Choose one of the times below for the old secret to keep working.",
            "Elija abajo durante cuánto tiempo sigue sirviendo el secreto anterior.",
        ));
        return render_invalid_form(&RotatePage { fault, ..RotatePage::new(&api, &user, &key) });
    };
    let next = Section::Keys.path();
    if key.revoked_at.is_none() && !api.service.is_form_token(key.hash, fields.text("seen")) {
        return Ok(redirect_with_flash(next, FlashMessage::SecretAlreadyReplaced));
    }
    let (issuer, expected_secret) = (api.service.issuer(Actor::Session), Some(key.hash));
    match issuer.rotate(&key.id, overlap, expected_secret, api.service.now()).await? {
        RotationOutcome::Done(key, record) => {
            let flash = match overlap {
                0 => FlashMessage::KeyRotatedAtOnce,
                _ => FlashMessage::KeyRotated,
            };
            secret_page::show(user, (Some(&record.name), key.secret()), Some(flash), next)
        }
        RotationOutcome::Revoked => Ok(redirect_with_flash(next, FlashMessage::KeyAlreadyRevoked)),
        RotationOutcome::Superseded => {
            Ok(redirect_with_flash(next, FlashMessage::SecretAlreadyReplaced))
        }
        RotationOutcome::Unknown => Err(ErrorCode::NotFound.into()),
    }
}

/// Asks whether to revoke a key.
pub(super) async fn confirm_revocation(
    State(api): State<Api>,
    Path(id): Path<String>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let key = KeyRow::new(&find(&api, &user, &id).await?, api.service.now());
    render_page(&RevokePage { frame: user.frame(Section::Keys), key })
}

/// Revokes a key.
pub(super) async fn revoke(
    State(api): State<Api>,
    Path(id): Path<String>,
    SubmittedForm { user, .. }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let key = find(&api, &user, &id).await?;
    api.service.revoke_key(&key.id, Actor::Session).await?;
    Ok(redirect_with_flash(Section::Keys.path(), FlashMessage::KeyRevoked))
}

/// Returns the account's key with this id; the key of another account counts as unknown.
async fn find(api: &Api, user: &SignedInUser, id: &str) -> Result<ApiKeyRecord, HttpRefusal> {
    let found: Option<ApiKeyRecord> = api.service.store().credential(id).await?;
    let owned = found.filter(|key| key.scope.tenant.account == user.session.account);
    owned.ok_or_else(|| ErrorCode::NotFound.into())
}
