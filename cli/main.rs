//! The `parcelo` command: parse, resolve, run, tell, exit.

mod args;
mod create;
mod failure;
mod help;
mod input;
mod label;
mod output;
mod refusal;
mod resolve;
mod results;
mod run;
mod sample;
mod service;
mod texts;
mod track;
mod validate;
mod voice;

use std::{env, process::ExitCode};

use results::Done;

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args_os().collect();
    let voice = voice::of(&arguments, |name| env::var(name).ok());
    output::answer_for_bugs(voice);
    let done = args::parse(&arguments, voice).and_then(|args| {
        output::tell_attempts(args.global.verbose, voice);
        resolve::resolve(args, voice).and_then(run::run).map_err(Done::from)
    });
    output::finish(&done.unwrap_or_else(|stopped| stopped), voice)
}
