//! `doctor`: checks everything that a call needs, each check after those that it depends on, with a hint for each
//! failure. Checks that depend on a failed one are skipped.

use std::time::Duration;

use chrono::{DateTime, Utc};
use parcelo::{Client, Reply, Retry, model::Health};
use tokio::{net::lookup_host, time::timeout};

use super::call;
use crate::{
    clock,
    failure::{Exit, Failure},
    results::{Check, CheckState, Checks, CommandOutcome},
    texts::{self, Message},
};

/// The checks that need no network.
#[derive(Debug)]
pub(crate) struct Preflight {
    /// The checks of profile, address, key and environment.
    pub(crate) checks: Vec<Check>,
    /// The client; `None` if one of the checks failed.
    pub(crate) client: Option<Client>,
}

/// Maximum duration of the DNS lookup.
const DNS_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum clock skew without a warning, far below the 300 s at which webhooks are rejected.
const MAX_CLOCK_SKEW_SECONDS: i64 = 30;

pub(super) async fn examine(preflight: Preflight) -> Result<CommandOutcome, Failure> {
    let Preflight { mut checks, client } = preflight;
    match client {
        Some(client) => checks.extend(check_network(&client).await?),
        None => checks.extend(skip_checks(&[DNS, SERVICE, CLOCK, LIMITS])),
    }
    let failed = checks.iter().filter(|check| matches!(check.state, CheckState::Failed(_))).count();
    let first = checks.iter().find_map(|check| match check.state {
        CheckState::Failed(exit) => Some(exit),
        CheckState::Passed | CheckState::Warning | CheckState::Skipped => None,
    });
    let failure = first.map(|exit| {
        let values = [("n", &*failed.to_string())];
        Failure::new(exit, "DOCTOR", texts::CHECKS_FAILED.with(&values))
    });
    Ok(CommandOutcome::report(Checks(checks)).failing(failure))
}

