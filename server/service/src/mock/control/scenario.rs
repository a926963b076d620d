//! A scenario: the control calls that are made before a mock server is ready, as one JSON object. It has the requests of
//! those calls, and their code makes them.

use std::{collections::HashSet, fmt, sync::Arc};

use parcelo_domain::Refusal;
use parcelo_types::{
    ApiKey, CountryCode, Language, ParcelStatus, TrackingNumber,
    model::{FaultCode, FieldFault},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use super::{
    issue_key,
    planned_fault::PlannedFault,
    refusals::invalid_field,
    refuse_status,
    requests::{WantedKey, check_status},
    webhooks::{WantedInbox, WebhookReceiver},
};
use crate::{
    http::Document,
    mock::{Clock, MockServer},
    service::Caller,
};

/// The dialect of JSON Schema that OpenAPI documents use.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// The schema of a scenario in the mock server's document.
const SCHEMA: &str = "#/components/schemas/WantedScenario";
/// The place of schemas in an OpenAPI document, and in a JSON Schema, of which strict validators expect it.
const SCHEMA_PLACES: (&str, &str) = ("\"#/components/schemas/", "\"#/$defs/");

/// The field of a fault of the scenario as a whole.
const WHOLE: &str = "scenario";

/// The state in which a mock server starts: its clock, keys, parcels, webhooks and faults, for several suites, or for
/// those that are not in Rust. [`Builder::scenario`](crate::mock::Builder::scenario) takes it, and `parcelo-server mock
/// --scenario FILE`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use parcelo::{ParcelStatus, TrackingNumber};
/// use parcelo_server::mock::{MockServer, Scenario};
///
/// let scenario = Scenario::parse(r#"{
///     "clock": "frozen=2026-01-05T08:00:00Z",
///     "keys": [{ "name": "Shop", "allowedCountries": ["EC", "CO"] }],
///     "parcels": [{ "trackingNumber": "SB-SUCCESS-0001", "country": "CO", "status": "DELIVERED" }],
///     "faults": [{ "operation": "CreateOrder", "nth": 1, "afterCommit": true, "fault": "reset" }]
/// }"#)?;
/// let server = MockServer::builder().scenario(scenario).start().await;
/// let client = server.client(&server.scenario_keys()[0]);
/// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
/// assert_eq!(client.tracking().get(&number).await?.status, ParcelStatus::Delivered);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Scenario {
    clock: Option<Clock>,
    calls: Arc<WantedScenario>,
}

/// The faults of a scenario, each with its place: a line and a column, or a path such as `parcels[2].status`.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}", list(.0))]
pub struct ScenarioError(Vec<FieldFault>);

/// The clock of a server and the calls that are made before it is ready: keys first, then parcels, webhooks and faults.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub(super) struct WantedScenario {
    /// The schema of this file, for editors.
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    /// The clock: `system`, `frozen=TIME` or `ticking=TIME`, as `frozen=2026-01-05T08:00:00Z`.
    #[cfg_attr(test, schema(pattern = "^(system|(frozen|ticking)=.+)$"))]
    clock: Option<String>,
    /// The bodies of `POST /__mock/keys`.
    #[serde(default)]
    keys: Vec<WantedKey>,
    /// The parcels of the account `default`.
    #[serde(default)]
    parcels: Vec<WantedParcel>,
    /// The bodies of `POST /__mock/webhooks`.
    #[serde(default)]
    webhooks: Vec<WantedInbox>,
    /// The bodies of `POST /__mock/faults`.
    #[serde(default)]
    faults: Vec<PlannedFault>,
}

/// A parcel of the order that `GET /__mock/orders/{trackingNumber}` returns.
#[derive(Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedParcel {
    #[cfg_attr(test, schema(value_type = TrackingNumber))]
    tracking_number: String,
    /// The receiver's country, `EC` by default.
    #[cfg_attr(test, schema(value_type = Option<CountryCode>))]
    country: Option<String>,
    /// Its status, such as `VOIDED`, `MANIFEST_SUBMITTED` or `DELIVERED`, by the shortest path that the state machine
    /// allows; by default that of a new parcel.
    status: Option<ParcelStatus>,
}

/// The keys that a scenario's calls have created, and the receiver of webhooks that they chose.
pub(in crate::mock) struct ScenarioResult {
    pub(in crate::mock) keys: Vec<ApiKey>,
    pub(in crate::mock) receiver: Option<WebhookReceiver>,
}

impl Scenario {
    /// Parses a scenario. Its calls are checked when a server starts with it.
    ///
    /// Errors if it is not JSON, has an unknown field, or has a value of another type.
    pub fn parse(json: &str) -> Result<Self, ScenarioError> {
        // Editors on Windows may begin a file with a byte order mark.
        let json = json.strip_prefix('\u{feff}').unwrap_or(json);
        let value = serde_json::from_str(json).map_err(|error| unreadable(&error))?;
        check_calls(&value)?;
        // Again from the text: the error then has the line and the column.
        Self::new(serde_json::from_str(json).map_err(|error| unreadable(&error))?)
    }

