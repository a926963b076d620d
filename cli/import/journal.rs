//! The journal of an import on disk, with which `--resume` continues after any interruption. Each row is recorded
//! before it is sent, and again once its order is known to exist or not to exist.
//!
//! The journal is an append-only file with one JSON object per line. A line counts once its line break is written, and
//! nothing that depends on a line is done before it is on disk.

use std::{
    collections::HashMap,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Seek, SeekFrom, Write},
    path::Path,
    sync::mpsc,
    thread,
};

use chrono::{DateTime, Utc};
use parcelo::{ApiKey, Client, Environment, IdempotencyKey, TrackingNumber, model::KeyState};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use super::short_digest;
use crate::{failure::Failure, texts::import as texts};

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum JournalEntry {
    /// The destination of the orders. It is the first line; each further API key that continues the import adds another
    /// one.
    Begun {
        version: u32,
        #[serde(flatten)]
        origin: Origin,
    },
    /// The row is about to be sent, or was sent and its outcome is unknown.
    Sent {
        row: u64,
        reference: String,
        key: IdempotencyKey,
        digest: String,
        at: DateTime<Utc>,
        /// The complete state of the key. Journals of older versions have only `at`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        state: Option<KeyState>,
    },
    /// Its order exists.
    Created { key: String, tracking_number: TrackingNumber },
    /// Its order does not exist, and no request in progress can create it.
    NotCreated { key: String },
}

/// The service and account that the orders are sent to. Any other one does not know the idempotency keys, so that it
/// would create every order again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origin {
    service: String,
    environment: Environment,
    /// A digest of the API key; `None` in journals of version 0.1.
    #[serde(default)]
    api_key: Option<String>,
}

impl Origin {
    pub(crate) fn new(client: &Client, key: &ApiKey) -> Self {
        let service = client.base_url().to_string();
        // The digest includes the service, so that it cannot be compared with one made for another purpose. A key has
        // 190 random bits, so it cannot be found from its digest.
        let digest = short_digest(&Value::from(key.secret()), &service);
        Self { service, environment: client.environment(), api_key: Some(digest) }
    }
}

/// The state of an order according to the journal.
#[derive(Debug, Clone)]
pub(crate) enum RecordedOrder {
    /// It was sent and may exist. The key knows when it was first sent.
    Sent {
        key: IdempotencyKey,
        digest: String,
    },
    Created {
        tracking_number: TrackingNumber,
        digest: String,
    },
    NotCreated,
}

/// The states of orders at the start of an import, by idempotency key.
pub(crate) type RecordedOrders = HashMap<String, RecordedOrder>;

/// The handling of an earlier run's journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResumeMode {
    /// No journal may exist, so that an import is never continued by accident.
    Fresh,
    /// The journal is continued with the API key that began it.
    Resume,
    /// The journal is continued with the same API key, whose secret was rotated since.
    ResumeWithNewSecret,
}

/// The contents of a journal when it is opened.
#[derive(Debug, Default)]
pub(crate) struct JournalContents {
    /// The latest origin, if there is one.
    origin: Option<Origin>,
    pub(crate) orders: RecordedOrders,
    /// The first and the last parcel that were created.
    pub(crate) first_and_last: Option<[TrackingNumber; 2]>,
}

/// The journal of a running import, locked by this process.
#[derive(Debug)]
pub(crate) struct Journal(mpsc::Sender<Line>);

#[derive(Debug)]
struct Line {
    text: String,
    written: oneshot::Sender<io::Result<()>>,
}

const VERSION: u32 = 1;

impl Journal {
    /// Opens the journal at `path` and reads its contents.
    pub(crate) fn open(
        path: &Path,
        mode: ResumeMode,
        origin: Origin,
    ) -> Result<(Self, JournalContents), Failure> {
        let unwritable =
            |err: io::Error| Failure::for_unwritable_file(&path.to_string_lossy(), &err);
        let mut file = open_locked(path, mode)?;
        let contents = read_journal(&mut file).map_err(|error| error.failure(path))?;
        // If no order can exist, for instance because the address was wrong, no order can be created a second time.
        let has_orders =
            contents.orders.values().any(|order| !matches!(order, RecordedOrder::NotCreated));
        if let Some(recorded) = contents.origin.as_ref().filter(|_| has_orders) {
            check_origin(path, recorded, &origin, mode)?;
        }
        if contents.origin.as_ref() != Some(&origin) {
            let is_new = contents.origin.is_none();
            write_origin(&mut file, path, origin).map_err(|err| {
                if is_new {
                    // Nothing was sent, and an empty journal would look like an import in progress.
                    let _ = fs::remove_file(path);
                }
                unwritable(err)
            })?;
        }
        let (lines, waiting) = mpsc::channel();
        thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || write_lines(&mut file, &waiting))
            .map_err(unwritable)?;
        Ok((Self(lines), contents))
    }

    /// Writes a line. When this returns, the line is on disk.
    pub(crate) async fn write(&self, entry: &JournalEntry) -> io::Result<()> {
        let (written, done) = oneshot::channel();
        let text = format!("{}\n", serde_json::to_string(entry)?);
        let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.send(Line { text, written }).map_err(|_| gone())?;
        done.await.map_err(|_| gone())?
    }
}

