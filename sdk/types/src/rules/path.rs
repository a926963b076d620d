//! The path of a value in a body, in wire spelling: `receiver.address.zipCode`, `products[0].sku`.

use std::fmt;

/// A path, linked to its parent. It is written out only for a fault or a warning, so that reading a valid field
/// allocates nothing.
#[derive(Clone, Copy)]
pub(crate) struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Body,
    Member(&'a str),
    Item(usize),
}

/// Maximum length of a name in a path, in characters. Longer ones are cut, because the caller chose them and the
/// response repeats them.
const MAX_SHOWN_NAME_CHARS: usize = 64;

impl<'a> Path<'a> {
    /// The body itself.
    pub(crate) const BODY: Path<'static> = Path { parent: None, step: Step::Body };

    /// Returns a member of the object at this path.
    pub(crate) fn member(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Member(name) }
    }

    /// Returns an element of the list at this path.
    pub(crate) fn item(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Item(index) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inside = self.parent.filter(|parent| !matches!(parent.step, Step::Body));
        if let Some(parent) = inside {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Body => f.write_str("body"),
            Step::Item(index) => write!(f, "[{index}]"),
            Step::Member(name) => {
                if inside.is_some() {
                    f.write_str(".")?;
                }
                f.write_str(shorten_name(name))
            }
        }
    }
}

/// Returns a member's name, shortened to the maximum length.
pub(crate) fn shorten_name(name: &str) -> &str {
    name.char_indices()
        .nth(MAX_SHOWN_NAME_CHARS)
        .and_then(|(end, _)| name.get(..end))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_spelled_as_on_the_wire() {
        let products = Path::BODY.member("products");
        let item = products.item(3);
        assert_eq!(Path::BODY.to_string(), "body");
        assert_eq!(item.to_string(), "products[3]");
        assert_eq!(item.member("quantity").to_string(), "products[3].quantity");
        assert_eq!(Path::BODY.member(&"ñ".repeat(99)).to_string(), "ñ".repeat(64));
    }
}
