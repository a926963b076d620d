//! The test bed: servers, the proxies between them and PostgreSQL, a disk and a clock. Faults are injected into these
//! parts.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::{
    disk::Disk, postgres::Postgres, proxy::Proxy, receiver::Receiver, requests::Account,
    servers::Server, stepped_clock::SteppedClock,
};

/// The servers of a run and what they run on.
pub(crate) struct TestBed {
    pub(crate) servers: Vec<Server>,
    /// The servers' proxies, one for each; none without PostgreSQL.
    pub(crate) proxies: Vec<Proxy>,
    // Fields are dropped in this order: PostgreSQL must stop before its disk is unmounted.
    pub(crate) postgres: Option<Postgres>,
    pub(crate) disk: Disk,
    /// The clock of the last server.
    pub(crate) clock: Option<Arc<SteppedClock>>,
    /// Held while a fault affects PostgreSQL or the disk, so that there is one at a time.
    pub(crate) database_lock: tokio::sync::Mutex<()>,
    /// The periods in which a server may have been unable to record a webhook's acknowledgement.
    pub(crate) pauses: Mutex<Vec<Pause>>,
}

/// A period in which a server or its network was stopped, or a server was restarted.
pub(crate) struct Pause {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// Time before the period in which acknowledgements may not have been written.
    pub(crate) lookback: Duration,
}

impl Pause {
    /// Returns `true` if this pause explains why a message acknowledged at `first` was sent again at `again`.
    pub(crate) fn explains(&self, first: Instant, again: Instant) -> bool {
        // A message sent during the pause may be read some seconds after it.
        let ended = self.ended + Duration::from_secs(5);
        self.began <= again && first <= ended && first + self.lookback >= self.began
    }
}

/// The parts that a test bed has.
pub(crate) struct TestBedSettings<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) is_postgres: bool,
    pub(crate) has_full_disks: bool,
    pub(crate) has_clocks: bool,
}

impl TestBed {
    pub(crate) async fn start(settings: &TestBedSettings<'_>, folder: &Path) -> Self {
        let data = folder.join("data");
        std::fs::create_dir(&data).expect("a folder");
        let disk =
            if settings.has_full_disks { Disk::mount(data) } else { Disk::from_folder(data) };
        let postgres = settings.is_postgres.then(|| Postgres::start(&disk));
        let clock = settings.has_clocks.then(|| Arc::new(SteppedClock::new(folder)));
        let (mut servers, mut proxies) = (Vec::new(), Vec::new());
        for index in 0..if settings.is_postgres { 3 } else { 1 } {
            let database = match &postgres {
                Some(postgres) => {
                    let proxy = Proxy::start(postgres.socket()).await;
                    let port = proxy.port;
                    proxies.push(proxy);
                    format!("postgres://parcelo@127.0.0.1:{port}/torture?sslmode=disable")
                }
                None => format!("sqlite:{}", disk.folder.join("parcelo.db").display()),
            };
            let log = folder.join(format!("server{index}.log"));
            servers.push(Server::new(settings.binary, database, log));
        }
        if let Some(last) = servers.last_mut() {
            last.clock.clone_from(&clock);
        }
        for server in &servers {
            server.start();
        }
        let (database_lock, pauses) = Default::default();
        Self { servers, proxies, postgres, disk, clock, database_lock, pauses }
    }

    /// Creates an account with an API key, a carrier key and a webhook.
    pub(crate) fn new_account(&self, index: usize, receiver: &Receiver) -> Account {
        let (server, name) = (&self.servers[0], format!("Torture {index}"));
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        let key = ["keys", "create", "--account", &name, "--name", &name, "--countries", "*"];
        let key = text(&server.run(&key, "production")["key"]);
        let carrier = server.run(&["carriers", "create", "--name", &name], "production");
        let carrier_key = text(&carrier["key"]);
        let url = receiver.url(index);
        let webhook =
            ["webhooks", "set", "--account", &name, "--url", &url, "--webhooks-allow-private"];
        receiver.add_account(&text(&server.run(&webhook, "production")["secret"]));
        Account { key, carrier_key }
    }

    /// Returns the clock of the only server, if there is one server and its clock is stepped.
    pub(crate) fn clock_of_only_server(&self) -> Option<Arc<SteppedClock>> {
        self.clock.clone().filter(|_| self.servers.len() == 1)
    }
}