fn open_locked(path: &Path, mode: ResumeMode) -> Result<File, Failure> {
    let name = path.to_string_lossy();
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    let options = match mode {
        ResumeMode::Fresh => options.create_new(true),
        ResumeMode::Resume | ResumeMode::ResumeWithNewSecret => options.create(true),
    };
    let file = options.open(path).map_err(|err| match err.kind() {
        io::ErrorKind::AlreadyExists => {
            let message = texts::JOURNAL_EXISTS.with(&[("file", &name)]);
            Failure::usage(message, texts::RESUME_OR_ELSEWHERE)
        }
        _ => Failure::for_unwritable_file(&name, &err),
    })?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = texts::JOURNAL_IN_USE.with(&[("file", &name)]);
            Err(Failure::usage(message, texts::WAIT_FOR_OTHER))
        }
        Err(TryLockError::Error(err)) => Err(Failure::for_unwritable_file(&name, &err)),
    }
}

fn check_origin(
    path: &Path,
    recorded: &Origin,
    origin: &Origin,
    mode: ResumeMode,
) -> Result<(), Failure> {
    let name = path.to_string_lossy();
    if recorded.service != origin.service || recorded.environment != origin.environment {
        let values = [("file", &*name), ("service", &recorded.service)];
        let message = texts::JOURNAL_ELSEWHERE.with(&values);
        return Err(Failure::usage(message, texts::SAME_SERVICE));
    }
    let is_other_key = recorded.api_key.is_some() && recorded.api_key != origin.api_key;
    if is_other_key && mode != ResumeMode::ResumeWithNewSecret {
        let message = texts::OTHER_API_KEY.with(&[("file", &*name)]);
        return Err(Failure::usage(message, texts::SAME_API_KEY));
    }
    Ok(())
}

/// Writes all queued lines together: most of the time is spent on syncing, and one sync covers all of them.
fn write_lines(file: &mut File, lines: &mpsc::Receiver<Line>) {
    while let Ok(first) = lines.recv() {
        let group: Vec<_> = std::iter::once(first).chain(lines.try_iter()).collect();
        let text: String = group.iter().map(|line| line.text.as_str()).collect();
        let result = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
        for line in group {
            let result = result.as_ref().copied().map_err(|err| io::Error::from(err.kind()));
            // A second Ctrl-C may have abandoned the row that waited for it.
            let _ = line.written.send(result);
        }
        // After a failed write or sync it is unknown which lines are on disk, so no more are written.
        if result.is_err() {
            return;
        }
    }
}

fn write_origin(file: &mut File, path: &Path, origin: Origin) -> io::Result<()> {
    let entry = JournalEntry::Begun { version: VERSION, origin };
    writeln!(file, "{}", serde_json::to_string(&entry)?)?;
    file.sync_all()?;
    // The name of a new file must be on disk too. Where a directory cannot be synced, this is not needed.
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Ok(directory) = File::open(directory.unwrap_or(Path::new("."))) {
        let _ = directory.sync_all();
    }
    Ok(())
}

/// The reason that a journal cannot be read.
enum JournalError {
    Io(io::Error),
    InvalidLine(u64),
}

impl From<io::Error> for JournalError {
    fn from(err: io::Error) -> Self {
        Self::Io(err)
    }
}

impl JournalError {
    fn failure(self, path: &Path) -> Failure {
        let name = path.to_string_lossy();
        match self {
            Self::Io(err) => Failure::for_unwritable_file(&name, &err),
            Self::InvalidLine(line) => {
                let values = [("file", &*name), ("line", &*line.to_string())];
                let message = texts::INVALID_JOURNAL_LINE.with(&values);
                Failure::usage(message, texts::RESTORE_JOURNAL)
            }
        }
    }
}

