//! Compares the text and the HTML of each kind of e-mail with golden files, in both languages and with hostile names.

use std::{fs, path::PathBuf};

use parcelo_domain::{AccountRowId, ParcelRowId, Tenant, Version, sample};
use parcelo_types::{CountryCode, TrackingNumber};
use ulid::Ulid;

use super::*;

const UNSUBSCRIBE: &str = "https://parcelo.example/unsubscribe/BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBweXR2lLQnyjkuAu9THkXLAH";

fn at(time: &str) -> Millis {
    Millis::from(time.parse::<chrono::DateTime<chrono::Utc>>().unwrap())
}

/// A parcel promised for Tuesday, January 13.
fn parcel(state: State, country: &str) -> ParcelRow {
    ParcelRow {
        key: ParcelRowId(1),
        version: Version(1),
        id: Ulid::nil(),
        tenant: Tenant { account: AccountRowId(1), environment: Environment::Production },
        tracking_number: TrackingNumber::parse("EC7K2M9QX4T8WD0").unwrap(),
        state,
        created_at: at("2026-01-05T08:00:00Z"),
        updated_at: at("2026-01-08T17:00:00Z"),
        origin: "Miami, US".to_owned(),
        destination: "Quito, EC".to_owned(),
        country: CountryCode::parse(country).unwrap(),
        promised_day: "2026-01-13".parse::<chrono::NaiveDate>().unwrap().to_epoch_days(),
        label_version: 1,
        reprinted_at: None,
        last_sequence: 2,
        step: None,
    }
}

/// Returns an order between a sender and a receiver in two countries.
fn order(from: &str, to: &str) -> OrderRequest {
    let mut order: OrderRequest = serde_json::from_str(sample::ORDER).unwrap();
    order.sender.address.country = CountryCode::parse(from).unwrap();
    order.receiver.address.country = CountryCode::parse(to).unwrap();
    order.external_order_id = Some("1001 <b>&\r\nBcc: x@y.example".to_owned());
    order
}

fn composed(
    (kind, state, recipient): (MailKind, State, MailRecipient),
    order: &OrderRequest,
    environment: Environment,
) -> Mail {
    let shop =
        Shop::parse("Tienda <i>www.evil.example</i> Sol & Luna", "help@shop.example").unwrap();
    let parcel = parcel(state, order.receiver.address.country.as_str());
    let site = Site::new(environment, "https://parcelo.example");
    let source = MailSource {
        kind,
        recipient,
        to: "luis@example.org",
        parcel: &parcel,
        order,
        shop: &shop,
        site: &site,
        message_id: "01J0000000000000000000000A",
        unsubscribe_url: UNSUBSCRIBE,
        now: at("2026-01-08T18:00:00Z"),
    };
    compose(&source).unwrap()
}

const RECEIVER: MailRecipient = MailRecipient::Receiver;
const SENDER: MailRecipient = MailRecipient::Sender;

/// Every kind of e-mail with the name of its golden file.
const MAIL_CASES: [(&str, MailKind, State, MailRecipient); 11] = [
    ("on-its-way", MailKind::OnItsWay, State::PickedUp, RECEIVER),
    ("held", MailKind::Held, State::CustomsHold, RECEIVER),
    ("out-for-delivery", MailKind::OutForDelivery, State::OutForDelivery, RECEIVER),
    ("delivered", MailKind::Delivered, State::Delivered, RECEIVER),
    ("missed", MailKind::Failed, State::DeliveryAttempted, RECEIVER),
    ("failed", MailKind::Failed, State::DeliveryFailed, RECEIVER),
    ("returning", MailKind::Returning, State::ReturnToSender, RECEIVER),
    ("sender-held", MailKind::Held, State::CustomsHold, SENDER),
    ("sender-missed", MailKind::Failed, State::DeliveryAttempted, SENDER),
    ("sender-failed", MailKind::Failed, State::DeliveryFailed, SENDER),
    ("sender-returning", MailKind::Returning, State::ReturnToSender, SENDER),
];

#[test]
fn each_e_mail_matches_its_golden_file() {
    let mut faults = Vec::new();
    for (name, kind, state, recipient) in MAIL_CASES {
        for (language, from, to) in [("en", "US", "US"), ("es", "MX", "EC")] {
            let mut order = order(from, to);
            order.receiver.full_name = "Luis\u{202E} <b>Paredes</b>\r\nevil.example".to_owned();
            order.sender.full_name = "Ana https://evil.example Ruiz".to_owned();
            let mail = composed((kind, state, recipient), &order, Environment::Production);
            let text = format!("Subject: {}\nTo: {}\n\n{}", mail.subject, mail.to, mail.text);
            faults.extend(golden_difference(&format!("{name}.{language}.txt"), &text));
            faults.extend(golden_difference(&format!("{name}.{language}.html"), &mail.html));
        }
    }
    assert!(faults.is_empty(), "review these, then run with PARCELO_BLESS=1: {faults:?}");
}

