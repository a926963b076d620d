//! Resolves arguments and settings to a command whose values are all valid.

mod client;
mod dates;
mod import;
mod tools;

use std::{
    env, io,
    path::{Path, PathBuf},
    time::Duration,
};

use chrono::{Datelike, NaiveDate, NaiveTime};
use parcelo::{CountryCode, LabelFormat, ParcelStatus, TrackingNumber};
use parcelo_types::internal::meant_country;

use crate::{
    args::{
        Args, Command, Create, GetInvoice, Global, Invoice, Label, ListParcels, Manifest, Order,
        Parcel, Reset, Sandbox, Track, Void, Webhook,
    },
    commands::{
        LabelFile, LabelTarget, LabelView, MAX_PAGE_SIZE, MergedFile, PageSelection, ParcelFilter,
        ResolvedCommand, WantedLabels, WatchOptions,
    },
    dry_run::DryRun,
    failure::Failure,
    input::{self, Source},
    order_fields::{FieldAssignment, OrderInput},
    output::{self, format::Format},
    requests,
    sanitize::without_keys,
    settings::{self, Settings},
    texts::{self, Message},
};

/// Interval in seconds between two rounds of `track --watch`.
const DEFAULT_WATCH_SECONDS: u32 = 15;

/// Returns the resolved command, and the service's address for messages, which is empty for a command without one.
pub(crate) fn resolve(
    args: Args,
    settings: Settings,
) -> Result<(ResolvedCommand, String), Failure> {
    settings::check_variables(|name| env::var(name).ok())?;
    let dry_run = args.global.dry_run.then(DryRun::default);
    let resolver = Resolver { global: args.global, settings, dry_run: dry_run.clone() };
    let address = resolver.address().unwrap_or_default();
    let command = resolver.resolve_command(args.command)?;
    let command = match dry_run {
        Some(dry_run) => ResolvedCommand::DryRun(Box::new(command), dry_run),
        None => command,
    };
    Ok((command, address))
}

/// Resolves commands, using the global options and the settings.
struct Resolver {
    global: Global,
    settings: Settings,
    /// Set if requests are recorded instead of sent.
    dry_run: Option<DryRun>,
}

impl Resolver {
    fn resolve_command(self, command: Command) -> Result<ResolvedCommand, Failure> {
        match command {
            Command::Order(order) => self.resolve_order(order),
            Command::Manifest(manifest) => self.resolve_manifest(manifest),
            Command::Track(track) => self.resolve_track(track),
            Command::Parcel(Parcel::List(list)) => {
                let (filter, pages) = (parse_filter(&list)?, select_pages(&list));
                Ok(ResolvedCommand::ListParcels(self.client()?, filter, pages))
            }
            Command::Parcel(Parcel::Show(show)) => {
                Ok(ResolvedCommand::ShowParcel(self.client()?, show.wanted))
            }
            Command::Label(label) => self.resolve_label(label),
            Command::Invoice(Invoice::Get(get)) => self.resolve_invoices(get),
            Command::Sandbox(Sandbox::Reset(reset)) => self.resolve_reset(&reset),
            Command::Health => Ok(ResolvedCommand::Health(self.client()?)),
            Command::Api(api) => self.resolve_api(api),
            Command::Webhook(Webhook::Listen(listen)) => self.resolve_listen(&listen),
            Command::Config(config) => self.resolve_config(config),
            Command::Doctor => self.resolve_doctor(),
            Command::Completions(completions) => {
                Ok(ResolvedCommand::Completions(completions.shell, self.settings.output.language))
            }
            Command::Man(man) => self.resolve_man(man),
        }
    }

    fn resolve_order(&self, order: Order) -> Result<ResolvedCommand, Failure> {
        match order {
            Order::Create(create) => {
                let order = self.order_input(create.file.as_slice(), &create.set)?;
                let label = resolve_label_file(create)?;
                Ok(ResolvedCommand::Create(self.client()?, order, label))
            }
            Order::Void(void) => self.resolve_void(void),
            Order::Validate(validate) => {
                Ok(ResolvedCommand::Validate(self.order_input(&validate.files, &validate.set)?))
            }
            Order::Import(import) => self.resolve_import(import),
            Order::Template(template) => match template.from {
                Some(number) => {
                    let number = requests::parse_number(&number)?;
                    Ok(ResolvedCommand::CopyOrder(self.client()?, number))
                }
                None if template.csv => Ok(ResolvedCommand::CsvTemplate),
                None => Ok(ResolvedCommand::Template(parse_country(&template.country)?)),
            },
        }
    }

