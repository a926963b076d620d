//! Creates on a PostgreSQL cluster that is started for the run, with one server and with two, compared with a file and
//! with the same SQL statements sent over one connection without the service.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use futures_util::future::try_join_all;
use parcelo_server::internals::CREATE_STATEMENTS;
use tokio_postgres::{Client, NoTls, Statement, types::ToSql};
use ulid::Ulid;

use crate::{
    Args,
    client::{CREATE, ORDER, StoredOrders, millis_since},
    row::{ANSWERS_PER_SECOND, ORDERS_PER_COMMIT, POSTGRES_CPU, Row},
    server_process::{ServerProcess, cpu_micros},
};

#[path = "../../tests/cluster/mod.rs"]
mod cluster;
use cluster::Cluster;

/// Numbers of orders per transaction in the runs without the service: as many as 32 connections can have waiting, and a
/// number beyond which little is gained.
const BARE_GROUP_SIZES: [usize; 2] = [32, 128];

/// Settings that operations.md recommends for thousands of orders a second.
const SETTINGS: [&str; 1] = ["max_wal_size = '8GB'"];

/// A new database, in a file or on PostgreSQL with the recommended settings.
pub(crate) struct Database {
    pub(crate) url: String,
    cluster: Option<(Cluster, String)>,
}

impl Database {
    pub(crate) fn new_sqlite(folder: &Path) -> Self {
        Self { url: format!("sqlite:{}/parcelo.db", folder.display()), cluster: None }
    }

    pub(crate) fn start_postgres() -> Self {
        let cluster = Cluster::start(&SETTINGS).expect("PostgreSQL is installed");
        let name = cluster.create_database();
        Self { url: cluster.url(&name), cluster: Some((cluster, name)) }
    }

    /// Returns the process id of PostgreSQL's main process, the postmaster.
    pub(crate) fn postmaster(&self) -> Option<u32> {
        let (cluster, _) = self.cluster.as_ref()?;
        let file = fs::read_to_string(format!("{}/data/postmaster.pid", cluster.folder())).unwrap();
        Some(file.lines().next().unwrap().parse().unwrap())
    }

    /// Connects to PostgreSQL.
    pub(crate) async fn connect(&self) -> Option<Client> {
        let (cluster, name) = self.cluster.as_ref()?;
        let parameters = format!("host={} user=parcelo dbname={name}", cluster.folder());
        let (client, connection) = tokio_postgres::connect(&parameters, NoTls).await.unwrap();
        tokio::spawn(connection);
        Some(client)
    }
}

/// Measures creates on `SQLite`, and on PostgreSQL with one server and with two.
pub(crate) async fn measure(folder: &Path, args: &Args) -> Vec<Row> {
    let (file, postgres) = (Database::new_sqlite(folder), Database::start_postgres());
    let (stored_orders, mut keys, mut rows) =
        (Arc::new(StoredOrders::new()), [None, None], Vec::new());
    let kinds = [
        ("SQLite", 1, &file, 0),
        ("PostgreSQL, one server", 1, &postgres, 1),
        ("PostgreSQL, two servers", 2, &postgres, 1),
    ];
    Row::print_heading();
    for &connections in &args.connections {
        for (name, count, database, key) in kinds {
            let start = |_| ServerProcess::start_server(folder, &database.url, &mut keys[key]);
            let servers: Vec<ServerProcess> = (0..count).map(start).collect();
            let (at, load) = ((&servers[..], database.postmaster()), (connections, args.time()));
            rows.push(Row::measure(name, at, (CREATE, &stored_orders), load).await.print());
        }
    }
    for orders in BARE_GROUP_SIZES {
        rows.push(measure_bare_statements(&postgres, orders, args.time()).await.print());
    }
    rows
}

