//! Orders on a PostgreSQL cluster that is started for the run, by one server and by two, compared with a file and with
//! the bare statements sent over one connection, without the service.

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
    Plan,
    client::{CREATE, Known, ORDER, millis_since},
    peer::{Peer, cpu_micros},
    row::{GROUPS, POSTGRES_CPU, RATE, Row},
};

#[path = "../../tests/cluster/mod.rs"]
mod shared;
use shared::Cluster;

/// Sizes of bare groups: as many orders as 32 connections can have waiting, and a size beyond which little is gained.
const BARE_GROUPS: [usize; 2] = [32, 128];

/// A new database, in a file or on PostgreSQL with the default settings of `initdb`.
pub(crate) struct Database {
    pub(crate) url: String,
    cluster: Option<(Cluster, String)>,
}

impl Database {
    pub(crate) fn on_a_file(folder: &Path) -> Self {
        Self { url: format!("sqlite:{}/parcelo.db", folder.display()), cluster: None }
    }

    pub(crate) fn on_postgres() -> Self {
        let cluster = Cluster::start(&[]).expect("PostgreSQL is installed");
        let name = cluster.create_database();
        Self { url: cluster.url(&name), cluster: Some((cluster, name)) }
    }

    /// Returns the process id of PostgreSQL's main process.
    pub(crate) fn postmaster(&self) -> Option<u32> {
        let (cluster, _) = self.cluster.as_ref()?;
        let file = fs::read_to_string(format!("{}/data/postmaster.pid", cluster.folder())).unwrap();
        Some(file.lines().next().unwrap().parse().unwrap())
    }

    /// Connects to PostgreSQL.
    pub(crate) async fn connect(&self) -> Option<Client> {
        let (cluster, name) = self.cluster.as_ref()?;
        let given = format!("host={} user=parcelo dbname={name}", cluster.folder());
        let (client, connection) = tokio_postgres::connect(&given, NoTls).await.unwrap();
        tokio::spawn(connection);
        Some(client)
    }
}

pub(crate) async fn measure(folder: &Path, plan: &Plan) -> Vec<Row> {
    let (file, postgres) = (Database::on_a_file(folder), Database::on_postgres());
    let (known, mut keys, mut rows) = (Arc::new(Known::new()), [None, None], Vec::new());
    let kinds = [
        ("SQLite", 1, &file, 0),
        ("PostgreSQL, one server", 1, &postgres, 1),
        ("PostgreSQL, two servers", 2, &postgres, 1),
    ];
    Row::print_heading();
    for &connections in &plan.connections {
        for (what, count, database, key) in kinds {
            let start = |_| Peer::start_server(folder, &database.url, &mut keys[key]);
            let peers: Vec<Peer> = (0..count).map(start).collect();
            let (at, load) = ((&peers[..], database.postmaster()), (connections, plan.time()));
            rows.push(Row::measure(what, at, (CREATE, &known), load).await.print());
        }
    }
    for orders in BARE_GROUPS {
        rows.push(bare(&postgres, orders, plan.time()).await.print());
    }
    rows
}

/// Spreads a database's parcels over the last year and its idempotency keys over the last 20 hours, like those of a
/// service that has run for long.
pub(crate) async fn spread(database: &Database) {
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

/// Creates groups of orders for a while, without the service: all statements of a group are sent at once.
async fn bare(database: &Database, orders: usize, time: Duration) -> Row {
    let (client, postmaster) = database.connect().await.zip(database.postmaster()).unwrap();
    let statements = try_join_all(CREATE_STATEMENTS.map(|sql| client.prepare(sql))).await.unwrap();
    let (cpu, begun, mut millis) = (cpu_micros(postmaster), Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let group = Instant::now();
        create(&client, &statements, orders).await;
        millis.push(millis_since(group));
    }
    let (made, over) = ((millis.len() * orders) as f64, begun.elapsed());
    let what = format!("the same statements bare, {orders} a group");
    let mut row = Row::timed(&what, millis, over);
    row.figures[RATE] = Some(made / over.as_secs_f64());
    row.figures[POSTGRES_CPU] = Some((cpu_micros(postmaster) - cpu) / made);
    row.figures[GROUPS] = Some(orders as f64);
    row
}

async fn create(client: &Client, statements: &[Statement], orders: usize) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64;
    let random = || (0..orders).map(|_| fastrand::u128(..).to_be_bytes().to_vec()).collect();
    let (mut keys, public_ids): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (random(), random());
    // The format of the service's numbers: five characters for the second and eight random ones.
    let number = |_| Ulid::from_parts(now as u64 / 1_000, fastrand::u128(..)).to_string();
    let number = |nth| format!("SBEC{}", &number(nth)[5..18]);
    let mut numbers: Vec<String> = (0..orders).map(number).collect();
    // Sort them by their index, because the service writes them in this order.
    keys.sort_unstable();
    numbers.sort_unstable();
    /// Builds a column of the group, with the same value in every row.
    macro_rules! all {
        ($value:expr) => {
            &vec![$value; orders] as &(dyn ToSql + Sync)
        };
    }
    let (answer, print, tenant, state) = (vec![b'a'; 400], vec![7_u8; 32], 999_i64, 2_i16);
    let (place, day) = ("Quito, EC", now / 86_400_000);
    let key = [&keys, all!(tenant), all!(now), all!(print), all!(answer), &86_400_000_i64];
    let parcel = [all!(tenant), all!(1_i16), &numbers, &public_ids, all!(now), all!(place)];
    let course = [all!(place), all!("EC"), all!(20_500), all!(Some(0_i16)), all!(Some(now))];
    let order: [&(dyn ToSql + Sync); 3] = [all!(None::<&str>), all!(ORDER), &state];
    let (parcel, total) = ([&parcel[..], &course, &order].concat(), vec![orders as i64]);
    let count: [&(dyn ToSql + Sync); 5] =
        [&vec![tenant], &vec![day], &vec![state], &vec!["EC"], &total];
    let given = [&key[..], &parcel, &count];
    let all = statements.iter().zip(given).map(|(sql, given)| client.execute(sql, given));
    let (begin, commit) = (client.batch_execute("BEGIN"), client.batch_execute("COMMIT"));
    let ((), written, ()) = tokio::try_join!(begin, try_join_all(all), commit).unwrap();
    assert_eq!(written, [orders as u64, orders as u64, 1]);
}