    /// Resolves the files and fields from which orders are read.
    fn order_input(&self, files: &[PathBuf], set: &[String]) -> Result<OrderInput, Failure> {
        let sources: Vec<_> = files.iter().map(|file| Source::from_argument(file)).collect();
        self.check_stdin_is_read_once(sources.iter().filter(|source| source.is_stdin()).count())?;
        let fields = set.iter().map(|field| FieldAssignment::parse(field));
        Ok(OrderInput { sources, fields: fields.collect::<Result<_, _>>()? })
    }

    fn resolve_manifest(&self, manifest: Manifest) -> Result<ResolvedCommand, Failure> {
        match manifest {
            Manifest::Submit(mut submit) => {
                let numbers = self.read_numbers(std::mem::take(&mut submit.numbers))?;
                let request = requests::manifest_request(&numbers, &submit)?;
                Ok(ResolvedCommand::Submit(self.client()?, request))
            }
            Manifest::Show(show) => {
                let name = requests::parse_manifest_name(&show.manifest_id)?;
                Ok(ResolvedCommand::ShowManifest(self.client()?, name))
            }
        }
    }

    fn resolve_track(&self, track: Track) -> Result<ResolvedCommand, Failure> {
        let numbers = requests::parse_numbers(&self.read_numbers(track.numbers)?)?;
        let (client, history) = (self.client()?, track.history);
        // In a dry run no parcel is ever delivered, so a watch would never end.
        if !track.watch || self.dry_run.is_some() {
            return Ok(ResolvedCommand::Track { client, numbers, history });
        }
        let every = Duration::from_secs(track.every.unwrap_or(DEFAULT_WATCH_SECONDS).into());
        let options = WatchOptions { numbers, history, every, output: self.settings.output };
        Ok(ResolvedCommand::Watch(client, options))
    }

    /// Resolves `label show`. The label's text is for people; programs get the details.
    fn show_label(&self, number: TrackingNumber, open: bool) -> Result<ResolvedCommand, Failure> {
        // A pipe or a CI job has no display.
        let is_attended = output::is_terminal() && env::var_os("CI").is_none();
        if open && !is_attended {
            return Err(Failure::usage(texts::NOT_ATTENDED, texts::SAVE_LABEL));
        }
        let view = match self.settings.output.format {
            _ if open => LabelView::Open,
            Format::Table => LabelView::Text,
            Format::Json | Format::Ndjson | Format::Csv | Format::Numbers => LabelView::Details,
        };
        Ok(ResolvedCommand::ShowLabel(self.client()?, number, view))
    }

    fn resolve_label(&self, label: Label) -> Result<ResolvedCommand, Failure> {
        match label {
            Label::Get(get) => {
                let wanted = match get.manifest {
                    Some(name) => WantedLabels::OfManifest(requests::parse_manifest_name(&name)?),
                    None => {
                        WantedLabels::Of(requests::parse_numbers(&self.read_numbers(get.numbers)?)?)
                    }
                };
                let format = match (get.format, get.merge.as_deref()) {
                    (Some(format), _) => format,
                    (None, Some(file)) => format_from_name(file)?,
                    (None, None) => LabelFormat::Pdf,
                };
                if let Some(file) = get.merge {
                    let file = if self.dry_run.is_some() { PathBuf::from("-") } else { file };
                    let merge = merged_file(file, format)?;
                    return Ok(ResolvedCommand::MergeLabels(self.client()?, wanted, merge));
                }
                let target = match self.dry_run {
                    Some(_) => LabelTarget::Stdout,
                    None => label_target(get.dir, format, wanted.is_one())?,
                };
                Ok(ResolvedCommand::GetLabels(self.client()?, wanted, format, target))
            }
            Label::Show(show) => {
                let number = requests::parse_number(&show.number)?;
                self.show_label(number, show.open)
            }
            Label::Reprint(reprint) => {
                let number = requests::parse_number(&reprint.number)?;
                let request = requests::reprint_request(&reprint.write)?;
                Ok(ResolvedCommand::Reprint(self.client()?, number, request))
            }
        }
    }

    fn resolve_invoices(&self, get: GetInvoice) -> Result<ResolvedCommand, Failure> {
        let numbers = requests::parse_numbers(&self.read_numbers(get.numbers)?)?;
        let target = match self.dry_run {
            Some(_) => LabelTarget::Stdout,
            None => invoice_target(get.dir, numbers.len())?,
        };
        Ok(ResolvedCommand::GetInvoices(self.client()?, numbers, target))
    }

