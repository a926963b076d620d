//! The journal of the example `sqlite_journal` survives every kill.

#[path = "../../sqlite_journal/journal.rs"]
mod journal;

use journal::SqliteJournal;
use parcelo::testing::kill_points;

#[tokio::test]
async fn the_journal_in_sqlite_survives_every_kill() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |name: &str| Ok(SqliteJournal::open(&folder.path().join(name))?);
    let runs = kill_points(open).await.unwrap();
    assert!(runs > 1000, "{runs}");
}
