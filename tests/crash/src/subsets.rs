//! Subsets of the pending events, each of which may be what has reached the disk at one moment.

use fastrand::Rng;

use crate::disk::{ALL, Disk, Event, NOTHING, SECTOR, SectorMask};

/// Maximum number of pending events for which all subsets are examined.
const MAX_EXHAUSTIVE_EVENTS: usize = 8;
/// Number of random subsets that are examined if there are more events.
const SAMPLES: usize = 24;

/// Returns subsets of the pending events at a moment; some may occur twice. The first two are the empty and the full
/// subset.
pub fn subsets(disk: &Disk<'_>, rng: &mut Rng) -> Vec<Vec<SectorMask>> {
    let pending = disk.pending();
    let count = pending.len();
    let choose = |is_kept: &dyn Fn(usize) -> bool| -> Vec<SectorMask> {
        (0..count).map(|at| if is_kept(at) { ALL } else { NOTHING }).collect()
    };
    let mut all = vec![choose(&|_| false), choose(&|_| true)];
    if count <= MAX_EXHAUSTIVE_EVENTS {
        all.extend((0..1 << count).map(|mask: usize| choose(&|at| mask >> at & 1 == 1)));
    } else {
        all.extend((0..count).map(|missing| choose(&|at| at != missing)));
        all.extend((0..count).map(|alone| choose(&|at| at == alone)));
        // All events of one file, and those of the others.
        for file in files(&pending) {
            all.push(choose(&|at| pending[at].file() == file));
            all.push(choose(&|at| pending[at].file() != file));
        }
        all.extend((0..SAMPLES).map(|_| sample(&pending, rng)));
    }
    // The newest write may be torn at any sector.
    if let Some(Event::Write { at, bytes, .. }) = pending.last() {
        let sectors = (at + bytes.len()).div_ceil(SECTOR) - at / SECTOR;
        for start in (1..sectors.min(64)).map(|cut| (1 << cut) - 1) {
            for (others, torn) in [(ALL, start), (ALL, !start), (NOTHING, start), (NOTHING, !start)]
            {
                let mut choice = vec![others; count];
                choice[count - 1] = torn;
                all.push(choice);
            }
        }
    }
    all
}

fn files(pending: &[&Event]) -> Vec<Option<u32>> {
    let mut files: Vec<_> = pending.iter().map(|event| event.file()).collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Draws a random subset. Each event is kept with the same probability, which differs between samples, and one in eight
/// of the kept writes has random sectors only.
fn sample(pending: &[&Event], rng: &mut Rng) -> Vec<SectorMask> {
    let kept_of_eight = rng.u32(1..8);
    let mut sector_mask = |event: &&Event| match event {
        _ if rng.u32(..8) >= kept_of_eight => NOTHING,
        Event::Write { .. } if rng.u32(..8) == 0 => rng.u64(..),
        _ => ALL,
    };
    pending.iter().map(&mut sector_mask).collect()
}
