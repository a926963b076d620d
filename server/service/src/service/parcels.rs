//! Reading parcels: tracking records, label files, and parcels for a decision. Due steps are taken before any read.

use parcelo_domain::{
    AccountRowId, ParcelRow, Refusal, Secrets, StoredOrder, Tenant, history, labels,
};
use parcelo_label::{LabelData, LabelError};
use parcelo_types::{
    ErrorCode, InvalidValue, LabelFormat, Language, TrackingNumber,
    internal::{self, BatchTracking},
    model::{FaultCode, FieldFault, TrackingRecord},
};
use serde_json::Value;

use super::{Caller, Service};

/// A label or an invoice as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelFile {
    /// The parcel's number, which names the file.
    pub number: TrackingNumber,
    /// The format.
    pub format: LabelFormat,
    /// The file.
    pub bytes: Vec<u8>,
}

/// A parcel as anyone may see it.
#[derive(Debug, Clone)]
pub struct PublicParcel {
    /// The record without personal data.
    pub record: TrackingRecord,
    /// The account that ships it, whose shop the public page may name.
    pub account: AccountRowId,
}

impl Service {
    /// Returns the tracking record of one of the caller's parcels (spec: GET tracking).
    pub async fn track(
        &self,
        caller: &Caller,
        number: &str,
        with_history: Result<bool, FieldFault>,
        language: Language,
    ) -> Result<TrackingRecord, Refusal> {
        let (number, with_history) = match (check_length(number), with_history) {
            (Ok(number), Ok(with_history)) => (number, with_history),
            (number, with_history) => {
                let faults: Vec<_> = number.err().into_iter().chain(with_history.err()).collect();
                return Err(Refusal::invalid(&faults));
            }
        };
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        let parcel = self.load_parcel(caller.tenant(), &number).await?;
        self.tracking_record(&parcel, with_history, language).await
    }

    /// Returns the tracking records of up to 100 numbers, in the order given (spec: Endpoint list).
    pub async fn track_batch(
        &self,
        caller: &Caller,
        body: &Value,
        language: Language,
    ) -> Result<BatchTracking, Refusal> {
        let batch =
            internal::check_batch(body).map_err(|rejected| Refusal::invalid(&rejected.faults))?;
        let found = self.load_parcels(caller.tenant(), &batch.tracking_numbers).await?;
        let mut results = Vec::with_capacity(found.len());
        for (number, parcel) in batch.tracking_numbers.into_iter().zip(found) {
            let tracking = match parcel {
                Ok(parcel) => self.tracking_record(&parcel, batch.include_history, language).await,
                Err(refusal) => Err(refusal),
            };
            let tracking = split_item_error(tracking)?;
            results.push(history::batch_result(number, tracking));
        }
        Ok(BatchTracking::new(results))
    }

    /// Returns the tenant's parcels with these numbers, up to date and in the order given, with a refusal for each
    /// missing one.
    pub(super) async fn load_parcels(
        &self,
        tenant: Tenant,
        numbers: &[String],
    ) -> Result<Vec<Result<ParcelRow, Refusal>>, Refusal> {
        let mut found = Vec::with_capacity(numbers.len());
        for number in numbers {
            found.push(split_item_error(self.find_parcel(tenant, number).await)?);
        }
        Ok(found)
    }

