//! Forbidden dependencies between folders, by the resolved names of imports and paths. Test code is exempt.

use super::{assert_none, imports::Crate, sources::is_word};

/// A rule for the files whose path starts with `folder`, except for `except`: they name nothing that starts with one of
/// `forbidden`.
struct Wall {
    folder: &'static str,
    except: &'static [&'static str],
    forbidden: &'static [&'static [&'static str]],
}

const fn wall(folder: &'static str, forbidden: &'static [&'static [&'static str]]) -> Wall {
    Wall { folder, except: &[], forbidden }
}

const SHELL: &[&str] =
    &["crate::http", "crate::mail", "crate::mock", "crate::process", "crate::webhook"];
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
    wall(
        "server/src/mail/",
        &[&[
            "crate::http",
            "crate::mock",
            "crate::process",
            "crate::store",
            "crate::label",
            "axum",
        ]],
    ),
    wall(
        "server/src/http/",
        &[&["crate::mail", "crate::mock", "crate::process", "crate::webhook", "reqwest"]],
    ),
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
    assert_none("a folder uses a forbidden dependency", &faults);
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
