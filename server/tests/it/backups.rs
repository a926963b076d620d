//! `parcelo-server backup --folder` and `parcelo-server restore`.

use std::{
    fs,
    os::unix::fs::{FileExt, MetadataExt, chown, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    api::order,
    disk::large_database,
    running::{BINARY, TestSetup},
};

const OLD: [&str; 2] = ["parcelo-2020-01-01T03-00-00Z.db", "parcelo-2020-01-02T03-00-00Z.db"];

/// Makes a folder with two older backups and another file.
fn folder_with_old_backups(setup: &TestSetup) -> PathBuf {
    let folder = setup.path("backups");
    fs::create_dir(&folder).unwrap();
    for name in OLD.into_iter().chain(["parcelo.db"]) {
        fs::write(folder.join(name), "old").unwrap();
    }
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_folder_keeps_its_newest_backups() {
    let setup = TestSetup::on_file("only a file has a backup command");
    setup.new_key("sandbox");
    let folder = folder_with_old_backups(&setup);
    let done = setup.admin("backup", &["--folder", folder.to_str().unwrap(), "--keep", "2"]);
    assert_eq!(done["deleted"], json!([folder.join(OLD[0])]));
    let new = PathBuf::from(done["file"].as_str().unwrap());
    assert_eq!(done["bytes"], fs::metadata(&new).unwrap().len());
    let name = new.file_name().unwrap().to_str().unwrap();
    assert_eq!(names(&folder), [OLD[1], name, "parcelo.db"]);
}

#[test]
fn backups_of_the_same_second_have_names_of_their_own() {
    let setup = TestSetup::on_file("only a file has a backup command");
    setup.new_key("sandbox");
    let folder = setup.path("backups");
    fs::create_dir(&folder).unwrap();
    let arguments = ["--folder", folder.to_str().unwrap(), "--keep", "9"];
    let made: Vec<_> = (0..5).map(|_| setup.admin("backup", &arguments)["file"].clone()).collect();
    let found = names(&folder);
    assert_eq!(found.len(), 5, "{found:?}");
    for (file, name) in made.iter().zip(&found) {
        assert_eq!(*file, folder.join(name).to_str().unwrap());
    }
}

#[test]
fn without_a_number_to_keep_no_backup_is_deleted() {
    let setup = TestSetup::on_file("only a file has a backup command");
    setup.new_key("sandbox");
    let folder = folder_with_old_backups(&setup);
    let (is_done, error) = setup.try_admin(&["backup", "--folder", folder.to_str().unwrap()]);
    assert!(is_done, "{error}");
    assert_eq!(names(&folder).len(), 4);
    for (arguments, expected) in [
        (&["backup"][..], "required arguments"),
        (&["backup", "--keep", "2"], "required arguments"),
        (&["backup", "copy.db", "--keep", "2"], "cannot be used with"),
        (&["backup", "copy.db", "--folder", "."], "cannot be used with"),
    ] {
        let (is_done, error) = setup.try_admin(arguments);
        assert!(!is_done && error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn a_backup_that_fails_deletes_no_older_one() {
    let setup = TestSetup::on_file("only a file has a backup command");
    large_database(&setup);
    let folder = folder_with_old_backups(&setup);
    let before = names(&folder);
    // A file of this process may have at most 4 MB, and the database has 24.
    let mut small = Command::new("sh");
    small
        .args(["-c", r#"trap '' XFSZ; ulimit -f 8000; exec "$@""#, "sh", BINARY, "backup"])
        .args(["--database", &setup.database(), "--keep", "1", "--folder"])
        .arg(&folder);
    let output = small.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("free space"), "{error}");
    assert_eq!(names(&folder), before);
    let missing = setup.path("nowhere");
    let (is_done, error) =
        setup.try_admin(&["backup", "--keep", "1", "--folder", missing.to_str().unwrap()]);
    assert!(!is_done && error.contains("check that its folder exists"), "{error}");
    assert!(!missing.exists());
}

/// Deletes a parcel whose idempotency key is kept, as no command does.
fn damage(file: &Path) {
    let db = Connection::open(file).unwrap();
    assert_eq!(db.execute("DELETE FROM parcels WHERE id = 1", []).unwrap(), 1);
}

/// Makes a backup of a database with one order, whose server is then killed after a second order.
async fn killed_after_a_backup() -> (TestSetup, PathBuf) {
    let setup = TestSetup::on_file("only a file has a backup command");
    let mut running = setup.start(&[]);
    let api = running.api(&setup.new_key("sandbox").1);
    api.create_parcel(&order("order-0001")).await;
    let copy = setup.path("copy.db");
    setup.backup(&copy);
    api.create_parcel(&order("order-0002")).await;
    running.kill();
    (setup, copy)
}

/// Returns the number of parcels in a file that no server uses.
fn count_parcels(file: &Path) -> i64 {
    let db = Connection::open(file).unwrap();
    db.query_row("SELECT count(*) FROM parcels", [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn a_damaged_backup_is_named_so_and_deletes_no_older_one() {
    let (setup, _) = killed_after_a_backup().await;
    damage(&setup.path("parcelo.db"));
    let folder = folder_with_old_backups(&setup);
    let (is_done, error) =
        setup.try_admin(&["backup", "--keep", "1", "--folder", folder.to_str().unwrap()]);
    assert!(!is_done && error.contains("no older one was deleted"), "{error}");
    let names = names(&folder);
    assert!(OLD.iter().all(|old| names.iter().any(|name| name == old)), "{names:?}");
    let damaged: Vec<_> = names.iter().filter(|name| name.ends_with("Z.db.damaged")).collect();
    assert!(names.len() == 4 && error.contains(damaged[0].as_str()), "{error}: {names:?}");
}

#[tokio::test]
async fn restore_moves_the_old_file_and_its_log_aside() {
    let (setup, copy) = killed_after_a_backup().await;
    setup.leave_log();
    // A backup that an older program made says that it has a log.
    fs::File::options().write(true).open(&copy).unwrap().write_all_at(&[2, 2], 18).unwrap();
    let (file, link) = (setup.path("parcelo.db"), setup.path("link.db"));
    symlink(&file, &link).unwrap();
    let linked = TestSetup::at(link.clone());
    let done = linked.admin("restore", &[copy.to_str().unwrap()]);
    let moved: Vec<PathBuf> = serde_json::from_value(done["movedAside"].clone()).unwrap();
    assert!(moved.len() >= 2 && moved.iter().all(|file| file.exists()), "{done}");
    assert!(moved[1].to_str().unwrap().ends_with("Z-wal"), "{done}");
    assert!(link.is_symlink() && !setup.path("parcelo.db-wal").exists());
    let mut mark = [0; 2];
    fs::File::open(&file).unwrap().read_exact_at(&mut mark, 18).unwrap();
    assert_eq!(mark, [1, 1], "a log beside it is another's");
    assert_eq!((count_parcels(&file), count_parcels(&moved[0])), (1, 2));
}

#[tokio::test]
async fn restores_of_the_same_second_keep_each_old_file() {
    let (setup, copy) = killed_after_a_backup().await;
    let restore = || {
        let done = setup.admin("restore", &[copy.to_str().unwrap()]);
        serde_json::from_value::<Vec<PathBuf>>(done["movedAside"].clone()).unwrap()
    };
    let moved: Vec<_> = (0..4).flat_map(|_| restore()).collect();
    assert!(moved.len() >= 4 && moved.iter().all(|file| file.exists()), "{moved:?}");
    assert!((1..moved.len()).all(|at| !moved[at..].contains(&moved[at - 1])), "{moved:?}");
    assert_eq!(count_parcels(&moved[0]), 2, "the first has the order since the backup");
}

#[tokio::test]
async fn restore_needs_no_old_database() {
    let (setup, copy) = killed_after_a_backup().await;
    let file = setup.path("new.db");
    let mut restore = Command::new(BINARY);
    restore.env_clear().arg("restore").arg(&copy).arg("--json");
    let output =
        restore.arg("--database").arg(format!("sqlite:{}", file.display())).output().unwrap();
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(done["movedAside"], json!([]));
    assert_eq!(count_parcels(&file), 1);
}

#[tokio::test]
async fn what_root_restores_belongs_to_the_owner_of_the_old_file_or_else_of_the_folder() {
    let (setup, copy) = killed_after_a_backup().await;
    let folder = setup.path("data");
    fs::create_dir(&folder).unwrap();
    let (file, lock) = (folder.join("parcelo.db"), folder.join("parcelo.db.lock"));
    let owner = |file: &Path| {
        let found = fs::metadata(file).unwrap();
        (found.uid(), found.gid())
    };
    let restored = TestSetup::at(file.clone());
    for (other, account) in [(&folder, 54_321), (&file, 54_322)] {
        // Only root may do so; the files of another account are its own.
        let _ = chown(other, Some(account), Some(account));
        let expected = owner(other);
        let _ = fs::remove_file(&lock);
        let (is_done, error) = restored.try_admin(&["restore", copy.to_str().unwrap()]);
        assert!(is_done, "{error}");
        assert_eq!((owner(&file), owner(&lock)), (expected, expected));
    }
}

#[tokio::test]
async fn restore_refuses_a_served_file_and_a_damaged_backup() {
    let (setup, copy) = killed_after_a_backup().await;
    let restore = ["restore", copy.to_str().unwrap()];
    let running = setup.start(&[]);
    let (is_done, error) = setup.try_admin(&restore);
    assert!(!is_done && error.contains("another server uses"), "{error}");
    drop(running);
    damage(&copy);
    let (is_done, error) = setup.try_admin(&restore);
    assert!(!is_done && error.contains("do not restore it"), "{error}");
    assert_eq!(count_parcels(&setup.path("parcelo.db")), 2);
    let names = names(&setup.path("."));
    assert!(!names.iter().any(|name| name.contains("before-restore")), "{names:?}");
}

#[test]
fn restore_leaves_postgresql_to_its_own_tools() {
    let mut restore = Command::new(BINARY);
    restore.env_clear().args(["restore", "copy.db", "--database", "postgres://shop@db/parcelo"]);
    let output = restore.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && error.contains("pg_restore"), "{error}");
}
