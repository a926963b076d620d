//! Legacy usage: which of the account's keys still call the legacy API, by day.

use askama::Template;
use axum::{extract::State, response::Response};

use super::{
    auth::SignedIn,
    frame::{Frame, Section, page},
};
use crate::{
    domain::legacy::DailyUsage,
    http::{Api, HttpRefusal},
    wording::format_date,
};

#[derive(Template)]
#[template(path = "dashboard/legacy.html")]
struct Legacy {
    frame: Frame,
    deprecated: String,
    sunset: Option<String>,
    uses: Vec<DailyUsage>,
}

/// Shows requests by day and key.
pub(super) async fn list(
    State(api): State<Api>,
    member: SignedIn,
) -> Result<Response, HttpRefusal> {
    let schedule = &api.service.settings().legacy;
    let date = |at: crate::clock::Millis| format_date(at.to_utc().date_naive(), member.language());
    page(&Legacy {
        uses: api.service.legacy_usage(member.session.account).await?,
        deprecated: date(schedule.deprecated),
        sunset: schedule.sunset.map(date),
        frame: member.frame(Section::Legacy),
    })
}
