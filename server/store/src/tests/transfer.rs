//! Copies between the engines: callers get the same answers from a copy as from the original, also to later writes.

use std::path::PathBuf;

use parcelo_domain::{sample::BY, webhooks::LEASE_MILLIS};
use tempfile::TempDir;
use tokio::task::LocalSet;

use super::{
    conformance::{NOW, SECRET, commit, create, create_parcel, production, row, sandbox, webhooks},
    first_seed,
    histories::History,
};
use crate::{
    CopiedTable, Store, StoreError,
    postgres::{
        Address,
        test_util::cluster::{empty_database, query, run_sql},
        transfer::Database,
    },
    sql::Sql,
    sqlite::tests::begin_reset,
    transfer::{
        from_file,
        tables::{columns, tables},
        to_file,
    },
};

/// Tables and columns that are not copied, with the reason.
const LEFT_BEHIND: &[(&str, &str)] = &[
    ("schema_migrations", "the target's own"),
    ("writers", "servers, which are stopped"),
    ("ended_generations", "what they had is not copied"),
    ("deleted_parcels", "copied as last_parcel_row"),
    ("leases", "copied as last_lease"),
    ("last_manifest.only", "always 1"),
    ("last_record", "a new file's records have new rows"),
    ("key_chunks", "a cache of the records"),
    ("key_runs", "a cache of the records"),
    ("run_keys", "a cache of the records"),
    ("outbox_counts", "triggers count"),
    ("parcel_totals", "triggers count"),
    ("parcel_count_changes", "copied with parcel_counts"),
    ("orders", "copied with parcels"),
    ("term_runs", "an index of the parcels"),
    ("term_pieces", "an index of the parcels"),
    ("term_queue", "an index of the parcels"),
    ("term_sweep", "an index of the parcels"),
    ("webhook_endpoints.last_success", "copied as webhook_successes"),
    ("webhook_endpoints.next_due", "a trigger sets it"),
    ("outbox.leased", "no server holds a lease"),
    ("outbox.leased_by", "no server holds a lease"),
    ("outbox.lease_until", "no server holds a lease"),
    ("mails.lease", "no server holds a lease"),
    ("parcels.number_is_indexed", "unread"),
    ("dashboard_flashes", "of servers of the version before, for minutes"),
    ("rate_limit_servers", "of servers, which are stopped"),
    ("rate_limit_windows", "of one second"),
    ("login_failures", "of minutes, and not in a file"),
    ("login_networks", "it only spares a few known networks a wait"),
];

/// The databases of a test: two files that do not exist yet, and two empty databases.
struct Databases {
    folder: TempDir,
    addresses: [Address; 2],
}

/// One of the databases: the first or second file, or the first or second database of PostgreSQL.
#[derive(Clone, Copy)]
enum TestDatabase {
    File(usize),
    Postgres(usize),
}
use TestDatabase::{File, Postgres};

impl Databases {
    /// Returns `None` if PostgreSQL is not installed.
    fn new() -> Option<Self> {
        let addresses = [empty_database()?, empty_database()?];
        Some(Self { folder: TempDir::new().unwrap(), addresses })
    }

    fn file(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("parcelo{number}.db"))
    }

    async fn open(&self, which: TestDatabase, secret: [u8; 32]) -> Store {
        self.try_open(which, secret).await.unwrap()
    }

    async fn try_open(&self, which: TestDatabase, secret: [u8; 32]) -> Result<Store, StoreError> {
        match which {
            File(number) => Store::open(&self.file(number), secret),
            Postgres(number) => Store::connect(self.addresses[number].clone(), secret).await,
        }
    }

    async fn copy(
        &self,
        from: TestDatabase,
        to: TestDatabase,
    ) -> Result<Vec<CopiedTable>, StoreError> {
        let progress = &mut |_: &str, _| ();
        match (from, to) {
            (File(from), Postgres(to)) => {
                from_file(&self.file(from), self.addresses[to].clone(), progress).await
            }
            (Postgres(from), File(to)) => {
                to_file(self.addresses[from].clone(), &self.file(to), progress).await
            }
            (File(_), File(_)) | (Postgres(_), Postgres(_)) => panic!("the same engine"),
        }
    }

    async fn refused(&self, from: TestDatabase, to: TestDatabase) -> String {
        self.copy(from, to).await.unwrap_err().to_string()
    }

    /// Begins a copy to a PostgreSQL database and abandons it, which leaves the schema. Returns `sql` in PostgreSQL's
    /// dialect.
    async fn begin_interrupted_copy(&self, number: usize, sql: &str) -> String {
        let begin = async {
            let target = Database::target(self.addresses[number].clone()).await.unwrap();
            Sql::Postgres(&target.db).in_dialect(sql).into_owned()
        };
        LocalSet::new().run_until(begin).await
    }

    fn change(&self, number: usize, sql: &str) {
        rusqlite::Connection::open(self.file(number)).unwrap().execute_batch(sql).unwrap();
    }
}

