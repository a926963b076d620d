//! The public pages (tracking, guide, reference) in a real browser and with axe-core, with screenshots for docs/.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    fs,
    io::{BufWriter, Cursor},
    time::Duration,
};

use parcelo_server::mock::{Clock, MockServer};
use serde_json::json;

use crate::{
    api::{Api, order_with_number, with},
    browser::{Browser, Window},
};

pub(crate) const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");

/// A page, and the window in which it is shown.
struct PageView {
    name: &'static str,
    path: &'static str,
    window: Window,
}

const PHONE: Window = Window { width: 390, height: 1050, dark: false };
const DESKTOP: Window = Window { width: 1200, height: 760, dark: false };

const PAGE_VIEWS: &[PageView] = &[
    PageView::new("tracking-phone-en", "track/SB-SUCCESS-1001?lang=en", PHONE),
    PageView::new(
        "tracking-phone-es",
        "track/SB-CUSTOMS-1001?lang=es",
        Window { height: 1330, ..PHONE },
    ),
    PageView::new("tracking-desktop-en", "track/SB-SUCCESS-1001?lang=en", DESKTOP),
    PageView::new("tracking-desktop-es", "track/SB-CUSTOMS-1001?lang=es", DESKTOP),
    PageView::new(
        "tracking-phone-dark",
        "track/SB-RTS-1001?lang=es",
        Window { dark: true, ..PHONE },
    ),
    PageView::new("tracking-front-door", "?lang=en", Window { height: 700, ..PHONE }),
    PageView::new("tracking-lost", "track/SB-ABSENT-1001?lang=en", Window { height: 980, ..PHONE }),
    PageView::new("guide-desktop", "docs/?lang=en", DESKTOP),
    PageView::new("guide-phone-dark", "docs/?lang=es", Window { dark: true, ..PHONE }),
];

/// Every public page, and the rules of axe-core that are not checked there.
const PUBLIC_PAGES: [(&str, &str, &[&str]); 9] = [
    ("front-door", "", &[]),
    ("on-its-way", "track/SB-SUCCESS-1001", &[]),
    ("customs", "track/SB-CUSTOMS-1001", &[]),
    ("returning", "track/SB-RTS-1001", &[]),
    ("lost", "track/SB-ABSENT-1001", &[]),
    ("mistyped", "track?number=%21%21", &[]),
    ("guide", "docs/", &[]),
    ("migration", "docs/migration", &[]),
    // Swagger UI has third-level headings without a second level, and a link within each call's button.
    ("reference", "docs/reference", &["heading-order", "nested-interactive"]),
];

impl PageView {
    const fn new(name: &'static str, path: &'static str, window: Window) -> Self {
        Self { name, path, window }
    }
}

/// Starts a server whose parcels are at different points of their journeys.
async fn server() -> MockServer {
    let server =
        crate::embedded::builder().clock(Clock::frozen("2026-01-12T15:20:00Z")).start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    for number in ["SB-SUCCESS-1001", "SB-CUSTOMS-1001", "SB-RTS-1001"] {
        let order = order_with_number(&format!("order-{number}"), number);
        api.create_parcel(&with(order, "/receiver/address/city", json!("Quito"))).await;
    }
    server.clock().advance(Duration::from_secs(18 * 60)).await;
    server
}

