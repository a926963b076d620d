//! The overview: what has become of the latest parcels, in both environments.

use askama::Template;
use axum::{extract::State, response::Response};
use parcelo::{Environment, ParcelStatus};

use super::{
    auth::SignedIn,
    chart::Chart,
    frame::{Frame, Section, page, tone},
    webhooks,
};
use crate::{
    domain::{
        activity::{ParcelCount, begin_of, day_of},
        webhooks::DisabledBy,
    },
    http::{Api, Refused},
};

/// Days in the chart, today included.
const DAYS: i64 = 30;

#[derive(Template)]
#[template(path = "dashboard/overview.html")]
struct Overview {
    frame: Frame,
    disabled: Vec<DisabledWebhook>,
    environments: Vec<Activity>,
    days: i64,
}

/// A webhook that the server turned off, perhaps unnoticed.
struct DisabledWebhook {
    environment: Environment,
    why: &'static str,
    held: i64,
    page: String,
}

/// What has become of an environment's parcels.
struct Activity {
    environment: Environment,
    total: u64,
    statuses: Vec<Status>,
    chart: Chart,
}

struct Status {
    code: String,
    name: String,
    tone: &'static str,
    parcels: u64,
    from: String,
}

/// Both environments, the last thirty days.
pub(super) async fn show(State(api): State<Api>, member: SignedIn) -> Result<Response, Refused> {
    let last = day_of(api.service.now());
    let first = last - DAYS + 1;
    let mut environments = Vec::new();
    for environment in Environment::ALL {
        let counted = api.service.activity_of(member.tenant(environment), first).await?;
        environments.push(Activity {
            environment,
            total: counted.iter().map(|one| one.parcels).sum(),
            statuses: statuses(&counted, &member, first),
            chart: Chart::new(&counted, first..=last, member.language()),
        });
    }
    let frame = member.frame(Section::Overview);
    page(&Overview { frame, disabled: disabled(&api, &member).await?, environments, days: DAYS })
}

/// The webhooks that the server turned off; those turned off by hand are known.
async fn disabled(api: &Api, member: &SignedIn) -> Result<Vec<DisabledWebhook>, Refused> {
    let mut all = Vec::new();
    for environment in Environment::ALL {
        match api.service.store().switched_off(member.tenant(environment)).await? {
            None | Some((DisabledBy::Operator, _)) => {}
            Some((by, held)) => all.push(DisabledWebhook {
                environment,
                why: webhooks::why(by, environment, member.language()),
                held,
                page: webhooks::address(environment),
            }),
        }
    }
    Ok(all)
}

/// The statuses that any parcel has, in the order of a journey.
fn statuses(counted: &[ParcelCount], member: &SignedIn, first: i64) -> Vec<Status> {
    let from = begin_of(first).to_utc().date_naive().to_string();
    let with_parcels = ParcelStatus::KNOWN.iter().filter_map(|status| {
        let of_it = counted.iter().filter(|one| ParcelStatus::from(one.state) == *status);
        let parcels: u64 = of_it.map(|one| one.parcels).sum();
        (parcels > 0).then(|| Status {
            code: status.code().to_owned(),
            name: status.name(member.language()).to_owned(),
            tone: tone(status),
            parcels,
            from: from.clone(),
        })
    });
    with_parcels.collect()
}
