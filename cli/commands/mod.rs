//! Doing a job: each command has its own module.

mod api;
mod config;
mod create;
mod doctor;
mod label;
mod listen;
mod manifest;
mod parcels;
mod sample;
mod sandbox;
mod service;
mod shell;
mod track;
mod validate;
mod void;
mod watch;

use parcelo::Client;

pub(crate) use api::Request;
pub(crate) use config::Task;
pub(crate) use doctor::Patient;
pub(crate) use listen::Receiver;
pub(crate) use watch::Watched;

use crate::{
    failure::Failure,
    findings::Finding,
    resolve::Job,
    results::{Done, Results},
};

/// Does a job.
pub(crate) fn run(job: Job) -> Result<Done, Failure> {
    match job {
        Job::Validate { sources } => validate::validate(&sources),
        Job::Sample { country } => Ok(sample::show(country)),
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
        Job::Labels { client, numbers, format, place } => {
            waiting(label::get(&client, &numbers, format, &place))
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
        Job::Watch { client, watched } => waiting(watch::watch(&client, &watched)),
        Job::Api { client, request } => waiting(api::call(&client, request)),
        Job::Listen { receiver } => waiting(listen::listen(receiver)),
        Job::Config { task } => config::run(*task),
        Job::Doctor { patient } => waiting(doctor::examine(*patient)),
        Job::Completions { shell, language } => Ok(shell::completions(shell, language)),
        Job::Man { command, language } => shell::page(&command, language),
        Job::ManPages { folder, language } => shell::pages(&folder, language),
        Job::DryRun { job, dry_run } => {
            let done = run(*job);
            let requests = dry_run.requests();
            if requests.is_empty() {
                return done;
            }
            Ok(Done::with(Results::Finding(Finding::Requests(requests))))
        }
    }
}

fn waiting(work: impl Future<Output = Result<Done, Failure>>) -> Result<Done, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|why| Failure::output_lost(&why))?
        .block_on(work)
}

async fn health(client: &Client) -> Result<Done, Failure> {
    let health = service::read(client.health()).await?.into_inner();
    Ok(Done::with(Results::Health(Box::new(health))))
}
