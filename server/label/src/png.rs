//! The label as PNG: one bit for each dot, pure black and white.

use png::{BitDepth, ColorType, Compression, PixelDimensions, Unit};

use super::{
    LabelError,
    canvas::Canvas,
    element::{Element, HEIGHT, WIDTH},
    qr::QrMatrix,
};

/// 203 dots per inch in dots per metre.
const DOTS_PER_METRE: u32 = 7992;

/// Maximum size after fast compression. Larger files are compressed again, which takes six times as long.
const MAX_FAST_BYTES: usize = 24 * 1024;

/// Writes a PNG file.
pub(super) fn write(elements: &[Element]) -> Result<Vec<u8>, LabelError> {
    let pixels = render(elements)?;
    let file = encode(&pixels, Compression::Fast).map_err(|_| LabelError::Png)?;
    if file.len() <= MAX_FAST_BYTES {
        return Ok(file);
    }
    encode(&pixels, Compression::Balanced).map_err(|_| LabelError::Png)
}

/// Draws the rows of the label, with white as 1.
fn render(elements: &[Element]) -> Result<Vec<u8>, LabelError> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    for element in elements {
        match element {
            Element::Rect(rect) => canvas.fill_rect(*rect),
            Element::Outline(outline) => {
                outline.rects().into_iter().for_each(|rule| canvas.fill_rect(rule));
            }
            Element::Text(text) => canvas.draw_text(text),
            Element::Code128(code) => code.rects().for_each(|bar| canvas.fill_rect(bar)),
            Element::Qr(qr) => QrMatrix::new(qr)?.row_runs().for_each(|run| canvas.fill_rect(run)),
        }
    }
    let mut bytes = canvas.into_bytes();
    for byte in &mut bytes {
        *byte = !*byte;
    }
    Ok(bytes)
}

fn encode(pixels: &[u8], compression: Compression) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::with_capacity(32 * 1024);
    let mut encoder = png::Encoder::new(&mut file, WIDTH, HEIGHT);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    // This also chooses each row's filter: without filters, a file is four times as large.
    encoder.set_compression(compression);
    let (xppu, yppu) = (DOTS_PER_METRE, DOTS_PER_METRE);
    encoder.set_pixel_dims(Some(PixelDimensions { xppu, yppu, unit: Unit::Meter }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}
