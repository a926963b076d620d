//! The allow list of the sandbox's e-mails: tests must not write to customers, even if their orders have real
//! addresses.

use parcelo_wire::is_email;

/// An entry of the allow list: an address, or all addresses of a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedRecipient {
    /// One address, in lower case.
    Address(String),
    /// A domain with its `@`, in lower case; its subdomains are not included.
    Domain(String),
}

impl AllowedRecipient {
    /// Parses `address` or `@domain`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_lowercase();
        if is_email(&lower) {
            Ok(Self::Address(lower))
        } else if lower.starts_with('@') && is_email(&format!("x{lower}")) {
            Ok(Self::Domain(lower))
        } else {
            Err("expected an address such as test@shop.example, or a domain such as @shop.example"
                .to_owned())
        }
    }
}

/// The allow list that the operator configures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList(Vec<AllowedRecipient>);

impl AllowList {
    /// Creates a list of these recipients.
    pub const fn new(allowed: Vec<AllowedRecipient>) -> Self {
        Self(allowed)
    }

    /// Returns `true` if it allows no address.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns `true` if e-mails to an address are allowed.
    pub fn allows(&self, address: &str) -> bool {
        let lower = address.to_lowercase();
        let domain = lower.rfind('@').and_then(|at| lower.get(at..));
        self.0.iter().any(|allowed| match allowed {
            AllowedRecipient::Address(known) => *known == lower,
            AllowedRecipient::Domain(known) => domain == Some(known),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> AllowList {
        AllowList::new(entries.iter().map(|text| AllowedRecipient::parse(text).unwrap()).collect())
    }

    #[test]
    fn the_sandbox_writes_only_to_listed_recipients() {
        let list = list(&["Ana@Shop.Example", "@test.example"]);
        let table = [
            ("ana@shop.example", true),
            ("ANA@SHOP.EXAMPLE", true),
            ("luis@shop.example", false),
            ("anyone@test.example", true),
            ("anyone@TEST.example", true),
            ("anyone@sub.test.example", false),
            ("anyone@eviltest.example", false),
            ("x@test.example@evil.example", false),
            ("", false),
        ];
        for (address, allowed) in table {
            assert_eq!(list.allows(address), allowed, "{address}");
        }
        assert!(!AllowList::default().allows("ana@shop.example"));
    }

    #[test]
    fn an_entry_is_an_address_or_a_domain() {
        for bad in [
            "",
            "ana",
            "@",
            "@localhost",
            "shop.example",
            "a@b.example,c@d.example",
            "@a b.example",
        ] {
            assert!(AllowedRecipient::parse(bad).is_err(), "{bad}");
        }
    }
}