    /// Reads the scenario in the body of a control.
    pub(super) fn from_value(value: &Value) -> Result<Self, ScenarioError> {
        check_calls(value)?;
        Self::new(WantedScenario::deserialize(value).map_err(|error| unreadable(&error))?)
    }

    fn new(wanted: WantedScenario) -> Result<Self, ScenarioError> {
        let clock = wanted.clock.as_deref().map(parse_clock).transpose();
        let clock = clock.map_err(|refusal| ScenarioError(refusal.faults()))?;
        Ok(Self { clock, calls: Arc::new(wanted) })
    }

    /// Returns the JSON Schema of a scenario's file, for editors: the schemas of the controls' requests.
    pub fn json_schema() -> Value {
        let mut document = Document::WithControls.read();
        let all = document.pointer_mut("/components/schemas").map(Value::take).unwrap_or_default();
        let (mut schema, mut used) = (json!({ "$ref": SCHEMA }), Map::new());
        add_references(&schema, &all, &mut used);
        if let Some(schema) = schema.as_object_mut() {
            schema.insert("$schema".to_owned(), json!(DIALECT));
            schema.insert("$defs".to_owned(), used.into());
        }
        // References stand at any depth.
        let (from, to) = SCHEMA_PLACES;
        serde_json::from_str(&schema.to_string().replace(from, to)).unwrap_or_default()
    }

    /// Returns its clock, if it has one.
    pub(in crate::mock) fn clock(&self) -> Option<Clock> {
        self.clock.clone()
    }

    /// Makes its calls on a server that no one else uses yet.
    pub(in crate::mock) async fn apply(
        &self,
        server: &MockServer,
    ) -> Result<ScenarioResult, ScenarioError> {
        let (calls, mut result) =
            (&*self.calls, ScenarioResult { keys: Vec::new(), receiver: None });
        for (index, key) in calls.keys.iter().enumerate() {
            let key = issue_key(server, key).map_err(|refusal| at("keys", index, &refusal))?;
            result.keys.push(key);
        }
        if !calls.parcels.is_empty() {
            let (caller, mut numbers) = (server.seed_caller(), HashSet::new());
            for (index, parcel) in calls.parcels.iter().enumerate() {
                let created = if numbers.insert(&parcel.tracking_number) {
                    parcel.create(server, &caller).await
                } else {
                    Err(parcel.refuse_repeated())
                };
                created.map_err(|refusal| at("parcels", index, &refusal))?;
            }
        }
        for (index, webhook) in calls.webhooks.iter().enumerate() {
            let started = webhook.start(server).await;
            let (_, receiver) = started.map_err(|refusal| at("webhooks", index, &refusal))?;
            receiver.replace(&mut result.receiver);
        }
        for (index, fault) in calls.faults.iter().enumerate() {
            let plan = fault.clone().plan().map_err(|refusal| at("faults", index, &refusal))?;
            server.recorder.plans().add(plan);
        }
        Ok(result)
    }
}

// Not derived, because faults can have API keys.
impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scenario").field("clock", &self.clock).finish_non_exhaustive()
    }
}

impl ScenarioError {
    /// Refuses the body of a control that has the scenario as a field.
    pub(super) fn refusal(mut self) -> Refusal {
        for fault in self.0.iter_mut().filter(|fault| fault.field != WHOLE) {
            fault.field.insert_str(0, "scenario.");
        }
        Refusal::invalid(&self.0)
    }
}

impl WantedParcel {
    async fn create(&self, server: &MockServer, caller: &Caller) -> Result<(), Refusal> {
        let number = TrackingNumber::parse(&self.tracking_number).map_err(|error| {
            let es = "trackingNumber debe tener 10-30 letras, dígitos y guiones, sin guion en los extremos";
            invalid_field("trackingNumber", &error.to_string(), es)
        })?;
        let country = self.country.as_deref().map(CountryCode::parse).transpose();
        let country = country.map_err(|error| {
            let es = "country debe ser un código ISO 3166-1 de dos letras mayúsculas, como EC";
            invalid_field("country", &error.to_string(), es)
        })?;
        self.status.as_ref().map_or(Ok(()), check_status)?;
        let order = MockServer::sample_order(country.unwrap_or(CountryCode::EC), number.clone());
        let order = serde_json::to_value(&order).unwrap_or_default();
        server.service.create_order(caller, &order, None).await?;
        if let Some(status) = &self.status {
            let put = server.put_status(&number, status.clone()).await;
            put.map_err(|error| refuse_status(&error))?;
        }
        Ok(())
    }

    fn refuse_repeated(&self) -> Refusal {
        let number = &self.tracking_number;
        invalid_field(
            "trackingNumber",
            &format!("an earlier parcel has {number} already: give each a number of its own"),
            &format!("un paquete anterior ya tiene {number}: dé a cada uno su propio número"),
        )
    }
}

fn unreadable(error: &serde_json::Error) -> ScenarioError {
    let texts = (error.to_string(), "el escenario no se puede leer");
    ScenarioError(vec![FieldFault::new(WHOLE, FaultCode::InvalidFormat, texts)])
}

