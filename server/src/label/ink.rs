//! Where the ink of a line is, glyph by glyph: lines stand so close that a letter with two accents
//! would run into a `g` above it.

use super::{
    font::{self, Area, UNITS_PER_EM},
    mark::Text,
};

/// Whether any glyph of one line touches one of the other.
pub(super) fn touch(one: &Text, other: &Text) -> bool {
    let near = one.baseline.abs_diff(other.baseline) < 2 * one.size.max(other.size);
    near && meet(extent(one), extent(other))
        && boxes(one).any(|glyph| boxes(other).any(|theirs| meet(glyph, theirs)))
}

/// The box of each glyph in dots of the label.
pub(super) fn boxes(text: &Text) -> impl Iterator<Item = Area> {
    let face = font::face(text.weight);
    let (x, baseline, size) = (text.x as i32, text.baseline as i32, text.size as i32);
    let em = UNITS_PER_EM as i32;
    let mut pen = 0;
    text.line.chars().filter_map(move |character| {
        let glyph = face.glyph(character);
        let (at, ink) = (pen, glyph.ink);
        pen += i32::from(glyph.advance);
        (ink != Area::default()).then(|| Area {
            left: x + ((at + ink.left) * size).div_euclid(em),
            top: baseline + (ink.top * size).div_euclid(em),
            right: x + ((at + ink.right) * size).div_euclid(em) + 1,
            bottom: baseline + (ink.bottom * size).div_euclid(em) + 1,
        })
    })
}

/// The box of a whole line.
fn extent(text: &Text) -> Area {
    let join = |all: Area, glyph: Area| Area {
        left: all.left.min(glyph.left),
        top: all.top.min(glyph.top),
        right: all.right.max(glyph.right),
        bottom: all.bottom.max(glyph.bottom),
    };
    boxes(text).reduce(join).unwrap_or_default()
}

/// Whether two boxes share a dot.
pub(super) fn meet(a: Area, b: Area) -> bool {
    a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}
