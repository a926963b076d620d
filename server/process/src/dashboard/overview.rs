//! The overview: the state of the latest parcels in both environments.

use askama::Template;
use axum::{extract::State, response::Response};
use parcelo_domain::{
    Millis,
    activity::{self, ParcelCount, day_start, epoch_day},
    webhooks::DisabledBy,
};
use parcelo_service::http::{Api, HttpRefusal};
use parcelo_store::MailBacklog;
use parcelo_types::{Environment, Language, ParcelStatus};

use super::{
    auth::SignedInUser,
    chart::Chart,
    frame::{DisplayTime, Frame, Section, render_page, status_tone},
    parcel,
    search::ParcelListFilter,
    webhooks,
};

/// Number of days in the chart, today included.
const DAYS: i64 = 30;
/// Number of days for which a refused carrier event is mentioned.
const EXCEPTION_DAYS: i64 = 7;
/// Time in milliseconds for which deliveries may fail without a notice, since a receiver may be restarting.
const MAX_QUIET_FAILURE_MILLIS: i64 = Millis::MINUTE;
/// Number of days for which failed e-mails are mentioned.
const MAIL_DAYS: i64 = 7;
/// Maximum age in days of parcels that are reported as late. For older ones, a report would come too late.
const LATE_DAYS: i64 = 90;
/// Maximum number of refused events that are counted.
const MAX_EXCEPTIONS: u32 = 100;

#[derive(Template)]
#[template(path = "dashboard/overview.html")]
struct OverviewPage {
    frame: Frame,
    disabled_webhooks: Vec<DisabledWebhook>,
    alerts: Vec<Alert>,
    environments: Vec<EnvironmentActivity>,
    days: i64,
}

/// A webhook that the server turned off, possibly unnoticed.
struct DisabledWebhook {
    environment: Environment,
    reason: &'static str,
    held_events: i64,
    page: String,
}

/// A notice of something that needs attention, although the service continues.
struct Alert {
    environment: Environment,
    text: String,
    page: String,
    link: &'static str,
}

/// The parcels of an environment by their state.
struct EnvironmentActivity {
    environment: Environment,
    total: u64,
    statuses: Vec<StatusCount>,
    chart: Chart,
}

struct StatusCount {
    code: String,
    name: String,
    tone: &'static str,
    parcels: u64,
    from: String,
}

/// Shows the last thirty days of both environments.
pub(super) async fn show(
    State(api): State<Api>,
    user: SignedInUser,
) -> Result<Response, HttpRefusal> {
    let last = epoch_day(api.service.now());
    let first = last - DAYS + 1;
    let mut environments = Vec::new();
    for environment in Environment::ALL {
        let counts = api.service.parcel_counts(user.tenant(environment), first).await?;
        environments.push(EnvironmentActivity {
            environment,
            total: counts.iter().map(|count| count.parcels).sum(),
            statuses: statuses(&counts, &user, first),
            chart: Chart::new(&counts, first..=last, user.language()),
        });
    }
    let frame = user.frame(Section::Overview);
    let disabled_webhooks = find_disabled_webhooks(&api, &user).await?;
    let mut alerts = webhook_alerts(&api, &user).await?;
    alerts.extend(exception_alerts(&api, &user).await?);
    alerts.extend(late_parcel_alerts(&api, &user).await?);
    alerts.extend(mail_alerts(&api, &user).await?);
    render_page(&OverviewPage { frame, disabled_webhooks, alerts, environments, days: DAYS })
}

/// Returns the webhooks that the server turned off by itself.
async fn find_disabled_webhooks(
    api: &Api,
    user: &SignedInUser,
) -> Result<Vec<DisabledWebhook>, HttpRefusal> {
    let mut all = Vec::new();
    for environment in Environment::ALL {
        match api.service.store().disabled_endpoint(user.tenant(environment)).await? {
            None | Some((DisabledBy::Operator, _)) => {}
            Some((by, held_events)) => all.push(DisabledWebhook {
                environment,
                reason: webhooks::disabled_reason(by, environment, user.language()),
                held_events,
                page: webhooks::address(environment),
            }),
        }
    }
    Ok(all)
}

/// Returns alerts about active webhooks: deliveries that fail, and events that failed for good.
async fn webhook_alerts(api: &Api, user: &SignedInUser) -> Result<Vec<Alert>, HttpRefusal> {
    let (store, language) = (api.service.store(), user.language());
    let latest = api.service.now().plus(-MAX_QUIET_FAILURE_MILLIS);
    let mut all = Vec::new();
    for environment in Environment::ALL {
        let tenant = user.tenant(environment);
        if store.disabled_endpoint(tenant).await?.is_some() {
            continue;
        }
        let alert = |text| Alert {
            environment,
            text,
            page: webhooks::address(environment),
            link: language.pick("View the webhook", "Ver el webhook"),
        };
        if let Some(since) = store.failing_since(tenant).await?.filter(|since| *since < latest) {
            all.push(alert(failing_text(since, language)));
        }
        if api.service.has_undelivered_events(tenant).await? {
            let text = language.pick(
                "Some events did not reach your webhook. They can be sent again for 30 days.",
                "Algunos eventos no llegaron a su webhook. Se pueden reenviar durante 30 días.",
            );
            all.push(alert(text.to_owned()));
        }
    }
    Ok(all)
}

