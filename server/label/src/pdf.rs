//! Writes documents as PDF: labels on pages of exactly 288 × 432 points, or pages of another size, with text as text
//! and embedded fonts.
//!
//! Every rectangle is drawn a little smaller than its dots. If it ended exactly on the edges of dots, poppler and mupdf
//! would print it one dot too wide, and bars could not be decoded.

use std::collections::BTreeMap;

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::{
    Content, Filter, Finish, Name, Pdf, Rect as PdfRect, Ref, Settings, Str,
    types::{CidFontType, FontFlags, SystemInfo, UnicodeCmap},
};
use subsetter::GlyphRemapper;

use super::{
    LabelError,
    element::{Colour, Element, HEIGHT, Rect, Text, WIDTH},
    font::{self, Glyph, LoadedFont, NOTDEF, Typeface, UNITS_PER_EM},
    qr::QrMatrix,
};

/// The size of pages, and of the units in which their elements are placed.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageFormat {
    /// The width in units.
    pub width: u32,
    pub height: u32,
    pub points_per_unit: f32,
    /// The scaling in print: "fit to page" would move a label's bars off the printer's dots.
    pub scaling: PrintScaling,
}

/// The permission for programs to fit a page to the printer's paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PrintScaling {
    Never,
    Allowed,
}

/// The page format of labels: 4 × 6 inches, in dots.
const LABEL_PAGE_FORMAT: PageFormat = PageFormat {
    width: WIDTH,
    height: HEIGHT,
    points_per_unit: 72.0 / 203.0,
    scaling: PrintScaling::Never,
};

/// Inset of each rectangle on each side, in dots.
const INSET_DOTS: f32 = 0.15;
/// Level of compression. At level 6, files are three percent smaller and take half as long again.
const DEFLATE_LEVEL: u8 = 3;

const COMPACT: Settings = Settings { pretty: false };

const CATALOG: Ref = Ref::new(1);
const PAGES: Ref = Ref::new(2);
/// Returns the ids of a page and of its content.
fn page_ids(page: usize) -> (Ref, Ref) {
    // The fonts have the ids from 5 to 19.
    let first = if page == 0 { 3 } else { 18 + 2 * page as i32 };
    (Ref::new(first), Ref::new(first + 1))
}

/// Writes a label.
pub(super) fn write(elements: &[Element]) -> Result<Vec<u8>, LabelError> {
    write_labels(&[elements])
}

/// Writes labels, one on each page.
pub(super) fn write_labels(labels: &[impl AsRef<[Element]>]) -> Result<Vec<u8>, LabelError> {
    write_pages(labels, LABEL_PAGE_FORMAT)
}

/// Writes a file of several pages.
pub(super) fn write_pages(
    pages: &[impl AsRef<[Element]>],
    paper: PageFormat,
) -> Result<Vec<u8>, LabelError> {
    let mut fonts = FontSubset::all();
    // Compress the pages one by one, because the drawings of 100 labels would take megabytes.
    let contents: Result<Vec<_>, _> = pages
        .iter()
        .map(|page| {
            let content = draw(page.as_ref(), paper, &mut fonts)?;
            Ok(compress_to_vec_zlib(&content, DEFLATE_LEVEL))
        })
        .collect();
    let contents = contents?;
    let mut pdf = Pdf::with_settings(COMPACT);
    write_document(&mut pdf, (contents.len(), paper), &fonts);
    for (page, packed) in contents.iter().enumerate() {
        pdf.stream(page_ids(page).1, packed).filter(Filter::FlateDecode);
    }
    for font in fonts.iter().filter(|font| font.is_used()) {
        font.embed(&mut pdf)?;
    }
    Ok(pdf.finish())
}

fn write_document(pdf: &mut Pdf, (pages, paper): (usize, PageFormat), fonts: &[FontSubset]) {
    let mut catalog = pdf.catalog(CATALOG);
    catalog.pages(PAGES);
    if paper.scaling == PrintScaling::Never {
        catalog.viewer_preferences().pair(Name(b"PrintScaling"), Name(b"None"));
    }
    catalog.finish();
    pdf.pages(PAGES).kids((0..pages).map(|page| page_ids(page).0)).count(pages as i32);
    let [width, height] =
        [paper.width, paper.height].map(|side| side as f32 * paper.points_per_unit);
    let size = PdfRect { x1: 0.0, y1: 0.0, x2: width.round(), y2: height.round() };
    for (page, content) in (0..pages).map(page_ids) {
        let mut page = pdf.page(page);
        page.parent(PAGES).media_box(size).contents(content);
        let mut resources = page.resources();
        let mut font_resources = resources.fonts();
        for font in fonts.iter().filter(|font| font.is_used()) {
            font_resources.pair(font.name, font.id(0));
        }
    }
}

