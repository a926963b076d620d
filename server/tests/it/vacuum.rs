//! `parcelo-server vacuum`, for database files of versions that did not overwrite deleted data.

use std::{fs, process::Command};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    api::order,
    running::{BINARY, TestSetup},
};

const DELETED_NAME: &str = "Zanahoria Canela";

fn vacuum(setup: &TestSetup, arguments: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(BINARY);
    command.env_clear().args(["vacuum", "--database", &setup.database()]).args(arguments);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

/// Returns how often the deleted name occurs in the database's files.
fn count_traces(setup: &TestSetup) -> usize {
    let file = setup.database().replace("sqlite:", "");
    let names = [file.clone(), format!("{file}-wal")];
    let bytes = names.iter().flat_map(|name| fs::read(name).unwrap_or_default());
    let bytes: Vec<u8> = bytes.collect();
    bytes.windows(DELETED_NAME.len()).filter(|window| *window == DELETED_NAME.as_bytes()).count()
}

/// Creates a database whose orders were deleted as earlier versions deleted them.
async fn file_with_deleted_data() -> (TestSetup, String) {
    let setup = TestSetup::on_file("only a file is vacuumed by a command");
    let key = setup.new_key("sandbox").1;
    let running = setup.start(&[]);
    for n in 0..20 {
        let mut order = order(&format!("order-{n:04}"));
        order["receiver"]["fullName"] = json!(DELETED_NAME);
        running.api(&key).create_parcel(&order).await;
    }
    drop(running);
    let db = Connection::open(setup.database().replace("sqlite:", "")).unwrap();
    db.execute_batch(
        "PRAGMA secure_delete = OFF; DELETE FROM parcels; DELETE FROM idempotency; \
         PRAGMA wal_checkpoint(TRUNCATE);",
    )
    .unwrap();
    (setup, key.secret().to_owned())
}

#[tokio::test]
async fn vacuum_removes_every_trace_of_deleted_data() {
    let (setup, key) = file_with_deleted_data().await;
    assert!(count_traces(&setup) > 0, "the deleted name is still in the files");
    let (is_done, output, error) = vacuum(&setup, &["--json"]);
    assert!(is_done, "{error}");
    assert_eq!(count_traces(&setup), 0);
    let report: Value = serde_json::from_str(&output).unwrap();
    let [before, after] = ["bytesBefore", "bytesAfter"].map(|name| report[name].as_u64().unwrap());
    assert!(after > 0 && after < before, "{report}");
    assert!(report["file"].as_str().unwrap().ends_with("parcelo.db"));
    let (is_done, output, _) = vacuum(&setup, &[]);
    assert!(is_done && output.contains(&format!("{after} bytes before, {after} now")), "{output}");
    let running = setup.start(&[]);
    let api = crate::api::Api::new(running.sandbox()).key(&key);
    assert_eq!(api.get("/api/v1/health").await.status, 200, "keys stay");
}

#[tokio::test]
async fn vacuum_refuses_a_file_in_use_and_creates_none() {
    let setup = TestSetup::on_file("only a file is vacuumed by a command");
    let (is_done, _, error) = vacuum(&setup, &[]);
    assert!(!is_done && error.contains("does not exist or is empty"), "{error}");
    let _running = setup.start(&[]);
    let (is_done, output, error) = vacuum(&setup, &[]);
    assert!(!is_done && error.contains("parcelo.db: stop it"), "{error}");
    assert_eq!(output, "", "the vacuum was not started");
}
