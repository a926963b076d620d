//! The two address blocks. An address is cut only if no line can be freed for it.

use parcelo::{CountryCode, Language, OrderRequest, Receiver, Sender};

use super::{
    LabelData,
    element::Span,
    font::{Weight, width},
    label_text,
    page::{Page, TextSlot, bold, fits_into, regular, shown_bytes, shown_in, span},
    text::{clean, join},
    text_fit::Style,
    town,
};
use crate::domain::Layout;

/// The span of the receiver's lines, and their right end next to the QR box, 1 mm from it.
const TO: Span = span(32, 780);
const BESIDE_QR: u32 = 494;
/// The gap between two parts of a line.
const GAP: &str = "   ";

const FROM_SIZES: &[u32] = &[26, 24, 22, 20];
/// Sizes that are tried before the text is cut with an ellipsis.
const FINE_SIZES: &[u32] = &[18, 16];
const FROM_NAME: Style = bold(&[26, 24, 22, 20, 18, 16]);
const TO_SIZES: &[u32] = &[36, 34, 32, 30, 28, 26];
/// Sizes for the lines that are closer together.
const DENSE_SIZES: &[u32] = &[24, 22, 20];

/// Baselines of five lines, 30 dots apart, and of six closer lines for an address that does not fit into five.
const FROM_LINES: [u32; 5] = [242, 272, 302, 332, 362];
const DENSE_FROM_LINES: [u32; 6] = [238, 263, 288, 313, 338, 363];

const FROM: Span = span(32, 492);

/// Draws the sender's block: FROM / REMITENTE.
pub(super) fn from(page: &mut Page, data: &LabelData<'_>) {
    page.line(label_text::FROM, TextSlot::new(212, FROM, bold(&[20])));
    sender(data.order, data.layout).draw(page);
}

/// Draws the receiver's block: TO / DESTINATARIO. The person has the largest type, with the company below.
pub(super) fn to(page: &mut Page, data: &LabelData<'_>) {
    page.line(label_text::TO, TextSlot::new(410, span(TO.left, BESIDE_QR), bold(&[20])));
    receiver(data.order, data.layout).draw(page);
}

/// Returns the fields of sender and receiver that are cut.
pub(super) fn cut_fields(order: &OrderRequest, layout: Layout) -> Vec<String> {
    let mut cut = Vec::new();
    if !is_sender_short(&order.sender) {
        let fields = sender(order, layout);
        cut.extend(fields.cut_fields().map(|field| format!("sender.{field}")));
    }
    if !is_receiver_short(&order.receiver) {
        let fields = receiver(order, layout);
        cut.extend(fields.cut_fields().map(|field| format!("receiver.{field}")));
    }
    cut
}

/// Returns `true` if each line fits in the smallest type, so that nothing is cut in any arrangement. This is enough for
/// most orders, and saves some sixty allocations.
fn is_sender_short(sender: &Sender) -> bool {
    let (at, across) = (&sender.address, FROM.width());
    let is_line = |parts: &[&str]| is_short(parts, (Weight::Regular, FINEST), across);
    [or_empty(sender.company_name.as_ref()), &sender.full_name]
        .iter()
        .all(|name| is_short(&[name], (Weight::Bold, FINEST), across))
        && is_line(&[&at.line1, or_empty(at.line2.as_ref())])
        && is_line(&[&at.city, or_empty(at.state.as_ref()), or_empty(at.zip_code.as_ref())])
        && is_line(&[&country(at.country), &sender.phone])
}

