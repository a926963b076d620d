//! What becomes an error of the client by `?`.

use super::{Error, ErrorKind, error::Texts};
use crate::{
    model::{InvalidValue, Unreadable},
    rules::Rejected,
};

/// A text that is no value of its kind never reached the service: `?` makes it a validation error.
impl From<InvalidValue> for Error {
    fn from(fault: InvalidValue) -> Self {
        const INVALID: Texts = ("A value does not have its form.", "Un valor no tiene su forma.");
        Self::new(ErrorKind::Validation, INVALID).with_source(fault)
    }
}

/// An order that breaks the rules was not sent: `?` makes it a validation error, with its faults.
///
/// ```
/// use parcelo::{Error, ErrorKind, OrderRequest};
///
/// fn order() -> Result<OrderRequest, Error> {
///     Ok(OrderRequest::builder().build()?) // with nothing in it
/// }
/// let error = order().unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Validation);
/// assert_eq!(error.field_faults()[0].field, "idempotencyKey");
/// ```
impl From<Rejected> for Error {
    fn from(rejected: Rejected) -> Self {
        const BROKEN: Texts =
            ("The request breaks the rules.", "La solicitud incumple las reglas.");
        Self::new(ErrorKind::Validation, BROKEN).with(|inner| {
            inner.faults = rejected.faults;
            inner.nothing_sent = true;
        })
    }
}

/// A row that cannot be read, as an error of its own: `?` makes it one.
impl From<Unreadable> for Error {
    fn from(row: Unreadable) -> Self {
        const ROW: Texts = (
            "A row of the answer could not be read.",
            "No se pudo interpretar una fila de la respuesta.",
        );
        Self::new(ErrorKind::Decode, ROW).with(|inner| inner.unreadable = Some(row))
    }
}
