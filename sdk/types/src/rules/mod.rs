//! The validator: from the bytes of a request to a valid order, or to every fault at once.
//!
//! The server, the client and the command line share it, so that all three report the same paths, codes and texts. It
//! is pure: no clock, no randomness, no I/O. A violated rule of the spec and a malformed value are faults and reject
//! the request; a value that is only unlikely gets a warning, because a heuristic would reject real people.
//!
//! ```
//! use parcelo::rules::{Destinations, OrderContext, check_order, parse_body};
//! let body = parse_body(br#"{"idempotencyKey": "order-0001", "reciever": {}}"#)?;
//! let context = OrderContext::new(&Destinations::All);
//! let rejected = check_order(&body, &context).unwrap_err();
//! assert_eq!(rejected.faults[0].field, "sender");
//! let mut warnings = rejected.warnings.iter();
//! assert!(warnings.any(|warning| warning.message.ends_with("did you mean `receiver`?")));
//! # Ok::<(), parcelo::model::FieldFault>(())
//! ```

mod address_formats;
mod body;
mod builder;
pub(crate) mod contact;
mod countries;
mod destinations;
pub(crate) mod field_types;
pub(crate) mod fields;
mod goods;
mod idempotency_key;
pub(crate) mod list_query;
mod municipalities;
mod normalize;
#[cfg(feature = "utoipa")]
pub(crate) mod openapi_limits;
mod order;
mod path;
mod phone;
mod postal;
pub(crate) mod reader;
pub(crate) mod receiver;
mod regions;
mod requests;
mod sender;
#[doc(hidden)]
pub mod spreadsheet;
pub(crate) mod text;
pub(crate) mod texts;
mod validation;

#[cfg(test)]
mod tests;

#[doc(hidden)]
pub use address_formats::town_line;
pub use body::parse_body;
#[doc(hidden)]
pub use body::parse_json;
pub use builder::OrderBuilder;
#[doc(hidden)]
pub use contact::meant_country;
pub use destinations::Destinations;
pub use idempotency_key::{KeyReading, read_key};
pub use list_query::{ListQuery, check_list};
pub use order::{OrderContext, check_order};
pub use receiver::destination;
pub use requests::{check_batch, check_label_batch, check_manifest, check_reprint, check_void};
pub use text::{PRINTABLE, is_invisible, is_printable};
pub use validation::{Accepted, Rejected};
