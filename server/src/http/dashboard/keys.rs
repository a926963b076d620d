//! Keys: which there are, making one, revoking one.

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    response::{IntoResponse, Redirect, Response},
};
use parcelo::{Environment, ErrorCode};

use super::{
    frame::{Frame, Moment, Section, again, page},
    key_form::KeyForm,
    member::{Fields, Member, Posted},
    notes::{Once, Place, Said},
    pages::{self, Pages},
};
use crate::{
    core::KeyRecord,
    http::{Api, Refused},
    service::NewKeyRequest,
};

const PAGE: &str = "/dashboard/keys";
/// Keys on a page.
const SHOWN: usize = 50;

#[derive(Template)]
#[template(path = "dashboard/keys.html")]
struct Keys {
    frame: Frame,
    fresh: Vec<Once>,
    all: Vec<Key>,
    pages: Pages,
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
    revoked: Option<Moment>,
}

#[derive(Template)]
#[template(path = "dashboard/new_key.html")]
struct NewKey {
    frame: Frame,
    form: KeyForm,
    faults: Vec<&'static str>,
}

#[derive(Template)]
#[template(path = "dashboard/revoke.html")]
struct Revoke {
    frame: Frame,
    key: Key,
}

impl Key {
    fn of(record: &KeyRecord) -> Self {
        let environment = record.tenant.environment;
        Self {
            id: record.id.clone(),
            name: record.name.clone(),
            environment,
            shown: format!("{}…{}", environment.key_prefix(), record.last4),
            countries: record.countries.to_wire().join(", "),
            addresses: record.ip_list.iter().map(ToString::to_string).collect(),
            created: Moment::of(record.created_at),
            revoked: record.revoked_at.map(Moment::of),
        }
    }
}

/// The account's keys, and those just made with their secrets.
pub(super) async fn list(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    member: Member,
) -> Result<Response, Refused> {
    let records = api.service.store().keys_of(member.session.account)?;
    let asked = pages::asked(&Fields::of(query.unwrap_or_default().as_bytes()));
    let last = u32::try_from(records.len().div_ceil(SHOWN)).unwrap_or(u32::MAX).max(1);
    let number = asked.min(last);
    let shown = records.iter().skip(pages::skipped(number, SHOWN)).take(SHOWN);
    let notes = member.take(Place::Keys, api.service.now());
    let frame = member.frame(Section::Keys).saying(notes.said);
    page(&Keys {
        frame,
        fresh: notes.secrets,
        all: shown.map(Key::of).collect(),
        pages: Pages::beside(number, number < last, |number| pages::address(PAGE, number)),
    })
}

/// An empty form.
pub(super) async fn blank(member: Member) -> Result<Response, Refused> {
    let frame = member.frame(Section::Keys);
    page(&NewKey { frame, form: KeyForm::default(), faults: Vec::new() })
}

/// Makes a key, whose secret the next page shows.
pub(super) async fn create(
    State(api): State<Api>,
    Posted { member, fields }: Posted,
) -> Result<Response, Refused> {
    let form = KeyForm::of(&fields);
    let wanted = match form.check(&api.service.settings().destinations, member.language()) {
        Ok(wanted) => wanted,
        Err(faults) => {
            return again(&NewKey { frame: member.frame(Section::Keys), form, faults });
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
    let (key, _) = api.service.issuer().issue(request, now).await?;
    let once = Once { of: wanted.name, secret: key.secret().to_owned() };
    member.leave(Place::Keys, once, now);
    Ok(Redirect::to(PAGE).into_response())
}

/// Asks whether a key is to be revoked.
pub(super) async fn ask(
    State(api): State<Api>,
    Path(id): Path<String>,
    member: Member,
) -> Result<Response, Refused> {
    let key = Key::of(&find(&api, &member, &id)?);
    page(&Revoke { frame: member.frame(Section::Keys), key })
}

/// Revokes a key.
pub(super) async fn revoke(
    State(api): State<Api>,
    Path(id): Path<String>,
    Posted { member, .. }: Posted,
) -> Result<Response, Refused> {
    let key = find(&api, &member, &id)?;
    api.service.revoke_key(&key.id).await?;
    member.leave(Place::Keys, Said::KeyRevoked, api.service.now());
    Ok(Redirect::to(PAGE).into_response())
}

fn find(api: &Api, member: &Member, id: &str) -> Result<KeyRecord, Refused> {
    let found = api.service.store().key_of(member.session.account, id)?;
    found.ok_or_else(|| ErrorCode::NotFound.into())
}
