//! The page of carrier exceptions: carriers' reports that contradict the state of their parcel.

use askama::Template;
use axum::{extract::State, response::Response};
use parcelo_domain::carrier::LoggedCarrierException;
use parcelo_service::http::{Api, HttpRefusal};
use parcelo_types::{Environment, Language, ParcelStatus};

use super::{
    auth::SignedInUser,
    frame::{DisplayTime, Frame, Section, render_page, status_tone},
};

/// Maximum number of exceptions shown for each environment.
const MAX_PER_ENVIRONMENT: u32 = 100;

#[derive(Template)]
#[template(path = "dashboard/exceptions.html")]
struct ExceptionsPage {
    frame: Frame,
    exceptions: Vec<ExceptionRow>,
}

struct ExceptionRow {
    environment: Environment,
    number: String,
    carrier: String,
    from: StatusTag,
    to: StatusTag,
    location: String,
    description: Option<String>,
    code: Option<String>,
    at: DisplayTime,
    refused: DisplayTime,
}

struct StatusTag {
    name: String,
    tone: &'static str,
}

/// Shows the latest exceptions of both environments.
pub(super) async fn list(
    State(api): State<Api>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let mut all = Vec::new();
    for environment in Environment::ALL {
        let tenant = user.tenant(environment);
        all.extend(api.service.carrier_exceptions(tenant, MAX_PER_ENVIRONMENT).await?);
    }
    all.sort_by_key(|logged| std::cmp::Reverse(logged.exception.refused_at));
    let language = user.language();
    let exceptions = all.iter().map(|logged| ExceptionRow::new(logged, language)).collect();
    render_page(&ExceptionsPage { frame: user.frame(Section::Exceptions), exceptions })
}

impl ExceptionRow {
    fn new(logged: &LoggedCarrierException, language: Language) -> Self {
        let exception = &logged.exception;
        let scan = &exception.report.scan;
        let status = |state| {
            let status = ParcelStatus::from(state);
            StatusTag { name: status.name(language).to_owned(), tone: status_tone(&status) }
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
            at: DisplayTime::from_millis(scan.at),
            refused: DisplayTime::from_millis(exception.refused_at),
        }
    }
}
