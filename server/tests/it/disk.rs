//! Database files that are damaged, deleted, replaced, unreadable or of another program, and backups on a full disk.

use std::{
    fs,
    os::unix::{fs::FileExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use parcelo::Operation;
use rusqlite::Connection;

use crate::{
    api::{Api, order, try_send},
    running::{BINARY, TestSetup},
    waiting::until,
};

/// The signal to a process whose file exceeds its size limit.
const SIGXFSZ: i32 = 25;

fn list_files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Makes a database that takes a while to copy.
pub(crate) fn large_database(setup: &TestSetup) {
    setup.new_key("sandbox");
    let db = Connection::open(setup.path("parcelo.db")).unwrap();
    db.execute_batch("INSERT INTO meta VALUES ('ballast', randomblob(24000000))").unwrap();
}

#[test]
fn a_killed_backup_leaves_no_file_under_its_final_name() {
    let setup = TestSetup::on_file("only a file has a backup command");
    large_database(&setup);
    // The system kills the process when one of its files exceeds this many blocks.
    for blocks in [100, 1_000, 10_000] {
        let (copy, folder) = copy_in_new_folder(&setup, &format!("copies-{blocks}"));
        let killed = format!(r#"ulimit -c 0; ulimit -f {blocks}; exec "$@""#);
        let mut backup = Command::new("sh");
        backup.args(["-c", &killed, "sh", BINARY, "backup", "--database", &setup.database()]);
        let status = backup.arg(&copy).stdout(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(SIGXFSZ), "{blocks}: {status}");
        let left = list_files(&folder);
        assert!(left.len() == 1 && left[0] != copy, "{blocks}: {left:?}");
    }
}

/// Returns the path of a copy in a new, empty folder, and the folder.
fn copy_in_new_folder(setup: &TestSetup, name: &str) -> (PathBuf, PathBuf) {
    let folder = setup.path(name);
    fs::create_dir(&folder).unwrap();
    (folder.join("copy.db"), folder)
}

#[test]
fn a_backup_leaves_only_its_own_file() {
    let setup = TestSetup::on_file("only a file has a backup command");
    setup.new_key("sandbox");
    let (copy, folder) = copy_in_new_folder(&setup, "copies");
    setup.backup(&copy);
    assert_eq!(list_files(&folder), std::slice::from_ref(&copy));
    assert!(setup.backup_error(&copy).contains("exists already"));
    assert_eq!(list_files(&folder), [copy]);
}

#[test]
fn a_backup_on_a_full_disk_names_the_copy_and_removes_it() {
    let setup = TestSetup::on_file("only a file has a backup command");
    large_database(&setup);
    let (copy, folder) = copy_in_new_folder(&setup, "copies");
    // A file of this process may have at most 4 MB, and the database has 24.
    let mut small = Command::new("sh");
    small
        .args(["-c", r#"trap '' XFSZ; ulimit -f 8000; exec "$@""#, "sh", BINARY, "backup"])
        .args(["--database", &setup.database()])
        .arg(&copy);
    let output = small.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("copy.db") && !error.contains("parcelo.db"), "{error}");
    assert_eq!(list_files(&folder), Vec::<PathBuf>::new());
}

/// Runs a command that must refuse the database. Returns its error message.
fn run_refused(setup: &TestSetup, arguments: &[&str]) -> String {
    if arguments == ["serve"] {
        return setup.start_error();
    }
    let (is_done, error) = setup.try_admin(arguments);
    assert!(!is_done, "{arguments:?}");
    error
}

const COMMANDS: [&[&str]; 4] = [
    &["serve"],
    &["keys", "list"],
    &["vacuum"],
    &["keys", "create", "--environment", "sandbox", "--name", "n", "--countries", "*"],
];

#[test]
fn a_file_of_another_program_is_refused_and_unchanged() {
    let foreign = |path: &Path| {
        let db = Connection::open(path).unwrap();
        db.execute_batch("CREATE TABLE meta (name TEXT, value BLOB); PRAGMA user_version = 3;")
            .unwrap();
    };
    let tagged = |path: &Path| {
        let db = Connection::open(path).unwrap();
        db.execute_batch("PRAGMA application_id = 252006674; CREATE TABLE t (a);").unwrap();
    };
    let text = |path: &Path| fs::write(path, "a shopping list\n".repeat(500)).unwrap();
    let short = |path: &Path| fs::write(path, "short").unwrap();
    let single = |path: &Path| fs::write(path, "x").unwrap();
    let almost = |path: &Path| fs::write(path, "x".repeat(99)).unwrap();
    for make in [&foreign as &dyn Fn(&Path), &tagged, &text, &short, &single, &almost] {
        let setup = TestSetup::on_file("the test damages or moves the file");
        let file = setup.path("parcelo.db");
        make(&file);
        let before = fs::read(&file).unwrap();
        for arguments in COMMANDS {
            let error = run_refused(&setup, arguments);
            assert!(error.contains("is not a Parcelo database"), "{arguments:?}: {error}");
            assert_eq!(error.trim_end().lines().count(), 1, "{error}");
            assert!(fs::read(&file).unwrap() == before, "{arguments:?} changed it");
        }
    }
}

#[tokio::test]
async fn only_the_server_turns_an_empty_file_into_a_database() {
    let setup = TestSetup::on_file("the test damages or moves the file");
    let file = setup.path("parcelo.db");
    fs::write(&file, "").unwrap();
    for arguments in &COMMANDS[1..] {
        let error = run_refused(&setup, arguments);
        assert!(error.contains("is empty"), "{arguments:?}: {error}");
        assert_eq!(fs::metadata(&file).unwrap().len(), 0, "{arguments:?}");
    }
    let running = setup.start(&[]);
    assert_eq!(Api::new(running.sandbox()).get("/readyz").await.status, 200);
    assert_eq!(setup.admin("keys", &["list"]).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_empty_file_beside_the_log_of_another_is_a_new_database() {
    let setup = TestSetup::on_file("the test damages or moves the file");
    let mut running = setup.start(&[]);
    setup.new_key("sandbox");
    running.kill();
    setup.leave_log();
    fs::write(setup.path("parcelo.db"), "").unwrap();
    let running = setup.start(&[]);
    assert_eq!(Api::new(running.sandbox()).get("/readyz").await.status, 200);
    assert_eq!(setup.admin("keys", &["list"]).as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_backup_beside_the_log_of_the_file_that_it_replaces_is_refused() {
    let setup = TestSetup::on_file("the log is a file of its own");
    let mut running = setup.start(&[]);
    let key = setup.new_key("sandbox").1;
    running.api(&key).create_parcel(&order("order-0001")).await;
    let copy = setup.path("copy.db");
    setup.backup(&copy);
    running.api(&key).create_parcel(&order("order-0002")).await;
    running.kill();
    setup.leave_log();
    fs::copy(&copy, setup.path("parcelo.db")).unwrap();
    let read = || ["parcelo.db", "parcelo.db-wal"].map(|name| fs::read(setup.path(name)).unwrap());
    let before = read();
    let second = setup.path("second.db");
    let backup = ["backup", second.to_str().unwrap()];
    for arguments in COMMANDS.into_iter().chain([&backup[..]]) {
        let error = run_refused(&setup, arguments);
        assert!(error.contains("parcelo.db-wal beside it belongs to another"), "{error}");
        assert!(read() == before, "{arguments:?} changed a file");
    }
    for name in ["parcelo.db-wal", "parcelo.db-shm"] {
        fs::rename(setup.path(name), setup.path(&format!("{name}.old"))).unwrap();
    }
    let running = setup.start(&[]);
    let list = running.api(&key).get("/api/v1/parcels").await.json();
    assert_eq!(list["meta"]["total"], 1, "{list}");
}

/// Starts a server on a file with one parcel, and kills it after two more.
async fn killed_after_three_orders(setup: &TestSetup) -> (parcelo::ApiKey, Vec<u8>) {
    let key = setup.new_key("sandbox").1;
    let running = setup.start(&[]);
    running.api(&key).create_parcel(&order("order-0001")).await;
    running.stop();
    let before = fs::read(setup.path("parcelo.db")).unwrap();
    let mut running = setup.start(&[]);
    // The second order is noted before the third is answered.
    for key_of_order in ["order-0002", "order-0003"] {
        running.api(&key).create_parcel(&order(key_of_order)).await;
    }
    running.kill();
    (key, before)
}

#[tokio::test]
async fn a_file_whose_log_is_gone_is_refused_and_unchanged() {
    let setup = TestSetup::on_file("the log is a file of its own");
    let (key, before) = killed_after_three_orders(&setup).await;
    // The file as it is while all later orders are in the log.
    fs::write(setup.path("parcelo.db"), &before).unwrap();
    for name in ["parcelo.db-wal", "parcelo.db-shm"] {
        let _ = fs::remove_file(setup.path(name));
    }
    let (copy, folder) = copy_in_new_folder(&setup, "copies");
    let backup = ["backup", copy.to_str().unwrap()];
    // It would be a sound backup, and older ones would be deleted for it.
    let nightly = ["backup", "--keep", "1", "--folder", folder.to_str().unwrap()];
    let commands = COMMANDS.into_iter().chain([&backup[..], &nightly[..]]);
    for arguments in commands.chain([&["serve"][..]]) {
        let error = run_refused(&setup, arguments);
        assert!(error.contains("lacks requests that were acknowledged"), "{arguments:?}: {error}");
        assert!(error.contains("parcelo.db.lock"), "{arguments:?}: {error}");
        assert!(fs::read(setup.path("parcelo.db")).unwrap() == before, "{arguments:?} changed it");
        assert_eq!(list_files(&folder), Vec::<PathBuf>::new());
    }
    fs::remove_file(setup.path("parcelo.db.lock")).unwrap();
    let running = setup.start(&[]);
    let list = running.api(&key).get("/api/v1/parcels").await.json();
    assert_eq!(list["meta"]["total"], 1, "{list}");
}

#[tokio::test]
async fn a_log_that_another_program_moved_into_the_file_is_not_missed() {
    let setup = TestSetup::on_file("the log is a file of its own");
    let (key, _) = killed_after_three_orders(&setup).await;
    let db = Connection::open(setup.path("parcelo.db")).unwrap();
    db.execute_batch("UPDATE meta SET value = value").unwrap();
    drop(db);
    assert!(!setup.path("parcelo.db-wal").exists());
    let running = setup.start(&[]);
    let list = running.api(&key).get("/api/v1/parcels").await.json();
    assert_eq!(list["meta"]["total"], 3, "{list}");
}

#[tokio::test]
async fn a_new_database_in_the_place_of_a_deleted_one_is_served() {
    let setup = TestSetup::on_file("the log is a file of its own");
    killed_after_three_orders(&setup).await;
    for name in ["parcelo.db-wal", "parcelo.db-shm"] {
        let _ = fs::remove_file(setup.path(name));
    }
    // The new file has the inode of the old one.
    fs::write(setup.path("parcelo.db"), "").unwrap();
    setup.start(&[]).stop();
    setup.start(&[]).stop();
}

#[test]
fn a_lock_file_that_cannot_be_opened_is_named() {
    let setup = TestSetup::on_file("the lock file is beside the file");
    fs::create_dir(setup.path("parcelo.db.lock")).unwrap();
    let error = setup.start_error();
    assert!(error.contains("parcelo.db.lock (Is a directory"), "{error}");
}

#[test]
fn a_hard_link_or_deleted_lock_admits_no_second_server() {
    let setup = TestSetup::on_file("the test damages or moves the file");
    let _running = setup.start(&[]);
    let elsewhere = TestSetup::on_file("the test damages or moves the file");
    fs::hard_link(setup.path("parcelo.db"), elsewhere.path("parcelo.db")).unwrap();
    let linked = elsewhere.start_error();
    assert!(linked.contains("another server"), "a hard link: {linked}");
    assert!(linked.contains("parcelo.db"), "{linked}");
    fs::remove_file(setup.path("parcelo.db.lock")).unwrap();
    let second = setup.start_error();
    assert!(second.contains("another server"), "no lock file: {second}");
}

/// A way to damage the database file.
type Damage = fn(&TestSetup, &str);

#[tokio::test]
async fn no_order_is_acknowledged_after_its_file_is_gone() {
    let delete: Damage = |setup, name| fs::remove_file(setup.path(name)).unwrap();
    let replace: Damage = |setup, name| {
        fs::copy(setup.path(name), setup.path("other")).unwrap();
        fs::rename(setup.path("other"), setup.path(name)).unwrap();
    };
    let table = [("parcelo.db", delete), ("parcelo.db", replace), ("parcelo.db-wal", delete)];
    for (name, harm) in table {
        let setup = TestSetup::on_file("the test damages or moves the file");
        let mut running = setup.start(&[]);
        let api = running.api(&setup.new_key("sandbox").1);
        api.create_parcel(&order("order-0001")).await;
        harm(&setup, name);
        let request = api.request("POST", Operation::CreateOrder.path());
        let request = request.header("content-type", "application/json");
        let late = try_send(request.body(order("order-0002").to_string())).await;
        assert!(!late.is_ok_and(|response| response.status == 201), "{name}");
        assert_eq!(running.wait(), Some(1), "{name}: {}", setup.output());
        let output = setup.output();
        assert!(output.contains("deleted or replaced"), "{name}: {output}");
    }
}

#[tokio::test]
async fn a_deleted_database_is_noticed_without_any_write() {
    let setup = TestSetup::on_file("the test damages or moves the file");
    let mut running = setup.start(&[]);
    fs::remove_file(setup.path("parcelo.db")).unwrap();
    assert_eq!(running.wait(), Some(1), "{}", setup.output());
}

/// Overwrites the whole file, as a dying disk does.
fn corrupt(file: &Path) {
    let length = fs::metadata(file).unwrap().len();
    let noise = vec![0xA5; usize::try_from(length).unwrap()];
    fs::File::options().write(true).open(file).unwrap().write_all_at(&noise, 0).unwrap();
}

#[tokio::test]
async fn a_server_that_cannot_read_is_not_ready_and_then_exits() {
    let setup = TestSetup::on_file("the test damages or moves the file");
    setup.new_key("sandbox");
    let mut running = setup.start(&[]);
    let api = Api::new(running.sandbox());
    assert_eq!(api.get("/readyz").await.status, 200);
    corrupt(&setup.path("parcelo.db"));
    // A server that cannot read is not ready after two seconds, and exits after six.
    let is_explained = async || {
        let answer = api.get("/readyz").await;
        let reason = answer.json()["reason"].as_str().map(str::to_owned);
        answer.status == 503 && reason.is_some_and(|why| why.contains("the database's disk"))
    };
    until("it is not ready, and says why", is_explained).await;
    assert_eq!(running.wait(), Some(1), "{}", setup.output());
}
