//! The `parcelo` command: parse, resolve, run, tell, exit.

mod api_error;
mod args;
mod clock;
mod commands;
mod dry_run;
mod failure;
mod findings;
mod help;
mod import;
mod input;
mod order_fields;
mod output;
mod picture;
mod profiles;
mod requests;
mod resolve;
mod results;
mod resume;
mod settings;
mod texts;
mod usage_error;
mod voice;

use std::{
    env,
    ffi::OsString,
    panic::{self, AssertUnwindSafe},
    process::ExitCode,
};

use failure::Exit;
use results::CommandOutcome;
use settings::Settings;
use voice::Voice;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().collect();
    let variable = |name: &str| env::var(name).ok();
    let settings = Settings::of(&arguments, variable);
    let voice = voice::of(&arguments, variable, &settings.preferences());
    output::answer_for_bugs(voice);
    panic::catch_unwind(AssertUnwindSafe(|| {
        output::finish(&end_of(&arguments, voice, settings), voice)
    }))
    .unwrap_or(Exit::Bug.into())
}

fn end_of(arguments: &[OsString], voice: Voice, settings: Settings) -> CommandOutcome {
    let end = args::parse(arguments, voice).and_then(|args| {
        output::tell_attempts(args.global.verbose, voice);
        output::warn_of_exposure(&settings, voice);
        resolve::resolve(args, voice, settings)
            .and_then(commands::run)
            .map_err(CommandOutcome::from)
    });
    end.unwrap_or_else(|stopped| stopped)
}
