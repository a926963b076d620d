//! Databases with so many parcels: filled once, and kept from run to run in the folder of `--keep`.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use crate::{
    client::{self, Known},
    peer::Peer,
};

/// A database to work on, which is thrown away: the prepared one stays as it is.
pub(crate) struct Prepared {
    pub(crate) database: PathBuf,
    /// The API key under which its parcels were made.
    pub(crate) key: Option<String>,
    pub(crate) known: Known,
}

impl Prepared {
    /// A copy of the database with so many parcels, which is filled first if it is not there: from that of a
    /// smaller size on, if there is one.
    pub(crate) async fn open(folder: &Path, parcels: usize, smaller: Option<usize>) -> Self {
        let named = |parcels: usize| folder.join(format!("{parcels}.db"));
        let (ready, notes) = (named(parcels), named(parcels).with_extension("known"));
        // The notes are written last: without them the database is not whole.
        if !notes.exists() {
            let begin = smaller.map(named);
            fill(&ready, begin.as_deref(), parcels).await;
        }
        let (key, known) = Known::read(&fs::read_to_string(&notes).unwrap(), parcels);
        let database = folder.join("work.db");
        remove(&database);
        fs::copy(&ready, &database).unwrap();
        Self { database, key: Some(key), known }
    }

    /// How long a server on it takes until it has answered a request.
    pub(crate) async fn time_start(&mut self, folder: &Path) -> Duration {
        let begun = Instant::now();
        let peer = Peer::start_server(folder, &self.database, &mut self.key);
        client::ask_once(&peer.target, &self.known).await;
        begun.elapsed()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        remove(&self.database);
    }
}

async fn fill(ready: &Path, begin: Option<&Path>, parcels: usize) {
    remove(ready);
    let (mut key, mut known) = (None, Known::default());
    if let Some(begin) = begin {
        fs::copy(begin, ready).unwrap();
        let notes = fs::read_to_string(begin.with_extension("known")).unwrap();
        let held = begin.file_stem().and_then(|name| name.to_str()).unwrap().parse().unwrap();
        let (old, sample) = Known::read(&notes, held);
        (key, known) = (Some(old), sample);
    }
    let mut peer = Peer::start_server(ready.parent().unwrap(), ready, &mut key);
    client::fill(&peer.target, &mut known, parcels, client::LOADERS).await;
    // Stopped in order, it leaves one file, without a log beside it.
    peer.stop();
    fs::write(ready.with_extension("known"), known.written(key.as_deref().unwrap())).unwrap();
}

fn remove(database: &Path) {
    for end in ["db", "db-wal", "db-shm", "db.lock"] {
        // What is not there need not go.
        let _ = fs::remove_file(database.with_extension(end));
    }
}
