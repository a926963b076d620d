//! One parcel: sender and receiver, history, label and invoice, and the actions of its owner.

use askama::Template;
use axum::{
    extract::{Path, State},
    response::Response,
};
use parcelo_domain::{labels, void};
use parcelo_service::{
    http::{Api, HttpRefusal, response},
    service::{LabelFile, OwnedParcel},
};
use parcelo_types::{
    Environment, ErrorCode, LabelFormat, OrderRequest, ParcelStatus, Product, Receiver, Sender,
};

use super::{
    auth::{SignedInUser, SubmittedForm},
    context::redirect_with_flash,
    flash::FlashMessage,
    frame::{ArrivalLine, DisplayTime, Frame, Section, render_page, status_tone},
    mails::MailRow,
    webhooks::{DeliveryRow, parse_environment},
};

/// Maximum number of webhook events that are shown; a parcel rarely has more.
const MAX_WEBHOOK_EVENTS: usize = 50;

#[derive(Template)]
#[template(path = "dashboard/parcel.html")]
struct ParcelPage {
    frame: Frame,
    environment: Environment,
    number: String,
    status: String,
    tone: &'static str,
    details: Vec<(&'static str, String)>,
    tracking_url: String,
    awb: Option<String>,
    items: Vec<OrderItem>,
    has_label: bool,
    can_be_voided: bool,
    events: Vec<HistoryRow>,
    mails: Vec<MailRow>,
    deliveries: Vec<DeliveryRow>,
}

/// An item of the order.
struct OrderItem {
    quantity: u32,
    description: String,
    sku: Option<String>,
    hs_code: Option<String>,
    value: String,
}

struct HistoryRow {
    status: String,
    location: String,
    description: Option<String>,
    at: DisplayTime,
}

/// Shows one parcel.
pub(super) async fn show(
    State(api): State<Api>,
    Path((environment, number)): Path<(String, String)>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let environment = parse_environment(&environment)?;
    let tenant = user.tenant(environment);
    let parcel = api.service.owned_parcel(tenant, &number, user.language()).await?;
    let details = detail_rows(&parcel, &user);
    let (store, key, language) = (api.service.store(), parcel.row.key, user.language());
    let mails = store.mails_of_parcel(key).await?;
    let deliveries = store.parcel_deliveries(tenant, key, MAX_WEBHOOK_EVENTS).await?;
    let OwnedParcel { row, order, record, tracking_url, awb } = parcel;
    let events = record.history.into_iter().flatten().flatten().rev().map(|entry| HistoryRow {
        status: entry.status_name,
        location: entry.location,
        description: entry.description,
        at: DisplayTime::new(entry.timestamp),
    });
    render_page(&ParcelPage {
        environment,
        number: row.tracking_number.to_string(),
        status: record.status_name,
        tone: status_tone(&record.status),
        details,
        tracking_url,
        awb,
        items: order.products.iter().map(|product| OrderItem::new(product, &order)).collect(),
        has_label: labels::check_label_usable(row.state).is_ok(),
        can_be_voided: void::can_be_voided(row.state),
        events: events.collect(),
        mails: mails.iter().map(|mail| MailRow::new(mail, language)).collect(),
        // Events are replayed on the webhook's page, as if it were off here.
        deliveries: deliveries
            .iter()
            .map(|event| DeliveryRow::new(event, false, language))
            .collect(),
        frame: user.frame(Section::Parcels),
    })
}

/// Voids the order, or reprints its label.
pub(super) async fn perform_action(
    State(api): State<Api>,
    Path((environment, number)): Path<(String, String)>,
    SubmittedForm { user, fields }: SubmittedForm,
) -> Result<Response, HttpRefusal> {
    let environment = parse_environment(&environment)?;
    let tenant = user.tenant(environment);
    let flash = match fields.text("action") {
        "void" => {
            api.service.void_parcel(tenant, &number).await?;
            FlashMessage::ParcelVoided
        }
        "reprint" => {
            api.service.reprint_parcel(tenant, &number).await?;
            FlashMessage::LabelReprinted
        }
        _ => return Err(ErrorCode::NotFound.into()),
    };
    Ok(redirect_with_flash(&address(environment, &number.to_ascii_uppercase()), flash))
}

/// Returns the address of a parcel's page.
pub(super) fn address(environment: Environment, number: &str) -> String {
    format!("/dashboard/parcels/{}/{number}", environment.code())
}

impl OrderItem {
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

/// Returns the details of a parcel, each with its heading.
fn detail_rows(parcel: &OwnedParcel, user: &SignedInUser) -> Vec<(&'static str, String)> {
    let OwnedParcel { row, order, record, awb, .. } = parcel;
    let pick = |en, es| user.language().pick(en, es);
    let arrival = ArrivalLine::new(record.arrival.as_ref(), user.language());
    let details = &order.parcel_details;
    let mut rows = vec![
        (pick("Receiver", "Destinatario"), receiver_text(&order.receiver)),
        (pick("To", "Destino"), row.country.name(user.language()).to_owned()),
        (pick("Sender", "Remitente"), sender_text(&order.sender)),
        (
            pick("Declared value", "Valor declarado"),
            format!("{:.2} {}", details.declared_value, details.currency),
        ),
        (pick("Created", "Creado"), DisplayTime::from_millis(row.created_at).text),
        (pick("Last change", "Último cambio"), DisplayTime::from_millis(row.updated_at).text),
        (
            pick("Arrival", "Llegada"),
            arrival.map_or_else(|| pick("no date", "sin fecha").to_owned(), |arrival| arrival.text),
        ),
        (pick("Label version", "Versión de la etiqueta"), row.label_version.to_string()),
    ];
    let weight = details.weight_kg.map(|kg| format!("{kg} kg"));
    let weight = weight.or_else(|| details.weight_lbs.map(|pounds| format!("{pounds} lb")));
    let customs = order.customs_info.as_ref().filter(|_| order.products.is_empty());
    let contents = customs.and_then(|customs| customs.description.clone());
    let is_voided = record.status == ParcelStatus::Voided;
    let promised = (!is_voided).then(|| record.estimated_delivery.date_naive().to_string());
    let optional = [
        (pick("Promised day", "Fecha prometida"), promised),
        (pick("Weight", "Peso"), weight),
        (pick("Contents", "Contenido"), contents),
        (pick("Your order", "Su pedido"), order.external_order_id.clone()),
        (pick("Reference", "Referencia"), order.customer_reference.clone()),
        (pick("Air waybill", "Guía aérea"), awb.clone()),
    ];
    rows.extend(optional.into_iter().filter_map(|(name, text)| Some((name, text?))));
    rows
}

/// Returns the receiver's name and address as text.
fn receiver_text(receiver: &Receiver) -> String {
    let address = &receiver.address;
    let optional = [&receiver.company_name, &address.line2, &address.province, &address.zip_code];
    let [company, line2, province, zip] = optional.map(|text| text.as_deref().unwrap_or_default());
    join_non_empty(&[
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

/// Returns the sender's name and address as text.
fn sender_text(sender: &Sender) -> String {
    let company = sender.company_name.as_deref().unwrap_or_default();
    join_non_empty(&[
        &sender.full_name,
        company,
        &sender.address.city,
        sender.address.country.as_str(),
    ])
}

/// Joins the parts that are not empty with commas.
fn join_non_empty(parts: &[&str]) -> String {
    let non_empty: Vec<_> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    non_empty.join(", ")
}

/// Sends a parcel's label, as a picture or a file, or its invoice.
pub(super) async fn download_document(
    State(api): State<Api>,
    Path((environment, number, file)): Path<(String, String, String)>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let tenant = user.tenant(parse_environment(&environment)?);
    if file == "invoice.pdf" {
        let invoice = api.service.draw_tenant_invoice(tenant, &number).await?;
        return Ok(file_response(invoice, "-invoice"));
    }
    let format = file.strip_prefix("label.").and_then(|format| LabelFormat::parse(format).ok());
    let format = format.ok_or(ErrorCode::NotFound)?;
    Ok(file_response(api.service.draw_tenant_label(tenant, &number, format).await?, ""))
}

fn file_response(file: LabelFile, suffix: &str) -> Response {
    let format = file.format;
    // A PDF is downloaded, not opened in the browser; the page shows the label as a picture.
    let disposition = if format == LabelFormat::Png { "inline" } else { "attachment" };
    let name =
        format!("{disposition}; filename=\"{}{suffix}.{}\"", file.number, format.extension());
    response::file(format.content_type(), name, file.bytes)
}