/// Reads the journal, and truncates a last line without a line break. That line was being written when the process was
/// killed, and nothing is done before a line is complete.
fn read_journal(file: &mut File) -> Result<JournalContents, JournalError> {
    file.seek(SeekFrom::Start(0))?;
    let (mut contents, mut length, mut number) = (JournalContents::default(), 0, 0);
    let mut lines = BufReader::new(&*file);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
        number += 1;
        let entry = serde_json::from_slice(&line).ok();
        let entry = entry.ok_or(JournalError::InvalidLine(number))?;
        match entry {
            JournalEntry::Begun { version: VERSION, origin } => contents.origin = Some(origin),
            JournalEntry::Begun { .. } => return Err(JournalError::InvalidLine(number)),
            _ if contents.origin.is_none() => return Err(JournalError::InvalidLine(number)),
            JournalEntry::Created { ref tracking_number, .. } => {
                let last = tracking_number.clone();
                let first =
                    contents.first_and_last.take().map_or_else(|| last.clone(), |[first, _]| first);
                contents.first_and_last = Some([first, last]);
                apply(&mut contents.orders, entry);
            }
            JournalEntry::Sent { .. } | JournalEntry::NotCreated { .. } => {
                apply(&mut contents.orders, entry);
            }
        }
        length += line.len() as u64;
        line.clear();
    }
    file.set_len(length)?;
    Ok(contents)
}