    async fn find_parcel(&self, tenant: Tenant, number: &str) -> Result<ParcelRow, Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        self.load_parcel(tenant, &number).await
    }

    /// Returns the tracking record of a parcel, with its history if requested.
    pub(super) async fn tracking_record(
        &self,
        parcel: &ParcelRow,
        with_history: bool,
        language: Language,
    ) -> Result<TrackingRecord, Refusal> {
        let events = if with_history { Some(self.store.events(parcel).await?) } else { None };
        Ok(history::tracking_record(parcel, events.as_deref(), language, self.now()))
    }

    /// Returns what anyone may see of a parcel of any account (docs/api.md, Track without a key).
    pub async fn track_publicly(
        &self,
        environment: parcelo_types::Environment,
        number: &str,
        language: Language,
    ) -> Result<PublicParcel, Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        let found = self.store.parcel(environment, &number).await?;
        let parcel = self.bring_up_to_date(found.ok_or(ErrorCode::ParcelNotFound)?).await?;
        let events = self.store.events(&parcel).await?;
        let record = history::public_tracking_record(&parcel, &events, language, self.now());
        Ok(PublicParcel { record, account: parcel.tenant.account })
    }

    /// Draws the label of one of the caller's parcels (spec: GET labels download).
    pub async fn draw_caller_label(
        &self,
        caller: &Caller,
        number: &str,
        format: LabelFormat,
    ) -> Result<LabelFile, Refusal> {
        self.draw_tenant_label(caller.tenant(), number, format).await
    }

    /// Draws the label of one of a tenant's parcels.
    pub async fn draw_tenant_label(
        &self,
        tenant: Tenant,
        number: &str,
        format: LabelFormat,
    ) -> Result<LabelFile, Refusal> {
        let (parcel, order) = self.load_owned_parcel_with_order(tenant, number).await?;
        self.draw_label(parcel, &order, format).await
    }

    /// Draws the commercial invoice of one of the caller's parcels (docs/api.md, Download an invoice).
    pub async fn draw_caller_invoice(
        &self,
        caller: &Caller,
        number: &str,
    ) -> Result<LabelFile, Refusal> {
        self.draw_tenant_invoice(caller.tenant(), number).await
    }

    /// Draws the commercial invoice of one of a tenant's parcels.
    pub async fn draw_tenant_invoice(
        &self,
        tenant: Tenant,
        number: &str,
    ) -> Result<LabelFile, Refusal> {
        let (parcel, order) = self.load_owned_parcel_with_order(tenant, number).await?;
        self.draw_document(parcel, &order, (LabelFormat::Pdf, parcelo_label::draw_invoice)).await
    }

    /// Returns one of the tenant's parcels with its order.
    pub(super) async fn load_owned_parcel_with_order(
        &self,
        tenant: Tenant,
        number: &str,
    ) -> Result<(ParcelRow, StoredOrder), Refusal> {
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::ParcelNotFound)?;
        let (parcel, order) = self.load_parcel_with_order(&number, tenant.environment).await?;
        if parcel.tenant != tenant {
            return Err(ErrorCode::ParcelNotFound.into());
        }
        Ok((parcel, order))
    }

    /// Draws the label behind a capability link: a valid signature is the permission to read it.
    pub async fn draw_linked_label(
        &self,
        environment: parcelo_types::Environment,
        file_name: &str,
        signature: &str,
    ) -> Result<LabelFile, Refusal> {
        let (number, extension) = file_name.rsplit_once('.').ok_or(ErrorCode::NotFound)?;
        let number = TrackingNumber::parse(number).map_err(|_| ErrorCode::NotFound)?;
        let format = LabelFormat::parse(extension).map_err(|_| ErrorCode::NotFound)?;
        let found = self.store.parcel_with_order(environment, &number).await?;
        let (parcel, order) = found.ok_or(ErrorCode::NotFound)?;
        let expected = self.secrets().link_signature(environment, &number, parcel.id);
        if !Secrets::is_equal_in_constant_time(&expected, signature) {
            return Err(ErrorCode::NotFound.into());
        }
        self.draw_label(parcel, &order, format).await
    }

    /// Returns one of the tenant's parcels, with all its due steps taken.
    pub(super) async fn load_parcel(
        &self,
        tenant: Tenant,
        number: &TrackingNumber,
    ) -> Result<ParcelRow, Refusal> {
        let found = self.store.parcel(tenant.environment, number).await?;
        let parcel =
            found.filter(|parcel| parcel.tenant == tenant).ok_or(ErrorCode::ParcelNotFound)?;
        self.bring_up_to_date(parcel).await
    }

    /// Returns a parcel of any tenant with its order. The caller must check the tenant.
    pub(super) async fn load_parcel_with_order(
        &self,
        number: &TrackingNumber,
        environment: parcelo_types::Environment,
    ) -> Result<(ParcelRow, StoredOrder), Refusal> {
        let found = self.store.parcel_with_order(environment, number).await?;
        found.ok_or_else(|| ErrorCode::ParcelNotFound.into())
    }

    async fn draw_label(
        &self,
        parcel: ParcelRow,
        order: &StoredOrder,
        format: LabelFormat,
    ) -> Result<LabelFile, Refusal> {
        let environment = parcel.tenant.environment;
        let draw = |data: &LabelData<'_>| {
            self.warn_about_local_link(environment);
            parcelo_label::draw(data, format)
        };
        let label = self.draw_document(parcel, order, (format, draw)).await?;
        self.metrics.count_labels(environment, format, 1);
        Ok(label)
    }

    pub(super) fn warn_about_local_link(&self, environment: parcelo_types::Environment) {
        let site = self.site(environment);
        if environment == parcelo_types::Environment::Production && site.is_local() {
            self.local_link_warning.call_once(|| {
                let base_url = site.base_url();
                tracing::warn!(%base_url, "a live label's QR code leads to the reader's own machine: set --base-url");
            });
        }
    }

    /// Draws a document of a parcel whose label can be used.
    async fn draw_document(
        &self,
        parcel: ParcelRow,
        order: &StoredOrder,
        (format, draw): (LabelFormat, impl FnOnce(&LabelData<'_>) -> Result<Vec<u8>, LabelError>),
    ) -> Result<LabelFile, Refusal> {
        let bytes = self.with_label_data(&parcel, order, draw).await?;
        Ok(LabelFile { number: parcel.tracking_number, format, bytes })
    }

    /// Calls `make` with the data of a parcel's label, if the label can be used.
    pub(super) async fn with_label_data<T>(
        &self,
        parcel: &ParcelRow,
        order: &StoredOrder,
        make: impl FnOnce(&LabelData<'_>) -> Result<T, LabelError>,
    ) -> Result<T, Refusal> {
        labels::check_label_usable(parcel.state)?;
        let environment = parcel.tenant.environment;
        // A version of a label always has the same bytes, so the first version never shows an air waybill.
        let awb = match parcel.label_version {
            1 => None,
            version => self.store.awb_on_label(parcel.key, version).await?,
        };
        let site = self.site(environment);
        let data = LabelData {
            order,
            layout: order.layout,
            tracking_number: &parcel.tracking_number,
            tracking_url: &site.tracking_url(&parcel.tracking_number),
            sandbox: environment == parcelo_types::Environment::Sandbox,
            created_on: parcel.created_at.to_utc().date_naive(),
            version: parcel.label_version,
            awb: awb.as_deref(),
        };
        make(&data).map_err(drawing_failed)
    }
}

pub(super) fn drawing_failed(error: LabelError) -> Refusal {
    tracing::error!(%error, "a label or an invoice could not be drawn");
    ErrorCode::InternalError.into()
}

/// Separates a refusal that concerns one item of a list from one that ends the whole request. An unreadable row
/// concerns its item alone; a store that does not respond ends the request.
pub(super) fn split_item_error<T>(
    answer: Result<T, Refusal>,
) -> Result<Result<T, Refusal>, Refusal> {
    let fails_alone = |code| matches!(code, ErrorCode::ParcelNotFound | ErrorCode::InternalError);
    match answer {
        Err(refusal) if !fails_alone(refusal.code) => Err(refusal),
        answer => Ok(answer),
    }
}

/// Refuses a tracking number in a path whose length is wrong. Any other malformed number is treated like an unknown
/// one.
fn check_length(text: &str) -> Result<&str, FieldFault> {
    if !(TrackingNumber::MIN..=TrackingNumber::MAX).contains(&text.chars().count()) {
        return Err(FieldFault::new(
            "trackingNumber",
            FaultCode::InvalidFormat,
            (
                format!("The tracking number is not valid: {}.", InvalidValue::TRACKING_NUMBER),
                "El número de rastreo no es válido: tiene de 10 a 30 letras, dígitos y \
                guiones, sin guion al principio ni al final.",
            ),
        ));
    }
    Ok(text)
}