fn draw(
    elements: &[Element],
    paper: PageFormat,
    fonts: &mut [FontSubset],
) -> Result<Vec<u8>, LabelError> {
    let PageFormat { height, points_per_unit: scale, .. } = paper;
    let mut content = Content::with_settings(COMPACT);
    content.transform([scale, 0.0, 0.0, scale, 0.0, 0.0]);
    for element in elements {
        match element {
            Element::Rect(rect) => fill_rects(&mut content, height, [*rect]),
            Element::Outline(outline) => fill_rects(&mut content, height, outline.rects()),
            Element::Code128(code) => fill_rects(&mut content, height, code.rects()),
            // Draw columns too: rows alone would leave white hairlines between them.
            Element::Qr(qr) => {
                let qr = QrMatrix::new(qr)?;
                fill_rects(&mut content, height, qr.row_runs().chain(qr.column_runs()));
            }
            Element::Text(text) => write_text(&mut content, height, text, fonts),
        }
    }
    Ok(content.finish().into_vec())
}

fn fill_rects(content: &mut Content, height: u32, rects: impl IntoIterator<Item = Rect>) {
    for Rect { x, y, w, h } in rects {
        let bottom = height - y - h;
        let (x, y) = (x as f32 + INSET_DOTS, bottom as f32 + INSET_DOTS);
        content.rect(x, y, w as f32 - 2.0 * INSET_DOTS, h as f32 - 2.0 * INSET_DOTS);
    }
    content.fill_nonzero();
}

fn write_text(content: &mut Content, height: u32, text: &Text, fonts: &mut [FontSubset]) {
    if text.colour == Colour::White {
        content.set_fill_gray(1.0);
    }
    content.begin_text();
    let mut origin = Some((text.x as f32, (height - text.baseline) as f32));
    let glyphs: Vec<(Glyph, char)> =
        text.line.chars().map(|c| (font::glyph(text.weight, c), c)).collect();
    for run in glyphs.chunk_by(|(one, _), (other, _)| one.face == other.face) {
        let face = run.first().map(|(glyph, _)| glyph.face);
        let Some(font) = fonts.iter_mut().find(|font| Some(font.typeface) == face) else {
            continue;
        };
        let shown: Vec<u8> =
            run.iter().flat_map(|shown| font.add_glyph(*shown).to_be_bytes()).collect();
        content.set_font(font.name, text.size as f32);
        if let Some((x, y)) = origin.take() {
            content.next_line(x, y);
        }
        content.show(Str(&shown));
    }
    content.end_text();
    if text.colour == Colour::White {
        content.set_fill_gray(0.0);
    }
}

/// A font, with the glyphs that a document uses.
struct FontSubset {
    typeface: Typeface,
    face: &'static LoadedFont,
    name: Name<'static>,
    first_id: i32,
    glyphs: GlyphRemapper,
    /// The width of each glyph and the character that is copied for it, by number in the subset.
    shown: BTreeMap<u16, (u16, char)>,
}

const IDENTITY_SYSTEM: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

impl FontSubset {
    fn new(typeface: Typeface, name: Name<'static>, first_id: i32) -> Self {
        let face = font::face(typeface);
        let (glyphs, shown) = (GlyphRemapper::new(), BTreeMap::new());
        Self { typeface, face, name, first_id, glyphs, shown }
    }

    fn all() -> Vec<Self> {
        vec![
            Self::new(Typeface::Regular, Name(b"R"), 5),
            Self::new(Typeface::Bold, Name(b"B"), 10),
            #[cfg(feature = "cjk")]
            Self::new(Typeface::Han, Name(b"H"), 15),
        ]
    }

