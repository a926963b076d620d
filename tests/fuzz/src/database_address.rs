//! Database URLs: no message shows any part of the password, whatever characters it contains, escaped or not.

use parcelo_server::internals::Address;

use crate::Target;

pub(crate) const TARGET: Target = Target { name: "database_address", check, cases: 5_000 };

/// The part of the password that must not be shown.
const CANARY: &str = "kx9vq2";

const FORMS: [&str; 4] = [
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
        let typed = format!("{start}{CANARY}{end}");
        let escaped: String = url::form_urlencoded::byte_serialize(typed.as_bytes()).collect();
        let escaped = escaped.replace('+', "%20");
        for form in FORMS {
            // In a query, an unescaped `&` starts the next parameter: `password=ab&host=cd` names a host, which may be
            // shown.
            if !(form.ends_with("password={}") && start.contains('&')) {
                assert_hidden(&form.replace("{}", &typed));
            }
            let address = Address::parse(&form.replace("{}", &escaped));
            assert!(address.is_ok(), "an escaped password is refused: {typed:?} {address:?}");
            assert_hidden(&form.replace("{}", &escaped));
        }
    }
}

fn assert_hidden(text: &str) {
    let shown = match Address::parse(text) {
        Ok(address) => format!("{address} {address:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!shown.to_lowercase().contains(CANARY), "{text} is shown as {shown}");
}
