//! Carrier exceptions: reports of carriers that contradict the parcel's state.

use askama::Template;
use axum::{extract::State, response::Response};
use parcelo::{Environment, Language, ParcelStatus};

use super::{
    auth::SignedIn,
    frame::{Frame, Moment, Section, page, tone},
};
use crate::{
    domain::carrier::LoggedException,
    http::{Api, HttpRefusal},
};

/// Maximum number of exceptions shown for each environment.
const MAX_PER_ENVIRONMENT: u32 = 100;

#[derive(Template)]
#[template(path = "dashboard/exceptions.html")]
struct Exceptions {
    frame: Frame,
    exceptions: Vec<Exception>,
}

struct Exception {
    environment: Environment,
    number: String,
    carrier: String,
    from: Status,
    to: Status,
    location: String,
    description: Option<String>,
    code: Option<String>,
    at: Moment,
    refused: Moment,
}

struct Status {
    name: String,
    tone: &'static str,
}

/// Shows the latest exceptions of both environments.
pub(super) async fn list(
    State(api): State<Api>,
    member: SignedIn,
) -> Result<Response, HttpRefusal> {
    let mut all = Vec::new();
    for environment in Environment::ALL {
        let tenant = member.tenant(environment);
        all.extend(api.service.carrier_exceptions(tenant, MAX_PER_ENVIRONMENT).await?);
    }
    all.sort_by_key(|logged| std::cmp::Reverse(logged.exception.refused_at));
    let language = member.language();
    let exceptions = all.iter().map(|logged| Exception::new(logged, language)).collect();
    page(&Exceptions { frame: member.frame(Section::Exceptions), exceptions })
}

impl Exception {
    fn new(logged: &LoggedException, language: Language) -> Self {
        let exception = &logged.exception;
        let scan = &exception.report.scan;
        let status = |state| {
            let status = ParcelStatus::from(state);
            Status { name: status.name(language).to_owned(), tone: tone(&status) }
        };
        Self {
            environment: exception.tenant.environment,
            number: logged.tracking_number.to_string(),
            carrier: logged.carrier_name.clone(),
            from: status(exception.from),
            to: status(scan.state),
            location: scan.location.clone(),
            description: scan.description.clone(),
            code: exception.report.code.clone(),
            at: Moment::from_millis(scan.at),
            refused: Moment::from_millis(exception.refused_at),
        }
    }
}
