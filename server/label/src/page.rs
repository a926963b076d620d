//! Collects the elements of a label: lines of text fitted into their slots, rules and boxes.

use super::{
    element::{Align, Colour, Element, Outline, Rect, Span, Text},
    font::{self, Weight},
    ink_bounds::InkBounds,
    text_fit::{self, TextStyle, fit, fits, shows_all},
};

/// Thickness of the frame and of the rules, in dots.
pub(super) const RULE: u32 = 3;

/// Sizes for a line whose accents would otherwise touch the line above it.
const TOUCHING_ACCENT_SIZES: &[u32] = &[18, 16, 14, 12, 10];

/// The position and the style of one line of text.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextSlot {
    pub baseline: u32,
    pub span: Span,
    pub style: TextStyle,
    pub align: Align,
    pub colour: Colour,
}

impl TextSlot {
    /// Creates a slot for a line in black, aligned left, in the first of `style`'s sizes that fits.
    pub(super) const fn new(baseline: u32, span: Span, style: TextStyle) -> Self {
        Self { baseline, span, style, align: Align::Left, colour: Colour::Black }
    }

    pub(super) const fn centre(self) -> Self {
        Self { align: Align::Centre, ..self }
    }

    pub(super) const fn right(self) -> Self {
        Self { align: Align::Right, ..self }
    }

    pub(super) const fn white(self) -> Self {
        Self { colour: Colour::White, ..self }
    }

    /// Returns the text element for a line at this size in the slot.
    fn to_text(self, line: String, size: u32) -> Text {
        let Self { baseline, span, style: TextStyle { weight, .. }, align, colour } = self;
        let width = font::width(&line, weight, size);
        let spare = span.width().saturating_sub(width);
        let x = match align {
            Align::Left => span.left,
            Align::Centre => span.left + spare / 2,
            Align::Right => span.left + spare,
        };
        Text { x, baseline, size, weight, colour, line, width, span, align }
    }
}

/// Returns a bold style that uses the first of these sizes that fits.
pub(super) const fn bold(sizes: &'static [u32]) -> TextStyle {
    TextStyle { weight: Weight::Bold, sizes }
}

/// Returns a regular style that uses the first of these sizes that fits.
pub(super) const fn regular(sizes: &'static [u32]) -> TextStyle {
    TextStyle { weight: Weight::Regular, sizes }
}

/// Returns the columns from `left` up to but not including `right`.
pub(super) const fn span(left: u32, right: u32) -> Span {
    Span { left, right }
}

/// A page under construction: the elements that were added so far.
#[derive(Debug, Default)]
pub(super) struct Page {
    elements: Vec<Element>,
    /// The ink of the texts among the elements, which no further text may touch.
    inks: Vec<InkBounds>,
}

impl Page {
    pub(super) fn into_elements(self) -> Vec<Element> {
        self.elements
    }

    pub(super) fn push(&mut self, element: Element) {
        self.elements.push(element);
    }

    pub(super) fn add_rect(&mut self, (x, y): (u32, u32), (w, h): (u32, u32)) {
        self.push(Element::Rect(Rect { x, y, w, h }));
    }

    /// Adds a horizontal rule below `y`.
    pub(super) fn add_rule(&mut self, y: u32, span_of_columns: Span) {
        self.add_rect((span_of_columns.left, y), (span_of_columns.width(), RULE));
    }

    /// Adds a vertical rule from `top` to `bottom`, right of `x`.
    pub(super) fn add_vertical_rule(&mut self, x: u32, (top, bottom): (u32, u32)) {
        self.add_rect((x, top), (RULE, bottom - top));
    }

    /// Adds a box of rules from `top` to `bottom`.
    pub(super) fn add_outline(&mut self, span_of_columns: Span, (top, bottom): (u32, u32)) {
        let outer =
            Rect { x: span_of_columns.left, y: top, w: span_of_columns.width(), h: bottom - top };
        self.push(Element::Outline(Outline { outer, thickness: RULE }));
    }

    /// Adds one line of text, shrunk or truncated to fit its slot.
    pub(super) fn add_line(&mut self, text: &str, slot: TextSlot) {
        self.add_lines(text, slot.style, &[slot]);
    }

    /// Adds a text on as many slots as it needs, and returns their number.
    pub(super) fn add_lines(&mut self, text: &str, style: TextStyle, slots: &[TextSlot]) -> usize {
        let widths: Vec<u32> = slots.iter().map(|slot| slot.span.width()).collect();
        let fitted = fit(text, style, &widths);
        let used = fitted.lines.len();
        for (line, slot) in fitted.lines.into_iter().zip(slots) {
            self.place_line(line, fitted.size, slot);
        }
        used
    }

    /// Adds a line, in a smaller size if it would touch another.
    fn place_line(&mut self, line: String, size: u32, slot: &TextSlot) {
        if line.is_empty() {
            return;
        }
        let mut text = slot.to_text(line, size);
        let mut ink_bounds = InkBounds::new(&text);
        let mut smaller = slot
            .style
            .sizes
            .iter()
            .chain(TOUCHING_ACCENT_SIZES)
            .copied()
            .filter(|other| *other < size);
        while self.inks.iter().any(|other| ink_bounds.touches(other))
            && let Some(size) = smaller.next()
        {
            text = slot.to_text(text.line, size);
            ink_bounds = InkBounds::new(&text);
        }
        self.inks.push(ink_bounds);
        self.push(Element::Text(text));
    }
}

/// Returns `true` if the slots show all of `text`.
pub(super) fn is_fully_shown(text: &str, style: TextStyle, slots: &[TextSlot]) -> bool {
    shows_all(text, style, &slots.iter().map(|slot| slot.span.width()))
}

/// Returns how many bytes of `text` are shown in the slots.
pub(super) fn shown_bytes(text: &str, style: TextStyle, slots: &[TextSlot]) -> usize {
    text_fit::shown_bytes(text, style, &slots.iter().map(|slot| slot.span.width()))
}

/// Returns `true` if all of `text` fits into the slots in whole words.
pub(super) fn fits_into(text: &str, style: TextStyle, slots: &[TextSlot]) -> bool {
    fits(text, style, &slots.iter().map(|slot| slot.span.width()))
}
