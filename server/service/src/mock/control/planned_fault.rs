//! A fault as it is planned over HTTP, and its conversion to the plan that Rust makes too. Beyond what every plan is
//! checked for, a field that another kind of fault takes is refused.

use std::{collections::BTreeMap, time::Duration};

use parcelo_domain::Refusal;
use parcelo_types::ErrorCode;
use serde::Deserialize;
use serde_json::Value;

#[cfg(test)]
use super::schemas;
use super::{
    refusals::invalid_field,
    requests::{parse_key, parse_operation},
};
use crate::mock::{
    Reply, Times,
    fault_plan::{Action, Corruption, Disconnect, FaultPlan, Replacement, Timing, Trigger},
    reply::is_final,
};

/// A fault and the requests that it hits; by default all.
#[derive(Clone, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::mock) struct PlannedFault {
    #[cfg_attr(test, schema(schema_with = schemas::operations))]
    operation: Option<String>,
    /// Only this request, counted from 1.
    #[cfg_attr(test, schema(format = Int64, minimum = 1, maximum = 4_294_967_295u64))]
    nth: Option<u32>,
    /// Only this many requests.
    #[cfg_attr(test, schema(format = Int64, minimum = 1, maximum = 4_294_967_295u64))]
    first: Option<u32>,
    /// Each request with this probability. At most one of `nth`, `first` and `probability` may be given.
    #[cfg_attr(test, schema(exclusive_minimum = 0, maximum = 1))]
    probability: Option<f64>,
    /// Only requests with this API key.
    key: Option<String>,
    /// Only requests about this order: its tracking number, external order id or idempotency key.
    order: Option<String>,
    /// True to execute the operation before the fault.
    #[serde(default)]
    after_commit: bool,
    /// The number of requests that it is expected to hit, for GET verify; at least one if absent.
    #[cfg_attr(test, schema(minimum = 0))]
    expect: Option<u64>,
    /// The kind of fault.
    fault: FaultKind,
    /// The duration of a latency or of each chunk of a slow body, above 0, or the wait of a 429, by default 1. Not
    /// allowed for other kinds.
    #[cfg_attr(test, schema(minimum = 0))]
    seconds: Option<f64>,
    #[cfg_attr(test, schema(schema_with = schemas::error_codes))]
    code: Option<String>,
    /// The status of a reply. Only a reply may have `status`, `headers` and `body`.
    #[cfg_attr(test, schema(minimum = 200, maximum = 999))]
    status: Option<u16>,
    /// Header names, each with one or several values.
    headers: Option<BTreeMap<String, HeaderValues>>,
    /// A string is sent as it is; any other value is sent as JSON.
    #[cfg_attr(test, schema(value_type = Option<Value>))]
    body: Option<Value>,
}

/// The value of a header, or its values if it is sent several times.
#[derive(Clone, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(untagged)]
enum HeaderValues {
    One(String),
    Several(Vec<String>),
}

/// The kinds of faults.
#[derive(Clone, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
enum FaultKind {
    Latency,
    Error,
    RateLimited,
    Close,
    Reset,
    TruncatedBody,
    SlowBody,
    MalformedJson,
    /// A response with a status, headers and body of the suite's choice, as a proxy might send it.
    Reply,
    /// No response; the connection stays open.
    Hang,
}

impl PlannedFault {
    /// Returns the plan, or a refusal that names the field to change.
    pub(in crate::mock) fn plan(mut self) -> Result<FaultPlan, Refusal> {
        let action = self.take_action()?;
        self.check_left_over()?;
        let mut plan = FaultPlan::new(self.operation.as_deref().map(parse_operation).transpose()?);
        plan.key = self.key.as_deref().map(parse_key).transpose()?;
        plan.order = self.order;
        plan.expected = self.expect.map(Times::from);
        if self.after_commit {
            plan.timing = Timing::AfterCommit;
        }
        let triggers = [
            self.nth.map(|n| Trigger::Nth(n.into())),
            self.first.map(|n| Trigger::First(n.into())),
            self.probability.map(Trigger::Probability),
        ];
        let plan = triggers.into_iter().flatten().try_fold(plan, FaultPlan::with_trigger);
        plan.and_then(|plan| plan.with_action(action)).map_err(|fault| Refusal::invalid(&[fault]))
    }