type Name = (&'static str, texts::Text);

const DNS: Name = ("dns", texts::CHECK_DNS);
const SERVICE: Name = ("service", texts::CHECK_SERVICE);
const CLOCK: Name = ("clock", texts::CHECK_CLOCK);
const LIMITS: Name = ("limits", texts::CHECK_LIMITS);

fn skip_checks(names: &[Name]) -> Vec<Check> {
    names
        .iter()
        .map(|(name, title)| Check::skipped(name, *title, texts::DEPENDS_ON_FAILED))
        .collect()
}

async fn check_network(client: &Client) -> Result<Vec<Check>, Failure> {
    let url = client.base_url();
    let (host, port) = (url.host_str().unwrap_or_default(), url.port_or_known_default());
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let found = call::unless_interrupted(
        resolve_host(host, port.unwrap_or(0)),
        crate::resume::ResumeHint::ReadOnly,
    );
    let dns = match found.await {
        Ok(addresses) => Check::passed(DNS.0, DNS.1, texts::AS_IS.with(&[("value", &addresses)])),
        Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
        Err(failure) => {
            let mut checks = vec![Check::failed(DNS.0, DNS.1, &failure)];
            checks.extend(skip_checks(&[SERVICE, CLOCK, LIMITS]));
            return Ok(checks);
        }
    };
    let once = client.with_retry(Retry::none());
    let mut checks = vec![dns];
    match call::execute_read(once.health()).await {
        Ok(health) => {
            let seen = [service_check(client, &health), check_skew(&health), check_limits(&health)];
            checks.extend(seen);
        }
        Err(failure) if failure.exit == Exit::Interrupted => return Err(failure),
        Err(failure) => {
            checks.push(Check::failed(SERVICE.0, SERVICE.1, &failure));
            checks.extend(skip_checks(&[CLOCK, LIMITS]));
        }
    }
    Ok(checks)
}

/// Resolves a host name. Returns the addresses as text.
async fn resolve_host(host: &str, port: u16) -> Result<String, Failure> {
    let unknown = |err: &str| {
        let values = [("host", host), ("reason", err)];
        Failure::new(Exit::NotExecuted, "DNS", texts::NO_SUCH_HOST.with(&values))
            .hint(texts::CHECK_ADDRESS)
    };
    match timeout(DNS_TIMEOUT, lookup_host((host, port))).await {
        Ok(Ok(found)) => {
            let mut found: Vec<_> = found.map(|address| address.ip().to_string()).collect();
            found.dedup();
            Ok(found.join(", "))
        }
        Ok(Err(err)) => Err(unknown(&err.to_string())),
        Err(err) => Err(unknown(&err.to_string())),
    }
}

fn service_check(client: &Client, health: &Reply<Health>) -> Check {
    let tls = client.base_url().scheme() == "https";
    let text = if tls { texts::KEY_ACCEPTED_TLS } else { texts::KEY_ACCEPTED };
    let environment = health.environment.as_ref().map_or("", |environment| environment.as_str());
    let values = [("key", &*health.key_name), ("environment", environment)];
    Check::passed(SERVICE.0, SERVICE.1, text.with(&values))
}

fn check_skew(health: &Reply<Health>) -> Check {
    match health.meta().date {
        Some(date) => skew_check(date, clock::now()),
        None => Check::skipped(CLOCK.0, CLOCK.1, texts::NO_DATE),
    }
}

fn skew_check(service: DateTime<Utc>, here: DateTime<Utc>) -> Check {
    let seconds = (here - service).num_seconds();
    let text = match seconds {
        0 => texts::CLOCK_IN_SYNC,
        1.. => texts::CLOCK_FAST,
        ..0 => texts::CLOCK_SLOW,
    };
    let time = format_duration(seconds.unsigned_abs());
    let check = Check::passed(CLOCK.0, CLOCK.1, text.with_message("time", &time));
    if seconds.abs() > MAX_CLOCK_SKEW_SECONDS { check.warning(texts::SET_CLOCK) } else { check }
}

/// Formats a duration in the largest unit of which it has at least two.
fn format_duration(seconds: u64) -> Message {
    let units =
        [(24 * 60 * 60, texts::IN_DAYS), (60 * 60, texts::IN_HOURS), (60, texts::IN_MINUTES)];
    let unit = units.into_iter().find(|(length, _)| seconds >= 2 * length);
    let (length, text) = unit.unwrap_or((1, texts::IN_SECONDS));
    text.with(&[("n", &(seconds / length).to_string())])
}

fn check_limits(health: &Reply<Health>) -> Check {
    match health.meta().rate_limit {
        Some(limit) => {
            let [per_second, remaining] =
                [limit.limit, limit.remaining].map(|number| number.to_string());
            let values = [("limit", &*per_second), ("remaining", &*remaining)];
            Check::passed(LIMITS.0, LIMITS.1, texts::LIMITS_SEEN.with(&values))
        }
        None => Check::skipped(LIMITS.0, LIMITS.1, texts::NO_LIMITS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_in_a_readable_unit() {
        let table = [
            (1, "1 s", "1 s"),
            (119, "119 s", "119 s"),
            (300, "5 minutes", "5 minutos"),
            (7200, "2 hours", "2 horas"),
            (27_938_385, "323 days", "323 días"),
        ];
        for (seconds, en, es) in table {
            let shown = format_duration(seconds);
            assert_eq!((&*shown.en, &*shown.es), (en, es));
        }
    }

    #[test]
    fn a_clock_that_is_far_off_gets_a_warning() {
        let service: DateTime<Utc> = "2026-01-05T08:00:00Z".parse().unwrap();
        let table = [
            (0, CheckState::Passed),
            (30, CheckState::Passed),
            (31, CheckState::Warning),
            (-400, CheckState::Warning),
        ];
        for (seconds, state) in table {
            let check = skew_check(service, service + chrono::TimeDelta::seconds(seconds));
            assert_eq!((check.state, check.hint.is_some()), (state, state == CheckState::Warning));
            assert_eq!(check.detail.en.contains("slow"), seconds < 0, "{seconds}");
        }
    }
}
