//! The lines of an address below the names: street, town, country, telephone number and ID.

use parcelo_types::CountryCode;

use super::{
    page::{Page, TextSlot, fits_into, regular, shown_bytes},
    text::to_single_line,
    text_fit::TextStyle,
    town,
};

/// The gap between two parts of a line.
const GAP: &str = "   ";
/// The usual sizes of an address's lines.
pub(super) const SENDER_SIZES: &[u32] = &[26, 24, 22, 20];
/// Sizes that are tried before the text is truncated with an ellipsis.
const SMALLEST_SIZES: &[u32] = &[18, 16];

/// A field and its text, as it was sent.
type Field<'a> = (&'static str, &'a str);

/// The lines of an address below the names.
pub(super) struct AddressLines<'a> {
    /// The fields of the street.
    pub(super) street_parts: [Field<'a>; 2],
    pub(super) street: String,
    /// The fields of the line with the city.
    pub(super) city_parts: [Field<'a>; 3],
    pub(super) city: String,
    pub(super) country_code: CountryCode,
    pub(super) country: String,
    pub(super) phone: String,
    pub(super) id: String,
}

impl AddressLines<'_> {
    pub(super) fn draw(&self, page: &mut Page, slots: &[TextSlot]) {
        let Some(last) = slots.last() else { return };
        let (street, tail) = self.split_slots(slots);
        let style =
            fitting_style(&self.street, last.style, street).unwrap_or(regular(SENDER_SIZES));
        let used = page.add_lines(&self.street, style, street);
        let tail = std::iter::once(&self.city).chain(&tail);
        for (text, slot) in tail.zip(slots.get(used..).unwrap_or_default()) {
            let style = fitting_style(text, last.style, &[*slot]).unwrap_or(regular(SENDER_SIZES));
            page.add_line(text, TextSlot { style, ..*slot });
        }
    }

    /// Returns the fields whose text is truncated. Of several fields on a line, these are the fields that end after the
    /// ellipsis.
    pub(super) fn truncated_fields(&self, slots: &[TextSlot]) -> Vec<&'static str> {
        let Some(last) = slots.last() else { return Vec::new() };
        let (street, tail) = self.split_slots(slots);
        let shown = |text: &str, slots: &[TextSlot]| match fitting_style(text, last.style, slots) {
            Some(_) => text.len(),
            None => shown_bytes(text, regular(SENDER_SIZES), slots),
        };
        let cleaned = |(field, text): Field<'_>| (field, to_single_line(text));
        let street_fields = self.street_parts.into_iter().map(cleaned);
        let mut truncated =
            fields_ending_after(shown(&self.street, street), &self.street, street_fields);
        let line = [*last];
        let town = town::order_parts(self.country_code, self.city_parts).map(cleaned);
        truncated.extend(fields_ending_after(shown(&self.city, &line), &self.city, town));
        for text in &tail {
            // In a truncated line, the ID is after the telephone number.
            let fields = [("phone", &self.phone), ("nationalId", &self.id)];
            let fields = fields.into_iter().map(|(field, text)| (field, text.clone()));
            truncated.extend(fields_ending_after(shown(text, &line), text, fields));
        }
        truncated
    }

    /// Returns `true` if nothing has to be truncated and the street does not need the smallest sizes.
    pub(super) fn fits(&self, slots: &[TextSlot]) -> bool {
        let Some(last) = slots.last() else { return false };
        let (street, tail) = self.split_slots(slots);
        fits_into(&self.street, regular(SENDER_SIZES), street)
            && std::iter::once(&self.city).chain(&tail).all(|text| fits_on_line(text, last))
    }

    /// Divides the lines: returns the slots that the street may take, and the texts below the city. Country and
    /// telephone number share a line if the street needs another one.
    fn split_slots<'a>(&self, slots: &'a [TextSlot]) -> (&'a [TextSlot], Vec<String>) {
        let Some(last) = slots.last() else { return (slots, Vec::new()) };
        let (street, _) = slots.split_at(slots.len().saturating_sub(3));
        let tail = if fits_into(&self.street, last.style, street) {
            self.two_lines(last)
        } else {
            vec![self.one_line(last)]
        };
        let (street, _) = slots.split_at(slots.len().saturating_sub(tail.len() + 1));
        (street, tail)
    }

    /// Returns two lines: the country with the ID, and the telephone number. If the ID does not fit, it gets its own
    /// line.
    fn two_lines(&self, slot: &TextSlot) -> Vec<String> {
        let country = join_with_gap(&self.country, &self.id);
        if fits_on_line(&country, slot) {
            vec![country, self.phone.clone()]
        } else {
            vec![join_with_gap(&self.country, &self.phone), self.id.clone()]
        }
    }

    /// Returns country, ID and telephone number in one line. If the line is too long, the ID comes last and is
    /// truncated.
    fn one_line(&self, slot: &TextSlot) -> String {
        let line = join_with_gap(&join_with_gap(&self.country, &self.id), &self.phone);
        if fits_on_line(&line, slot) {
            line
        } else {
            join_with_gap(&join_with_gap(&self.country, &self.phone), &self.id)
        }
    }
}

/// Returns the fields that end after the first `shown` bytes of a line, which has the fields in this order.
fn fields_ending_after(
    shown: usize,
    line: &str,
    fields: impl Iterator<Item = (&'static str, String)>,
) -> Vec<&'static str> {
    if shown == line.len() {
        return Vec::new();
    }
    let mut end = 0;
    let truncated = fields.filter_map(|(field, text)| {
        end += line.get(end..)?.find(&text)? + text.len();
        (end > shown && !text.is_empty()).then_some(field)
    });
    truncated.collect()
}

/// Joins two parts of a line.
fn join_with_gap(left: &str, right: &str) -> String {
    if right.is_empty() { left.to_owned() } else { format!("{left}{GAP}{right}") }
}

/// Returns the largest style in which the text fits uncut.
fn fitting_style(text: &str, style: TextStyle, slots: &[TextSlot]) -> Option<TextStyle> {
    let styles = [style, regular(SENDER_SIZES), regular(SMALLEST_SIZES)];
    styles.into_iter().find(|style| fits_into(text, *style, slots))
}

fn fits_on_line(text: &str, slot: &TextSlot) -> bool {
    fits_into(text, regular(SMALLEST_SIZES), &[*slot])
}
