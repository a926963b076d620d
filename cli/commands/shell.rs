//! `completions` and `man`: generated from the definition that the parser and the help use.

use std::{fs, io, path::Path};

use clap::{Command, CommandFactory};
use clap_complete::{Shell, generate};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};
use parcelo::Language;

use super::label;
use crate::{
    args::Args,
    failure::Failure,
    help,
    results::{CommandOutcome, Results, WrittenFile, WrittenFiles},
    sanitize::without_keys,
    texts::{self, Text, help::EXIT_CODES},
};

/// Returns a completion script.
pub(super) fn completions(shell: Shell, language: Language) -> CommandOutcome {
    let mut script = Vec::new();
    generate(shell, &mut command(language), NAME, &mut script);
    let script = with_profiles(String::from_utf8_lossy(&script).into_owned(), shell);
    CommandOutcome::with(Results::Raw(script.into_bytes()))
}

/// A shell command that prints the names of the profiles, which need no quotes.
const LIST_PROFILES: &str = "parcelo config list -o csv 2>/dev/null | tail -n +2 | cut -d, -f1";

/// Makes a completion script list the profiles when it runs: the generator knows only fixed values.
fn with_profiles(script: String, shell: Shell) -> String {
    match shell {
        Shell::Bash => {
            let files = "--profile)\n                    COMPREPLY=($(compgen -f \"${cur}\"))";
            let names = format!("COMPREPLY=($(compgen -W \"$({LIST_PROFILES})\" -- \"${{cur}}\"))");
            let chosen = "__config__subcmd__use)\n            opts=\"";
            script
                .replace(files, &format!("--profile)\n                    {names}"))
                .replace(chosen, &format!("{chosen}$({LIST_PROFILES}) "))
        }
        Shell::Zsh => {
            let is_profile = |line: &str| {
                let starts = ["'--profile=[", "':other_profile "];
                starts.iter().any(|start| line.trim_start().starts_with(start))
            };
            let names = format!(":{{compadd $({LIST_PROFILES})}}'");
            let line = |line: &str| {
                if is_profile(line) { line.replace(":_default'", &names) } else { line.to_owned() }
            };
            script.lines().map(|text| line(text) + "\n").collect()
        }
        Shell::Fish => {
            let using =
                "__fish_parcelo_using_subcommand config; and __fish_seen_subcommand_from use";
            script
                + &format!("complete -c parcelo -l profile -x -a \"({LIST_PROFILES})\"\n")
                + &format!("complete -c parcelo -n \"{using}\" -f -a \"({LIST_PROFILES})\"\n")
        }
        _ => script,
    }
}

const NAME: &str = "parcelo";

fn command(language: Language) -> Command {
    help::localize(Args::command(), language)
}

/// Prints the manual page of one command.
pub(super) fn print_page(path: &[String], language: Language) -> Result<CommandOutcome, Failure> {
    let name = [&[NAME.to_owned()], path].concat().join("-");
    let found = commands(language).into_iter().find(|(known, _)| *known == name);
    let (name, command) = found.ok_or_else(|| {
        let value = without_keys(&path.join(" "));
        Failure::usage(texts::UNKNOWN_COMMAND.with(&[("value", &value)]), texts::SEE_HELP)
    })?;
    Ok(CommandOutcome::with(Results::Raw(render_page(&name, command, language)?)))
}

/// Writes each command's manual page to a file.
pub(super) fn write_pages(folder: &Path, language: Language) -> Result<CommandOutcome, Failure> {
    let unwritable =
        |err: std::io::Error| Failure::for_unwritable_file(&folder.to_string_lossy(), &err);
    label::make_directory(folder)?;
    let mut files = Vec::new();
    for (name, command) in commands(language) {
        let file = folder.join(format!("{name}.1"));
        fs::write(&file, render_page(&name, command, language)?).map_err(unwritable)?;
        files.push(WrittenFile { file: file.to_string_lossy().into_owned() });
    }
    Ok(CommandOutcome::report(WrittenFiles(files)))
}

/// Returns the command and all its subcommands, each with the name of its page.
fn commands(language: Language) -> Vec<(String, Command)> {
    let mut whole = command(language);
    // Building the command adds the global options to each subcommand.
    whole.build();
    let mut all = Vec::new();
    flatten(&whole, NAME, &mut all);
    all
}

fn flatten(command: &Command, name: &str, all: &mut Vec<(String, Command)>) {
    all.push((name.to_owned(), command.clone()));
    for inner in command.get_subcommands() {
        flatten(inner, &format!("{name}-{}", inner.get_name()), all);
    }
}

fn render_page(name: &str, command: Command, language: Language) -> Result<Vec<u8>, Failure> {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let has_commands = command.has_subcommands();
    let source = concat!("parcelo ", env!("CARGO_PKG_VERSION"));
    let page = Man::new(command).title(name.to_uppercase()).source(source);
    let mut text = Vec::new();
    page.render_title(&mut text)
        .and_then(|()| {
            write_section(texts::MAN_NAME, language, &format!("{name} - {about}"), &mut text)
        })
        .and_then(|()| page.render_synopsis_section(&mut text))
        .and_then(|()| page.render_options_section(&mut text))
        .and_then(
            |()| if has_commands { page.render_subcommands_section(&mut text) } else { Ok(()) },
        )
        .and_then(|()| {
            let lines = help::examples(&name.replace('-', " "), language);
            write_section(texts::EXAMPLES, language, &lines, &mut text)
        })
        .and_then(|()| write_exit_codes(language, &mut text))
        .and_then(|()| {
            write_section(
                texts::MAN_ENVIRONMENT,
                language,
                texts::MAN_VARIABLES.pick(language),
                &mut text,
            )
        })
        .and_then(|()| {
            write_section(texts::MAN_FILES, language, texts::MAN_CONFIG.pick(language), &mut text)
        })
        .map_err(|err| Failure::for_lost_output(&err))?;
    Ok(capitalize_headings(&String::from_utf8_lossy(&text), language).into_bytes())
}

/// Capitalizes the headings, as is usual in manuals. One of them exists only in English in the generator.
fn capitalize_headings(page: &str, language: Language) -> String {
    let line = |line: &str| match line.strip_prefix(".SH ") {
        Some("SYNOPSIS") => format!(".SH {}\n", texts::MAN_SYNOPSIS.pick(language)),
        Some(heading) => format!(".SH {}\n", heading.to_uppercase()),
        None => format!("{line}\n"),
    };
    page.lines().map(line).collect()
}

fn write_section(
    heading: Text,
    language: Language,
    content: &str,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [heading.pick(language)]);
    for line in content.lines() {
        roff.text([roman(line)]);
        roff.control("br", []);
    }
    roff.to_writer(out)
}

/// Writes the section about exit codes, with the help's text.
fn write_exit_codes(language: Language, out: &mut Vec<u8>) -> io::Result<()> {
    let mut roff = Roff::new();
    roff.control("SH", [texts::MAN_EXITS.pick(language)]);
    for line in EXIT_CODES.pick(language).lines().skip(1) {
        let (code, meaning) = line.trim().split_once("  ").unwrap_or((line, ""));
        roff.control("TP", []);
        roff.text([bold(code)]);
        roff.text([roman(meaning.trim())]);
    }
    roff.to_writer(out)
}
