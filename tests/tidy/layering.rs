//! Layering: dependencies that a folder must not have, such as those of the store on HTTP. Between crates, Cargo.toml
//! already enforces some of these rules; the test also catches a change of Cargo.toml that would break them. Imports
//! and paths are resolved to full names first. Test code is exempt.

use super::{CRATES, assert_none, imports::Crate, sources::is_word};

/// A rule for the files under `folder`, except those under `except`: they must not use a name that starts with one of
/// `forbidden`.
struct LayerRule {
    folder: &'static str,
    except: &'static [&'static str],
    forbidden: &'static [&'static [&'static str]],
}

const fn rule(folder: &'static str, forbidden: &'static [&'static [&'static str]]) -> LayerRule {
    LayerRule { folder, except: &[], forbidden }
}

/// The modules around the service, which nothing inside it may use.
const OUTER_MODULES: &[&str] = &["crate::http", "crate::mail", "crate::mock", "crate::webhook"];
const HTTP_CRATES: &[&str] = &["axum", "hyper", "reqwest"];
const CLIENT_MODULES: &[&str] = &["crate::client", "crate::blocking", "reqwest", "tokio"];
const IO_AND_CLOCK: &[&str] = &["std::fs", "tokio", "parcelo_system"];
const DATABASES: &[&str] = &["rusqlite", "tokio_postgres"];
/// Names that the senders of webhooks and e-mails must not use: the service gives them what is to be sent.
const NOT_FOR_SENDERS: &[&str] =
    &["crate::http", "crate::mock", "parcelo_store", "parcelo_label", "axum"];
/// Names that the operators' pages and API must not use: the service does the work.
const NOT_FOR_OPERATORS: &[&str] =
    &["parcelo_service::mail", "parcelo_service::mock", "parcelo_service::webhook", "reqwest"];
const SOCKETS: &[&str] = &[
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "tokio::net::TcpListener",
    "tokio::net::TcpStream",
    "tokio::net::UdpSocket",
];

const LAYER_RULES: &[LayerRule] = &[
    rule("sdk/types/src/", &[HTTP_CRATES, IO_AND_CLOCK]),
    rule("sdk/types/src/model/", &[&["crate::rules"]]),
    rule("sdk/types/src/rules/", &[&["getrandom"]]),
    // reqwest's types stay out of the SDK's signatures.
    LayerRule {
        folder: "sdk/src/",
        except: &["sdk/src/client/builder/", "sdk/src/client/reqwest_transport.rs"],
        forbidden: &[&["reqwest"]],
    },
    rule("sdk/src/webhook/", &[CLIENT_MODULES, &["parcelo_types::rules", "getrandom"]]),
    rule("server/domain/src/", &[HTTP_CRATES, IO_AND_CLOCK, DATABASES]),
    rule("server/label/src/", &[HTTP_CRATES, IO_AND_CLOCK, DATABASES, &["parcelo_store"]]),
    rule("server/store/src/", &[HTTP_CRATES, &["parcelo_label"]]),
    rule("server/process/src/", &[DATABASES]),
    rule("server/process/src/admin/", &[NOT_FOR_OPERATORS]),
    rule("server/process/src/dashboard/", &[NOT_FOR_OPERATORS]),
    rule(
        "server/process/src/smtp",
        &[NOT_FOR_SENDERS, &["parcelo_service::http", "parcelo_service::mock"]],
    ),
    rule("server/service/src/", &[DATABASES]),
    rule("server/wire/src/", &[HTTP_CRATES, IO_AND_CLOCK, DATABASES]),
    rule("server/service/src/service/", &[OUTER_MODULES, HTTP_CRATES]),
    rule("server/service/src/webhook/", &[NOT_FOR_SENDERS]),
    rule("server/service/src/mail/", &[NOT_FOR_SENDERS]),
    rule(
        "server/service/src/http/",
        &[&["crate::mail", "crate::mock", "crate::webhook", "reqwest"]],
    ),
    LayerRule {
        folder: "server/",
        except: &[
            "server/process/src/serve",
            "server/service/src/http/",
            "server/service/src/mock/",
            "server/service/src/webhook/",
            "server/store/src/postgres/test_util/",
        ],
        forbidden: &[SOCKETS],
    },
    LayerRule { folder: "cli/", except: &["cli/commands/listen.rs"], forbidden: &[SOCKETS] },
];

#[test]
fn no_folder_uses_a_forbidden_dependency() {
    let mut violations = Vec::new();
    for root in CRATES {
        for (file, name) in Crate::in_repository(root).names() {
            let name = name.join("::");
            let broken = LAYER_RULES.iter().any(|rule| violates(rule, file, &name));
            violations.extend(broken.then(|| format!("{file}: {name}")));
        }
    }
    assert_none("a folder uses a forbidden dependency", &violations);
}

fn violates(rule: &LayerRule, file: &str, name: &str) -> bool {
    file.starts_with(rule.folder)
        && !rule.except.iter().any(|exempt| file.starts_with(exempt))
        && rule
            .forbidden
            .iter()
            .copied()
            .flatten()
            .any(|start| name.strip_prefix(start).is_some_and(|rest| !rest.starts_with(is_word)))
}
