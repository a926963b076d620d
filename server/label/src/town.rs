//! The address line with city, state or province, and postal code.

use parcelo_domain::Layout;
use parcelo_types::{CountryCode, ReceiverAddress, SenderAddress, internal::town_line};

use super::text::{join, to_single_line};

/// Returns the town line of a sender's address, in the order of the layout.
pub(super) fn sender_line(layout: Layout, address: &SenderAddress) -> String {
    let (state, zip) = (or_empty(address.state.as_ref()), or_empty(address.zip_code.as_ref()));
    match layout {
        Layout::First => join([address.city.as_str(), &join([state, zip], " ")], ", "),
        Layout::Second => town_line(
            address.country,
            [&to_single_line(&address.city), &to_single_line(state), &to_single_line(zip)],
        ),
    }
}

/// Returns the town line of a receiver's address, in the order of the layout.
pub(super) fn receiver_line(layout: Layout, address: &ReceiverAddress) -> String {
    let (province, zip) =
        (or_empty(address.province.as_ref()), or_empty(address.zip_code.as_ref()));
    match layout {
        Layout::First => join([&join([zip, address.city.as_str()], " "), province], ", "),
        Layout::Second => town_line(
            address.country,
            [&to_single_line(&address.city), &to_single_line(province), &to_single_line(zip)],
        ),
    }
}

/// Returns the parts in the order in which a new label shows them.
pub(super) fn order_parts<T: Copy>(country: CountryCode, parts: [T; 3]) -> impl Iterator<Item = T> {
    let line = town_line(country, ["0", "1", "2"]).into_bytes();
    line.into_iter()
        .filter_map(move |digit| parts.get(usize::from(digit.wrapping_sub(b'0'))).copied())
}

fn or_empty(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}
