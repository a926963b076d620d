//! The shipping documents of a parcel: its label, 4 × 6 inches at 203 dots per inch, as PDF, ZPL or PNG (spec: Label),
//! and its commercial invoice as PDF.
//!
//! There is one layout and three writers: `layout` turns a parcel into elements in whole dots, and the
//! writers copy the elements. A label is a pure function of its [`LabelData`], without a clock or random
//! ids, so its bytes are always the same. Nothing is stored: a label is drawn when it is requested.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "dots and font units: all below 2^20, where every type here is exact"
)]

mod address;
mod address_lines;
mod canvas;
mod code128;
mod customs;
mod element;
mod font;
mod ink_bounds;
mod invoice;
mod invoice_items;
mod invoice_text;
mod label_text;
mod layout;
mod page;
mod pdf;
mod png;
mod qr;
mod route;
mod text;
mod text_fit;
mod town;
mod zpl;

#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;

use chrono::NaiveDate;
use parcelo_domain::Layout;
use parcelo_types::{LabelFormat, OrderRequest, TrackingNumber};

/// `true` if labels print Chinese: the feature `cjk`.
pub const PRINTS_CHINESE: bool = cfg!(feature = "cjk");

/// The data from which a label is drawn.
#[derive(Debug, Clone, Copy)]
pub struct LabelData<'a> {
    /// The order behind the parcel.
    pub order: &'a OrderRequest,
    /// The layout with which the parcel was created.
    pub layout: Layout,
    /// The number in the bar code.
    pub tracking_number: &'a TrackingNumber,
    /// The public page that the QR symbol opens.
    pub tracking_url: &'a str,
    /// `true` if the label is marked SANDBOX.
    pub sandbox: bool,
    /// The day the parcel was created.
    pub created_on: NaiveDate,
    /// The version of the label: 1 at first, and one more after each reprint.
    pub version: u32,
    /// The air waybill of the parcel, once it is known.
    pub awb: Option<&'a str>,
}

/// A reason why a label cannot be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// The number has characters that Code 128 lacks, or too many.
    #[error("the tracking number does not fit a Code 128 on the label")]
    Barcode,
    /// The URL is longer than the QR symbol can hold.
    #[error("the tracking URL does not fit the QR symbol on the label")]
    Qr,
    /// The PNG could not be written.
    #[error("the label could not be written as PNG")]
    Png,
    /// The PDF's fonts could not be reduced to the characters on the label.
    #[error("the fonts of the label could not be embedded")]
    Font,
}

/// Draws a label.
pub fn draw(data: &LabelData<'_>, format: LabelFormat) -> Result<Vec<u8>, LabelError> {
    let elements = layout::lay_out(data)?;
    match format {
        LabelFormat::Pdf => pdf::write(&elements),
        LabelFormat::Zpl => Ok(zpl::write(&elements)),
        LabelFormat::Png => png::write(&elements),
    }
}

/// A label whose elements are placed, so that it can be written into one file with others.
#[derive(Debug)]
pub struct LabelLayout(Vec<element::Element>);

impl AsRef<[element::Element]> for LabelLayout {
    fn as_ref(&self) -> &[element::Element] {
        &self.0
    }
}

/// Places all elements of a label.
pub fn lay_out(data: &LabelData<'_>) -> Result<LabelLayout, LabelError> {
    layout::lay_out(data).map(LabelLayout)
}

/// Draws labels into one file, in their order.
pub fn draw_all(labels: &[LabelLayout], format: LabelFormat) -> Result<Vec<u8>, LabelError> {
    match format {
        LabelFormat::Pdf => pdf::write_labels(labels),
        LabelFormat::Zpl => Ok(labels.iter().flat_map(|label| zpl::write(&label.0)).collect()),
        // A picture holds one label. The rules refuse requests for several.
        LabelFormat::Png => Err(LabelError::Png),
    }
}

/// Returns the fields of a new order whose text the label truncates.
pub fn truncated_fields(order: &OrderRequest) -> Vec<String> {
    layout::truncated_fields(order, Layout::NEWEST)
}

/// Draws the commercial invoice as PDF. Data that only a label needs is ignored.
pub fn draw_invoice(data: &LabelData<'_>) -> Result<Vec<u8>, LabelError> {
    pdf::write_pages(&invoice::draw_pages(data), invoice::A4)
}
