//! The rules: from the bytes of a request to an order that keeps them, or every fault at once.
//!
//! One validator for the server, the client and the command line, so that all three give the same
//! paths, codes and texts. It is pure: no clock, no randomness, no I/O. What the spec states and what
//! is wrong in a value's structure refuses a request; what only looks unlikely is a warning.
//!
//! ```
//! use parcelo::rules::{Destinations, OrderContext, check_order, parse_body};
//! let body = parse_body(br#"{"idempotencyKey": "order-0001", "reciever": {}}"#)?;
//! let context = OrderContext::new(&Destinations::All);
//! let rejected = check_order(&body, &context).unwrap_err();
//! assert_eq!(rejected.faults[0].field, "sender");
//! let mut warnings = rejected.warnings.iter();
//! assert!(warnings.any(|odd| odd.message.ends_with("did you mean `receiver`?")));
//! # Ok::<(), parcelo::model::FieldFault>(())
//! ```

#[cfg(feature = "server")]
pub(crate) mod admin;
mod body;
mod builder;
#[cfg(feature = "server")]
pub(crate) mod carrier;
mod colombia;
mod destinations;
mod ecuador;
mod fields;
mod folding;
mod goods;
mod key;
mod kinds;
#[cfg(feature = "openapi")]
pub(crate) mod limits;
mod mexico;
mod municipalities;
mod order;
mod outcome;
mod parcels;
mod path;
mod phone;
mod places;
mod postal;
mod printable;
mod reader;
mod receiver;
mod regions;
mod requests;
mod sender;
mod texts;

#[cfg(test)]
mod tests;

pub use body::parse_body;
pub use builder::OrderBuilder;
pub use destinations::Destinations;
pub use key::{KeyReading, read_key};
pub use order::{OrderContext, check_order};
pub use outcome::{Accepted, Rejected};
pub use parcels::{ListQuery, check_list};
pub use printable::{PRINTABLE, is_invisible, is_printable};
pub use receiver::destination;
pub use requests::{check_batch, check_manifest, check_reprint, check_void};
