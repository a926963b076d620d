//! The addresses that webhooks may be sent to. Customers choose the URLs of endpoints, so this keeps them from reaching
//! private networks through the server (SSRF).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use parcelo_types::{
    Environment, Language,
    internal::is_invisible,
    model::{FaultCode, FieldFault},
};
use url::{Host, Url};

/// Maximum length of an endpoint's URL in characters.
pub const MAX_URL_CHARS: usize = 500;

/// The addresses that webhooks may be sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AllowedHosts {
    /// Public addresses, by https.
    Public,
    /// Public addresses, also by http.
    PublicByHttp,
    /// Public addresses and this machine, also by http.
    PublicAndLoopback,
    /// Any address, because the operator allows it.
    Any,
}

/// The addresses that an operator allows in addition to public ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WebhookAllowance {
    /// Private addresses, and http in production too.
    pub private: bool,
    /// This machine, from the sandbox.
    pub sandbox_loopback: bool,
}

/// A reason to refuse an endpoint's URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text(Language::En))]
pub enum InvalidWebhookUrl {
    /// Longer than 500 characters.
    TooLong,
    /// It has an invisible character, which some URL parsers drop.
    InvisibleCharacter,
    /// Not a web URL.
    Malformed,
    /// It contains a user name or a password.
    Credentials,
    /// Plain http where https is needed.
    NotHttps,
    /// An address that webhooks are not sent to.
    NotPublic,
}

impl InvalidWebhookUrl {
    /// Returns a sentence that says what to do.
    pub fn text(self, language: Language) -> &'static str {
        match self {
            Self::TooLong => language.pick(
                "A webhook's address has at most 500 characters.",
                "La dirección de un webhook tiene como máximo 500 caracteres.",
            ),
            Self::InvisibleCharacter => language.pick(
                "The webhook's address contains an invisible character: type it again without it.",
                "La dirección del webhook tiene un carácter que no se ve: escríbala de nuevo sin él.",
            ),
            Self::Malformed => language.pick(
                "Enter a full URL, such as https://shop.example/parcelo.",
                "Escriba una URL completa, como https://tienda.example/parcelo.",
            ),
            Self::Credentials => language.pick(
                "Leave user and password out of the webhook's address; verify the signature instead.",
                "No ponga usuario ni contraseña en la dirección del webhook; en su lugar, verifique la firma.",
            ),
            Self::NotHttps => language.pick(
                "In production a webhook's address begins with https.",
                "En producción, la dirección de un webhook empieza con https.",
            ),
            Self::NotPublic => language.pick(
                "The webhook's address is not a public one: events are sent to public addresses only.",
                "La dirección del webhook no es pública: los eventos solo se envían a direcciones públicas.",
            ),
        }
    }

    /// Converts it to the fault of a request's `url`.
    pub fn to_fault(self) -> FieldFault {
        FieldFault::new(
            "url",
            if self == Self::TooLong { FaultCode::TooLong } else { FaultCode::InvalidFormat },
            (self.text(Language::En), self.text(Language::Es)),
        )
    }
}

impl AllowedHosts {
    /// Returns the addresses that the webhooks of an environment may be sent to.
    pub const fn for_environment(environment: Environment, allowed: WebhookAllowance) -> Self {
        match (environment, allowed) {
            (_, WebhookAllowance { private: true, .. }) => Self::Any,
            (Environment::Production, _) => Self::Public,
            (Environment::Sandbox, WebhookAllowance { sandbox_loopback: true, .. }) => {
                Self::PublicAndLoopback
            }
            (Environment::Sandbox, _) => Self::PublicByHttp,
        }
    }

    /// Returns `true` if an address may be reached.
    pub fn allows(self, address: IpAddr) -> bool {
        match self {
            Self::Public | Self::PublicByHttp => is_public(address),
            Self::PublicAndLoopback => is_public(address) || address.to_canonical().is_loopback(),
            Self::Any => true,
        }
    }
}

