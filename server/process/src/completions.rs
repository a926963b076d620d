//! `parcelo-server completions` and `man`: generated from the definition that the parser and the help use.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

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
    Ok(print::raw(mend_labels(&String::from_utf8_lossy(&script)).as_bytes())?)
}

/// Gives the cases of a script for bash the names that the script looks for. The generator spells the hyphen of the
/// command's name in two ways, so that nothing would be completed after a subcommand.
fn mend_labels(script: &str) -> String {
    script.replace("parcelo__subcmd__server", "parcelo__server")
}

/// Writes each command's manual page to a file.
pub(super) fn write_pages(options: &Man, command: Command) -> Result<(), Failure> {
    fs::create_dir_all(&options.dir)?;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    Ok(write_page(&command, &options.dir)?)
}

/// Writes the page of a command and those of its subcommands, with titles in capitals, as manuals have them.
fn write_page(command: &Command, folder: &Path) -> io::Result<()> {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_page(inner, folder)?;
    }
    let title = command.get_display_name().unwrap_or(command.get_name()).to_uppercase();
    // The default source is the subcommand's own name.
    let source = concat!("parcelo-server ", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(command.clone()).title(title).source(source).generate_to(folder)?;
    Ok(())
}
