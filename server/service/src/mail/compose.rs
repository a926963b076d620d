//! Composes e-mails, as a pure function of the parcel, its order and its shop. Text and HTML state the same facts in
//! the same order.

use askama::Template;
use parcelo_domain::{
    Millis, ParcelRow, Shop, Site, State,
    arrival::arrival,
    country_language,
    mail::{MailKind, MailRecipient},
};
use parcelo_types::{Environment, Language, OrderRequest, ParcelStatus};

use super::{
    Mail,
    names::plain_name,
    texts::{MailTexts, headline, mail_texts, sender_advice, sender_explanation},
};
use crate::wording::{
    ArrivalText, TrackingPageTexts, page_texts, receiver_advice, status_explanation,
};

/// The facts from which an e-mail is composed.
#[derive(Clone, Copy)]
pub(crate) struct MailSource<'a> {
    pub kind: MailKind,
    pub recipient: MailRecipient,
    /// The recipient's address.
    pub to: &'a str,
    /// The parcel as it is now.
    pub parcel: &'a ParcelRow,
    pub order: &'a OrderRequest,
    pub shop: &'a Shop,
    pub site: &'a Site,
    /// The part of the Message-ID before the `@`: the same at every attempt.
    pub message_id: &'a str,
    pub unsubscribe_url: &'a str,
    pub now: Millis,
}

#[derive(Template)]
#[template(path = "mail/mail.txt")]
struct TextBody<'a>(&'a MailContent);

#[derive(Template)]
#[template(path = "mail/mail.html")]
struct HtmlBody<'a>(&'a MailContent);

/// The content of an e-mail, for the templates of text and HTML.
struct MailContent {
    language: Language,
    texts: &'static MailTexts,
    page_texts: &'static TrackingPageTexts,
    sandbox: bool,
    headline: &'static str,
    /// The colours, which are the same as on the tracking page for this news.
    palette: Palette,
    greeting: String,
    meaning: &'static str,
    number: String,
    details: Vec<(&'static str, String)>,
    arrival: Option<ArrivalText>,
    advice: &'static [&'static str],
    tracking_url: String,
    shop: Option<String>,
    /// The URL and the text of the link to the contact.
    contact: Option<(String, String)>,
    reason: &'static str,
    unsubscribe_url: String,
}

/// The colours of an e-mail in light mode. The template has the colours of dark mode, by class.
struct Palette {
    class: &'static str,
    text: &'static str,
    background: &'static str,
}

const MOVING_PALETTE: Palette = Palette { class: "moving", text: "#1f4fa3", background: "#e8effb" };
const WAITING_PALETTE: Palette =
    Palette { class: "waiting", text: "#8a4b00", background: "#fdf1dc" };
const DONE_PALETTE: Palette = Palette { class: "done", text: "#17683f", background: "#e4f4ea" };
const FAILED_PALETTE: Palette = Palette { class: "failed", text: "#a82a20", background: "#fbe9e7" };

/// Composes an e-mail with its text and HTML bodies.
pub(crate) fn compose(source: &MailSource<'_>) -> Result<Mail, askama::Error> {
    let content = MailContent::new(source);
    Ok(Mail {
        id: source.message_id.to_owned(),
        to: source.to.to_owned(),
        subject: subject(source, content.headline),
        text: collapse_blank_lines(&TextBody(&content).render()?),
        html: HtmlBody(&content).render()?,
        language: content.language,
        unsubscribe_url: source.unsubscribe_url.to_owned(),
        at: source.now,
    })
}

fn subject(source: &MailSource<'_>, headline: &str) -> String {
    let prefix = match source.site.environment {
        Environment::Production => "",
        Environment::Sandbox => "[Sandbox] ",
    };
    format!("{prefix}{headline}: {}", source.parcel.tracking_number)
}

impl MailContent {
    fn new(source: &MailSource<'_>) -> Self {
        let MailSource { recipient, parcel, order, shop, site, .. } = *source;
        let language = recipient_language(order, recipient);
        let state = parcel.state;
        let status = ParcelStatus::from(state);
        let is_receiver = matches!(recipient, MailRecipient::Receiver);
        let texts = mail_texts(language);
        let arrival = arrival(parcel, source.now).filter(|_| is_receiver);
        let contact = shop.contact.as_ref().filter(|_| is_receiver);
        Self {
            language,
            texts,
            page_texts: page_texts(language),
            sandbox: matches!(site.environment, Environment::Sandbox),
            headline: headline(source.kind, state, recipient, language),
            palette: palette(source.kind, state),
            greeting: greeting(order, recipient, texts.hello),
            meaning: match sender_explanation(state, language) {
                Some(news) if !is_receiver => news,
                _ => status_explanation(&status, language),
            },
            number: parcel.tracking_number.to_string(),
            details: if is_receiver { Vec::new() } else { details(order, texts) },
            arrival: arrival.and_then(|arrival| ArrivalText::new(&arrival, language)),
            advice: if is_receiver {
                receiver_advice(&status, language)
            } else {
                sender_advice(state, language)
            },
            tracking_url: format!(
                "{}?lang={}",
                site.tracking_url(&parcel.tracking_number),
                language.code()
            ),
            shop: shop
                .name
                .as_deref()
                .map(plain_name)
                .filter(|name| is_receiver && !name.is_empty()),
            contact: contact.map(|contact| (contact.link(), contact.text())),
            reason: if is_receiver { texts.receiver_reason } else { texts.sender_reason },
            unsubscribe_url: format!("{}?lang={}", source.unsubscribe_url, language.code()),
        }
    }
}

/// Returns the language of the recipient's country.
fn recipient_language(order: &OrderRequest, recipient: MailRecipient) -> Language {
    country_language(match recipient {
        MailRecipient::Receiver => order.receiver.address.country,
        MailRecipient::Sender => order.sender.address.country,
    })
}

fn greeting(order: &OrderRequest, recipient: MailRecipient, hello: &str) -> String {
    let name = plain_name(match recipient {
        MailRecipient::Receiver => &order.receiver.full_name,
        MailRecipient::Sender => &order.sender.full_name,
    });
    if name.is_empty() { format!("{hello},") } else { format!("{hello} {name},") }
}

/// Returns the details that help a sender to recognise the parcel among many.
fn details(order: &OrderRequest, texts: &MailTexts) -> Vec<(&'static str, String)> {
    let reference = order.external_order_id.as_deref().or(order.customer_reference.as_deref());
    let all = [
        (texts.parcel_for, plain_name(&order.receiver.full_name)),
        (texts.order, plain_name(reference.unwrap_or_default())),
    ];
    all.into_iter().filter(|(_, text)| !text.is_empty()).collect()
}

const fn palette(kind: MailKind, state: State) -> Palette {
    match (kind, state) {
        (MailKind::OnItsWay | MailKind::OutForDelivery, _) => MOVING_PALETTE,
        (MailKind::Held | MailKind::Returning, _) | (_, State::DeliveryAttempted) => {
            WAITING_PALETTE
        }
        (MailKind::Delivered, _) => DONE_PALETTE,
        (MailKind::Failed, _) => FAILED_PALETTE,
    }
}

/// Reduces each run of blank lines to one.
fn collapse_blank_lines(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len());
    let mut was_blank = true;
    for line in text.lines().map(str::trim_end) {
        if !(line.is_empty() && was_blank) {
            tidy.push_str(line);
            tidy.push('\n');
        }
        was_blank = line.is_empty();
    }
    tidy
}

#[cfg(test)]
mod tests;