/// Returns alerts about carrier events that were refused lately.
async fn exception_alerts(api: &Api, user: &SignedInUser) -> Result<Vec<Alert>, HttpRefusal> {
    let (language, mut all) = (user.language(), Vec::new());
    let since = api.service.now().plus(-EXCEPTION_DAYS * Millis::DAY);
    for environment in Environment::ALL {
        let tenant = user.tenant(environment);
        let logged = api.service.carrier_exceptions(tenant, MAX_EXCEPTIONS).await?;
        let recent = logged.iter().filter(|logged| since <= logged.exception.refused_at).count();
        if recent > 0 {
            all.push(Alert {
                environment,
                text: exceptions_text(recent, language),
                page: Section::Exceptions.path().to_owned(),
                link: language.pick("View them", "Verlos"),
            });
        }
    }
    Ok(all)
}

/// Returns alerts about production parcels past their promised day, one for each status. The
/// sandbox is left out, because its parcels do not travel.
async fn late_parcel_alerts(api: &Api, user: &SignedInUser) -> Result<Vec<Alert>, HttpRefusal> {
    let (environment, language) = (Environment::Production, user.language());
    let now = api.service.now();
    let first = epoch_day(now) - LATE_DAYS;
    let counts = api.service.parcel_counts(user.tenant(environment), first).await?;
    let alert = |(state, parcels)| {
        let status = ParcelStatus::from(state);
        let text = language
            .pick("Parcels past the promised day", "Paquetes con la fecha prometida vencida");
        let search = ParcelListFilter {
            environment,
            from: Some(day_start(first).to_utc().date_naive()),
            to: None,
            page: 1,
            status: Some(status.clone()),
        };
        Alert {
            environment,
            text: format!("{text} ({}): {parcels}", status.name(language)),
            page: search.address(),
            link: language.pick("View them", "Verlos"),
        }
    };
    Ok(activity::count_late_parcels(&counts, now).into_iter().map(alert).collect())
}

/// Returns alerts about e-mails that failed lately or wait to be tried again, with a link to the latest parcel that has
/// one.
async fn mail_alerts(api: &Api, user: &SignedInUser) -> Result<Vec<Alert>, HttpRefusal> {
    let (store, language) = (api.service.store(), user.language());
    let (since, mut all) = (api.service.now().plus(-MAIL_DAYS * Millis::DAY), Vec::new());
    for environment in Environment::ALL {
        let tenant = user.tenant(environment);
        let failed = match store.failed_mails(tenant, since).await? {
            (mails, Some(latest)) => Some((failed_mails_text(mails, language), latest)),
            (_, None) => None,
        };
        // While e-mails are off, what is left waits for nothing.
        let held =
            if api.service.is_mail_enabled() { store.held_mails(tenant).await? } else { None };
        let held = held.map(|held| (held_mails_text(held, language), held.latest));
        for (text, latest) in failed.into_iter().chain(held) {
            let Some((parcel, _)) = store.parcel_in_row(latest).await? else { continue };
            all.push(Alert {
                environment,
                text,
                page: parcel::address(environment, parcel.tracking_number.as_str()),
                link: language.pick("View the latest parcel", "Ver el paquete más reciente"),
            });
        }
    }
    Ok(all)
}

/// Returns the alert about this many e-mails that failed for good.
fn failed_mails_text(mails: u64, language: Language) -> String {
    let text = language.pick(
        "E-mails of the last 7 days that could not be delivered:",
        "Correos de los últimos 7 días que no se pudieron entregar:",
    );
    format!("{text} {mails}")
}

/// Returns the alert about e-mails that the mail server has not taken yet.
fn held_mails_text(held: MailBacklog, language: Language) -> String {
    let (mails, since) = (held.mails, DisplayTime::from_millis(held.since).text);
    language.pick(
        format!("E-mails that the mail server has not taken yet: {mails}, the oldest since {since} UTC. They are tried again."),
        format!("Correos que el servidor de correo aún no acepta: {mails}, el más antiguo desde {since} UTC. Se vuelven a intentar."),
    )
}

/// Returns the alert about deliveries that have been failing since a time. The receiver may well answer, with an error,
/// or accept other events.
fn failing_text(since: Millis, language: Language) -> String {
    let since = DisplayTime::from_millis(since).text;
    language.pick(
        format!(
            "Deliveries to your webhook have been failing since {since} UTC. They are tried again."
        ),
        format!("Las entregas a su webhook fallan desde {since} UTC. Se vuelven a intentar."),
    )
}

/// Returns the alert about this many refused carrier events.
fn exceptions_text(count: usize, language: Language) -> String {
    let more = if count >= MAX_EXCEPTIONS as usize { "+" } else { "" };
    language.pick(
        format!("Carrier events refused in the last 7 days: {count}{more}"),
        format!("Eventos del transportista rechazados en los últimos 7 días: {count}{more}"),
    )
}

/// Returns the statuses that parcels have, in the order of a journey.
fn statuses(counts: &[ParcelCount], user: &SignedInUser, first: i64) -> Vec<StatusCount> {
    let from = day_start(first).to_utc().date_naive().to_string();
    let with_parcels = ParcelStatus::KNOWN.iter().filter_map(|status| {
        let with_status = counts.iter().filter(|count| ParcelStatus::from(count.state) == *status);
        let parcels: u64 = with_status.map(|count| count.parcels).sum();
        (parcels > 0).then(|| StatusCount {
            code: status.code().to_owned(),
            name: status.name(user.language()).to_owned(),
            tone: status_tone(status),
            parcels,
            from: from.clone(),
        })
    });
    with_parcels.collect()
}
