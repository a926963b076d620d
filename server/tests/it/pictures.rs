//! The public page in a real browser: pictures of it, in docs/ and looked at.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    io::{BufWriter, Cursor},
    path::Path,
    process::Command,
    time::Duration,
};

use parcelo_server::mock::{Clock, MockServer};
use serde_json::json;

use crate::api::{Api, numbered, send, with};

pub(crate) const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// A page at a width; a phone's is narrower than a browser's window can be, so a frame holds it.
struct Shot {
    name: &'static str,
    path: &'static str,
    width: u32,
    height: u32,
    dark: bool,
}

const SHOTS: &[Shot] = &[
    Shot::new("tracking-phone-en", "SB-SUCCESS-1001?lang=en", 390, 1050),
    Shot::new("tracking-phone-es", "SB-CUSTOMS-1001?lang=es", 390, 1050),
    Shot::new("tracking-desktop-en", "SB-SUCCESS-1001?lang=en", 1200, 760),
    Shot::new("tracking-desktop-es", "SB-CUSTOMS-1001?lang=es", 1200, 760),
    Shot { dark: true, ..Shot::new("tracking-phone-dark", "SB-RTS-1001?lang=es", 390, 1050) },
    Shot::new("tracking-lost", "SB-NOBODY-1001?lang=en", 390, 830),
];

impl Shot {
    const fn new(name: &'static str, path: &'static str, width: u32, height: u32) -> Self {
        Self { name, path, width, height, dark: false }
    }
}

/// Parcels to look at, each somewhere else on its way.
async fn server() -> MockServer {
    let server = MockServer::builder().clock(Clock::frozen("2026-01-12T15:20:00Z")).start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    for number in ["SB-SUCCESS-1001", "SB-CUSTOMS-1001", "SB-RTS-1001"] {
        let order = numbered(&format!("order-{number}"), number);
        api.created(&with(order, "/receiver/address/city", json!("Quito"))).await;
    }
    server.clock().advance(Duration::from_secs(18 * 60)).await;
    server
}

/// `PARCELO_BLESS=1` keeps the pictures.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Debian's chromium; `.ci/run` installs it"]
async fn the_page_is_drawn_by_a_browser_at_every_width_and_in_both_languages() {
    let server = server().await;
    let folder = tempfile::tempdir().unwrap();
    for shot in SHOTS {
        let file = folder.path().join(format!("{}.png", shot.name));
        take(shot, &server, folder.path(), &file);
        let picture = Picture::read(&file).cropped(shot.width, shot.height);
        // A page without its style sheet has black, white and little between.
        let colours = picture.colours();
        assert!(colours > 40, "{} has {colours} colours", shot.name);
        assert_eq!(is_too_wide(shot, &server, folder.path()).await, "no", "{}", shot.name);
        if std::env::var_os("PARCELO_BLESS").is_some() {
            picture.keep(&format!("{DOCS}/{}.png", shot.name));
        }
    }
}

fn take(shot: &Shot, server: &MockServer, folder: &Path, file: &Path) {
    let frame = folder.join("frame.html");
    let url = format!("{}/track/{}", server.url(), shot.path);
    let size = format!("width:{}px;height:{}px", shot.width, shot.height);
    let html =
        format!("<body style='margin:0'><iframe style='border:0;{size}' src='{url}'></iframe>");
    fs::write(&frame, html).unwrap();
    let window = format!("--window-size={},{}", shot.width.max(600), shot.height);
    let mut browser = browser(folder);
    if shot.dark {
        browser.arg("--blink-settings=preferredColorScheme=0");
    }
    browser.arg(window).arg(format!("--screenshot={}", file.display())).arg(&frame);
    run(&mut browser);
}

