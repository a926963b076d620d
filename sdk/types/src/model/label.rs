//! Labels: formats, metadata, reprint (spec: Label).

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    IdempotencyKey, InvalidValue, LabelId, LabelLink, MaybeKnown, TrackingNumber, lenient,
    macros::setters, macros::wire_enum, time,
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
    feature = "utoipa",
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

    /// Parses a format's name, whatever its case.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        Self::ALL
            .into_iter()
            .find(|format| format.code().eq_ignore_ascii_case(text))
            .ok_or(InvalidValue::LABEL_FORMAT)
    }

    /// Returns the name on the wire: `PDF`, `ZPL`, `PNG`.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Pdf => "PDF",
            Self::Zpl => "ZPL",
            Self::Png => "PNG",
        }
    }

    /// Returns the file name extension: `pdf`, `zpl`, `png`.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Zpl => "zpl",
            Self::Png => "png",
        }
    }

    /// Returns the media type of the file.
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

impl super::maybe_known::Spelled for LabelFormat {
    fn spelling(&self) -> &str {
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
    /// The state of a label.
    LabelStatus [doc(hidden)] {
        /// The label can be used.
        Active = "ACTIVE",
        /// The order of the label was voided.
        Voided = "VOIDED",
    }
}

/// The metadata of a label (docs/api.md, Label metadata).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LabelMetadata {
    /// The label's id, `lbl_…`.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub label_id: LabelId,
    /// The parcel.
    pub tracking_number: TrackingNumber,
    /// The label's status: only a valid label can be used.
    pub status: LabelStatus,
    /// 1 for the first version, and one more after each reprint.
    pub version: u32,
    /// Number of reprints.
    pub reprint_count: u32,
    /// The size of the label.
    pub size: LabelSize,
    /// The resolution in dots per inch.
    pub dpi: u32,
    /// The barcode.
    pub barcode: Barcode,
    /// The QR code.
    pub qr_code: QrCode,
    /// True if the label is marked SANDBOX.
    pub sandbox: bool,
    /// The available formats.
    #[serde(deserialize_with = "lenient::list")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Vec<LabelFormat>))]
    pub formats: Vec<MaybeKnown<LabelFormat>>,
    /// The URL of the file; absent once the order is voided.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<String>))]
    pub label_url: Option<LabelLink>,
    /// The URL of each format; absent once the order is voided.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    pub downloads: Option<Downloads>,
    /// Time at which the label was generated.
    #[serde(with = "time")]
    pub created_at: DateTime<Utc>,
    /// Time of the last reprint.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        serialize_with = "time::serialize_option"
    )]
    pub last_reprinted_at: Option<DateTime<Utc>>,
    /// Time at which its order was voided.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        serialize_with = "time::serialize_option"
    )]
    pub voided_at: Option<DateTime<Utc>>,
}

/// The size of a label in both units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LabelSize {
    /// The width in inches.
    pub width_in: u32,
    /// The height in inches.
    pub height_in: u32,
    /// The width in millimetres.
    pub width_mm: u32,
    /// The height in millimetres.
    pub height_mm: u32,
}

#[doc(hidden)]
impl LabelSize {
    /// The size of every label (spec: Label).
    pub const PAPER: Self = Self { width_in: 4, height_in: 6, width_mm: 100, height_mm: 150 };

    /// Returns a size in inches, width and height, and in millimetres.
    pub const fn new((width_in, height_in): (u32, u32), (width_mm, height_mm): (u32, u32)) -> Self {
        Self { width_in, height_in, width_mm, height_mm }
    }
}

#[doc(hidden)]
impl LabelMetadata {
    /// The resolution of every label, in dots per inch (spec: Label).
    pub const DPI: u32 = 203;

    /// Returns the first version of a parcel's label, usable and in every format, made at the beginning of 1970.
    pub fn new(label_id: LabelId, tracking_number: TrackingNumber) -> Self {
        Self {
            label_id,
            status: LabelStatus::Active,
            version: 1,
            reprint_count: 0,
            size: LabelSize::PAPER,
            dpi: Self::DPI,
            barcode: Barcode::new("CODE_128", tracking_number.as_str()),
            qr_code: QrCode::new(""),
            sandbox: tracking_number.is_sandbox(),
            tracking_number,
            formats: LabelFormat::ALL.map(Into::into).into(),
            label_url: None,
            downloads: None,
            created_at: DateTime::UNIX_EPOCH,
            last_reprinted_at: None,
            voided_at: None,
        }
    }

