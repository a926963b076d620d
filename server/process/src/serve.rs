//! `parcelo-server serve`: opens the database, listens, prints the addresses, and stops gracefully.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ipnet::IpNet;
use parcelo_domain::{
    Secrets, Site, access, audit::Actor, credentials::AdminScope, site::local_url,
};
use parcelo_service::{
    http::{Api, ConnectionLimits, Listener, Stop, router},
    service::{NewKeyRequest, Service, Settings},
};
use parcelo_store::Store;
use parcelo_system::{
    clock::{Clock, GuardedClock},
    ids::Ids,
};
use parcelo_types::Environment;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};
use url::Url;

use super::{
    Failure,
    database::{Database, DatabaseArg},
    log, mails, password, print,
    print::FirstSecrets,
    ready_file, secrets,
    serve_args::Serve,
    serve_sockets::{BoundSockets, PassedSockets},
    shared_args::EnvironmentArg,
    shutdown::{Shutdown, Signals, StopCause},
    supervisor::Supervisor,
    upkeep,
};
use crate::routes::{OPERATORS, admin_router};

/// The account that a new database gets.
const FIRST_ACCOUNT: &str = "default";

pub(super) async fn serve(options: Box<Serve>, non_default_flags: &str) -> Result<(), Failure> {
    let (passed, _flush) = (PassedSockets::from_env()?, log::start());
    let (version, database) = (env!("CARGO_PKG_VERSION"), &options.database.database);
    tracing::info!(version, %database, set = non_default_flags, "starting");
    let ids = Arc::new(Ids::random());
    let store = match &options.database.database {
        Database::Memory => Store::memory(ids.array())?,
        Database::File(path) => Store::open(path, ids.array())?,
        #[cfg(feature = "postgres")]
        Database::Postgres(address) => Store::connect((**address).clone(), ids.array()).await?,
    };
    // The sockets are bound first: a port in use must leave no half-started server, and the base URLs below contain
    // the ports that the system picked (`:0`). Nothing is accepted yet.
    let sockets = BoundSockets::bind(&options, passed).await?;
    let secrets = secrets(&store)?;
    let mail_delivery = mails::configure(&options)?;
    let settings = settings(&options, &sockets, secrets)?;
    let addresses = addresses(&sockets)?;
    let first_secrets = FirstSecrets::new(options.secrets_file.as_deref());
    let mut first_secrets =
        first_secrets.map_err(|source| secrets_file_failure(&options, source))?;
    // This comes before the first key is issued, because a database with a key no longer counts as new.
    let is_new = store.claim_new().await?;
    let service = Arc::new(Service::new(store.clone(), clock(&store), Arc::clone(&ids), settings));
    // This comes before the first request. A failure is logged where it happens, and retried a second later.
    let _ = service.send_heartbeat().await;
    let (ready, stop) = (Arc::new(AtomicBool::new(true)), Stop::default());
    let listeners = listen(sockets, &service, (&ready, &stop), options.connections_per_address);
    let webhooks = tokio::spawn(upkeep::send_webhooks(Arc::clone(&service), stop.clone()));
    let mails = mails::start(mail_delivery, &service, &stop).await?;
    print::addresses(&addresses)?;
    log_addresses(&addresses);
    warn_about_local_labels(&service, &options);
    if is_new {
        let operator = (&mut first_secrets, &options.database);
        set_up_new_database((&service, &ids), &addresses, operator).await?;
        first_secrets.announce()?;
    }
    // Signals are caught before the ready file is written, after which other programs may send one.
    let mut signals = Signals::listen()?;
    let supervisor = report_ready(options.ready_file.as_deref(), &addresses)?;
    // A signal does not wait for jobs that take long, such as the due steps after a long pause.
    let (cause, outcome) = tokio::select! {
        lost = upkeep::watch_disk_and_clock(&service) => (StopCause::DatabaseLost, Err(Failure::DatabaseLost(lost))),
        never = upkeep::run_periodic_jobs(&service) => match never {},
        never = upkeep::send_heartbeat(&service) => match never {},
        never = upkeep::merge_count_changes(&service) => match never {},
        never = upkeep::maintain_search_index(&service) => match never {},
        never = supervisor.feed_watchdog(&store) => match never {},
        cause = signals.next() => (cause, Ok(())),
    };
    // The order of the shutdown: `/readyz` fails while requests are still served, so that a load balancer moves
    // them elsewhere; then listeners close and finish; then the senders, which need no listener; the store last,
    // since all of them write.
    let shutdown = Shutdown::start();
    supervisor.notify("STOPPING=1");
    ready.store(false, Ordering::Relaxed);
    shutdown.drain(&stop, cause.drain(options.drain()), signals.next()).await;
    for listener in listeners {
        listener.finish().await;
    }
    finish_senders(&shutdown, (webhooks, mails), (&store, &service)).await;
    // A failure is logged where it happens, and loses the counts of the last minute.
    let _ = service.save_key_uses().await;
    let _ = service.save_legacy_uses().await;
    store.clone().close().await;
    let stats = store.stats();
    tracing::info!(commits = stats.commits, changes = stats.changes, "stopped");
    outcome
}

