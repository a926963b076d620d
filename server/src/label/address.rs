//! The two address blocks. An address is only cut if no line can be freed for it.

use parcelo::{CountryCode, Language};

use super::{
    LabelData, label_text,
    page::{Page, TextSlot, bold, fits_into, regular, span},
    text::{clean, join},
    text_fit::Style,
    town,
};

/// Right end of the lines beside the QR box, 1 mm from it.
const BESIDE_QR: u32 = 494;
/// Between two parts of one line.
const GAP: &str = "   ";

const FROM_SIZES: &[u32] = &[26, 24, 22, 20];
/// Tried before an ellipsis.
const FINE_SIZES: &[u32] = &[18, 16];
const FROM_NAME: Style = bold(&[26, 24, 22, 20, 18, 16]);
const TO_SIZES: &[u32] = &[36, 34, 32, 30, 28, 26];
/// For the lines that are closer together.
const DENSE_SIZES: &[u32] = &[24, 22, 20];

/// Five lines, 30 dots apart, and six closer ones for an address that they cannot hold.
const FROM_LINES: [u32; 5] = [242, 272, 302, 332, 362];
const DENSE_FROM_LINES: [u32; 6] = [238, 263, 288, 313, 338, 363];

/// FROM / REMITENTE.
pub(super) fn from(page: &mut Page, data: &LabelData<'_>) {
    let across = span(32, 492);
    page.line(label_text::FROM, TextSlot::new(212, across, bold(&[20])));
    let sender = &data.order.sender;
    let names = [sender.company_name.as_deref().unwrap_or_default(), &sender.full_name].map(clean);
    let names: Vec<_> = names.into_iter().filter(|name| !name.is_empty()).collect();

    let at = &sender.address;
    let block = Block {
        street: join([at.line1.as_str(), or_empty(at.line2.as_ref())], ", "),
        city: town::of_sender(data.layout, at),
        country: country(at.country),
        phone: clean(&sender.phone),
        id: String::new(),
    };
    let usual = FROM_LINES.map(|y| TextSlot::new(y, across, regular(FROM_SIZES)));
    let dense = DENSE_FROM_LINES.map(|y| TextSlot::new(y, across, regular(DENSE_SIZES)));
    let fits = block.fits(usual.get(names.len()..).unwrap_or_default());
    let slots = if fits { &usual[..] } else { &dense };
    let (own, rest) = slots.split_at(names.len());
    for (name, slot) in names.iter().zip(own) {
        page.line(name, TextSlot { style: FROM_NAME, ..*slot });
    }
    block.draw(page, rest);
}

/// How the lines of the receiver are arranged: the first ones are beside the QR box.
struct Arrangement {
    beside_qr: [u32; 2],
    below_qr: &'static [u32],
    name: Style,
    long_name: Style,
    company: Style,
    address: Style,
}

const USUAL: Arrangement = Arrangement {
    beside_qr: [452, 490],
    below_qr: &[528, 566, 604, 642],
    name: bold(&[44, 40, 36, 32, 28]),
    long_name: bold(&[34, 32, 30, 28]),
    company: bold(&[32, 30, 28, 26, 24, 22, 20, 18, 16]),
    address: regular(TO_SIZES),
};

/// For an address that the usual lines cannot hold: two lines more, in smaller type.
const DENSE: Arrangement = Arrangement {
    beside_qr: [446, 476],
    below_qr: &[514, 540, 566, 592, 618, 644],
    name: bold(&[36, 32, 28]),
    long_name: bold(&[28, 26, 24]),
    company: bold(&[24, 22, 20, 18, 16]),
    address: regular(DENSE_SIZES),
};

impl Arrangement {
    /// The lines, and how many of them the name takes: one, or two for a long one.
    fn lines(&self, name: &str) -> (Vec<TextSlot>, usize) {
        let beside = self.beside_qr.map(|y| TextSlot::new(y, span(32, BESIDE_QR), self.address));
        let below = self.below_qr.iter().map(|y| TextSlot::new(*y, span(32, 780), self.address));
        let (first, _) = beside.split_at(1);
        let names = if fits_into(name, self.name, first) { 1 } else { beside.len() };
        (beside.into_iter().chain(below).collect(), names)
    }
}

/// TO / DESTINATARIO: the person in the largest type, the company below.
pub(super) fn to(page: &mut Page, data: &LabelData<'_>) {
    let order = data.order;
    page.line(label_text::TO, TextSlot::new(410, span(32, BESIDE_QR), bold(&[20])));
    let name = clean(&order.receiver.full_name);
    let company = clean(order.receiver.company_name.as_deref().unwrap_or_default());
    let block = receiver(data);
    let companies = usize::from(!company.is_empty());
    let (lines, names) = USUAL.lines(&name);
    let fits = block.fits(lines.get(names + companies..).unwrap_or_default());
    let arrangement = if fits { USUAL } else { DENSE };
    let (lines, names) = arrangement.lines(&name);
    let (own, rest) = lines.split_at(names);
    let style = if names == 1 { arrangement.name } else { arrangement.long_name };
    page.lines(&name, style, &styled(own, style));
    let (own, rest) = rest.split_at(companies);
    page.lines(&company, arrangement.company, &styled(own, arrangement.company));
    block.draw(page, rest);
}

fn styled(slots: &[TextSlot], style: Style) -> Vec<TextSlot> {
    slots.iter().map(|slot| TextSlot { style, ..*slot }).collect()
}

fn receiver(data: &LabelData<'_>) -> Block {
    let receiver = &data.order.receiver;
    let at = &receiver.address;
    let id = clean(receiver.national_id.as_deref().unwrap_or_default());
    let kind = label_text::id_type(receiver.id_type.as_ref());
    let id = if id.is_empty() { id } else { format!("{kind} {id}") };
    Block {
        street: join([at.line1.as_str(), or_empty(at.line2.as_ref())], ", "),
        city: town::of_receiver(data.layout, at),
        country: country(at.country),
        phone: clean(&receiver.phone),
        id,
    }
}

/// The lines of an address below the names.
struct Block {
    street: String,
    city: String,
    country: String,
    phone: String,
    id: String,
}

impl Block {
    fn draw(&self, page: &mut Page, slots: &[TextSlot]) {
        let Some(last) = slots.last() else { return };
        let (street, tail) = self.divide(slots);
        let used = page.lines(&self.street, smaller(&self.street, last.style, street), street);
        let tail = std::iter::once(&self.city).chain(&tail);
        for (text, slot) in tail.zip(slots.get(used..).unwrap_or_default()) {
            page.line(text, TextSlot { style: smaller(text, last.style, &[*slot]), ..*slot });
        }
    }

    /// True if nothing has to be cut, and the street not to be set in fine type.
    fn fits(&self, slots: &[TextSlot]) -> bool {
        let Some(last) = slots.last() else { return false };
        let (street, tail) = self.divide(slots);
        fits_into(&self.street, regular(FROM_SIZES), street)
            && std::iter::once(&self.city).chain(&tail).all(|text| is_whole(text, last))
    }

    /// The lines that the street may take, and what stands below the city. Country and telephone share a line if the
    /// street needs one more.
    fn divide<'a>(&self, slots: &'a [TextSlot]) -> (&'a [TextSlot], Vec<String>) {
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
