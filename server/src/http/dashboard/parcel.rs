//! One parcel: sender and receiver, history, papers, and the actions of its owner.

use askama::Template;
use axum::{
    extract::{Path, State},
    http::header,
    response::{IntoResponse, Response},
};
use parcelo::{
    Environment, ErrorCode, LabelFormat, OrderRequest, ParcelStatus, Product, Receiver, Sender,
};

use super::{
    auth::{SignedIn, SubmittedForm},
    context::go_to,
    flash::Flash,
    frame::{ArrivalText, Frame, Moment, Section, page, tone},
    mails::MailLine,
    webhooks::environment_of,
};
use crate::{
    domain::{labels, void},
    http::{Api, Refused},
    service::{LabelFile, OwnParcel},
};

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
    awb: Option<String>,
    goods: Vec<Good>,
    has_label: bool,
    can_be_voided: bool,
    events: Vec<Event>,
    mails: Vec<MailLine>,
}

/// An item of the order.
struct Good {
    quantity: u32,
    description: String,
    sku: Option<String>,
    hs_code: Option<String>,
    value: String,
}

struct Event {
    status: String,
    location: String,
    description: Option<String>,
    at: Moment,
}

/// Shows one parcel.
pub(super) async fn show(
    State(api): State<Api>,
    Path((environment, number)): Path<(String, String)>,
    member: SignedIn,
) -> Result<Response, Refused> {
    let environment = environment_of(&environment)?;
    let tenant = member.tenant(environment);
    let found = api.service.parcel_of(tenant, &number, member.language()).await?;
    let facts = facts(&found, &member);
    let mails = api.service.store().mails_of_parcel(found.row.key).await?;
    let OwnParcel { row, order, record, tracking_url, awb } = found;
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
        awb,
        goods: order.products.iter().map(|product| Good::new(product, &order)).collect(),
        has_label: labels::check_alive(row.state).is_ok(),
        can_be_voided: void::can_be_voided(row.state),
        events: events.collect(),
        mails: mails.iter().map(|mail| MailLine::new(mail, member.language())).collect(),
        frame: member.frame(Section::Parcels),
    })
}

/// Voids the order, or reprints its label.
pub(super) async fn act(
    State(api): State<Api>,
    Path((environment, number)): Path<(String, String)>,
    SubmittedForm { member, fields }: SubmittedForm,
) -> Result<Response, Refused> {
    let environment = environment_of(&environment)?;
    let tenant = member.tenant(environment);
    let done = match fields.text("action") {
        "void" => {
            api.service.void_of(tenant, &number).await?;
            Flash::ParcelVoided
        }
        "reprint" => {
            api.service.reprint_of(tenant, &number).await?;
            Flash::LabelReprinted
        }
        _ => return Err(ErrorCode::NotFound.into()),
    };
    Ok(go_to(&address(environment, &number.to_ascii_uppercase()), done))
}

/// Returns the address of a parcel's page.
pub(super) fn address(environment: Environment, number: &str) -> String {
    format!("/dashboard/parcels/{}/{number}", environment.code())
}

impl Good {
    fn new(product: &Product, order: &OrderRequest) -> Self {
        let currency = &order.parcel_details.currency;
        Self {
            quantity: product.quantity,
            description: product.description.clone().unwrap_or_else(|| "—".to_owned()),
            sku: product.sku.clone(),
            hs_code: product.hs_code.clone(),
            value: format!("{:.2} {currency}", product.unit_fob_value),
        }
    }
}

fn facts(found: &OwnParcel, member: &SignedIn) -> Vec<(&'static str, String)> {
    let OwnParcel { row, order, record, awb, .. } = found;
    let say = |en, es| member.language().pick(en, es);
    let arrival = ArrivalText::new(record.arrival.as_ref(), member.language());
    let details = &order.parcel_details;
    let mut facts = vec![
        (say("Receiver", "Destinatario"), receiver(&order.receiver)),
        (say("To", "Destino"), row.country.name(member.language()).to_owned()),
        (say("Sender", "Remitente"), sender(&order.sender)),
        (
            say("Declared value", "Valor declarado"),
            format!("{:.2} {}", details.declared_value, details.currency),
        ),
        (say("Created", "Creado"), Moment::from_millis(row.created_at).words),
        (say("Last change", "Último cambio"), Moment::from_millis(row.updated_at).words),
        (
            say("Arrival", "Llegada"),
            arrival.map_or_else(|| say("no date", "sin fecha").to_owned(), |known| known.text),
        ),
        (say("Label version", "Versión de la etiqueta"), row.label_version.to_string()),
    ];
    let weight = details.weight_kg.map(|kg| format!("{kg} kg"));
    let weight = weight.or_else(|| details.weight_lbs.map(|pounds| format!("{pounds} lb")));
    let customs = order.customs_info.as_ref().filter(|_| order.products.is_empty());
    let contents = customs.and_then(|customs| customs.description.clone());
    let is_voided = record.status == ParcelStatus::Voided;
    let promised = (!is_voided).then(|| record.estimated_delivery.date_naive().to_string());
    let optional = [
        (say("Promised day", "Fecha prometida"), promised),
        (say("Weight", "Peso"), weight),
        (say("Contents", "Contenido"), contents),
        (say("Your order", "Su pedido"), order.external_order_id.clone()),
        (say("Reference", "Referencia"), order.customer_reference.clone()),
        (say("Air waybill", "Guía aérea"), awb.clone()),
    ];
    facts.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text?))));
    facts
}

fn receiver(receiver: &Receiver) -> String {
    let address = &receiver.address;
    let known = [&receiver.company_name, &address.line2, &address.province, &address.zip_code];
    let [company, line2, province, zip] = known.map(|text| text.as_deref().unwrap_or_default());
    in_one_line(&[
        &receiver.full_name,
        company,
        &address.line1,
        line2,
        &address.city,
        province,
        zip,
        &receiver.phone,
        receiver.email.as_deref().unwrap_or_default(),
    ])
}

fn sender(sender: &Sender) -> String {
    let company = sender.company_name.as_deref().unwrap_or_default();
    in_one_line(&[
        &sender.full_name,
        company,
        &sender.address.city,
        sender.address.country.as_str(),
    ])
}

fn in_one_line(parts: &[&str]) -> String {
    let given: Vec<_> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    given.join(", ")
}

/// Sends a parcel's label, as a picture or a file, or its invoice.
pub(super) async fn paper(
    State(api): State<Api>,
    Path((environment, number, file)): Path<(String, String, String)>,
    member: SignedIn,
) -> Result<Response, Refused> {
    let tenant = member.tenant(environment_of(&environment)?);
    if file == "invoice.pdf" {
        let invoice = api.service.invoice_of(tenant, &number).await?;
        return Ok(as_file(invoice, "-invoice"));
    }
    let format = file.strip_prefix("label.").and_then(|format| LabelFormat::parse(format).ok());
    let format = format.ok_or(ErrorCode::NotFound)?;
    Ok(as_file(api.service.label_of(tenant, &number, format).await?, ""))
}

fn as_file(paper: LabelFile, suffix: &str) -> Response {
    let format = paper.format;
    // A PDF is downloaded, not opened in the browser; the page shows the label as a picture.
    let place = if format == LabelFormat::Png { "inline" } else { "attachment" };
    let name = format!("{place}; filename=\"{}{suffix}.{}\"", paper.number, format.extension());
    let headers = [
        (header::CONTENT_TYPE, format.content_type().to_owned()),
        (header::CONTENT_DISPOSITION, name),
    ];
    (headers, paper.bytes).into_response()
}
