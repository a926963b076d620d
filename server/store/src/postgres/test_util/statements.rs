//! Statements that are sent to PostgreSQL, counted by connection and listed in a file.

use std::{
    collections::{HashMap, HashSet},
    fs::{File, OpenOptions},
    io::Write as _,
    sync::{LazyLock, Mutex, PoisonError},
};

use super::makes_test_databases;

/// Name of the environment variable with the path of the file to which this process appends each statement that it
/// sends, once and followed by a NUL.
pub(crate) const STATEMENTS_FILE: &str = "PARCELO_STATEMENTS_FILE";

/// The number of statements of each connection, by its backend's process id.
pub(crate) static STATEMENT_COUNTS: LazyLock<Mutex<HashMap<i32, usize>>> =
    LazyLock::new(Mutex::default);

struct StatementLog {
    file: File,
    known: HashSet<String>,
}

static STATEMENT_LOG: LazyLock<Option<Mutex<StatementLog>>> = LazyLock::new(|| {
    let path = std::env::var_os(STATEMENTS_FILE)?;
    let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    Some(Mutex::new(StatementLog { file, known: HashSet::new() }))
});

/// Records that a connection sends a statement, if the process makes databases for tests.
pub(crate) fn record_statement(connection: i32, sql: &str) {
    if !makes_test_databases() {
        return;
    }
    *STATEMENT_COUNTS
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .entry(connection)
        .or_default() += 1;
    if let Some(log) = &*STATEMENT_LOG {
        let mut log = log.lock().unwrap();
        if log.known.insert(sql.to_owned()) {
            log.file.write_all(format!("{sql}\0").as_bytes()).unwrap();
        }
    }
}
