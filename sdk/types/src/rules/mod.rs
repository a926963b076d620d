//! The validator: from the bytes of a request to a valid order, or to every fault at once.
//!
//! The server, the client and the command line share it, so that all three report the same paths, codes and texts. It
//! is pure: no clock, no randomness, no I/O. A violated rule of the spec and a malformed value are faults and reject
//! the request; a value that is only unlikely gets a warning, because a heuristic would reject real people.
//!
//! ```
//! use parcelo::rules::{Destinations, OrderContext, check_order};
//! let body: serde_json::Value = serde_json::from_str(r#"{"idempotencyKey": "order-0001", "reciever": {}}"#)?;
//! let context = OrderContext::new(&Destinations::All);
//! let rejected = check_order(&body, &context).unwrap_err();
//! assert_eq!(rejected.faults[0].field, "sender");
//! let mut warnings = rejected.warnings.iter();
//! assert!(warnings.any(|warning| warning.message.ends_with("did you mean `receiver`?")));
//! # Ok::<(), serde_json::Error>(())
//! ```

pub(crate) mod address_formats;
pub(crate) mod body;
mod builder;
pub(crate) mod contact;
mod countries;
mod destinations;
pub(crate) mod field_types;
pub(crate) mod fields;
mod goods;
pub(crate) mod idempotency_key;
pub(crate) mod list_query;
mod municipalities;
mod normalize;
#[cfg(feature = "utoipa")]
pub(crate) mod openapi_limits;
pub(crate) mod order;
mod path;
mod phone;
mod postal;
pub(crate) mod reader;
pub(crate) mod receiver;
mod regions;
pub(crate) mod requests;
mod sender;
pub(crate) mod spreadsheet;
pub(crate) mod text;
pub(crate) mod texts;
mod validation;

#[cfg(test)]
mod tests;

pub use builder::OrderBuilder;
pub use destinations::Destinations;
pub use order::{OrderContext, check_order};
pub use validation::{Accepted, Rejected};