/// Waits for the senders. Messages that are in flight when the time is over are sent again: a webhook by the next
/// server, or by another one a minute later; an e-mail with the same Message-ID.
async fn finish_senders(
    shutdown: &Shutdown,
    (webhooks, mails): (JoinHandle<()>, Option<JoinHandle<()>>),
    (store, service): (&Store, &Service),
) {
    match tokio::time::timeout(shutdown.time_left(), webhooks).await {
        // A lease may be left whose commit was not awaited: it is ended, so that another server need not wait for it.
        Ok(Ok(())) => drop(store.end_leases(service.now()).await),
        Ok(Err(error)) => tracing::error!(%error, "the sender of webhooks failed"),
        Err(_elapsed) => {}
    }
    let Some(mails) = mails else { return };
    if let Ok(Err(error)) = tokio::time::timeout(shutdown.time_left(), mails).await {
        tracing::error!(%error, "the sender of e-mails failed");
    }
}

fn secrets_file_failure(options: &Serve, source: std::io::Error) -> Failure {
    Failure::SecretsFile { path: options.secrets_file.clone().unwrap_or_default(), source }
}

/// Logs the addresses too, for systems that keep only the log.
fn log_addresses(addresses: &[(&'static str, String)]) {
    for (listener, url) in addresses {
        tracing::info!(listener, url, "listening");
    }
}

/// Returns the machine's clock, or the one of a database that several servers share.
fn clock(store: &Store) -> Arc<dyn Clock> {
    match store.shared_clock() {
        Some(shared) => Arc::new(GuardedClock::from_clocks(Arc::clone(shared))),
        None => Arc::new(GuardedClock::starting_now()),
    }
}

/// Returns the listeners with the addresses that reach them from this machine.
fn addresses(sockets: &BoundSockets) -> Result<Vec<(&'static str, String)>, Failure> {
    let all = [
        ("production", sockets.production.as_ref()),
        ("sandbox", sockets.sandbox.as_ref()),
        ("admin", Some(&sockets.admin)),
    ];
    let bound = all.into_iter().filter_map(|(listener, socket)| Some((listener, socket?)));
    bound.map(|(listener, socket)| Ok((listener, socket_url(socket)?))).collect()
}

fn socket_url(socket: &TcpListener) -> Result<String, Failure> {
    Ok(local_url(socket.local_addr()?))
}

/// Warns if production has no public address: the links and QR codes on its labels would not work elsewhere.
fn warn_about_local_labels(service: &Service, options: &Serve) {
    let site = service.settings().site(Environment::Production);
    if options.environments.contains(&EnvironmentArg::Production) && site.is_local() {
        tracing::warn!(
            base_url = site.base_url(),
            "QR codes and links on production labels will work on this machine only: set --base-url to its public address"
        );
    }
}

fn settings(
    options: &Serve,
    sockets: &BoundSockets,
    secrets: Secrets,
) -> Result<Settings, Failure> {
    let production =
        (sockets.production.as_ref(), options.base_url.as_ref(), options.labels_host.as_ref());
    let sandbox = (
        sockets.sandbox.as_ref(),
        options.sandbox_base_url.as_ref(),
        options.sandbox_labels_host.as_ref(),
    );
    Ok(Settings {
        production: site(Environment::Production, production)?,
        sandbox: site(Environment::Sandbox, sandbox)?,
        destinations: options.destinations(),
        limits: options.limits.into(),
        webhooks: options.webhooks(),
        trusted_proxies: options.trusted_proxies.clone(),
        database_options: options.database.to_options(),
        legacy: options.legacy(),
        secrets,
    })
}

/// The socket of an environment, its base URL, and the base URL of its label files, if they are set.
type AddressOptions<'a> = (Option<&'a TcpListener>, Option<&'a Url>, Option<&'a Url>);

/// Returns the public addresses of an environment, which may be set even if it is not served here.
fn site(
    environment: Environment,
    (socket, base, labels): AddressOptions<'_>,
) -> Result<Site, Failure> {
    let base_url = match (base, socket) {
        (Some(url), _) => Some(without_trailing_slash(url)),
        (None, Some(socket)) => Some(socket_url(socket)?),
        (None, None) => None,
    };
    let default = || format!("{}/files", base_url.as_deref().unwrap_or_default());
    let labels_base_url = labels.map_or_else(default, without_trailing_slash);
    Ok(Site { environment, base_url, labels_base_url })
}

fn without_trailing_slash(url: &Url) -> String {
    url.as_str().trim_end_matches('/').to_owned()
}

fn listen(
    sockets: BoundSockets,
    service: &Arc<Service>,
    (ready, stop): (&Arc<AtomicBool>, &Stop),
    per_address: u32,
) -> Vec<Listener> {
    let api =
        |environment| Api { service: Arc::clone(service), environment, ready: Arc::clone(ready) };
    let start = |listener, socket, routes| {
        let (exempt, metrics) = (exempt_networks(service), service.metrics().clone());
        let connections = ConnectionLimits { listener, per_address, exempt, metrics };
        Listener::start_within(connections, socket, routes, stop.clone())
    };
    // The operators' listener serves both environments, and does not read the one that its `Api` must have.
    let operators = admin_router(api(Environment::Production));
    let mut listeners = vec![start(OPERATORS, sockets.admin, operators)];
    let apis =
        [(Environment::Production, sockets.production), (Environment::Sandbox, sockets.sandbox)];
    for (environment, socket) in apis {
        let api = router(api(environment));
        listeners.extend(socket.map(|socket| start(environment.code(), socket, api)));
    }
    listeners
}

/// Returns the networks without a limit of connections: this machine, and proxies, which connect for all clients.
fn exempt_networks(service: &Service) -> Vec<IpNet> {
    let loopback = ["127.0.0.0/8", "::1/128"].into_iter().filter_map(access::parse_network);
    loopback.chain(service.settings().trusted_proxies.iter().copied()).collect()
}

/// Creates an account, a sandbox key, an admin token and a password in a new database; each is shown only once.
async fn set_up_new_database(
    (service, ids): (&Service, &Ids),
    addresses: &[(&str, String)],
    (secrets, database): (&mut FirstSecrets, &DatabaseArg),
) -> Result<(), Failure> {
    let request = NewKeyRequest::unrestricted(FIRST_ACCOUNT, Environment::Sandbox, "First key");
    let issuer = service.issuer(Actor::FirstStart);
    let (key, _) = issuer.issue_api_key(request, service.now()).await?;
    let url = |listener| {
        let found = addresses.iter().find(|(name, _)| *name == listener);
        found.map(|(_, url)| url.as_str())
    };
    print::first_key(secrets, &key, url("sandbox"))?;
    let name = "First token".to_owned();
    let (token, _) = issuer.issue::<AdminScope>(name, AdminScope, service.now()).await?;
    print::first_token(secrets, &token, url("admin"))?;
    let password = password::set_first_password(service, ids, FIRST_ACCOUNT).await?;
    let login = (FIRST_ACCOUNT, password.as_str());
    print::first_password(secrets, login, url("admin"), database.to_options().as_deref())?;
    Ok(())
}

/// Tells other programs that the server listens, and returns the service manager, which hears more later.
fn report_ready(path: Option<&Path>, addresses: &[(&str, String)]) -> Result<Supervisor, Failure> {
    if let Some(path) = path {
        let mut content: serde_json::Map<_, _> =
            addresses.iter().map(|(listener, url)| ((*listener).to_owned(), json!(url))).collect();
        content.insert("pid".to_owned(), json!(std::process::id()));
        ready_file::write_atomically(path, &json!(content).to_string())?;
    }
    let supervisor = Supervisor::from_env();
    supervisor.notify("READY=1");
    Ok(supervisor)
}
