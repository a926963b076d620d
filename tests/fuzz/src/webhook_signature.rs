//! Webhook signatures: a signed message is accepted while it is recent, and rejected if any of its bytes has changed.
//! HMAC is implemented again here, independently of the SDK.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chrono::DateTime;
use parcelo::webhook::{Secret, Webhook, WebhookError};
use sha2::{Digest as _, Sha256};

use crate::{Target, corpus::hash};

pub(crate) const TARGET: Target = Target { name: "webhook_signature", check, cases: 8_000 };

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const MAX_AGE_SECONDS: u64 = 300;

/// An input: lines with the id, the timestamp, the present time and further signatures, then the body.
struct Input<'a> {
    id: &'a [u8],
    timestamp: &'a [u8],
    now: i64,
    body: &'a [u8],
}

fn check(input: &[u8]) {
    let mut lines = input.splitn(5, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (id, timestamp, now, extra_signatures, body) = (line(), line(), line(), line(), line());
    let now = std::str::from_utf8(now).ok().and_then(|text| text.parse().ok());
    let now = now.unwrap_or(1_768_057_500_i64).clamp(-(1 << 40), 1 << 40);
    let input = Input { id, timestamp, now, body };
    let signature = format!("v1,{}", STANDARD.encode(hmac(&[id, b".", timestamp, b".", body])));
    let signatures = [signature.as_bytes(), b" ", extra_signatures].concat();
    let verification = verify(&input, &signatures);
    assert_eq!(verification, expected_result(&input), "{:?}", String::from_utf8_lossy(timestamp));
    if verification.is_ok() {
        assert_sdk_signature(&input, &signature);
        assert_changes_are_detected(&input, &signature);
    }
    // Without a valid signature, the message is not accepted.
    let without_signature = verify(&input, extra_signatures);
    assert!(
        without_signature.is_err() || contains_signature(extra_signatures, &signature),
        "{without_signature:?}"
    );
}

fn webhook() -> Webhook {
    Webhook::new([SECRET]).unwrap()
}

fn verify(input: &Input<'_>, signatures: &[u8]) -> Result<(), WebhookError> {
    let headers = [
        ("webhook-id", input.id),
        ("webhook-timestamp", input.timestamp),
        ("webhook-signature", signatures),
    ];
    let now = DateTime::from_timestamp(input.now, 0).unwrap();
    let verified = webhook().verify_at(&headers[..], input.body, now)?;
    assert_eq!((verified.id().as_bytes(), verified.body()), (input.id, input.body));
    assert_eq!(verified.timestamp().to_string().as_bytes(), input.timestamp);
    Ok(())
}

/// Returns the expected result, derived independently from the headers with the id and the timestamp.
fn expected_result(Input { id, timestamp, now, .. }: &Input<'_>) -> Result<(), WebhookError> {
    let is_id_byte = |byte: &u8| (b'!'..=b'~').contains(byte) && *byte != b'.';
    if id.is_empty() || id.len() > 256 || !id.iter().all(is_id_byte) {
        return Err(WebhookError::HeaderMalformed("webhook-id"));
    }
    let number = std::str::from_utf8(timestamp).ok().and_then(|text| text.parse::<i64>().ok());
    let number =
        number.filter(|number| number.to_string().as_bytes() == *timestamp && *number >= 0);
    let Some(timestamp) = number else {
        return Err(WebhookError::HeaderMalformed("webhook-timestamp"));
    };
    match (timestamp.abs_diff(*now), timestamp < *now) {
        (..=MAX_AGE_SECONDS, _) => Ok(()),
        (seconds, true) => Err(WebhookError::TooOld { seconds }),
        (seconds, false) => Err(WebhookError::TooNew { seconds }),
    }
}

/// Checks that the SDK signs the message with this signature.
fn assert_sdk_signature(input: &Input<'_>, signature: &str) {
    let timestamp = std::str::from_utf8(input.timestamp).unwrap().parse().unwrap();
    let id = std::str::from_utf8(input.id).unwrap();
    assert_eq!(Secret::parse(SECRET).unwrap().sign(id, timestamp, input.body), signature);
}

/// Checks that changing one bit of the id, the timestamp, the body or the signature is detected.
fn assert_changes_are_detected(input: &Input<'_>, signature: &str) {
    let choice = hash(input.body) ^ hash(input.id);
    let changed = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let index = usize::try_from(choice >> 3).unwrap_or_default() % bytes.len().max(1);
        match bytes.get_mut(index) {
            Some(byte) => *byte ^= 1 << (choice % 7),
            None => bytes.push(b'x'),
        }
        bytes
    };
    let (id, timestamp, body) = (changed(input.id), changed(input.timestamp), changed(input.body));
    assert!(verify(&Input { id: &id, ..*input }, signature.as_bytes()).is_err());
    assert!(verify(&Input { timestamp: &timestamp, ..*input }, signature.as_bytes()).is_err());
    assert!(verify(&Input { body: &body, ..*input }, signature.as_bytes()).is_err());
    assert!(verify(input, &changed(signature.as_bytes())).is_err());
}

fn contains_signature(extra_signatures: &[u8], signature: &str) -> bool {
    extra_signatures.split(|byte| *byte == b' ').any(|part| part == signature.as_bytes())
}

/// Computes the HMAC of RFC 2104 over the concatenated parts.
fn hmac(parts: &[&[u8]]) -> [u8; 32] {
    let mut key = STANDARD.decode(&SECRET[6..]).unwrap();
    key.resize(64, 0);
    let padded = |pad: u8| key.iter().map(|byte| byte ^ pad).collect::<Vec<u8>>();
    let inner = Sha256::digest([padded(0x36), parts.concat()].concat());
    Sha256::digest([padded(0x5c), inner.to_vec()].concat()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Python's `hmac` signed the messages of `signatures.tsv` (see `tests/fuzz/signatures.py`). The signatures of the
    /// corpus are computed in this file instead.
    #[test]
    fn messages_signed_by_python_are_accepted() {
        let rows = include_str!("../signatures.tsv").lines();
        let mut count = 0;
        for row in rows {
            let mut cells = row.split('\t');
            let mut cell = || cells.next().unwrap();
            let (id, timestamp, body, signature) = (cell(), cell(), cell(), cell());
            let body = STANDARD.decode(body).unwrap();
            let now = timestamp.parse().unwrap();
            let input =
                Input { id: id.as_bytes(), timestamp: timestamp.as_bytes(), now, body: &body };
            assert_eq!(verify(&input, signature.as_bytes()), Ok(()), "{row}");
            count += 1;
        }
        assert_eq!(count, 24);
    }
}
