//! The body of an error response (spec: Errors).

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::{
    ErrorCode, ItemError, Language, ParcelStatus, RequestId, Row, Unreadable, VoidResult, lenient,
    macros::setters, macros::wire_enum,
};

wire_enum! {
    /// The codes of faults.
    FaultCode [doc(hidden)] {
        /// The value is missing or blank.
        Required = "REQUIRED",
        /// The value has too many characters or elements.
        TooLong = "TOO_LONG",
        /// The value has too few characters or elements.
        TooShort = "TOO_SHORT",
        /// The value does not have the required form or JSON type.
        InvalidFormat = "INVALID_FORMAT",
        /// The number is outside its bounds.
        OutOfRange = "OUT_OF_RANGE",
        /// The value is valid but not supported.
        NotSupported = "NOT_SUPPORTED",
        /// The value contradicts another field.
        Mismatch = "MISMATCH",
        /// The value is not one of the known values.
        UnknownValue = "UNKNOWN_VALUE",
        /// The value is repeated.
        Duplicate = "DUPLICATE",
        /// The body is not a JSON object.
        MalformedJson = "MALFORMED_JSON",
    }
}

/// One fault of a request: an element of `error.details.errors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct FieldFault {
    /// The field's path in wire spelling: `receiver.address.zipCode`, `products[0].quantity`.
    pub field: String,
    /// The code.
    #[serde(default = "FieldFault::unnamed")]
    pub code: FaultCode,
    /// The message in English.
    pub message: String,
    /// The message in Spanish.
    #[serde(default)]
    pub message_es: String,
    /// The value that was probably meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

#[doc(hidden)]
impl FieldFault {
    /// Returns a fault of the field at this path, with its message in English and Spanish.
    pub fn new(
        field: impl Into<String>,
        code: FaultCode,
        (en, es): (impl Into<String>, impl Into<String>),
    ) -> Self {
        let (message, message_es) = (en.into(), es.into());
        Self { field: field.into(), code, message, message_es, suggestion: None }
    }

    setters! {
        /// Sets the value that was probably meant.
        with_suggestion(suggestion: text);
    }
}

impl FieldFault {
    fn unnamed() -> FaultCode {
        FaultCode::Unknown(String::new())
    }

    /// Returns the message in a language.
    pub fn text(&self, language: Language) -> &str {
        language.pick(&self.message, &self.message_es)
    }
}

/// Converts a fault that cannot be read: it has no field, and its JSON is the message.
#[doc(hidden)]
impl From<Unreadable> for FieldFault {
    fn from(row: Unreadable) -> Self {
        let message = lenient::text(row.into_json());
        let (code, field, message_es) = (Self::unnamed(), String::new(), message.clone());
        Self { field, code, message, message_es, suggestion: None }
    }
}

/// A warning about something unlikely in an order that was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Warning {
    /// The code.
    pub code: WarningCode,
    /// The field's path in wire spelling.
    pub field: String,
    /// The message in English.
    pub message: String,
    /// The message in Spanish.
    pub message_es: String,
}

impl Warning {
    /// Returns a warning about the field at this path, with its message in English and Spanish.
    #[doc(hidden)]
    pub fn new(
        code: WarningCode,
        field: impl Into<String>,
        (en, es): (impl Into<String>, impl Into<String>),
    ) -> Self {
        Self { code, field: field.into(), message: en.into(), message_es: es.into() }
    }

    /// Returns the message in a language.
    pub fn text(&self, language: Language) -> &str {
        language.pick(&self.message, &self.message_es)
    }
}

/// Converts a warning that cannot be read: it has no field, and its JSON is the message.
#[doc(hidden)]
impl From<Unreadable> for Warning {
    fn from(row: Unreadable) -> Self {
        let (code, message) = (WarningCode::Unknown(String::new()), lenient::text(row.into_json()));
        Self { code, field: String::new(), message_es: message.clone(), message }
    }
}

