//! The list of parcels, and searches in it.

use askama::Template;
use axum::{
    extract::{RawQuery, State},
    response::{IntoResponse, Redirect, Response},
};
use parcelo_service::{
    http::{Api, HttpRefusal},
    service::{OwnedParcel, has_label},
};
use parcelo_types::{
    Environment, ErrorCode, Language, ParcelStatus, TrackingNumber,
    model::{PageMeta, ParcelSummary},
};

use super::{
    auth::{SignedInUser, SubmittedForm},
    fields::FormFields,
    frame::{
        ArrivalLine, DisplayTime, Frame, Section, render_invalid_form, render_page, status_tone,
    },
    pagination::Pagination,
    parcel,
    search::{self, ParcelListFilter},
};

#[derive(Template)]
#[template(path = "dashboard/parcels.html")]
struct ParcelsPage {
    frame: Frame,
    search: ParcelListFilter,
    number: String,
    fault: Option<&'static str>,
    statuses: Vec<StatusChoice>,
    rows: Vec<ParcelLine>,
    has_labels: bool,
    total: u64,
    /// `true` if there may be more parcels than the page shows.
    is_partial: bool,
    /// `true` for the results of a text search, which have one page and no file.
    is_search: bool,
    pages: Pagination,
}

struct StatusChoice {
    code: String,
    name: String,
    is_selected: bool,
}

struct ParcelLine {
    number: String,
    status: String,
    tone: &'static str,
    country: String,
    /// The optional columns. Empty columns keep the others aligned.
    reference: String,
    arrival: String,
    is_late: bool,
    created: DisplayTime,
}

/// Shows a page of parcels.
pub(super) async fn list(
    State(api): State<Api>,
    RawQuery(query): RawQuery,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let query = FormFields::parse(query.unwrap_or_default().as_bytes());
    let mut search = ParcelListFilter::from_fields(&query).map_err(|_| ErrorCode::NotFound)?;
    if query.text("environment").is_empty() {
        search.environment = user.context.environment;
    }
    let form = user.context.restored_form.as_ref();
    let typed = form.and_then(|typed| ParcelListFilter::from_fields(typed).ok());
    let shown = load_page(&api, &user, typed.unwrap_or(search)).await?;
    let number = form.map(|typed| typed.text("number").to_owned()).unwrap_or_default();
    render_page(&ParcelsPage { number, ..shown })
}

/// Redirects to the results of a search. A typed text is never part of an address.
pub(super) async fn search(
    State(api): State<Api>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let filter = ParcelListFilter::from_fields(&fields);
    let fault = match (search::search_text(&fields), &filter) {
        (Err((en, es)), _) | (_, &Err((en, es))) => user.language().pick(en, es),
        (Ok(None), Ok(search)) => return Ok(Redirect::to(&search.address()).into_response()),
        (Ok(Some(text)), Ok(search)) => return show_matches(&api, &user, search, text).await,
    };
    let all = ParcelListFilter::from_fields(&FormFields::default())
        .map_err(|_| ErrorCode::InternalError)?;
    let shown = load_page(&api, &user, filter.unwrap_or(all)).await?;
    let number = fields.text("number").trim().to_owned();
    render_invalid_form(&ParcelsPage { number, fault: Some(fault), ..shown })
}

/// Redirects to the parcel if exactly one matches the text; otherwise shows the list of matches.
async fn show_matches(
    api: &Api,
    user: &SignedInUser,
    search: &ParcelListFilter,
    text: String,
) -> Result<Response, HttpRefusal> {
    if let Ok(number) = TrackingNumber::parse(&text)
        && let Some(address) = find_parcel_url(api, user, number.as_str()).await?
    {
        return Ok(Redirect::to(&address).into_response());
    }
    let tenant = user.tenant(search.environment);
    let find = async |text: &str| {
        api.service.list_tenant_parcels(tenant, &search.text_query(text), user.language()).await
    };
    // Assume that an exact match was meant, even if other parcels begin with the text.
    let (mut found, mut meta) = find(&format!("\"{text}\"")).await?;
    if found.is_empty() {
        (found, meta) = find(&text).await?;
    }
    let list = ParcelsPage::new(user, (search.with_page(1), text), &found, &meta);
    match &*found {
        // There may be another match among the parcels that were not searched.
        _ if meta.is_partial => render_page(&list),
        [] => render_invalid_form(&ParcelsPage {
            fault: Some(no_match_text(user.language())),
            ..list
        }),
        [one] => {
            let address = parcel::address(search.environment, one.tracking_number.as_str());
            Ok(Redirect::to(&address).into_response())
        }
        _ => render_page(&list),
    }
}

