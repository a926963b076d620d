//! Checks of a fault before it is planned. A fault that contradicts itself or can have no effect is a mistake in the
//! test suite, which would otherwise go unnoticed.

use std::time::Duration;

use parcelo_types::ErrorCode;

use parcelo_domain::Refusal;
use serde_json::Value;

use super::{
    refusals::invalid_field,
    requests::{FaultKind, HeaderValues, PlannedFault, parse_key, parse_operation},
};
use crate::mock::{Fault, MockServer, Reply, reply::FINAL_STATUSES};

/// Checks and plans the fault.
pub(super) fn plan_fault(server: &MockServer, requested: &PlannedFault) -> Result<(), Refusal> {
    let (time, code, reply) = (requested.duration()?, requested.error()?, requested.reply()?);
    let fault = requested.select_requests(server)?;
    match requested.fault {
        FaultKind::Latency => fault.latency(time),
        FaultKind::Error => fault.error(code.ok_or_else(missing_code)?),
        FaultKind::RateLimited => fault.rate_limited(time),
        FaultKind::Close => fault.close(),
        FaultKind::Reset => fault.reset_connection(),
        FaultKind::TruncatedBody => fault.truncated_body(),
        FaultKind::SlowBody => fault.slow_body(time),
        FaultKind::MalformedJson => fault.malformed_json(),
        FaultKind::Reply => fault.reply(reply.ok_or_else(missing_status)?),
        FaultKind::Hang => fault.reply(Reply::hang()),
    }
    Ok(())
}

impl PlannedFault {
    /// Starts to plan a fault for the selected requests.
    fn select_requests<'a>(&self, server: &'a MockServer) -> Result<Fault<'a>, Refusal> {
        let faults = server.faults();
        let mut fault = match &self.operation {
            Some(name) => faults.on(parse_operation(name)?),
            None => faults.on_any(),
        };
        if let Some(key) = &self.key {
            fault = fault.key(&parse_key(key)?);
        }
        if let Some(order) = &self.order {
            fault = fault.for_order(order);
        }
        fault = match (self.nth, self.first, self.probability) {
            (None, None, None) => fault,
            (Some(nth), None, None) => fault.nth(positive("nth", nth)?),
            (None, Some(first), None) => fault.first(positive("first", first)?),
            (None, None, Some(chance)) => fault.probability(probability(chance)?),
            (Some(_), Some(_), _) => return Err(exclusive_fields("first", "nth")),
            (Some(_), None, Some(_)) => return Err(exclusive_fields("probability", "nth")),
            (None, Some(_), Some(_)) => return Err(exclusive_fields("probability", "first")),
        };
        Ok(if self.after_commit { fault.after_commit() } else { fault })
    }

    /// Returns the duration of the fault, or of a 429's wait; zero for kinds without one.
    fn duration(&self) -> Result<Duration, Refusal> {
        let seconds = self.seconds.map(Duration::try_from_secs_f64).transpose();
        let seconds = seconds.map_err(|_| {
            invalid_seconds(
                "seconds must be a number, at least 0",
                "seconds debe ser un número, 0 como mínimo",
            )
        })?;
        match (&self.fault, seconds) {
            (FaultKind::Latency | FaultKind::SlowBody, None | Some(Duration::ZERO)) => {
                Err(invalid_seconds(
                    "this fault has no effect in 0 seconds: set seconds above 0",
                    "este fallo no tiene efecto en 0 segundos: ponga en seconds más de 0",
                ))
            }
            (FaultKind::Latency | FaultKind::SlowBody | FaultKind::RateLimited, seconds) => {
                Ok(seconds.unwrap_or_default())
            }
            (_, None) => Ok(Duration::ZERO),
            (_, Some(_)) => Err(invalid_seconds(
                "only latency, slowBody and rateLimited take seconds: leave them out",
                "solo latency, slowBody y rateLimited admiten seconds: omítalo",
            )),
        }
    }

    /// Returns the reply, if the fault is a reply; only then may its fields be given.
    fn reply(&self) -> Result<Option<Reply>, Refusal> {
        let FaultKind::Reply = self.fault else {
            let reply_fields = [
                ("status", self.status.is_some()),
                ("headers", self.headers.is_some()),
                ("body", self.body.is_some()),
            ];
            return match reply_fields.into_iter().find(|(_, is_given)| *is_given) {
                None => Ok(None),
                Some((field, _)) => Err(invalid_field(
                    field,
                    &format!(
                        "only \"fault\": \"reply\" takes {field}: leave it out, or plan a reply"
                    ),
                    &format!(
                        "solo \"fault\": \"reply\" admite {field}: quítelo, o planee una respuesta"
                    ),
                )),
            };
        };
        let is_status = |status: &u16| (FINAL_STATUSES.0..=FINAL_STATUSES.1).contains(status);
        let status = self.status.filter(is_status).ok_or_else(missing_status)?;
        let mut reply = Reply::status(status);
        for (name, value) in self.header_lines() {
            reply = reply.with_header(name, value).ok_or_else(invalid_header)?;
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

    /// Returns the error to respond with, if the fault is an error; only then may a code be given.
    fn error(&self) -> Result<Option<ErrorCode>, Refusal> {
        match (&self.code, &self.fault) {
            (None, _) => Ok(None),
            (Some(code), FaultKind::Error) => {
                ErrorCode::known(code).map(Some).ok_or_else(missing_code)
            }
            (Some(_), _) => Err(invalid_field(
                "code",
                "only \"fault\": \"error\" takes a code: leave it out, or plan an error",
                "solo \"fault\": \"error\" admite un código: quítelo, o planee un error",
            )),
        }
    }
}

fn positive(field: &str, number: u32) -> Result<u64, Refusal> {
    let counts = (number > 0).then(|| number.into());
    counts.ok_or_else(|| {
        let (english, spanish) =
            ("requests are counted from 1", "las solicitudes se cuentan desde 1");
        invalid_field(field, english, spanish)
    })
}

fn probability(probability: f64) -> Result<f64, Refusal> {
    let is_one = probability > 0.0 && probability <= 1.0;
    is_one.then_some(probability).ok_or_else(|| {
        invalid_field(
            "probability",
            "probability must be above 0 and at most 1",
            "probability debe ser mayor que 0 y como máximo 1",
        )
    })
}

fn exclusive_fields(field: &str, other: &str) -> Refusal {
    invalid_field(
        field,
        &format!("{other} already selects the requests: leave out {field}, or plan two faults"),
        &format!("{other} ya selecciona las solicitudes: quite {field}, o planee dos fallos"),
    )
}

fn missing_code() -> Refusal {
    invalid_field(
        "code",
        "an error needs a code, such as SERVICE_UNAVAILABLE",
        "un error requiere un código, como SERVICE_UNAVAILABLE",
    )
}

fn missing_status() -> Refusal {
    invalid_field(
        "status",
        "a reply needs a status, 200 to 999",
        "una respuesta requiere un estado, de 200 a 999",
    )
}

fn invalid_header() -> Refusal {
    invalid_field(
        "headers",
        "a header has a name of letters, digits and hyphens, and a value on one line",
        "un encabezado tiene un nombre de letras, dígitos y guiones, y un valor en una línea",
    )
}

fn invalid_seconds(message: &str, message_es: &str) -> Refusal {
    invalid_field("seconds", message, message_es)
}