/// Checks that a scenario is an object, and its calls are lists of the controls' requests. Serde names no index, and
/// accepts an array for an object, with the values of the members in order.
fn check_calls(scenario: &Value) -> Result<(), ScenarioError> {
    if !scenario.is_object() {
        let texts = ("a scenario must be a JSON object", "un escenario debe ser un objeto JSON");
        return Err(ScenarioError(vec![FieldFault::new(WHOLE, FaultCode::InvalidFormat, texts)]));
    }
    let faults = [
        text_faults(scenario, "$schema"),
        text_faults(scenario, "clock"),
        list_faults::<WantedKey>(scenario, "keys"),
        list_faults::<WantedParcel>(scenario, "parcels"),
        list_faults::<WantedInbox>(scenario, "webhooks"),
        list_faults::<PlannedFault>(scenario, "faults"),
    ];
    let faults = faults.concat();
    if faults.is_empty() { Ok(()) } else { Err(ScenarioError(faults)) }
}

/// Returns the fault of a member that is a text, if it is there.
fn text_faults(scenario: &Value, name: &str) -> Vec<FieldFault> {
    match scenario.get(name) {
        None | Some(Value::Null | Value::String(_)) => Vec::new(),
        Some(_) => {
            let es = format!("{name} debe ser un texto");
            vec![wrong_shape(name, format!("{name} must be a string"), es)]
        }
    }
}

/// Returns the faults of one of the lists of calls.
fn list_faults<T: DeserializeOwned>(scenario: &Value, list: &str) -> Vec<FieldFault> {
    let calls = match scenario.get(list) {
        None => return Vec::new(),
        Some(Value::Array(calls)) => calls,
        Some(_) => {
            let es = format!("{list} debe ser un arreglo");
            return vec![wrong_shape(list, format!("{list} must be an array"), es)];
        }
    };
    let places = (0..).map(|index: usize| format!("{list}[{index}]"));
    places.zip(calls).flat_map(|(place, call)| call_faults::<T>(&place, call)).collect()
}

/// Returns the faults of a call. Serde names neither the member nor a second fault, so each member is read alone.
fn call_faults<T: DeserializeOwned>(place: &str, call: &Value) -> Vec<FieldFault> {
    let Some(members) = call.as_object() else {
        let es = format!("{place} debe ser un objeto");
        return vec![wrong_shape(place, format!("{place} must be an object"), es)];
    };
    let Err(error) = T::deserialize(call) else { return Vec::new() };
    let fault = |place: &str, error: String| {
        let es = format!("{place} no se puede leer: revise los nombres y valores de sus campos");
        wrong_shape(place, error, es)
    };
    let own = members.iter().filter_map(|(name, value)| {
        let mut alone = Map::new();
        alone.insert(name.clone(), value.clone());
        let error = T::deserialize(Value::Object(alone)).err()?.to_string();
        // A member that is sound lacks only the others.
        (!error.starts_with("missing field")).then(|| fault(&format!("{place}.{name}"), error))
    });
    let own: Vec<_> = own.collect();
    if own.is_empty() { vec![fault(place, error.to_string())] } else { own }
}

fn wrong_shape(place: &str, en: String, es: String) -> FieldFault {
    FieldFault::new(place, FaultCode::InvalidFormat, (en, es))
}

/// Parses a clock as the command line names it.
pub(super) fn parse_clock(text: &str) -> Result<Clock, Refusal> {
    Clock::parse(text).ok_or_else(|| {
        let (en, es) = (Clock::FORMS, Clock::FORMS_ES);
        invalid_field("clock", &format!("clock must be {en}"), &format!("clock debe ser {es}"))
    })
}

/// Returns the faults of a refused call with their places in the scenario.
fn at(calls: &str, index: usize, refusal: &Refusal) -> ScenarioError {
    let place = format!("{calls}[{index}]");
    let mut faults = refusal.faults();
    if faults.is_empty() {
        let texts = (refusal.text(Language::En), refusal.text(Language::Es));
        return ScenarioError(vec![FieldFault::new(place, FaultCode::InvalidFormat, texts)]);
    }
    for fault in &mut faults {
        let field = &fault.field;
        // The call's own name for the whole of it.
        fault.field = if field == "body" { place.clone() } else { format!("{place}.{field}") };
    }
    ScenarioError(faults)
}

fn list(faults: &[FieldFault]) -> String {
    let texts = faults.iter().map(|fault| format!("{}: {}", fault.field, fault.message));
    texts.collect::<Vec<_>>().join("; ")
}

/// Adds the schemas that a schema refers to, and those that they refer to.
fn add_references(schema: &Value, all: &Value, used: &mut Map<String, Value>) {
    // References stand at any depth, and the text has all of them.
    let text = schema.to_string();
    for reference in text.split(r##""$ref":"#/components/schemas/"##).skip(1) {
        let name = reference.split('"').next().unwrap_or_default();
        if let Some(referred) = all.get(name)
            && used.insert(name.to_owned(), referred.clone()).is_none()
        {
            add_references(referred, all, used);
        }
    }
}