    /// Asks for confirmation if the user can be prompted. In a script no confirmation is needed.
    fn resolve_void(&self, void: Void) -> Result<ResolvedCommand, Failure> {
        let is_confirmed = void.yes || self.dry_run.is_some() || !self.can_prompt();
        let request = requests::void_request(&self.read_numbers(void.numbers)?, &void.write)?;
        let client = self.client()?;
        let count = request.tracking_numbers.len().to_string();
        if is_confirmed || self.ask_for_confirmation(texts::ASK_VOID.with(&[("n", &count)]))? {
            return Ok(ResolvedCommand::Void(client, request));
        }
        Err(Failure::for_declined_prompt(texts::NOTHING_VOIDED))
    }

    /// Returns `true` if the user can be prompted, and standard input is not used for the key.
    fn can_prompt(&self) -> bool {
        output::can_prompt() && !self.global.api_key_stdin
    }

    /// Prompts the user for a yes or no.
    fn ask_for_confirmation(&self, question: impl Into<Message>) -> Result<bool, Failure> {
        output::prompt(question, self.settings.output.language);
        Ok(is_yes(&input::line()?))
    }

    /// Asks for confirmation, unless --yes is given.
    fn resolve_reset(&self, reset: &Reset) -> Result<ResolvedCommand, Failure> {
        let is_confirmed = reset.yes || self.dry_run.is_some();
        if !is_confirmed && !self.can_prompt() {
            return Err(Failure::usage(texts::NO_CONFIRMATION, texts::ADD_YES));
        }
        let client = self.client()?;
        if is_confirmed || self.ask_for_confirmation(texts::ASK_RESET)? {
            return Ok(ResolvedCommand::Reset(client));
        }
        Err(Failure::for_declined_prompt(texts::DECLINED))
    }

    /// Returns the tracking numbers, with those on standard input and in files.
    fn read_numbers(&self, arguments: Vec<String>) -> Result<Vec<String>, Failure> {
        self.check_stdin_is_read_once(
            arguments.iter().filter(|argument| *argument == "-").count(),
        )?;
        requests::from_arguments(arguments)
    }

    /// Fails if standard input would be read more than once, for the key and for other input.
    fn check_stdin_is_read_once(&self, others: usize) -> Result<(), Failure> {
        let has_key = self.global.api_key_stdin;
        if others + usize::from(has_key) <= 1 {
            return Ok(());
        }
        let hint = if has_key { texts::KEY_ELSEWHERE } else { texts::STDIN_ONCE };
        Err(Failure::usage(texts::STDIN_TWICE, hint))
    }
}

fn parse_country(code: &str) -> Result<CountryCode, Failure> {
    CountryCode::parse(&code.to_ascii_uppercase()).map_err(|_| {
        let values = [("value", &*without_keys(code))];
        let hint = match meant_country(code) {
            Some(meant) => texts::DID_YOU_MEAN.with(&[("value", meant.as_str())]),
            None => texts::SEE_HELP.into(),
        };
        Failure::usage(texts::INVALID_COUNTRY.with(&values), hint)
    })
}

fn parse_filter(list: &ListParcels) -> Result<ParcelFilter, Failure> {
    let from = list.from.as_deref().map(|date| dates::parse_date("--from", date)).transpose()?;
    let to = list.to.as_deref().map(|date| dates::parse_date("--to", date)).transpose()?;
    if from.zip(to).is_some_and(|(from, to)| to < from) {
        return Err(Failure::usage(texts::LAST_DAY_BEFORE_FIRST, texts::SEE_HELP));
    }
    let begin = |date: NaiveDate| date.and_time(NaiveTime::MIN).and_utc();
    Ok(ParcelFilter {
        status: list.status.as_deref().map(parse_status).transpose()?,
        country: list.country.as_deref().map(parse_country).transpose()?,
        search: list.search.clone(),
        reference: list.reference.clone(),
        created_from: from.map(begin),
        // The last day is included. Times end with the year 9999, so its last day needs no end.
        created_to: to
            .and_then(|date| date.succ_opt())
            .filter(|date| date.year() < 10_000)
            .map(begin),
    })
}

/// Parses the name of a status in any case, with spaces, hyphens or underscores.
fn parse_status(name: &str) -> Result<ParcelStatus, Failure> {
    let code = name.to_ascii_uppercase().replace([' ', '-'], "_");
    ParcelStatus::KNOWN.iter().find(|known| known.code() == code).cloned().ok_or_else(|| {
        let known: Vec<_> = ParcelStatus::KNOWN.iter().map(ParcelStatus::code).collect();
        let name = without_keys(name);
        let values = [("value", &*name), ("option", "--status"), ("values", &known.join(", "))];
        Failure::usage(texts::NOT_A_POSSIBLE_VALUE.with(&values), texts::SEE_HELP)
    })
}

