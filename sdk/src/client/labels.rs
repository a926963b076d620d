//! Labels. How a file is downloaded is decided in [`download`](super::download).

use url::Url;

use super::{
    Client, Error, LabelDownload, Reply,
    address::{has_whitespace_or_control, is_loopback},
    call::Call,
    error::Texts,
};
use crate::model::{LabelFormat, LabelMetadata, Operation, ReprintRequest, TrackingNumber};

/// Label files, what is known about a label, and reprints; from [`Client::labels`].
#[derive(Debug, Clone, Copy)]
pub struct Labels<'a> {
    client: &'a Client,
}

impl Client {
    /// Labels: download, look up, reprint.
    pub fn labels(&self) -> Labels<'_> {
        Labels { client: self }
    }
}

impl<'a> Labels<'a> {
    /// A label file of 4 × 6 inches, at most 16 MiB; say where it shall go.
    ///
    /// Errors: `NotFound` (no parcel, or no label yet), `Conflict` (the parcel was voided), `Decode`
    /// (the answer is a page or JSON, such as that of a proxy that asks for a login), and those of
    /// every call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
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
    pub fn download(self, number: &'a TrackingNumber, format: LabelFormat) -> LabelDownload<'a> {
        LabelDownload::new(self.client, number, format)
    }

    /// A label file by its link, `labelUrl` or one of `downloads`, which opens without the API key:
    /// the key is not sent.
    ///
    /// Errors: `Config` when the link is not to the service's own address or to one of
    /// [`ClientBuilder::labels_hosts`](crate::client::ClientBuilder::labels_hosts), and those of
    /// [`Labels::download`].
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
    /// # let folder = tempfile::tempdir()?;
    /// let created = client.orders().create(&order).await?;
    /// let link = created.parcel.label_url.as_deref().ok_or("the answer has no link")?;
    /// let label = client.labels().download_link(link)?;
    /// let file = label.save_in(&folder).await?;
    /// println!("{}", file.display());
    /// # Ok(())
    /// # }
    /// ```
    pub fn download_link(self, link: &str) -> Result<LabelDownload<'a>, Error> {
        if has_whitespace_or_control(link) {
            return Err(Error::config(BAD_LINK));
        }
        let url = Url::parse(link).map_err(|fault| Error::config(BAD_LINK).with_source(fault))?;
        if is_known(&url, self.client) {
            Ok(LabelDownload::from_link(self.client, url))
        } else {
            Err(Error::config(FOREIGN_LINK))
        }
    }

    /// What is known about a label; readable also after its order was voided.
    ///
    /// Errors: `NotFound` (no parcel, or no label yet), and those of every call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
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
    pub async fn metadata(self, number: &TrackingNumber) -> Result<Reply<LabelMetadata>, Error> {
        self.client.enveloped(Call::new(Operation::GetLabel).path_parameter(number.as_str())).await
    }

    /// Makes a label anew: the same number and address, a mark `R1`, `R2`… on the paper.
    ///
    /// Errors: `NotFound`, `Conflict` (voided, or the parcel's journey is over), `Validation`, and
    /// those of every call.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = parcelo_server::mock::MockServer::start().await;
    /// # let client = server.client(&server.key().issue());
    /// # let order: parcelo::OrderRequest = serde_json::from_str(parcelo_server::mock::sample::ORDER)?;
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
    pub async fn reprint(
        self,
        number: &TrackingNumber,
        request: &ReprintRequest,
    ) -> Result<Reply<LabelMetadata>, Error> {
        let call = Call::new(Operation::ReprintLabel).path_parameter(number.as_str());
        self.client
            .enveloped(call.idempotency_key(&request.idempotency_key).json_body(request)?)
            .await
    }
}

const BAD_LINK: Texts = ("The label link is no address.", "El enlace no es una dirección.");
const FOREIGN_LINK: Texts = (
    "The label link is to a host that labels are not fetched from.",
    "El enlace apunta a un servidor del que no se descargan etiquetas.",
);

/// True for the service's own origin, and for the hosts that the client was told of: over https, or
/// on this machine.
fn is_known(link: &Url, client: &Client) -> bool {
    let bare = link.username().is_empty() && link.password().is_none();
    let named = |host: &String| link.host_str().is_some_and(|is| is.eq_ignore_ascii_case(host));
    let safe = link.scheme() == "https" || (link.scheme() == "http" && is_loopback(link));
    bare && (link.origin() == client.base_url().origin()
        || (safe && client.labels_hosts().iter().any(named)))
}
