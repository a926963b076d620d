//! A label as characters: each of them holds 2 by 4 dots (Braille patterns), so that it needs no
//! colours and fits the terminal's width.

use png::{ColorType, Decoder, Transformations};

/// A picture in grey, 0 is ink.
struct Grey {
    width: usize,
    height: usize,
    dots: Vec<u8>,
}

/// The widest that a picture is drawn: wider is only taller.
const WIDEST: usize = 100;
/// Dots of a character.
const ACROSS: usize = 2;
const DOWN: usize = 4;
/// A dot is set when so many hundredths of what lies under it are ink: thin lines shall survive.
const INK: usize = 33;

/// The lines that draw a PNG file within so many columns; none when it cannot be read.
pub(crate) fn lines(png: &[u8], columns: usize) -> Option<Vec<String>> {
    let picture = read(png)?;
    let columns = columns.clamp(1, WIDEST);
    let across = columns * ACROSS;
    let down = (picture.height * across / picture.width.max(1)).max(1);
    let rows = 0..down.div_ceil(DOWN);
    let cell = |row: usize, column: usize| character(&picture, (across, down), (row, column));
    let line = |row| (0..columns).map(|column| cell(row, column)).collect::<String>();
    Some(rows.map(|row| line(row).trim_end_matches('\u{2800}').to_owned()).collect())
}

fn read(png: &[u8]) -> Option<Grey> {
    let mut decoder = Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(Transformations::normalize_to_color8());
    let mut reader = decoder.read_info().ok()?;
    let mut bytes = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut bytes).ok()?;
    let samples = match frame.color_type {
        ColorType::Grayscale | ColorType::Indexed => 1,
        ColorType::GrayscaleAlpha => 2,
        ColorType::Rgb => 3,
        ColorType::Rgba => 4,
    };
    let dots = bytes.get(..frame.buffer_size())?;
    // A label is black on white: its first sample says as much as all three.
    let dots = dots.iter().step_by(samples).copied().collect();
    Some(Grey { width: frame.width as usize, height: frame.height as usize, dots })
}

/// The bits of a pattern, row by row (Unicode, Braille Patterns).
const BITS: [[u32; ACROSS]; DOWN] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

fn character(picture: &Grey, size: (usize, usize), (row, column): (usize, usize)) -> char {
    let mut pattern = 0x2800;
    for (y, bits) in BITS.iter().enumerate() {
        for (x, bit) in bits.iter().enumerate() {
            if picture.is_ink(size, (column * ACROSS + x, row * DOWN + y)) {
                pattern |= bit;
            }
        }
    }
    char::from_u32(pattern).unwrap_or(' ')
}

impl Grey {
    /// Whether a dot of the small picture has enough ink in the large one.
    fn is_ink(&self, (across, down): (usize, usize), (x, y): (usize, usize)) -> bool {
        let span = |at: usize, of: usize, size: usize| {
            let start = at * size / of;
            start..((at + 1) * size / of).max(start + 1).min(size)
        };
        let (columns, rows) = (span(x, across, self.width), span(y, down, self.height));
        let (mut ink, mut all) = (0, 0);
        for row in rows {
            let line =
                self.dots.get(row * self.width + columns.start..row * self.width + columns.end);
            for dot in line.unwrap_or_default() {
                ink += usize::from(255 - dot);
                all += 255;
            }
        }
        all > 0 && ink * 100 >= all * INK
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, dots: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, height);
        encoder.set_color(ColorType::Grayscale);
        encoder.write_header().unwrap().write_image_data(dots).unwrap();
        file
    }

    #[test]
    fn ink_becomes_dots_and_paper_none() {
        let dots = [0, 255, 255, 255, 255, 255, 255, 0];
        assert_eq!(lines(&png(2, 4, &dots), 1).unwrap(), ["⢁"]);
        assert_eq!(lines(&png(2, 4, &[0; 8]), 1).unwrap(), ["⣿"]);
        assert_eq!(lines(&png(2, 4, &[255; 8]), 1).unwrap(), [""]);
    }

    #[test]
    fn a_picture_keeps_its_shape_within_the_width() {
        let label = png(812, 1218, &vec![0; 812 * 1218]);
        for (columns, drawn) in [(20, 20), (80, 80), (400, WIDEST), (0, 1)] {
            let lines = lines(&label, columns).unwrap();
            assert!(lines.iter().all(|line| line.chars().count() == drawn), "{columns}");
            assert_eq!(lines.len(), (drawn * 3).div_ceil(4), "{columns}");
        }
    }

    #[test]
    fn a_line_of_three_dots_survives_wherever_it_is() {
        for at in 400..420 {
            let mut dots = vec![255; 812 * 16];
            dots.chunks_mut(812).for_each(|row| row[at..at + 3].fill(0));
            let lines = lines(&png(812, 16, &dots), 80).unwrap();
            assert!(lines[0].chars().any(|c| c != '\u{2800}'), "{at}");
        }
    }

    #[test]
    fn what_is_no_picture_is_not_drawn() {
        assert_eq!(lines(b"%PDF", 80), None);
    }
}