fn golden_difference(name: &str, now: &str) -> Option<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/mail/compose/golden").join(name);
    if std::env::var_os("PARCELO_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, now).unwrap();
    }
    (fs::read_to_string(&path).unwrap_or_default() != now).then(|| name.to_owned())
}

#[test]
fn user_texts_are_neither_linked_nor_in_subjects() {
    for (name, kind, state, recipient) in MAIL_CASES {
        let mut order = order("US", "EC");
        order.receiver.full_name =
            "Luis\u{202E}\r\n\r\nPay at https://evil.example www.evil.example".to_owned();
        order.sender.full_name =
            "<script>alert(1)</script>\"><img src=x> evil.example/pay".to_owned();
        let mail = composed((kind, state, recipient), &order, Environment::Production);
        assert!(mail.subject.ends_with(": EC7K2M9QX4T8WD0"), "{name}");
        assert!(!mail.subject.contains("Luis") && !mail.subject.contains("1001"), "{name}");
        for part in [&mail.text, &mail.html] {
            assert!(!part.contains("evil.example") && !part.contains('\u{202E}'), "{name}: {part}");
            assert!(!part.contains("x@y.example"), "{name}");
        }
        for tag in ["<script", "<img", "<i>", "<b>Sol", "@import", "url("] {
            assert!(!mail.html.contains(tag), "{name}: {tag}");
        }
        // The only links are ours and the shop's contact.
        for link in mail.html.split("href=\"").skip(1) {
            let ours = link.starts_with("https://parcelo.example/");
            assert!(ours || link.starts_with("mailto:help@shop.example\""), "{name}: {link}");
        }
    }
}

#[test]
fn text_and_html_have_the_same_content() {
    for (name, kind, state, recipient) in MAIL_CASES {
        let mail = composed((kind, state, recipient), &order("US", "EC"), Environment::Production);
        let html = visible_text(&mail.html);
        for line in mail.text.lines() {
            let line = line.trim_start_matches("- ").trim_end_matches([':', '.', ',']);
            for words in line.split(": ") {
                assert!(words == "--" || html.contains(words), "{name}: {words}\n{html}");
            }
        }
    }
}

/// Returns the text of a page without its tags, with the addresses of its links.
fn visible_text(html: &str) -> String {
    let body = html.split_once("<body").unwrap().1.replace("href=\"", ">").replace("\" style", "<");
    let parts = body.split('<').map(|part| part.split_once('>').map_or("", |(_, text)| text));
    let text: String = parts.collect();
    let text = text
        .replace("&#38;", "&")
        .replace("&#39;", "'")
        .replace("&#60;", "<")
        .replace("&#62;", ">");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn an_e_mail_is_in_the_language_of_its_recipient() {
    let table = [
        ("US", "EC", RECEIVER, Language::Es),
        ("EC", "US", RECEIVER, Language::En),
        ("US", "EC", SENDER, Language::En),
        ("MX", "US", SENDER, Language::Es),
        ("CN", "BR", RECEIVER, Language::En),
    ];
    for (from, to, recipient, expected) in table {
        assert_eq!(
            recipient_language(&order(from, to), recipient),
            expected,
            "{from} {to} {recipient:?}"
        );
    }
}

#[test]
fn the_sandboxs_e_mails_say_that_nothing_is_shipped() {
    let news = (MailKind::Delivered, State::Delivered, RECEIVER);
    let mail = composed(news, &order("US", "US"), Environment::Sandbox);
    assert_eq!(mail.subject, "[Sandbox] Your parcel was delivered: EC7K2M9QX4T8WD0");
    for part in [&mail.text, &mail.html] {
        assert!(part.contains("Test environment: nothing is shipped."), "{part}");
    }
}

#[test]
fn debug_output_hides_recipient_and_text() {
    let news = (MailKind::Delivered, State::Delivered, RECEIVER);
    let mail = composed(news, &order("US", "EC"), Environment::Production);
    assert_eq!(format!("{mail:?}"), r#"Mail { id: "01J0000000000000000000000A", .. }"#);
}
