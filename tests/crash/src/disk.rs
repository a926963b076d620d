//! The log of a recording, and the state of the disk at each of its events: durable parts and pending ones.
//!
//! A write or truncation is durable once its file was synced, a name once its folder was. Until then each may be on the
//! disk or not, independently of those before and after it, and a write may be there with only some of its sectors.
//! After a failed sync no later one makes the same writes durable: Linux drops such pages. Real file systems reorder
//! less; this is the freedom that POSIX leaves.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

/// A file, by its position in the order of creation. Renaming keeps it.
pub type FileId = u32;
/// The files of a folder with their bytes.
pub type Image = Vec<(String, Vec<u8>)>;
/// The rows of the database that must not be lost, each as a line.
pub type Facts = BTreeSet<String>;

/// A change to the files, or a mark.
#[derive(Debug, Clone)]
pub enum Event {
    Create { name: String, file: FileId },
    Unlink { name: String },
    Write { file: FileId, at: u64, bytes: Box<[u8]> },
    Truncate { file: FileId, to: u64 },
    Sync { file: FileId },
    FailedSync { file: FileId },
    SyncFolder,
    Mark(Mark),
}

/// An event at the clients, in the order of the log.
#[derive(Debug, Clone)]
pub enum Mark {
    /// Request `k` was sent.
    Sent(usize),
    /// Request `k` was answered.
    Acknowledged(usize),
    /// The facts from here on. Reading them takes a moment, and an answer that was given before its commit would become
    /// true during it; so an answer has its own mark.
    Facts(Arc<Facts>),
}

/// The part of an event that reached the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    No,
    All,
    /// The first bytes, up to this length.
    Head(u32),
    /// The bytes from this offset on.
    Tail(u32),
    /// The sectors of 512 bytes whose bits are set.
    Sectors(u64),
}

pub const SECTOR: u64 = 512;

/// The disk after some events of a log.
#[derive(Clone)]
pub struct Disk<'l> {
    events: &'l [Event],
    next: usize,
    files: Vec<Vec<u8>>,
    names: BTreeMap<&'l str, FileId>,
    /// Events that are not in `files` and `names` yet, in the order of the log.
    open: Vec<(usize, State)>,
    /// Index of the event after the last one that made something durable.
    durable_since: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next sync makes it durable.
    Pending,
    /// A sync has failed: no later one makes it durable.
    Doubtful,
    /// It is durable, and on top of a doubtful write in the same file.
    Durable,
}

impl<'l> Disk<'l> {
    /// Returns the disk before the first event.
    pub fn new(base: &'l Image, events: &'l [Event]) -> Self {
        let names = base.iter().enumerate().map(|(id, (name, _))| (name.as_str(), id as FileId));
        Self {
            events,
            next: 0,
            names: names.collect(),
            files: base.iter().map(|(_, bytes)| bytes.clone()).collect(),
            open: Vec::new(),
            durable_since: 0,
        }
    }

    /// Moves to the next event. Returns `false` after the last one.
    pub fn advance(&mut self) -> bool {
        let Some(event) = self.events.get(self.next) else { return false };
        match event {
            Event::Mark(_) => {}
            Event::Sync { file } => self.settle(|event| event.file() == Some(*file)),
            Event::SyncFolder => self.settle(|event| event.file().is_none()),
            Event::FailedSync { file } => {
                self.turn(State::Doubtful, |event| event.file() == Some(*file));
            }
            _ => self.open.push((self.next, State::Pending)),
        }
        self.next += 1;
        true
    }

    fn turn(&mut self, into: State, is_meant: impl Fn(&Event) -> bool) {
        for (at, state) in &mut self.open {
            if *state == State::Pending && is_meant(&self.events[*at]) {
                *state = into;
            }
        }
    }