fn select_pages(list: &ListParcels) -> PageSelection {
    if list.all {
        PageSelection::All { limit: list.limit.unwrap_or(MAX_PAGE_SIZE) }
    } else {
        PageSelection::One { page: list.page.unwrap_or(1), limit: list.limit }
    }
}

/// Returns `true` if the answer is yes in either language.
fn is_yes(answer: &str) -> bool {
    ["yes", "y", "sí", "si", "s"].contains(&&*answer.trim().to_lowercase())
}

/// Returns the label's file. Its directory is checked now, before the order is created.
fn resolve_label_file(create: Create) -> Result<Option<LabelFile>, Failure> {
    let Some(path) = create.label else { return Ok(None) };
    if path.as_os_str() == "-" {
        return Err(Failure::usage(texts::LABEL_TO_STDOUT, texts::GET_TO_STDOUT));
    }
    let format = match create.format {
        Some(format) => format,
        None => format_from_name(&path)?,
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let unwritable =
        |err: io::ErrorKind| Failure::for_unwritable_file(&path.to_string_lossy(), &err.into());
    match directory.metadata() {
        Err(err) => Err(Failure::for_unwritable_file(&path.to_string_lossy(), &err)),
        Ok(found) if !found.is_dir() => Err(unwritable(io::ErrorKind::NotADirectory)),
        Ok(_) if path.is_dir() => Err(unwritable(io::ErrorKind::IsADirectory)),
        Ok(_) => Ok(Some(LabelFile { path, format })),
    }
}

/// Returns the format that the file's extension names, or the default for a name without one.
pub(super) fn format_from_name(path: &Path) -> Result<LabelFormat, Failure> {
    let Some(ending) = path.extension() else { return Ok(LabelFormat::default()) };
    ending.to_str().and_then(|ending| LabelFormat::parse(ending).ok()).ok_or_else(|| {
        let file = without_keys(&path.to_string_lossy());
        let message = texts::UNKNOWN_LABEL_ENDING.with(&[("file", &file)]);
        Failure::usage(message, texts::NAME_FORMAT)
    })
}

/// Returns the file for many labels.
pub(super) fn merged_file(path: PathBuf, format: LabelFormat) -> Result<MergedFile, Failure> {
    if format == LabelFormat::Png {
        return Err(Failure::usage(texts::MERGED_PNG, texts::MERGE_AS_PDF));
    }
    let path = (path.as_os_str() != "-").then_some(path);
    Ok(MergedFile { path, format })
}

fn label_target(dir: PathBuf, format: LabelFormat, is_one: bool) -> Result<LabelTarget, Failure> {
    if dir.as_os_str() != "-" {
        return Ok(LabelTarget::Directory(dir));
    }
    if format == LabelFormat::Zpl {
        return Ok(LabelTarget::Stdout);
    }
    if !is_one {
        return Err(Failure::usage(texts::SEVERAL_TO_STDOUT, texts::ZPL_OR_DIRECTORY));
    }
    binary_to_stdout(format)
}

fn invoice_target(dir: PathBuf, invoices: usize) -> Result<LabelTarget, Failure> {
    if dir.as_os_str() != "-" {
        return Ok(LabelTarget::Directory(dir));
    }
    if invoices > 1 {
        return Err(Failure::usage(texts::INVOICES_TO_STDOUT, texts::INVOICE_DIRECTORY));
    }
    binary_to_stdout(LabelFormat::Pdf)
}

fn binary_to_stdout(format: LabelFormat) -> Result<LabelTarget, Failure> {
    if output::is_terminal() {
        let message = texts::NOT_TO_TERMINAL.with(&[("format", format.code())]);
        return Err(Failure::usage(message, texts::REDIRECT));
    }
    Ok(LabelTarget::Stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_confirms() {
        for yes in ["yes\n", "Y", " Sí\r\n", "si", "SÍ", "s"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "no", "yess", "yes please", "ye", "1"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }

    #[test]
    fn a_status_is_found_by_its_name_in_any_spelling() {
        for name in ["IN_TRANSIT", "in_transit", "in-transit", "In transit"] {
            assert_eq!(parse_status(name).unwrap(), ParcelStatus::InTransit, "{name}");
        }
        for known in ParcelStatus::KNOWN {
            assert_eq!(&parse_status(known.code()).unwrap(), known);
        }
        for unknown in ["", "transit", "IN  TRANSIT", "LOST_AT_SEA"] {
            assert!(parse_status(unknown).is_err(), "{unknown}");
        }
    }
}
