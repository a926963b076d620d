//! CPU time of drawing a label in each format, compared with other programs in the same run.
//!
//! `cargo run --release --manifest-path server/benches/labels/Cargo.toml -- [ROUNDS] [PYTHON]` prints the tables for
//! docs/benchmarks.md. If PYTHON is given, an interpreter with Pillow and reportlab, it also measures those.

#[cfg(feature = "peers")]
mod peers;

use std::hint::black_box;

use chrono::NaiveDate;
use cpu_time::ThreadTime;
use parcelo::{LabelFormat, OrderRequest, TrackingNumber};
use parcelo_domain::Layout;
use parcelo_label::LabelData;

const ORDER: &str = include_str!("../order.json");
const URL: &str = "https://sandbox.parcelo.example/track/SB-SUCCESS-00010203";

/// The label to draw.
struct SampleLabel {
    order: OrderRequest,
    number: TrackingNumber,
}

impl SampleLabel {
    fn new() -> Self {
        let order = serde_json::from_str(ORDER).unwrap();
        Self { order, number: TrackingNumber::parse("SB-SUCCESS-00010203").unwrap() }
    }

    fn draw(&self, format: LabelFormat) -> Vec<u8> {
        let data = LabelData {
            order: black_box(&self.order),
            layout: Layout::NEWEST,
            tracking_number: &self.number,
            tracking_url: URL,
            sandbox: true,
            created_on: NaiveDate::from_ymd_opt(2026, 11, 21).unwrap(),
            version: 1,
            awb: None,
        };
        parcelo_label::draw(&data, format).unwrap()
    }
}

/// A program that draws the label in one format.
struct Renderer {
    format: LabelFormat,
    name: &'static str,
    /// The number of labels in a round, which is lower for slow programs.
    labels_per_round: u32,
    make: Box<dyn Fn() -> Vec<u8>>,
}

impl Renderer {
    fn new(
        format: LabelFormat,
        (name, labels_per_round): (&'static str, u32),
        make: impl Fn() -> Vec<u8> + 'static,
    ) -> Self {
        Self { format, name, labels_per_round, make: Box::new(make) }
    }

    /// Returns the CPU time of a label in milliseconds.
    fn measure(&self) -> f64 {
        let before = ThreadTime::now();
        for _ in 0..self.labels_per_round {
            black_box((self.make)());
        }
        before.elapsed().as_secs_f64() * 1e3 / f64::from(self.labels_per_round)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.first().map_or(15, |text| text.parse().unwrap());
    print_table(&renderers(), rounds);
    if let Some(python) = arguments.get(1) {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/peers.py");
        assert!(std::process::Command::new(python).arg(script).status().unwrap().success());
    }
}

fn renderers() -> Vec<Renderer> {
    let mut renderers: Vec<Renderer> = LabelFormat::ALL
        .into_iter()
        .map(|format| {
            let sample = SampleLabel::new();
            Renderer::new(format, ("parcelo", 40), move || sample.draw(format))
        })
        .collect();
    #[cfg(feature = "peers")]
    renderers.extend(peers::renderers(&SampleLabel::new().draw(LabelFormat::Zpl)));
    renderers.sort_by_key(|renderer| renderer.format.extension());
    renderers
}

/// Prints the table. The programs take turns in each round, so that other load on the machine affects all alike.
fn print_table(renderers: &[Renderer], rounds: usize) {
    let mut figures = vec![Vec::new(); renderers.len()];
    for _ in 0..=rounds {
        for (renderer, figures) in renderers.iter().zip(&mut figures) {
            figures.push(renderer.measure());
        }
    }
    println!("| format | what | median ms of CPU | least | bytes |");
    println!("|---|---|---|---|---|");
    for (renderer, figures) in renderers.iter().zip(&mut figures) {
        figures.remove(0);
        figures.sort_by(f64::total_cmp);
        let (median, least) = (figures[figures.len() / 2], figures[0]);
        let bytes = (renderer.make)().len();
        println!(
            "| {} | {} | {median:.3} | {least:.3} | {bytes} |",
            renderer.format, renderer.name
        );
    }
}
