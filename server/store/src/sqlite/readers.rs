//! Connections that only read. No read waits for a connection: if none is free, another is opened.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use rusqlite::Connection;

use super::connection;

/// Maximum number of connections that are kept open.
const MAX_IDLE_READERS: usize = 16;

/// The free connections of a file.
pub(super) struct Readers {
    file: PathBuf,
    free: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(super) fn new(file: PathBuf) -> Self {
        Self { file, free: Mutex::default() }
    }

    /// Reads with a separate connection.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let db = free.map_or_else(|| connection::open_reader(&self.file), Ok)?;
        let answer = read(&db);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MAX_IDLE_READERS {
            free.push(db);
        }
        answer
    }
}