/// Returns `true` if each line of the receiver fits in the smallest type. Below the QR box, the lines are wider.
fn is_receiver_short(receiver: &Receiver) -> bool {
    let (at, beside, below) = (&receiver.address, BESIDE_QR - TO.left, TO.width());
    let (company, id) =
        (or_empty(receiver.company_name.as_ref()), label_text::id_type(receiver.id_type.as_ref()));
    let is_line = |parts: &[&str], across| is_short(parts, (Weight::Regular, FINEST), across);
    is_short(&[&receiver.full_name], (Weight::Bold, FINEST_NAME), beside)
        && is_short(&[company], (Weight::Bold, FINEST), beside)
        && is_line(&[&at.line1, or_empty(at.line2.as_ref())], beside)
        && is_line(
            &[&at.city, or_empty(at.province.as_ref()), or_empty(at.zip_code.as_ref())],
            below,
        )
        && is_line(
            &[&country(at.country), id, or_empty(receiver.national_id.as_ref()), &receiver.phone],
            below,
        )
}

/// The smallest size of a line, and of the receiver's name on one line.
const FINEST: u32 = 16;
const FINEST_NAME: u32 = 28;
/// An upper bound for all gaps in a line of that size, in dots.
const MAX_GAPS: u32 = 48;

/// Returns `true` if the parts surely fit into one line. Parts that [`clean`] might widen count as too long.
fn is_short(parts: &[&str], (weight, size): (Weight, u32), across: u32) -> bool {
    let is_plain = |part: &&str| part.chars().all(|c| c < '\u{300}' && !c.is_control());
    let dots: u32 = parts.iter().map(|part| width(part, weight, size)).sum();
    parts.iter().all(is_plain) && dots + MAX_GAPS <= across
}

/// An address with the lines reserved for it.
struct AddressBlock<'a> {
    names: Vec<Name>,
    block: Block<'a>,
    rest: Vec<TextSlot>,
}

struct Name {
    field: &'static str,
    text: String,
    style: Style,
    slots: Vec<TextSlot>,
}

impl Name {
    fn new(field: &'static str, text: String, style: Style, slots: &[TextSlot]) -> Self {
        let slots = slots.iter().map(|slot| TextSlot { style, ..*slot }).collect();
        Self { field, text, style, slots }
    }
}

impl AddressBlock<'_> {
    fn draw(&self, page: &mut Page) {
        for name in &self.names {
            page.lines(&name.text, name.style, &name.slots);
        }
        self.block.draw(page, &self.rest);
    }

    fn cut_fields(&self) -> impl Iterator<Item = &'static str> {
        let cut = self.names.iter().filter(|name| !shown_in(&name.text, name.style, &name.slots));
        cut.map(|name| name.field).chain(self.block.cut_fields(&self.rest))
    }
}

fn sender(order: &OrderRequest, layout: Layout) -> AddressBlock<'_> {
    let sender = &order.sender;
    let company = clean(sender.company_name.as_deref().unwrap_or_default());
    let names = [("companyName", company), ("fullName", clean(&sender.full_name))];
    let count = names.iter().filter(|(_, name)| !name.is_empty()).count();
    let at = &sender.address;
    let [line2, state, zip] =
        [&at.line2, &at.state, &at.zip_code].map(|text| or_empty(text.as_ref()));
    let block = Block {
        fields: [("address.line1", &at.line1), ("address.line2", line2)],
        street: join([at.line1.as_str(), line2], ", "),
        town: [("address.city", &at.city), ("address.state", state), ("address.zipCode", zip)],
        city: town::of_sender(layout, at),
        code: at.country,
        country: country(at.country),
        phone: clean(&sender.phone),
        id: String::new(),
    };
    let usual = FROM_LINES.map(|y| TextSlot::new(y, FROM, regular(FROM_SIZES)));
    let dense = DENSE_FROM_LINES.map(|y| TextSlot::new(y, FROM, regular(DENSE_SIZES)));
    let fits = block.fits(usual.get(count..).unwrap_or_default());
    let slots = if fits { &usual[..] } else { &dense };
    let (own, rest) = slots.split_at(count);
    let names = names.into_iter().filter(|(_, name)| !name.is_empty()).zip(own.chunks(1));
    let names = names.map(|((field, name), slot)| Name::new(field, name, FROM_NAME, slot));
    AddressBlock { names: names.collect(), block, rest: rest.to_vec() }
}

