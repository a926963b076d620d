//! Refusals of requests: one constructor for each failure, with texts from the SDK's catalogue.

use std::net::IpAddr;

use parcelo_types::{
    CountryCode, Environment, ErrorCode, Language,
    internal::ErrorEnvelope,
    model::{ErrorBody, FieldFault, ItemError, RequestId},
};
use serde_json::{Value, json};

use super::{IdempotencyRecord, State};
use crate::Millis;

/// The error for a request that is not carried out: a code, and the values for its texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The code, which determines status and texts.
    pub code: ErrorCode,
    /// The number of seconds to wait before trying again.
    pub retry_after: Option<u32>,
    values: Vec<(&'static str, String)>,
    hint: Option<(String, String)>,
    details: Option<Value>,
}

impl From<ErrorCode> for Refusal {
    fn from(code: ErrorCode) -> Self {
        Self { code, retry_after: None, values: Vec::new(), hint: None, details: None }
    }
}

impl Refusal {
    /// Refuses a request that breaks rules.
    pub fn invalid(faults: &[FieldFault]) -> Self {
        Self { details: Some(json!({ "errors": faults })), ..ErrorCode::ValidationFailed.into() }
    }

    /// Refuses a key of the other environment, and names that environment's address if it is known.
    pub fn wrong_environment(of_key: Environment, address: Option<&str>) -> Self {
        let spanish = spanish_name(of_key);
        let (place, place_es) =
            (format!("the {of_key} address"), format!("la dirección de {spanish}"));
        let hint = (
            format!("It is a {of_key} key: use it at {}.", address.unwrap_or(&place)),
            format!("Es una clave de {spanish}: úsela en {}.", address.unwrap_or(&place_es)),
        );
        Self { hint: Some(hint), ..ErrorCode::AuthInvalidApiKey.into() }
    }

    /// Refuses a client whose address is not in the key's list.
    pub fn ip_not_allowed(client: IpAddr) -> Self {
        let details = json!({ "clientIp": client.to_string() });
        Self { details: Some(details), ..ErrorCode::AuthIpNotAllowed.into() }
    }

    /// Refuses a country to which the key may not ship.
    pub fn country_not_allowed(country: CountryCode, allowed: &[CountryCode]) -> Self {
        Self {
            values: vec![("country", country.to_string())],
            details: Some(json!({ "country": country, "allowedCountries": allowed })),
            ..ErrorCode::AuthCountryNotAllowed.into()
        }
    }

    /// Refuses a request because the limit of its window is used up.
    pub fn rate_limited(retry_after: u32) -> Self {
        Self {
            values: vec![("n", retry_after.to_string())],
            retry_after: Some(retry_after),
            ..ErrorCode::RateLimitExceeded.into()
        }
    }

    /// Refuses a key that was used with another request. If that request created an order, its parcel is named.
    pub fn idempotency_conflict(record: &IdempotencyRecord) -> Self {
        let response: Value = serde_json::from_slice(&record.body).unwrap_or_default();
        let mut details = serde_json::Map::from_iter([
            ("firstSeenAt".to_owned(), json!(timestamp(record.first_seen))),
            ("expiresAt".to_owned(), json!(timestamp(record.expires_at()))),
        ]);
        if let Some(number) = response.pointer("/parcel/trackingNumber") {
            details.insert("trackingNumber".to_owned(), number.clone());
        }
        Self { details: Some(details.into()), ..ErrorCode::IdempotencyConflict.into() }
    }

    /// Refuses a repeated request while the first with the key is running.
    pub fn idempotency_in_progress() -> Self {
        Self { retry_after: Some(1), ..ErrorCode::IdempotencyInProgress.into() }
    }

    /// Refuses a request to an endpoint that exists, for something that does not. The texts say what is missing.
    pub fn missing(en: &str, es: &str) -> Self {
        Self { hint: Some((en.to_owned(), es.to_owned())), ..ErrorCode::NotFound.into() }
    }

    /// Refuses a request that the service cannot handle now.
    pub fn unavailable() -> Self {
        Self { retry_after: Some(1), ..ErrorCode::ServiceUnavailable.into() }
    }