fn apply(orders: &mut RecordedOrders, entry: JournalEntry) {
    match entry {
        JournalEntry::Begun { .. } => {}
        JournalEntry::Sent { key, digest, at, state, .. } => {
            let text = key.to_string();
            let key = match (state, orders.remove(&text)) {
                (Some(state), _) => key.with_state(&state),
                (None, Some(RecordedOrder::Sent { key, .. })) => key.first_sent_at(at),
                (None, _) => key.first_sent_at(at),
            };
            orders.insert(text, RecordedOrder::Sent { key, digest });
        }
        JournalEntry::Created { key, tracking_number } => {
            let digest = match orders.remove(&key) {
                Some(
                    RecordedOrder::Sent { digest, .. } | RecordedOrder::Created { digest, .. },
                ) => digest,
                Some(RecordedOrder::NotCreated) | None => String::new(),
            };
            orders.insert(key, RecordedOrder::Created { tracking_number, digest });
        }
        JournalEntry::NotCreated { key } => {
            orders.insert(key, RecordedOrder::NotCreated);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(url: &str, random: u8) -> Origin {
        let key = ApiKey::from_random(Environment::Sandbox, &[random; 32]);
        let client = Client::builder(key.clone()).base_url(url).unwrap().build().unwrap();
        Origin::new(&client, &key)
    }

    fn sent(key: &str, at: &str) -> JournalEntry {
        let (reference, digest) = (key.to_owned(), "d".to_owned());
        let key = IdempotencyKey::parse(key).unwrap();
        let at = at.parse().unwrap();
        JournalEntry::Sent { row: 2, reference, key, digest, at, state: None }
    }

    const EARLY: &str = "2026-01-05T08:00:00Z";
    const LATE: &str = "2026-01-05T09:00:00Z";

    #[tokio::test]
    async fn a_reopened_journal_ignores_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let here = origin("http://127.0.0.1:1", 7);
        let (journal, known) = Journal::open(&path, ResumeMode::Fresh, here.clone()).unwrap();
        assert!(known.orders.is_empty() && known.first_and_last.is_none());
        let number = TrackingNumber::parse("SB-SUCCESS-0001").unwrap();
        let created =
            JournalEntry::Created { key: "order-one".into(), tracking_number: number.clone() };
        for entry in
            [sent("order-one", EARLY), created, sent("order-two", EARLY), sent("order-two", LATE)]
        {
            journal.write(&entry).await.unwrap();
        }
        for entry in
            [sent("order-three", EARLY), JournalEntry::NotCreated { key: "order-three".into() }]
        {
            journal.write(&entry).await.unwrap();
        }
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(
            &path,
            [&whole, &b"{\"event\":\"created\",\"key\":\"order-two\""[..]].concat(),
        )
        .unwrap();

        let (_journal, known) = reopened(&path, &here);
        assert_eq!(known.first_and_last, Some([number.clone(), number.clone()]));
        let orders = known.orders;
        assert!(matches!(&orders["order-one"], RecordedOrder::Created { tracking_number, digest }
            if *tracking_number == number && digest == "d"));
        let early = EARLY.parse::<DateTime<Utc>>().unwrap();
        assert!(matches!(&orders["order-two"], RecordedOrder::Sent { key, .. }
            if key.state() == KeyState::sent_at(early)));
        assert!(matches!(&orders["order-three"], RecordedOrder::NotCreated));
        assert_eq!(std::fs::read(&path).unwrap(), whole, "the torn line is gone");
    }

    #[test]
    fn a_key_is_restored_with_its_state_or_its_time() {
        let begun = r#"{"event":"begun","version":1,"service":"http://127.0.0.1:1/","environment":"sandbox"}"#;
        let sent = r#"{"event":"sent","row":2,"reference":"A-1","key":"key-0001","digest":"d","at":"2026-01-05T09:00:00Z""#;
        let state = r#"{"firstSent":"2026-01-05T08:00:00.000Z","serviceTime":"2026-01-05T07:59:00.000Z","execution":"unknown","request":"ab"}"#;
        let with_state = format!("{sent},\"state\":{state}}}");
        let known: KeyState = serde_json::from_str(state).unwrap();
        let (early, late) = (EARLY.parse().unwrap(), LATE.parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let older = sent.replace("09:00", "08:00");
        for (lines, expected) in [
            (vec![format!("{sent}}}")], KeyState::sent_at(late)),
            (vec![format!("{older}}}"), format!("{sent}}}")], KeyState::sent_at(early)),
            (vec![with_state], known),
        ] {
            std::fs::write(&path, format!("{begun}\n{}\n", lines.join("\n"))).unwrap();
            let (_journal, contents) = reopened(&path, &origin("http://127.0.0.1:1", 7));
            let RecordedOrder::Sent { key, .. } = &contents.orders["key-0001"] else {
                panic!("{lines:?}")
            };
            assert_eq!(key.state(), expected, "{lines:?}");
        }
    }

    /// Reopens the journal. The lock is released when the writer thread ends, shortly after the journal is dropped.
    fn reopened(path: &Path, origin: &Origin) -> (Journal, JournalContents) {
        loop {
            match Journal::open(path, ResumeMode::Resume, origin.clone()) {
                Ok(open) => return open,
                Err(failure) => assert!(failure.message.en.contains("in use"), "{failure:?}"),
            }
            thread::yield_now();
        }
    }

    #[test]
    fn an_existing_locked_invalid_or_foreign_journal_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let here = origin("http://127.0.0.1:1", 7);
        let refused = |mode| {
            Journal::open(&path, mode, here.clone()).map(drop).unwrap_err().message.en.clone()
        };
        let journal = Journal::open(&path, ResumeMode::Fresh, here.clone()).unwrap();
        assert!(refused(ResumeMode::Fresh).contains("already exists"));
        assert!(refused(ResumeMode::Resume).contains("in use"));
        drop(journal);
        drop(reopened(&path, &here));
        let begun = std::fs::read_to_string(&path).unwrap();
        let sent = format!("{}\n", serde_json::to_string(&sent("order-one", EARLY)).unwrap());
        for (text, message) in [
            (begun.replace("127.0.0.1:1", "127.0.0.1:2") + &sent, "another service"),
            (begun.replace("sandbox", "production") + &sent, "another service"),
            (begun.replace("\"version\":1", "\"version\":2"), "line 1"),
            (format!("{begun}nonsense\n{begun}"), "line 2"),
            ("{\"event\":\"notCreated\",\"key\":\"k\"}\n".to_owned(), "line 1"),
        ] {
            let other = folder.path().join("b.journal");
            std::fs::write(&other, text).unwrap();
            let failure =
                Journal::open(&other, ResumeMode::Resume, here.clone()).map(drop).unwrap_err();
            assert!(failure.message.en.contains(message), "{failure:?}");
        }
    }

    #[test]
    fn another_api_key_needs_permission_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let [first, second] = [7, 8].map(|random| origin("http://127.0.0.1:1", random));
        drop(Journal::open(&path, ResumeMode::Fresh, first.clone()).unwrap());
        drop(reopened(&path, &first));
        let mut whole = std::fs::read_to_string(&path).unwrap();
        whole.push_str(&serde_json::to_string(&sent("order-one", EARLY)).unwrap());
        whole.push('\n');
        let key = |text: &str| {
            let line = text.lines().rfind(|line| line.contains("begun")).unwrap();
            let line: Value = serde_json::from_str(line).unwrap();
            line["apiKey"].as_str().map(str::to_owned)
        };
        for (mode, accepted) in
            [(ResumeMode::Resume, false), (ResumeMode::ResumeWithNewSecret, true)]
        {
            let copy = folder.path().join("b.journal");
            std::fs::write(&copy, &whole).unwrap();
            assert_eq!(Journal::open(&copy, mode, second.clone()).is_ok(), accepted);
            let expected = if accepted { &second } else { &first };
            let written = std::fs::read_to_string(&copy).unwrap();
            assert_eq!(key(&written), expected.api_key);
        }
        let old = folder.path().join("old.journal");
        let begun = r#"{"event":"begun","version":1,"service":"http://127.0.0.1:1/","environment":"sandbox"}"#;
        std::fs::write(&old, format!("{begun}\n")).unwrap();
        drop(Journal::open(&old, ResumeMode::Resume, second.clone()).unwrap());
        assert_eq!(key(&std::fs::read_to_string(&old).unwrap()), second.api_key);
    }
}