/// Whether something on the page is wider than its window, as the browser lays it out.
async fn is_too_wide(shot: &Shot, server: &MockServer, folder: &Path) -> String {
    let probe = folder.join("probe.html");
    let page = folder.join("page.html");
    let visit = Api::new(server.url()).request("GET", &format!("/track/{}", shot.path));
    fs::write(&page, send(visit.header("accept", "text/html")).await.bytes).unwrap();
    let script = "f.onload=()=>{const e=f.contentDocument.documentElement;\
                  document.title=e.scrollWidth>e.clientWidth?'yes':'no'}";
    let width = shot.width;
    let html = format!(
        "<title></title><iframe id=f style='border:0;width:{width}px' src=page.html></iframe><script>{script}</script>"
    );
    fs::write(&probe, html).unwrap();
    let mut browser = browser(folder);
    let dom = run(browser.args(["--allow-file-access-from-files", "--dump-dom"]).arg(&probe));
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split('<').next());
    title.unwrap_or_default().to_owned()
}

fn browser(folder: &Path) -> Command {
    let mut browser = Command::new("chromium");
    browser.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--hide-scrollbars",
        "--virtual-time-budget=5000",
    ]);
    browser.arg(format!("--user-data-dir={}", folder.join("profile").display()));
    browser
}

/// Rows of three bytes a dot.
pub(crate) struct Picture {
    width: u32,
    rows: Vec<Vec<u8>>,
}

impl Picture {
    fn read(file: &Path) -> Self {
        Self::of(&fs::read(file).unwrap())
    }

    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::STRIP_16);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let dot = info.color_type.samples();
        let row = |row: &[u8]| row.chunks(dot).flat_map(|dot| dot[..3].to_vec()).collect();
        let rows = bytes.chunks(info.line_size).map(row).collect();
        Self { width: info.width, rows }
    }

    fn cropped(mut self, width: u32, height: u32) -> Self {
        assert!(self.width >= width && self.rows.len() >= height as usize);
        self.rows.truncate(height as usize);
        self.rows.iter_mut().for_each(|row| row.truncate(width as usize * 3));
        Self { width, ..self }
    }

    pub(crate) fn colours(&self) -> usize {
        let dots = self.rows.iter().flat_map(|row| row.chunks(3));
        dots.collect::<HashSet<_>>().len()
    }

    /// A small file: the picture's commonest colours, and for every other the nearest of them.
    pub(crate) fn keep(&self, to: &str) {
        let palette = self.palette();
        let mut nearest = HashMap::new();
        let mut place =
            |dot: [u8; 3]| *nearest.entry(dot).or_insert_with(|| place_in(&palette, dot));
        let places: Vec<u8> = self.dots().map(&mut place).collect();
        let file = BufWriter::new(fs::File::create(to).unwrap());
        let height = u32::try_from(self.rows.len()).unwrap();
        let mut encoder = png::Encoder::new(file, self.width, height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(palette.concat());
        encoder.set_compression(png::Compression::High);
        // Places in a palette are no amounts: a filter finds no slope in them.
        encoder.set_filter(png::Filter::NoFilter);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&places).unwrap();
        writer.finish().unwrap();
    }

    fn dots(&self) -> impl Iterator<Item = [u8; 3]> {
        self.rows.iter().flat_map(|row| row.chunks(3)).map(|dot| [dot[0], dot[1], dot[2]])
    }

    fn palette(&self) -> Vec<[u8; 3]> {
        let mut counts = BTreeMap::<_, u32>::new();
        self.dots().for_each(|dot| *counts.entry(dot).or_default() += 1);
        let mut colours: Vec<_> = counts.into_iter().collect();
        colours.sort_by_key(|(_, count)| Reverse(*count));
        colours.into_iter().take(256).map(|(dot, _)| dot).collect()
    }
}

fn place_in(palette: &[[u8; 3]], dot: [u8; 3]) -> u8 {
    let distance = |(_, other): &(usize, &[u8; 3])| -> u32 {
        other.iter().zip(dot).map(|(one, two)| u32::from(one.abs_diff(two)).pow(2)).sum()
    };
    let (place, _) = palette.iter().enumerate().min_by_key(distance).unwrap();
    u8::try_from(place).unwrap()
}

/// What a reader of the documents has to load stays small.
#[test]
fn the_kept_pictures_are_small() {
    for shot in SHOTS {
        let bytes = fs::metadata(format!("{DOCS}/{}.png", shot.name)).unwrap().len();
        assert!(bytes <= 60 * 1024, "{} has {bytes} bytes", shot.name);
    }
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
