//! Parcels: looking for them, and one of them with its way and its label.

use askama::Template;
use axum::{
    extract::{Path, RawQuery, State},
    http::header,
    response::{IntoResponse, Redirect, Response},
};
use parcelo::{Environment, ErrorCode, LabelFormat, ParcelStatus, model::ParcelSummary};

use super::{
    auth::{Fields, SignedIn, SubmittedForm},
    frame::{Frame, Moment, Section, invalid_form, page, tone},
    pagination::Pagination,
    search::{self, Search},
    webhooks::environment_of,
};
use crate::{
    domain::labels,
    http::{Api, Refused},
    service::OwnParcel,
};

#[derive(Template)]
#[template(path = "dashboard/parcels.html")]
struct Parcels {
    frame: Frame,
    search: Search,
    number: String,
    fault: Option<&'static str>,
    statuses: Vec<Choice>,
    rows: Vec<Row>,
    total: u64,
    pages: Pagination,
}

struct Choice {
    code: String,
    name: String,
    chosen: bool,
}

struct Row {
    number: String,
    status: String,
    tone: &'static str,
    country: String,
    created: Moment,
}

#[derive(Template)]
#[template(path = "dashboard/parcel.html")]
struct Parcel {
    frame: Frame,
    environment: Environment,
    number: String,
    status: String,
    tone: &'static str,
    facts: Vec<(&'static str, String)>,
    tracking_url: String,
    has_label: bool,
    events: Vec<Event>,
}

struct Event {
    status: String,
    location: String,
    description: Option<String>,
    at: Moment,
}

/// A page of parcels.
pub(super) async fn list(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    member: SignedIn,
) -> Result<Response, Refused> {
    let fields = Fields::parse(query.unwrap_or_default().as_bytes());
    let search = Search::from_fields(&fields).map_err(|_| ErrorCode::NotFound)?;
    page(&parcels(&api, &member, search).await?)
}

/// Goes to the page that shows what was looked for; what was typed is in no address.
pub(super) async fn search(
    State(api): State<Api>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, Refused> {
    let looked_for = search::number(&fields);
    let found = Search::from_fields(&fields);
    let fault = match (&looked_for, &found) {
        (Err(fault), _) | (_, Err(fault)) => search::text(*fault, member.language()),
        (Ok(None), Ok(search)) => return Ok(Redirect::to(&search.address()).into_response()),
        (Ok(Some(number)), Ok(_)) => match place_of(&api, &member, number.as_str()).await? {
            Some(address) => return Ok(Redirect::to(&address).into_response()),
            None => member.language().pick(
                "None of your parcels has this number. Compare it with the label.",
                "Ninguno de sus paquetes tiene este número. Compárelo con la etiqueta.",
            ),
        },
    };
    let all = Search::from_fields(&Fields::default()).map_err(|_| ErrorCode::InternalError)?;
    let shown = parcels(&api, &member, found.unwrap_or(all)).await?;
    let number = fields.text("number").trim().to_owned();
    invalid_form(&Parcels { number, fault: Some(fault), ..shown })
}

/// The page of a parcel, in whichever environment it is.
async fn place_of(api: &Api, member: &SignedIn, number: &str) -> Result<Option<String>, Refused> {
    for environment in Environment::ALL {
        let tenant = member.tenant(environment);
        match api.service.parcel_of(tenant, number, member.language()).await {
            Ok(OwnParcel { row, .. }) => {
                let (environment, number) = (environment.code(), row.tracking_number);
                return Ok(Some(format!("/dashboard/parcels/{environment}/{number}")));
            }
            Err(refusal) if refusal.code == ErrorCode::ParcelNotFound => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(None)
}

async fn parcels(api: &Api, member: &SignedIn, search: Search) -> Result<Parcels, Refused> {
    let (tenant, language) = (member.tenant(search.environment), member.language());
    let (found, meta) = api.service.list_of(tenant, &search.query(), language).await?;
    let choice = |status: &ParcelStatus| Choice {
        code: status.code().to_owned(),
        name: status.name(language).to_owned(),
        chosen: search.status.as_ref() == Some(status),
    };
    let at = |page: u32| search.at_page(page).address();
    let has_older = u64::from(search.page) < meta.total_pages;
    let position = Some(format!("{} / {}", search.page, meta.total_pages));
    Ok(Parcels {
        frame: member.frame(Section::Parcels),
        number: String::new(),
        fault: None,
        statuses: ParcelStatus::KNOWN.iter().map(choice).collect(),
        rows: found.iter().map(|parcel| Row::new(parcel, member)).collect(),
        total: meta.total,
        pages: Pagination { position, ..Pagination::new(search.page, has_older, at) },
        search,
    })
}

impl Row {
    fn new(parcel: &ParcelSummary, member: &SignedIn) -> Self {
        Self {
            number: parcel.tracking_number.to_string(),
            status: parcel.status_name.clone(),
            tone: tone(&parcel.status),
            country: parcel.destination_country.name(member.language()).to_owned(),
            created: Moment::new(parcel.created_at),
        }
    }
}

/// One parcel.
pub(super) async fn show(
    State(api): State<Api>,
    Path((environment, number)): Path<(String, String)>,
    member: SignedIn,
) -> Result<Response, Refused> {
    let environment = environment_of(&environment)?;
    let tenant = member.tenant(environment);
    let found = api.service.parcel_of(tenant, &number, member.language()).await?;
    let facts = facts(&found, &member);
    let OwnParcel { row, record, tracking_url, .. } = found;
    let events = record.history.into_iter().flatten().flatten().rev().map(|entry| Event {
        status: entry.status_name,
        location: entry.location,
        description: entry.description,
        at: Moment::new(entry.timestamp),
    });
    page(&Parcel {
        environment,
        number: row.tracking_number.to_string(),
        status: record.status_name,
        tone: tone(&record.status),
        facts,
        tracking_url,
        has_label: labels::check_alive(row.state).is_ok(),
        events: events.collect(),
        frame: member.frame(Section::Parcels),
    })
}

fn facts(found: &OwnParcel, member: &SignedIn) -> Vec<(&'static str, String)> {
    let OwnParcel { row, order, record, .. } = found;
    let say = |en, es| member.language().pick(en, es);
    let mut facts = vec![
        (say("To", "Destino"), row.country.name(member.language()).to_owned()),
        (say("Created", "Creado"), Moment::from_millis(row.created_at).words),
        (say("Last change", "Último cambio"), Moment::from_millis(row.updated_at).words),
        (
            say("Estimated delivery", "Entrega estimada"),
            record.estimated_delivery.date_naive().to_string(),
        ),
        (say("Label version", "Versión de la etiqueta"), row.label_version.to_string()),
    ];
    let optional = [
        (say("Your order", "Su pedido"), &order.external_order_id),
        (say("Reference", "Referencia"), &order.customer_reference),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text.clone()?))));
    facts
}

/// A parcel's label, as a picture or a file.
pub(super) async fn label(
    State(api): State<Api>,
    Path((environment, number, file)): Path<(String, String, String)>,
    member: SignedIn,
) -> Result<Response, Refused> {
    let environment = environment_of(&environment)?;
    let format = file.strip_prefix("label.").and_then(|format| LabelFormat::parse(format).ok());
    let format = format.ok_or(ErrorCode::NotFound)?;
    let label = api.service.label_of(member.tenant(environment), &number, format).await?;
    // A browser that shows PDFs by itself would run them; a picture is on the page.
    let place = if format == LabelFormat::Png { "inline" } else { "attachment" };
    let name = format!("{place}; filename=\"{}.{}\"", label.number, format.extension());
    let headers = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    Ok((headers, label.bytes).into_response())
}
