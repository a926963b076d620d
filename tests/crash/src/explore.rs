//! Exploration of a recording: images are selected, written to a folder and checked by several threads.

use std::{collections::HashSet, fs, path::Path, thread};

use fastrand::Rng;

use crate::{
    check::check,
    disk::{Disk, RecordedRun, SectorMask},
    facts::Violation,
    recording::write_image,
    subsets::subsets,
};

const THREADS: usize = 2;

/// An image of a run: the number of events before its moment, and its index among the subsets of that moment.
pub type ImageId = (usize, usize);

/// The options of an exploration.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub seed: u64,
    /// Maximum number of images, chosen at random.
    pub images: usize,
    /// The only image to check.
    pub only: Option<ImageId>,
}

/// The counts and findings of an exploration.
#[derive(Debug, Default)]
pub struct Outcome {
    pub events: usize,
    /// The number of different images.
    pub distinct_images: usize,
    /// The number of images that were checked.
    pub images: usize,
    pub violations: Vec<(ImageId, Violation)>,
}

impl Outcome {
    pub fn add(&mut self, other: Self) {
        self.events += other.events;
        self.distinct_images += other.distinct_images;
        self.images += other.images;
        self.violations.extend(other.violations);
    }
}

/// Checks a random selection of a run's images.
pub fn explore(run: &RecordedRun, folder: &Path, options: Options) -> Outcome {
    let (distinct_images, image_ids) = select_images(run, options);
    let share = image_ids.len().div_ceil(THREADS).max(1);
    let violations = thread::scope(|scope| {
        let begin = |(worker, image_ids)| {
            let folder = folder.join(format!("images-{worker}"));
            scope.spawn(move || check_all(run, image_ids, &folder, options.seed))
        };
        let workers: Vec<_> = image_ids.chunks(share).enumerate().map(begin).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    Outcome { events: run.events.len(), distinct_images, images: image_ids.len(), violations }
}

/// Draws the subsets of a moment. Each moment has a separate random generator, so that one of its subsets can be drawn
/// again alone.
fn subsets_at(disk: &Disk<'_>, moment: usize, seed: u64) -> Vec<Vec<SectorMask>> {
    subsets(disk, &mut Rng::with_seed(seed ^ (moment as u64) << 20))
}

/// Counts the different images of a run and selects those to check, in the order of their moments.
fn select_images(run: &RecordedRun, options: Options) -> (usize, Vec<ImageId>) {
    let (mut disk, mut seen) = (Disk::after(run, 0), HashSet::new());
    let (mut all_or_nothing, mut image_ids) = (Vec::new(), Vec::new());
    for moment in 0..=run.events.len() {
        disk.advance_to(moment);
        for (subset_index, subset) in subsets_at(&disk, moment, options.seed).iter().enumerate() {
            if seen.insert(disk.image_hash(subset)) {
                if subset_index < 2 { &mut all_or_nothing } else { &mut image_ids }
                    .push((moment, subset_index));
            }
        }
    }
    let mut rng = Rng::with_seed(options.seed);
    rng.shuffle(&mut all_or_nothing);
    rng.shuffle(&mut image_ids);
    // Each moment has two all-or-nothing images: one without the pending events and one with all of them. If there are
    // enough of these, at least a quarter of the selected images are all-or-nothing.
    all_or_nothing
        .truncate((options.images / 4).max(options.images.saturating_sub(image_ids.len())));
    image_ids.truncate(options.images.saturating_sub(all_or_nothing.len()));
    image_ids.extend(all_or_nothing);
    image_ids.sort_unstable();
    (seen.len(), options.only.map_or(image_ids, |only| vec![only]))
}

fn check_all(
    run: &RecordedRun,
    image_ids: &[ImageId],
    folder: &Path,
    seed: u64,
) -> Vec<(ImageId, Violation)> {
    fs::create_dir_all(folder).unwrap();
    let mut disk = Disk::after(run, 0);
    let mut found = Vec::new();
    for (moment, subset_index) in image_ids {
        disk.advance_to(*moment);
        write_image(folder, &disk.image(&subsets_at(&disk, *moment, seed)[*subset_index]));
        let checked = check(run, disk.expected(), folder);
        found.extend(checked.err().map(|violation| ((*moment, *subset_index), violation)));
    }
    found
}
