//! Manifests: parcels under an air waybill (spec: Endpoint list).

use chrono::{DateTime, NaiveDate, Utc};
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::{
    Awb, CountryCode, CurrencyCode, IdempotencyKey, ManifestId, MaybeKnown, Row, TrackingNumber,
    Warning, decimal, lenient, lenient::rows, macros::setters, macros::wire_enum, time,
};

/// A request to submit 1-500 parcels under an air waybill (docs/api.md, Submit and read manifests).
///
/// Read from JSON alone, its key has no history; [`Saved`](super::Saved) reads it too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "utoipa",
    derive(utoipa::ToSchema),
    schema(
        description = "A request to submit 1-500 parcels under an air waybill (docs/api.md, Submit and read manifests)."
    )
)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ManifestRequest {
    /// The idempotency key of this write. The service accepts a request without one, too: the same
    /// parcels under the same air waybill are always the same manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
    /// The air waybill.
    pub awb_number: Awb,
    /// The tracking numbers of the parcels, without repetition.
    pub tracking_numbers: Vec<String>,
    /// The flight, by airline code and number: `EK213`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flight_number: Option<String>,
    /// The day of departure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departure_date: Option<NaiveDate>,
    /// The IATA code of the origin airport, three letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_airport: Option<String>,
    /// The IATA code of the destination airport, three letters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destination_airport: Option<String>,
    /// The caller's reference, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl ManifestRequest {
    /// Returns a request to submit these parcels under an air waybill.
    ///
    /// ```
    /// use parcelo::{Awb, IdempotencyKey, ManifestRequest, TrackingNumber};
    ///
    /// let numbers = [TrackingNumber::parse("EC7K2M9QX4T8WD0")?];
    /// let key = IdempotencyKey::derive("flights", "EK213 2026-01-10");
    /// let request = ManifestRequest::new(key, Awb::parse("176-12345675")?, &numbers)
    ///     .with_flight_number("EK213");
    /// assert_eq!(request.awb_number.as_str(), "176-12345675");
    /// # Ok::<(), parcelo::InvalidValue>(())
    /// ```
    pub fn new<'n>(
        idempotency_key: IdempotencyKey,
        awb_number: Awb,
        tracking_numbers: impl IntoIterator<Item = &'n TrackingNumber>,
    ) -> Self {
        Self {
            idempotency_key: Some(idempotency_key),
            awb_number,
            tracking_numbers: tracking_numbers.into_iter().map(ToString::to_string).collect(),
            flight_number: None,
            departure_date: None,
            origin_airport: None,
            destination_airport: None,
            reference: None,
        }
    }

    setters! {
        /// Sets the flight, by airline code and number: `EK213`.
        with_flight_number(flight_number: text);
        /// Sets the day of departure.
        with_departure_date(departure_date: some NaiveDate);
        /// Sets the origin airport, by its IATA code.
        with_origin_airport(origin_airport: text);
        /// Sets the destination airport, by its IATA code.
        with_destination_airport(destination_airport: text);
        /// Sets the caller's reference, at most 100 characters.
        with_reference(reference: text);
    }
}

wire_enum! {
    /// The status of a manifest.
    ManifestStatus [doc(hidden)] {
        /// The manifest was submitted, which is final.
        Submitted = "SUBMITTED",
    }
}

