//! Refusals of controls: the field, and its fault in English and Spanish.

use parcelo_domain::Refusal;
use parcelo_types::model::{FaultCode, FieldFault};

/// Refuses the body as a whole.
pub(super) fn invalid_body(message: &str, message_es: &str) -> Refusal {
    invalid_field("body", message, message_es)
}

/// Refuses a field.
pub(super) fn invalid_field(field: &str, message: &str, message_es: &str) -> Refusal {
    Refusal::invalid(&[FieldFault::new(field, FaultCode::InvalidFormat, (message, message_es))])
}

/// Refuses a key that is not complete.
pub(super) fn invalid_key() -> Refusal {
    invalid_field("key", "key must be a complete API key", "key debe ser una clave de API completa")
}
