//! Labels: formats, metadata, reprint (spec: Label; api: 4).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    IdempotencyKey, InvalidValue, MaybeKnown, TrackingNumber, lenient, macros::wire_enum, time,
};

/// A file format of labels.
///
/// ```
/// # use parcelo::LabelFormat;
/// assert_eq!(LabelFormat::parse("zpl"), Ok(LabelFormat::Zpl));
/// assert_eq!(LabelFormat::Pdf.content_type(), "application/pdf");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(
    feature = "openapi",
    derive(utoipa::ToSchema),
    schema(description = "A file format of labels.")
)]
#[serde(rename_all = "UPPERCASE")]
pub enum LabelFormat {
    /// A page of 4 × 6 inches; the default.
    #[default]
    Pdf,
    /// The language of label printers.
    Zpl,
    /// A picture of 812 × 1218 dots.
    Png,
}

impl LabelFormat {
    /// Every format.
    pub const ALL: [Self; 3] = [Self::Pdf, Self::Zpl, Self::Png];

    /// Reads a format's name, whatever its case.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|format| format.code().eq_ignore_ascii_case(text))
            .ok_or(InvalidValue::LabelFormat)
    }

    /// The name on the wire: `PDF`, `ZPL`, `PNG`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Pdf => "PDF",
            Self::Zpl => "ZPL",
            Self::Png => "PNG",
        }
    }

    /// The file name's ending: `pdf`, `zpl`, `png`.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Zpl => "zpl",
            Self::Png => "png",
        }
    }

    /// The media type of the file.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Pdf => "application/pdf",
            Self::Zpl => "text/plain",
            Self::Png => "image/png",
        }
    }
}

impl std::fmt::Display for LabelFormat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

impl AsRef<str> for LabelFormat {
    fn as_ref(&self) -> &str {
        self.code()
    }
}

impl std::str::FromStr for LabelFormat {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        Self::parse(text)
    }
}

wire_enum! {
    /// Whether a label can be used.
    LabelStatus {
        /// It can.
        Active = "ACTIVE",
        /// Its order was voided.
        Voided = "VOIDED",
    }
}

/// What is known about a label (docs/api.md, Label metadata).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LabelMetadata {
    /// The label's id, `lbl_…`.
    pub label_id: String,
    /// The parcel.
    pub tracking_number: TrackingNumber,
    /// Whether it can be used.
    pub status: LabelStatus,
    /// 1, and one more with each reprint.
    pub version: u32,
    /// How often it was reprinted.
    pub reprint_count: u32,
    /// The size of the paper.
    pub size: LabelSize,
    /// Dots per inch.
    pub dpi: u32,
    /// The barcode.
    pub barcode: Barcode,
    /// The QR code.
    pub qr_code: QrCode,
    /// Whether it is marked SANDBOX.
    pub sandbox: bool,
    /// The formats it can be had in.
    #[serde(deserialize_with = "lenient::list")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<LabelFormat>))]
    pub formats: Vec<MaybeKnown<LabelFormat>>,
    /// Where the file lies; absent once the order is voided.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub label_url: Option<String>,
    /// Where each format lies; absent once the order is voided.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub downloads: Option<Downloads>,
    /// When the label was made.
    #[serde(with = "time")]
    pub created_at: DateTime<Utc>,
    /// When it was last reprinted.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        serialize_with = "time::option::serialize"
    )]
    pub last_reprinted_at: Option<DateTime<Utc>>,
    /// When its order was voided.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        serialize_with = "time::option::serialize"
    )]
    pub voided_at: Option<DateTime<Utc>>,
}

/// The size of a label in both units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct LabelSize {
    /// Inches.
    pub width_in: u32,
    /// Inches.
    pub height_in: u32,
    /// Millimetres.
    pub width_mm: u32,
    /// Millimetres.
    pub height_mm: u32,
}

impl LabelSize {
    /// The size of every label (spec: Label).
    pub const PAPER: Self = Self { width_in: 4, height_in: 6, width_mm: 100, height_mm: 150 };
}

impl LabelMetadata {
    /// Dots per inch of every label (spec: Label).
    pub const DPI: u32 = 203;
}

/// The barcode of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Barcode {
    /// `CODE_128`.
    pub symbology: String,
    /// What it says: the tracking number.
    pub value: String,
}

/// The QR code of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QrCode {
    /// What it says: the public tracking address.
    pub content: String,
}

/// The address of each format of a label.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "UPPERCASE")]
pub struct Downloads {
    /// The PDF file.
    pub pdf: String,
    /// The ZPL file.
    pub zpl: String,
    /// The PNG file.
    pub png: String,
}

/// A request to make a label anew (docs/api.md, Reprint a label).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReprintRequest {
    /// The caller's name for this write.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<IdempotencyKey>))]
    pub idempotency_key: IdempotencyKey,
    /// Why; at most 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ReprintRequest {
    /// A request to make a label anew.
    pub fn new(idempotency_key: IdempotencyKey) -> Self {
        Self { idempotency_key, reason: None }
    }

    /// Says why.
    #[must_use]
    pub fn reason(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }
}
