//! stub
#![allow(
    missing_docs,
    missing_debug_implementations,
    clippy::all,
    clippy::pedantic,
    reason = "stub"
)]
pub struct LabelData<'a> {
    pub order: &'a parcelo::OrderRequest,
    pub tracking_number: &'a parcelo::TrackingNumber,
    pub tracking_url: &'a str,
    pub sandbox: bool,
    pub created_on: chrono::NaiveDate,
    pub version: u32,
    pub awb: Option<&'a str>,
}
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct LabelError;
pub fn draw(_d: &LabelData<'_>, f: parcelo::LabelFormat) -> Result<Vec<u8>, LabelError> {
    Ok(match f {
        parcelo::LabelFormat::Pdf => b"%PDF-".to_vec(),
        parcelo::LabelFormat::Zpl => b"^XA^XZ".to_vec(),
        parcelo::LabelFormat::Png => b"\x89PNG".to_vec(),
    })
}
