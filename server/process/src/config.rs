//! `parcelo-server config`: what `serve` would be started with.

use clap::{Args as ClapArgs, Subcommand};

use super::{Failure, mails, print, serve_args::Serve, settings::Setting};

#[derive(Debug, Subcommand)]
pub(super) enum Config {
    /// Show each setting of `serve`, its value and where it was set, without passwords. Settings that `serve` would
    /// refuse are an error.
    Show(Box<ShowConfig>),
}

#[derive(Debug, ClapArgs)]
pub(super) struct ShowConfig {
    #[command(flatten)]
    serve: Serve,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(command: &Config, settings: &[Setting]) -> Result<(), Failure> {
    let Config::Show(options) = command;
    if options.json {
        print::json(&settings)?;
    } else {
        print::settings(settings)?;
    }
    // The flags for e-mails depend on each other; all others were checked when they were parsed.
    mails::configure(&options.serve).map(drop)
}
