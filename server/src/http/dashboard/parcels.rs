//! The list of parcels, and searches in it.

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    response::{IntoResponse, Redirect, Response},
};
use parcelo::{
    Environment, ErrorCode, Language, ParcelStatus, TrackingNumber,
    model::{PageMeta, ParcelSummary},
};

use super::{
    auth::{SignedIn, SubmittedForm},
    fields::Fields,
    frame::{ArrivalText, Frame, Moment, Section, invalid_form, page, tone},
    pagination::Pagination,
    parcel,
    search::{self, Search},
};
use crate::{
    http::{Api, Refused},
    service::{OwnParcel, has_label},
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
    has_labels: bool,
    total: u64,
    /// `true` if there may be more parcels than the page shows.
    is_partial: bool,
    /// `true` for the results of a text search, which have one page and no file.
    is_search: bool,
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
    /// The optional columns. Empty columns keep the others aligned.
    reference: String,
    arrival: String,
    is_late: bool,
    created: Moment,
}

/// Shows a page of parcels.
pub(super) async fn list(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    member: SignedIn,
) -> Result<Response, Refused> {
    let asked = Fields::parse(query.unwrap_or_default().as_bytes());
    let mut search = Search::from_fields(&asked).map_err(|_| ErrorCode::NotFound)?;
    if asked.text("environment").is_empty() {
        search.environment = member.context.environment;
    }
    let form = member.context.typed.as_ref();
    let typed = form.and_then(|typed| Search::from_fields(typed).ok());
    let shown = parcels(&api, &member, typed.unwrap_or(search)).await?;
    let number = form.map(|typed| typed.text("number").to_owned()).unwrap_or_default();
    page(&Parcels { number, ..shown })
}

/// Redirects to the results of a search. A typed text is never part of an address.
pub(super) async fn search(
    State(api): State<Api>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, Refused> {
    let found = Search::from_fields(&fields);
    let fault = match (search::wanted(&fields), &found) {
        (Err(fault), _) | (_, &Err(fault)) => search::text(fault, member.language()),
        (Ok(None), Ok(search)) => return Ok(Redirect::to(&search.address()).into_response()),
        (Ok(Some(wanted)), Ok(search)) => return found_by(&api, &member, search, wanted).await,
    };
    let all = Search::from_fields(&Fields::default()).map_err(|_| ErrorCode::InternalError)?;
    let shown = parcels(&api, &member, found.unwrap_or(all)).await?;
    let number = fields.text("number").trim().to_owned();
    invalid_form(&Parcels { number, fault: Some(fault), ..shown })
}

/// Redirects to the only parcel that a text matches, or shows the list if several or none match.
async fn found_by(
    api: &Api,
    member: &SignedIn,
    search: &Search,
    wanted: String,
) -> Result<Response, Refused> {
    if let Ok(number) = TrackingNumber::parse(&wanted)
        && let Some(address) = place_of(api, member, number.as_str()).await?
    {
        return Ok(Redirect::to(&address).into_response());
    }
    let tenant = member.tenant(search.environment);
    let list_of = async |text: &str| {
        api.service.list_of(tenant, &search.query_for(text), member.language()).await
    };
    // Assume that an exact match was meant, even if other parcels begin with the text.
    let (mut found, mut meta) = list_of(&format!("\"{wanted}\"")).await?;
    if found.is_empty() {
        (found, meta) = list_of(&wanted).await?;
    }
    let list = Parcels::new(member, (search.at_page(1), wanted), &found, &meta);
    match &*found {
        // There may be another match among the parcels that were not searched.
        _ if meta.is_partial => page(&list),
        [] => invalid_form(&Parcels { fault: Some(nothing_found(member.language())), ..list }),
        [one] => {
            let address = parcel::address(search.environment, one.tracking_number.as_str());
            Ok(Redirect::to(&address).into_response())
        }
        _ => page(&list),
    }
}

fn nothing_found(language: Language) -> &'static str {
    language.pick(
        "No parcel matches. Type the beginning or the last 4 or more characters of a number, reference or air waybill, \
         or words of the receiver's name.",
        "Ningún paquete coincide. Escriba el comienzo o los últimos 4 o más caracteres de un número, una referencia o \
         una guía aérea, o palabras del nombre del destinatario.",
    )
}

/// Returns the address of a parcel's page, whether it is in production or in the sandbox.
async fn place_of(api: &Api, member: &SignedIn, number: &str) -> Result<Option<String>, Refused> {
    for environment in Environment::ALL {
        let tenant = member.tenant(environment);
        match api.service.parcel_of(tenant, number, member.language()).await {
            Ok(OwnParcel { row, .. }) => {
                return Ok(Some(parcel::address(environment, row.tracking_number.as_str())));
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
    Ok(Parcels::new(member, (search, String::new()), &found, &meta))
}

impl Parcels {
    /// Returns `true` if a search has found more than it shows.
    const fn is_cut(&self) -> bool {
        self.is_partial || self.total > self.rows.len() as u64
    }

    fn new(
        member: &SignedIn,
        (search, wanted): (Search, String),
        found: &[ParcelSummary],
        meta: &PageMeta,
    ) -> Self {
        let language = member.language();
        let choice = |status: &ParcelStatus| Choice {
            code: status.code().to_owned(),
            name: status.name(language).to_owned(),
            chosen: search.status.as_ref() == Some(status),
        };
        let at = |page: u32| search.at_page(page).address();
        let is_search = !wanted.is_empty();
        let has_older = !is_search && u64::from(search.page) < meta.total_pages;
        let position = (!is_search).then(|| format!("{} / {}", search.page, meta.total_pages));
        Self {
            frame: member.frame(Section::Parcels),
            number: wanted,
            fault: None,
            statuses: ParcelStatus::KNOWN.iter().map(choice).collect(),
            rows: found.iter().map(|parcel| Row::new(parcel, member)).collect(),
            has_labels: !is_search && found.iter().any(|parcel| has_label(&parcel.status)),
            total: meta.total,
            is_partial: meta.is_partial,
            is_search,
            pages: Pagination { position, ..Pagination::new(search.page, has_older, at) },
            search,
        }
    }
}

impl Row {
    fn new(parcel: &ParcelSummary, member: &SignedIn) -> Self {
        let arrival = ArrivalText::new(parcel.arrival.as_ref(), member.language());
        let mut references: Vec<&str> = [&parcel.external_order_id, &parcel.customer_reference]
            .into_iter()
            .filter_map(|reference| reference.as_deref())
            .collect();
        references.dedup();
        Self {
            number: parcel.tracking_number.to_string(),
            status: parcel.status_name.clone(),
            tone: tone(&parcel.status),
            country: parcel.destination_country.name(member.language()).to_owned(),
            reference: references.join(" · "),
            is_late: arrival.as_ref().is_some_and(|arrival| arrival.is_late),
            arrival: arrival.map(|arrival| arrival.text).unwrap_or_default(),
            created: Moment::new(parcel.created_at),
        }
    }
}
