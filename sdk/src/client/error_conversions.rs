//! Errors that `?` turns into the client's error.

use parcelo_types::{InvalidValue, model::Unreadable, rules::Rejected};

use super::{Error, ErrorKind, error::Texts};

/// A text that is not a valid value of its type becomes a validation error. Nothing was sent.
impl From<InvalidValue> for Error {
    fn from(error: InvalidValue) -> Self {
        const INVALID: Texts = ("A value is malformed.", "Un valor no tiene el formato correcto.");
        Self::new(ErrorKind::Validation, INVALID).with_source(error)
    }
}

/// An order that breaks the rules becomes a validation error with its faults. Nothing was sent.
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

/// A row that cannot be read becomes a decode error that holds the row.
impl From<Unreadable> for Error {
    fn from(row: Unreadable) -> Self {
        const ROW: Texts = (
            "A row of the response could not be read.",
            "No se pudo interpretar una fila de la respuesta.",
        );
        Self::new(ErrorKind::Decode, ROW).with(|inner| inner.unreadable = Some(row))
    }
}
