//! A database that was copied to the other engine is the same database for its callers, and continues as the original
//! would.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::task::LocalSet;

use super::{
    conformance::{NOW, SECRET, create, made, row, sandbox},
    first_seed,
    histories::History,
};
use crate::{
    domain::audit::BY,
    store::{
        CommitOutcome, CopiedTable, Store, StoreError,
        postgres::{
            Address,
            tests::cluster::{empty_database as database, run_sql},
            transfer::Database,
        },
        sqlite::tests::begin_reset,
        transfer::{TABLES, from_file, to_file},
    },
};

/// Tables and columns that are not copied, with the reason. The rest of both schemas is in `TABLES`.
const LEFT_BEHIND: &[(&str, &str)] = &[
    ("schema_migrations", "the target's own"),
    ("writers", "servers, which are stopped"),
    ("ended_generations", "what they had is not copied"),
    ("deleted_parcels", "copied as last_parcel_row"),
    ("leases", "copied as last_lease"),
    ("last_manifest", "reckoned from what is copied"),
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
    ("outbox_undone", "a partition of the outbox"),
    ("outbox_done", "a partition of the outbox"),
    ("parcels.number_is_indexed", "unread"),
    ("dashboard_flashes", "of servers of the version before, for minutes"),
    ("rate_limit_servers", "of servers, which are stopped"),
    ("rate_limit_windows", "of one second"),
    ("login_failures", "of minutes, and not in a file"),
    ("login_networks", "it only spares a few known networks a wait"),
];

struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

async fn copy_to(file: &Path, address: &Address) -> Result<Vec<CopiedTable>, StoreError> {
    from_file(file, address.clone(), &mut |_, _| ()).await
}

async fn copy_back(address: &Address, file: &Path) -> Result<Vec<CopiedTable>, StoreError> {
    to_file(address.clone(), file, &mut |_, _| ()).await
}