    fn is_used(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Adds a character's glyph to the subset, and returns its number there.
    fn add_glyph(&mut self, (glyph, character): (Glyph, char)) -> u16 {
        let id = self.glyphs.remap(glyph.id);
        let copied = if glyph.id == NOTDEF { char::REPLACEMENT_CHARACTER } else { character };
        self.shown.entry(id).or_insert((glyph.advance, copied));
        id
    }

    /// Returns the id of one of the five consecutive objects of the font.
    fn id(&self, object: i32) -> Ref {
        Ref::new(self.first_id + object)
    }

    fn embed(&self, pdf: &mut Pdf) -> Result<(), LabelError> {
        let file = subsetter::subset(self.face.data, 0, &self.glyphs);
        let file = file.map_err(|_| LabelError::Font)?;
        // A subset's name starts with six letters; one file has one subset of each face.
        let name = format!("PARCEL+{}", self.face.name);
        let name = Name(name.as_bytes());
        let mut composite = pdf.type0_font(self.id(0));
        composite.base_font(name).encoding_predefined(Name(b"Identity-H"));
        composite.descendant_font(self.id(1)).to_unicode(self.id(3));
        composite.finish();
        self.write_descriptors(pdf, name, cff_table(&file).is_some());
        let packed = compress_to_vec_zlib(&self.to_unicode(), DEFLATE_LEVEL);
        pdf.stream(self.id(3), &packed).filter(Filter::FlateDecode);
        let outlines = cff_table(&file);
        let packed = compress_to_vec_zlib(outlines.unwrap_or(&file), DEFLATE_LEVEL);
        let mut stream = pdf.stream(self.id(4), &packed);
        stream.filter(Filter::FlateDecode);
        if outlines.is_some() {
            stream.pair(Name(b"Subtype"), Name(b"CIDFontType0C"));
        } else {
            stream.pair(Name(b"Length1"), file.len() as i32);
        }
        Ok(())
    }

    fn write_descriptors(&self, pdf: &mut Pdf, name: Name<'_>, is_cff: bool) {
        let mut font = pdf.cid_font(self.id(1));
        font.subtype(if is_cff { CidFontType::Type0 } else { CidFontType::Type2 });
        font.base_font(name).system_info(IDENTITY_SYSTEM);
        font.font_descriptor(self.id(2)).default_width(0.0);
        if !is_cff {
            font.cid_to_gid_map_predefined(Name(b"Identity"));
        }
        font.widths().consecutive(0, self.widths());
        font.finish();
        let mut descriptor = pdf.font_descriptor(self.id(2));
        descriptor.name(name).flags(FontFlags::NON_SYMBOLIC);
        if is_cff {
            descriptor.font_file3(self.id(4));
        } else {
            descriptor.font_file2(self.id(4));
        }
        descriptor.bbox(PdfRect::new(-1000.0, -300.0, 1500.0, 1100.0)).italic_angle(0.0);
        descriptor.ascent(928.0).descent(-244.0).cap_height(711.0).stem_v(80.0);
    }

    /// Returns the widths of the subset's glyphs in order. The first glyph is the box for missing characters.
    fn widths(&self) -> impl Iterator<Item = f32> {
        let missing = self.face.missing_glyph().advance;
        (0..self.glyphs.num_gids()).map(move |id| {
            let advance = self.shown.get(&id).map_or(missing, |(advance, _)| *advance);
            (f32::from(advance) * 10_000.0 / UNITS_PER_EM as f32).round() / 10.0
        })
    }

    fn to_unicode(&self) -> Vec<u8> {
        let mut map = UnicodeCmap::new(Name(b"ToUnicode"), IDENTITY_SYSTEM);
        for (id, (_, character)) in &self.shown {
            map.pair(*id, *character);
        }
        map.finish().into_vec()
    }
}

/// Returns the CFF table of a font, if it has one. PDF embeds the table without the rest of the file.
fn cff_table(file: &[u8]) -> Option<&[u8]> {
    let number = |at: usize| {
        let bytes = file.get(at..at + 4)?.first_chunk()?;
        usize::try_from(u32::from_be_bytes(*bytes)).ok()
    };
    let tables = usize::from(*file.get(5)?);
    let entry = (0..tables)
        .map(|table| 12 + 16 * table)
        .find(|at| file.get(*at..at + 4) == Some(b"CFF ".as_slice()))?;
    let (start, length) = (number(entry + 8)?, number(entry + 12)?);
    file.get(start..start + length)
}
