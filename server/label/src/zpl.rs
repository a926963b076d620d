//! Writes labels in ZPL II, the language of label printers: in ASCII, and escaped so that data cannot become a command.
//!
//! The printer draws text, bars and QR symbol itself, so that they are sharp and the file is small. A line with
//! characters that the printer's font may lack is sent as a picture in our font.

use std::fmt::Write;

use super::{
    canvas::Canvas,
    element::{Align, Code128, Colour, Element, HEIGHT, Qr, Rect, Text, WIDTH},
    font,
};

/// Width reserved for a line, in percent of its width in our font, because printers set a text in different widths.
const WIDTH_PERCENT: u32 = 112;
/// Number of dots by which `^BQ` draws a symbol below its `^FO`.
const QR_OFFSET_DOTS: u32 = 10;

/// Writes a ZPL file.
pub(super) fn write(elements: &[Element]) -> Vec<u8> {
    let mut file = format!("^XA\n^CI28\n^PW{WIDTH}\n^LL{HEIGHT}\n^LH0,0\n");
    for element in elements {
        let command = match element {
            Element::Rect(rect) => rectangle(rect, rect.w.min(rect.h)),
            Element::Outline(outline) => rectangle(&outline.outer, outline.thickness),
            Element::Text(text) if is_native_line(text) => native_text(text),
            Element::Text(text) => text_image(text),
            Element::Code128(code) => barcode(code),
            Element::Qr(qr) => qr_symbol(qr),
        };
        file.push_str(&command);
        file.push('\n');
    }
    file.push_str("^XZ\n");
    file.into_bytes()
}

fn rectangle(Rect { x, y, w, h }: &Rect, thickness: u32) -> String {
    format!("^FO{x},{y}^GB{w},{h},{thickness}^FS")
}

fn barcode(code: &Code128) -> String {
    let Code128 { x, y, module, height, data, .. } = code;
    format!("^FO{x},{y}^BY{module},2,{height}^BCN,{height},N,N,N,N^FD>:{data}^FS")
}

fn qr_symbol(qr: &Qr) -> String {
    let (x, y, module) =
        (qr.native.x, qr.native.y.saturating_sub(QR_OFFSET_DOTS), qr.native.module);
    format!("^FO{x},{y}^BQN,2,{module}{}^FS", field_data(&format!("QA,{}", qr.data)))
}

/// Returns `true` if a printer's own font has all characters of a line. Lines with `\&` are excluded, because it is a
/// line break in a block of text, and to some interpreters everywhere.
pub(super) fn is_native_line(text: &Text) -> bool {
    text.line.chars().all(is_native) && !text.line.contains("\\&")
}

/// Returns `true` for characters of every printer's scalable font: Latin. (`…` is sent as three full stops.)
fn is_native(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{A1}'..='\u{17F}' | '–' | '—' | '‘' | '’' | '“' | '”' | '€' | '…')
}

fn native_text(text: &Text) -> String {
    let Text { baseline, size, span, .. } = text;
    // Many printers draw a hyphen as wide as a dash.
    let widest = font::width(&text.line.replace('-', "–"), text.weight, *size);
    let reserved = widest * WIDTH_PERCENT / 100;
    let glyph_width = if reserved > span.width() { size * span.width() / reserved } else { *size };
    let reverse = if text.colour == Colour::White { "^FR" } else { "" };
    let (x, block) = match text.align {
        Align::Left => (text.x, String::new()),
        Align::Centre => (span.left, format!("^FB{},,,C", span.width())),
        Align::Right => (span.left, format!("^FB{},,,R", span.width())),
    };
    let data = field_data(&text.line.replace('…', "..."));
    format!("^FT{x},{baseline}^A0N,{size},{glyph_width}{block}{reverse}{data}^FS")
}

/// Writes a field's data, with `^FH` if it has escapes.
fn field_data(text: &str) -> String {
    let data = escape(text);
    let escapes = if data.contains('_') { "^FH" } else { "" };
    format!("{escapes}^FD{data}")
}

