//! `parcelo-server verify`, the check of a backup.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    api::order,
    running::{BINARY, TestSetup},
};

/// Returns the exit code, the output and the error message of the check of a file.
fn verify(file: &Path, options: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(BINARY).env_clear().arg("verify").arg(file).args(options).output();
    let output = output.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Makes a backup of a database with two orders, whose server is then killed.
async fn backup_of_two_orders() -> (TestSetup, PathBuf) {
    let setup = TestSetup::on_file("only a file has a backup command");
    let mut running = setup.start(&[]);
    let api = running.api(&setup.new_key("sandbox").1);
    for key in ["order-0001", "order-0002"] {
        api.create_parcel(&order(key)).await;
    }
    // A name with the characters that mean something in SQLite's addresses.
    let copy = setup.path("100% of it? #1.db");
    setup.backup(&copy);
    running.kill();
    (setup, copy)
}

#[tokio::test]
async fn a_sound_backup_is_counted_and_only_read() {
    let (_setup, copy) = backup_of_two_orders().await;
    let before = fs::read(&copy).unwrap();
    let (code, output, error) = verify(&copy, &["--json"]);
    assert_eq!(code, Some(0), "{error}");
    let report: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(report["rows"]["parcels"], 2);
    let (records, faults) = (&report["checkedRecords"], &report["faults"]);
    assert_eq!((records, faults), (&json!(2), &json!([])));
    let (code, output, _) = verify(&copy, &[]);
    assert!(code == Some(0) && output.contains("No fault was found."), "{output}");
    assert!(fs::read(&copy).unwrap() == before);
    let folder = fs::read_dir(copy.parent().unwrap()).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("100%")).count(), 1, "no other file is made");
}

#[tokio::test]
async fn a_list_that_a_start_set_aside_is_named_with_its_rows() {
    let (_setup, copy) = backup_of_two_orders().await;
    assert!(!verify(&copy, &[]).1.contains("set it aside"));
    let db = Connection::open(&copy).unwrap();
    let set_aside = "CREATE TABLE damaged_key_chunks_9 AS SELECT id FROM parcels";
    db.execute_batch(set_aside).unwrap();
    drop(db);
    let (code, output, error) = verify(&copy, &[]);
    assert_eq!(code, Some(0), "{error}");
    let expected = "damaged_key_chunks_9: a start found this list of idempotency keys damaged, set it aside (rows: 2)";
    assert!(output.contains(expected) && output.contains("check the disk"), "{output}");
}

type Damage<'d> = &'d dyn Fn(&Path);

#[tokio::test]
async fn a_damaged_backup_is_an_error() {
    let truncate = |file: &Path| {
        let file = fs::File::options().write(true).open(file).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    };
    let flip = |file: &Path| {
        let db = Connection::open(file).unwrap();
        let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'parcels'";
        let page: i64 = db.query_row(root, [], |row| row.get(0)).unwrap();
        let offset = u64::try_from(page - 1).unwrap() * 4_096;
        let file = fs::File::options().write(true).open(file).unwrap();
        file.write_all_at(&[0xA5; 8], offset).unwrap();
    };
    let delete = |file: &Path| {
        let db = Connection::open(file).unwrap();
        assert_eq!(db.execute("DELETE FROM parcels WHERE id = 1", []).unwrap(), 1);
    };
    let table: [(Damage<'_>, &str); 3] = [
        (&truncate, "malformed"),
        (&flip, "malformed"),
        (&delete, "is missing): do not restore it"),
    ];
    for (damage, expected) in table {
        let (_setup, copy) = backup_of_two_orders().await;
        damage(&copy);
        let (code, output, error) = verify(&copy, &[]);
        assert!(code == Some(1) && error.contains(expected), "{expected}: {error}");
        assert!(!output.contains("No fault"), "{output}");
    }
}

#[tokio::test]
async fn a_file_with_a_log_or_of_another_program_cannot_be_checked() {
    let (setup, copy) = backup_of_two_orders().await;
    let file = setup.path("parcelo.db");
    setup.leave_log();
    fs::copy(setup.path("parcelo.db-wal"), format!("{}-wal", copy.display())).unwrap();
    for (file, expected) in [(&file, "a log is beside it"), (&copy, "move the log")] {
        let (code, output, error) = verify(file, &[]);
        assert!(code == Some(1) && error.contains(expected), "{file:?}: {code:?} {output}{error}");
    }
    let text = setup.path("list.txt");
    fs::write(&text, "a shopping list\n".repeat(500)).unwrap();
    let (code, _, error) = verify(&text, &[]);
    assert!(code == Some(1) && error.contains("is not a Parcelo database"), "{error}");
    let (code, _, error) = verify(copy.parent().unwrap(), &[]);
    assert!(code == Some(1) && error.contains("is a directory"), "{error}");
    let (code, _, error) = verify(&setup.path("nowhere.db"), &[]);
    assert!(code == Some(1) && error.contains("nowhere.db"), "{error}");
    assert!(!setup.path("nowhere.db").exists());
}
