//! Whether a fault makes sense before it is planned: a plan that contradicts itself, or can do
//! nothing, is a mistake in a suite that would look like a server without faults.

use std::time::Duration;

use parcelo::{
    ApiKey, ErrorCode,
    model::{FaultCode, FieldFault},
};

use serde_json::Value;

use super::asked::{FaultKind, HeaderValues, PlannedFault, operation};
use crate::{
    domain::Refusal,
    mock::{Fault, MockServer, Reply, reply::STATUSES},
};

/// Plans the fault.
pub(super) fn plan(server: &MockServer, asked: &PlannedFault) -> Result<(), Refusal> {
    let (time, code, reply) = (asked.time()?, asked.error()?, asked.reply()?);
    let fault = asked.select(server)?;
    match asked.fault {
        FaultKind::Latency => fault.latency(time),
        FaultKind::Error => fault.error(code.ok_or_else(no_code)?),
        FaultKind::RateLimited => fault.rate_limited(time),
        FaultKind::Close => fault.close(),
        FaultKind::Reset => fault.reset_connection(),
        FaultKind::TruncatedBody => fault.truncated_body(),
        FaultKind::SlowBody => fault.slow_body(time),
        FaultKind::MalformedJson => fault.malformed_json(),
        FaultKind::Reply => fault.reply(reply.ok_or_else(no_status)?),
        FaultKind::Hang => fault.reply(Reply::hang()),
    }
    Ok(())
}

impl PlannedFault {
    /// The requests that are to meet it.
    fn select<'a>(&self, server: &'a MockServer) -> Result<Fault<'a>, Refusal> {
        let faults = server.faults();
        let mut fault = match &self.operation {
            Some(name) => faults.on(operation(name)?),
            None => faults.on_any(),
        };
        if let Some(key) = &self.key {
            fault = fault.key(&ApiKey::parse(key).map_err(|_| no_key())?);
        }
        if let Some(order) = &self.order {
            fault = fault.for_order(order);
        }
        fault = match (self.nth, self.first, self.probability) {
            (None, None, None) => fault,
            (Some(nth), None, None) => fault.nth(counted("nth", nth)?),
            (None, Some(first), None) => fault.first(counted("first", first)?),
            (None, None, Some(chance)) => fault.probability(likely(chance)?),
            (Some(_), Some(_), _) => return Err(exclusive("first", "nth")),
            (Some(_), None, Some(_)) => return Err(exclusive("probability", "nth")),
            (None, Some(_), Some(_)) => return Err(exclusive("probability", "first")),
        };
        Ok(if self.after_commit { fault.after_commit() } else { fault })
    }

    /// How long it takes, or a 429 lasts; nothing for those that take no time.
    fn time(&self) -> Result<Duration, Refusal> {
        let given = self.seconds.map(Duration::try_from_secs_f64).transpose();
        let given = given.map_err(|_| no_seconds("seconds is a number, not below 0"))?;
        match (&self.fault, given) {
            (FaultKind::Latency | FaultKind::SlowBody, None | Some(Duration::ZERO)) => {
                Err(no_seconds("in 0 seconds this fault does nothing: give seconds, above 0"))
            }
            (FaultKind::Latency | FaultKind::SlowBody | FaultKind::RateLimited, given) => {
                Ok(given.unwrap_or_default())
            }
            (_, None) => Ok(Duration::ZERO),
            (_, Some(_)) => Err(no_seconds(
                "only latency, slowBody and rateLimited take time: leave out seconds",
            )),
        }
    }

    /// The answer of one's own, for the fault that has one.
    fn reply(&self) -> Result<Option<Reply>, Refusal> {
        let FaultKind::Reply = self.fault else {
            let own = [
                ("status", self.status.is_some()),
                ("headers", self.headers.is_some()),
                ("body", self.body.is_some()),
            ];
            return match own.into_iter().find(|(_, is_given)| *is_given) {
                None => Ok(None),
                Some((field, _)) => Err(misfit(
                    field,
                    &format!(
                        "only \"fault\": \"reply\" has {field}: leave it out, or plan a reply"
                    ),
                    &format!(
                        "solo \"fault\": \"reply\" tiene {field}: quítelo, o planee una respuesta"
                    ),
                )),
            };
        };
        let is_status = |status: &u16| (STATUSES.0..=STATUSES.1).contains(status);
        let status = self.status.filter(is_status).ok_or_else(no_status)?;
        let mut reply = Reply::status(status);
        for (name, value) in self.header_lines() {
            reply = reply.with_header(name, value).ok_or_else(no_header)?;
        }
        Ok(Some(match &self.body {
            None => reply,
            Some(Value::String(text)) => reply.body(text.as_str()),
            Some(json)
                if self
                    .header_lines()
                    .any(|(name, _)| name.eq_ignore_ascii_case("content-type")) =>
            {
                reply.body(json.to_string())
            }
            Some(json) => reply.header("content-type", "application/json").body(json.to_string()),
        }))
    }

    fn header_lines(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().flatten().flat_map(|(name, values)| {
            let values = match values {
                HeaderValues::One(value) => std::slice::from_ref(value),
                HeaderValues::Several(values) => values,
            };
            values.iter().map(move |value| (name.as_str(), value.as_str()))
        })
    }

    /// The error that is answered, for the fault that has one.
    fn error(&self) -> Result<Option<ErrorCode>, Refusal> {
        match (&self.code, &self.fault) {
            (None, _) => Ok(None),
            (Some(code), FaultKind::Error) => ErrorCode::known(code).map(Some).ok_or_else(no_code),
            (Some(_), _) => Err(misfit(
                "code",
                "only \"fault\": \"error\" has a code: leave it out, or plan an error",
                "solo \"fault\": \"error\" tiene un código: quítelo, o planee un error",
            )),
        }
    }
}