/// A submitted manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Manifest {
    /// The manifest's id, `man_…`.
    #[cfg_attr(feature = "utoipa", schema(value_type = String))]
    pub manifest_id: ManifestId,
    /// The air waybill.
    #[cfg_attr(feature = "utoipa", schema(value_type = Awb))]
    pub awb_number: MaybeKnown<Awb>,
    /// The status of the manifest.
    pub status: ManifestStatus,
    /// Number of parcels.
    pub parcel_count: u32,
    /// The total weight of the parcels, in kilograms.
    #[serde(with = "decimal")]
    pub total_weight_kg: Decimal,
    /// The declared values of the parcels, added up by currency.
    #[serde(with = "rows")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Vec<DeclaredValue>))]
    pub declared_values: Vec<Row<DeclaredValue>>,
    /// The destination countries, each once.
    #[serde(deserialize_with = "lenient::list")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Vec<CountryCode>))]
    pub destination_countries: Vec<MaybeKnown<CountryCode>>,
    /// The tracking numbers of the parcels.
    #[serde(deserialize_with = "lenient::list")]
    #[cfg_attr(feature = "utoipa", schema(value_type = Vec<TrackingNumber>))]
    pub tracking_numbers: Vec<MaybeKnown<TrackingNumber>>,
    /// The flight, by airline code and number.
    #[serde(default, deserialize_with = "lenient::option")]
    pub flight_number: Option<String>,
    /// The day of departure.
    #[serde(default, deserialize_with = "lenient::option")]
    pub departure_date: Option<NaiveDate>,
    /// The IATA code of the origin airport.
    #[serde(default, deserialize_with = "lenient::option")]
    pub origin_airport: Option<String>,
    /// The IATA code of the destination airport.
    #[serde(default, deserialize_with = "lenient::option")]
    pub destination_airport: Option<String>,
    /// The caller's reference.
    #[serde(default, deserialize_with = "lenient::option")]
    pub reference: Option<String>,
    /// Time of submission.
    #[serde(with = "time")]
    pub submitted_at: DateTime<Utc>,
    /// Warnings about the manifest, which did not prevent it.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub warnings: Vec<Warning>,
}

#[doc(hidden)]
impl Manifest {
    /// Returns a manifest of these parcels, without weight, value and destinations, submitted at this time.
    pub fn new(
        manifest_id: ManifestId,
        awb_number: Awb,
        tracking_numbers: Vec<TrackingNumber>,
        submitted_at: DateTime<Utc>,
    ) -> Self {
        Self {
            manifest_id,
            awb_number: awb_number.into(),
            status: ManifestStatus::Submitted,
            parcel_count: u32::try_from(tracking_numbers.len()).unwrap_or(u32::MAX),
            total_weight_kg: Decimal::ZERO,
            declared_values: Vec::new(),
            destination_countries: Vec::new(),
            tracking_numbers: tracking_numbers.into_iter().map(Into::into).collect(),
            flight_number: None,
            departure_date: None,
            origin_airport: None,
            destination_airport: None,
            reference: None,
            submitted_at,
            warnings: Vec::new(),
        }
    }

    setters! {
        /// Sets the status.
        with_status(status: ManifestStatus);
        /// Sets the weight in kilograms.
        with_total_weight_kg(total_weight_kg: Decimal);
        /// Sets the declared values, one sum for each currency.
        with_declared_values(declared_values: Vec<Row<DeclaredValue>>);
        /// Sets the destination countries, without repetition.
        with_destination_countries(destination_countries: Vec<MaybeKnown<CountryCode>>);
        /// Sets the flight.
        with_flight_number(flight_number: text);
        /// Sets the day of departure.
        with_departure_date(departure_date: some NaiveDate);
        /// Sets the origin airport, by its IATA code.
        with_origin_airport(origin_airport: text);
        /// Sets the destination airport, by its IATA code.
        with_destination_airport(destination_airport: text);
        /// Sets the caller's reference.
        with_reference(reference: text);
        /// Sets the warnings.
        with_warnings(warnings: Vec<Warning>);
    }
}

/// A sum of money in one currency.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "utoipa", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct DeclaredValue {
    /// The currency.
    #[cfg_attr(feature = "utoipa", schema(value_type = CurrencyCode))]
    pub currency: MaybeKnown<CurrencyCode>,
    /// The sum.
    #[serde(with = "decimal")]
    pub amount: Decimal,
}

#[doc(hidden)]
impl DeclaredValue {
    /// Returns a sum in a currency.
    pub fn new(currency: CurrencyCode, amount: Decimal) -> Self {
        Self { currency: currency.into(), amount }
    }
}
