//! The message on the wire: its headers, and the text with the HTML as its alternative.

use std::time::{Duration, UNIX_EPOCH};

use lettre::{
    Address, Message,
    message::{
        Mailbox, MultiPart,
        header::{HeaderName, HeaderValue},
    },
};
use parcelo_service::mail::Mail;
use url::Host;

/// The error for an invalid address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnusableAddress;

/// Builds the message to one recipient.
pub(super) fn build_message(mail: &Mail, from: &Mailbox) -> Result<Message, UnusableAddress> {
    let to = Mailbox::new(None, parse_recipient(&mail.to)?);
    let id = format!("<{}@{}>", mail.id, from.email.domain());
    let millis = u64::try_from(mail.at.0).unwrap_or_default();
    let mut builder = Message::builder()
        .from(from.clone())
        .to(to)
        .subject(mail.subject.as_str())
        .date(UNIX_EPOCH + Duration::from_millis(millis))
        .message_id(Some(id));
    for (name, value) in [
        // RFC 3834: prevents out-of-office replies.
        ("Auto-Submitted", "auto-generated".to_owned()),
        ("Content-Language", mail.language.code().to_owned()),
        // RFC 2369 and RFC 8058: a mail program shows a button, and its provider POSTs to the link.
        ("List-Unsubscribe", format!("<{}>", mail.unsubscribe_url)),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()),
    ] {
        builder = builder.raw_header(unfolded_header(name, value));
    }
    let body = MultiPart::alternative_plain_html(mail.text.clone(), mail.html.clone());
    builder.multipart(body).map_err(|_| UnusableAddress)
}

/// Builds a header of ASCII text that is not folded, so that addresses stay in one piece.
fn unfolded_header(name: &'static str, value: String) -> HeaderValue {
    let name = HeaderName::new_from_ascii_str(name);
    HeaderValue::dangerous_new_pre_encoded(name, value.clone(), value)
}

/// Parses an address and converts its domain to ASCII, which every server accepts.
pub(super) fn parse_recipient(address: &str) -> Result<Address, UnusableAddress> {
    let (user, domain) = address.rsplit_once('@').ok_or(UnusableAddress)?;
    let domain = Host::parse(domain).map_err(|_| UnusableAddress)?.to_string();
    Address::new(user, domain).map_err(|_| UnusableAddress)
}

#[cfg(test)]
pub(super) mod tests {
    use parcelo_types::Language;

    use super::*;
    use parcelo_domain::Millis;

    pub(in crate::smtp) fn mail(to: &str) -> Mail {
        Mail {
            id: "01J0000000000000000000000A".to_owned(),
            to: to.to_owned(),
            subject: "Su paquete está en camino: EC7K2M9QX4T8WD0".to_owned(),
            text: "Su paquete está en camino.\n".to_owned(),
            html: "<p>Su paquete está en camino.</p>\n".to_owned(),
            language: Language::Es,
            unsubscribe_url: format!("https://parcelo.example/unsubscribe/{}", "A".repeat(64)),
            at: Millis(1_768_000_000_000),
        }
    }

    fn headers(mail: &Mail) -> String {
        let from = "Parcelo <parcels@shop.example>".parse().unwrap();
        let bytes = build_message(mail, &from).unwrap().formatted();
        assert!(bytes.is_ascii(), "a server without 8BITMIME takes it");
        let text = String::from_utf8(bytes).unwrap();
        text.split_once("\r\n\r\n").unwrap().0.to_owned()
    }

    #[test]
    fn a_message_has_the_headers_that_mail_programs_need() {
        let headers = headers(&mail("luis@example.org"));
        let link =
            format!("List-Unsubscribe: <https://parcelo.example/unsubscribe/{}>", "A".repeat(64));
        for line in [
            "From: Parcelo <parcels@shop.example>",
            "To: luis@example.org",
            "Date: Fri, 09 Jan 2026 23:06:40 +0000",
            "Message-ID: <01J0000000000000000000000A@shop.example>",
            "Auto-Submitted: auto-generated",
            "Content-Language: es",
            &link,
            "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
        ] {
            assert!(headers.lines().any(|known| known == line), "{line}\n{headers}");
        }
        assert!(headers.contains("Subject: Su paquete =?utf-8?b?"), "{headers}");
        assert!(headers.contains("multipart/alternative"), "{headers}");
    }

    #[test]
    fn a_recipient_is_one_address_with_an_ascii_domain() {
        assert_eq!(
            parse_recipient("luis@ñandú.example").unwrap().domain(),
            "xn--and-6ma2c.example"
        );
        for bad in
            ["", "luis", "luis@", "@x.example", "a@b@c d", "a\r\nRCPT TO:<x@y.example>@z.example"]
        {
            assert_eq!(parse_recipient(bad), Err(UnusableAddress), "{bad:?}");
        }
    }
}