    /// Reports that it is unknown whether a request was executed, and that no key makes it safe to repeat.
    pub fn outcome_unknown() -> Self {
        let hint = (
            "It is unknown whether the request was executed: check what it was meant to change before you repeat it.".to_owned(),
            "No se sabe si la solicitud se ejecutó: consulte lo que debía cambiar antes de repetirla.".to_owned(),
        );
        Self { hint: Some(hint), ..ErrorCode::InternalError.into() }
    }

    /// Returns `true` if the server is at fault, not the request.
    pub fn is_server_error(&self) -> bool {
        self.code.status() >= 500
    }

    /// Refuses a request because of the parcel's status. The text of `code` must have the placeholder `{status}`.
    pub fn for_status(code: ErrorCode, state: State) -> Self {
        Self::for_statuses(code, parcelo_types::ParcelStatus::from(state).code())
    }

    /// Refuses a request because of the statuses of several parcels.
    pub fn for_statuses(code: ErrorCode, status: &str) -> Self {
        Self { values: vec![("status", status.to_owned())], ..code.into() }
    }

    /// Refuses a parcel that is already in a manifest.
    pub fn already_manifested(manifest: &str) -> Self {
        let values = vec![("manifestId", manifest.to_owned())];
        Self { values, ..ErrorCode::ParcelAlreadyManifested.into() }
    }

    /// Returns the faults of a request that breaks rules.
    pub fn faults(&self) -> Vec<FieldFault> {
        let errors = self.details.as_ref().and_then(|details| details.get("errors"));
        errors.and_then(|errors| serde_json::from_value(errors.clone()).ok()).unwrap_or_default()
    }

    /// Sets the details.
    #[must_use]
    pub fn with_details(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }

    /// Converts it to the error of one item in a list.
    pub fn to_item(&self) -> ItemError {
        ItemError::new(self.code.code(), self.texts())
    }

    /// Refuses a state that cannot follow the parcel's current one.
    pub fn illegal_transition(from: State, to: State) -> Self {
        let status = |state| parcelo_types::ParcelStatus::from(state).to_string();
        let values = vec![("from", status(from)), ("to", status(to))];
        Self { values, ..ErrorCode::IllegalTransition.into() }
    }

    /// Returns a refusal with example values for all placeholders of the code's texts.
    pub fn example(code: ErrorCode) -> Self {
        match code {
            ErrorCode::ValidationFailed => Self::invalid(&[]),
            ErrorCode::AuthCountryNotAllowed => {
                Self::country_not_allowed(CountryCode::MX, &[CountryCode::EC])
            }
            ErrorCode::RateLimitExceeded => Self::rate_limited(1),
            ErrorCode::IdempotencyInProgress => Self::idempotency_in_progress(),
            ErrorCode::ServiceUnavailable => Self::unavailable(),
            ErrorCode::ParcelAlreadyManifested => Self::already_manifested("man_1"),
            ErrorCode::IllegalTransition => {
                Self::illegal_transition(State::Delivered, State::InTransit)
            }
            code => Self::for_status(code, State::Delivered),
        }
    }

    /// Converts it to the error on the wire.
    pub fn to_envelope(&self, request_id: &str) -> ErrorEnvelope {
        let mut error = ErrorBody::new(self.code.code(), self.texts())
            .with_request_id(RequestId::unchecked(request_id));
        error.details.clone_from(&self.details);
        error.retry_after = self.retry_after.map(Into::into);
        ErrorEnvelope::new(error)
    }

    fn texts(&self) -> (String, String) {
        (self.text(Language::En), self.text(Language::Es))
    }

    /// Returns the message for the caller in a language.
    pub fn text(&self, language: Language) -> String {
        let values: Vec<_> =
            self.values.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let text = self.code.text(language, &values);
        match &self.hint {
            // Without a hint, the text is about a missing endpoint.
            Some((en, es)) if self.code == ErrorCode::NotFound => language.pick(en, es).clone(),
            Some((en, es)) => format!("{text} {}", language.pick(en, es)),
            None => text,
        }
    }
}

