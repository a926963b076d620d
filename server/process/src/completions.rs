//! `parcelo-server completions` and `man`: generated from the definition that the parser and the help use.

use std::{fs, path::PathBuf};

use clap::{Args as ClapArgs, Command};
use clap_complete::{Shell, generate};

use super::{Failure, print};

#[derive(Debug, ClapArgs)]
pub(super) struct Completions {
    /// The shell.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, ClapArgs)]
pub(super) struct Man {
    /// The folder for the pages.
    #[arg(long, short, value_name = "DIR")]
    dir: PathBuf,
}

pub(super) fn print_script(options: &Completions, command: &mut Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    generate(options.shell, command, "parcelo-server", &mut script);
    Ok(print::raw(&script)?)
}

/// Writes each command's manual page to a file.
pub(super) fn write_pages(options: &Man, command: Command) -> Result<(), Failure> {
    fs::create_dir_all(&options.dir)?;
    Ok(clap_mangen::generate_to(command, &options.dir)?)
}