/// Runs a history of this many calls on a store.
async fn run_history(store: Store, seed: u64, steps: usize) -> History {
    let mut history = History::new(seed);
    history.begin(&store).await;
    for _ in 0..steps {
        history.step(&store).await;
    }
    store.close().await;
    history
}

fn sums(tables: &[CopiedTable]) -> Vec<String> {
    tables.iter().map(|table| format!("{} {:?}", table.name, table.target)).collect()
}

/// Checks that the copies hold the same as the original, and answer the next calls as it does.
async fn assert_alike(history: &History, stores: [Store; 3], seed: u64) {
    let expected = history.read_everything(&stores[0]).await;
    for store in &stores[1..] {
        let found = history.read_everything(store).await;
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{store:?}, seed {seed}");
        }
    }
    let mut histories = [history.clone(), history.clone(), history.clone()];
    for step in 0..60 {
        let mut answers = Vec::new();
        for (history, store) in histories.iter_mut().zip(&stores) {
            answers.push(history.step(store).await);
        }
        assert_eq!(answers[1], answers[0], "seed {seed}, step {step} after the copy");
        assert_eq!(answers[2], answers[0], "seed {seed}, step {step} after both copies");
    }
    for store in stores {
        store.close().await;
    }
}

async fn assert_copies_are_alike([original, copy, returned]: [TestDatabase; 3]) {
    let Some(all) = Databases::new() else { return };
    let seed = first_seed();
    let history = run_history(all.open(original, SECRET).await, seed, 200).await;
    let forth = all.copy(original, copy).await.unwrap();
    assert_eq!(sums(&all.copy(copy, returned).await.unwrap()), sums(&forth), "seed {seed}");
    assert!(forth.iter().any(|table| table.name == "parcels" && table.target.rows > 5));
    let stores = [
        all.open(original, SECRET).await,
        all.open(copy, [1; 32]).await,
        all.open(returned, [2; 32]).await,
    ];
    assert_alike(&history, stores, seed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_copied_there_and_back_gives_the_same_answers() {
    assert_copies_are_alike([File(0), Postgres(0), File(1)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn postgresql_copied_there_and_back_gives_the_same_answers() {
    assert_copies_are_alike([Postgres(0), File(0), Postgres(1)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_reset_s_rows_stay_behind_but_not_sessions() {
    let Some(all) = Databases::new() else { return };
    let store = all.open(File(0), SECRET).await;
    let account = store.account("shop", "acc_1".to_owned(), NOW).await.unwrap();
    store.set_password(account, "a hash".to_owned(), NOW, &BY).await.unwrap();
    let login = store.login("shop").await.unwrap().unwrap();
    assert!(store.begin_session(login, ([1; 32], NOW.plus(9)), None).await.unwrap());
    create_parcel(&store, sandbox(1), "SB-ENDED-00001").await;
    begin_reset(&store, sandbox(1)).await;
    create_parcel(&store, sandbox(1), "SB-LIVING-0001").await;
    store.close().await;
    let parcels = |tables: Vec<CopiedTable>| {
        tables.into_iter().find(|table| table.name == "parcels").map(|table| table.target.rows)
    };
    assert_eq!(parcels(all.copy(File(0), Postgres(0)).await.unwrap()), Some(1));
    let copy = all.open(Postgres(0), SECRET).await;
    assert!(row(&copy, "SB-ENDED-00001").await.is_none());
    assert!(row(&copy, "SB-LIVING-0001").await.is_some());
    assert!(copy.session(&[1; 32]).await.unwrap().is_some());
    copy.close().await;
    // A server was killed in the middle of a reset.
    let end = "UPDATE generations SET current = current + 4294967296; \
         INSERT INTO ended_generations (number) SELECT current - 4294967296 FROM generations";
    run_sql(&all.addresses[0], end);
    assert_eq!(parcels(all.copy(Postgres(0), File(1)).await.unwrap()), Some(0));
    let returned = all.open(File(1), SECRET).await;
    assert!(row(&returned, "SB-LIVING-0001").await.is_none());
    assert!(returned.session(&[1; 32]).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_reuses_no_row_id_and_no_lease_number() {
    let Some(all) = Databases::new() else { return };
    let store = all.open(File(0), SECRET).await;
    create_parcel(&store, production(1), "EC-FIRST-0001").await;
    let parcel = create_parcel(&store, sandbox(1), "SB-LAST-00001").await;
    // The last one is deleted, and its row with it.
    store.purge(NOW).await.unwrap();
    store.close().await;
    all.change(0, "INSERT INTO manifests VALUES (1, 3, '176-12345675', x'01', 0, x'')");
    all.change(0, "UPDATE last_manifest SET id = 9");
    all.copy(File(0), Postgres(0)).await.unwrap();
    let copy = all.open(Postgres(0), SECRET).await;
    let next = create_parcel(&copy, sandbox(1), "SB-NEXT-00001").await;
    assert!(next.key > parcel.key, "{next:?}");
    assert_eq!(query(&all.addresses[0], "SELECT nextval('manifests_id_seq')"), "10");
    copy.purge(NOW).await.unwrap();
    copy.close().await;
    all.copy(Postgres(0), File(1)).await.unwrap();
    let returned = all.open(File(1), SECRET).await;
    assert!(create_parcel(&returned, sandbox(1), "SB-NEXT-00002").await.key > next.key);
    let last = "SELECT id FROM last_manifest";
    let file = rusqlite::Connection::open(all.file(1)).unwrap();
    assert_eq!(file.query_row(last, [], |row| row.get(0)), Ok(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn leased_events_are_due_in_a_copy_when_their_lease_ends() {
    let Some(all) = Databases::new() else { return };
    let server = all.open(Postgres(0), SECRET).await;
    server.set_endpoint(webhooks::endpoint(sandbox(1)), &BY).await.unwrap();
    webhooks::enqueue(&server, sandbox(1), 1).await;
    assert_eq!(webhooks::lease(&server, sandbox(1), 1, NOW).await.len(), 1);
    server.close().await;
    all.copy(Postgres(0), File(0)).await.unwrap();
    let copy = all.open(File(0), SECRET).await;
    assert_eq!(copy.next_delivery().await.unwrap(), Some(NOW.plus(LEASE_MILLIS)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_use_cannot_be_copied() {
    let Some(all) = Databases::new() else { return };
    for (from, to, reason) in [
        (File(0), Postgres(1), "another server uses the database"),
        (Postgres(0), File(1), "servers or commands are connected"),
    ] {
        let server = all.open(from, SECRET).await;
        let refused = all.refused(from, to).await;
        assert!(refused.contains(reason), "{refused}");
        server.close().await;
    }
    assert!(!all.file(1).exists());
    let copying = async {
        let _source = Database::source(all.addresses[0].clone()).await.unwrap();
        all.try_open(Postgres(0), SECRET).await.map(drop)
    };
    let refused = LocalSet::new().run_until(copying).await.unwrap_err().to_string();
    assert!(refused.contains("it is being copied"), "{refused}");
    all.open(Postgres(0), SECRET).await.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_data_and_a_source_of_another_schema_are_refused() {
    let Some(all) = Databases::new() else { return };
    let is_refused = async |from, to, reason| {
        let refused = all.refused(from, to).await;
        assert!(refused.contains(reason), "{refused}");
    };
    run_history(all.open(File(0), SECRET).await, 1, 20).await;
    all.open(Postgres(0), [1; 32]).await.close().await;
    is_refused(File(0), Postgres(0), "is not empty (its table meta has rows)").await;
    std::fs::write(all.file(1), "someone's").unwrap();
    is_refused(Postgres(0), File(1), "exists already").await;
    assert_eq!(std::fs::read(all.file(1)).unwrap(), b"someone's");
    all.change(0, "PRAGMA user_version = 16");
    is_refused(File(0), Postgres(1), "it has schema 16 and this program's is").await;
    is_refused(Postgres(1), File(2), "not a database of Parcelo's, or empty").await;
}

/// A row that PostgreSQL cannot take stops the copy. The target accepts no server, and accepts another copy.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_copy_takes_no_server_and_can_be_repeated() {
    let Some(all) = Databases::new() else { return };
    let history = run_history(all.open(File(0), SECRET).await, 3, 100).await;
    all.change(0, "UPDATE accounts SET name = 'a' || char(0) WHERE id = 1");
    let refused = all.refused(File(0), Postgres(0)).await;
    assert!(refused.contains("the table accounts: the column name of a row holds"), "{refused}");
    assert!(refused.contains("U+0000"), "{refused}");
    let unfinished = all.try_open(Postgres(0), SECRET).await.unwrap_err().to_string();
    assert!(unfinished.contains("a copy into it was not finished"), "{unfinished}");
    all.change(0, "UPDATE accounts SET name = 'shop' WHERE id = 1");
    all.copy(File(0), Postgres(0)).await.unwrap();
    let (copy, original) = (all.open(Postgres(0), [1; 32]).await, all.open(File(0), SECRET).await);
    assert_eq!(history.read_everything(&copy).await, history.read_everything(&original).await);
    copy.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_differs_is_detected_and_undone() {
    let Some(all) = Databases::new() else { return };
    let store = all.open(File(0), SECRET).await;
    commit(&store, create(sandbox(1), "SB-OTHER-0001", 1)).await;
    store.close().await;
    // Someone adds a trigger to the schema that an abandoned copy has left.
    let spoil = "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN NEW.destination = upper(NEW.destination); RETURN NEW; END'; \
         CREATE TRIGGER spoil BEFORE INSERT ON parcels FOR EACH ROW EXECUTE FUNCTION spoil()";
    run_sql(&all.addresses[0], &all.begin_interrupted_copy(0, spoil).await);
    let refused = all.refused(File(0), Postgres(0)).await;
    assert!(refused.contains("the table parcels has 1 rows with the checksum"), "{refused}");
    let unfinished = all.try_open(Postgres(0), SECRET).await.unwrap_err().to_string();
    assert!(unfinished.contains("a copy into it was not finished"), "{unfinished}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_table_of_both_engines_is_copied_without_being_named() {
    let Some(all) = Databases::new() else { return };
    all.open(File(0), SECRET).await.close().await;
    let table = "CREATE TABLE notes (id {bigint GENERATED ALWAYS AS IDENTITY|INTEGER} PRIMARY KEY, \
         is_read {boolean|INTEGER} NOT NULL, words text){| STRICT}";
    run_sql(&all.addresses[0], &all.begin_interrupted_copy(0, table).await);
    let db = rusqlite::Connection::open_in_memory().unwrap();
    all.change(0, &Sql::Sqlite(&db).in_dialect(table));
    all.change(0, "INSERT INTO notes VALUES (1, 0, NULL), (7, 1, 'left at the gate')");
    all.copy(File(0), Postgres(0)).await.unwrap();
    all.open(Postgres(0), SECRET).await.close().await;
    run_sql(&all.addresses[0], "INSERT INTO notes (is_read) VALUES (false)");
    let copied = query(&all.addresses[0], "SELECT * FROM notes");
    assert_eq!(copied, "1|f|\n7|t|left at the gate\n8|f|");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_and_column_is_copied_or_left_behind_for_a_reason() {
    let Some(all) = Databases::new() else { return };
    all.open(File(0), SECRET).await.close().await;
    all.open(Postgres(0), SECRET).await.close().await;
    let file = rusqlite::Connection::open(all.file(0)).unwrap();
    let read = async {
        let source = Database::source(all.addresses[0].clone()).await.unwrap();
        let (file, postgres) = (Sql::Sqlite(&file), Sql::Postgres(&source.db));
        let mut found = columns(file).await.unwrap();
        found.extend(columns(postgres).await.unwrap());
        (found, tables(file, postgres).await.unwrap())
    };
    let (found, copied) = LocalSet::new().run_until(read).await;
    assert!(found.len() > 200, "{}", found.len());
    for [table, column, _] in found {
        let is_copied =
            copied.iter().any(|copied| copied.name == table && copied.columns.contains(&column));
        // A record's row in a file: PostgreSQL has none, and a new file draws new ones.
        let is_row = (table.as_str(), column.as_str()) == ("idempotency", "id");
        let is_left = LEFT_BEHIND
            .iter()
            .any(|(left, _)| *left == table || *left == format!("{table}.{column}"));
        assert!(is_copied || is_row || is_left, "{table}.{column}: copy it, or say why not");
    }
}
