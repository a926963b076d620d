//! Runs resolved commands: each has a module, except `health`, which is a single call.

mod api;
mod call;
mod config;
mod create;
mod doctor;
mod import;
mod invoice;
mod label;
mod label_text;
mod listen;
mod manifest;
mod merge;
mod opener;
mod parcels;
mod row_importer;
mod sandbox;
mod shell;
mod template;
mod track;
mod validate;
mod void;
mod watch;

use std::path::PathBuf;

use clap_complete::Shell;
use parcelo::{
    Client, CountryCode, Environment, LabelFormat, Language, ManifestRequest, ReprintRequest,
    TrackingNumber, VoidRequest,
};

pub(crate) use api::RawCall;
pub(crate) use config::ConfigAction;
pub(crate) use create::LabelFile;
pub(crate) use doctor::Preflight;
pub(crate) use label::{LabelTarget, LabelView, WantedLabels};
pub(crate) use listen::WebhookListener;
pub(crate) use merge::MergedFile;
pub(crate) use parcels::{PageSelection, ParcelFilter};
pub(crate) use watch::WatchOptions;

use crate::{
    dry_run::DryRun,
    encoding::Encoding,
    failure::Failure,
    import::{ImportPlan, Origin, Preset},
    input::Source,
    order_fields::OrderInput,
    output::format::OutputOptions,
    requests::ManifestName,
    results::{CommandOutcome, UnsentRequests},
};

/// The largest page of a list; with it, a list needs the fewest requests.
pub(crate) const MAX_PAGE_SIZE: u32 = 100;

/// A command whose values are all valid.
#[derive(Debug)]
pub(crate) enum ResolvedCommand {
    Create(Client, OrderInput, Option<LabelFile>),
    Void(Client, VoidRequest),
    Validate(OrderInput),
    Template(CountryCode),
    CsvTemplate,
    CopyOrder(Client, TrackingNumber),
    Import(Client, Box<ImportPlan>, Origin, OutputOptions),
    /// A template of a column map, for a file or from a preset.
    MapTemplate(Source, Option<Encoding>, Option<Preset>, Language),
    /// An import that sends nothing.
    CheckImport(Option<Environment>, Box<ImportPlan>),
    Submit(Client, ManifestRequest),
    ShowManifest(Client, ManifestName),
    Track {
        client: Client,
        numbers: Vec<TrackingNumber>,
        history: bool,
    },
    ListParcels(Client, ParcelFilter, PageSelection),
    ShowParcel(Client, String),
    GetLabels(Client, WantedLabels, LabelFormat, LabelTarget),
    MergeLabels(Client, WantedLabels, MergedFile),
    ShowLabel(Client, TrackingNumber, LabelView),
    GetInvoices(Client, Vec<TrackingNumber>, LabelTarget),
    Reprint(Client, TrackingNumber, ReprintRequest),
    Reset(Client),
    Health(Client),
    Watch(Client, WatchOptions),
    Api(Client, RawCall),
    Listen(WebhookListener),
    Config(Box<ConfigAction>),
    Doctor(Box<Preflight>),
    Completions(Shell, Language),
    Man(Vec<String>, Language),
    ManPages(PathBuf, Language),
    /// A command whose requests are shown, not sent.
    DryRun(Box<Self>, DryRun),
}

/// Runs a command.
pub(crate) fn run(resolved: ResolvedCommand) -> Result<CommandOutcome, Failure> {
    match resolved {
        ResolvedCommand::Validate(orders) => validate::validate(&orders),
        ResolvedCommand::Template(country) => template::show(country),
        ResolvedCommand::CsvTemplate => template::csv(),
        ResolvedCommand::CopyOrder(client, number) => block_on(template::copy(&client, &number)),
        ResolvedCommand::MapTemplate(source, encoding, preset, language) => {
            import::map_template(&source, encoding, preset, language)
        }
        ResolvedCommand::CheckImport(environment, plan) => import::check(environment, &plan),
        ResolvedCommand::Import(client, plan, origin, options) => {
            block_on(import::import(&client, &plan, origin, options))
        }
        ResolvedCommand::Create(client, order, label) => {
            block_on(create::create(&client, &order, label.as_ref()))
        }
        ResolvedCommand::Void(client, request) => block_on(void::void(&client, &request)),
        ResolvedCommand::Submit(client, request) => block_on(manifest::submit(&client, &request)),
        ResolvedCommand::ShowManifest(client, name) => block_on(manifest::show(&client, &name)),
        ResolvedCommand::ListParcels(client, filter, pages) => {
            block_on(parcels::list(&client, &filter, &pages))
        }
        ResolvedCommand::ShowParcel(client, wanted) => block_on(parcels::show(&client, &wanted)),
        ResolvedCommand::Track { client, numbers, history } => {
            block_on(track::track(&client, &numbers, history))
        }
        ResolvedCommand::GetLabels(client, wanted, format, target) => {
            block_on(label::get(&client, &wanted, format, &target))
        }
        ResolvedCommand::MergeLabels(client, wanted, file) => {
            block_on(merge::get(&client, &wanted, &file))
        }
        ResolvedCommand::ShowLabel(client, number, view) => {
            block_on(label::show(&client, &number, view))
        }
        ResolvedCommand::GetInvoices(client, numbers, target) => {
            block_on(invoice::get(&client, &numbers, &target))
        }
        ResolvedCommand::Reprint(client, number, request) => {
            block_on(label::reprint(&client, &number, &request))
        }
        ResolvedCommand::Reset(client) => block_on(sandbox::reset(&client)),
        ResolvedCommand::Health(client) => block_on(health(&client)),
        ResolvedCommand::Watch(client, options) => block_on(watch::watch(&client, &options)),
        ResolvedCommand::Api(client, request) => block_on(api::call(&client, request)),
        ResolvedCommand::Listen(listener) => block_on(listen::listen(listener)),
        ResolvedCommand::Config(action) => config::run(*action),
        ResolvedCommand::Doctor(preflight) => block_on(doctor::examine(*preflight)),
        ResolvedCommand::Completions(shell, language) => Ok(shell::completions(shell, language)),
        ResolvedCommand::Man(command, language) => shell::print_page(&command, language),
        ResolvedCommand::ManPages(folder, language) => shell::write_pages(&folder, language),
        ResolvedCommand::DryRun(resolved, dry_run) => {
            let done = run(*resolved);
            // The recorded requests got "not found", so a failure after one of them means nothing. A failure
            // before any request comes from the command itself, for instance because an order is invalid.
            let requests = dry_run.requests();
            if requests.is_empty() {
                return done;
            }
            Ok(CommandOutcome::report(UnsentRequests(requests)))
        }
    }
}

fn block_on(
    work: impl Future<Output = Result<CommandOutcome, Failure>>,
) -> Result<CommandOutcome, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|err| Failure::for_failed_start(&err))?
        .block_on(work)
}

async fn health(client: &Client) -> Result<CommandOutcome, Failure> {
    let health = call::execute_read(client.health()).await?.into_inner();
    Ok(CommandOutcome::report(health))
}