/// Spreads the creation dates of the parcels over the last year and those of the idempotency keys over the last 20
/// hours, as in a service that has been running for a long time.
pub(crate) async fn spread_dates(database: &Database) {
    let Some(client) = database.connect().await else { return };
    let spread = "UPDATE parcels SET \
           created_at = (extract(epoch FROM now()) * 1000 - random() * 31536000000)::bigint, \
           country = (ARRAY['EC', 'CO', 'PE', 'MX', 'CL', 'GT', 'DO', 'HN'])[1 + id % 8]; \
         UPDATE idempotency \
           SET first_seen = (extract(epoch FROM now()) * 1000 - random() * 72000000)::bigint; \
         DELETE FROM parcel_counts; DELETE FROM parcel_count_changes; \
         INSERT INTO parcel_counts (tenant, day, state, country, total) \
         SELECT tenant, created_at / 86400000, state, country, count(*) FROM parcels \
         GROUP BY 1, 2, 3, 4";
    for sql in [spread, "VACUUM (FULL, ANALYZE, FREEZE)", "CHECKPOINT"] {
        client.batch_execute(sql).await.unwrap();
    }
}

/// Begins to read a snapshot, which keeps PostgreSQL from removing dead rows until the connection is dropped.
pub(crate) async fn hold_snapshot(database: &Database) -> Option<Client> {
    let client = database.connect().await?;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1").await.unwrap();
    Some(client)
}

/// Measures groups of orders whose statements are sent to PostgreSQL at once, without the service.
async fn measure_bare_statements(database: &Database, orders: usize, time: Duration) -> Row {
    let (client, postmaster) = database.connect().await.zip(database.postmaster()).unwrap();
    let statements = try_join_all(CREATE_STATEMENTS.map(|sql| client.prepare(sql))).await.unwrap();
    let (cpu, begun, mut millis) = (cpu_micros(postmaster), Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let group = Instant::now();
        create_group(&client, &statements, orders).await;
        millis.push(millis_since(group));
    }
    let (created, elapsed) = ((millis.len() * orders) as f64, begun.elapsed());
    let name = format!("the same statements bare, {orders} a group");
    let mut row = Row::from_latencies(&name, millis, elapsed);
    row.figures[ANSWERS_PER_SECOND] = Some(created / elapsed.as_secs_f64());
    row.figures[POSTGRES_CPU] = Some((cpu_micros(postmaster) - cpu) / created);
    row.figures[ORDERS_PER_COMMIT] = Some(orders as f64);
    row
}

async fn create_group(client: &Client, statements: &[Statement], orders: usize) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let random = || (0..orders).map(|_| fastrand::u128(..).to_be_bytes().to_vec()).collect();
    let (mut keys, public_ids): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (random(), random());
    // Numbers have the service's format: five characters for the second, then eight random ones.
    let number = |_| Ulid::from_parts(now as u64 / 1_000, fastrand::u128(..)).to_string();
    let number = |nth| format!("SBEC{}", &number(nth)[5..18]);
    let mut numbers: Vec<String> = (0..orders).map(number).collect();
    // Sorted as in the index, because the service writes them in this order.
    keys.sort_unstable();
    numbers.sort_unstable();
    /// Builds a column of the group, with the same value in every row.
    macro_rules! repeated {
        ($value:expr) => {
            &vec![$value; orders] as &(dyn ToSql + Sync)
        };
    }
    let (answer, fingerprint, tenant, state) = (vec![b'a'; 400], vec![7_u8; 32], 999_i64, 2_i16);
    let place = "Quito, EC";
    let key = [
        &keys,
        repeated!(tenant),
        repeated!(now),
        repeated!(fingerprint),
        repeated!(answer),
        &86_400_000_i64,
    ];
    let parcel = [
        repeated!(tenant),
        repeated!(1_i16),
        &numbers,
        &public_ids,
        repeated!(now),
        repeated!(place),
    ];
    let journey = [
        repeated!(place),
        repeated!("EC"),
        repeated!(20_500),
        repeated!(Some(0_i16)),
        repeated!(Some(now)),
    ];
    let order: [&(dyn ToSql + Sync); 3] = [repeated!(None::<&str>), repeated!(ORDER), &state];
    let parcel = [&parcel[..], &journey, &order].concat();
    let parameters = [&key[..], &parcel];
    let all =
        statements.iter().zip(parameters).map(|(sql, parameters)| client.execute(sql, parameters));
    let (begin, commit) = (client.batch_execute("BEGIN"), client.batch_execute("COMMIT"));
    let ((), written, ()) = tokio::try_join!(begin, try_join_all(all), commit).unwrap();
    assert_eq!(written, [orders as u64; 2]);
}
