//! The subsets of pending writes that may have reached the disk at one moment.

use fastrand::Rng;

use crate::disk::{Disk, Event, Kept, SECTOR};

/// The extent to which the subsets of a moment are examined.
#[derive(Debug, Clone, Copy)]
pub struct Depth {
    /// Maximum number of pending events for which all subsets are examined.
    pub exhaustive: usize,
    /// Number of random subsets of more events.
    pub samples: usize,
    /// Interval, in sectors, at which the newest write is torn.
    pub tear_every: u64,
}

/// A page of the database.
const PAGE: u64 = 4_096;
const IN_FULL: Depth = Depth { exhaustive: 8, samples: 24, tear_every: 1 };
const IN_BRIEF: Depth = Depth { exhaustive: 6, samples: 4, tear_every: PAGE / SECTOR };

impl Depth {
    pub const fn new(is_full: bool) -> Self {
        if is_full { IN_FULL } else { IN_BRIEF }
    }

    /// Returns the command-line argument that selects it.
    pub const fn argument(self) -> &'static str {
        if self.tear_every == IN_FULL.tear_every { "" } else { " --brief" }
    }
}

/// Returns subsets of a moment, perhaps some more than once.
pub fn subsets(disk: &Disk<'_>, depth: Depth, rng: &mut Rng) -> Vec<Vec<Kept>> {
    let pending = disk.pending();
    let count = pending.len();
    let mut all = vec![vec![Kept::No; count], vec![Kept::All; count]];
    if count <= depth.exhaustive {
        let subset = |mask: usize| (0..count).map(|at| kept(mask >> at & 1 == 1)).collect();
        all.extend((0..1 << count).map(subset));
    } else {
        all.extend((0..count).map(|missing| (0..count).map(|at| kept(at != missing)).collect()));
        all.extend((0..count).map(|alone| (0..count).map(|at| kept(at == alone)).collect()));
        all.extend(by_file(&pending));
        all.extend((0..depth.samples).map(|_| sample(&pending, rng)));
    }
    if let Some(Event::Write { at, bytes, .. }) = pending.last() {
        for torn in torn(*at, bytes.len() as u64, depth.tear_every) {
            for others in [Kept::All, Kept::No] {
                let mut choice = vec![others; count];
                choice[count - 1] = torn;
                all.push(choice);
            }
        }
    }
    all
}

const fn kept(is_kept: bool) -> Kept {
    if is_kept { Kept::All } else { Kept::No }
}

/// Returns, for each file, all events of this file alone and all events of the others. Names count as a file.
fn by_file(pending: &[&Event]) -> Vec<Vec<Kept>> {
    let mut files: Vec<_> = pending.iter().map(|event| event.file()).collect();
    files.sort_unstable();
    files.dedup();
    let first = |file| pending.iter().map(move |event| kept(event.file() == file)).collect();
    let last = |file| pending.iter().map(move |event| kept(event.file() != file)).collect();
    files.iter().map(|file| first(*file)).chain(files.iter().map(|file| last(*file))).collect()
}

/// Returns the parts of a write that end or begin at a boundary of sectors.
fn torn(at: u64, length: u64, every: u64) -> Vec<Kept> {
    let step = SECTOR * every;
    let first = (at / step + 1) * step;
    let cuts = (first..at + length).step_by(step as usize).map(|cut| (cut - at) as u32);
    cuts.flat_map(|cut| [Kept::Head(cut), Kept::Tail(cut)]).collect()
}

/// Draws a subset: each event has the same probability, which differs between samples, and one write in eight is torn.
fn sample(pending: &[&Event], rng: &mut Rng) -> Vec<Kept> {
    let likely = rng.u32(1..8);
    let mut one = |event: &&Event| match event {
        _ if rng.u32(..8) >= likely => Kept::No,
        Event::Write { .. } if rng.u32(..8) == 0 => Kept::Sectors(rng.u64(..)),
        _ => Kept::All,
    };
    pending.iter().map(&mut one).collect()
}