/// Returns the text for a search without matches.
fn no_match_text(language: Language) -> &'static str {
    language.pick(
        "No parcel matches. Type the beginning or the last 4 or more characters of a number, reference or air waybill, \
         or words of the receiver's name.",
        "Ningún paquete coincide. Escriba el comienzo o los últimos 4 o más caracteres de un número, una referencia o \
         una guía aérea, o palabras del nombre del destinatario.",
    )
}

/// Returns the address of a parcel's page, whether it is in production or in the sandbox.
async fn find_parcel_url(
    api: &Api,
    user: &SignedInUser,
    number: &str,
) -> Result<Option<String>, HttpRefusal> {
    for environment in Environment::ALL {
        let tenant = user.tenant(environment);
        match api.service.owned_parcel(tenant, number, user.language()).await {
            Ok(OwnedParcel { row, .. }) => {
                return Ok(Some(parcel::address(environment, row.tracking_number.as_str())));
            }
            Err(refusal) if refusal.code == ErrorCode::ParcelNotFound => {}
            Err(refusal) => return Err(refusal.into()),
        }
    }
    Ok(None)
}

/// Loads a page of the list.
async fn load_page(
    api: &Api,
    user: &SignedInUser,
    search: ParcelListFilter,
) -> Result<ParcelsPage, HttpRefusal> {
    let (tenant, language) = (user.tenant(search.environment), user.language());
    let (found, meta) = api.service.list_tenant_parcels(tenant, &search.query(), language).await?;
    Ok(ParcelsPage::new(user, (search, String::new()), &found, &meta))
}

impl ParcelsPage {
    /// Returns `true` if a search has found more than it shows.
    const fn is_truncated(&self) -> bool {
        self.is_partial || self.total > self.rows.len() as u64
    }

    fn new(
        user: &SignedInUser,
        (search, text): (ParcelListFilter, String),
        found: &[ParcelSummary],
        meta: &PageMeta,
    ) -> Self {
        let language = user.language();
        let choice = |status: &ParcelStatus| StatusChoice {
            code: status.code().to_owned(),
            name: status.name(language).to_owned(),
            is_selected: search.status.as_ref() == Some(status),
        };
        let address = |page: u32| search.with_page(page).address();
        let is_search = !text.is_empty();
        let has_older = !is_search && u64::from(search.page) < meta.total_pages;
        let position = (!is_search).then(|| format!("{} / {}", search.page, meta.total_pages));
        Self {
            frame: user.frame(Section::Parcels),
            number: text,
            fault: None,
            statuses: ParcelStatus::KNOWN.iter().map(choice).collect(),
            rows: found.iter().map(|parcel| ParcelLine::new(parcel, user)).collect(),
            has_labels: !is_search && found.iter().any(|parcel| has_label(&parcel.status)),
            total: meta.total,
            is_partial: meta.is_partial,
            is_search,
            pages: Pagination { position, ..Pagination::new(search.page, has_older, address) },
            search,
        }
    }
}

impl ParcelLine {
    fn new(parcel: &ParcelSummary, user: &SignedInUser) -> Self {
        let arrival = ArrivalLine::new(parcel.arrival.as_ref(), user.language());
        let mut references: Vec<&str> = [&parcel.external_order_id, &parcel.customer_reference]
            .into_iter()
            .filter_map(|reference| reference.as_deref())
            .collect();
        references.dedup();
        Self {
            number: parcel.tracking_number.to_string(),
            status: parcel.status_name.clone(),
            tone: status_tone(&parcel.status),
            country: parcel.destination_country.name(user.language()).to_owned(),
            reference: references.join(" · "),
            is_late: arrival.as_ref().is_some_and(|arrival| arrival.is_late),
            arrival: arrival.map(|arrival| arrival.text).unwrap_or_default(),
            created: DisplayTime::new(parcel.created_at),
        }
    }
}
