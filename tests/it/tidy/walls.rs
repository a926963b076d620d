//! Who may know whom: what a folder of the product must not name, by the resolved names of its imports
//! and paths. Test code is free.

use std::collections::BTreeMap;

use super::{
    assert_none,
    imports::Crate,
    sources::{is_word, rust_under},
};

/// Files whose path starts with `folder`, those of `except` aside, name nothing that starts with one of
/// `forbidden`.
struct Wall {
    folder: &'static str,
    except: &'static [&'static str],
    forbidden: &'static [&'static [&'static str]],
}

const fn wall(folder: &'static str, forbidden: &'static [&'static [&'static str]]) -> Wall {
    Wall { folder, except: &[], forbidden }
}

const SHELL: &[&str] = &["crate::http", "crate::mock", "crate::process", "crate::webhook"];
const HTTP: &[&str] = &["axum", "hyper", "reqwest"];
const CLIENT: &[&str] = &["crate::client", "crate::blocking", "reqwest", "tokio"];
const WORLD: &[&str] = &["std::fs", "tokio", "crate::clock::Clock", "crate::clock::SystemClock"];
const SOCKETS: &[&str] = &[
    "std::net::TcpListener",
    "std::net::TcpStream",
    "std::net::UdpSocket",
    "tokio::net::TcpListener",
    "tokio::net::TcpStream",
    "tokio::net::UdpSocket",
];

const WALLS: &[Wall] = &[
    wall("sdk/src/model/", &[CLIENT, &["crate::rules", "crate::webhook"]]),
    wall("sdk/src/rules/", &[CLIENT, &["crate::webhook", "getrandom"]]),
    wall("sdk/src/webhook/", &[CLIENT, &["crate::rules", "getrandom"]]),
    wall(
        "server/src/domain/",
        &[SHELL, HTTP, WORLD, &["crate::service", "crate::store", "crate::label"]],
    ),
    wall("server/src/label/", &[SHELL, HTTP, WORLD, &["crate::service", "crate::store"]]),
    wall("server/src/store/", &[SHELL, HTTP, &["crate::service", "crate::label"]]),
    wall("server/src/service/", &[SHELL, HTTP]),
    wall(
        "server/src/webhook/",
        &[&[
            "crate::http",
            "crate::mock",
            "crate::process",
            "crate::store",
            "crate::label",
            "axum",
        ]],
    ),
    wall("server/src/http/", &[&["crate::mock", "crate::process", "crate::webhook", "reqwest"]]),
    Wall { folder: "server/src/", except: &["server/src/store/"], forbidden: &[&["rusqlite"]] },
    Wall {
        folder: "server/src/",
        except: &[
            "server/src/http/",
            "server/src/mock/",
            "server/src/process/serve",
            "server/src/webhook/",
        ],
        forbidden: &[SOCKETS],
    },
    Wall { folder: "cli/", except: &["cli/commands/listen.rs"], forbidden: &[SOCKETS] },
];

#[test]
fn no_module_looks_behind_its_wall() {
    let mut faults = Vec::new();
    for root in ["sdk/src/lib.rs", "cli/main.rs", "server/src/lib.rs"] {
        for (file, name) in Crate::in_repository(root).names() {
            let name = name.join("::");
            let broken = WALLS.iter().any(|wall| breaks(wall, file, &name));
            faults.extend(broken.then(|| format!("{file}: {name}")));
        }
    }
    assert_none("a module names what its place forbids", &faults);
}

fn breaks(wall: &Wall, file: &str, name: &str) -> bool {
    file.starts_with(wall.folder)
        && !wall.except.iter().any(|free| file.starts_with(free))
        && wall
            .forbidden
            .iter()
            .copied()
            .flatten()
            .any(|start| name.strip_prefix(start).is_some_and(|rest| !rest.starts_with(is_word)))
}

#[test]
fn a_wall_stops_what_it_forbids_and_nothing_else() {
    let wall = Wall { except: &["x/free"], ..wall("x/", &[&["crate::store"], &["tokio"]]) };
    let table = [
        ("x/a.rs", "crate::store::Store", true),
        ("x/a.rs", "tokio::net::TcpListener", true),
        ("x/a.rs", "crate::stores::Store", false),
        ("x/a.rs", "crate::ids", false),
        ("x/free/a.rs", "tokio::spawn", false),
        ("y/a.rs", "tokio::spawn", false),
    ];
    for (file, name, broken) in table {
        assert_eq!(breaks(&wall, file, name), broken, "{file}: {name}");
    }
}

/// Statuses of successes, and the one that a bug has.
const NOT_IN_THE_TABLE: &[&str] = &["OK", "CREATED", "NOT_MODIFIED", "INTERNAL_SERVER_ERROR"];

#[test]
fn status_numbers_are_in_the_error_table() {
    let mut faults = Vec::new();
    for (file, name) in Crate::in_repository("server/src/lib.rs").names() {
        let [.., kind, status] = &*name else { continue };
        let is_constant = status.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        // The schedule of webhooks reads the answers of others.
        if kind == "StatusCode" && is_constant && !file.ends_with("webhooks/retry.rs") {
            let known = NOT_IN_THE_TABLE.contains(&&**status);
            faults.extend((!known).then(|| format!("{file}: {status}")));
        }
    }
    assert_none("an error's HTTP status is read from ErrorCode::status", &faults);
}

/// A reset hides rows before it deletes them, so a read of the tables would show what is gone. A query for
/// ids alone shows nothing: their rows are read through the views.
#[test]
fn reads_of_the_store_see_nothing_that_a_reset_hides() {
    let mut faults = Vec::new();
    for source in rust_under(&["server/src/store/"]) {
        let erases = ["erase.rs", "resets.rs", "reset_counts.rs", "connection.rs"];
        if source.is_test() || erases.iter().any(|file| source.path.ends_with(file)) {
            continue;
        }
        for table in ["parcels", "manifests", "idempotency", "outbox"] {
            for word in ["FROM", "JOIN"] {
                for (at, read) in source.without_tests().match_indices(&format!("{word} {table} "))
                {
                    let before = &source.text[..at];
                    let shows_nothing = ["DELETE ", "max(id) ", "\"SELECT id "];
                    if word == "JOIN" || !shows_nothing.iter().any(|start| before.ends_with(start))
                    {
                        faults.push(format!("{}: {read}", source.at(at)));
                    }
                }
            }
        }
    }
    assert_none(
        "reads name living_parcels, living_manifests, living_idempotency, living_outbox",
        &faults,
    );
}

/// What a reader of the first page can take in.
const ROOT_NAMES: usize = 50;

#[test]
fn every_name_of_the_sdk_has_one_path() {
    let sdk = Crate::in_repository("sdk/src/lib.rs");
    let modules: &[&[&str]] =
        &[&[], &["calls"], &["transport"], &["blocking"], &["model"], &["rules"], &["webhook"]];
    let mut paths = BTreeMap::<_, Vec<_>>::new();
    for module in modules {
        for (name, origin) in sdk.exports(module) {
            assert_ne!(name, "*", "the SDK exports names one by one: {origin:?}");
            paths.entry(origin).or_default().push(format!("{}::{name}", module.join("::")));
        }
    }
    let twice = paths.into_values().filter(|places| places.len() > 1);
    assert_none(
        "a name of the SDK has two paths",
        &twice.map(|it| it.join(", ")).collect::<Vec<_>>(),
    );
    let names = sdk.exports(&[]).count();
    assert!((20..=ROOT_NAMES).contains(&names), "{names} names are re-exported at the root");
}
