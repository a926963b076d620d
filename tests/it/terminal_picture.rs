//! The picture of a terminal in the guide for shippers, drawn from the real output of the command. `PARCELO_BLESS=1`
//! writes it.

use std::{fmt::Write, fs, path::Path};

use parcelo_server::mock::Clock;

use crate::shop::Workdir;

const COLOURED: &[(&str, &str)] = &[("CLICOLOR_FORCE", "1")];

/// Width and height of a character.
const CELL: (f64, f64) = (8.0, 18.0);
const MARGIN: f64 = 20.0;

/// A run of characters in one style.
struct Run {
    class: &'static str,
    text: String,
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_in_the_guide_shows_the_real_output() {
    let clock = Clock::frozen("2026-01-05T08:00:00Z");
    let server = crate::embedded::builder().clock(clock).seed(42);
    let server = server.base_url("http://127.0.0.1:8081").start().await;
    let dir = Workdir::new(server.key().issue().secret(), server.url());
    let mut session = String::new();
    for line in ["order create order.json --label label.pdf", "track SB-SUCCESS-0001 --history"] {
        session += &record_session(&dir, line);
        server.clock().advance(std::time::Duration::from_secs(25 * 60)).await;
    }
    session += &record_session(&dir, "order void SB-SUCCESS-0001 --lang es");
    compare_or_bless("docs/terminal.svg", &draw_svg(&session));
}

/// Runs a command, and returns a prompt with its command line, followed by its output.
fn record_session(dir: &Workdir, line: &str) -> String {
    let output = dir.run_with(line, COLOURED, "");
    let text: Vec<_> =
        output.text().lines().chain(output.stderr.lines()).map(shorten_line).collect();
    format!("\u{1b}[36m$\u{1b}[0m \u{1b}[1mparcelo {line}\u{1b}[0m\n{}\n\n", text.join("\n"))
}

/// Shortens links, which are too long for the picture, and random numbers, which would change it every time.
fn shorten_line(line: &str) -> String {
    match line.find("?sig=") {
        Some(at) => format!("{}?sig=…", &line[..at]),
        None if line.contains("req_") => format!("{}req_…", &line[..line.find("req_").unwrap()]),
        None => line.to_owned(),
    }
}

fn compare_or_bless(path: &str, picture: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    if std::env::var_os("PARCELO_BLESS").is_some() {
        fs::write(&file, picture).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == picture, "{path} shows something else: PARCELO_BLESS=1");
}

fn draw_svg(text: &str) -> String {
    let (width, height) = CELL;
    let lines: Vec<_> = text.trim_end().lines().map(split_into_runs).collect();
    let length = |line: &Vec<Run>| line.iter().map(|run| run.text.chars().count()).sum::<usize>();
    let columns = f64::from(u32::try_from(lines.iter().map(length).max().unwrap()).unwrap());
    let rows = f64::from(u32::try_from(lines.len()).unwrap());
    let (wide, high) = (columns * width + 2.0 * MARGIN, rows * height + 2.0 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" width=\"{wide}\" \
         height=\"{high}\">\n<style>text {{ font: {size}px ui-monospace, 'DejaVu Sans Mono', \
         monospace; fill: #e6e6e6; white-space: pre }} .bold {{ font-weight: bold }} \
         .red {{ fill: #ff6b6b; font-weight: bold }} .yellow {{ fill: #ffd166; font-weight: bold }} \
         .cyan {{ fill: #5ad1e6 }} .green {{ fill: #7bd88f }}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n",
        size = height * 0.74,
    );
    for (row, line) in (0_u32..).zip(&lines) {
        let mut column = 0;
        for run in line {
            let count = u32::try_from(run.text.chars().count()).unwrap();
            let x = MARGIN + f64::from(column) * width;
            let y = MARGIN + (f64::from(row) + 0.75) * height;
            let (length, class) = (f64::from(count) * width, run.class);
            let text = run.text.replace('&', "&amp;").replace('<', "&lt;");
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\" class=\"{class}\" \
                 lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\">{text}</text>"
            )
            .unwrap();
            column += count;
        }
    }
    svg + "</svg>\n"
}

/// Splits a line into runs; escape sequences become CSS classes.
fn split_into_runs(line: &str) -> Vec<Run> {
    let (mut runs, mut class) = (Vec::new(), "");
    let mut parts = line.split("\u{1b}[");
    runs.push(Run { class, text: parts.next().unwrap().to_owned() });
    for part in parts {
        let (code, text) = part.split_once('m').unwrap();
        class = match code {
            "0" | "39" => "",
            "31" => "red",
            "33" => "yellow",
            "36" => "cyan",
            "38;5;2" => "green",
            _ if class.is_empty() => "bold",
            _ => class,
        };
        runs.push(Run { class, text: text.to_owned() });
    }
    runs.retain(|run| !run.text.is_empty());
    runs
}
