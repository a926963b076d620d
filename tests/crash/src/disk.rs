//! The log of a recording, and the state of the disk after each of its events: which changes are durable, and which are
//! still pending.
//!
//! A write or a truncation is durable once its file has been synced, and a created or removed name once the folder has
//! been synced. Until then, each change may or may not be on the disk, independently of the changes before and after
//! it, and a write may be there with only some of its sectors. If a sync fails, a later sync does not make the same
//! writes durable, because Linux no longer regards their pages as dirty. Real file systems reorder less, but POSIX
//! permits all of this.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use crate::{
    facts::Facts,
    server::{ApiRequest, ApiResponse},
};

/// The id of a file: its position in the order of creation.
pub type FileId = u32;
/// The id of the folder, which is treated as a file that contains the names.
pub const FOLDER: FileId = FileId::MAX;
/// The files of a folder with their bytes.
pub type Image = Vec<(String, Vec<u8>)>;

/// The part of an event that reached the disk, with one bit for each sector of a write. The last bit also stands for
/// all further sectors. A change of a name or a truncation reaches the disk as a whole or not at all.
pub type SectorMask = u64;
pub const NOTHING: SectorMask = 0;
pub const ALL: SectorMask = SectorMask::MAX;
pub const SECTOR: usize = 512;

/// A finished recording: the files before it, everything that happened to them, and every request with its response.
pub struct RecordedRun {
    pub base: Image,
    pub events: Vec<Event>,
    pub requests: Vec<(ApiRequest, Option<ApiResponse>)>,
    pub api_key: String,
    /// Number of calls that could have failed.
    pub calls: usize,
}

/// The facts and responses that clients rely on at one moment.
#[derive(Debug, Clone, Default)]
pub struct Expectations {
    /// The requests that were sent, as indexes into those of the run; `true` for those that were answered.
    pub requests: BTreeMap<usize, bool>,
    pub facts: Arc<Facts>,
    /// The number of parcels that were not created by these requests.
    pub parcels: i64,
    /// `true` if a reset was sent but not answered.
    pub is_resetting: bool,
    /// `true` if the API key and the webhook endpoint were set up.
    pub is_set_up: bool,
}

impl Expectations {
    /// Returns the expectations after a reset.
    pub fn after_reset(&self) -> Self {
        Self { is_set_up: self.is_set_up, ..Self::default() }
    }
}

/// A change to the files, a sync, or the expectations from this moment on.
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
    /// Returns the file whose content the event changes. The names are the content of the folder.
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
    /// Number of events so far, which is the index of the next one.
    next: usize,
    durable: Content,
    /// Indexes of the events that are not durable yet.
    pending: Vec<usize>,
    /// Index of the event after the last sync, whether it succeeded or failed.
    after_last_sync: usize,
    /// Index of the latest mark.
    last_mark: usize,
}

/// The files of a folder by id, and the names that refer to them.
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
        let mut disk =
            Self { run, next: 0, durable, pending: Vec::new(), after_last_sync: 0, last_mark: 0 };
        disk.advance_to(events);
        disk
    }

    /// Applies further events, until this many have happened.
    pub fn advance_to(&mut self, events: usize) {
        while self.next < events {
            match &self.run.events[self.next] {
                Event::Mark(_) => self.last_mark = self.next,
                Event::Sync { file } => self.finish_sync(*file, ALL),
                Event::FailedSync { file } => self.finish_sync(*file, NOTHING),
                _ => self.pending.push(self.next),
            }
            self.next += 1;
        }
    }

    /// Ends a sync of a file: the kept part of its pending events becomes durable, and the rest is discarded.
    fn finish_sync(&mut self, file: FileId, kept: SectorMask) {
        let events = &self.run.events;
        self.pending.retain(|at| {
            let is_synced = events[*at].file() == Some(file);
            if is_synced {
                self.durable.apply(&events[*at], kept);
            }
            !is_synced
        });
        self.after_last_sync = self.next + 1;
    }

    /// Returns the expectations of the latest mark.
    pub fn expected(&self) -> &'r Expectations {
        let Event::Mark(expected) = &self.run.events[self.last_mark] else {
            panic!("a recording begins with a mark");
        };
        expected
    }

    /// Returns the events that are not durable.
    pub fn pending(&self) -> Vec<&'r Event> {
        self.pending.iter().map(|at| &self.run.events[*at]).collect()
    }

    /// Returns a hash of the expectations and of the image with these parts of the pending events. Images of a log with
    /// the same hash are equal, but equal images may have different hashes.
    pub fn image_hash(&self, kept: &[SectorMask]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.after_last_sync, self.last_mark).hash(&mut hasher);
        let kept_events = self.pending.iter().zip(kept).filter(|(_, kept)| **kept != NOTHING);
        kept_events.for_each(|event| event.hash(&mut hasher));
        hasher.finish()
    }

    /// Returns the files as they are once these parts of the pending events have reached the disk.
    pub fn image(&self, kept: &[SectorMask]) -> Image {
        let mut content = self.durable.clone();
        for (event, kept) in self.pending().into_iter().zip(kept) {
            content.apply(event, *kept);
        }
        let Content { mut files, names } = content;
        let mut bytes = |file| files.remove(&file).unwrap_or_default();
        names.into_iter().map(|(name, file)| (name, bytes(file))).collect()
    }

    /// Returns the files as they are once all pending events have reached the disk.
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

/// Writes those sectors of `bytes` whose bits are set in `kept`.
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
