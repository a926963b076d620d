//! The two address blocks. An address is only cut if no line can be freed for it.

use parcelo::{CountryCode, Language, OrderRequest};

use super::{
    element::Span,
    label_text,
    page::{Page, TextSlot, bold, fits_into, regular, span},
    text::{clean, join},
    text_fit::Style,
};

/// Right end of the lines beside the QR box, 1 mm from it.
const BESIDE_QR: u32 = 494;
/// Between two parts of one line.
const GAP: &str = "   ";

const FROM_SIZES: &[u32] = &[26, 24, 22, 20];
/// Tried before an ellipsis.
const FINE_SIZES: &[u32] = &[18, 16];
const TO_SIZES: &[u32] = &[36, 34, 32, 30, 28, 26];
const NAME_SIZES: &[u32] = &[44, 40, 36, 32, 28];
const LONG_NAME_SIZES: &[u32] = &[34, 32, 30, 28];

/// FROM / REMITENTE.
pub(super) fn from(page: &mut Page, order: &OrderRequest) {
    let across = span(32, 492);
    page.line(label_text::FROM, TextSlot::new(212, across, bold(&[20])));
    let sender = &order.sender;
    let company = sender.company_name.as_deref().unwrap_or_default();
    let name = join([company, &sender.full_name], " — ");
    page.line(&name, TextSlot::new(242, across, bold(FROM_SIZES)));

    let at = &sender.address;
    let region = join([or_empty(at.state.as_ref()), or_empty(at.zip_code.as_ref())], " ");
    let block = Block {
        street: join([at.line1.as_str(), or_empty(at.line2.as_ref())], ", "),
        city: join([at.city.as_str(), &region], ", "),
        country: country(at.country),
        phone: clean(&sender.phone),
        id: String::new(),
    };
    block.draw(page, &[272, 302, 332, 362].map(|y| TextSlot::new(y, across, regular(FROM_SIZES))));
}

/// TO / DESTINATARIO.
pub(super) fn to(page: &mut Page, order: &OrderRequest) {
    let beside = span(32, BESIDE_QR);
    page.line(label_text::TO, TextSlot::new(410, beside, bold(&[20])));
    let lines = [
        (490, beside),
        (528, span(32, 780)),
        (566, span(32, 780)),
        (604, span(32, 780)),
        (642, span(32, 780)),
    ];
    let lines = lines.map(|(y, across)| TextSlot::new(y, across, regular(TO_SIZES)));
    let used = receiver_name(page, &clean(&order.receiver.full_name), beside);
    receiver(order).draw(page, lines.get(used..).unwrap_or_default());
}

/// Returns how many lines of the address a long name has taken: one, or none.
fn receiver_name(page: &mut Page, name: &str, beside: Span) -> usize {
    let first = TextSlot::new(452, beside, bold(NAME_SIZES));
    if fits_into(name, first.style, &[first]) {
        page.line(name, first);
        return 0;
    }
    let second = TextSlot { baseline: 490, ..first };
    page.lines(name, bold(LONG_NAME_SIZES), &[first, second]);
    1
}

fn receiver(order: &OrderRequest) -> Block {
    let receiver = &order.receiver;
    let at = &receiver.address;
    let town = join([or_empty(at.zip_code.as_ref()), at.city.as_str()], " ");
    let id = clean(receiver.national_id.as_deref().unwrap_or_default());
    let kind = label_text::id_type(receiver.id_type.as_ref());
    let id = if id.is_empty() { id } else { format!("{kind} {id}") };
    Block {
        street: clean(&at.line1),
        city: join([town.as_str(), or_empty(at.province.as_ref())], ", "),
        country: country(at.country),
        phone: clean(&receiver.phone),
        id,
    }
}

/// The lines of an address below the name.
struct Block {
    street: String,
    city: String,
    country: String,
    phone: String,
    id: String,
}

impl Block {
    /// Country and telephone share a line if the street needs one more.
    fn draw(&self, page: &mut Page, slots: &[TextSlot]) {
        let Some(last) = slots.last() else { return };
        let (street, _) = slots.split_at(slots.len().saturating_sub(3));
        let tail = if fits_into(&self.street, last.style, street) {
            self.two_lines(last)
        } else {
            vec![self.one_line(last)]
        };
        let (street, _) = slots.split_at(slots.len().saturating_sub(tail.len() + 1));
        let used = page.lines(&self.street, smaller(&self.street, last.style, street), street);
        let tail = std::iter::once(&self.city).chain(&tail);
        for (text, slot) in tail.zip(slots.get(used..).unwrap_or_default()) {
            page.line(text, TextSlot { style: smaller(text, last.style, &[*slot]), ..*slot });
        }
    }

    /// Country and ID, telephone; an ID that does not fit beside the country gets its own line.
    fn two_lines(&self, slot: &TextSlot) -> Vec<String> {
        let country = beside(&self.country, &self.id);
        if is_whole(&country, slot) {
            vec![country, self.phone.clone()]
        } else {
            vec![beside(&self.country, &self.phone), self.id.clone()]
        }
    }

    /// Country, ID and telephone; if that is too long, the ID is cut.
    fn one_line(&self, slot: &TextSlot) -> String {
        let line = beside(&beside(&self.country, &self.id), &self.phone);
        if is_whole(&line, slot) {
            line
        } else {
            beside(&beside(&self.country, &self.phone), &self.id)
        }
    }
}

/// Two parts on one line.
fn beside(left: &str, right: &str) -> String {
    if right.is_empty() { left.to_owned() } else { format!("{left}{GAP}{right}") }
}

/// The style in which a text fits, smaller rather than cut.
fn smaller(text: &str, style: Style, slots: &[TextSlot]) -> Style {
    let styles = [style, regular(FROM_SIZES), regular(FINE_SIZES)];
    let whole = styles.into_iter().find(|style| fits_into(text, *style, slots));
    whole.unwrap_or(regular(FROM_SIZES))
}

fn is_whole(text: &str, slot: &TextSlot) -> bool {
    fits_into(text, regular(FINE_SIZES), &[*slot])
}

fn country(code: CountryCode) -> String {
    format!("{} ({code})", code.name(Language::En).to_uppercase())
}

fn or_empty(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}
