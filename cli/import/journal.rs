//! What an import has done so far, written down so that whatever kills it, `--resume` goes on where
//! it was: a row before it is sent, and again when its order exists or surely does not.
//!
//! A file of one JSON object a line, only ever appended to; a line counts when its end is there.
//! What is written is on the disk before anything else happens.

use std::{
    collections::HashMap,
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::Path,
    sync::mpsc,
    thread,
};

use chrono::{DateTime, Utc};
use parcelo::{Client, Environment, TrackingNumber};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::{failure::Failure, texts::import as texts};

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum JournalEntry {
    /// The first line: where orders are created.
    Begun { version: u32, service: String, environment: Environment },
    /// The row is about to be sent.
    Sent { row: u64, reference: String, key: String, digest: String, at: DateTime<Utc> },
    /// Its order exists.
    Created { key: String, tracking_number: TrackingNumber },
    /// Its order does not exist, and nobody is at creating it.
    NotCreated { key: String },
}

/// What the journal knows of an order.
#[derive(Debug, Clone)]
pub(crate) enum Recorded {
    /// It was sent, first at this time, and may exist.
    Sent {
        first: DateTime<Utc>,
        digest: String,
    },
    Created {
        tracking_number: TrackingNumber,
        digest: String,
    },
    NotCreated,
}

/// What an import knows when it begins, by idempotency key.
pub(crate) type Orders = HashMap<String, Recorded>;

/// Whether there may be a journal already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeMode {
    /// There must be none: without being asked to, nothing is taken up again.
    Fresh,
    /// It is taken up.
    Resume,
}

/// The journal of a running import, held by this process alone.
#[derive(Debug)]
pub(crate) struct Journal(mpsc::Sender<Line>);

#[derive(Debug)]
struct Line {
    text: String,
    written: oneshot::Sender<io::Result<()>>,
}

const VERSION: u32 = 1;

impl Journal {
    /// Opens the journal at `path`, and tells what it knows.
    pub(crate) fn open(
        path: &Path,
        resume: ResumeMode,
        client: &Client,
    ) -> Result<(Self, Orders), Failure> {
        let fault = |why: io::Error| Failure::unwritable(&path.to_string_lossy(), &why);
        let name = path.to_string_lossy();
        let mut options = OpenOptions::new();
        options.read(true).append(true);
        let options = match resume {
            ResumeMode::Fresh => options.create_new(true),
            ResumeMode::Resume => options.create(true),
        };
        let mut file = options.open(path).map_err(|why| match why.kind() {
            io::ErrorKind::AlreadyExists => already_there(&name),
            _ => fault(why),
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(&name)),
            Err(TryLockError::Error(why)) => return Err(fault(why)),
        }
        let orders = read(&mut file, client).map_err(|unread| match unread {
            Unread::Disk(why) => fault(why),
            Unread::Line(line) => broken(&name, line),
            Unread::Elsewhere(service) => elsewhere(&name, &service),
        })?;
        if file.metadata().map_err(fault)?.len() == 0 {
            begin(&mut file, path, client).map_err(fault)?;
        }
        let (lines, waiting) = mpsc::channel();
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || keep(&mut file, &waiting))
            .map_err(fault)?;
        Ok((Self(lines), orders))
    }

    /// Writes a line; when this is over, the line is on the disk.
    pub(crate) async fn write(&self, entry: &JournalEntry) -> io::Result<()> {
        let (written, done) = oneshot::channel();
        let text = format!("{}\n", serde_json::to_string(entry)?);
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.send(Line { text, written }).map_err(|_| gone())?;
        done.await.map_err(|_| gone())?
    }
}

/// Writes all lines that wait, together: the disk is asked once for many.
fn keep(file: &mut File, lines: &mpsc::Receiver<Line>) {
    while let Ok(first) = lines.recv() {
        let group: Vec<_> = std::iter::once(first).chain(lines.try_iter()).collect();
        let text: String = group.iter().map(|line| line.text.as_str()).collect();
        let result = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        for line in group {
            let told = result.as_ref().copied().map_err(|why| io::Error::from(why.kind()));
            // Who does not wait for it any more does not want to know.
            let _ = line.written.send(told);
        }
        if result.is_err() {
            return;
        }
    }
}

fn begin(file: &mut File, path: &Path, client: &Client) -> io::Result<()> {
    let entry = JournalEntry::Begun {
        version: VERSION,
        service: client.base_url().to_string(),
        environment: client.environment(),
    };
    writeln!(file, "{}", serde_json::to_string(&entry)?)?;
    file.sync_all()?;
    // The name has to be on the disk too; where folders cannot be asked for that, they need not be.
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Why a journal cannot be taken up.
enum Unread {
    Disk(io::Error),
    Line(u64),
    Elsewhere(String),
}

impl From<io::Error> for Unread {
    fn from(why: io::Error) -> Self {
        Self::Disk(why)
    }
}

/// Reads the journal, and cuts off a last line that was not written to its end: nothing was done
/// before it was.
fn read(file: &mut File, client: &Client) -> Result<Orders, Unread> {
    file.seek(SeekFrom::Start(0))?;
    let (mut orders, mut whole, mut number) = (Orders::new(), 0, 0);
    let mut lines = BufReader::new(&*file);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
        number += 1;
        let entry = serde_json::from_slice(&line).map_err(|_| Unread::Line(number))?;
        if let JournalEntry::Begun { version, service, environment } = &entry {
            if *version != VERSION {
                return Err(Unread::Line(number));
            }
            if service != client.base_url().as_str() || *environment != client.environment() {
                return Err(Unread::Elsewhere(service.clone()));
            }
        } else if number == 1 {
            return Err(Unread::Line(number));
        }
        learn(&mut orders, entry);
        whole += line.len() as u64;
        line.clear();
    }
    file.set_len(whole)?;
    Ok(orders)
}

