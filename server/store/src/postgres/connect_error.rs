//! The errors of opening a connection, with advice for the operator.

use std::{error::Error as _, io};

use tokio_postgres::error::SqlState;
use tokio_rustls::rustls::{self, CertificateError};

use super::{
    error::{Failure, redacted_message},
    password::PasswordSource,
};

/// The message if a pooler answers instead of PostgreSQL.
pub(super) const POOLER: &str = "a connection pooler is in front of it, and does not keep the settings of a session: \
     name PostgreSQL itself by --database. A server opens eight connections at most, which need no pooler";

/// The message for a host that does not accept writes.
pub(super) const STANDBY: &str = "it is a standby, which accepts no writes: name the primary";

/// Converts an error of connecting into a failure. If there is advice for the error, the failure contains it; otherwise
/// the failure is the driver's error.
pub(super) fn connect_failure(error: tokio_postgres::Error, password: PasswordSource) -> Failure {
    let reason = redacted_message(&error);
    let advice = match error.code() {
        Some(&SqlState::PROTOCOL_VIOLATION) if reason.contains("startup parameter") => {
            return Failure::Unsuitable(POOLER.to_owned());
        }
        Some(&SqlState::INVALID_PASSWORD) => Some(wrong_password(password)),
        Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION)
            if reason.ends_with("does not exist") =>
        {
            Some("create the role, or name another user in the address")
        }
        Some(&SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => Some(
            "let pg_hba.conf admit this user from here, and see whether it demands TLS (sslmode)",
        ),
        Some(&SqlState::INVALID_CATALOG_NAME) => Some("create the database"),
        Some(_) => None,
        None => advice_without_code(&error, &reason),
    };
    advice
        .map_or(Failure::Driver(error), |advice| Failure::Unsuitable(format!("{reason}: {advice}")))
}

/// Returns the advice for a wrong password, depending on the source of the password.
const fn wrong_password(source: PasswordSource) -> &'static str {
    match source {
        PasswordSource::Address => {
            "the password in the address was tried: leave it out, where others can see it, and set PGPASSWORD or \
             write a password file"
        }
        PasswordSource::Environment => "set the right password in PGPASSWORD",
        PasswordSource::File => "write the right password into the password file",
        PasswordSource::Nowhere => "set PGPASSWORD or write a password file",
    }
}

/// Returns the advice for an error that was detected on this side of the connection.
fn advice_without_code(error: &tokio_postgres::Error, reason: &str) -> Option<&'static str> {
    if reason.contains("does not support TLS") {
        return Some(
            "turn on TLS there (ssl = on), or choose sslmode=disable if the network is safe",
        );
    }
    if reason.contains("password missing") {
        return Some("it asks for a password: set PGPASSWORD or write a password file");
    }
    match certificate_error(error)? {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            Some("name the certificate of the authority that signed it by sslrootcert=FILE")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            Some("connect by a host name that its certificate has, or choose sslmode=verify-ca")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            Some("its certificate has expired: renew it there")
        }
        _ => Some("look at its certificate"),
    }
}

/// Returns the fault that rustls found in the server's certificate.
fn certificate_error(error: &tokio_postgres::Error) -> Option<&CertificateError> {
    let source = error.source()?.downcast_ref::<io::Error>()?;
    match source.get_ref()?.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(error) => Some(error),
        _ => None,
    }
}
