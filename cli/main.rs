//! The `parcelo` command: parse, resolve, run, print, exit.
//!
//! A run goes through `args` (the command line as typed), `settings` (the precedence of option, variable and profile),
//! `resolve` (a command whose values are valid), `commands` (running it), `results` (its results) and `output` (printing
//! them). Files do not import one another in cycles, except a parent module and its children.

mod api_error;
mod args;
mod clock;
mod commands;
mod dry_run;
mod encoding;
mod failure;
mod help;
mod import;
mod input;
mod order_check;
mod order_fields;
mod output;
mod pdf_join;
mod profiles;
mod requests;
mod resolve;
mod results;
mod resume;
mod sanitize;
mod settings;
mod texts;
mod toml_file;
mod usage_error;

use std::{
    env,
    ffi::OsString,
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
};

use args::Preferences;
use clap::ValueEnum;
use failure::Exit;
use output::ColorMode;
use results::CommandOutcome;
use settings::Settings;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().collect();
    let preferences = Preferences::from_arguments(&arguments);
    let color = preferences.color.as_deref().and_then(|mode| ColorMode::from_str(mode, false).ok());
    if let Some(color) = color {
        color.apply();
    }
    let settings = Settings::load(preferences, |name| env::var(name).ok());
    let options = settings.output;
    output::install_panic_hook(options.language);
    panic::catch_unwind(AssertUnwindSafe(|| output::finish(&run(&arguments, settings), options)))
        .unwrap_or(Exit::Internal.into())
}

fn run(arguments: &[OsString], settings: Settings) -> CommandOutcome {
    let args = match args::parse(arguments, settings.output.language) {
        Ok(args) => args,
        Err(error) => return usage_error::outcome(&error),
    };
    if args.global.verbose {
        output::log_attempts(settings.output.language);
    }
    if let Some(warning) = settings.exposure_warning() {
        output::warn(&warning, settings.output);
    }
    match resolve::resolve(args, settings) {
        Ok((resolved, address)) => commands::run(resolved)
            .unwrap_or_else(CommandOutcome::from)
            .map_failure(|failure| failure.at_address(&address)),
        Err(failure) => failure.into(),
    }
}
