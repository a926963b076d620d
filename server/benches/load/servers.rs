//! Orders a second on PostgreSQL: one server and two, beside `SQLite` and beside the same statements sent bare, in one
//! run; and what an order costs when there are a million.

use std::{fmt, time::Instant};

use futures_util::future::join_all;
use tokio_postgres::Client;

use crate::{
    Plan, bare,
    client::{self, Ask, Known, Target},
    cluster::Cluster,
    figures::Latencies,
    peer::Peer,
};

/// The orders of a bare group: as many as 32 connections can have waiting, and where more bring little.
const BARE_GROUPS: [usize; 2] = [32, 128];
/// How many parcels of each size are made by the service, to be asked for.
const SAMPLE: usize = 1_000;
const DATABASE: &str = "PostgreSQL, one server";
const TWO: &str = "PostgreSQL, two servers";
const SQLITE: &str = "SQLite";

struct Row {
    what: String,
    connections: usize,
    rate: f64,
    /// Of a request, in ms.
    p50: f64,
    p99: f64,
    /// µs an order, of the servers and of PostgreSQL.
    cpu: [f64; 2],
    orders_per_commit: Option<f64>,
    /// An order's part of PostgreSQL's log, in KiB, and how many pages of that were whole.
    log: [f64; 2],
}

/// The servers of a row, stopped with it.
struct Servers<'c> {
    peers: Vec<Peer>,
    /// None beside `SQLite`.
    cluster: Option<&'c Cluster>,
}

pub(crate) async fn measure(plan: &Plan) {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Cluster::start();
    println!("{}", Row::HEADING);
    let mut rows = Vec::new();
    let (database, mut key) = (cluster.create_database(), None);
    let url = cluster.url(&database);
    let (file, mut file_key) = (folder.path().join("parcelo.db"), None);
    for &connections in &plan.connections {
        let peers = vec![Peer::start_server(folder.path(), &file, &mut file_key)];
        let servers = Servers { peers, cluster: None };
        rows.push(
            servers.measure((SQLITE, Ask::Create), &Known::default(), (connections, plan)).await,
        );
        for (what, names) in [(DATABASE, &["first"][..]), (TWO, &["first", "second"])] {
            let start = |name: &&'static str| Peer::start_on(folder.path(), (name, &url), &mut key);
            let peers = names.iter().map(start).collect();
            let servers = Servers { peers, cluster: Some(&cluster) };
            rows.push(
                servers.measure((what, Ask::Create), &Known::default(), (connections, plan)).await,
            );
        }
    }
    let client = cluster.connect(&database).await;
    for orders in BARE_GROUPS {
        rows.push(bare(&cluster, &client, (orders, plan)).await);
    }
    goals(&rows);
    if plan.growth {
        growth(&cluster, folder.path(), plan).await;
    }
}

async fn bare(cluster: &Cluster, client: &Client, (orders, plan): (usize, &Plan)) -> Row {
    let (cpu, log) = (cluster.cpu_micros(), cluster.log_written());
    let begun = Instant::now();
    let rate = bare::rate(client, orders, plan.row).await;
    let made = rate * begun.elapsed().as_secs_f64();
    let after = cluster.log_written();
    let row = Row {
        what: format!("the same statements bare, {orders} a group"),
        connections: 1,
        rate,
        p50: 0.0,
        p99: 0.0,
        cpu: [0.0, (cluster.cpu_micros() - cpu) / made],
        orders_per_commit: Some(orders as f64),
        log: [(after.0 - log.0) / made / 1024.0, (after.1 - log.1) / made],
    };
    println!("{row}");
    row
}