fn learn(orders: &mut Orders, entry: JournalEntry) {
    match entry {
        JournalEntry::Begun { .. } => {}
        JournalEntry::Sent { key, digest, at, .. } => {
            let first = match orders.get(&key) {
                Some(Recorded::Sent { first, .. }) => *first,
                _ => at,
            };
            orders.insert(key, Recorded::Sent { first, digest });
        }
        JournalEntry::Created { key, tracking_number } => {
            let digest = match orders.remove(&key) {
                Some(Recorded::Sent { digest, .. } | Recorded::Created { digest, .. }) => digest,
                Some(Recorded::NotCreated) | None => String::new(),
            };
            orders.insert(key, Recorded::Created { tracking_number, digest });
        }
        JournalEntry::NotCreated { key } => {
            orders.insert(key, Recorded::NotCreated);
        }
    }
}

fn already_there(file: &str) -> Failure {
    Failure::usage(texts::JOURNAL_THERE.with(&[("file", file)]), texts::RESUME_OR_ELSEWHERE)
}

fn in_use(file: &str) -> Failure {
    Failure::usage(texts::JOURNAL_IN_USE.with(&[("file", file)]), texts::WAIT_FOR_OTHER)
}

fn broken(file: &str, line: u64) -> Failure {
    let values = [("file", file), ("line", &*line.to_string())];
    Failure::usage(texts::JOURNAL_BROKEN.with(&values), texts::MEND_JOURNAL)
}

fn elsewhere(file: &str, service: &str) -> Failure {
    let values = [("file", file), ("service", service)];
    Failure::usage(texts::JOURNAL_ELSEWHERE.with(&values), texts::SAME_SERVICE)
}

#[cfg(test)]
mod tests {
    use parcelo::ApiKey;

    use super::*;

    fn client(url: &str) -> Client {
        let key = ApiKey::from_random(Environment::Sandbox, &[7; 32]);
        Client::builder(key).base_url(url).unwrap().build().unwrap()
    }

    fn sent(key: &str, at: &str) -> JournalEntry {
        let (reference, digest) = (key.to_owned(), "d".to_owned());
        JournalEntry::Sent {
            row: 2,
            reference,
            key: key.to_owned(),
            digest,
            at: at.parse().unwrap(),
        }
    }

    const EARLY: &str = "2026-01-05T08:00:00Z";
    const LATE: &str = "2026-01-05T09:00:00Z";

    #[tokio::test]
    async fn what_was_written_is_known_again_and_a_torn_line_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let here = client("http://127.0.0.1:1");
        let (journal, orders) = Journal::open(&path, ResumeMode::Fresh, &here).unwrap();
        assert!(orders.is_empty());
        let number = TrackingNumber::parse("SB-SUCCESS-0001").unwrap();
        let created = JournalEntry::Created { key: "one".into(), tracking_number: number.clone() };
        for entry in [sent("one", EARLY), created, sent("two", EARLY), sent("two", LATE)] {
            journal.write(&entry).await.unwrap();
        }
        for entry in [sent("three", EARLY), JournalEntry::NotCreated { key: "three".into() }] {
            journal.write(&entry).await.unwrap();
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, [&whole, &b"{\"event\":\"created\",\"key\":\"two\""[..]].concat())
            .unwrap();

        let (_journal, orders) = reopened(&path, &here);
        assert!(matches!(&orders["one"], Recorded::Created { tracking_number, digest }
            if *tracking_number == number && digest == "d"));
        assert!(matches!(&orders["two"], Recorded::Sent { first, .. }
            if *first == EARLY.parse::<DateTime<Utc>>().unwrap()));
        assert!(matches!(&orders["three"], Recorded::NotCreated));
        assert_eq!(std::fs::read(&path).unwrap(), whole, "the torn line is gone");
    }

    /// The lock falls when the writer has ended, a moment after its journal was dropped.
    fn reopened(path: &Path, client: &Client) -> (Journal, Orders) {
        loop {
            match Journal::open(path, ResumeMode::Resume, client) {
                Ok(open) => return open,
                Err(failure) => assert!(failure.message.en.contains("in use"), "{failure:?}"),
            }
            thread::yield_now();
        }
    }

    #[test]
    fn a_journal_is_refused_when_it_is_there_in_use_broken_or_of_another_service() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let here = client("http://127.0.0.1:1");
        let refused = |resume, client: &Client| {
            Journal::open(&path, resume, client).map(drop).unwrap_err().message.en.clone()
        };
        let journal = Journal::open(&path, ResumeMode::Fresh, &here).unwrap();
        assert!(refused(ResumeMode::Fresh, &here).contains("there already"));
        assert!(refused(ResumeMode::Resume, &here).contains("in use"));
        drop(journal);
        drop(reopened(&path, &here));
        let begun = std::fs::read_to_string(&path).unwrap();
        for (text, said) in [
            (begun.replace("127.0.0.1:1", "127.0.0.1:2"), "another service"),
            (begun.replace("sandbox", "production"), "another service"),
            (begun.replace("\"version\":1", "\"version\":2"), "line 1"),
            (format!("{begun}nonsense\n{begun}"), "line 2"),
            ("{\"event\":\"notCreated\",\"key\":\"k\"}\n".to_owned(), "line 1"),
        ] {
            let other = folder.path().join("b.journal");
            std::fs::write(&other, text).unwrap();
            let failure = Journal::open(&other, ResumeMode::Resume, &here).map(drop).unwrap_err();
            assert!(failure.message.en.contains(said), "{failure:?}");
        }
    }
}
