//! Labels: links and metadata, and invoices. [`download`](super::download) downloads the file.

use parcelo_types::{
    LabelFormat, Operation, ReprintRequest, TrackingNumber, internal::LabelBatchRequest,
    model::LabelMetadata,
};
use url::Url;

use super::{
    Call, Client, Error, LabelDownload, Reply,
    address::{has_whitespace_or_control, is_loopback},
    error::Texts,
    request::UnsentRequest,
};

/// Label files, metadata, reprints and invoices; from [`Client::labels`].
#[derive(Debug, Clone)]
pub struct Labels {
    client: Client,
}

impl Client {
    /// Returns the calls for labels: download, metadata, reprint; and invoices.
    pub fn labels(&self) -> Labels {
        Labels { client: self.clone() }
    }
}

impl Labels {
    /// Returns the download of a label file of 4 × 6 inches, at most 16 MiB; a method of [`LabelDownload`] starts it.
    ///
    /// Errors: `NotFound` (no such parcel, or no label yet), `Conflict` (the parcel was voided), `Decode`
    /// (the response is HTML or JSON, such as the login page of a proxy), and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// # let (folder, number) = (tempfile::tempdir()?, order.tracking_number.unwrap());
    /// # let folder = folder.path();
    /// use parcelo::LabelFormat;
    ///
    /// let labels = client.labels();
    /// let pdf = labels.download(&number, LabelFormat::Pdf);
    /// let length = pdf.save_to(folder.join("label.pdf")).await?;
    /// let zpl = labels.download(&number, LabelFormat::Zpl).bytes().await?;
    /// assert!(length > 10_000 && zpl.starts_with(b"^XA"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn download(&self, number: &TrackingNumber, format: LabelFormat) -> LabelDownload {
        let operation = Operation::DownloadLabel;
        let request = UnsentRequest::with_parameter(&self.client, operation, number.as_str())
            .query([("format", format.code())]);
        let file_name = format!("{number}.{}", format.extension());
        LabelDownload::new(&self.client, Ok(request), file_name)
    }

    /// Returns the download of 1-100 labels as one file, in the order of the numbers: a PDF with one label on each
    /// page, or ZPL with one label after another. A method of [`LabelDownload`] starts it.
    ///
    /// Either every label is in the file, or none:
    /// [`ErrorBody::rejected_parcels`](crate::model::ErrorBody::rejected_parcels) lists each one that is missing. The
    /// request counts as many times against the rate limit as it has numbers, and can be repeated: it changes nothing.
    ///
    /// Errors: `Validation` (more than 100 numbers, one of them twice, or PNG, of which a file has one label),
    /// `Conflict` (a parcel was not found, was voided, or has no label yet), and those of [`Labels::download`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let numbers = server.seed_parcels(3).await;
    /// # let folder = tempfile::tempdir()?;
    /// use parcelo::LabelFormat;
    ///
    /// let labels = client.labels().batch(&numbers, LabelFormat::Pdf);
    /// labels.save_to(folder.path().join("monday.pdf")).await?;
    /// let zpl = client.labels().batch(&numbers, LabelFormat::Zpl).bytes().await?;
    /// assert_eq!(String::from_utf8(zpl.to_vec())?.matches("^XA").count(), 3);
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch<'n>(
        &self,
        numbers: impl IntoIterator<Item = &'n TrackingNumber>,
        format: LabelFormat,
    ) -> LabelDownload {
        let numbers = numbers.into_iter().map(ToString::to_string).collect();
        let request = LabelBatchRequest::new(numbers).with_format(format);
        let request = UnsentRequest::new(&self.client, Operation::BatchLabels).json_body(&request);
        LabelDownload::new(&self.client, request, format!("labels.{}", format.extension()))
    }

    /// Returns the download of the commercial invoice of a parcel, a PDF of A4 pages with every item of the order, in
    /// English and Spanish. A method of [`LabelDownload`] starts it.
    ///
    /// Errors: those of [`Labels::download`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let number = server.seed_parcels(1).await.remove(0);
    /// # let folder = tempfile::tempdir()?;
    /// let file = client.labels().invoice(&number).save_in(&folder).await?;
    /// assert!(file.ends_with(format!("invoice-{number}.pdf")));
    /// # Ok(())
    /// # }
    /// ```
    pub fn invoice(&self, number: &TrackingNumber) -> LabelDownload {
        let operation = Operation::DownloadInvoice;
        let request = UnsentRequest::with_parameter(&self.client, operation, number.as_str());
        LabelDownload::new(&self.client, Ok(request), format!("invoice-{number}.pdf"))
    }

    /// Returns the download of a label file by its link (`labelUrl` or one of `downloads`). A link opens without the
    /// API key, so the key is not sent.
    ///
    /// Errors: `Config` when the link leads neither to the service's address nor to one of
    /// [`ClientBuilder::label_hosts`](crate::client::ClientBuilder::label_hosts), and those of [`Labels::download`].
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # let folder = tempfile::tempdir()?;
    /// let created = client.orders().create(&order).await?;
    /// let link = created.parcel.label_url.as_ref().ok_or("the response has no link")?;
    /// let file = client.labels().download_link(link.as_str()).save_in(&folder).await?;
    /// println!("{}", file.display());
    /// # Ok(())
    /// # }
    /// ```
    pub fn download_link(&self, link: &str) -> LabelDownload {
        let link = parse_link(link, &self.client);
        let file_name = link.iter().filter_map(|link| link.path().rsplit('/').next()).collect();
        let request = link.map(|link| UnsentRequest::of_link(&self.client, &link));
        LabelDownload::new(&self.client, request, file_name)
    }

    /// Returns the metadata of a label, also after its order was voided.
    ///
    /// Errors: `NotFound` (no such parcel, or no label yet), and those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// use parcelo::TrackingNumber;
    /// use parcelo::model::LabelStatus;
    ///
    /// let label = client.labels().metadata(&TrackingNumber::parse("SB-SUCCESS-0001")?).await?;
    /// if label.status == LabelStatus::Active {
    ///     println!("version {}: {:?}", label.version, label.label_url);
    /// }
    /// # assert_eq!(label.version, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn metadata(&self, number: &TrackingNumber) -> Call<Reply<LabelMetadata>> {
        let operation = Operation::GetLabel;
        let request = UnsentRequest::with_parameter(&self.client, operation, number.as_str());
        Call::enveloped(&self.client, Ok(request))
    }

    /// Reprints a label: the same number and address, marked `R1`, `R2`… on the paper.
    ///
    /// Errors: `NotFound`, `Conflict` (the parcel is voided, or in a final status), `Validation`, and
    /// those of every call.
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// # client.orders().create(&order).await?; // SB-SUCCESS-0001
    /// # let folder = tempfile::tempdir()?;
    /// use parcelo::{IdempotencyKey, LabelFormat, ReprintRequest, TrackingNumber};
    ///
    /// let number = TrackingNumber::parse("SB-SUCCESS-0001")?;
    /// let request = ReprintRequest::new(IdempotencyKey::random()).with_reason("Label torn");
    /// let label = client.labels().reprint(&number, &request).await?;
    /// assert_eq!(label.version, 2);
    /// client.labels().download(&number, LabelFormat::Zpl).save_in(&folder).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn reprint(
        &self,
        number: &TrackingNumber,
        request: &ReprintRequest,
    ) -> Call<Reply<LabelMetadata>> {
        let operation = Operation::ReprintLabel;
        let unsent = UnsentRequest::with_parameter(&self.client, operation, number.as_str())
            .idempotency_key(&request.idempotency_key)
            .json_body(request);
        Call::enveloped(&self.client, unsent)
    }
}