impl Servers<'_> {
    async fn measure(
        mut self,
        (what, ask): (&str, Ask),
        known: &Known,
        (connections, plan): (usize, &Plan),
    ) -> Row {
        let count = self.peers.len();
        let shares = (0..count).map(|nth| (connections + count - 1 - nth) / count);
        let targets: Vec<(Target, usize)> =
            self.peers.iter().map(|peer| peer.target.clone()).zip(shares).collect();
        let (cpu, log) = (self.cpu_micros(), self.log_written());
        let begun = Instant::now();
        let until = begun + plan.row;
        let loads = targets
            .iter()
            .map(|(target, connections)| client::load(target, ask, known, *connections, until));
        let mut latencies: Latencies = join_all(loads).await.into_iter().sum();
        let (seconds, answers) = (begun.elapsed().as_secs_f64(), latencies.len() as f64);
        let (later, written) = (self.cpu_micros(), self.log_written());
        let [p50, p99, _] = latencies.millis();
        let commits = self.peers.iter_mut().filter_map(Peer::orders_per_commit);
        let commits: Vec<f64> = if ask == Ask::Create { commits.collect() } else { Vec::new() };
        let row = Row {
            what: what.to_owned(),
            connections,
            rate: answers / seconds,
            p50,
            p99,
            cpu: [0, 1].map(|at| (later[at] - cpu[at]) / answers),
            orders_per_commit: commits.iter().copied().reduce(f64::max),
            log: [(written.0 - log.0) / answers / 1024.0, (written.1 - log.1) / answers],
        };
        println!("{row}");
        row
    }

    fn cpu_micros(&self) -> [f64; 2] {
        let servers = self.peers.iter().map(Peer::cpu_micros).sum();
        [servers, self.cluster.map_or(0.0, Cluster::cpu_micros)]
    }

    fn log_written(&self) -> (f64, f64) {
        match self.cluster {
            Some(cluster) => cluster.log_written(),
            None => (0.0, 0.0),
        }
    }
}

impl Row {
    const HEADING: &str = "| what | connections | answers/s | p50 ms | p99 ms | CPU µs an answer, \
         servers | PostgreSQL | orders a commit | KiB of log an order | whole pages an order |\n\
         |---|---|---|---|---|---|---|---|---|---|";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, connections, rate, p50, p99, cpu: [servers, database], .. } = self;
        let commit = self.orders_per_commit.map_or("-".to_owned(), |orders| format!("{orders:.1}"));
        let [written, pages] = self.log;
        write!(
            f,
            "| {what} | {connections} | {rate:.0} | {p50:.2} | {p99:.2} | {servers:.1} | \
             {database:.1} | {commit} | {written:.1} | {pages:.2} |"
        )
    }
}

/// Prints what the rows are to show; what was not measured is left out.
fn goals(rows: &[Row]) {
    println!("\n| goal | wanted | measured | |\n|---|---|---|---|");
    let rate = |what: &str, connections: usize| {
        let row = rows.iter().find(|row| row.what == what && row.connections == connections);
        row.map(|row| row.rate)
    };
    let bare = |orders: usize| rate(&format!("the same statements bare, {orders} a group"), 1);
    let [few, many] = BARE_GROUPS;
    for (connections, orders) in [(32, few), (256, many)] {
        let one = rate(DATABASE, connections);
        let of_bare = one.zip(bare(orders)).map(|(one, bare)| one / bare);
        goal(
            &format!("one server, {connections} connections, of {orders} bare"),
            Some(0.5),
            of_bare,
        );
        let of_one = rate(TWO, connections).zip(one).map(|(two, one)| two / one);
        goal(&format!("two servers, {connections} connections, of one"), Some(0.8), of_one);
    }
    for connections in [1, 32, 256] {
        let both = rate(DATABASE, connections).zip(rate(SQLITE, connections));
        let of_file = both.map(|(one, file)| one / file);
        goal(&format!("one server, {connections} connections, of SQLite"), None, of_file);
    }
}

fn goal(what: &str, wanted: Option<f64>, measured: Option<f64>) {
    let Some(measured) = measured else { return };
    let verdict = |wanted| if measured >= wanted { "met" } else { "missed" };
    let wanted = wanted.map(|wanted| (format!("at least {wanted:.2}"), verdict(wanted)));
    let (wanted, verdict) = wanted.unwrap_or(("-".to_owned(), ""));
    println!("| {what} | {wanted} | {measured:.2} | {verdict} |");
}

