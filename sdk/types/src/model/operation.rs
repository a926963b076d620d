//! The operations of the API, with method, path, authentication and idempotency (spec: Endpoint list, Idempotency).

use std::fmt::Write;

/// An HTTP method that the API uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// Reads data.
    Get,
    /// Writes data, or reads data by a request that needs a body.
    Post,
}

impl Method {
    /// Returns the name of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
        }
    }
}

/// The authentication that an operation requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Auth {
    /// An API key, in `X-API-Key`.
    ApiKey,
    /// A carrier key, in `X-Carrier-Key`.
    CarrierKey,
    /// None: the operation is public.
    Public,
}

/// The use of an idempotency key by an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Idempotency {
    /// The key is required.
    Required,
    /// The key is optional.
    Optional,
    /// The operation only reads, so it needs no key and can be repeated.
    Reads,
    /// The operation takes no key, and each call has an effect.
    None,
}

macro_rules! operations {
    ($($(#[$meta:meta])* $variant:ident: $method:ident $path:literal, $auth:ident, $idempotency:ident;)+) => {
        /// An operation of the API.
        ///
        /// ```
        /// # use parcelo::Operation;
        /// assert_eq!(Operation::CreateOrder.name(), "CreateOrder");
        /// assert!(!Operation::ResetSandbox.is_repeatable());
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Operation {
            $($(#[$meta])* $variant,)+
        }

        impl Operation {
            /// Every operation, in the order of the documentation.
            #[doc(hidden)]
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the operation's name, as in `CreateOrder`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => stringify!($variant),)+ }
            }

            /// Returns the HTTP method.
            #[doc(hidden)]
            pub const fn method(self) -> Method {
                match self { $(Self::$variant => Method::$method,)+ }
            }

            /// Returns the path, its parameters in braces: `/api/v1/tracking/{trackingNumber}`.
            #[doc(hidden)]
            pub const fn path(self) -> &'static str {
                match self { $(Self::$variant => $path,)+ }
            }

            /// Returns the authentication that the operation requires.
            #[doc(hidden)]
            pub const fn auth(self) -> Auth {
                match self { $(Self::$variant => Auth::$auth,)+ }
            }

            /// Returns how the operation uses an idempotency key.
            #[doc(hidden)]
            pub const fn idempotency(self) -> Idempotency {
                match self { $(Self::$variant => Idempotency::$idempotency,)+ }
            }
        }
    };
}

#[rustfmt::skip]
operations! {
    /// Create an order with its label.
    CreateOrder: Post "/api/v1/orders/create", ApiKey, Required;
    /// Void up to 100 orders.
    VoidOrders: Post "/api/v1/orders/void", ApiKey, Required;
    /// Read an order as it was accepted.
    GetOrder: Get "/api/v1/parcels/{trackingNumber}/order", ApiKey, Reads;
    /// Submit a manifest under an air waybill.
    SubmitManifest: Post "/api/v1/manifests/submit", ApiKey, Optional;
    /// Read a manifest.
    GetManifest: Get "/api/v1/manifests/{manifestId}", ApiKey, Reads;
    /// Track one parcel.
    GetTracking: Get "/api/v1/tracking/{trackingNumber}", ApiKey, Reads;
    /// Track up to 100 parcels.
    BatchTracking: Post "/api/v1/tracking/batch", ApiKey, Reads;
    /// Read a label's metadata.
    GetLabel: Get "/api/v1/labels/{trackingNumber}", ApiKey, Reads;
    /// Download a label file.
    DownloadLabel: Get "/api/v1/labels/{trackingNumber}/download", ApiKey, Reads;
    /// Download up to 100 labels as one file.
    BatchLabels: Post "/api/v1/labels/batch", ApiKey, Reads;
    /// Download a commercial invoice.
    DownloadInvoice: Get "/api/v1/parcels/{trackingNumber}/invoice", ApiKey, Reads;
    /// Reprint a label.
    ReprintLabel: Post "/api/v1/labels/{trackingNumber}/reprint", ApiKey, Required;
    /// Track one parcel without an API key.
    #[doc(hidden)]
    PublicTracking: Get "/track/{trackingNumber}", Public, Reads;
    /// Check the API key.
    Health: Get "/api/v1/health", ApiKey, Reads;
    /// List parcels.
    ListParcels: Get "/api/v1/parcels", ApiKey, Reads;
    /// Delete all data of the caller's sandbox.
    ResetSandbox: Post "/api/v1/sandbox/reset", ApiKey, None;
    /// Report a carrier's scans.
    #[doc(hidden)]
    PushCarrierEvents: Post "/carrier/v1/events", CarrierKey, None;
    /// Create an order through the legacy API.
    #[doc(hidden)]
    LegacyCreateOrder: Post "/api/orders", ApiKey, Optional;
    /// Void an order through the legacy API.
    #[doc(hidden)]
    LegacyCancelOrder: Post "/api/orders/{tracking_number}/cancel", ApiKey, Optional;
    /// Track up to 20 parcels through the legacy API.
    #[doc(hidden)]
    LegacyTracking: Get "/api/tracking", ApiKey, Reads;
    /// Download a label file by its name.
    #[doc(hidden)]
    LegacyLabel: Get "/api/labels/{file}", ApiKey, Reads;
}

impl Operation {
    /// Returns the path with its parameter, if it has one, replaced by the percent-encoded value.
    ///
    /// ```
    /// # use parcelo::Operation;
    /// let path = Operation::GetTracking.path_of("EC7K2M9QX4T8WD0");
    /// assert_eq!(path, "/api/v1/tracking/EC7K2M9QX4T8WD0");
    /// assert_eq!(Operation::GetTracking.path_of("../x"), "/api/v1/tracking/..%2Fx");
    /// ```
    #[doc(hidden)]
    pub fn path_of(self, parameter: &str) -> String {
        let path = self.path();
        match (path.find('{'), path.find('}')) {
            (Some(open), Some(close)) => {
                let (head, tail) = (path.get(..open), path.get(close + 1..));
                [head.unwrap_or_default(), &percent_encode(parameter), tail.unwrap_or_default()]
                    .concat()
            }
            _ => path.to_owned(),
        }
    }

    /// Returns `true` for the operations of the legacy API, which new programs should not use.
    #[doc(hidden)]
    pub const fn is_legacy(self) -> bool {
        matches!(
            self,
            Self::LegacyCreateOrder
                | Self::LegacyCancelOrder
                | Self::LegacyTracking
                | Self::LegacyLabel
        )
    }

    /// Returns `true` if sending a request twice has the same effect as sending it once: the operation only reads, or
    /// the service recognises the repetition by its key or its content.
    pub const fn is_repeatable(self) -> bool {
        match self.idempotency() {
            Idempotency::Required | Idempotency::Reads => true,
            // Without a key the same manifest returns the one that exists, and a voided order stays void. A
            // legacy creation without a key and a `reference` makes a parcel each time (docs/api.md, Legacy API).
            Idempotency::Optional => !matches!(self, Self::LegacyCreateOrder),
            Idempotency::None => false,
        }
    }
}

fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}"); // a `String` takes everything
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_operations_share_method_and_path() {
        for (i, one) in Operation::ALL.iter().enumerate() {
            for other in &Operation::ALL[i + 1..] {
                assert_ne!((one.method(), one.path()), (other.method(), other.path()));
            }
        }
    }

    #[test]
    fn a_path_parameter_is_escaped() {
        for hostile in ["a/b", "a?b", "a#b", "a b", "ñ", "%2e"] {
            let path = Operation::GetTracking.path_of(hostile);
            assert!(
                path["/api/v1/tracking/".len()..]
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'%'),
                "{path}"
            );
        }
    }
}