wire_enum! {
    /// The codes of warnings.
    WarningCode [doc(hidden)] {
        /// The field is not part of the API, and was ignored.
        UnknownField = "UNKNOWN_FIELD",
        /// The value of a field beyond the specification is wrong, and was ignored.
        ValueIgnored = "VALUE_IGNORED",
        /// The text of a field beyond the specification is too long, and was cut.
        TextCut = "TEXT_CUT",
        /// The HS code is missing.
        HsCodeMissing = "HS_CODE_MISSING",
        /// The description of the goods is missing.
        CustomsDescriptionMissing = "CUSTOMS_DESCRIPTION_MISSING",
        /// The declared value exceeds the sum of the products.
        DeclaredValueAboveProducts = "DECLARED_VALUE_ABOVE_PRODUCTS",
        /// The products, without packaging, weigh more than the parcel.
        NetWeightAboveWeight = "NET_WEIGHT_ABOVE_WEIGHT",
        /// The country code of the telephone number does not match the address.
        PhoneCountryMismatch = "PHONE_COUNTRY_MISMATCH",
        /// The postal code is missing in a country that uses them.
        PostalCodeMissing = "POSTAL_CODE_MISSING",
        /// The state or province is missing, although the country's post requires it.
        StateMissing = "STATE_MISSING",
        /// The text is too long for its place on the label, and is cut off there.
        TextCutOnLabel = "TEXT_CUT_ON_LABEL",
        /// The type of the national ID was inferred from its length.
        NationalIdTypeGuessed = "NATIONAL_ID_TYPE_GUESSED",
        /// Both weights are given; they agree.
        BothWeightsGiven = "BOTH_WEIGHTS_GIVEN",
        /// The national ID's check digit is wrong.
        NationalIdCheckDigit = "NATIONAL_ID_CHECK_DIGIT",
        /// The postal code belongs to another state.
        PostalStateMismatch = "POSTAL_STATE_MISMATCH",
        /// The postal code does not match the country's format.
        PostalCodeFormat = "POSTAL_CODE_FORMAT",
        /// The city is not in the given department.
        CityDepartmentMismatch = "CITY_DEPARTMENT_MISMATCH",
        /// The state is not one of the country's states.
        StateUnknown = "STATE_UNKNOWN",
        /// The HS code has an unusual number of digits.
        HsCodeFormat = "HS_CODE_FORMAT",
        /// Some characters cannot be drawn on the label.
        TextNotPrintable = "TEXT_NOT_PRINTABLE",
        /// A name contains an invisible character, which its script may need.
        TextHiddenCharacter = "TEXT_HIDDEN_CHARACTER",
        /// The parcels of a manifest go to several countries.
        MixedDestinations = "MIXED_DESTINATIONS",
    }
}

/// The `error` object of an error response.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ErrorBody {
    /// The error code; a newer server may have further ones.
    #[cfg_attr(feature = "utoipa", schema(value_type = ErrorCode))]
    pub code: String,
    /// A description of the error, in English.
    pub message: String,
    /// The description in Spanish.
    #[serde(rename = "message_es", default, deserialize_with = "lenient::word")]
    pub message_es: String,
    /// Further details, which depend on the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "utoipa", schema(value_type = details::ErrorDetails, required = false))]
    pub details: Option<Value>,
    /// The id to quote to support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<String>))]
    pub request_id: Option<RequestId>,
    /// Whole seconds to wait before trying again.
    #[serde(
        default,
        deserialize_with = "lenient::option",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "utoipa", schema(value_type = Option<u32>))]
    pub retry_after: Option<serde_json::Number>,
}

#[doc(hidden)]
impl ErrorBody {
    /// Returns an error with this code and its message in English and Spanish.
    pub fn new(code: impl Into<String>, (en, es): (impl Into<String>, impl Into<String>)) -> Self {
        Self {
            code: code.into(),
            message: en.into(),
            message_es: es.into(),
            details: None,
            request_id: None,
            retry_after: None,
        }
    }

    setters! {
        /// Sets the details.
        with_details(details: some Value);
        /// Sets the id to quote to support.
        with_request_id(request_id: some RequestId);
        /// Sets the whole seconds to wait before retrying.
        with_retry_after(retry_after: some serde_json::Number);
    }
}

impl ErrorBody {
    /// Returns the code, if this version knows it.
    pub fn known(&self) -> Option<ErrorCode> {
        ErrorCode::known(&self.code)
    }

    /// Returns the faults of a request that broke rules; empty for every other error. A fault that cannot be read has
    /// no field, and its JSON is its message.
    pub fn field_faults(&self) -> Vec<FieldFault> {
        self.list("errors").into_iter().map(|row| row.unwrap_or_else(FieldFault::from)).collect()
    }

    /// Returns the reason why each order could not be voided; empty unless all of a void failed (docs/api.md, Void
    /// orders).
    pub fn void_results(&self) -> Vec<Row<VoidResult>> {
        self.list("results")
    }

    /// Returns the parcels because of which a manifest was not submitted, or a file of labels was not created; empty
    /// for every other error (docs/api.md, Submit and read manifests, Download many labels).
    pub fn rejected_parcels(&self) -> Vec<Row<RejectedParcel>> {
        self.list("errors")
    }

    /// Returns a list in the details; empty if none of its rows can be parsed, because then it is a list of something
    /// else.
    fn list<T: DeserializeOwned>(&self, name: &str) -> Vec<Row<T>> {
        let list = self.details.as_ref().and_then(|details| details.get(name));
        let rows = list.and_then(Value::as_array).into_iter().flatten();
        let rows: Vec<_> = rows.cloned().map(lenient::row).collect();
        if rows.iter().any(Result::is_ok) { rows } else { Vec::new() }
    }
}

