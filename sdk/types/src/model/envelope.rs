//! The envelope around most responses (spec: Response envelope).

use serde::{Deserialize, Serialize};

use super::RequestId;

/// The envelope of a successful response: `{"success": true, "data": …, "meta": {"requestId": …}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Envelope<T, M = Meta> {
    /// Always true.
    pub success: bool,
    /// The content of the response.
    pub data: T,
    /// The metadata of the response.
    pub meta: M,
}

#[doc(hidden)]
impl<T, M> Envelope<T, M> {
    /// Returns the envelope of a success.
    pub fn new(data: T, meta: M) -> Self {
        Self { success: true, data, meta }
    }
}

/// The metadata of a response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Meta {
    /// The id to quote to support.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub request_id: RequestId,
}

#[doc(hidden)]
impl Meta {
    /// Returns the metadata of a response with this request id.
    pub fn new(request_id: RequestId) -> Self {
        Self { request_id }
    }
}
