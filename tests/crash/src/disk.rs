//! The log of a recording, and the state of the disk at each of its events: durable parts and pending ones.
//!
//! A write or truncation is durable once its file was synced, a name once its folder was. Until then each may be on the
//! disk or not, independently of those before and after it, and a write may be there with only some of its sectors.
//! After a failed sync no later one makes the same writes durable: Linux drops such pages. Real file systems reorder
//! less; POSIX permits all of this.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use crate::{
    facts::Facts,
    server::{ApiRequest, ApiResponse},
};

/// A file, by its position in the order of creation.
pub type FileId = u32;
/// The id of the folder, which is treated as a file that contains the names.
pub const FOLDER: FileId = FileId::MAX;
/// The files of a folder with their bytes.
pub type Image = Vec<(String, Vec<u8>)>;

/// The part of an event that reached the disk: a bit for each sector of a write; the last bit stands for all further
/// sectors. A change of a name or a truncation reaches the disk as a whole or not at all.
pub type SectorMask = u64;
pub const NOTHING: SectorMask = 0;
pub const ALL: SectorMask = SectorMask::MAX;
pub const SECTOR: usize = 512;

/// A finished recording: the files before it, everything that happened to them, and every request with its response.
pub struct RecordedRun {
    pub base: Image,
    pub events: Vec<Event>,
    pub requests: Vec<(ApiRequest, Option<ApiResponse>)>,
    pub key: String,
    /// Number of calls that could have failed.
    pub calls: usize,
}

/// The facts and responses that clients rely on at one moment.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    /// The requests that were sent, as indexes into those of the run; `true` for those that were answered.
    pub requests: BTreeMap<usize, bool>,
    pub facts: Arc<Facts>,
    /// The number of parcels that none of these requests has created.
    pub parcels: i64,
    /// `true` if a reset was sent but not answered.
    pub is_resetting: bool,
    /// `true` if the key and the endpoint were set up.
    pub is_set_up: bool,
}

impl Expectations {
    /// Returns the expectations after a reset.
    pub fn reset(&self) -> Self {
        Self { is_set_up: self.is_set_up, ..Self::default() }
    }
}

/// A change to the files, or the expectations from here on.
#[derive(Debug, Clone)]
pub enum Event {
    Create { name: String, file: FileId },
    Unlink { name: String },
    Write { file: FileId, at: usize, bytes: Box<[u8]> },
    Truncate { file: FileId, to: usize },
    Sync { file: FileId },
    FailedSync { file: FileId },
    Mark(Expectations),
}

impl Event {
    /// Returns the file whose content the event changes.
    pub fn file(&self) -> Option<FileId> {
        match self {
            Self::Create { .. } | Self::Unlink { .. } => Some(FOLDER),
            Self::Write { file, .. } | Self::Truncate { file, .. } => Some(*file),
            Self::Sync { .. } | Self::FailedSync { .. } | Self::Mark(_) => None,
        }
    }
}

/// The disk and the expectations after some events of a run.
pub struct Disk<'r> {
    run: &'r RecordedRun,
    /// Number of events so far.
    next: usize,
    durable: Content,
    /// Events that are not durable yet, by their index.
    pending: Vec<usize>,
    /// Index of the event after the last sync, whether it succeeded or failed.
    settled: usize,
    /// The latest mark.
    marked: usize,
}

#[derive(Clone, Default)]
struct Content {
    files: BTreeMap<FileId, Vec<u8>>,
    names: BTreeMap<String, FileId>,
}

impl<'r> Disk<'r> {
    /// Returns the disk after this many events.
    pub fn after(run: &'r RecordedRun, events: usize) -> Self {
        let mut durable = Content::default();
        for (file, (name, bytes)) in (0..).zip(&run.base) {
            durable.names.insert(name.clone(), file);
            durable.files.insert(file, bytes.clone());
        }
        let mut disk = Self { run, next: 0, durable, pending: Vec::new(), settled: 0, marked: 0 };
        disk.advance_to(events);
        disk
    }

    /// Moves to a later moment.
    pub fn advance_to(&mut self, events: usize) {
        while self.next < events {
            match &self.run.events[self.next] {
                Event::Mark(_) => self.marked = self.next,
                Event::Sync { file } => self.settle(*file, ALL),
                Event::FailedSync { file } => self.settle(*file, NOTHING),
                _ => self.pending.push(self.next),
            }
            self.next += 1;
        }
    }

    /// Applies the kept part of a file's pending events to the durable content, and discards the rest.
    fn settle(&mut self, file: FileId, kept: SectorMask) {
        let events = &self.run.events;
        self.pending.retain(|at| {
            let is_settled = events[*at].file() == Some(file);
            if is_settled {
                self.durable.apply(&events[*at], kept);
            }
            !is_settled
        });
        self.settled = self.next + 1;
    }

    /// Returns the expectations of the latest mark.
    pub fn expected(&self) -> &'r Expectations {
        let Event::Mark(expected) = &self.run.events[self.marked] else {
            panic!("a recording begins with a mark");
        };
        expected
    }

    /// Returns the events that are not durable.
    pub fn pending(&self) -> Vec<&'r Event> {
        self.pending.iter().map(|at| &self.run.events[*at]).collect()
    }

    /// Returns a hash of the image that contains these parts of the pending events, and of its expectations. Equal
    /// images of a log usually have the same hash.
    pub fn image_hash(&self, kept: &[SectorMask]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.settled, self.marked).hash(&mut hasher);
        let there = self.pending.iter().zip(kept).filter(|(_, kept)| **kept != NOTHING);
        there.for_each(|event| event.hash(&mut hasher));
        hasher.finish()
    }

    /// Returns the files when these parts of the pending events have reached the disk.
    pub fn image(&self, kept: &[SectorMask]) -> Image {
        let mut content = self.durable.clone();
        for (event, kept) in self.pending().into_iter().zip(kept) {
            content.apply(event, *kept);
        }
        let Content { mut files, names } = content;
        let mut bytes = |file| files.remove(&file).unwrap_or_default();
        names.into_iter().map(|(name, file)| (name, bytes(file))).collect()
    }

    /// Returns the files when all pending events have reached the disk.
    pub fn complete_image(&self) -> Image {
        self.image(&vec![ALL; self.pending.len()])
    }
}

impl Content {
    fn apply(&mut self, event: &Event, kept: SectorMask) {
        match event {
            _ if kept == NOTHING => {}
            Event::Create { name, file } => drop(self.names.insert(name.clone(), *file)),
            Event::Unlink { name } => drop(self.names.remove(name)),
            Event::Truncate { file, to } => self.files.entry(*file).or_default().resize(*to, 0),
            Event::Write { file, at, bytes } => {
                write(self.files.entry(*file).or_default(), *at, bytes, kept);
            }
            Event::Sync { .. } | Event::FailedSync { .. } | Event::Mark(_) => {}
        }
    }
}

/// Writes those sectors of the bytes that are set in `kept`.
fn write(content: &mut Vec<u8>, at: usize, bytes: &[u8], kept: SectorMask) {
    for (bit, sector) in (at / SECTOR..(at + bytes.len()).div_ceil(SECTOR)).enumerate() {
        let start = at.max(sector * SECTOR);
        let end = (at + bytes.len()).min((sector + 1) * SECTOR);
        if kept >> bit.min(63) & 1 == 1 {
            content.resize(content.len().max(end), 0);
            content[start..end].copy_from_slice(&bytes[start - at..end - at]);
        }
    }
}
