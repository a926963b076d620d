//! The address line with city, state or province, and postal code.

use parcelo::{CountryCode, ReceiverAddress, SenderAddress, rules::town_line};

use super::text::{clean, join};
use crate::domain::Layout;

pub(super) fn of_sender(layout: Layout, at: &SenderAddress) -> String {
    let (state, zip) = (or_empty(at.state.as_ref()), or_empty(at.zip_code.as_ref()));
    match layout {
        Layout::First => join([at.city.as_str(), &join([state, zip], " ")], ", "),
        Layout::Second => town_line(at.country, [&clean(&at.city), &clean(state), &clean(zip)]),
    }
}

pub(super) fn of_receiver(layout: Layout, at: &ReceiverAddress) -> String {
    let (province, zip) = (or_empty(at.province.as_ref()), or_empty(at.zip_code.as_ref()));
    match layout {
        Layout::First => join([&join([zip, at.city.as_str()], " "), province], ", "),
        Layout::Second => town_line(at.country, [&clean(&at.city), &clean(province), &clean(zip)]),
    }
}

/// Returns the parts in the order in which a new label shows them.
pub(super) fn in_order<T: Copy>(country: CountryCode, parts: [T; 3]) -> impl Iterator<Item = T> {
    let places = town_line(country, ["0", "1", "2"]).into_bytes();
    places
        .into_iter()
        .filter_map(move |place| parts.get(usize::from(place.wrapping_sub(b'0'))).copied())
}

fn or_empty(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}
