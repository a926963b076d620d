//! The elements of a label, in whole dots, with the origin at the top left and y downward.
//!
//! The layout chooses every position; the writers of PNG, PDF and ZPL only draw the elements.

use super::{code128::Bars, font::Weight};

/// The label in dots: 4 × 6 inches at 203 dots per inch.
pub(super) const WIDTH: u32 = 812;
pub(super) const HEIGHT: u32 = 1218;

/// One printed element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Element {
    Rect(Rect),
    Outline(Outline),
    Text(Text),
    Code128(Code128),
    Qr(Qr),
}

/// A filled black rectangle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    pub x: u32,
    pub y: u32,
    pub w: u32,
    pub h: u32,
}

/// A box of black rules, white inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outline {
    pub outer: Rect,
    /// The thickness of its rules.
    pub thickness: u32,
}

impl Outline {
    /// Returns the rules: top, bottom, left, right.
    pub(super) fn rects(&self) -> [Rect; 4] {
        let Rect { x, y, w, h } = self.outer;
        let t = self.thickness;
        let (right, bottom) = (x + w - t, y + h - t);
        [
            Rect { x, y, w, h: t },
            Rect { x, y: bottom, w, h: t },
            Rect { x, y, w: t, h },
            Rect { x: right, y, w: t, h },
        ]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    Black,
    White,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Centre,
    Right,
}

/// The columns that a line of text may fill, from `left` up to but not including `right`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub left: u32,
    pub right: u32,
}

impl Span {
    pub(super) const fn width(self) -> u32 {
        self.right.saturating_sub(self.left)
    }
}

/// One line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub x: u32,
    pub baseline: u32,
    /// The font size: the em in dots.
    pub size: u32,
    pub weight: Weight,
    pub colour: Colour,
    pub line: String,
    /// Its width in our own font.
    pub width: u32,
    pub span: Span,
    pub align: Align,
}

/// A Code 128 symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Code128 {
    pub x: u32,
    pub y: u32,
    /// Width of the narrowest bar.
    pub module: u32,
    pub height: u32,
    pub data: String,
    pub bars: Bars,
}

impl Code128 {
    /// Returns the bars as rectangles, from left to right.
    pub(super) fn rects(&self) -> impl Iterator<Item = Rect> {
        self.bars.spans().map(|(start, width)| Rect {
            x: self.x + start * self.module,
            y: self.y,
            w: width * self.module,
            h: self.height,
        })
    }
}

/// A QR symbol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Qr {
    pub x: u32,
    pub y: u32,
    pub module: u32,
    /// Modules on each side.
    pub modules: u32,
    pub data: String,
    /// The position for printers that encode the symbol themselves, perhaps one version larger.
    pub native: QrPlacement,
}

/// The corner and the module of a QR symbol that a printer encodes itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QrPlacement {
    pub x: u32,
    pub y: u32,
    pub module: u32,
}