    setters! {
        /// Sets whether the label can be used.
        with_status(status: LabelStatus);
        /// Sets the version, from 1.
        with_version(version: u32);
        /// Sets the number of reprints.
        with_reprint_count(reprint_count: u32);
        /// Sets the size.
        with_size(size: LabelSize);
        /// Sets the dots per inch.
        with_dpi(dpi: u32);
        /// Sets the barcode.
        with_barcode(barcode: Barcode);
        /// Sets the QR code.
        with_qr_code(qr_code: QrCode);
        /// Sets whether the label is marked SANDBOX.
        with_sandbox(sandbox: bool);
        /// Sets the available formats.
        with_formats(formats: Vec<MaybeKnown<LabelFormat>>);
        /// Sets the URL of the file.
        with_label_url(label_url: link);
        /// Sets the URL of each format.
        with_downloads(downloads: some Downloads);
        /// Sets the time of generation.
        with_created_at(created_at: DateTime<Utc>);
        /// Sets the time of the last reprint.
        with_last_reprinted_at(last_reprinted_at: some DateTime<Utc>);
        /// Sets the time at which the order was voided.
        with_voided_at(voided_at: some DateTime<Utc>);
    }
}

/// The barcode of a label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Barcode {
    /// The symbology: `CODE_128`.
    pub symbology: String,
    /// The content of the barcode: the tracking number.
    pub value: String,
}

#[doc(hidden)]
impl Barcode {
    /// Returns a barcode of this kind with this content.
    pub fn new(symbology: impl Into<String>, value: impl Into<String>) -> Self {
        Self { symbology: symbology.into(), value: value.into() }
    }
}

/// The QR code of a label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct QrCode {
    /// The content of the QR code: the public tracking URL.
    pub content: String,
}

#[doc(hidden)]
impl QrCode {
    /// Returns a QR code with this content.
    pub fn new(content: impl Into<String>) -> Self {
        Self { content: content.into() }
    }
}

/// The URL of each format of a label.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "UPPERCASE")]
#[non_exhaustive]
pub struct Downloads {
    /// The PDF file.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub pdf: LabelLink,
    /// The ZPL file.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub zpl: LabelLink,
    /// The PNG file.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub png: LabelLink,
}

#[doc(hidden)]
impl Downloads {
    /// Returns the URLs of the PDF, the ZPL and the PNG file.
    pub fn new(
        pdf: impl Into<LabelLink>,
        zpl: impl Into<LabelLink>,
        png: impl Into<LabelLink>,
    ) -> Self {
        Self { pdf: pdf.into(), zpl: zpl.into(), png: png.into() }
    }
}

/// A request to reprint a label (docs/api.md, Reprint a label).
///
/// Read from JSON alone, its key has no history; [`Saved`](super::Saved) reads it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "utoipa",
    derive(utoipa::ToSchema),
    schema(description = "A request to reprint a label (docs/api.md, Reprint a label).")
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReprintRequest {
    /// The idempotency key of this write.
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<IdempotencyKey>))]
    pub idempotency_key: IdempotencyKey,
    /// The reason; at most 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl ReprintRequest {
    /// Returns a request to reprint a label.
    pub fn new(idempotency_key: IdempotencyKey) -> Self {
        Self { idempotency_key, reason: None }
    }

    setters! {
        /// Sets the reason, at most 255 characters.
        with_reason(reason: text);
    }
}

/// A request for the labels of up to 100 parcels as one file (docs/api.md, Download many labels).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LabelBatchRequest {
    /// The numbers, each once, in the order of the file.
    pub tracking_numbers: Vec<String>,
    /// PDF, one label on a page, or ZPL, one label after another; PDF when absent.
    #[serde(default)]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<LabelFormat>))]
    pub format: LabelFormat,
}

#[doc(hidden)]
impl LabelBatchRequest {
    /// Returns a request for these labels as a PDF.
    pub fn new(tracking_numbers: Vec<String>) -> Self {
        Self { tracking_numbers, format: LabelFormat::Pdf }
    }

    setters! {
        /// Sets the format.
        with_format(format: LabelFormat);
    }
}