fn counted(field: &str, number: u32) -> Result<u64, Refusal> {
    let counts = (number > 0).then(|| number.into());
    counts.ok_or_else(|| {
        let (english, spanish) =
            ("requests are counted from 1", "las solicitudes se cuentan desde 1");
        misfit(field, english, spanish)
    })
}

fn likely(probability: f64) -> Result<f64, Refusal> {
    let is_one = probability > 0.0 && probability <= 1.0;
    is_one.then_some(probability).ok_or_else(|| {
        misfit(
            "probability",
            "probability is a number above 0, up to 1",
            "probability es un número mayor que 0, hasta 1",
        )
    })
}

fn exclusive(field: &str, other: &str) -> Refusal {
    misfit(
        field,
        &format!("{other} says already which requests: leave out {field}, or plan two faults"),
        &format!("{other} ya dice qué solicitudes: quite {field}, o planee dos fallos"),
    )
}

fn no_key() -> Refusal {
    misfit("key", "key is an API key, whole", "key es una clave de API, entera")
}

fn no_code() -> Refusal {
    misfit(
        "code",
        "an error has a code, such as SERVICE_UNAVAILABLE",
        "un error tiene un código, como SERVICE_UNAVAILABLE",
    )
}

fn no_status() -> Refusal {
    misfit(
        "status",
        "a reply has a status, 200 to 999",
        "una respuesta tiene un estado, de 200 a 999",
    )
}

fn no_header() -> Refusal {
    misfit(
        "headers",
        "a header has a name of letters, digits and hyphens, and a value on one line",
        "una cabecera tiene un nombre de letras, cifras y guiones, y un valor en una línea",
    )
}

fn no_seconds(message: &str) -> Refusal {
    misfit("seconds", message, &format!("El control no se entiende ({message})."))
}

fn misfit(field: &str, message: &str, message_es: &str) -> Refusal {
    Refusal::invalid(&[FieldFault::new(field, FaultCode::InvalidFormat, (message, message_es))])
}
