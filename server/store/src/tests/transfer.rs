//! Copies between the engines: callers get the same answers from a copy as from the original, also to later writes.

use std::path::PathBuf;

use parcelo_domain::{sample::TEST_AUTHOR, webhooks::LEASE_MILLIS};
use tempfile::TempDir;
use tokio::task::LocalSet;

use super::{
    conformance::{
        NOW, SECRET, accounts::new_session, commit, create, create_parcel, production, row,
        sandbox, webhooks,
    },
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
const NOT_COPIED: &[(&str, &str)] = &[
    ("schema_migrations", "the target has its own"),
    ("writers", "lists servers, which are stopped"),
    ("ended_generations", "their rows are not copied"),
    ("deleted_parcels", "copied as last_parcel_row"),
    ("leases", "copied as last_lease"),
    ("last_manifest.only", "always 1"),
    ("last_record", "a new file's records have new rows"),
    ("key_chunks", "a cache of the records"),
    ("key_runs", "a cache of the records"),
    ("run_keys", "a cache of the records"),
    ("outbox_counts", "maintained by triggers"),
    ("parcel_totals", "maintained by triggers"),
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
    ("parcels.number_is_indexed", "never read"),
    ("dashboard_flashes", "used only by servers of the previous version"),
    ("rate_limit_servers", "lists servers, which are stopped"),
    ("rate_limit_windows", "valid for one second"),
    ("login_failures", "valid for minutes, and not kept in a file"),
    ("login_networks", "it only spares a few known networks a wait"),
];

/// The databases of a test: two files that do not exist yet, and two empty databases.
struct Databases {
    folder: TempDir,
    addresses: [Address; 2],
}

/// One of the databases: the first or second file, or the first or second database of PostgreSQL.
#[derive(Clone, Copy)]
enum Location {
    File(usize),
    Postgres(usize),
}
use Location::{File, Postgres};

impl Databases {
    /// Returns `None` if PostgreSQL is not installed.
    fn new() -> Option<Self> {
        let addresses = [empty_database()?, empty_database()?];
        Some(Self { folder: TempDir::new().unwrap(), addresses })
    }

    fn file(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("parcelo{number}.db"))
    }

    async fn open(&self, database: Location, secret: [u8; 32]) -> Store {
        self.try_open(database, secret).await.unwrap()
    }

    async fn try_open(&self, database: Location, secret: [u8; 32]) -> Result<Store, StoreError> {
        match database {
            File(number) => Store::open(&self.file(number), secret),
            Postgres(number) => Store::connect(self.addresses[number].clone(), secret).await,
        }
    }

    async fn copy(&self, from: Location, to: Location) -> Result<Vec<CopiedTable>, StoreError> {
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

    /// Returns the error of a copy that is refused.
    async fn copy_error(&self, from: Location, to: Location) -> String {
        self.copy(from, to).await.unwrap_err().to_string()
    }

    /// Begins a copy to a PostgreSQL database and abandons it, which leaves the schema there. Returns `sql` translated
    /// into PostgreSQL's dialect.
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

fn table_checksums(tables: &[CopiedTable]) -> Vec<String> {
    tables.iter().map(|table| format!("{} {:?}", table.name, table.target)).collect()
}

/// Checks that the copies hold the same data as the original, and give the same answers to further calls.
async fn assert_same_data_and_answers(history: &History, stores: [Store; 3], seed: u64) {
    let expected = history.read_all_data(&stores[0]).await;
    for store in &stores[1..] {
        let found = history.read_all_data(store).await;
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

async fn assert_copies_are_alike([original, copy, returned]: [Location; 3]) {
    let Some(databases) = Databases::new() else { return };
    let seed = first_seed();
    let history = run_history(databases.open(original, SECRET).await, seed, 200).await;
    let copied_tables = databases.copy(original, copy).await.unwrap();
    let copied_back = databases.copy(copy, returned).await.unwrap();
    assert_eq!(table_checksums(&copied_back), table_checksums(&copied_tables), "seed {seed}");
    assert!(copied_tables.iter().any(|table| table.name == "parcels" && table.target.rows > 5));
    let stores = [
        databases.open(original, SECRET).await,
        databases.open(copy, [1; 32]).await,
        databases.open(returned, [2; 32]).await,
    ];
    assert_same_data_and_answers(&history, stores, seed).await;
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
async fn rows_of_an_unfinished_reset_are_not_copied_but_sessions_are() {
    let Some(databases) = Databases::new() else { return };
    let store = databases.open(File(0), SECRET).await;
    let account = store.account("shop", "acc_1".to_owned(), NOW).await.unwrap();
    store.set_password(account, "a hash".to_owned(), NOW, &TEST_AUTHOR).await.unwrap();
    let login = store.login("shop").await.unwrap().unwrap();
    assert!(store.begin_session(login, new_session(1, 9), None).await.unwrap());
    create_parcel(&store, sandbox(1), "SB-ENDED-00001").await;
    begin_reset(&store, sandbox(1)).await;
    create_parcel(&store, sandbox(1), "SB-LIVING-0001").await;
    store.close().await;
    let parcels = |tables: Vec<CopiedTable>| {
        tables.into_iter().find(|table| table.name == "parcels").map(|table| table.target.rows)
    };
    assert_eq!(parcels(databases.copy(File(0), Postgres(0)).await.unwrap()), Some(1));
    let copy = databases.open(Postgres(0), SECRET).await;
    assert!(row(&copy, "SB-ENDED-00001").await.is_none());
    assert!(row(&copy, "SB-LIVING-0001").await.is_some());
    assert!(copy.session(&[1; 32]).await.unwrap().is_some());
    copy.close().await;
    // A server was killed in the middle of a reset.
    let end = "UPDATE generations SET current = current + 4294967296; \
         INSERT INTO ended_generations (number) SELECT current - 4294967296 FROM generations";
    run_sql(&databases.addresses[0], end);
    assert_eq!(parcels(databases.copy(Postgres(0), File(1)).await.unwrap()), Some(0));
    let returned = databases.open(File(1), SECRET).await;
    assert!(row(&returned, "SB-LIVING-0001").await.is_none());
    assert!(returned.session(&[1; 32]).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_reuses_no_row_id_and_no_lease_number() {
    let Some(databases) = Databases::new() else { return };
    let store = databases.open(File(0), SECRET).await;
    create_parcel(&store, production(1), "EC-FIRST-0001").await;
    let parcel = create_parcel(&store, sandbox(1), "SB-LAST-00001").await;
    // The last one is deleted, and its row with it.
    store.purge(NOW).await.unwrap();
    store.close().await;
    databases.change(0, "INSERT INTO manifests VALUES (1, 3, '176-12345675', x'01', 0, x'')");
    databases.change(0, "UPDATE last_manifest SET id = 9");
    databases.copy(File(0), Postgres(0)).await.unwrap();
    let copy = databases.open(Postgres(0), SECRET).await;
    let next = create_parcel(&copy, sandbox(1), "SB-NEXT-00001").await;
    assert!(next.key > parcel.key, "{next:?}");
    assert_eq!(query(&databases.addresses[0], "SELECT nextval('manifests_id_seq')"), "10");
    copy.purge(NOW).await.unwrap();
    copy.close().await;
    databases.copy(Postgres(0), File(1)).await.unwrap();
    let returned = databases.open(File(1), SECRET).await;
    assert!(create_parcel(&returned, sandbox(1), "SB-NEXT-00002").await.key > next.key);
    let last = "SELECT id FROM last_manifest";
    let file = rusqlite::Connection::open(databases.file(1)).unwrap();
    assert_eq!(file.query_row(last, [], |row| row.get(0)), Ok(10));
}

#[tokio::test(flavor = "multi_thread")]
async fn leased_events_are_due_in_a_copy_when_their_lease_ends() {
    let Some(databases) = Databases::new() else { return };
    let server = databases.open(Postgres(0), SECRET).await;
    server.set_endpoint(webhooks::endpoint(sandbox(1)), &TEST_AUTHOR).await.unwrap();
    webhooks::enqueue(&server, sandbox(1), 1).await;
    assert_eq!(webhooks::lease(&server, sandbox(1), 1, NOW).await.len(), 1);
    server.close().await;
    databases.copy(Postgres(0), File(0)).await.unwrap();
    let copy = databases.open(File(0), SECRET).await;
    assert_eq!(copy.next_delivery().await.unwrap(), Some(NOW.plus(LEASE_MILLIS)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_use_cannot_be_copied() {
    let Some(databases) = Databases::new() else { return };
    for (from, to, reason) in [
        (File(0), Postgres(1), "another server uses the database"),
        (Postgres(0), File(1), "servers or commands are connected"),
    ] {
        let server = databases.open(from, SECRET).await;
        let refused = databases.copy_error(from, to).await;
        assert!(refused.contains(reason), "{refused}");
        server.close().await;
    }
    assert!(!databases.file(1).exists());
    let copying = async {
        let _source = Database::source(databases.addresses[0].clone()).await.unwrap();
        databases.try_open(Postgres(0), SECRET).await.map(drop)
    };
    let refused = LocalSet::new().run_until(copying).await.unwrap_err().to_string();
    assert!(refused.contains("it is being copied"), "{refused}");
    databases.open(Postgres(0), SECRET).await.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_target_with_data_or_a_source_of_another_schema_is_refused() {
    let Some(databases) = Databases::new() else { return };
    let assert_refused = async |from, to, reason| {
        let refused = databases.copy_error(from, to).await;
        assert!(refused.contains(reason), "{refused}");
    };
    run_history(databases.open(File(0), SECRET).await, 1, 20).await;
    databases.open(Postgres(0), [1; 32]).await.close().await;
    assert_refused(File(0), Postgres(0), "is not empty (its table meta has rows)").await;
    std::fs::write(databases.file(1), "someone's").unwrap();
    assert_refused(Postgres(0), File(1), "exists already").await;
    assert_eq!(std::fs::read(databases.file(1)).unwrap(), b"someone's");
    databases.change(0, "PRAGMA user_version = 16");
    assert_refused(File(0), Postgres(1), "it has schema 16 and this program's is").await;
    assert_refused(Postgres(1), File(2), "not a database of Parcelo's, or empty").await;
}

/// A row that PostgreSQL cannot store stops the copy. No server can use the target until a copy into it succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn no_server_starts_on_an_interrupted_copy_until_it_is_repeated() {
    let Some(databases) = Databases::new() else { return };
    let history = run_history(databases.open(File(0), SECRET).await, 3, 100).await;
    databases.change(0, "UPDATE accounts SET name = 'a' || char(0) WHERE id = 1");
    let refused = databases.copy_error(File(0), Postgres(0)).await;
    assert!(refused.contains("the table accounts: the column name of a row holds"), "{refused}");
    assert!(refused.contains("U+0000"), "{refused}");
    let unfinished = databases.try_open(Postgres(0), SECRET).await.unwrap_err().to_string();
    assert!(unfinished.contains("a copy into it was not finished"), "{unfinished}");
    databases.change(0, "UPDATE accounts SET name = 'shop' WHERE id = 1");
    databases.copy(File(0), Postgres(0)).await.unwrap();
    let (copy, original) =
        (databases.open(Postgres(0), [1; 32]).await, databases.open(File(0), SECRET).await);
    assert_eq!(history.read_all_data(&copy).await, history.read_all_data(&original).await);
    copy.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_differs_is_detected_and_undone() {
    let Some(databases) = Databases::new() else { return };
    let store = databases.open(File(0), SECRET).await;
    commit(&store, create(sandbox(1), "SB-OTHER-0001", 1)).await;
    store.close().await;
    // Someone adds a trigger to the schema that an abandoned copy has left.
    let spoil = "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN NEW.destination = upper(NEW.destination); RETURN NEW; END'; \
         CREATE TRIGGER spoil BEFORE INSERT ON parcels FOR EACH ROW EXECUTE FUNCTION spoil()";
    run_sql(&databases.addresses[0], &databases.begin_interrupted_copy(0, spoil).await);
    let refused = databases.copy_error(File(0), Postgres(0)).await;
    assert!(refused.contains("the table parcels has 1 rows with the checksum"), "{refused}");
    let unfinished = databases.try_open(Postgres(0), SECRET).await.unwrap_err().to_string();
    assert!(unfinished.contains("a copy into it was not finished"), "{unfinished}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_table_of_both_engines_is_copied_without_being_named() {
    let Some(databases) = Databases::new() else { return };
    databases.open(File(0), SECRET).await.close().await;
    let table = "CREATE TABLE notes (id {bigint GENERATED ALWAYS AS IDENTITY|INTEGER} PRIMARY KEY, \
         is_read {boolean|INTEGER} NOT NULL, words text){| STRICT}";
    run_sql(&databases.addresses[0], &databases.begin_interrupted_copy(0, table).await);
    let db = rusqlite::Connection::open_in_memory().unwrap();
    databases.change(0, &Sql::Sqlite(&db).in_dialect(table));
    databases.change(0, "INSERT INTO notes VALUES (1, 0, NULL), (7, 1, 'left at the gate')");
    databases.copy(File(0), Postgres(0)).await.unwrap();
    databases.open(Postgres(0), SECRET).await.close().await;
    run_sql(&databases.addresses[0], "INSERT INTO notes (is_read) VALUES (false)");
    let copied = query(&databases.addresses[0], "SELECT * FROM notes");
    assert_eq!(copied, "1|f|\n7|t|left at the gate\n8|f|");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_and_column_is_copied_or_left_behind_for_a_reason() {
    let Some(databases) = Databases::new() else { return };
    databases.open(File(0), SECRET).await.close().await;
    databases.open(Postgres(0), SECRET).await.close().await;
    let file = rusqlite::Connection::open(databases.file(0)).unwrap();
    let read = async {
        let source = Database::source(databases.addresses[0].clone()).await.unwrap();
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
        // Only a file has row ids of records, and a new file assigns new ones.
        let is_row = (table.as_str(), column.as_str()) == ("idempotency", "id");
        let is_left = NOT_COPIED
            .iter()
            .any(|(left, _)| *left == table || *left == format!("{table}.{column}"));
        assert!(is_copied || is_row || is_left, "{table}.{column}: copy it, or say why not");
    }
}
