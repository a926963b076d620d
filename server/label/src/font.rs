//! The fonts of the labels: widths of text, and glyphs as one-bit pictures.
//!
//! Glyphs are drawn once in each size and cached for the life of the process. Sizes and characters
//! are few and fixed, so the cache is bounded.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use ab_glyph::{Font, FontRef, GlyphId};

/// Number of font units in one em, in both faces.
pub(super) const UNITS_PER_EM: u32 = 2048;

/// The id of the glyph for a character that the font lacks: a box.
pub(super) const NOTDEF: u16 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Regular,
    Bold,
}

/// The identity of one of the fonts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Typeface {
    Regular,
    Bold,
    /// Chinese, in one weight.
    #[cfg(feature = "cjk")]
    Han,
}

/// A loaded font with its measured glyphs.
#[derive(Debug)]
pub(super) struct LoadedFont {
    font: FontRef<'static>,
    pub(super) data: &'static [u8],
    pub(super) name: &'static str,
    /// The glyph of each character, by code point, kept because a label measures every character several times.
    glyphs: Vec<Glyph>,
    missing: Glyph,
}

/// A character's glyph in the font, its advance and the box of its ink, in font units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Glyph {
    pub face: Typeface,
    pub id: u16,
    pub advance: u16,
    pub ink_bounds: BoundingBox,
}

/// A box that contains the ink, relative to the pen on the baseline, with x to the right and y downward.
/// Empty for spaces.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct BoundingBox {
    pub left: i32,
    pub top: i32,
    pub right: i32,
    pub bottom: i32,
}

static REGULAR: LazyLock<LoadedFont> = LazyLock::new(|| {
    let data = include_bytes!("../fonts/RobotoCondensed-Regular.ttf");
    LoadedFont::new(Typeface::Regular, "RobotoCondensed-Regular", data)
});
static BOLD: LazyLock<LoadedFont> = LazyLock::new(|| {
    let data = include_bytes!("../fonts/RobotoCondensed-Bold.ttf");
    LoadedFont::new(Typeface::Bold, "RobotoCondensed-Bold", data)
});
#[cfg(feature = "cjk")]
static HAN: LazyLock<LoadedFont> = LazyLock::new(|| {
    let data = include_bytes!("../fonts/NotoSansCJKsc-Regular.otf");
    LoadedFont::new(Typeface::Han, "NotoSansCJKsc-Regular", data)
});

pub(super) fn face(typeface: Typeface) -> &'static LoadedFont {
    match typeface {
        Typeface::Regular => &REGULAR,
        Typeface::Bold => &BOLD,
        #[cfg(feature = "cjk")]
        Typeface::Han => &HAN,
    }
}

/// Returns a character's glyph, from the fallback font if necessary; a box if no font has it.
pub(super) fn glyph(weight: Weight, character: char) -> Glyph {
    let face = match weight {
        Weight::Regular => &REGULAR,
        Weight::Bold => &BOLD,
    };
    let glyph = face.glyph(character);
    if glyph.id == NOTDEF { fallback_glyph(character).unwrap_or(glyph) } else { glyph }
}

#[cfg(feature = "cjk")]
fn fallback_glyph(character: char) -> Option<Glyph> {
    let glyph = HAN.glyph(character);
    (glyph.id != NOTDEF).then_some(glyph)
}

#[cfg(not(feature = "cjk"))]
fn fallback_glyph(_: char) -> Option<Glyph> {
    None
}

/// Returns `true` if a label can show this character; any other becomes a box.
#[cfg(test)]
pub(crate) fn is_drawable(character: char) -> bool {
    glyph(Weight::Regular, character).id != NOTDEF
}

/// Maximum advance of an ASCII character in both faces, in font units.
const MAX_ASCII_ADVANCE: u32 = UNITS_PER_EM * 4 / 5;

/// Returns a width in dots that no ASCII text of so many characters exceeds, without measuring any.
pub(super) fn max_ascii_width(length: usize, size: u32) -> u32 {
    (length as u32).saturating_mul(MAX_ASCII_ADVANCE * size).div_ceil(UNITS_PER_EM)
}

/// Returns the width of `text` in dots, rounded up.
pub(super) fn width(text: &str, weight: Weight, size: u32) -> u32 {
    let units: u32 = text.chars().map(|c| u32::from(glyph(weight, c).advance)).sum();
    (units * size).div_ceil(UNITS_PER_EM)
}

