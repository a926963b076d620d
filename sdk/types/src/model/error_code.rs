//! The error catalogue: every error's code, HTTP status and texts, each in one place (spec: Errors).

use super::Language;

macro_rules! catalogue {
    ($($(#[$meta:meta])* $variant:ident = $code:literal, $status:literal, $en:literal, $es:literal;)+) => {
        /// A code of the error catalogue (docs/api.md, Errors).
        ///
        /// ```
        /// # use parcelo::ErrorCode;
        /// let code = ErrorCode::RateLimitExceeded;
        /// assert_eq!((code.code(), code.status()), ("RATE_LIMIT_EXCEEDED", 429));
        /// assert_eq!(ErrorCode::known("RATE_LIMIT_EXCEEDED"), Some(code));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$meta])* $variant,)+
        }

        impl ErrorCode {
            /// Every code, in the order of the documentation.
            #[doc(hidden)]
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the code on the wire.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)+ }
            }

            /// Returns the HTTP status of a response with this code.
            pub const fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)+ }
            }

            /// Returns the text with its `{placeholders}`.
            #[doc(hidden)]
            pub const fn template(self, language: Language) -> &'static str {
                match (self, language) {
                    $((Self::$variant, Language::En) => $en, (Self::$variant, Language::Es) => $es,)+
                }
            }
        }
    };
}

