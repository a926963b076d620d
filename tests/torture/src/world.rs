//! The parts that faults happen to: the servers, the proxies between them and PostgreSQL, their disk and a clock.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::{
    calls::Account, disk::Disk, postgres::Postgres, proxy::Proxy, receiver::Receiver,
    servers::Server, stepped_clock::SteppedClock,
};

pub(crate) struct World {
    pub(crate) servers: Vec<Server>,
    /// The proxies of the servers, one for each; none without PostgreSQL.
    pub(crate) proxies: Vec<Proxy>,
    // Declared before the disk, so that it is dropped before its disk.
    pub(crate) postgres: Option<Postgres>,
    pub(crate) disk: Disk,
    /// The clock of the last server.
    pub(crate) clock: Option<Arc<SteppedClock>>,
    /// The lock of the fault that happens to PostgreSQL or the disk.
    pub(crate) database_turn: tokio::sync::Mutex<()>,
    /// The periods in which a server may have been kept from writing that a webhook was acknowledged.
    pub(crate) pauses: Mutex<Vec<Pause>>,
}

/// A period in which a server or its network stood still, or a server was restarted.
pub(crate) struct Pause {
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    /// The time before the period whose acknowledgements may not have been written.
    pub(crate) reaches_back: Duration,
}

impl Pause {
    /// Returns whether this pause explains that a message acknowledged at `first` is repeated at `again`.
    pub(crate) fn explains(&self, first: Instant, again: Instant) -> bool {
        // The receiver may have read the message only then.
        let ended = self.ended + Duration::from_secs(5);
        self.began <= again && first <= ended && first + self.reaches_back >= self.began
    }
}

/// The settings of a world.
pub(crate) struct Plan<'a> {
    pub(crate) binary: &'a Path,
    pub(crate) is_postgres: bool,
    pub(crate) has_full_disks: bool,
    pub(crate) has_clocks: bool,
}

impl World {
    pub(crate) async fn furnish(plan: &Plan<'_>, folder: &Path) -> Self {
        let data = folder.join("data");
        std::fs::create_dir(&data).expect("a folder");
        let disk = if plan.has_full_disks { Disk::mount(data) } else { Disk::of_folder(data) };
        let postgres = plan.is_postgres.then(|| Postgres::start(&disk));
        let clock = plan.has_clocks.then(|| Arc::new(SteppedClock::new(folder)));
        let (mut servers, mut proxies) = (Vec::new(), Vec::new());
        for at in 0..if plan.is_postgres { 3 } else { 1 } {
            let database = match &postgres {
                Some(postgres) => {
                    let proxy = Proxy::start(postgres.socket()).await;
                    let port = proxy.port;
                    proxies.push(proxy);
                    format!("postgres://parcelo@127.0.0.1:{port}/torture?sslmode=disable")
                }
                None => format!("sqlite:{}", disk.folder.join("parcelo.db").display()),
            };
            let log = folder.join(format!("server{at}.log"));
            servers.push(Server::new(plan.binary, database, log));
        }
        if let Some(last) = servers.last_mut() {
            last.clock.clone_from(&clock);
        }
        for server in &servers {
            server.start();
        }
        let (database_turn, pauses) = Default::default();
        Self { servers, proxies, postgres, disk, clock, database_turn, pauses }
    }

    /// Creates an account with a key, a carrier's key and a webhook.
    pub(crate) fn new_account(&self, at: usize, receiver: &Receiver) -> Account {
        let (server, name) = (&self.servers[0], format!("Torture {at}"));
        let text = |value: &serde_json::Value| value.as_str().expect("text").to_owned();
        let key = ["keys", "create", "--account", &name, "--name", &name, "--countries", "*"];
        let key = text(&server.run(&key, "production")["key"]);
        let carrier = server.run(&["carriers", "create", "--name", &name], "production");
        let carrier_key = text(&carrier["key"]);
        let url = receiver.url(at);
        let webhook =
            ["webhooks", "set", "--account", &name, "--url", &url, "--webhooks-allow-private"];
        receiver.add_account(&text(&server.run(&webhook, "production")["secret"]));
        Account { key, carrier_key }
    }

    /// Returns the only server's clock, if it is stepped.
    pub(crate) fn clock_of_only_server(&self) -> Option<Arc<SteppedClock>> {
        self.clock.clone().filter(|_| self.servers.len() == 1)
    }
}