/// Parses and checks an endpoint's URL. Names are resolved only when something is sent.
pub fn check_url(text: &str, allowed_hosts: AllowedHosts) -> Result<Url, InvalidWebhookUrl> {
    if text.chars().count() > MAX_URL_CHARS {
        return Err(InvalidWebhookUrl::TooLong);
    }
    if text.chars().any(|c| c.is_control() || is_invisible(c)) {
        return Err(InvalidWebhookUrl::InvisibleCharacter);
    }
    let url = Url::parse(text).map_err(|_| InvalidWebhookUrl::Malformed)?;
    match (url.scheme(), allowed_hosts) {
        ("https", _)
        | (
            "http",
            AllowedHosts::PublicByHttp | AllowedHosts::PublicAndLoopback | AllowedHosts::Any,
        ) => {}
        ("http", AllowedHosts::Public) => return Err(InvalidWebhookUrl::NotHttps),
        _ => return Err(InvalidWebhookUrl::Malformed),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(InvalidWebhookUrl::Credentials);
    }
    let literal: Option<IpAddr> = match url.host() {
        Some(Host::Ipv4(address)) => Some(address.into()),
        Some(Host::Ipv6(address)) => Some(address.into()),
        // The only name whose address is known beforehand (RFC 6761).
        Some(Host::Domain(name)) => is_localhost(name).then_some(Ipv4Addr::LOCALHOST.into()),
        None => return Err(InvalidWebhookUrl::Malformed),
    };
    match literal {
        Some(address) if !allowed_hosts.allows(address) => Err(InvalidWebhookUrl::NotPublic),
        Some(_) | None => Ok(url),
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns `false` for the special addresses that IANA lists, and for a cloud's metadata address.
fn is_public_v4(address: Ipv4Addr) -> bool {
    !matches!(
        address.octets(),
        [0 | 10 | 127 | 224..=255, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 0, 0 | 2, _]
            | [192, 31, 196, _]
            | [192, 52, 193, _]
            | [192, 88, 99, _]
            | [192, 168, ..]
            | [192, 175, 48, _]
            | [198, 18..=19, ..]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [168, 63, 129, 16] // Azure's metadata, on an address that looks public
    )
}

/// Returns `true` for global unicast addresses that are not reserved. IPv4 inside IPv6 is treated as IPv4.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [.., e, f] = address.segments();
    let inside = Ipv4Addr::from((u32::from(e) << 16) | u32::from(f));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => is_public_v4(inside),
        [0x2001, 0..=0x1ff | 0xdb8, ..]
        | [0x2002, ..]
        | [0x2620, 0x4f, 0x8000, ..]
        | [0x3fff, 0..=0xfff, ..] => false,
        [0x2000..=0x3fff, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: &[&str] = &[
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "100.64.0.1",
        "100.100.100.200",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.254",
        "168.63.129.16",
        "169.254.0.1",
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.7",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::7f00:1",
        "::ffff:0:0",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b::10.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::8.8.8.8",
        "100::1",
        "2001::1",
        "2001:0:7f00:1::1",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::1",
        "2002:a00:1::1",
        "3fff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd00:ec2::254",
        "fdff:ffff::1",
        "fe80::1",
        "fe80::1:169.254.169.254",
        "fec0::1",
        "ff02::1",
    ];

    const PUBLIC: &[&str] = &[
        "1.1.1.1",
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "168.63.129.15",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "192.0.1.1",
        "192.167.255.255",
        "192.169.0.0",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:200::1",
        "2001:4860:4860::8888",
        "2606:4700:4700::1111",
        "2a00:1450:4001::1",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ];

    #[test]
    fn private_and_special_addresses_are_refused_in_any_notation() {
        for text in REFUSED {
            let address: IpAddr = text.parse().unwrap();
            assert!(!AllowedHosts::Public.allows(address), "{text}");
            assert!(!AllowedHosts::PublicByHttp.allows(address), "{text}");
            assert_eq!(
                AllowedHosts::PublicAndLoopback.allows(address),
                address.to_canonical().is_loopback(),
                "{text}"
            );
            assert!(AllowedHosts::Any.allows(address), "{text}");
        }
        for text in PUBLIC {
            let address: IpAddr = text.parse().unwrap();
            assert!(
                AllowedHosts::Public.allows(address)
                    && AllowedHosts::PublicAndLoopback.allows(address),
                "{text}"
            );
        }
    }

    #[test]
    fn this_machine_is_reached_from_the_sandbox_only_if_allowed() {
        let (none, loopback) = (
            WebhookAllowance::default(),
            WebhookAllowance { sandbox_loopback: true, ..WebhookAllowance::default() },
        );
        let private = WebhookAllowance { private: true, ..WebhookAllowance::default() };
        let table = [
            (Environment::Production, none, AllowedHosts::Public),
            (Environment::Production, loopback, AllowedHosts::Public),
            (Environment::Production, private, AllowedHosts::Any),
            (Environment::Sandbox, none, AllowedHosts::PublicByHttp),
            (Environment::Sandbox, loopback, AllowedHosts::PublicAndLoopback),
            (Environment::Sandbox, private, AllowedHosts::Any),
        ];
        for (environment, allowed, allowed_hosts) in table {
            assert_eq!(
                AllowedHosts::for_environment(environment, allowed),
                allowed_hosts,
                "{environment} {allowed:?}"
            );
        }
    }

    #[test]
    fn an_address_in_a_url_is_recognised_in_any_notation() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "0x7f.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "169.254.169.254",
            "[fd00:ec2::254]",
            "10.1",
        ] {
            let url = format!("https://{host}/hook");
            assert_eq!(
                check_url(&url, AllowedHosts::Public),
                Err(InvalidWebhookUrl::NotPublic),
                "{host}"
            );
        }
        for url in
            ["https://shop.example/hook?a=b", "https://8.8.8.8:8443", "https://ñandú.example"]
        {
            assert!(check_url(url, AllowedHosts::Public).is_ok(), "{url}");
        }
    }

    #[test]
    fn an_endpoint_is_a_short_https_url_without_credentials() {
        use InvalidWebhookUrl::{
            Credentials, InvisibleCharacter, Malformed, NotHttps, NotPublic, TooLong,
        };
        let long = format!("https://shop.example/{}", "ñ".repeat(480));
        let table = [
            ("http://shop.example", AllowedHosts::Public, Some(NotHttps)),
            ("http://shop.example", AllowedHosts::PublicAndLoopback, None),
            ("http://shop.example", AllowedHosts::PublicByHttp, None),
            ("http://127.0.0.1:9000/hook", AllowedHosts::PublicByHttp, Some(NotPublic)),
            ("http://127.0.0.1:9000/hook", AllowedHosts::PublicAndLoopback, None),
            ("http://localhost:9000/hook", AllowedHosts::PublicAndLoopback, None),
            ("http://localhost:9000/hook", AllowedHosts::PublicByHttp, Some(NotPublic)),
            ("https://LOCALHOST./hook", AllowedHosts::Public, Some(NotPublic)),
            ("https://shop.localhost/hook", AllowedHosts::Public, Some(NotPublic)),
            ("https://localhost.example/hook", AllowedHosts::Public, None),
            ("http://10.0.0.7/hook", AllowedHosts::PublicAndLoopback, Some(NotPublic)),
            ("http://10.0.0.7/hook", AllowedHosts::Any, None),
            ("https://user@shop.example", AllowedHosts::Public, Some(Credentials)),
            ("https://:word@shop.example", AllowedHosts::Public, Some(Credentials)),
            ("ftp://shop.example", AllowedHosts::Any, Some(Malformed)),
            ("file:///etc/passwd", AllowedHosts::Any, Some(Malformed)),
            ("shop.example/hook", AllowedHosts::Any, Some(Malformed)),
            ("https://", AllowedHosts::Public, Some(Malformed)),
            (&long, AllowedHosts::Public, Some(TooLong)),
            ("https://shop.example/\nhook", AllowedHosts::Public, Some(InvisibleCharacter)),
            ("https://sh\top.example", AllowedHosts::Public, Some(InvisibleCharacter)),
            ("https://shop.example/hook\r\n", AllowedHosts::Public, Some(InvisibleCharacter)),
            ("\0https://shop.example", AllowedHosts::Public, Some(InvisibleCharacter)),
            ("https://shop.example/\u{1b}[31m", AllowedHosts::Public, Some(InvisibleCharacter)),
            ("https://shop.example/\u{202E}kooh", AllowedHosts::Public, Some(InvisibleCharacter)),
            ("https://sho\u{AD}p.example", AllowedHosts::Public, Some(InvisibleCharacter)),
        ];
        for (url, allowed_hosts, refused) in table {
            assert_eq!(check_url(url, allowed_hosts).err(), refused, "{url} {allowed_hosts:?}");
        }
    }

    #[test]
    fn each_error_is_explained_in_both_languages_and_a_long_url_has_its_own_code() {
        use InvalidWebhookUrl::{
            Credentials, InvisibleCharacter, Malformed, NotHttps, NotPublic, TooLong,
        };
        for error in [Credentials, InvisibleCharacter, Malformed, NotHttps, NotPublic, TooLong] {
            let fault = error.to_fault();
            assert_ne!(fault.message, fault.message_es, "{error:?}");
            assert_eq!(fault.code == FaultCode::TooLong, error == TooLong, "{error:?}");
        }
    }
}
