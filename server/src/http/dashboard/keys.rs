//! Keys: which there are, making one, giving one a new secret, revoking one.

use std::borrow::Cow;

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    response::Response,
};
use parcelo::{Environment, ErrorCode};

use super::{
    auth::{SignedIn, SubmittedForm},
    fields::Fields,
    flash::{FlashPage, FlashText, OneTimeSecret},
    frame::{Frame, Moment, Section, invalid_form, page},
    key_form::KeyForm,
    pagination::{self, Pagination},
};
use crate::{
    clock::Millis,
    domain::{
        ApiKeyRecord,
        activity::begin_of,
        audit::Actor,
        credentials::{DEFAULT_OVERLAP_SECONDS, MAX_OVERLAP_SECONDS},
        key_uses::LastUses,
    },
    http::{Api, Refused},
    service::{NewKeyRequest, Rotation},
};

/// Keys on a page.
const KEYS_PER_PAGE: usize = 50;

#[derive(Template)]
#[template(path = "dashboard/keys.html")]
struct Keys {
    frame: Frame,
    fresh: Vec<OneTimeSecret>,
    all: Vec<Key>,
    pages: Pagination,
}

/// A key as people see it.
struct Key {
    id: String,
    name: String,
    environment: Environment,
    shown: String,
    countries: String,
    addresses: Vec<String>,
    created: Moment,
    /// The last day on which it was used.
    used: Option<String>,
    old_until: Option<Moment>,
    revoked: Option<Moment>,
}

#[derive(Template)]
#[template(path = "dashboard/new_key.html")]
struct NewKey {
    frame: Frame,
    form: KeyForm,
    faults: Vec<Cow<'static, str>>,
}

#[derive(Template)]
#[template(path = "dashboard/rotate.html")]
struct Rotate {
    frame: Frame,
    key: Key,
    overlaps: [Overlap; 4],
    fault: Option<&'static str>,
}

/// How long the old secret may keep working, to choose from.
#[derive(Clone, Copy)]
struct Overlap {
    seconds: u32,
    english: &'static str,
    spanish: &'static str,
}

/// The usual one first.
const OVERLAPS: [Overlap; 4] = [
    Overlap {
        seconds: DEFAULT_OVERLAP_SECONDS,
        english: "for 24 hours",
        spanish: "durante 24 horas",
    },
    Overlap { seconds: MAX_OVERLAP_SECONDS, english: "for 7 days", spanish: "durante 7 días" },
    Overlap { seconds: 60 * 60, english: "for 1 hour", spanish: "durante 1 hora" },
    Overlap {
        seconds: 0,
        english: "no: end it now (it may have leaked)",
        spanish: "no: desactivarlo ya (puede haberse filtrado)",
    },
];

#[derive(Template)]
#[template(path = "dashboard/revoke.html")]
struct Revoke {
    frame: Frame,
    key: Key,
}

impl Key {
    fn new(record: &ApiKeyRecord, now: Millis) -> Self {
        let environment = record.scope.tenant.environment;
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            environment,
            shown: format!("{}…{}", environment.key_prefix(), record.last4),
            countries: record.scope.countries.to_wire().join(", "),
            addresses: record.scope.ip_list.iter().map(ToString::to_string).collect(),
            created: Moment::from_millis(record.created_at),
            used: None,
            old_until: record.old_secret_until(now).map(Moment::from_millis),
            revoked: record.revoked_at.map(Moment::from_millis),
        }
    }

    fn with_last_use(self, uses: &LastUses, record: &ApiKeyRecord) -> Self {
        let day = uses.get(&record.row).map(|day| begin_of(*day).to_utc().date_naive());
        Self { used: day.map(|day| day.to_string()), ..self }
    }
}

/// The account's keys, and those just made with their secrets.
pub(super) async fn list(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    member: SignedIn,
) -> Result<Response, Refused> {
    let records = api.service.store().keys_of(member.session.account).await?;
    let asked = pagination::requested_page(&Fields::parse(query.unwrap_or_default().as_bytes()));
    let last = u32::try_from(records.len().div_ceil(KEYS_PER_PAGE)).unwrap_or(u32::MAX).max(1);
    let number = asked.min(last);
    let shown = records.iter().skip(pagination::offset(number, KEYS_PER_PAGE)).take(KEYS_PER_PAGE);
    let uses = api.service.key_uses_of(member.session.account).await?;
    let now = api.service.now();
    let flashes = member.take(&api, FlashPage::Keys).await?;
    let frame = member.frame(Section::Keys).with_flash(flashes.text);
    page(&Keys {
        frame,
        fresh: flashes.secrets,
        all: shown.map(|record| Key::new(record, now).with_last_use(&uses, record)).collect(),
        pages: Pagination::new(number, number < last, |number| {
            pagination::address(FlashPage::Keys.path(), number)
        }),
    })
}

