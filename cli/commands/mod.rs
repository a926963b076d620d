//! Doing a job: each command has its own module.

mod api;
mod call;
mod config;
mod create;
mod doctor;
mod import;
mod label;
mod listen;
mod manifest;
mod parcels;
mod row_importer;
mod sandbox;
mod shell;
mod template;
mod track;
mod validate;
mod void;
mod watch;

use parcelo::Client;

pub(crate) use api::RawCall;
pub(crate) use config::ConfigAction;
pub(crate) use doctor::Preflight;
pub(crate) use listen::WebhookListener;
pub(crate) use watch::WatchOptions;

use crate::{
    failure::Failure,
    findings::Finding,
    resolve::Job,
    results::{CommandOutcome, Results},
};

/// Does a job.
pub(crate) fn run(job: Job) -> Result<CommandOutcome, Failure> {
    match job {
        Job::Validate { sources } => validate::validate(&sources),
        Job::Sample { country } => Ok(template::show(country)),
        Job::SampleCsv => Ok(CommandOutcome::with(Results::Columns(crate::import::sample()))),
        Job::CheckImport { environment, plan } => import::check(environment, &plan),
        Job::Import { client, plan, voice } => waiting(import::import(&client, &plan, voice)),
        Job::Create { client, order, label } => {
            waiting(create::create(&client, &order, label.as_ref()))
        }
        Job::Void { client, request } => waiting(void::void(&client, &request)),
        Job::Submit { client, request } => waiting(manifest::submit(&client, &request)),
        Job::Manifest { client, id } => waiting(manifest::show(&client, &id)),
        Job::List { client, filter, pages } => waiting(parcels::list(&client, &filter, &pages)),
        Job::Track { client, numbers, history } => {
            waiting(track::track(&client, &numbers, history))
        }
        Job::Labels { client, numbers, format, target } => {
            waiting(label::get(&client, &numbers, format, &target))
        }
        Job::ShowLabel { client, number } => waiting(label::info(&client, &number)),
        Job::DrawLabel { client, number, columns } => {
            waiting(label::draw(&client, &number, columns))
        }
        Job::Reprint { client, number, request } => {
            waiting(label::reprint(&client, &number, &request))
        }
        Job::Reset { client } => waiting(sandbox::reset(&client)),
        Job::Health { client } => waiting(health(&client)),
        Job::Watch { client, options } => waiting(watch::watch(&client, &options)),
        Job::Api { client, request } => waiting(api::call(&client, request)),
        Job::Listen { listener } => waiting(listen::listen(listener)),
        Job::Config { action } => config::run(*action),
        Job::Doctor { preflight } => waiting(doctor::examine(*preflight)),
        Job::Completions { shell, language } => Ok(shell::completions(shell, language)),
        Job::Man { command, language } => shell::page(&command, language),
        Job::ManPages { folder, language } => shell::pages(&folder, language),
        Job::DryRun { job, dry_run } => {
            let done = run(*job);
            let requests = dry_run.requests();
            if requests.is_empty() {
                return done;
            }
            Ok(CommandOutcome::with(Results::Finding(Finding::Requests(requests))))
        }
    }
}

fn waiting(
    work: impl Future<Output = Result<CommandOutcome, Failure>>,
) -> Result<CommandOutcome, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::output_lost(&why))?
        .block_on(work)
}

async fn health(client: &Client) -> Result<CommandOutcome, Failure> {
    let health = call::read(client.health()).await?.into_inner();
    Ok(CommandOutcome::with(Results::Health(Box::new(health))))
}