/// Runs a history of this many calls on a store.
async fn lived(store: Store, seed: u64, steps: usize) -> History {
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
    let expected = history.everything(&stores[0]).await;
    for store in &stores[1..] {
        let found = history.everything(store).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_a_file_and_the_copy_of_that_answer_as_the_file() {
    let seed = first_seed();
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let (file, back) = (folder.file("parcelo.db"), folder.file("back.db"));
    let history = lived(Store::open(&file, SECRET).unwrap(), seed, 200).await;
    let forth = copy_to(&file, &address).await.unwrap();
    assert_eq!(sums(&copy_back(&address, &back).await.unwrap()), sums(&forth), "seed {seed}");
    assert!(forth.iter().any(|table| table.name == "parcels" && table.target.rows > 5));
    let original = Store::open(&file, SECRET).unwrap();
    let copy = Store::connect(address, [1; 32]).await.unwrap();
    let returned = Store::open(&back, [2; 32]).unwrap();
    assert_alike(&history, [original, copy, returned], seed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_of_postgresql_and_its_copy_answer_as_the_original() {
    let seed = first_seed();
    let (Some(address), Some(other)) = (database(), database()) else { return };
    let file = TestFolder::new();
    let file = (file.file("parcelo.db"), file);
    let store = Store::connect(address.clone(), SECRET).await.unwrap();
    let history = lived(store, seed, 200).await;
    let back = copy_back(&address, &file.0).await.unwrap();
    assert_eq!(sums(&copy_to(&file.0, &other).await.unwrap()), sums(&back), "seed {seed}");
    let original = Store::connect(address, [1; 32]).await.unwrap();
    let copy = Store::open(&file.0, [2; 32]).unwrap();
    let returned = Store::connect(other, [3; 32]).await.unwrap();
    assert_alike(&history, [original, copy, returned], seed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_reset_s_rows_stay_behind_but_not_sessions() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let (file, back) = (folder.file("parcelo.db"), folder.file("back.db"));
    let store = Store::open(&file, SECRET).unwrap();
    let account = store.account("shop", "acc_1".to_owned(), NOW).await.unwrap();
    store.set_password(account, "a hash".to_owned(), NOW, &BY).await.unwrap();
    let login = store.login("shop").await.unwrap().unwrap();
    assert!(store.begin_session(login, ([1; 32], NOW.plus(9)), None).await.unwrap());
    made(&store, sandbox(1), "SB-ENDED-00001").await;
    begin_reset(&store, sandbox(1)).await;
    made(&store, sandbox(1), "SB-LIVING-0001").await;
    store.close().await;
    let parcels = |tables: Vec<CopiedTable>| {
        tables.into_iter().find(|table| table.name == "parcels").map(|table| table.target.rows)
    };
    assert_eq!(parcels(copy_to(&file, &address).await.unwrap()), Some(1));
    let copy = Store::connect(address.clone(), SECRET).await.unwrap();
    assert!(row(&copy, "SB-ENDED-00001").await.is_none());
    assert!(row(&copy, "SB-LIVING-0001").await.is_some());
    assert!(copy.session(&[1; 32]).await.unwrap().is_some());
    copy.close().await;
    // A server was killed in the middle of a reset.
    let end = "UPDATE generations SET current = current + 4294967296; \
         INSERT INTO ended_generations (number) SELECT current - 4294967296 FROM generations";
    run_sql(&address, end);
    assert_eq!(parcels(copy_back(&address, &back).await.unwrap()), Some(0));
    let returned = Store::open(&back, SECRET).unwrap();
    assert!(row(&returned, "SB-LIVING-0001").await.is_none());
    assert!(returned.session(&[1; 32]).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_row_and_no_lease_of_the_original_is_given_again() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let (file, back) = (folder.file("parcelo.db"), folder.file("back.db"));
    let store = Store::open(&file, SECRET).unwrap();
    let parcel = made(&store, sandbox(1), "SB-LAST-00001").await;
    // It is deleted, and its row with it.
    store.purge(NOW).await.unwrap();
    store.close().await;
    copy_to(&file, &address).await.unwrap();
    let copy = Store::connect(address.clone(), SECRET).await.unwrap();
    let next = made(&copy, sandbox(1), "SB-NEXT-00001").await;
    assert!(next.key > parcel.key, "{next:?}");
    copy.purge(NOW).await.unwrap();
    copy.close().await;
    copy_back(&address, &back).await.unwrap();
    let returned = Store::open(&back, SECRET).unwrap();
    assert!(made(&returned, sandbox(1), "SB-NEXT-00002").await.key > next.key);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_server_holds_is_not_copied() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let file = folder.file("parcelo.db");
    let store = Store::open(&file, SECRET).unwrap();
    let refused = copy_to(&file, &address).await.unwrap_err();
    assert!(matches!(refused, StoreError::InUse { .. }), "{refused}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_with_servers_is_not_copied() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let server = Store::connect(address.clone(), SECRET).await.unwrap();
    let refused = copy_back(&address, &folder.file("copy.db")).await.unwrap_err().to_string();
    assert!(refused.contains("servers or commands are connected"), "{refused}");
    assert!(!folder.file("copy.db").exists());
    server.close().await;
    copy_back(&address, &folder.file("copy.db")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_server_starts_while_a_database_is_copied() {
    let Some(address) = database() else { return };
    Store::connect(address.clone(), SECRET).await.unwrap().close().await;
    let copying = async {
        let _source = Database::source(address.clone()).await.unwrap();
        Store::connect(address.clone(), SECRET).await.map(drop)
    };
    let refused = LocalSet::new().run_until(copying).await.unwrap_err().to_string();
    assert!(refused.contains("it is being copied"), "{refused}");
    Store::connect(address, SECRET).await.unwrap().close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_holds_anything_is_not_copied_over() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let (file, back) = (folder.file("parcelo.db"), folder.file("back.db"));
    lived(Store::open(&file, SECRET).unwrap(), 1, 20).await;
    Store::connect(address.clone(), [1; 32]).await.unwrap().close().await;
    let refused = copy_to(&file, &address).await.unwrap_err().to_string();
    assert!(refused.contains("is not empty (its table meta has rows)"), "{refused}");
    std::fs::write(&back, "someone's").unwrap();
    let refused = copy_back(&address, &back).await.unwrap_err();
    assert!(matches!(refused, StoreError::Exists { .. }), "{refused}");
    assert_eq!(std::fs::read(&back).unwrap(), b"someone's");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_of_another_version_is_not_copied() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let file = folder.file("parcelo.db");
    lived(Store::open(&file, SECRET).unwrap(), 1, 5).await;
    rusqlite::Connection::open(&file).unwrap().pragma_update(None, "user_version", 16).unwrap();
    let refused = copy_to(&file, &address).await.unwrap_err().to_string();
    assert!(refused.contains("it has schema 16 and this program's is"), "{refused}");
    let refused = copy_back(&address, &folder.file("copy.db")).await.unwrap_err().to_string();
    assert!(refused.contains("not a database of Parcelo's, or empty"), "{refused}");
}

/// A row that PostgreSQL cannot take stops the copy. The target accepts no server, and accepts another copy.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_copy_takes_no_server_and_can_be_repeated() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let file = folder.file("parcelo.db");
    let history = lived(Store::open(&file, SECRET).unwrap(), 3, 100).await;
    let change = |sql: &str| rusqlite::Connection::open(&file).unwrap().execute(sql, []).unwrap();
    change("UPDATE accounts SET name = 'a' || char(0) WHERE id = 1");
    let refused = copy_to(&file, &address).await.unwrap_err().to_string();
    assert!(refused.contains("the table accounts: the column name of a row holds"), "{refused}");
    assert!(refused.contains("U+0000"), "{refused}");
    let unfinished = Store::connect(address.clone(), SECRET).await.unwrap_err().to_string();
    assert!(unfinished.contains("a copy into it was not finished"), "{unfinished}");
    change("UPDATE accounts SET name = 'shop' WHERE id = 1");
    copy_to(&file, &address).await.unwrap();
    let copy = Store::connect(address, [1; 32]).await.unwrap();
    let original = Store::open(&file, SECRET).unwrap();
    assert_eq!(history.everything(&copy).await, history.everything(&original).await);
    copy.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_differs_is_found_out_and_undone() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let file = folder.file("parcelo.db");
    let store = Store::open(&file, SECRET).unwrap();
    assert_eq!(
        store.commit(create(sandbox(1), "SB-OTHER-0001", 1)).await,
        CommitOutcome::Committed
    );
    store.close().await;
    // An interrupted copy leaves the schema, and someone adds a trigger to it.
    let target = Database::target(address.clone());
    drop(LocalSet::new().run_until(target).await.unwrap());
    run_sql(
        &address,
        "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN NEW.destination = upper(NEW.destination); RETURN NEW; END'; \
         CREATE TRIGGER spoil BEFORE INSERT ON parcels FOR EACH ROW EXECUTE FUNCTION spoil()",
    );
    let refused = copy_to(&file, &address).await.unwrap_err().to_string();
    assert!(refused.contains("the table parcels has 1 rows with the checksum"), "{refused}");
    let unfinished = Store::connect(address, SECRET).await.unwrap_err().to_string();
    assert!(unfinished.contains("a copy into it was not finished"), "{unfinished}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_table_and_column_is_copied_or_left_behind_for_a_reason() {
    let Some(address) = database() else { return };
    let folder = TestFolder::new();
    let file = folder.file("parcelo.db");
    Store::open(&file, SECRET).unwrap().close().await;
    let db = rusqlite::Connection::open(&file).unwrap();
    let sql = "SELECT t.name, c.name FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c \
         WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    let mut find = db.prepare(sql).unwrap();
    let columns = find.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let mut columns: Vec<(String, String)> = columns.map(Result::unwrap).collect();
    let sql = "SELECT c.table_name::text, c.column_name::text FROM information_schema.columns AS c \
         JOIN information_schema.tables AS t USING (table_schema, table_name) \
         WHERE t.table_type = 'BASE TABLE' AND table_schema = current_schema()";
    Store::connect(address.clone(), SECRET).await.unwrap().close().await;
    let read = async { Database::source(address).await.unwrap().pairs(sql).await };
    columns.extend(LocalSet::new().run_until(read).await);
    assert!(columns.len() > 200, "{}", columns.len());
    for (table, column) in columns {
        let is_copied = TABLES
            .iter()
            .any(|copied| copied.name == table && copied.columns.contains(&column.as_str()));
        // A record's row in a file: PostgreSQL has none, and a new file draws new ones.
        let is_row = (table.as_str(), column.as_str()) == ("idempotency", "id");
        let is_left = LEFT_BEHIND
            .iter()
            .any(|(left, _)| *left == table || *left == format!("{table}.{column}"));
        assert!(is_copied || is_row || is_left, "{table}.{column}: copy it, or say why not");
    }
}
