//! Keys and tokens: they can be parsed from their text, are recognised as mistyped if one character is changed, and
//! appear in no error. Only an issued key gives access to the API.

use std::fmt::{Debug, Display};

use axum::body::Body;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderValue, Request};
use parcelo::{ApiKey, Environment, IdempotencyKey, webhook::Secret};
use parcelo_wire::{AdminToken, CarrierKey};

use crate::{Target, corpus::hash, service::with_service};

pub(crate) const TARGET: Target = Target { name: "secret_keys", check, cases: 3_000 };

fn check(input: &[u8]) {
    let random = std::array::from_fn(|index| input.get(index).copied().unwrap_or(7));
    let choice = hash(input);
    for environment in [Environment::Production, Environment::Sandbox] {
        let (key, carrier) = (
            ApiKey::from_random(environment, &random),
            CarrierKey::from_random(environment, &random),
        );
        assert_eq!(ApiKey::parse(key.secret()).as_ref(), Ok(&key));
        assert_eq!(ApiKey::parse(key.secret()).unwrap().environment(), environment);
        let changed = ApiKey::parse(&with_typo(key.secret(), choice)).ok();
        assert!(changed.is_none_or(|key| key.looks_mistyped()));
        assert!(CarrierKey::parse(&with_typo(carrier.secret(), choice)).is_err());
        assert!(ApiKey::parse(carrier.secret()).is_err(), "a carrier key is not an API key");
    }
    let secret = Secret::from_random(&random);
    assert_eq!(Secret::parse(&secret.expose()).unwrap().as_bytes(), secret.as_bytes());
    let Ok(text) = std::str::from_utf8(input) else { return };
    assert_exact_and_hidden(text, &ApiKey::parse(text), ApiKey::secret);
    assert_exact_and_hidden(text, &CarrierKey::parse(text), CarrierKey::secret);
    assert_exact_and_hidden(text, &AdminToken::parse(text), AdminToken::secret);
    let exposed = Secret::parse(text);
    assert!(exposed.as_ref().is_ok_and(|secret| secret.expose() == text) || exposed.is_err());
    let key = IdempotencyKey::parse(text);
    assert!(key.as_ref().is_ok_and(|key| key.as_str() == text) || key.is_err());
    assert_only_issued_key_works(input, choice);
}

/// Returns the text with one letter or digit replaced by another.
fn with_typo(text: &str, choice: u64) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let index = usize::try_from(choice).unwrap_or_default() % bytes.len();
    let other = STANDARD.encode(choice.to_be_bytes()).bytes().find(|byte| *byte != bytes[index]);
    bytes[index] = other.unwrap_or(b'0');
    String::from_utf8(bytes).unwrap()
}

/// Checks that a parsed secret is exactly `text`, and that neither its debug output nor an error shows the text.
fn assert_exact_and_hidden<K: Debug, E: Debug + Display>(
    text: &str,
    parsed: &Result<K, E>,
    secret: impl Fn(&K) -> &str,
) {
    let message = match parsed {
        Ok(key) => {
            assert_eq!(secret(key), text);
            format!("{key:?}")
        }
        Err(error) => format!("{error} {error:?}"),
    };
    // A shorter text could occur in the message by chance.
    assert!(text.len() < 16 || !message.contains(text), "{message}");
}

/// Checks that the API refuses the input and an issued key with a typing error.
fn assert_only_issued_key_works(input: &[u8], choice: u64) {
    with_service(|service| {
        let issued = service.key("default");
        assert_eq!(service.get(&issued, "/api/v1/health").status, 200);
        let changed = with_typo(issued.secret(), choice);
        for text in [input, changed.as_bytes()] {
            let Ok(value) = HeaderValue::from_bytes(text) else { continue };
            let request = Request::get("/api/v1/health").header("x-api-key", value);
            let response = service.call(request.body(Body::empty()).unwrap());
            assert_eq!(response.status, 401, "{response:?}");
            assert!(response.code().starts_with("AUTH_"), "{response:?}");
            let text = String::from_utf8_lossy(text);
            assert!(text.len() < 16 || !response.text().contains(&*text), "{response:?}");
        }
    });
}
