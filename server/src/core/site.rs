//! Where the service is reached from outside: what stands in answers and on labels.

use parcelo::{Environment, LabelFormat, TrackingNumber};
use ulid::Ulid;

use super::secrets::Secrets;

/// The public addresses of one environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The environment.
    pub environment: Environment,
    /// The API's address, without a slash at its end.
    pub base_url: String,
    /// The label files' address, without a slash at its end; it may hold a path.
    pub labels_host: String,
}

impl Site {
    /// The public tracking page of a parcel, which its QR code holds.
    pub fn tracking_url(&self, number: &TrackingNumber) -> String {
        format!("{}/track/{number}", self.base_url)
    }

    /// The capability link to a parcel's label: whoever has it can read the file.
    pub fn label_url(&self, secrets: &Secrets, number: &TrackingNumber, id: Ulid) -> String {
        self.label_file_url(secrets, number, id, LabelFormat::Pdf)
    }

    /// The same, to the file in a format.
    pub fn label_file_url(
        &self,
        secrets: &Secrets,
        number: &TrackingNumber,
        id: Ulid,
        format: LabelFormat,
    ) -> String {
        let signature = secrets.link_signature(self.environment, number, id);
        format!("{}/{number}.{}?sig={signature}", self.labels_host, format.extension())
    }
}