/// An arrangement of the receiver's lines. The first lines are next to the QR box.
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

/// The arrangement for an address that does not fit into the usual lines: two more lines, in smaller type.
const DENSE: Arrangement = Arrangement {
    beside_qr: [446, 476],
    below_qr: &[514, 540, 566, 592, 618, 644],
    name: bold(&[36, 32, 28]),
    long_name: bold(&[28, 26, 24]),
    company: bold(&[24, 22, 20, 18, 16]),
    address: regular(DENSE_SIZES),
};

impl Arrangement {
    /// Returns the lines, and how many of them the name takes: one, or two if it is long.
    fn lines(&self, name: &str) -> (Vec<TextSlot>, usize) {
        let beside =
            self.beside_qr.map(|y| TextSlot::new(y, span(TO.left, BESIDE_QR), self.address));
        let below = self.below_qr.iter().map(|y| TextSlot::new(*y, TO, self.address));
        let (first, _) = beside.split_at(1);
        let names = if fits_into(name, self.name, first) { 1 } else { beside.len() };
        (beside.into_iter().chain(below).collect(), names)
    }
}

fn receiver(order: &OrderRequest, layout: Layout) -> AddressBlock<'_> {
    let name = clean(&order.receiver.full_name);
    let company = clean(order.receiver.company_name.as_deref().unwrap_or_default());
    let block = receiver_block(order, layout);
    let companies = usize::from(!company.is_empty());
    let (lines, names) = USUAL.lines(&name);
    let fits = block.fits(lines.get(names + companies..).unwrap_or_default());
    let arrangement = if fits { USUAL } else { DENSE };
    let (lines, names) = arrangement.lines(&name);
    let (own, rest) = lines.split_at(names);
    let style = if names == 1 { arrangement.name } else { arrangement.long_name };
    let name = Name::new("fullName", name, style, own);
    let (own, rest) = rest.split_at(companies);
    let company = Name::new("companyName", company, arrangement.company, own);
    AddressBlock { names: vec![name, company], block, rest: rest.to_vec() }
}

fn receiver_block(order: &OrderRequest, layout: Layout) -> Block<'_> {
    let receiver = &order.receiver;
    let at = &receiver.address;
    let id = clean(receiver.national_id.as_deref().unwrap_or_default());
    let kind = label_text::id_type(receiver.id_type.as_ref());
    let id = if id.is_empty() { id } else { format!("{kind} {id}") };
    let [line2, province, zip] =
        [&at.line2, &at.province, &at.zip_code].map(|text| or_empty(text.as_ref()));
    Block {
        fields: [("address.line1", &at.line1), ("address.line2", line2)],
        street: join([at.line1.as_str(), line2], ", "),
        town: [
            ("address.city", &at.city),
            ("address.province", province),
            ("address.zipCode", zip),
        ],
        city: town::of_receiver(layout, at),
        code: at.country,
        country: country(at.country),
        phone: clean(&receiver.phone),
        id,
    }
}

/// A field and its text, as it was sent.
type Field<'a> = (&'static str, &'a str);

