//! The `parcelo` command: parse, resolve, run, tell, exit.

mod args;
mod calls;
mod commands;
mod failure;
mod help;
mod input;
mod output;
mod refusal;
mod requests;
mod resolve;
mod results;
mod resume;
mod texts;
mod voice;

use std::{env, ffi::OsString, panic, process::ExitCode};

use failure::Exit;
use results::Done;
use voice::Voice;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().collect();
    let voice = voice::of(&arguments, |name| env::var(name).ok());
    output::answer_for_bugs(voice);
    panic::catch_unwind(|| output::finish(&end_of(&arguments, voice), voice))
        .unwrap_or(Exit::Bug.into())
}

fn end_of(arguments: &[OsString], voice: Voice) -> Done {
    let end = args::parse(arguments, voice).and_then(|args| {
        output::tell_attempts(args.global.verbose, voice);
        resolve::resolve(args, voice).and_then(commands::run).map_err(Done::from)
    });
    end.unwrap_or_else(|stopped| stopped)
}
