//! GET /docs/: the API's guide in both languages, from a key to a delivered parcel. It lists every call with a link
//! into the [reference](super::swagger). A test runs its commands in their order.

use askama::Template;
use axum::{extract, response::Response};
use parcelo_domain::{State, scenario::SCENARIOS};
use parcelo_types::{Environment, Language, Operation, ParcelStatus};

use super::{Api, HttpRefusal, body, docs::html_page, openapi::operation_group, public, response};

/// The first order in Rust, copied from the SDK's guide, where it is compiled.
const FIRST_ORDER: &str = include_str!("../../templates/docs/first_order.txt");

/// A group of calls: its name, and a description of each call, in English and in Spanish.
type Group = (&'static str, &'static str, &'static [(Operation, &'static str, &'static str)]);

/// The calls in the order in which a newcomer needs them; the legacy API comes last.
#[rustfmt::skip]
const GROUPS: &[Group] = &[
    ("Orders", "Pedidos", &[
        (Operation::CreateOrder, "Creates an order with its label.", "Crea un pedido con su etiqueta."),
        (Operation::VoidOrders, "Voids up to 100 orders.", "Anula hasta 100 pedidos."),
        (Operation::GetOrder, "Reads an order as it was accepted.", "Lee un pedido tal como se aceptó."),
        (Operation::ListParcels, "Lists parcels, newest first.", "Lista los paquetes, los más recientes primero."),
    ]),
    ("Labels and papers", "Etiquetas y documentos", &[
        (Operation::DownloadLabel, "Downloads a label as PDF, PNG or ZPL.", "Descarga una etiqueta en PDF, PNG o ZPL."),
        (Operation::BatchLabels, "Downloads up to 100 labels as one file.", "Descarga hasta 100 etiquetas en un solo archivo."),
        (Operation::GetLabel, "Reads a label's metadata.", "Lee los datos de una etiqueta."),
        (Operation::ReprintLabel, "Makes a new version of a label.", "Genera una versión nueva de una etiqueta."),
        (Operation::DownloadInvoice, "Downloads a parcel's commercial invoice.", "Descarga la factura comercial de un paquete."),
    ]),
    ("Manifests", "Manifiestos", &[
        (Operation::SubmitManifest, "Submits a manifest under an air waybill.", "Envía un manifiesto con una guía aérea."),
        (Operation::GetManifest, "Reads a manifest.", "Lee un manifiesto."),
    ]),
    ("Tracking", "Rastreo", &[
        (Operation::GetTracking, "Tracks one parcel.", "Rastrea un paquete."),
        (Operation::BatchTracking, "Tracks up to 100 parcels.", "Rastrea hasta 100 paquetes."),
        (Operation::PublicTracking, "Tracks one parcel without a key.", "Rastrea un paquete sin clave."),
    ]),
    ("Key and sandbox", "Clave y entorno de pruebas", &[
        (Operation::Health, "Checks the key.", "Verifica la clave."),
        (Operation::ResetSandbox, "Deletes all data of your sandbox.", "Borra todos los datos de su entorno de pruebas."),
    ]),
    ("For carriers", "Para transportistas", &[
        (Operation::PushCarrierEvents, "Reports a carrier's scans.", "Reporta los escaneos de un transportista."),
    ]),
    ("Legacy API", "API anterior", &[
        (Operation::LegacyCreateOrder, "Creates an order.", "Crea un pedido."),
        (Operation::LegacyCancelOrder, "Voids an order.", "Anula un pedido."),
        (Operation::LegacyTracking, "Tracks up to 20 parcels.", "Rastrea hasta 20 paquetes."),
        (Operation::LegacyLabel, "Downloads a label by its name.", "Descarga una etiqueta por su nombre."),
    ]),
];

#[derive(Template)]
#[template(path = "docs/guide.html")]
struct Guide {
    es: bool,
    language: &'static str,
    other: &'static str,
    /// The sandbox's address, which the guide's commands call.
    sandbox: String,
    rust: &'static str,
    scenarios: Vec<(&'static str, String)>,
    groups: Vec<GroupView>,
    version: &'static str,
}

struct GroupView {
    name: &'static str,
    calls: Vec<CallView>,
}

struct CallView {
    method: &'static str,
    path: &'static str,
    about: &'static str,
    /// The anchor of the call in the reference.
    anchor: String,
}

/// Handles GET /docs/ in the language of `?lang=`, else in the caller's.
pub(super) async fn page(
    extract::State(api): extract::State<Api>,
    request: extract::Request,
) -> Result<Response, HttpRefusal> {
    let chosen = body::query_parameter(request.uri().query(), "lang");
    let chosen = chosen.and_then(|tag| public::parse_language(&tag));
    let language = chosen.unwrap_or_else(|| body::preferred_language(request.headers()));
    let sandbox = api.service.site(Environment::Sandbox).base_url().to_owned();
    Ok(html_page(response::render(&Guide::new(language, sandbox))?))
}

impl Guide {
    fn new(language: Language, sandbox: String) -> Self {
        Self {
            es: matches!(language, Language::Es),
            language: language.code(),
            other: language.pick(Language::Es, Language::En).code(),
            sandbox,
            rust: FIRST_ORDER.trim_end(),
            scenarios: SCENARIOS.iter().map(|s| (s.prefix, steps_text(s.steps))).collect(),
            groups: GROUPS.iter().map(|group| group_view(group, language)).collect(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// Returns steps as text, such as `IN_TRANSIT 5, DELIVERED 20`.
fn steps_text(steps: &[(i64, State)]) -> String {
    let texts =
        steps.iter().map(|(minutes, state)| format!("{} {minutes}", ParcelStatus::from(*state)));
    texts.collect::<Vec<_>>().join(", ")
}

fn group_view((en, es, calls): &Group, language: Language) -> GroupView {
    let call = |(operation, en, es): &(Operation, &'static str, &'static str)| CallView {
        method: operation.method().as_str(),
        path: operation.path(),
        about: language.pick(en, es),
        anchor: format!("reference#/{}/{}", operation_group(*operation), operation.name()),
    };
    GroupView { name: language.pick(en, es), calls: calls.iter().map(call).collect() }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, path::Path};

    use super::*;

    #[test]
    fn calls_are_listed_once_orders_first_and_the_legacy_api_last() {
        let listed: Vec<_> = GROUPS.iter().flat_map(|(.., calls)| *calls).map(|c| c.0).collect();
        assert_eq!(listed.iter().collect::<HashSet<_>>(), Operation::ALL.iter().collect());
        assert_eq!(listed.len(), Operation::ALL.len());
        assert_eq!(listed.first(), Some(&Operation::CreateOrder));
        assert!(listed.is_sorted_by_key(|operation| operation.is_legacy()), "{listed:?}");
    }

    /// Compares with the first code block of the SDK's guide, without the lines that are hidden there.
    #[test]
    fn the_rust_example_is_the_one_in_the_sdks_guide() {
        let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/guide.md");
        let guide = std::fs::read_to_string(guide).unwrap();
        let block = guide.split("```\n").nth(1).unwrap();
        let is_shown = |line: &&str| !line.starts_with("# ");
        let shown: Vec<_> = block.lines().filter(is_shown).collect();
        assert_eq!(FIRST_ORDER.trim_end(), shown.join("\n").trim_end());
    }

    #[test]
    fn both_languages_have_the_same_commands() {
        let [en, es] = [Language::En, Language::Es].map(|language| {
            Guide::new(language, "https://api.example".to_owned()).render().unwrap()
        });
        let commands = |page: &str| page.matches("<pre><code class=").count();
        assert_eq!(commands(&en), commands(&es));
        assert!(en.contains("<h2>The first order</h2>") && !en.contains("El primer pedido"));
        assert!(es.contains("<h2>El primer pedido</h2>") && !es.contains("The first order"));
    }
}