    /// Takes the fields of this kind of fault, and returns its action.
    fn take_action(&mut self) -> Result<Action, Refusal> {
        Ok(Action::Replace(match self.fault {
            FaultKind::Latency => return Ok(Action::Latency(self.take_time()?)),
            FaultKind::Error => Replacement::Error(self.take_code()?),
            FaultKind::RateLimited => Replacement::rate_limited(self.take_time()?),
            FaultKind::Close => Replacement::Disconnect(Disconnect::Close),
            FaultKind::Reset => Replacement::Disconnect(Disconnect::Reset),
            FaultKind::TruncatedBody => Replacement::Corrupted(Corruption::Truncated),
            FaultKind::SlowBody => Replacement::Corrupted(Corruption::Slow(self.take_time()?)),
            FaultKind::MalformedJson => Replacement::Corrupted(Corruption::Malformed),
            FaultKind::Reply => Replacement::Reply(self.take_reply()?),
            FaultKind::Hang => Replacement::Reply(Reply::hang()),
        }))
    }

    /// Refuses a field that only other kinds of faults take.
    fn check_left_over(&self) -> Result<(), Refusal> {
        let fields = [
            ("seconds", self.seconds.is_some(), "\"latency\", \"slowBody\", \"rateLimited\""),
            ("code", self.code.is_some(), "\"error\""),
            ("status", self.status.is_some(), "\"reply\""),
            ("headers", self.headers.is_some(), "\"reply\""),
            ("body", self.body.is_some(), "\"reply\""),
        ];
        let left_over = fields.into_iter().find(|(_, is_given, _)| *is_given);
        left_over.map_or(Ok(()), |(name, _, kinds)| {
            let en = format!("{name} is only for \"fault\": {kinds}; leave it out");
            let es = format!("{name} es solo para \"fault\": {kinds}; omítalo");
            Err(invalid_field(name, &en, &es))
        })
    }

    fn take_time(&mut self) -> Result<Duration, Refusal> {
        let seconds = self.seconds.take().unwrap_or_default();
        Duration::try_from_secs_f64(seconds).map_err(|_| {
            let en = "seconds must be a number, at least 0";
            invalid_field("seconds", en, "seconds debe ser un número, 0 como mínimo")
        })
    }

    fn take_code(&mut self) -> Result<ErrorCode, Refusal> {
        self.code.take().as_deref().and_then(ErrorCode::known).ok_or_else(|| {
            let en = "an error needs a code, such as SERVICE_UNAVAILABLE";
            invalid_field("code", en, "un error requiere un código, como SERVICE_UNAVAILABLE")
        })
    }

    fn take_reply(&mut self) -> Result<Reply, Refusal> {
        let status = self.status.take().filter(|status| is_final(*status)).ok_or_else(|| {
            let en = "a reply needs a status, 200 to 999";
            invalid_field("status", en, "una respuesta requiere un estado, de 200 a 999")
        })?;
        let (mut reply, mut is_typed) = (Reply::status(status), false);
        for (name, values) in self.headers.take().unwrap_or_default() {
            is_typed |= name.eq_ignore_ascii_case("content-type");
            let values = match values {
                HeaderValues::One(value) => vec![value],
                HeaderValues::Several(values) => values,
            };
            for value in values {
                reply = reply.with_header(&name, &value).ok_or_else(invalid_header)?;
            }
        }
        Ok(match self.body.take() {
            None => reply,
            Some(Value::String(text)) => reply.body(text),
            Some(json) if is_typed => reply.body(json.to_string()),
            Some(json) => reply.header("content-type", "application/json").body(json.to_string()),
        })
    }
}

fn invalid_header() -> Refusal {
    invalid_field(
        "headers",
        "a header has a name of letters, digits and hyphens, and a value on one line",
        "un encabezado tiene un nombre de letras, dígitos y guiones, y un valor en una línea",
    )
}
