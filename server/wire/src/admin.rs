//! The admin API's requests: keys, webhooks, carriers, accounts (docs/api.md, Admin API). Unknown fields are
//! ignored, except in a replay, where an empty request means every event. Which addresses webhooks may go
//! to is the server's rule.

use std::net::IpAddr;

use chrono::{DateTime, Utc};
use parcelo_types::{
    CountryCode, Environment,
    internal::{
        EventKind, FaultText, Fields, Kind::Leaf, Object, Text, check_supported, is_blank,
        json::Json, parse_country, parse_email, validate,
    },
    model::FieldFault,
    rules::{Destinations, Rejected},
};
use serde_json::Value;

use crate::faults;

/// The account of a request that does not name one.
pub const DEFAULT_ACCOUNT: &str = "default";

/// A request to create an API key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
pub struct KeyRequest {
    /// The name of the key: 1-100 visible characters.
    pub name: String,
    /// The environment in which the key works.
    pub environment: Environment,
    /// The destinations that the key may create orders for, or only `*` for all.
    #[cfg_attr(feature = "utoipa", schema(value_type = Vec<String>))]
    pub allowed_countries: AllowedCountries,
    /// The addresses and networks that the key may be used from, at most 50; any if the list is empty.
    #[cfg_attr(feature = "utoipa", schema(required = false, value_type = Option<Vec<String>>))]
    pub ip_whitelist: Vec<String>,
    /// The account that the key belongs to, which is created if it does not exist. The default is `default`.
    #[cfg_attr(feature = "utoipa", schema(required = false, value_type = Option<String>))]
    pub account: String,
}

/// The destinations that a key may create orders for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedCountries {
    /// Every supported destination; `["*"]` in JSON.
    All,
    /// Only these destinations.
    Only(Vec<CountryCode>),
}

/// A request to configure a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct WebhookRequest {
    /// The address that events are sent to: at most 500 characters, https in production.
    pub url: String,
    /// The kinds of events to send in addition to `parcel.status_changed`, which is always sent.
    #[cfg_attr(feature = "utoipa", schema(required = false, value_type = Option<Vec<EventKind>>))]
    pub events: Vec<EventKind>,
}

/// A request to create a carrier key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct CarrierKeyRequest {
    /// The carrier's name: 1-100 visible characters. Keys with the same name in one environment belong to one carrier.
    pub name: String,
    /// The environment whose parcels the carrier may report on.
    pub environment: Environment,
}

/// A request to create an account.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
pub struct AccountRequest {
    /// The name of the account: 1-100 visible characters.
    pub name: String,
}

/// A request to resend events to a webhook. Without a filter, all events that failed, were held or wait for
/// their next attempt are resent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema), schema(rename_all = "camelCase"))]
pub struct ReplayRequest {
    /// Only the event with this id, `evt_…`, whether or not it was delivered. One that is being sent stays as it is.
    pub event_id: Option<String>,
    /// Only events since this time that failed, were held or wait for their next attempt.
    pub since: Option<DateTime<Utc>>,
}

const COUNTRIES: &str = "allowedCountries";
const ADDRESSES: &str = "ipWhitelist";
const EVENTS: &str = "events";
/// Maximum number of addresses and networks of a key's whitelist: all are compared with every request.
pub const MAX_IP_ADDRESSES: usize = 50;
/// Maximum number of elements in a list of codes: more than there are countries, or kinds of events.
pub(crate) const MAX_LIST_ITEMS: usize = 300;

/// Returns `true` for an e-mail address in the form that orders accept (docs/api.md, Fields and their rules).
pub fn is_email(address: &str) -> bool {
    parse_email(address).is_ok()
}

const KEY: Fields = Fields(&[
    ("name", Leaf),
    ("environment", Leaf),
    (COUNTRIES, Leaf),
    (ADDRESSES, Leaf),
    ("account", Leaf),
]);
const WEBHOOK: Fields = Fields(&[("url", Leaf), (EVENTS, Leaf)]);
const CARRIER_KEY: Fields = Fields(&[("name", Leaf), ("environment", Leaf)]);
const ACCOUNT: Fields = Fields(&[("name", Leaf)]);
const REPLAY: Fields = Fields(&[("eventId", Leaf), ("since", Leaf)]);

