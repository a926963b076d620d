//! The QR symbol: its size for the layout, and its modules for PNG and PDF. ZPL printers encode it themselves.

use fast_qr::{ECL, Mode, QRBuilder};

use super::{
    LabelError,
    element::{Qr, Rect},
};

/// Number of bytes that versions 1 to 16 hold at error correction level Q (ISO/IEC 18004, table 7), which the ZPL also
/// requests. No larger version fits the label.
const CAPACITY_BYTES: [usize; 16] =
    [11, 20, 32, 46, 60, 74, 86, 108, 130, 151, 177, 203, 241, 258, 292, 322];

/// Returns the number of modules on each side of the symbol for `data`.
pub(super) fn side_modules(data: &str) -> Option<u32> {
    let version = CAPACITY_BYTES.iter().position(|bytes| data.len() <= *bytes)? + 1;
    Some(17 + 4 * version as u32)
}

/// A symbol's dark modules and its position.
#[derive(Debug)]
pub(super) struct QrMatrix<'a> {
    qr: &'a Qr,
    /// The modules row by row.
    dark: Vec<bool>,
}

impl<'a> QrMatrix<'a> {
    pub(super) fn new(qr: &'a Qr) -> Result<Self, LabelError> {
        let mut symbol = QRBuilder::new(qr.data.as_str());
        let symbol = symbol.ecl(ECL::Q).mode(Mode::Byte).build().map_err(|_| LabelError::Qr)?;
        if symbol.size != qr.modules as usize {
            return Err(LabelError::Qr);
        }
        let dark = symbol.data.iter().take(symbol.size * symbol.size).map(|module| module.value());
        Ok(Self { qr, dark: dark.collect() })
    }

    fn is_dark(&self, column: u32, row: u32) -> bool {
        self.dark.get((row * self.qr.modules + column) as usize).copied().unwrap_or(false)
    }

    /// Returns the runs of dark modules along each row.
    pub(super) fn row_runs(&self) -> impl Iterator<Item = Rect> {
        let size = self.qr.modules;
        let run = move |row| runs(size, move |i| self.is_dark(i, row));
        (0..size).flat_map(move |row| {
            run(row).map(move |(start, length)| self.module_rect(start, row, (length, 1)))
        })
    }

    /// Returns the runs of two or more dark modules down each column.
    pub(super) fn column_runs(&self) -> impl Iterator<Item = Rect> {
        let size = self.qr.modules;
        let run = move |column| runs(size, move |i| self.is_dark(column, i));
        (0..size).flat_map(move |column| {
            run(column)
                .filter(|(_, length)| *length > 1)
                .map(move |(start, length)| self.module_rect(column, start, (1, length)))
        })
    }

    fn module_rect(&self, column: u32, row: u32, (w, h): (u32, u32)) -> Rect {
        let Qr { x, y, module, .. } = self.qr;
        Rect { x: x + column * module, y: y + row * module, w: w * module, h: h * module }
    }
}

/// Returns start and length of each run of dark modules on a line of `size`.
fn runs(size: u32, is_dark: impl Fn(u32) -> bool) -> impl Iterator<Item = (u32, u32)> {
    let mut next = 0;
    std::iter::from_fn(move || {
        let start = (next..size).find(|i| is_dark(*i))?;
        next = (start..size).find(|i| !is_dark(*i)).unwrap_or(size);
        Some((start, next - start))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_the_encoder() {
        for length in 1..=322 {
            let data = "a".repeat(length);
            let symbol = QRBuilder::new(data.as_str()).ecl(ECL::Q).build().unwrap();
            assert_eq!(side_modules(&data), u32::try_from(symbol.size).ok(), "{length}");
        }
        assert_eq!(side_modules(&"a".repeat(323)), None);
    }
}