/// An empty form, or the one that the end of a session interrupted.
pub(super) async fn blank(State(api): State<Api>, member: SignedIn) -> Result<Response, Refused> {
    let flashes = member.take(&api, FlashPage::NewKey).await?;
    let form = flashes.form.as_ref().map_or_else(KeyForm::blank, KeyForm::from_fields);
    let frame = member.frame(Section::Keys).with_flash(flashes.text);
    page(&NewKey { frame, form, faults: Vec::new() })
}

/// Makes a key, whose secret the next page shows.
pub(super) async fn create(
    State(api): State<Api>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, Refused> {
    let form = KeyForm::from_fields(&fields);
    let wanted = match form.check(&api.service.settings().destinations, member.language()) {
        Ok(wanted) => wanted,
        Err(faults) => {
            return invalid_form(&NewKey { frame: member.frame(Section::Keys), form, faults });
        }
    };
    let now = api.service.now();
    let request = NewKeyRequest {
        account: member.session.name.clone(),
        environment: wanted.environment,
        name: wanted.name.clone(),
        countries: wanted.countries,
        ip_list: wanted.addresses,
        rate_limit: None,
    };
    let (key, _) = api.service.issuer(Actor::Session).issue_api_key(request, now).await?;
    let one_time = OneTimeSecret { name: wanted.name, secret: key.secret().to_owned() };
    member.go_to(&api, FlashPage::Keys, one_time).await
}

/// Asks whether a key is to get a new secret, and how long the old one is to keep working.
pub(super) async fn ask_rotation(
    State(api): State<Api>,
    Path(id): Path<String>,
    member: SignedIn,
) -> Result<Response, Refused> {
    let key = Key::new(&find(&api, &member, &id).await?, api.service.now());
    page(&Rotate { frame: member.frame(Section::Keys), key, overlaps: OVERLAPS, fault: None })
}

/// Gives a key a new secret, which the next page shows.
pub(super) async fn rotate(
    State(api): State<Api>,
    Path(id): Path<String>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, Refused> {
    let found = find(&api, &member, &id).await?;
    let given = fields.text("overlap");
    let offered = |overlap: &&Overlap| overlap.seconds.to_string() == given;
    let now = api.service.now();
    let Some(overlap) = OVERLAPS.iter().find(offered) else {
        let (frame, key) = (member.frame(Section::Keys), Key::new(&found, now));
        let fault = Some(member.language().pick(
            "Choose one of the times below for the old secret to keep working.",
            "Elija abajo durante cuánto tiempo sigue sirviendo el secreto anterior.",
        ));
        return invalid_form(&Rotate { frame, key, overlaps: OVERLAPS, fault });
    };
    match api.service.rotate_key(&found.id, overlap.seconds, Actor::Session).await? {
        Rotation::Done(key, record) => {
            let is_over = overlap.seconds == 0;
            let said = if is_over { FlashText::KeyRotatedAtOnce } else { FlashText::KeyRotated };
            member.note(&api, FlashPage::Keys, said).await;
            let one_time = OneTimeSecret { name: record.name, secret: key.secret().to_owned() };
            member.go_to(&api, FlashPage::Keys, one_time).await
        }
        Rotation::Revoked => member.go_to(&api, FlashPage::Keys, FlashText::KeyWasRevoked).await,
        Rotation::Unknown => Err(ErrorCode::NotFound.into()),
    }
}

/// Asks whether a key is to be revoked.
pub(super) async fn ask(
    State(api): State<Api>,
    Path(id): Path<String>,
    member: SignedIn,
) -> Result<Response, Refused> {
    let key = Key::new(&find(&api, &member, &id).await?, api.service.now());
    page(&Revoke { frame: member.frame(Section::Keys), key })
}

/// Revokes a key.
pub(super) async fn revoke(
    State(api): State<Api>,
    Path(id): Path<String>,
    SubmittedForm { member, .. }: SubmittedForm,
) -> Result<Response, Refused> {
    let key = find(&api, &member, &id).await?;
    api.service.revoke_key(&key.id, Actor::Session).await?;
    member.go_to(&api, FlashPage::Keys, FlashText::KeyRevoked).await
}

async fn find(api: &Api, member: &SignedIn, id: &str) -> Result<ApiKeyRecord, Refused> {
    let found: Option<ApiKeyRecord> = api.service.store().credential(id).await?;
    let own = found.filter(|key| key.scope.tenant.account == member.session.account);
    own.ok_or_else(|| ErrorCode::NotFound.into())
}