impl LoadedFont {
    #[expect(clippy::expect_used, reason = "the fonts are part of the program; tests read both")]
    fn new(face: Typeface, name: &'static str, data: &'static [u8]) -> Self {
        let font = FontRef::try_from_slice(data).expect("an embedded font is valid");
        let scale = UNITS_PER_EM as f32 / units_per_em(&font);
        let measure = |id: GlyphId| {
            let advance = (font.h_advance_unscaled(id) * scale).round() as u16;
            Glyph { face, id: id.0, advance, ink_bounds: ink_bounds(&font, id, scale) }
        };
        let missing = measure(GlyphId(NOTDEF));
        let mut glyphs = Vec::new();
        for (id, character) in font.codepoint_ids() {
            let index = character as usize;
            if glyphs.len() <= index {
                glyphs.resize(index + 1, missing);
            }
            if let Some(slot) = glyphs.get_mut(index) {
                *slot = measure(id);
            }
        }
        Self { font, data, name, glyphs, missing }
    }

    /// Returns the glyph for characters that the font lacks: a box.
    pub(super) fn missing_glyph(&self) -> Glyph {
        self.missing
    }

    fn glyph(&self, character: char) -> Glyph {
        self.glyphs.get(character as usize).copied().unwrap_or(self.missing)
    }
}

/// Measures the box of a glyph's ink. (`ab_glyph` has the upper edge below the lower one.)
fn ink_bounds(font: &FontRef<'_>, id: GlyphId, scale: f32) -> BoundingBox {
    let bounds = font.outline(id).map(|outline| outline.bounds).unwrap_or_default();
    BoundingBox {
        left: (bounds.min.x * scale).floor() as i32,
        top: -(bounds.min.y.max(bounds.max.y) * scale).ceil() as i32,
        right: (bounds.max.x * scale).ceil() as i32,
        bottom: -(bounds.min.y.min(bounds.max.y) * scale).floor() as i32,
    }
}

/// A glyph as dots, placed relative to the pen on the baseline.
#[derive(Debug, Default)]
pub(super) struct GlyphBitmap {
    /// The position of the left column, from the pen.
    pub left: i32,
    /// The position of the top row, from the baseline; negative is above.
    pub top: i32,
    /// The rows, each starting at its top bit; no glyph is wider than 128 dots.
    pub rows: Vec<u128>,
}

type BitmapKey = (Typeface, u32, u16);
static BITMAPS: LazyLock<Mutex<HashMap<BitmapKey, Arc<GlyphBitmap>>>> =
    LazyLock::new(Mutex::default);

/// Returns the bitmap of a glyph with an em of `size` dots, from the cache if it was drawn before.
pub(super) fn glyph_bitmap(glyph: Glyph, size: u32) -> Arc<GlyphBitmap> {
    let mut bitmaps = BITMAPS.lock().unwrap_or_else(PoisonError::into_inner);
    let drawn = bitmaps.entry((glyph.face, size, glyph.id)).or_insert_with(|| {
        let font = &face(glyph.face).font;
        let scale = ab_glyph::PxScale::from(size as f32 * line_height(font));
        Arc::new(rasterize(font, GlyphId(glyph.id).with_scale(scale)))
    });
    Arc::clone(drawn)
}

/// Returns the height of a line in ems. `ab_glyph` scales by this height, ascent plus descent, not by the em.
fn line_height(font: &FontRef<'_>) -> f32 {
    font.height_unscaled() / units_per_em(font)
}

/// Returns the number of a font's own units in one em.
fn units_per_em(font: &FontRef<'_>) -> f32 {
    font.units_per_em().unwrap_or(UNITS_PER_EM as f32)
}

fn rasterize(font: &FontRef<'_>, glyph: ab_glyph::Glyph) -> GlyphBitmap {
    let is_box = glyph.id.0 == NOTDEF;
    let Some(outline) = font.outline_glyph(glyph) else { return GlyphBitmap::default() };
    let bounds = outline.px_bounds();
    let mut rows = vec![0; bounds.height() as usize];
    outline.draw(|x, y, coverage| {
        if coverage >= 0.5
            && let Some(row) = rows.get_mut(y as usize)
        {
            *row |= (1 << 127) >> x.min(127);
        }
    });
    if is_box {
        draw_box_sides(&mut rows, bounds.width() as u32);
    }
    GlyphBitmap { left: bounds.min.x as i32, top: bounds.min.y as i32, rows }
}