const INVALID_LINK: Texts =
    ("The label link is not a valid URL.", "El enlace de la etiqueta no es una URL válida.");
const UNKNOWN_HOST: Texts = (
    "The label link leads to a host that is not configured for labels.",
    "El enlace apunta a un servidor que no está configurado para etiquetas.",
);

fn parse_link(link: &str, client: &Client) -> Result<Url, Error> {
    if has_whitespace_or_control(link) {
        return Err(Error::config(INVALID_LINK));
    }
    let url = Url::parse(link).map_err(|error| Error::config(INVALID_LINK).with_source(error))?;
    if is_label_host(&url, client) { Ok(url) } else { Err(Error::config(UNKNOWN_HOST)) }
}

/// Returns `true` for the service's origin, and for the configured hosts over https or on this machine.
fn is_label_host(link: &Url, client: &Client) -> bool {
    let has_credentials = !link.username().is_empty() || link.password().is_some();
    let is_named = |host: &String| link.host_str().is_some_and(|is| is.eq_ignore_ascii_case(host));
    let is_safe = link.scheme() == "https" || (link.scheme() == "http" && is_loopback(link));
    !has_credentials
        && (link.origin() == client.base_url().origin()
            || (is_safe && client.shared.label_hosts.iter().any(is_named)))
}
