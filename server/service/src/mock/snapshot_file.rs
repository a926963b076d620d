//! Snapshots as bytes: in a file, and in the bodies of `GET` and `PUT /__mock/snapshot`.

use std::{fs, io, path::Path};

use base64::{Engine, prelude::BASE64_STANDARD};
use parcelo_domain::to_body;
use parcelo_store::{Store, StoreError};
use parcelo_system::ids::SeedPosition;
use parcelo_types::Environment;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Snapshot, SnapshotError, expect_stored, movable_clock::SavedClock};

/// Version of the bytes before the database, which has a version of its own.
const FORMAT: u32 = 1;

/// Size of the SHA-256 of all bytes before it, at the end.
const CHECKSUM_BYTES: usize = 32;

/// The first line of a snapshot's bytes, as JSON. The database follows, then the checksum: `SQLite` does not notice every
/// changed byte, and a test would start from a state that no server was in.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    snapshot: u32,
    environment: Environment,
    clock: String,
    shown: String,
    /// The position of the random generator, in base64.
    ids: String,
}

impl Snapshot {
    /// Saves it to a file, which is replaced if it exists: for the next run of a suite, or for a server in another
    /// process. It holds the secret of the server's keys.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use parcelo_server::mock::{MockServer, Snapshot};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let file = folder.path().join("forty-parcels.snapshot");
    /// let first = MockServer::builder().seed(42).start().await;
    /// let numbers = first.seed_parcels(40).await;
    /// first.snapshot().await.save(&file)?;
    ///
    /// let second = MockServer::builder().seed(42).start().await;
    /// second.restore(&Snapshot::load(&file)?).await;
    /// let client = second.client(&second.key().issue());
    /// assert!(client.tracking().get(&numbers[39]).await.is_ok());
    /// # Ok(())
    /// # }
    /// ```
    pub fn save(&self, file: impl AsRef<Path>) -> Result<(), SnapshotError> {
        let file = file.as_ref();
        fs::write(file, self.to_bytes()).map_err(|source| file_error(file, source))
    }

    /// Loads it from a file. One that an older version saved is brought up to date.
    ///
    /// Errors if the file cannot be read, is not a snapshot, was changed, or was saved by a newer version.
    pub fn load(file: impl AsRef<Path>) -> Result<Self, SnapshotError> {
        let file = file.as_ref();
        Self::from_bytes(&fs::read(file).map_err(|source| file_error(file, source))?)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let database = expect_stored(self.store.to_bytes());
        let (clock, shown) = self.clock.to_texts();
        let ids = BASE64_STANDARD.encode(self.ids.to_bytes());
        let environment = self.environment;
        let mut bytes = to_body(&Header { snapshot: FORMAT, environment, clock, shown, ids });
        bytes.push(b'\n');
        bytes.extend(database);
        bytes.extend(checksum(&bytes));
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let (content, saved) =
            bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(SnapshotError::Invalid)?;
        let (header, database) = split_header(content).ok_or(SnapshotError::Invalid)?;
        if header.snapshot > FORMAT {
            return Err(SnapshotError::Newer);
        }
        if checksum(content) != *saved {
            return Err(SnapshotError::Invalid);
        }
        let store = Store::from_bytes(database).map_err(|error| match error {
            StoreError::Newer { .. } => SnapshotError::Newer,
            _ => SnapshotError::Invalid,
        })?;
        let (ids, clock) = header.positions().ok_or(SnapshotError::Invalid)?;
        Ok(Self { environment: header.environment, store, ids, clock })
    }
}

impl Header {
    fn positions(&self) -> Option<(SeedPosition, SavedClock)> {
        let ids = SeedPosition::from_bytes(&BASE64_STANDARD.decode(&self.ids).ok()?)?;
        Some((ids, SavedClock::parse(&self.clock, &self.shown)?))
    }
}

fn split_header(bytes: &[u8]) -> Option<(Header, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let (header, database) = bytes.split_at_checked(end)?;
    Some((serde_json::from_slice(header).ok()?, database.get(1..)?))
}

fn checksum(content: &[u8]) -> [u8; CHECKSUM_BYTES] {
    Sha256::digest(content).into()
}

fn file_error(file: &Path, source: io::Error) -> SnapshotError {
    SnapshotError::File { file: file.to_owned(), source }
}
