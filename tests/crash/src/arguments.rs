//! The command line.

use std::{path::PathBuf, time::Duration};

use crate::{explore::Options, server, subsets::Depth};

/// Number of explorations (the recordings, and the recoveries together) that share the given time.
const EXPLORATIONS: u32 = 6;

pub struct Arguments {
    pub is_brief: bool,
    pub at: Option<(usize, usize)>,
    start: i64,
    seed: u64,
    only: Option<String>,
    images: Option<u64>,
    seconds: Option<u64>,
    threads: usize,
    binary: PathBuf,
}

impl Arguments {
    pub fn read() -> Self {
        let all: Vec<String> = std::env::args().skip(1).collect();
        let value = |name: &str| {
            let at = all.iter().position(|argument| argument == name)?;
            Some(all.get(at + 1).unwrap_or_else(|| panic!("{name} needs a value")).as_str())
        };
        let number = |name: &str| value(name).map(|text| text.parse::<u64>().unwrap());
        let at = value("--at").and_then(|at| at.split_once(':'));
        let built = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/debug/parcelo-server");
        let start = server::set_start(value("--start").map(|start| start.parse().unwrap()));
        Self {
            start,
            is_brief: all.iter().any(|argument| argument == "--brief"),
            at: at.map(|(at, nth)| (at.parse().unwrap(), nth.parse().unwrap())),
            seed: number("--seed").unwrap_or(1),
            only: value("--only").map(str::to_owned),
            images: number("--images"),
            seconds: number("--seconds"),
            threads: number("--threads").unwrap_or(2) as usize,
            binary: PathBuf::from(value("--binary").unwrap_or(built)),
        }
    }

    pub fn wants(&self, name: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == name)
    }

    /// Returns the options of an exploration; by default it checks this number of images.
    pub fn options(&self, images: usize) -> Options {
        assert!(self.binary.exists(), "build {} first", self.binary.display());
        Options {
            seed: self.seed,
            start: self.start,
            depth: Depth::new(!self.is_brief),
            max_images: self.images.map_or(images, |images| images as usize),
            threads: if self.at.is_some() { 1 } else { self.threads },
            time: self.seconds.map(|seconds| Duration::from_secs(seconds) / EXPLORATIONS),
            binary: self.binary.clone(),
            only: self.at,
            from: 0,
        }
    }
}
