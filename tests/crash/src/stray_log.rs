//! An empty database file beside the log of another. The store creates the file before `SQLite` opens it, so an
//! operator who removes a database and forgets its log gets these two. No guarantee covers the old orders; the new
//! database must be sound.

use std::{fs, path::Path};

use crate::{
    check,
    disk::{Image, Kept},
    explore::Replay,
    recording::{DATABASE, Expected, Run, put},
};

/// The images that were checked, and the violations.
#[derive(Debug, Default)]
pub struct Outcome {
    pub images: usize,
    pub messages: Vec<String>,
}

/// Opens an empty database file beside the log, for different moments of a run.
pub fn stray_logs(run: &Run, folder: &Path) -> Outcome {
    let folder = folder.join("stray-log");
    fs::create_dir_all(&folder).unwrap();
    let (mut replay, mut outcome) = (Replay::new(run), Outcome::default());
    for at in (0..=run.events.len()).step_by(5) {
        replay = replay.to(at);
        let image = replay.disk.image(&vec![Kept::All; replay.disk.pending().len()]);
        if image.len() < 2 {
            continue;
        }
        put(&folder, &emptied(image));
        outcome.images += 1;
        if let Err(broken) = check::check(run, &Expected::default(), &folder) {
            outcome.messages.push(format!("{}: {} at {at}", broken.guarantee, broken.what));
        }
    }
    outcome
}

fn emptied(image: Image) -> Image {
    let empty = |(name, bytes): (String, Vec<u8>)| {
        let bytes = if name == DATABASE { Vec::new() } else { bytes };
        (name, bytes)
    };
    image.into_iter().map(empty).collect()
}