/// Escapes the data of a field, so that it can neither end the field nor start a command.
fn escape(text: &str) -> String {
    let mut data = String::with_capacity(text.len() + 16);
    for byte in text.bytes() {
        match byte {
            b'^' | b'~' | b'_' | b'\\' | 0x80.. => {
                let _ = write!(data, "_{byte:02X}");
            }
            0..b' ' | 0x7F => data.push(' '),
            _ => data.push(char::from(byte)),
        }
    }
    data
}

fn text_image(text: &Text) -> String {
    let (above, below) = (text.size * 6 / 5, text.size * 2 / 5);
    let mut canvas = Canvas::new(text.width + 8, above + below);
    let left = text.x.saturating_sub(4);
    canvas.draw_text(&Text {
        x: text.x - left,
        baseline: above,
        colour: Colour::Black,
        ..text.clone()
    });
    let row_bytes = canvas.bytes_per_row();
    let bytes = canvas.into_bytes();
    let rows: Vec<&[u8]> = bytes.chunks_exact(row_bytes).collect();
    let blank = |row: &&&[u8]| row.iter().all(|byte| *byte == 0);
    let skipped = rows.iter().take_while(blank).count();
    let bottom = rows.len() - rows.iter().rev().take_while(blank).count();
    let inked = rows.get(skipped..bottom).unwrap_or_default();
    let y = (text.baseline + skipped as u32).saturating_sub(above);
    image_command((left, y), inked, row_bytes)
}

fn image_command((x, y): (u32, u32), rows: &[&[u8]], row_bytes: usize) -> String {
    let bytes = rows.len() * row_bytes;
    let mut data = format!("^FO{x},{y}^GFA,{bytes},{bytes},{row_bytes},");
    let mut above: Option<&&[u8]> = None;
    for row in rows {
        if above == Some(row) {
            data.push(':');
        } else {
            pack_row(row, &mut data);
        }
        above = Some(row);
    }
    data + "^FS"
}

/// Writes a row in compressed hexadecimal: a run is a count before its digit, and trailing zeros are a comma.
fn pack_row(row: &[u8], data: &mut String) {
    let digits: Vec<u8> = row.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let used = digits.iter().rposition(|digit| *digit != 0).map_or(0, |last| last + 1);
    for run in digits.get(..used).unwrap_or_default().chunk_by(|a, b| a == b) {
        push_repeat_count(run.len(), data);
        let digit = run.first().copied().map(u32::from).and_then(|d| char::from_digit(d, 16));
        data.extend(digit.map(|digit| digit.to_ascii_uppercase()));
    }
    if used < digits.len() {
        data.push(',');
    }
}

/// Writes the repeat count of a digit in ZPL's compression: `z` is 400, `g` to `y` are 20 to 380, `G` to `Y` are 1 to
/// 19. A digit that is not repeated has no count.
fn push_repeat_count(length: usize, data: &mut String) {
    if length == 1 {
        return;
    }
    data.extend(std::iter::repeat_n('z', length / 400));
    let letter = |first: u8, step: usize| char::from(first + step as u8 - 1);
    let (twenties, ones) = (length % 400 / 20, length % 20);
    data.extend((twenties > 0).then(|| letter(b'g', twenties)));
    data.extend((ones > 0).then(|| letter(b'G', ones)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_become_a_command() {
        let rows = [
            ("^XZ~JA_\\", "_5EXZ_7EJA_5F_5C"),
            ("a\r\n\u{1b}b", "a   b"),
            ("Ñú", "_C3_91_C3_BA"),
            ("1/2, #7 (x)", "1/2, #7 (x)"),
        ];
        for (text, data) in rows {
            assert_eq!(escape(text), data);
        }
    }

    #[test]
    fn rows_are_run_length_encoded() {
        let rows: [(&[u8], &str); 5] = [
            (&[0xFF, 0x00], "HF,"),
            (&[0x01, 0x23], "0123"),
            (&[0xAA; 15], "gPA"),
            (&[0x0F; 1], "0F"),
            (&[0; 4], ","),
        ];
        for (row, packed) in rows {
            let mut data = String::new();
            pack_row(row, &mut data);
            assert_eq!(data, packed, "{row:?}");
        }
    }
}
