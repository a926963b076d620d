//! The command line of `parcelo-server mock`.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args as ClapArgs;
use parcelo_service::mock::Clock;
use url::Url;

use super::{database::RedactingParser, shared_args::parse_base_url};

#[derive(Debug, ClapArgs)]
pub(super) struct Mock {
    /// Where to listen; port 0 picks a free port.
    #[arg(
        long,
        env = "PARCELO_MOCK_LISTEN",
        default_value = "127.0.0.1:0",
        value_name = "ADDRESS"
    )]
    pub(super) listen: SocketAddr,
    /// The address in links and on labels; if absent, the one that each request calls.
    #[arg(long, env = "PARCELO_MOCK_BASE_URL", value_name = "URL", value_parser = RedactingParser(parse_base_url))]
    pub(super) base_url: Option<Url>,
    /// A file to write once it listens: address, API key and process id, as JSON.
    #[arg(long, env = "PARCELO_READY_FILE", value_name = "PATH")]
    pub(super) ready_file: Option<PathBuf>,
    /// The clock: system, or frozen=TIME or ticking=TIME, as 2026-01-05T08:00:00Z; by default the
    /// scenario's, or system.
    #[arg(long, value_name = "CLOCK", value_parser = parse_clock)]
    pub(super) clock: Option<Clock>,
    /// A JSON file with the clock, keys, parcels, webhooks and faults to start with.
    #[arg(long, value_name = "FILE")]
    pub(super) scenario: Option<PathBuf>,
    /// Print the JSON Schema of that file, by which editors complete and check it, and exit.
    #[arg(long)]
    pub(super) scenario_schema: bool,
    /// The seed of ids, tracking numbers and keys.
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(super) seed: u64,
    /// Serve production instead of the sandbox: keys are live, and no parcel moves by itself.
    #[arg(long)]
    pub(super) production: bool,
    /// Lift the rate limits; a frozen clock lifts them too. A key's own limit always
    /// holds.
    #[arg(long)]
    pub(super) no_rate_limit: bool,
    /// Run a shell command with `PARCELO_BASE_URL` and `PARCELO_API_KEY` set, and exit with its
    /// code.
    #[arg(long, value_name = "COMMAND", value_parser = parse_command)]
    pub(super) exec: Option<String>,
}

fn parse_clock(text: &str) -> Result<Clock, String> {
    Clock::parse(text).ok_or_else(|| format!("expected {}", Clock::FORMS))
}

/// Refuses an empty command, which a shell would run with success.
fn parse_command(text: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err("expected a command that runs the suite, such as 'pytest'".to_owned());
    }
    Ok(text.to_owned())
}
