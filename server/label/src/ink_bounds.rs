//! The area that the ink of a line of text covers, glyph by glyph. Lines are so close that a letter with two accents
//! could touch a `g` above it.

use super::{
    element::Text,
    font::{self, BoundingBox, UNITS_PER_EM},
};

/// The ink of one line of text, in dots of the label.
#[derive(Debug, Default)]
pub(super) struct InkBounds {
    /// The box of each glyph.
    pub(super) glyphs: Vec<BoundingBox>,
    /// The box of all glyphs together.
    union: BoundingBox,
}

impl InkBounds {
    pub(super) fn new(text: &Text) -> Self {
        let glyphs: Vec<BoundingBox> = glyph_boxes(text).collect();
        let union = glyphs.iter().copied().reduce(enclose).unwrap_or_default();
        Self { glyphs, union }
    }

    /// Returns `true` if any glyph touches a glyph of another line.
    pub(super) fn touches(&self, other: &Self) -> bool {
        let theirs =
            |glyph: &BoundingBox| other.glyphs.iter().any(|their| overlaps(*glyph, *their));
        overlaps(self.union, other.union) && self.glyphs.iter().any(theirs)
    }
}

fn glyph_boxes(text: &Text) -> impl Iterator<Item = BoundingBox> {
    let (x, baseline, size) = (text.x as i32, text.baseline as i32, text.size as i32);
    let em = UNITS_PER_EM as i32;
    let mut pen = 0;
    text.line.chars().filter_map(move |character| {
        let glyph = font::glyph(text.weight, character);
        let (at, ink_bounds) = (pen, glyph.ink_bounds);
        pen += i32::from(glyph.advance);
        (ink_bounds != BoundingBox::default()).then(|| BoundingBox {
            left: x + ((at + ink_bounds.left) * size).div_euclid(em),
            top: baseline + (ink_bounds.top * size).div_euclid(em),
            right: x + ((at + ink_bounds.right) * size).div_euclid(em) + 1,
            bottom: baseline + (ink_bounds.bottom * size).div_euclid(em) + 1,
        })
    })
}

/// Returns the union of two rectangles.
fn enclose(one: BoundingBox, other: BoundingBox) -> BoundingBox {
    BoundingBox {
        left: one.left.min(other.left),
        top: one.top.min(other.top),
        right: one.right.max(other.right),
        bottom: one.bottom.max(other.bottom),
    }
}

/// Returns `true` if two rectangles share a dot.
pub(super) fn overlaps(a: BoundingBox, b: BoundingBox) -> bool {
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}
