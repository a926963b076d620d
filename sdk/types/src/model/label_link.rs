//! The link to a label file, which opens without an API key.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The link to a label file. It opens without the API key, so treat it as a secret: the label shows the
/// receiver's name, address and telephone number.
///
/// `Debug` masks the query, which contains the link's signature.
///
/// ```
/// use parcelo::model::LabelLink;
///
/// let link = LabelLink::from("https://labels.example/EC7K2M9QX4T8WD0.pdf?sig=9f86d081");
/// assert_eq!(format!("{link:?}"), r#""https://labels.example/EC7K2M9QX4T8WD0.pdf?***""#);
/// assert!(link.as_str().ends_with("?sig=9f86d081"));
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LabelLink(String);

impl LabelLink {
    /// Returns the whole link, with its signature.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for LabelLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.split_once('?') {
            Some((address, _)) => write!(f, "{:?}", format!("{address}?***")),
            None => write!(f, "{:?}", self.0),
        }
    }
}

impl fmt::Display for LabelLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for LabelLink {
    fn from(link: String) -> Self {
        Self(link)
    }
}

impl From<&str> for LabelLink {
    fn from(link: &str) -> Self {
        Self(link.to_owned())
    }
}
