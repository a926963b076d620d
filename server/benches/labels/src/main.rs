//! CPU time of one label in each format, beside other programs that draw or render labels, in one run.
//!
//! `cargo run --release --manifest-path server/benches/labels/Cargo.toml -- [ROUNDS] [PYTHON]` prints
//! the tables for docs/benchmarks.md; with a PYTHON that has Pillow and reportlab, these too.

// Only the module of labels: the whole service would bring a database and a web server.
#[allow(dead_code, unexpected_cfgs, unused_imports, reason = "the service uses more of it")]
#[path = "../../../src/label/mod.rs"]
mod label;

#[cfg(feature = "peers")]
mod peers;

use std::hint::black_box;

use chrono::NaiveDate;
use cpu_time::ThreadTime;
use label::LabelData;
use parcelo::{LabelFormat, OrderRequest, TrackingNumber};

const ORDER: &str = include_str!("../order.json");
const URL: &str = "https://sandbox.parcelo.example/track/SB-SUCCESS-00010203";

/// A label to draw again and again.
struct Subject {
    order: OrderRequest,
    number: TrackingNumber,
}

impl Subject {
    fn new() -> Self {
        let order = serde_json::from_str(ORDER).unwrap();
        Self { order, number: TrackingNumber::parse("SB-SUCCESS-00010203").unwrap() }
    }

    fn draw(&self, format: LabelFormat) -> Vec<u8> {
        let data = LabelData {
            order: black_box(&self.order),
            tracking_number: &self.number,
            tracking_url: URL,
            sandbox: true,
            created_on: NaiveDate::from_ymd_opt(2026, 11, 21).unwrap(),
            version: 1,
            awb: None,
        };
        label::draw(&data, format).unwrap()
    }
}

/// One way to make a label: its file, in a format.
struct Way {
    format: LabelFormat,
    name: &'static str,
    /// The number of times in a round: slow ones are measured less often.
    times: u32,
    make: Box<dyn Fn() -> Vec<u8>>,
}

impl Way {
    fn new(
        format: LabelFormat,
        (name, times): (&'static str, u32),
        make: impl Fn() -> Vec<u8> + 'static,
    ) -> Self {
        Self { format, name, times, make: Box::new(make) }
    }

    /// Returns the milliseconds of CPU for one label.
    fn measure(&self) -> f64 {
        let before = ThreadTime::now();
        for _ in 0..self.times {
            black_box((self.make)());
        }
        before.elapsed().as_secs_f64() * 1e3 / f64::from(self.times)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.first().map_or(15, |text| text.parse().unwrap());
    table(&ways(), rounds);
    if let Some(python) = arguments.get(1) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers.py");
        assert!(std::process::Command::new(python).arg(script).status().unwrap().success());
    }
}

fn ways() -> Vec<Way> {
    let mut ways: Vec<Way> = LabelFormat::ALL
        .into_iter()
        .map(|format| {
            let subject = Subject::new();
            Way::new(format, ("parcelo", 40), move || subject.draw(format))
        })
        .collect();
    #[cfg(feature = "peers")]
    ways.extend(peers::ways(&Subject::new().draw(LabelFormat::Zpl)));
    ways.sort_by_key(|way| way.format.extension());
    ways
}

/// Prints a table. Rounds are interleaved, so that other load on the machine affects all alike.
fn table(ways: &[Way], rounds: usize) {
    let mut figures = vec![Vec::new(); ways.len()];
    for _ in 0..=rounds {
        for (way, figures) in ways.iter().zip(&mut figures) {
            figures.push(way.measure());
        }
    }
    println!("| format | what | median ms of CPU | least | bytes |");
    println!("|---|---|---|---|---|");
    for (way, figures) in ways.iter().zip(&mut figures) {
        figures.remove(0);
        figures.sort_by(f64::total_cmp);
        let (median, least) = (figures[figures.len() / 2], figures[0]);
        let bytes = (way.make)().len();
        println!("| {} | {} | {median:.3} | {least:.3} | {bytes} |", way.format, way.name);
    }
}