/// Draws the sides of the box: its strokes are so thin that small sizes lose them.
fn draw_box_sides(rows: &mut [u128], width: u32) {
    let full_row = u128::MAX << 128_u32.saturating_sub(width).min(127);
    let sides = 1 << 127 | full_row & full_row.wrapping_neg();
    for row in rows.iter_mut() {
        *row |= sides;
    }
    if let [top, .., bottom] = rows {
        *top |= full_row;
        *bottom |= full_row;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_faces_draw_the_same_characters_and_agree_on_the_em() {
        let (regular, bold) = (face(Typeface::Regular), face(Typeface::Bold));
        assert_eq!(regular.font.units_per_em(), Some(UNITS_PER_EM as f32));
        assert_eq!(bold.font.units_per_em(), Some(UNITS_PER_EM as f32));
        for character in '\0'..'\u{3000}' {
            let missing = regular.glyph(character).id == NOTDEF;
            assert_eq!(missing, bold.glyph(character).id == NOTDEF, "{character:?}");
        }
    }

    #[test]
    fn no_ascii_text_is_wider_than_its_length_allows() {
        for (weight, character) in
            (' '..='~').flat_map(|c| [Weight::Regular, Weight::Bold].map(|w| (w, c)))
        {
            let text = character.to_string().repeat(40);
            assert!(width(&text, weight, 16) <= max_ascii_width(40, 16), "{character}");
        }
    }

    #[test]
    fn the_fonts_cover_latin_greek_and_cyrillic() {
        for good in "Aa0~ñÑüÜéßøŁőẠếΩжЁў–—’…€₡№".chars() {
            assert!(is_drawable(good), "{good}");
        }
        assert_eq!(is_drawable('深'), cfg!(feature = "cjk"));
        for bad in "مרא😀\u{301}\n".chars() {
            assert!(!is_drawable(bad), "{bad:?}");
        }
    }

    #[test]
    fn a_missing_character_is_a_visible_box() {
        let glyph = glyph(Weight::Regular, 'ก');
        assert_eq!(glyph.id, NOTDEF);
        let rows = &glyph_bitmap(glyph, 40).rows;
        assert!(rows.iter().filter(|row| **row != 0).count() > 20);
    }

    /// Thin strokes fall between the dots of small sizes, and a box without its sides is not recognisable.
    #[test]
    fn a_box_has_four_sides_in_every_size() {
        for weight in [Weight::Regular, Weight::Bold] {
            for size in 10..=84 {
                let picture = glyph_bitmap(glyph(weight, 'ก'), size);
                let full_row = picture.rows.iter().copied().reduce(|all, row| all | row).unwrap();
                let (left, right) =
                    (1 << 127 >> full_row.leading_zeros(), 1 << full_row.trailing_zeros());
                let sides = picture.rows.iter().all(|row| row & left != 0 && row & right != 0);
                let ends = [picture.rows.first(), picture.rows.last()];
                let ends = ends.into_iter().flatten().all(|row| *row == full_row);
                assert!(
                    sides && ends && full_row.count_ones() > 2,
                    "{weight:?} {size} {picture:?}"
                );
            }
        }
    }

    #[test]
    fn no_glyph_is_wider_than_a_bitmap_row() {
        for face in [&REGULAR, &BOLD] {
            for glyph in &face.glyphs {
                let scale = 84.0 * line_height(&face.font);
                let outline = face.font.outline_glyph(GlyphId(glyph.id).with_scale(scale));
                assert!(outline.is_none_or(|o| o.px_bounds().width() <= 128.0), "{glyph:?}");
            }
        }
    }

    #[test]
    #[cfg(feature = "cjk")]
    fn chinese_is_as_large_as_its_neighbours() {
        let (han, latin) = (glyph(Weight::Bold, '国'), glyph(Weight::Bold, 'W'));
        assert_eq!(u32::from(han.advance), UNITS_PER_EM);
        let height = |ink_bounds: BoundingBox| ink_bounds.bottom - ink_bounds.top;
        assert!(
            (1..2).contains(&(height(han.ink_bounds) / height(latin.ink_bounds))),
            "{han:?} {latin:?}"
        );
        assert!((30..=40).contains(&glyph_bitmap(han, 40).rows.len()));
    }
}