fn spanish_name(environment: Environment) -> &'static str {
    match environment {
        Environment::Production => "producción",
        Environment::Sandbox => "pruebas",
    }
}

fn timestamp(time: Millis) -> String {
    parcelo_types::internal::time::to_text(time.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RecordKey, Tenant};

    #[test]
    fn a_hint_names_the_address_of_the_other_environment() {
        let refusal =
            Refusal::wrong_environment(Environment::Sandbox, Some("http://sandbox.example"));
        for language in [Language::En, Language::Es] {
            assert!(refusal.text(language).ends_with(" http://sandbox.example."), "{refusal:?}");
        }
        let refusal = Refusal::wrong_environment(Environment::Production, None);
        let error = refusal.to_envelope("req_1").error;
        assert!(error.message.ends_with("use it at the production address."), "{error:?}");
        assert!(error.message_es.ends_with("úsela en la dirección de producción."), "{error:?}");
    }

    #[test]
    fn every_code_has_an_example_with_whole_texts() {
        for code in ErrorCode::ALL {
            let refusal = Refusal::example(*code);
            let error = refusal.to_envelope("req_1").error;
            assert_eq!(refusal.code, *code);
            assert!(!error.message.contains('{') && !error.message_es.contains('{'), "{error:?}");
            assert_ne!(error.message, error.message_es);
        }
    }

    #[test]
    fn a_refusal_says_what_it_is_about_and_how_long_to_wait() {
        let record = IdempotencyRecord {
            key: RecordKey([1; 16]),
            tenant: Tenant::from_number(3),
            fingerprint: [7; 32],
            first_seen: Millis(1_000),
            body: br#"{"parcel":{"trackingNumber":"EC7K2M9QX4T8WD0"}}"#.to_vec(),
        };
        let not_found = Refusal::from(ErrorCode::ParcelNotFound);
        let table = [
            (
                Refusal::ip_not_allowed("192.0.2.1".parse().unwrap()),
                json!({ "clientIp": "192.0.2.1" }),
                None,
            ),
            (
                Refusal::country_not_allowed(CountryCode::MX, &[CountryCode::EC]),
                json!({ "country": "MX", "allowedCountries": ["EC"] }),
                None,
            ),
            (
                Refusal::idempotency_conflict(&record),
                json!({
                    "firstSeenAt": "1970-01-01T00:00:01.000Z",
                    "expiresAt": "1970-01-02T00:00:01.000Z",
                    "trackingNumber": "EC7K2M9QX4T8WD0",
                }),
                None,
            ),
            (not_found.clone().with_details(json!({ "seen": 1 })), json!({ "seen": 1 }), None),
            (not_found, Value::Null, None),
            (Refusal::rate_limited(7), Value::Null, Some(7)),
            (Refusal::idempotency_in_progress(), Value::Null, Some(1)),
            (Refusal::unavailable(), Value::Null, Some(1)),
        ];
        for (refusal, details, retry_after) in table {
            let error = refusal.to_envelope("req_1").error;
            assert_eq!(error.details.unwrap_or_default(), details, "{refusal:?}");
            let seconds = error.retry_after.and_then(|seconds| seconds.as_u64());
            assert_eq!(seconds, retry_after, "{refusal:?}");
        }
    }

    #[test]
    fn a_hint_stands_for_the_text_about_an_endpoint_and_follows_any_other() {
        let missing = Refusal::missing("No such page.", "No existe la página.");
        assert_eq!(missing.text(Language::Es), "No existe la página.");
        let unknown = Refusal::outcome_unknown();
        let plain = Refusal::from(ErrorCode::InternalError).text(Language::En);
        let hint = "It is unknown whether the request was executed: check";
        assert!(unknown.text(Language::En).starts_with(&format!("{plain} {hint}")), "{unknown:?}");
        assert!([unknown, Refusal::unavailable()].iter().all(Refusal::is_server_error));
        assert!(!missing.is_server_error());
    }
}
