//! `kill_points` passes a journal that keeps its word, and finds one that does not.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use parcelo::{
    journal::{Entry, Journal, JournalError, JournalFile},
    testing::kill_points,
};

#[tokio::test]
async fn the_journal_in_a_file_survives_every_kill() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |name: &str| Ok(JournalFile::open(folder.path().join(name))?);
    let runs = kill_points(open).await.unwrap();
    println!("{runs} runs");
    assert!(runs > 1000, "{runs}");
}

/// The lie of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    None,
    /// New entries are acknowledged and forgotten.
    ForgetsInserts,
    /// Updates are acknowledged and forgotten.
    ForgetsUpdates,
    /// An order that it has is replaced as if it were new.
    ReplacesOnInsert,
    /// It hides what is open.
    HidesOpen,
}

/// The disk of a journal: what survives a kill.
type Disk = Arc<Mutex<HashMap<String, Entry>>>;

struct Liar {
    lie: Lie,
    disk: Disk,
    memory: Mutex<HashMap<String, Entry>>,
}

impl Liar {
    fn open(lie: Lie, disk: Disk) -> Self {
        let memory = Mutex::new(disk.lock().unwrap().clone());
        Self { lie, disk, memory }
    }

    fn put(&self, entry: &Entry, forgets: Lie) {
        let id = entry.order_id().to_owned();
        self.memory.lock().unwrap().insert(id.clone(), entry.clone());
        if self.lie != forgets {
            self.disk.lock().unwrap().insert(id, entry.clone());
        }
    }
}

impl Journal for Liar {
    async fn insert(&self, entry: &Entry) -> Result<Option<Entry>, JournalError> {
        let known = self.memory.lock().unwrap().get(entry.order_id()).cloned();
        if let Some(known) = known.filter(|_| self.lie != Lie::ReplacesOnInsert) {
            return Ok(Some(known));
        }
        self.put(entry, Lie::ForgetsInserts);
        Ok(None)
    }

    async fn update(&self, entry: &Entry) -> Result<(), JournalError> {
        self.put(entry, Lie::ForgetsUpdates);
        Ok(())
    }

    async fn open(&self) -> Result<Vec<Entry>, JournalError> {
        let memory = self.memory.lock().unwrap();
        let open = memory.values().filter(|entry| entry.is_open()).cloned();
        Ok(open.filter(|_| self.lie != Lie::HidesOpen).collect())
    }
}

/// Returns the first line of what is found about a journal with this lie, and all of it.
async fn found(lie: Lie) -> Option<(String, String)> {
    let disks = Mutex::new(HashMap::<String, Disk>::new());
    let open = async |name: &str| {
        let disk = disks.lock().unwrap().entry(name.to_owned()).or_default().clone();
        Ok(Liar::open(lie, disk))
    };
    let found = kill_points(open).await.err()?.to_string();
    Some((found.lines().next().unwrap().to_owned(), found))
}

#[tokio::test]
async fn a_journal_that_lies_is_found_out() {
    let twice = "the order was shipped twice";
    let table = [
        (Lie::ForgetsInserts, twice),
        (Lie::ForgetsUpdates, twice),
        (Lie::ReplacesOnInsert, twice),
        (Lie::HidesOpen, "the journal has lost an order that it had saved"),
    ];
    for (lie, expected) in table {
        let (first_line, all) = found(lie).await.unwrap();
        println!("{lie:?}: {all}\n");
        assert_eq!(first_line, expected, "{lie:?}: {all}");
    }
}

#[tokio::test]
async fn a_journal_that_keeps_its_word_passes() {
    assert_eq!(found(Lie::None).await, None);
}