/// A parcel that cannot be part of a manifest, or whose label cannot be downloaded: an element of
/// `error.details.errors`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RejectedParcel {
    /// The path of the number in the request: `trackingNumbers[3]`.
    pub field: String,
    /// The number as requested.
    pub tracking_number: String,
    /// The parcel's status, if there is such a parcel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ParcelStatus>,
    /// The reason why the parcel was rejected.
    #[serde(flatten)]
    pub error: ItemError,
}

#[doc(hidden)]
impl RejectedParcel {
    /// Returns a parcel of the request with the reason why it cannot be part of the result.
    pub fn new(
        field: impl Into<String>,
        tracking_number: impl Into<String>,
        error: ItemError,
    ) -> Self {
        let (field, tracking_number) = (field.into(), tracking_number.into());
        Self { field, tracking_number, status: None, error }
    }

    setters! {
        /// Sets the parcel's status.
        with_status(status: some ParcelStatus);
    }
}

/// An error response: `{"success": false, "error": {…}}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct ErrorEnvelope {
    /// Always false.
    pub success: bool,
    /// The error.
    pub error: ErrorBody,
}

#[doc(hidden)]
impl ErrorEnvelope {
    /// Returns an error response.
    pub fn new(error: ErrorBody) -> Self {
        Self { success: false, error }
    }
}

/// The schema of an error's details, which depend on the code.
#[cfg(feature = "utoipa")]
mod details {
    use utoipa::{
        PartialSchema, ToSchema,
        openapi::{
            ObjectBuilder, Ref, RefOr,
            schema::{AnyOfBuilder, ArrayBuilder, Schema},
        },
    };

    use super::{FieldFault, RejectedParcel, VoidResult};

    /// The members of the details, which several codes share.
    pub(super) struct ErrorDetails;

    impl PartialSchema for ErrorDetails {
        fn schema() -> RefOr<Schema> {
            let reference = |name| Ref::from_schema_name(name);
            let fault = AnyOfBuilder::new()
                .item(reference(FieldFault::name()))
                .item(reference(RejectedParcel::name()));
            let errors = ArrayBuilder::new().items(fault).description(Some(
                "Every fault of an invalid request; or every parcel that cannot be added to a manifest.",
            ));
            let results = ArrayBuilder::new()
                .items(reference(VoidResult::name()))
                .description(Some("Why each order could not be voided."));
            ObjectBuilder::new()
                .description(Some("Details of the error; some codes have further members."))
                .property("errors", errors)
                .property("results", results)
                .into()
        }
    }

    impl ToSchema for ErrorDetails {
        fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
            add::<FieldFault>(schemas);
            add::<RejectedParcel>(schemas);
            add::<VoidResult>(schemas);
        }
    }

    /// Adds the schema of a type, and the schemas that it refers to.
    fn add<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        T::schemas(schemas);
        schemas.push((T::name().into_owned(), T::schema()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_details(details: &Value) -> ErrorBody {
        let body = json!({"code": "C", "message": "m", "message_es": "m", "details": details});
        serde_json::from_value(body).unwrap()
    }

    #[test]
    fn each_kind_of_details_is_read_only_as_that_kind() {
        let fault = json!({"errors": [{"field": "reason", "code": "TOO_LONG", "message": "m"}]});
        let item = json!({"code": "PARCEL_NOT_FOUND", "message": "m", "message_es": "e"});
        let unvoided =
            json!({"results": [{"trackingNumber": "a", "voided": false, "error": item}]});
        let rejected = json!({"errors": [{"field": "trackingNumbers[3]", "trackingNumber": "a",
            "code": "PARCEL_NOT_FOUND", "message": "m", "message_es": "e"}]});
        let table = [
            (json!(null), [0, 0, 0]),
            (json!({"errors": 7, "results": {}}), [0, 0, 0]),
            (fault, [1, 0, 0]),
            (unvoided, [0, 1, 0]),
            (rejected, [1, 0, 1]),
        ];
        for (details, expected) in table {
            let body = with_details(&details);
            let read = [
                body.field_faults().len(),
                body.void_results().len(),
                body.rejected_parcels().len(),
            ];
            assert_eq!(read, expected, "{details}");
        }
    }

    #[test]
    fn a_rejected_parcel_has_its_number_and_reason() {
        let rejected_row = json!({"field": "trackingNumbers[3]", "trackingNumber": "a", "status": "VOIDED",
            "code": "PARCEL_NOT_MANIFESTABLE", "message": "m", "message_es": "e"});
        let rejected = with_details(&json!({"errors": [rejected_row]})).rejected_parcels();
        let rejected = rejected[0].as_ref().unwrap();
        assert_eq!(rejected.status, Some(ParcelStatus::Voided));
        assert_eq!(rejected.error.code, "PARCEL_NOT_MANIFESTABLE");
        assert_eq!(serde_json::to_value(rejected).unwrap(), rejected_row);
    }
}
