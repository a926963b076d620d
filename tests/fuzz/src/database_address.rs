//! Database URLs: no message shows any part of the password, whatever characters it contains, escaped or not.

use parcelo_server::internals::Address;

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "database_address", check, cases: 5_000 };

/// The part of the password that must not be shown.
const CANARY: &str = "kx9vq2";

/// Forms of URLs, in which `{}` stands for the password.
const URL_TEMPLATES: [&str; 4] = [
    "postgres://parcelo:{}@db.example:5432/parcelo?sslmode=require",
    "postgresql://parcelo:{}@/parcelo?host=/run/postgresql",
    "postgres://parcelo:{}@one.example,two.example/parcelo?target_session_attrs=read-write",
    "postgres://parcelo@db.example/parcelo?connect_timeout=3&password={}",
];

fn check(input: &[u8]) {
    let Ok(password) = std::str::from_utf8(input) else { return };
    if password.to_lowercase().contains(CANARY) {
        return;
    }
    let middle = password.char_indices().nth(password.chars().count() / 2).map_or(0, |(at, _)| at);
    for at in [0, middle, password.len()] {
        let (start, end) = password.split_at(at);
        let unescaped = format!("{start}{CANARY}{end}");
        let escaped: String = url::form_urlencoded::byte_serialize(unescaped.as_bytes()).collect();
        let escaped = escaped.replace('+', "%20");
        for template in URL_TEMPLATES {
            // In a query, an unescaped `&` starts the next parameter: `password=ab&host=cd` names a host, which may be
            // shown.
            if !(template.ends_with("password={}") && start.contains('&')) {
                assert_hidden(&template.replace("{}", &unescaped));
            }
            let address = Address::parse(&template.replace("{}", &escaped));
            assert!(address.is_ok(), "an escaped password is refused: {unescaped:?} {address:?}");
            assert_hidden(&template.replace("{}", &escaped));
        }
    }
}

fn assert_hidden(text: &str) {
    let message = match Address::parse(text) {
        Ok(address) => format!("{address} {address:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!message.to_lowercase().contains(CANARY), "{text} is shown as {message}");
}
