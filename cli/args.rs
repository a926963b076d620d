//! The command line as typed. `texts` has its help, and `resolve` validates it.

mod preferences;
mod suggested;
mod tools;

use std::{ffi::OsString, path::PathBuf};

use clap::{
    ArgAction, Args as ClapArgs, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    value_parser,
};
use parcelo::{LabelFormat, Language};

use crate::{
    encoding::Encoding,
    help,
    import::Preset,
    output::{ColorMode, format::Format},
};

pub(crate) use preferences::Preferences;
use suggested::{SuggestedValues, countries, statuses};
pub(crate) use tools::{Api, Completions, Config, Init, Listen, Man, Webhook};

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "parcelo",
    version,
    disable_help_flag = true,
    disable_help_subcommand = true,
    disable_version_flag = true,
    arg_required_else_help = true
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: Global,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(subcommand, arg_required_else_help = true)]
    Order(Order),
    #[command(subcommand, arg_required_else_help = true)]
    Manifest(Manifest),
    Track(Track),
    #[command(subcommand, arg_required_else_help = true)]
    Parcel(Parcel),
    #[command(subcommand, arg_required_else_help = true)]
    Label(Label),
    #[command(subcommand, arg_required_else_help = true)]
    Invoice(Invoice),
    #[command(subcommand, arg_required_else_help = true)]
    Sandbox(Sandbox),
    #[command(subcommand, arg_required_else_help = true)]
    Webhook(Webhook),
    Health,
    Api(Api),
    #[command(subcommand, arg_required_else_help = true)]
    Config(Config),
    Doctor,
    Completions(Completions),
    Man(Man),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Order {
    Create(Create),
    Import(Import),
    Void(Void),
    Validate(Validate),
    Template(Template),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Manifest {
    Submit(Submit),
    Show(ShowManifest),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Parcel {
    List(ListParcels),
    Show(ShowParcel),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Label {
    Get(GetLabel),
    Show(ShowLabel),
    Reprint(Reprint),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Invoice {
    Get(GetInvoice),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Sandbox {
    Reset(Reset),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Create {
    #[arg(value_name = "FILE|-", required_unless_present = "set")]
    pub(crate) file: Option<PathBuf>,
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<String>,
    #[arg(long, value_name = "FILE")]
    pub(crate) label: Option<PathBuf>,
    #[arg(long, short, requires = "label", value_name = "FORMAT", value_parser = label_format())]
    pub(crate) format: Option<LabelFormat>,
}

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Import {
    #[arg(value_name = "FILE|-")]
    pub(crate) rows: PathBuf,
    #[arg(long, value_name = "DIR", required_unless_present = "map_template")]
    pub(crate) labels: Option<PathBuf>,
    #[arg(long, value_name = "FILE")]
    pub(crate) merge: Option<PathBuf>,
    #[arg(
        id = "label_format",
        long = "format",
        short = 'f',
        value_name = "FORMAT",
        default_value = "pdf",
        value_parser = label_format()
    )]
    pub(crate) format: LabelFormat,
    #[arg(long, value_name = "NAME")]
    pub(crate) encoding: Option<Encoding>,
    #[arg(long, value_name = "SHOP")]
    pub(crate) preset: Option<Preset>,
    #[arg(id = "column_map", long = "map", value_name = "FILE")]
    pub(crate) map: Option<PathBuf>,
    #[arg(long, conflicts_with_all = ["column_map", "labels"])]
    pub(crate) map_template: bool,
    #[arg(long, value_name = "FILE")]
    pub(crate) sender: Option<PathBuf>,
    #[arg(long)]
    pub(crate) resume: bool,
    #[arg(long, requires = "resume")]
    pub(crate) key_rotated: bool,
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = value_parser!(u8).range(1..=64))]
    pub(crate) concurrency: u8,
    #[arg(long)]
    pub(crate) all_or_nothing: bool,
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Void {
    #[arg(value_name = "NUMBER|FILE|-", required = true)]
    pub(crate) numbers: Vec<String>,
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) write: Write,
}

/// The options of `order void` and `label reprint`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Write {
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Validate {
    #[arg(value_name = "FILE|-", required_unless_present = "set")]
    pub(crate) files: Vec<PathBuf>,
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Template {
    #[arg(long, value_name = "CODE", default_value = "EC", value_parser = SuggestedValues(countries))]
    pub(crate) country: String,
    #[arg(long, conflicts_with = "copied")]
    pub(crate) csv: bool,
    #[arg(id = "copied", long = "from", value_name = "NUMBER", conflicts_with = "country")]
    pub(crate) from: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Submit {
    #[arg(value_name = "NUMBER|FILE|-", required = true)]
    pub(crate) numbers: Vec<String>,
    #[arg(long, value_name = "AWB")]
    pub(crate) awb: String,
    #[arg(long, value_name = "FLIGHT")]
    pub(crate) flight: Option<String>,
    #[arg(long, value_name = "DATE")]
    pub(crate) departure: Option<String>,
    #[arg(long, value_name = "AIRPORT")]
    pub(crate) from: Option<String>,
    #[arg(long, value_name = "AIRPORT")]
    pub(crate) to: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub(crate) reference: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowManifest {
    #[arg(value_name = "MANIFEST")]
    pub(crate) manifest_id: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Track {
    #[arg(value_name = "NUMBER|FILE|-", required = true)]
    pub(crate) numbers: Vec<String>,
    #[arg(long)]
    pub(crate) history: bool,
    #[arg(long)]
    pub(crate) watch: bool,
    #[arg(long, value_name = "SECONDS", requires = "watch", value_parser = value_parser!(u32).range(1..=3600))]
    pub(crate) every: Option<u32>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListParcels {
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    #[arg(id = "listed_reference", long = "reference", value_name = "REFERENCE")]
    pub(crate) reference: Option<String>,
    #[arg(long, value_name = "STATUS", value_parser = SuggestedValues(statuses))]
    pub(crate) status: Option<String>,
    #[arg(id = "destination", long = "country", value_name = "CODE", value_parser = SuggestedValues(countries))]
    pub(crate) country: Option<String>,
    #[arg(id = "created_from", long = "from", value_name = "DATE")]
    pub(crate) from: Option<String>,
    #[arg(id = "created_to", long = "to", value_name = "DATE")]
    pub(crate) to: Option<String>,
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100))]
    pub(crate) limit: Option<u32>,
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub(crate) page: Option<u32>,
    #[arg(long, conflicts_with = "page")]
    pub(crate) all: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowParcel {
    #[arg(value_name = "NUMBER|REFERENCE")]
    pub(crate) wanted: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GetLabel {
    #[arg(value_name = "NUMBER|FILE|-", required_unless_present = "manifest")]
    pub(crate) numbers: Vec<String>,
    #[arg(long, value_name = "MANIFEST", conflicts_with = "numbers")]
    pub(crate) manifest: Option<String>,
    #[arg(id = "label_format", long = "format", short = 'f', value_name = "FORMAT", value_parser = label_format())]
    pub(crate) format: Option<LabelFormat>,
    #[arg(long, short, value_name = "DIR|-", default_value = ".")]
    pub(crate) dir: PathBuf,
    #[arg(long, value_name = "FILE|-", conflicts_with = "dir")]
    pub(crate) merge: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GetInvoice {
    #[arg(value_name = "NUMBER|FILE|-", required = true)]
    pub(crate) numbers: Vec<String>,
    #[arg(long, short, value_name = "DIR|-", default_value = ".")]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowLabel {
    #[arg(value_name = "NUMBER")]
    pub(crate) number: String,
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Reprint {
    #[arg(value_name = "NUMBER")]
    pub(crate) number: String,
    #[command(flatten)]
    pub(crate) write: Write,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Reset {
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Options of every command. `output`, `lang`, `profile` and `color` take effect through `Preferences`, before parsing;
/// here they are only validated.
#[derive(Debug, ClapArgs)]
pub(crate) struct Global {
    #[arg(long, short, global = true, value_name = "FORMAT")]
    pub(crate) output: Option<Format>,
    #[arg(long, global = true, value_name = "LANGUAGE")]
    pub(crate) lang: Option<Lang>,
    #[arg(long, global = true, env = "PARCELO_BASE_URL", value_name = "URL")]
    pub(crate) base_url: Option<String>,
    #[arg(long, global = true)]
    pub(crate) api_key_stdin: bool,
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    #[arg(long, global = true, value_name = "WHEN")]
    color: Option<ColorMode>,
    #[arg(long, global = true)]
    pub(crate) dry_run: bool,
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
    #[arg(long, short, global = true, action = ArgAction::Help)]
    help: Option<bool>,
    #[arg(long, short = 'V', action = ArgAction::Version)]
    version: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    En,
    Es,
}

impl From<Lang> for Language {
    fn from(language: Lang) -> Self {
        match language {
            Lang::En => Self::En,
            Lang::Es => Self::Es,
        }
    }
}

/// Returns the parser of a label format in lower or upper case.
fn label_format() -> impl TypedValueParser<Value = LabelFormat> {
    let names = [("pdf", "PDF"), ("zpl", "ZPL"), ("png", "PNG")];
    let values = names.map(|(name, alias)| PossibleValue::new(name).alias(alias));
    PossibleValuesParser::new(values).try_map(|name| LabelFormat::parse(&name))
}

/// Parses the command line. The error may also be the requested help.
pub(crate) fn parse(arguments: &[OsString], language: Language) -> Result<Args, clap::Error> {
    help::localize(Args::command(), language)
        .try_get_matches_from(words_to_options(arguments))
        .and_then(|matches| Args::from_arg_matches(&matches))
}

/// Turns `help order create` and `order help` into `--help`, and `version` into `--version`, because many programs
/// accept these words.
fn words_to_options(arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.to_vec();
    let word = |at: usize| arguments.get(at).and_then(|word| word.to_str());
    let is_group = |name: &str| {
        Args::command().find_subcommand(name).is_some_and(clap::Command::has_subcommands)
    };
    match (word(1), word(2)) {
        (Some("version"), None) => arguments.splice(1.., ["--version".into()]).for_each(drop),
        (Some("help"), _) => {
            arguments.remove(1);
            arguments.push("--help".into());
        }
        (Some(group), Some("help")) if is_group(group) => {
            arguments.splice(2..3, ["--help".into()]).for_each(drop);
        }
        _ => {}
    }
    arguments
}