#[rustfmt::skip]
catalogue! {
    /// The header `X-API-Key` is missing.
    AuthMissingApiKey = "AUTH_MISSING_API_KEY", 401, "Missing X-API-Key header.", "Falta el encabezado X-API-Key.";
    /// The key is unknown or revoked, or belongs to the other environment.
    AuthInvalidApiKey = "AUTH_INVALID_API_KEY", 401, "The API key is invalid or has been revoked.", "La clave de API no es válida o ha sido revocada.";
    /// The client's address is not on the key's IP list.
    AuthIpNotAllowed = "AUTH_IP_NOT_ALLOWED", 403, "Requests from this IP address are not allowed for this API key.", "Esta clave de API no admite solicitudes desde esta dirección IP.";
    /// The key may not create orders to this destination.
    AuthCountryNotAllowed = "AUTH_COUNTRY_NOT_ALLOWED", 403, "This API key may not create orders to country {country}.", "Esta clave de API no puede crear pedidos con destino a {country}.";
    /// The operation exists only in the sandbox.
    SandboxOnly = "SANDBOX_ONLY", 403, "This operation is available only in the sandbox with a sandbox key.", "Esta operación solo está disponible en el entorno de pruebas con una clave de pruebas.";
    /// The key has made too many requests in this window; `retryAfter` says when to try again.
    RateLimitExceeded = "RATE_LIMIT_EXCEEDED", 429, "Too many requests. Retry after {n} second(s).", "Demasiadas solicitudes. Reintente en {n} segundo(s).";
    /// The request is invalid; `details.errors` lists every fault.
    ValidationFailed = "VALIDATION_FAILED", 400, "The request is not valid.", "La solicitud no es válida.";
    /// The `Content-Type` is not JSON.
    UnsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE", 415, "The body must be JSON (Content-Type: application/json).", "El cuerpo debe ser JSON (Content-Type: application/json).";
    /// The body did not arrive in time.
    RequestTimeout = "REQUEST_TIMEOUT", 408, "The body took too long to arrive; send the request again.", "El cuerpo tardó demasiado en llegar; envíe la solicitud de nuevo.";
    /// The body is larger than 256 KiB.
    PayloadTooLarge = "PAYLOAD_TOO_LARGE", 413, "The body exceeds 256 KiB.", "El cuerpo supera 256 KiB.";
    /// The endpoint does not exist.
    NotFound = "NOT_FOUND", 404, "No such endpoint.", "El recurso solicitado no existe.";
    /// The endpoint does not support this method.
    MethodNotAllowed = "METHOD_NOT_ALLOWED", 405, "Method not allowed for this endpoint.", "Método no permitido en este recurso.";
    /// The caller has no parcel with this tracking number.
    ParcelNotFound = "PARCEL_NOT_FOUND", 404, "No parcel with this tracking number.", "No existe un paquete con este número de rastreo.";
    /// The supplied tracking number is already in use.
    ParcelDuplicateTracking = "PARCEL_DUPLICATE_TRACKING", 409, "This tracking number already exists.", "Este número de rastreo ya existe.";
    /// The parcel's status does not allow it to be voided.
    ParcelNotVoidable = "PARCEL_NOT_VOIDABLE", 409, "A parcel in status {status} can no longer be voided.", "Un paquete en estado {status} ya no se puede anular.";
    /// No parcel of the request could be voided, for different reasons.
    VoidFailed = "VOID_FAILED", 409, "None of the parcels could be voided.", "No se pudo anular ninguno de los paquetes.";
    /// The parcel's status does not allow it to be added to a manifest.
    ParcelNotManifestable = "PARCEL_NOT_MANIFESTABLE", 409, "A parcel in status {status} cannot be added to a manifest.", "Un paquete en estado {status} no se puede incluir en un manifiesto.";
    /// The parcel belongs to another manifest.
    ParcelAlreadyManifested = "PARCEL_ALREADY_MANIFESTED", 409, "The parcel already belongs to manifest {manifestId}.", "El paquete ya pertenece al manifiesto {manifestId}.";
    /// Some parcels cannot be included, so the manifest was not submitted.
    ManifestParcelsRejected = "MANIFEST_PARCELS_REJECTED", 409, "The manifest was not submitted: some parcels cannot be included.", "El manifiesto no se envió: algunos paquetes no se pueden incluir.";
    /// A manifest of other parcels was submitted for this air waybill.
    ManifestAlreadySubmitted = "MANIFEST_ALREADY_SUBMITTED", 409, "A different manifest was already submitted for this AWB.", "Ya se envió un manifiesto distinto para esta guía aérea (AWB).";
    /// The caller has no manifest with this id.
    ManifestNotFound = "MANIFEST_NOT_FOUND", 404, "No such manifest.", "No existe el manifiesto.";
    /// The parcel has no label yet.
    LabelNotFound = "LABEL_NOT_FOUND", 404, "No label has been generated for this parcel yet.", "Aún no se ha generado la etiqueta de este paquete.";
    /// The order was voided, and its label with it.
    LabelVoided = "LABEL_VOIDED", 409, "The parcel was voided; its label can no longer be used.", "El paquete fue anulado; su etiqueta ya no se puede usar.";
    /// Some of the labels cannot be downloaded, so no file was created.
    LabelsRejected = "LABELS_REJECTED", 409, "No file was made: some of the labels cannot be downloaded.", "No se generó el archivo: algunas de las etiquetas no se pueden descargar.";
    /// The file is not the one that `If-Match` names.
    #[doc(hidden)]
    PreconditionFailed = "PRECONDITION_FAILED", 412, "The file is not the version named in If-Match.", "El archivo no es la versión indicada en If-Match.";
    /// The parcel's status does not allow a reprint, because it is final.
    LabelNotReprintable = "LABEL_NOT_REPRINTABLE", 409, "The label of a parcel in status {status} cannot be reprinted.", "La etiqueta de un paquete en estado {status} no se puede reimprimir.";
    /// The key was used with another request.
    IdempotencyConflict = "IDEMPOTENCY_CONFLICT", 409, "This idempotency key was already used with a different request.", "Esta clave de idempotencia ya se usó con otra solicitud.";
    /// The first request with this key has not finished yet.
    IdempotencyInProgress = "IDEMPOTENCY_IN_PROGRESS", 409, "A request with this idempotency key is still being processed.", "Una solicitud con esta clave de idempotencia aún se está procesando.";
    /// The state machine does not allow this status after the parcel's current one.
    #[doc(hidden)]
    IllegalTransition = "ILLEGAL_TRANSITION", 409, "A parcel in status {from} cannot move to {to}.", "Un paquete en estado {from} no puede pasar a {to}.";
    /// The carrier key is missing or wrong.
    #[doc(hidden)]
    CarrierAuthFailed = "CARRIER_AUTH_FAILED", 401, "Invalid carrier credentials.", "Credenciales de transportista no válidas.";
    /// The admin token is missing or wrong.
    #[doc(hidden)]
    AdminAuthFailed = "ADMIN_AUTH_FAILED", 401, "Missing or invalid admin token (Authorization: Bearer adm_…).", "Falta el token de administración o no es válido (Authorization: Bearer adm_…).";
    /// The form of the dashboard was not sent from a page of the same session.
    #[doc(hidden)]
    FormNotAccepted = "FORM_NOT_ACCEPTED", 403, "The form was not sent from a page of this session.", "El formulario no se envió desde una página de esta sesión.";
    /// No account has this name.
    #[doc(hidden)]
    AccountNotFound = "ACCOUNT_NOT_FOUND", 404, "No such account.", "No existe la cuenta.";
    /// No API or carrier key has this id.
    #[doc(hidden)]
    KeyNotFound = "KEY_NOT_FOUND", 404, "No key with this id.", "No existe una clave con este identificador.";
    /// The API key is revoked, which is final: create a new one.
    #[doc(hidden)]
    KeyRevoked = "KEY_REVOKED", 409, "This key is revoked and cannot get a new secret; create a new key.", "Esta clave está revocada y no puede recibir un secreto nuevo; cree otra clave.";
    /// The account has no webhook in this environment.
    #[doc(hidden)]
    WebhookNotFound = "WEBHOOK_NOT_FOUND", 404, "No webhook is configured in this environment.", "No hay un webhook configurado en este entorno.";
    /// The webhook has no event with this id.
    #[doc(hidden)]
    EventNotFound = "EVENT_NOT_FOUND", 404, "No event with this id.", "No existe un evento con este identificador.";
    /// The webhook is disabled: enable it first.
    #[doc(hidden)]
    WebhookDisabled = "WEBHOOK_DISABLED", 409, "The webhook is disabled; enable it first.", "El webhook está desactivado; actívelo primero.";
    /// The settings of the webhook cannot be read: set it up again.
    #[doc(hidden)]
    WebhookUnreadable = "WEBHOOK_UNREADABLE", 409, "The webhook's settings cannot be read; set it up again.", "La configuración del webhook no se puede leer; configúrelo de nuevo.";
    /// The service failed; its log has the reason under the request id.
    InternalError = "INTERNAL_ERROR", 500, "Internal error. Quote the request id to support.", "Error interno. Indique el identificador de la solicitud a soporte.";
    /// The service is temporarily unavailable; `Retry-After` says when to try again.
    ServiceUnavailable = "SERVICE_UNAVAILABLE", 503, "Temporarily unavailable.", "Servicio no disponible temporalmente.";
    /// The legacy API has been retired.
    #[doc(hidden)]
    LegacySunset = "LEGACY_SUNSET", 410, "The legacy API has been retired; use /api/v1.", "La API anterior ya no está disponible; use /api/v1.";
}

impl ErrorCode {
    /// Returns the code with this name, if this version knows it.
    pub fn known(code: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.code() == code)
    }

    /// Returns the text in a language, with each `{name}` replaced by its value.
    #[doc(hidden)]
    pub fn text(self, language: Language, values: &[(&str, &str)]) -> String {
        let mut text = self.template(language).to_owned();
        for (name, value) in values {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }
}

#[cfg(feature = "utoipa")]
impl utoipa::PartialSchema for ErrorCode {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        let about = "The error code; a newer server may have further ones.";
        super::schema::open_enum(about, Self::ALL.iter().map(|code| code.code()))
    }
}

#[cfg(feature = "utoipa")]
impl utoipa::ToSchema for ErrorCode {}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_found_by_name_and_has_both_texts() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::known(code.code()), Some(*code));
            assert_ne!(code.template(Language::En), code.template(Language::Es), "{code}");
            assert!((400..=599).contains(&code.status()), "{code}");
        }
        assert_eq!(ErrorCode::known("NO_SUCH_CODE"), None);
    }
}
