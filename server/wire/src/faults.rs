//! The faults that only these requests can have.

pub(crate) use parcelo_types::internal::faults::{REQUIRED, too_few};
use parcelo_types::{internal::FaultText, model::FaultCode};

pub(crate) const TIME_WITH_OFFSET: FaultText = FaultText::invalid(
    "Write the date, the time and the offset from UTC, such as 2026-01-10T10:05:00-05:00.",
    "Escriba la fecha, la hora y la diferencia con UTC, por ejemplo 2026-01-10T10:05:00-05:00.",
);
pub(crate) const TOO_FAR_AHEAD: FaultText = FaultText::constant(
    FaultCode::OutOfRange,
    "This is more than 5 minutes in the future: check the clock and the offset from UTC.",
    "Está más de 5 minutos en el futuro: revise el reloj y la diferencia con UTC.",
);
pub(crate) const TOO_LONG_AGO: FaultText = FaultText::constant(
    FaultCode::OutOfRange,
    "This is before 1970: check the clock.",
    "Es anterior a 1970: revise el reloj.",
);
pub(crate) const ENVIRONMENT: FaultText =
    FaultText::unknown("Use production or sandbox.", "Use production o sandbox.");
pub(crate) const ALL_OR_SOME_COUNTRIES: FaultText = FaultText::mismatch(
    "Use * alone for every country, or list countries without it.",
    "Use únicamente * para todos los países, o indique los países sin él.",
);
pub(crate) const NETWORK: FaultText = FaultText::invalid(
    "Write an IP address or a network, such as 203.0.113.7 or 10.0.0.0/8.",
    "Escriba una dirección IP o una red, por ejemplo 203.0.113.7 o 10.0.0.0/8.",
);
pub(crate) const EVENT_KIND: FaultText = FaultText::unknown(
    "Use parcel.status_changed, parcel.created, parcel.voided or manifest.submitted.",
    "Use parcel.status_changed, parcel.created, parcel.voided o manifest.submitted.",
);
pub(crate) const EVENT_OR_SINCE: FaultText =
    FaultText::mismatch("Send eventId or since, not both.", "Indique eventId o since, no ambos.");
pub(crate) const EVENT_OR_EMPTY: FaultText = FaultText::constant(
    FaultCode::Required,
    "Send eventId or since; an empty object {} resends every undelivered event.",
    "Indique eventId o since; un objeto vacío {} reenvía todos los eventos no entregados.",
);
pub(crate) const EVENT_ID: FaultText = FaultText::invalid(
    "An event ID is evt_ followed by 26 letters and digits.",
    "El identificador de un evento es evt_ seguido de 26 letras y dígitos.",
);
