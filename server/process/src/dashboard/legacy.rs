//! Legacy usage: which of the account's keys still call the legacy API, by day.

use askama::Template;
use axum::{extract::State, response::Response};
use parcelo_domain::legacy::DailyUsage;
use parcelo_service::{
    http::{Api, HttpRefusal},
    wording::format_date,
};

use super::{
    auth::SignedInUser,
    frame::{Frame, Section, render_page},
};

#[derive(Template)]
#[template(path = "dashboard/legacy.html")]
struct LegacyPage {
    frame: Frame,
    deprecated: String,
    sunset: Option<String>,
    uses: Vec<DailyUsage>,
}

/// Shows requests by day and key.
pub(super) async fn list(
    State(api): State<Api>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let schedule = &api.service.settings().legacy;
    let date = |at: parcelo_domain::Millis| format_date(at.to_utc().date_naive(), user.language());
    render_page(&LegacyPage {
        uses: api.service.legacy_usage(user.session.account).await?,
        deprecated: date(schedule.deprecated),
        sunset: schedule.sunset.map(date),
        frame: user.frame(Section::Legacy),
    })
}
