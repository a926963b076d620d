//! A bitmap of one bit for each dot, on which text can be drawn.

use super::{
    element::{Colour, Rect, Text},
    font,
};

/// Number of dots in one word of a row.
const WORD_BITS: u32 = 64;

/// A bitmap, white at first. Dots outside of it are not drawn.
#[derive(Debug)]
pub(super) struct Canvas {
    width: u32,
    words_per_row: usize,
    /// The rows from the top. The leftmost dot of a word is its top bit, and black is 1.
    words: Vec<u64>,
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32) -> Self {
        let words_per_row = width.div_ceil(WORD_BITS) as usize;
        Self { width, words_per_row, words: vec![0; words_per_row * height as usize] }
    }

    /// Returns the number of bytes in one row of [`Canvas::into_bytes`].
    pub(super) fn bytes_per_row(&self) -> usize {
        self.width.div_ceil(8) as usize
    }

    /// Returns the rows from the top, with the leftmost dot in the top bit and black as 1.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let per_row = self.bytes_per_row();
        let mut bytes = Vec::with_capacity(8 * self.words.len());
        for row in self.words.chunks_exact(self.words_per_row.max(1)) {
            let end = bytes.len() + per_row;
            for word in row {
                bytes.extend_from_slice(&word.to_be_bytes());
            }
            bytes.truncate(end);
        }
        bytes
    }

    /// Fills a rectangle with black dots.
    pub(super) fn fill_rect(&mut self, rect: Rect) {
        for y in rect.y..rect.y + rect.h {
            self.draw_run(rect.x, y, rect.w);
        }
    }

    /// Draws `length` black dots from `x` on.
    fn draw_run(&mut self, x: u32, y: u32, length: u32) {
        let (mut at, end) = (x, x + length);
        while at < end {
            let offset = at % WORD_BITS;
            let count = (WORD_BITS - offset).min(end - at);
            let bits = u64::MAX >> (WORD_BITS - count) << (WORD_BITS - count) >> offset;
            self.draw_word(y as usize, (at / WORD_BITS) as usize, bits, Colour::Black);
            at += count;
        }
    }

    /// Draws a line of text. Each glyph starts at a whole dot, so that its bitmap can be cached and a letter always
    /// looks the same.
    pub(super) fn draw_text(&mut self, text: &Text) {
        let mut pen = 0;
        for character in text.line.chars() {
            let glyph = font::glyph(text.weight, character);
            let bitmap = font::glyph_bitmap(glyph, text.size);
            let dots = (pen * text.size + font::UNITS_PER_EM / 2) / font::UNITS_PER_EM;
            let x = (text.x + dots) as i32 + bitmap.left;
            let top = text.baseline as i32 + bitmap.top;
            for (row, y) in bitmap.rows.iter().zip(top..) {
                self.draw_bits(x, y, *row, text.colour);
            }
            pen += u32::from(glyph.advance);
        }
    }

    /// Draws 128 dots from `x` on, in the colour where the bit is set.
    fn draw_bits(&mut self, x: i32, y: i32, bits: u128, colour: Colour) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), usize::try_from(y)) else { return };
        let (first, offset) = ((x / WORD_BITS) as usize, x % WORD_BITS);
        let aligned = bits >> offset;
        self.draw_word(y, first, (aligned >> WORD_BITS) as u64, colour);
        self.draw_word(y, first + 1, aligned as u64, colour);
        if offset > 0 {
            self.draw_word(
                y,
                first + 2,
                (bits << (2 * WORD_BITS - offset) >> WORD_BITS) as u64,
                colour,
            );
        }
    }

    fn draw_word(&mut self, y: usize, column: usize, bits: u64, colour: Colour) {
        if column >= self.words_per_row {
            return;
        }
        if let Some(word) = self.words.get_mut(y * self.words_per_row + column) {
            match colour {
                Colour::Black => *word |= bits,
                Colour::White => *word &= !bits,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(canvas: Canvas) -> Vec<String> {
        let per_row = canvas.bytes_per_row();
        let bits = |byte: &u8| {
            let byte = *byte;
            (0..8).rev().map(move |column| if byte >> column & 1 == 1 { '1' } else { '0' })
        };
        canvas.into_bytes().chunks(per_row).map(|row| row.iter().flat_map(bits).collect()).collect()
    }

    #[test]
    fn rectangles_cross_words_and_stop_at_the_edge() {
        let mut canvas = Canvas::new(72, 3);
        canvas.fill_rect(Rect { x: 62, y: 1, w: 4, h: 9 });
        let row = format!("{}1111{}", "0".repeat(62), "0".repeat(6));
        assert_eq!(shown(canvas), ["0".repeat(72), row.clone(), row]);
    }

    #[test]
    fn bits_are_drawn_at_every_offset() {
        for x in 0..140 {
            let mut canvas = Canvas::new(320, 1);
            canvas.draw_bits(x as i32, 0, 1 << 127 | 1, Colour::Black);
            let row = shown(canvas).concat();
            let dots: Vec<usize> = row.match_indices('1').map(|(at, _)| at).collect();
            assert_eq!(dots, [x, x + 127]);
        }
    }

    #[test]
    fn nothing_is_drawn_left_of_the_canvas() {
        let mut canvas = Canvas::new(64, 1);
        canvas.draw_bits(-1, 0, u128::MAX, Colour::Black);
        canvas.draw_bits(0, -1, u128::MAX, Colour::Black);
        assert_eq!(shown(canvas), ["0".repeat(64)]);
    }
}