/// Checks a request to create an API key for some of `destinations`.
pub fn check_key(body: &Value, destinations: &Destinations) -> Result<KeyRequest, Rejected> {
    let checked = validate(body, &KEY, |key| {
        let name = key.text("name", Text::NAME).required();
        let environment = parse_environment(key);
        let allowed = parse_countries(key, destinations);
        let addresses = parse_list(key, (ADDRESSES, MAX_IP_ADDRESSES), parse_network);
        let account = parse_account(key);
        Some(KeyRequest {
            name: name?.to_owned(),
            environment: environment?,
            allowed_countries: allowed?,
            ip_whitelist: addresses?,
            account: account?,
        })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks a request to configure a webhook.
pub fn check_webhook(body: &Value) -> Result<WebhookRequest, Rejected> {
    let checked = validate(body, &WEBHOOK, |webhook| {
        let url = webhook.text("url", Text::DATA.with_max(usize::MAX)).required();
        let events = parse_list(webhook, (EVENTS, MAX_LIST_ITEMS), parse_event_kind);
        Some(WebhookRequest { url: url?.to_owned(), events: events? })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks a request to create a carrier key.
pub fn check_carrier_key(body: &Value) -> Result<CarrierKeyRequest, Rejected> {
    let checked = validate(body, &CARRIER_KEY, |carrier| {
        let name = carrier.text("name", Text::NAME).required();
        let environment = parse_environment(carrier);
        Some(CarrierKeyRequest { name: name?.to_owned(), environment: environment? })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks a request to create an account.
pub fn check_account(body: &Value) -> Result<AccountRequest, Rejected> {
    let checked = validate(body, &ACCOUNT, |account| {
        Some(AccountRequest { name: account.text("name", Text::NAME).required()?.to_owned() })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks a request to resend events.
pub fn check_replay(body: &Value) -> Result<ReplayRequest, Rejected> {
    let checked = validate(body, &REPLAY, |replay| {
        let event = replay.text("eventId", Text::DATA).and_then(parse_event_id).optional();
        let since = replay.text("since", Text::DATA).and_then(parse_since);
        if event.is_some() && !since.is_absent() {
            since.fault(faults::EVENT_OR_SINCE);
        }
        // An empty object means every event, so a misspelt or blank `eventId` must not have that effect.
        let is_named = |name: &str| match replay.members().get(name) {
            None => false,
            Some(Json::Text(text)) => !is_blank(text),
            Some(_) => true,
        };
        let has_neither = !REPLAY.0.iter().any(|&(name, _)| is_named(name));
        if has_neither && !replay.members().is_empty() {
            replay.fault_at("eventId", faults::EVENT_OR_EMPTY);
        }
        Some(ReplayRequest { event_id: event.map(str::to_owned), since: since.optional() })
    });
    checked.map(|accepted| accepted.value)
}

/// Checks the name of an account in a query.
pub fn check_account_name(name: &str) -> Result<String, FieldFault> {
    check_name_in("account", name)
}

/// Checks the name of a key, a token, a carrier or an account.
pub fn check_name(name: &str) -> Result<String, FieldFault> {
    check_name_in("name", name)
}

/// Checks a name; a fault is reported for `field`.
fn check_name_in(field: &str, name: &str) -> Result<String, FieldFault> {
    let checked = if is_blank(name) { Err(faults::REQUIRED) } else { Text::NAME.parse(name) };
    checked.map(str::to_owned).map_err(|fault| fault.at(field))
}

/// Parses the name of the account. If the field is absent, it is the default account. A blank name is a fault, unlike a
/// blank text elsewhere: a key of the wrong account would see another customer's parcels.
fn parse_account(key: &Object<'_>) -> Option<String> {
    match key.members().get("account") {
        None | Some(Json::Null) => Some(DEFAULT_ACCOUNT.to_owned()),
        Some(_) => key.text("account", Text::NAME).required().map(str::to_owned),
    }
}

/// Parses the environment, which is required.
fn parse_environment(request: &Object<'_>) -> Option<Environment> {
    let named = |word: &str| {
        let mut all = Environment::ALL.into_iter();
        all.find(|environment| environment.code() == word).ok_or(faults::ENVIRONMENT)
    };
    request.text("environment", Text::DATA).and_then(named).required()
}

/// Parses the list of supported countries, each once, or `*` for all.
fn parse_countries(key: &Object<'_>, destinations: &Destinations) -> Option<AllowedCountries> {
    let list = key.list(COUNTRIES, MAX_LIST_ITEMS).required()?;
    if list.is_empty() {
        key.fault_at(COUNTRIES, faults::too_few(COUNTRIES));
        return None;
    }
    let country = |word| match word {
        "*" => Ok(None),
        code => check_supported(parse_country(code)?, destinations).map(Some),
    };
    let words: Vec<_> =
        list.texts(Text::DATA).map(|each| each.and_then(country).required()).collect();
    let words: Vec<_> = words.into_iter().collect::<Option<_>>()?;
    let mut named: Vec<_> = words.iter().copied().flatten().collect();
    if named.is_empty() {
        return Some(AllowedCountries::All);
    }
    if named.len() < words.len() {
        key.fault_at(COUNTRIES, faults::ALL_OR_SOME_COUNTRIES);
        return None;
    }
    named.sort_unstable();
    named.dedup();
    Some(AllowedCountries::Only(named))
}

/// Parses an address, or a network in CIDR notation.
fn parse_network(text: &str) -> Result<String, FaultText> {
    let (address, prefix) = text.split_once('/').unwrap_or((text, "0"));
    let longest = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return Err(faults::NETWORK),
    };
    let is_numeric = prefix.bytes().all(|b| b.is_ascii_digit()) && prefix.len() <= 3;
    let fits = is_numeric && prefix.parse::<u8>().is_ok_and(|length| length <= longest);
    if fits { Ok(text.to_owned()) } else { Err(faults::NETWORK) }
}

/// Parses each item of a list of at most `max` items. An absent list is empty.
fn parse_list<T>(
    request: &Object<'_>,
    (name, max): (&str, usize),
    parse: impl Fn(&str) -> Result<T, FaultText>,
) -> Option<Vec<T>> {
    let Some(list) = request.list(name, max).into_result().ok()? else {
        return Some(vec![]);
    };
    let codes: Vec<_> =
        list.texts(Text::DATA).map(|each| each.and_then(&parse).required()).collect();
    codes.into_iter().collect()
}

/// Parses a kind of event that can be subscribed to: `webhook.test` is sent to every webhook on demand.
fn parse_event_kind(word: &str) -> Result<EventKind, FaultText> {
    match EventKind::from(word) {
        EventKind::WebhookTest | EventKind::Unknown(_) => Err(faults::EVENT_KIND),
        kind => Ok(kind),
    }
}

/// Parses an event's id: `evt_` and a ULID.
fn parse_event_id(text: &str) -> Result<&str, FaultText> {
    let ulid = text.strip_prefix("evt_").unwrap_or_default();
    let fits = ulid.len() == 26 && ulid.bytes().all(|b| b.is_ascii_alphanumeric());
    if fits { Ok(text) } else { Err(faults::EVENT_ID) }
}

fn parse_since(text: &str) -> Result<DateTime<Utc>, FaultText> {
    let parsed = DateTime::parse_from_rfc3339(text);
    parsed.map(|time| time.to_utc()).map_err(|_| faults::TIME_WITH_OFFSET)
}

#[cfg(test)]
mod tests {
    use parcelo_types::model::FaultCode;
    use serde_json::json;

    use super::*;
    use crate::tests::faults_of;

    fn key() -> Value {
        json!({ "name": " Warehouse ", "environment": "sandbox", "allowedCountries": ["MX", "EC", "EC"],
            "ipWhitelist": ["203.0.113.7", "10.0.0.0/8", "2001:db8::/32"] })
    }

    #[test]
    fn a_valid_key_request_is_parsed() {
        let request = check_key(&key(), &Destinations::All).unwrap();
        assert_eq!((request.name.as_str(), request.account.as_str()), ("Warehouse", "default"));
        assert_eq!(
            request.allowed_countries,
            AllowedCountries::Only(vec![CountryCode::EC, CountryCode::MX])
        );
        assert_eq!(request.ip_whitelist.len(), 3);
        let all = json!({ "name": "n", "environment": "production", "allowedCountries": ["*"] });
        let request = check_key(&all, &Destinations::All).unwrap();
        assert_eq!(request.allowed_countries, AllowedCountries::All);
    }

    #[test]
    fn every_fault_of_a_key_request_has_its_path_and_code() {
        let many: Vec<_> = (0..51).map(|i| format!("10.0.0.{i}")).collect();
        let table = [
            ("name", json!(" "), "name REQUIRED"),
            ("name", json!("x".repeat(101)), "name TOO_LONG"),
            ("name", json!("a\u{202E}b"), "name INVALID_FORMAT"),
            ("environment", json!("live"), "environment UNKNOWN_VALUE"),
            ("allowedCountries", json!(null), "allowedCountries REQUIRED"),
            ("allowedCountries", json!([]), "allowedCountries TOO_SHORT"),
            ("allowedCountries", json!(["*", "EC"]), "allowedCountries MISMATCH"),
            ("allowedCountries", json!(["EC", "ec"]), "allowedCountries[1] UNKNOWN_VALUE"),
            ("allowedCountries", json!(["PE"]), "allowedCountries[0] NOT_SUPPORTED"),
            ("ipWhitelist", json!("10.0.0.1"), "ipWhitelist INVALID_FORMAT"),
            ("ipWhitelist", json!(["10.0.0.1/33"]), "ipWhitelist[0] INVALID_FORMAT"),
            ("ipWhitelist", json!(["::1", "10.0.0.1/+8"]), "ipWhitelist[1] INVALID_FORMAT"),
            ("ipWhitelist", json!(["here"]), "ipWhitelist[0] INVALID_FORMAT"),
            ("ipWhitelist", json!(many), "ipWhitelist TOO_LONG"),
            ("account", json!(7), "account INVALID_FORMAT"),
            ("account", json!(" "), "account REQUIRED"),
        ];
        let supported = Destinations::Only([CountryCode::EC, CountryCode::MX].into());
        for (field, value, fault) in table {
            let mut body = key();
            body[field] = value.clone();
            assert_eq!(faults_of(check_key(&body, &supported)), [fault], "{field} {value}");
        }
        let all = ["name REQUIRED", "environment REQUIRED", "allowedCountries REQUIRED"];
        assert_eq!(faults_of(check_key(&json!({}), &supported)), all);
    }

    #[test]
    fn a_name_is_one_line_of_visible_characters() {
        for name in ["a", " Ñandú & Cía. 王 ", &"ñ".repeat(100)] {
            assert_eq!(check_name(name).as_deref(), Ok(name.trim()), "{name:?}");
        }
        let hidden = "\0 \u{1b} \n \t \u{7f} \u{85} \u{ad} \u{200b} \u{200e} \u{202e} \u{2028} \u{2066} \u{2800} \u{3164} \u{feff} \u{e0041}";
        for hidden in hidden.split(' ') {
            let fault = check_name(&format!("a{hidden}b")).unwrap_err();
            assert_eq!((fault.field.as_str(), fault.code), ("name", FaultCode::InvalidFormat));
            assert!(fault.message.contains("invisible") && fault.message_es.contains("invisible"));
            assert!(check_account_name(&format!("a{hidden}b")).is_err(), "{hidden:?}");
        }
        for blank in ["", " ", "\u{200b}\u{a0}", "\u{3164}"] {
            assert!(check_name(blank).is_err(), "{blank:?}");
        }
    }

    #[test]
    fn faults_of_webhooks_carriers_and_replays_are_reported() {
        assert_eq!(faults_of(check_webhook(&json!({}))), ["url REQUIRED"]);
        let test = json!({ "url": "https://shop.example/", "events": ["webhook.test"] });
        assert_eq!(faults_of(check_webhook(&test)), ["events[0] UNKNOWN_VALUE"]);
        assert_eq!(
            faults_of(check_carrier_key(&json!({}))),
            ["name REQUIRED", "environment REQUIRED"]
        );
        for (name, fault) in [("", "name REQUIRED"), ("a\u{202E}b", "name INVALID_FORMAT")] {
            assert_eq!(faults_of(check_account(&json!({ "name": name }))), [fault]);
        }
        let both = json!({ "eventId": format!("evt_{}", "0".repeat(26)), "since": "2026-01-10T15:05:00Z" });
        assert_eq!(faults_of(check_replay(&both)), ["since MISMATCH"]);
        let wrong = json!({ "eventId": "evt_1", "since": "yesterday" });
        assert_eq!(
            faults_of(check_replay(&wrong)),
            ["eventId INVALID_FORMAT", "since INVALID_FORMAT"]
        );
        assert_eq!(check_replay(&json!({})), Ok(ReplayRequest::default()));
        // Every event only if the request names nothing else: a misspelt id does not mean all events.
        for misspelt in ["event", "eventid", "from"] {
            let faults = faults_of(check_replay(&json!({ misspelt: "evt_1" })));
            assert_eq!(faults, ["eventId REQUIRED"], "{misspelt}");
        }
        for blank in [json!({ "eventId": "" }), json!({ "since": " " })] {
            assert_eq!(faults_of(check_replay(&blank)), ["eventId REQUIRED"], "{blank}");
        }
        let more = json!({ "since": "2026-01-10T15:05:00Z", "note": "after the move" });
        assert!(check_replay(&more).is_ok());
    }
}
