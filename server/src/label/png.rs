//! The label as a picture: one bit for each dot, pure black and white.

use png::{BitDepth, ColorType, Compression, Filter, PixelDimensions, Unit};

use super::{
    LabelError,
    canvas::Canvas,
    mark::{HEIGHT, Mark, WIDTH},
};

/// 203 dots per inch in dots per metre.
const DOTS_PER_METRE: u32 = 7992;

/// Writes a PNG file.
pub(super) fn write(marks: &[Mark]) -> Result<Vec<u8>, LabelError> {
    encode(&pixels(marks)).map_err(|_| LabelError::Png)
}

/// Rows of the label, white as 1.
fn pixels(marks: &[Mark]) -> Vec<u8> {
    let mut canvas = Canvas::new(WIDTH, HEIGHT);
    for mark in marks {
        match mark {
            Mark::Rect(rect) => canvas.rect(*rect),
            Mark::Outline(outline) => {
                outline.rects().into_iter().for_each(|rule| canvas.rect(rule))
            }
            Mark::Text(text) => canvas.text(text),
            Mark::Code128(code) => code.rects().for_each(|bar| canvas.rect(bar)),
            Mark::Qr(qr) => qr.rows().for_each(|run| canvas.rect(run)),
        }
    }
    canvas.rows().flatten().map(|byte| !byte).collect()
}

fn encode(pixels: &[u8]) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::with_capacity(32 * 1024);
    let mut encoder = png::Encoder::new(&mut file, WIDTH, HEIGHT);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    // Rows repeat downward: with this filter the file has a third of the bytes.
    encoder.set_compression(Compression::Fast);
    encoder.set_filter(Filter::Up);
    let (xppu, yppu) = (DOTS_PER_METRE, DOTS_PER_METRE);
    encoder.set_pixel_dims(Some(PixelDimensions { xppu, yppu, unit: Unit::Meter }));
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(file)
}