    fn settle(&mut self, is_settled: impl Fn(&Event) -> bool) {
        self.turn(State::Durable, is_settled);
        let mut doubtful = BTreeSet::new();
        for (at, state) in std::mem::take(&mut self.open) {
            let event = &self.events[at];
            if state == State::Durable && !doubtful.contains(&event.file()) {
                apply(event, Kept::All, &mut self.files, &mut self.names);
                continue;
            }
            if state == State::Doubtful {
                doubtful.insert(event.file());
            }
            self.open.push((at, state));
        }
        self.durable_since = self.next;
    }

    /// Returns the events that are not durable.
    pub fn pending(&self) -> Vec<&'l Event> {
        let pending = self.open.iter().filter(|(_, state)| *state != State::Durable);
        pending.map(|(at, _)| &self.events[*at]).collect()
    }

    /// Returns a hash of the image that contains these parts of the pending events. Equal images of a log usually have
    /// the same hash.
    pub fn number(&self, kept: &[Kept]) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.durable_since.hash(&mut hasher);
        let pending = self.open.iter().filter(|(_, state)| *state != State::Durable);
        let there = pending.zip(kept).filter(|(_, kept)| **kept != Kept::No);
        there.for_each(|((at, _), kept)| (at, kept).hash(&mut hasher));
        hasher.finish()
    }

    /// Returns the files when these parts of the pending events have reached the disk.
    pub fn image(&self, kept: &[Kept]) -> Image {
        let (mut files, mut names) = (self.files.clone(), self.names.clone());
        let mut kept = kept.iter();
        for (at, state) in &self.open {
            let kept = if *state == State::Durable { Some(&Kept::All) } else { kept.next() };
            let kept = kept.copied().unwrap_or(Kept::No);
            apply(&self.events[*at], kept, &mut files, &mut names);
        }
        let bytes = |file: FileId| files.get(file as usize).cloned().unwrap_or_default();
        names.into_iter().map(|(name, file)| (name.to_owned(), bytes(file))).collect()
    }
}

impl Event {
    /// Returns the file whose content the event changes.
    pub fn file(&self) -> Option<FileId> {
        match self {
            Self::Write { file, .. } | Self::Truncate { file, .. } => Some(*file),
            _ => None,
        }
    }
}

fn apply<'l>(
    event: &'l Event,
    kept: Kept,
    files: &mut Vec<Vec<u8>>,
    names: &mut BTreeMap<&'l str, FileId>,
) {
    if kept == Kept::No {
        return;
    }
    let mut content = |file: FileId| {
        let needed = files.len().max(file as usize + 1);
        files.resize(needed, Vec::new());
        file as usize
    };
    match event {
        Event::Create { name, file } => drop(names.insert(name, *file)),
        Event::Unlink { name } => drop(names.remove(name.as_str())),
        Event::Truncate { file, to } => {
            let file = content(*file);
            files[file].resize(*to as usize, 0);
        }
        Event::Write { file, at, bytes } => {
            let file = content(*file);
            write(&mut files[file], *at, bytes, kept);
        }
        Event::Sync { .. } | Event::FailedSync { .. } | Event::SyncFolder | Event::Mark(_) => {}
    }
}

fn write(content: &mut Vec<u8>, at: u64, bytes: &[u8], kept: Kept) {
    let mut put = |from: usize, to: usize| {
        let (start, end) = (at as usize + from, at as usize + to);
        if content.len() < end {
            content.resize(end, 0);
        }
        content[start..end].copy_from_slice(&bytes[from..to]);
    };
    let length = bytes.len();
    match kept {
        Kept::No => {}
        Kept::All => put(0, length),
        Kept::Head(to) => put(0, length.min(to as usize)),
        Kept::Tail(from) => put(length.min(from as usize), length),
        Kept::Sectors(mask) => {
            let first = at / SECTOR;
            let mut from = 0;
            while from < length {
                let sector = (at + from as u64) / SECTOR;
                let to = length.min(((sector + 1) * SECTOR - at) as usize);
                if mask >> (sector - first).min(63) & 1 == 1 {
                    put(from, to);
                }
                from = to;
            }
        }
    }
}