/// What an answer costs at each size, and how much more that is than at the first.
async fn growth(cluster: &Cluster, folder: &std::path::Path, plan: &Plan) {
    let (database, mut key) = (cluster.create_database(), None);
    let (url, client) = (cluster.url(&database), cluster.connect(&database).await);
    let (mut known, mut first) = (Known::default(), Vec::new());
    println!();
    for &parcels in &plan.parcels {
        {
            let peer = Peer::start_on(folder, ("first", &url), &mut key);
            let more = known.len() + SAMPLE;
            client::fill(&peer.target, &mut known, more, client::LOADERS).await;
        }
        fill(&client, parcels).await;
        println!("\nWith {parcels} parcels:\n\n{}", Row::HEADING);
        let mut rows = Vec::new();
        for (ask, connections) in [(Ask::Tracking, 32), (Ask::List, 8), (Ask::Create, 32)] {
            let peers = vec![Peer::start_on(folder, ("first", &url), &mut key)];
            let servers = Servers { peers, cluster: Some(cluster) };
            rows.push(servers.measure((ask.name(), ask), &known, (connections, plan)).await);
        }
        if first.is_empty() {
            first = rows;
        } else {
            println!(
                "\n| with {parcels} parcels, of the fewest | wanted | CPU an answer | p50 | |"
            );
            println!("|---|---|---|---|---|");
            for (row, first) in rows.iter().zip(&first) {
                let cpu = row.cpu.iter().sum::<f64>() / first.cpu.iter().sum::<f64>();
                let verdict = if cpu <= 1.1 { "met" } else { "missed" };
                let p50 = row.p50 / first.p50;
                println!("| {} | at most 1.10 | {cpu:.2} | {p50:.2} | {verdict} |", row.what);
            }
        }
    }
}

/// Fills the database by PostgreSQL's own means until it has so many parcels, of the last year, and as many living
/// keys: copies of a row that the service has written.
async fn fill(client: &Client, parcels: usize) {
    let count = client.query_one("SELECT count(*) FROM parcels", &[]).await.unwrap();
    let missing = i64::try_from(parcels).unwrap() - count.get::<_, i64>(0);
    if missing <= 0 {
        return;
    }
    let first: i64 = client.query_one("SELECT nextval('parcel_rows')", &[]).await.unwrap().get(0);
    let set = "SELECT setval('parcel_rows', $1)";
    client.execute(set, &[&(first + missing)]).await.unwrap();
    let random = "decode(md5(g || '-' || random()), 'hex')";
    let time = format!("t.created_at - (({missing} - g) * 31536000000 / {missing})::bigint");
    let of_parcels = [
        ("id", format!("{first} + g")),
        ("number", "'SBEC' || upper(substr(md5(g || '-' || random()), 1, 13))".to_owned()),
        ("public_id", random.to_owned()),
        ("created_at", time.clone()),
        ("updated_at", time),
        (
            "country",
            "(ARRAY['EC', 'CO', 'PE', 'MX', 'CL', 'GT', 'DO', 'HN'])[1 + g % 8]".to_owned(),
        ),
    ];
    let seen = format!("t.first_seen - (({missing} - g) * 72000000 / {missing})::bigint");
    let of_keys = [("key", random.to_owned()), ("first_seen", seen)];
    copies(client, ("parcels", missing), &of_parcels).await;
    copies(client, ("idempotency", missing), &of_keys).await;
    let counted = "INSERT INTO orders SELECT p.id, t.order_json \
         FROM (SELECT * FROM orders LIMIT 1) AS t, parcels AS p ON CONFLICT DO NOTHING; \
         DELETE FROM parcel_counts; DELETE FROM parcel_count_changes; \
         INSERT INTO parcel_counts (tenant, day, state, country, total) \
         SELECT tenant, created_at / 86400000, state, country, count(*) FROM parcels \
         GROUP BY 1, 2, 3, 4";
    client.batch_execute(counted).await.unwrap();
    for settle in ["VACUUM (ANALYZE, FREEZE)", "CHECKPOINT"] {
        client.batch_execute(settle).await.unwrap();
    }
}

/// Inserts copies of some row of a table, other in these columns; `g` is the number of the copy.
async fn copies(client: &Client, (table, count): (&str, i64), other: &[(&str, String)]) {
    let names = "SELECT column_name::text FROM information_schema.columns WHERE table_name = $1";
    let names: Vec<String> =
        client.query(names, &[&table]).await.unwrap().iter().map(|row| row.get(0)).collect();
    let value = |name: &String| {
        let other = other.iter().find(|(column, _)| column == name);
        other.map_or_else(|| format!("t.{name}"), |(_, value)| value.clone())
    };
    let values: Vec<String> = names.iter().map(value).collect();
    let sql = format!(
        "INSERT INTO {table} ({}) SELECT {} FROM (SELECT * FROM {table} LIMIT 1) AS t, \
         generate_series(1::bigint, {count}) AS g",
        names.join(", "),
        values.join(", ")
    );
    client.batch_execute(&sql).await.unwrap();
}