/// Replaces the screenshots in docs/ if `PARCELO_BLESS=1` is set.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a browser: `.ci/prove browser` installs it and runs this"]
async fn a_browser_draws_the_page_at_every_width_and_language() {
    let server = server().await;
    let browser = Browser::start().await;
    for PageView { name, path, window } in PAGE_VIEWS {
        browser.resize(*window).await;
        browser.open(&format!("{}/{path}", server.url())).await;
        browser.assert_fits(name).await;
        let picture = Screenshot::from_png(&browser.screenshot().await);
        assert!(picture.colours() > 40, "{name} is drawn with its style sheet");
        if std::env::var_os("PARCELO_BLESS").is_some() {
            picture.save(&format!("{DOCS}/{name}.png"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a browser and axe-core: `.ci/prove browser` installs them and runs this"]
async fn every_public_page_fits_and_axe_finds_no_violation() {
    let server = server().await;
    let browser = Browser::start().await;
    for (name, path, exempt_rules) in PUBLIC_PAGES {
        browser.check_page(name, &format!("{}/{path}", server.url()), exempt_rules).await;
    }
    let tags = "return [...document.querySelectorAll('.opblock-tag')].map(x=>x.dataset.tag)\
        .filter(x=>x!='webhooks')";
    let tags = browser.run_script(tags).await;
    let tags = tags.as_array().unwrap();
    assert_eq!((&tags[0], &tags[tags.len() - 1]), (&json!("orders"), &json!("legacy")));
}

/// A screenshot, as rows of pixels with three bytes each.
pub(crate) struct Screenshot {
    width: u32,
    rows: Vec<Vec<u8>>,
}

impl Screenshot {
    pub(crate) fn from_png(bytes: &[u8]) -> Self {
        let mut decoder = png::Decoder::new(Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::STRIP_16);
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let pixel = info.color_type.samples();
        let row = |row: &[u8]| row.chunks(pixel).flat_map(|pixel| pixel[..3].to_vec()).collect();
        let rows = bytes.chunks(info.line_size).map(row).collect();
        Self { width: info.width, rows }
    }

    pub(crate) fn colours(&self) -> usize {
        let dots = self.rows.iter().flat_map(|row| row.chunks(3));
        dots.collect::<HashSet<_>>().len()
    }

    /// Saves a small PNG: the 256 most common colours are kept, and every other colour becomes the nearest of them.
    pub(crate) fn save(&self, to: &str) {
        let palette = self.palette();
        let mut nearest = HashMap::new();
        let mut palette_index = |pixel: [u8; 3]| {
            *nearest.entry(pixel).or_insert_with(|| palette_index(&palette, pixel))
        };
        let palette_indices: Vec<u8> = self.pixels().map(&mut palette_index).collect();
        let file = BufWriter::new(fs::File::create(to).unwrap());
        let height = u32::try_from(self.rows.len()).unwrap();
        let mut encoder = png::Encoder::new(file, self.width, height);
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(palette.concat());
        encoder.set_compression(png::Compression::High);
        // PNG filters predict gradual changes, which palette indexes do not have.
        encoder.set_filter(png::Filter::NoFilter);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&palette_indices).unwrap();
        writer.finish().unwrap();
    }

    fn pixels(&self) -> impl Iterator<Item = [u8; 3]> {
        self.rows.iter().flat_map(|row| row.chunks(3)).map(|pixel| [pixel[0], pixel[1], pixel[2]])
    }

    fn palette(&self) -> Vec<[u8; 3]> {
        let mut counts = BTreeMap::<_, u32>::new();
        self.pixels().for_each(|pixel| *counts.entry(pixel).or_default() += 1);
        let mut colours: Vec<_> = counts.into_iter().collect();
        colours.sort_by_key(|(_, count)| Reverse(*count));
        colours.into_iter().take(256).map(|(pixel, _)| pixel).collect()
    }
}

fn palette_index(palette: &[[u8; 3]], pixel: [u8; 3]) -> u8 {
    let distance = |(_, other): &(usize, &[u8; 3])| -> u32 {
        other.iter().zip(pixel).map(|(one, two)| u32::from(one.abs_diff(two)).pow(2)).sum()
    };
    let (palette_index, _) = palette.iter().enumerate().min_by_key(distance).unwrap();
    u8::try_from(palette_index).unwrap()
}

/// The screenshots must be small, because every reader of the documents loads them.
#[test]
fn the_screenshots_of_public_pages_in_docs_are_small() {
    for shot in PAGE_VIEWS {
        let bytes = fs::metadata(format!("{DOCS}/{}.png", shot.name)).unwrap().len();
        assert!(bytes <= 60 * 1024, "{} has {bytes} bytes", shot.name);
    }
}
