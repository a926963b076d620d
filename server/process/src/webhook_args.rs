//! The command line of `parcelo-server webhooks`.

use chrono::{DateTime, Utc};
use clap::{Args as ClapArgs, Subcommand};
use parcelo_domain::webhooks::{WebhookEventKind, WebhookEventKinds};
use ulid::Ulid;

use super::{
    database::DatabaseArg,
    shared_args::{EnvironmentArg, TrimmingParser, parse_name},
};

#[derive(Debug, Subcommand)]
pub(super) enum Webhooks {
    /// Set where events are sent; an existing webhook keeps its secret.
    Set(SetWebhook),
    /// Show the webhook, without its secret.
    Show(WebhookArgs),
    /// Create a new secret; the previous one also signs for 24 hours.
    RotateSecret(WebhookArgs),
    /// Send a test event.
    Test(WebhookArgs),
    /// Resume sending to the webhook.
    Enable(WebhookArgs),
    /// Stop sending to the webhook; events are held for 30 days.
    Disable(WebhookArgs),
    /// Remove the webhook; unsent events are held for 30 days, for the next webhook.
    Remove(WebhookArgs),
    /// Show the latest events and every attempt to deliver them.
    Deliveries(ListDeliveries),
    /// Send events again.
    Replay(ReplayEvents),
}

/// The webhook: an account has one in each environment.
#[derive(Debug, Clone, ClapArgs)]
pub(super) struct WebhookArgs {
    #[command(flatten)]
    pub(super) database: DatabaseArg,
    /// The environment whose events are sent.
    #[arg(long, value_name = "ENVIRONMENT")]
    pub(super) environment: EnvironmentArg,
    /// The account whose events are sent.
    #[arg(long, default_value = "default", value_parser = parse_name)]
    pub(super) account: String,
    /// Print JSON.
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct SetWebhook {
    #[command(flatten)]
    pub(super) webhook: WebhookArgs,
    /// The address that events are sent to: https in production.
    #[arg(long, value_name = "URL")]
    pub(super) url: String,
    /// Further kinds: parcel.created, parcel.voided, manifest.submitted. Changes of a parcel's
    /// status are always sent.
    #[arg(long, value_delimiter = ',', value_name = "KIND", value_parser = TrimmingParser(parse_kind))]
    pub(super) events: Vec<String>,
    /// Allow a private address, and http in production too; the server needs the same flag.
    #[arg(long, env = "PARCELO_WEBHOOKS_ALLOW_PRIVATE")]
    pub(super) webhooks_allow_private: bool,
    /// Allow this machine's own address in the sandbox; the server needs the same flag.
    #[arg(long, env = "PARCELO_SANDBOX_WEBHOOKS_ALLOW_LOOPBACK")]
    pub(super) sandbox_webhooks_allow_loopback: bool,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ListDeliveries {
    #[command(flatten)]
    pub(super) webhook: WebhookArgs,
    /// Number of events to show.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub(super) limit: u16,
}

#[derive(Debug, ClapArgs)]
pub(super) struct ReplayEvents {
    #[command(flatten)]
    pub(super) webhook: WebhookArgs,
    /// This event only, delivered or not: `evt_…`
    #[arg(long, value_name = "ID", value_parser = parse_event, conflicts_with = "since")]
    pub(super) event: Option<Ulid>,
    /// Events that failed, were held or wait for their next attempt since then, such as 2026-01-10T15:05:00Z; all of them if absent.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(super) since: Option<DateTime<Utc>>,
}

fn parse_kind(text: &str) -> Result<String, String> {
    let kinds = WebhookEventKinds::from_codes([text])
        .filter(|_| text != WebhookEventKind::Test.to_wire().code());
    kinds.map(|_| text.to_owned()).ok_or_else(|| {
        "expected parcel.status_changed, parcel.created, parcel.voided or manifest.submitted"
            .to_owned()
    })
}

fn parse_event(text: &str) -> Result<Ulid, String> {
    let id = text.strip_prefix("evt_").and_then(|id| Ulid::from_string(id).ok());
    id.ok_or_else(|| "expected evt_ followed by 26 letters and digits".to_owned())
}

fn parse_time(text: &str) -> Result<DateTime<Utc>, String> {
    let time = DateTime::parse_from_rfc3339(text);
    time.map(|time| time.to_utc())
        .map_err(|_| "expected a time such as 2026-01-10T15:05:00Z".to_owned())
}