/// The lines of an address below the names.
struct Block<'a> {
    /// The fields in the street.
    fields: [Field<'a>; 2],
    street: String,
    /// The fields in the line of the city.
    town: [Field<'a>; 3],
    city: String,
    code: CountryCode,
    country: String,
    phone: String,
    id: String,
}

impl Block<'_> {
    fn draw(&self, page: &mut Page, slots: &[TextSlot]) {
        let Some(last) = slots.last() else { return };
        let (street, tail) = self.divide(slots);
        let style = fitting_style(&self.street, last.style, street).unwrap_or(regular(FROM_SIZES));
        let used = page.lines(&self.street, style, street);
        let tail = std::iter::once(&self.city).chain(&tail);
        for (text, slot) in tail.zip(slots.get(used..).unwrap_or_default()) {
            let style = fitting_style(text, last.style, &[*slot]).unwrap_or(regular(FROM_SIZES));
            page.line(text, TextSlot { style, ..*slot });
        }
    }

    /// Returns the fields that are cut. Of several fields in a line, these are the fields that end after the ellipsis.
    fn cut_fields(&self, slots: &[TextSlot]) -> Vec<&'static str> {
        let Some(last) = slots.last() else { return Vec::new() };
        let (street, tail) = self.divide(slots);
        let shown = |text: &str, slots: &[TextSlot]| match fitting_style(text, last.style, slots) {
            Some(_) => text.len(),
            None => shown_bytes(text, regular(FROM_SIZES), slots),
        };
        let cleaned = |(field, text): Field<'_>| (field, clean(text));
        let street_fields = self.fields.into_iter().map(cleaned);
        let mut cut = fields_beyond(shown(&self.street, street), &self.street, street_fields);
        let line = [*last];
        let town = town::in_order(self.code, self.town).map(cleaned);
        cut.extend(fields_beyond(shown(&self.city, &line), &self.city, town));
        for text in &tail {
            // In a line that is cut, the ID is after the telephone number.
            let fields = [("phone", &self.phone), ("nationalId", &self.id)];
            let fields = fields.into_iter().map(|(field, text)| (field, text.clone()));
            cut.extend(fields_beyond(shown(text, &line), text, fields));
        }
        cut
    }

    /// Returns `true` if nothing has to be cut and the street does not need the fine sizes.
    fn fits(&self, slots: &[TextSlot]) -> bool {
        let Some(last) = slots.last() else { return false };
        let (street, tail) = self.divide(slots);
        fits_into(&self.street, regular(FROM_SIZES), street)
            && std::iter::once(&self.city).chain(&tail).all(|text| is_whole(text, last))
    }

    /// Returns the lines that the street may take, and the texts below the city. Country and telephone number share a
    /// line if the street needs another line.
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

    /// Returns the country with the ID, and the telephone number. If the ID does not fit, it gets its own line.
    fn two_lines(&self, slot: &TextSlot) -> Vec<String> {
        let country = beside(&self.country, &self.id);
        if is_whole(&country, slot) {
            vec![country, self.phone.clone()]
        } else {
            vec![beside(&self.country, &self.phone), self.id.clone()]
        }
    }

    /// Returns country, ID and telephone number in one line. If it is too long, the ID comes last and is cut.
    fn one_line(&self, slot: &TextSlot) -> String {
        let line = beside(&beside(&self.country, &self.id), &self.phone);
        if is_whole(&line, slot) {
            line
        } else {
            beside(&beside(&self.country, &self.phone), &self.id)
        }
    }
}

/// Returns the fields that end beyond the first `shown` bytes of a line with the fields in this order.
fn fields_beyond(
    shown: usize,
    line: &str,
    fields: impl Iterator<Item = (&'static str, String)>,
) -> Vec<&'static str> {
    if shown == line.len() {
        return Vec::new();
    }
    let mut end = 0;
    let cut = fields.filter_map(|(field, text)| {
        end += line.get(end..)?.find(&text)? + text.len();
        (end > shown && !text.is_empty()).then_some(field)
    });
    cut.collect()
}

/// Joins two parts of a line.
fn beside(left: &str, right: &str) -> String {
    if right.is_empty() { left.to_owned() } else { format!("{left}{GAP}{right}") }
}

/// Returns the largest style in which the text fits uncut.
fn fitting_style(text: &str, style: Style, slots: &[TextSlot]) -> Option<Style> {
    let styles = [style, regular(FROM_SIZES), regular(FINE_SIZES)];
    styles.into_iter().find(|style| fits_into(text, *style, slots))
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
