//! The address blocks of sender and receiver. An address is truncated only if no further line can be freed for it.

use parcelo_domain::Layout;
use parcelo_types::{CountryCode, Language, OrderRequest, Receiver, Sender};

use super::{
    LabelData,
    address_lines::{AddressLines, SENDER_SIZES},
    element::Span,
    font::{Weight, max_ascii_width, width},
    label_text,
    page::{Page, TextSlot, bold, fits_into, is_fully_shown, regular, span},
    text::{join, to_single_line},
    text_fit::TextStyle,
    town,
};

/// The span of the receiver's lines, and their right end next to the QR box, 1 mm away from it.
const RECEIVER_SPAN: Span = span(32, 780);
const RIGHT_BESIDE_QR: u32 = 494;

const SENDER_NAME: TextStyle = bold(&[26, 24, 22, 20, 18, 16]);
const RECEIVER_SIZES: &[u32] = &[36, 34, 32, 30, 28, 26];
/// Sizes for the lines that are closer together.
const DENSE_SIZES: &[u32] = &[24, 22, 20];

/// Baselines of five lines, 30 dots apart, and of six closer lines for an address that does not fit into five.
const SENDER_BASELINES: [u32; 5] = [242, 272, 302, 332, 362];
const DENSE_SENDER_BASELINES: [u32; 6] = [238, 263, 288, 313, 338, 363];

const SENDER_SPAN: Span = span(32, 492);

/// Draws the sender's block: FROM / REMITENTE.
pub(super) fn draw_sender(page: &mut Page, data: &LabelData<'_>) {
    page.add_line(label_text::FROM, TextSlot::new(212, SENDER_SPAN, bold(&[20])));
    sender(data.order, data.layout).draw(page);
}

/// Draws the receiver's block: TO / DESTINATARIO. The person has the largest type, with the company below.
pub(super) fn draw_receiver(page: &mut Page, data: &LabelData<'_>) {
    page.add_line(
        label_text::TO,
        TextSlot::new(410, span(RECEIVER_SPAN.left, RIGHT_BESIDE_QR), bold(&[20])),
    );
    receiver(data.order, data.layout).draw(page);
}

/// Returns the fields of sender and receiver whose text is truncated.
pub(super) fn truncated_fields(order: &OrderRequest, layout: Layout) -> Vec<String> {
    let mut truncated = Vec::new();
    if !is_sender_short(&order.sender) {
        let fields = sender(order, layout);
        truncated.extend(fields.truncated_fields().map(|field| format!("sender.{field}")));
    }
    if !is_receiver_short(&order.receiver) {
        let fields = receiver(order, layout);
        truncated.extend(fields.truncated_fields().map(|field| format!("receiver.{field}")));
    }
    truncated
}

/// Returns `true` if each line fits in the smallest type, so that nothing is truncated in any arrangement. This check
/// is enough for most orders, and saves about sixty allocations.
fn is_sender_short(sender: &Sender) -> bool {
    let (address, max_width) = (&sender.address, SENDER_SPAN.width());
    let is_line = |parts: &[&str]| is_short(parts, (Weight::Regular, MIN_SIZE), max_width);
    [or_empty(sender.company_name.as_ref()), &sender.full_name]
        .iter()
        .all(|name| is_short(&[name], (Weight::Bold, MIN_SIZE), max_width))
        && is_line(&[&address.line1, or_empty(address.line2.as_ref())])
        && is_line(&[
            &address.city,
            or_empty(address.state.as_ref()),
            or_empty(address.zip_code.as_ref()),
        ])
        && is_line(&[&country(address.country), &sender.phone])
}

/// Returns `true` if each line of the receiver fits in the smallest type. Below the QR box, the lines are wider.
fn is_receiver_short(receiver: &Receiver) -> bool {
    let (address, beside, below) =
        (&receiver.address, RIGHT_BESIDE_QR - RECEIVER_SPAN.left, RECEIVER_SPAN.width());
    let (company, id) = (
        or_empty(receiver.company_name.as_ref()),
        label_text::id_type_name(receiver.id_type.as_ref()),
    );
    let is_line =
        |parts: &[&str], max_width| is_short(parts, (Weight::Regular, MIN_SIZE), max_width);
    is_short(&[&receiver.full_name], (Weight::Bold, MIN_NAME_SIZE), beside)
        && is_short(&[company], (Weight::Bold, MIN_SIZE), beside)
        && is_line(&[&address.line1, or_empty(address.line2.as_ref())], beside)
        && is_line(
            &[
                &address.city,
                or_empty(address.province.as_ref()),
                or_empty(address.zip_code.as_ref()),
            ],
            below,
        )
        && is_line(
            &[
                &country(address.country),
                id,
                or_empty(receiver.national_id.as_ref()),
                &receiver.phone,
            ],
            below,
        )
}

/// The smallest size of a line, and of the receiver's name on one line.
const MIN_SIZE: u32 = 16;
const MIN_NAME_SIZE: u32 = 28;
/// An upper bound for all gaps in a line of that size, in dots.
const MAX_GAP_DOTS: u32 = 48;

/// Returns `true` if the parts are certain to fit into one line. Parts that [`to_single_line`] might widen count as too
/// long.
fn is_short(parts: &[&str], (weight, size): (Weight, u32), max_width: u32) -> bool {
    let fits = |dots: u32| dots + MAX_GAP_DOTS <= max_width;
    // Most texts need not be measured. [`to_single_line`] makes no ASCII text longer.
    let length: usize = parts.iter().map(|part| part.len()).sum();
    if parts.iter().all(|part| part.is_ascii()) && fits(max_ascii_width(length, size)) {
        return true;
    }
    let is_plain = |part: &&str| part.chars().all(|c| c < '\u{300}' && !c.is_control());
    let dots: u32 = parts.iter().map(|part| width(part, weight, size)).sum();
    parts.iter().all(is_plain) && fits(dots)
}

/// An address with the lines reserved for it.
struct AddressBlock<'a> {
    names: Vec<Name>,
    lines: AddressLines<'a>,
    slots: Vec<TextSlot>,
}

struct Name {
    field: &'static str,
    text: String,
    style: TextStyle,
    slots: Vec<TextSlot>,
}

impl Name {
    fn new(field: &'static str, text: String, style: TextStyle, slots: &[TextSlot]) -> Self {
        let slots = slots.iter().map(|slot| TextSlot { style, ..*slot }).collect();
        Self { field, text, style, slots }
    }
}

impl AddressBlock<'_> {
    fn draw(&self, page: &mut Page) {
        for name in &self.names {
            page.add_lines(&name.text, name.style, &name.slots);
        }
        self.lines.draw(page, &self.slots);
    }

    fn truncated_fields(&self) -> impl Iterator<Item = &'static str> {
        let truncated =
            self.names.iter().filter(|name| !is_fully_shown(&name.text, name.style, &name.slots));
        truncated.map(|name| name.field).chain(self.lines.truncated_fields(&self.slots))
    }
}

fn sender(order: &OrderRequest, layout: Layout) -> AddressBlock<'_> {
    let sender = &order.sender;
    let company = to_single_line(sender.company_name.as_deref().unwrap_or_default());
    let names = [("companyName", company), ("fullName", to_single_line(&sender.full_name))];
    let count = names.iter().filter(|(_, name)| !name.is_empty()).count();
    let address = &sender.address;
    let [line2, state, zip] =
        [&address.line2, &address.state, &address.zip_code].map(|text| or_empty(text.as_ref()));
    let address_lines = AddressLines {
        street_parts: [("address.line1", &address.line1), ("address.line2", line2)],
        street: join([address.line1.as_str(), line2], ", "),
        city_parts: [
            ("address.city", &address.city),
            ("address.state", state),
            ("address.zipCode", zip),
        ],
        city: town::sender_line(layout, address),
        country_code: address.country,
        country: country(address.country),
        phone: to_single_line(&sender.phone),
        id: String::new(),
    };
    let usual = SENDER_BASELINES.map(|y| TextSlot::new(y, SENDER_SPAN, regular(SENDER_SIZES)));
    let dense = DENSE_SENDER_BASELINES.map(|y| TextSlot::new(y, SENDER_SPAN, regular(DENSE_SIZES)));
    let fits = address_lines.fits(usual.get(count..).unwrap_or_default());
    let slots = if fits { &usual[..] } else { &dense };
    let (name_slots, rest) = slots.split_at(count);
    let names = names.into_iter().filter(|(_, name)| !name.is_empty()).zip(name_slots.chunks(1));
    let names = names.map(|((field, name), slot)| Name::new(field, name, SENDER_NAME, slot));
    AddressBlock { names: names.collect(), lines: address_lines, slots: rest.to_vec() }
}

/// An arrangement of the receiver's lines. The first lines are next to the QR box.
struct Arrangement {
    beside_qr: [u32; 2],
    below_qr: &'static [u32],
    name: TextStyle,
    long_name: TextStyle,
    company: TextStyle,
    address: TextStyle,
}

const DEFAULT_ARRANGEMENT: Arrangement = Arrangement {
    beside_qr: [452, 490],
    below_qr: &[528, 566, 604, 642],
    name: bold(&[44, 40, 36, 32, 28]),
    long_name: bold(&[34, 32, 30, 28]),
    company: bold(&[32, 30, 28, 26, 24, 22, 20, 18, 16]),
    address: regular(RECEIVER_SIZES),
};

/// The arrangement for an address that does not fit into the usual lines: two more lines, in smaller type.
const DENSE_ARRANGEMENT: Arrangement = Arrangement {
    beside_qr: [446, 476],
    below_qr: &[514, 540, 566, 592, 618, 644],
    name: bold(&[36, 32, 28]),
    long_name: bold(&[28, 26, 24]),
    company: bold(&[24, 22, 20, 18, 16]),
    address: regular(DENSE_SIZES),
};

impl Arrangement {
    /// Returns the slots, and how many of them the name takes: one, or two if it is long.
    fn slots(&self, name: &str) -> (Vec<TextSlot>, usize) {
        let beside = self
            .beside_qr
            .map(|y| TextSlot::new(y, span(RECEIVER_SPAN.left, RIGHT_BESIDE_QR), self.address));
        let below = self.below_qr.iter().map(|y| TextSlot::new(*y, RECEIVER_SPAN, self.address));
        let (first, _) = beside.split_at(1);
        let names = if fits_into(name, self.name, first) { 1 } else { beside.len() };
        (beside.into_iter().chain(below).collect(), names)
    }
}

fn receiver(order: &OrderRequest, layout: Layout) -> AddressBlock<'_> {
    let name = to_single_line(&order.receiver.full_name);
    let company = to_single_line(order.receiver.company_name.as_deref().unwrap_or_default());
    let lines = receiver_lines(order, layout);
    let companies = usize::from(!company.is_empty());
    let (slots, names) = DEFAULT_ARRANGEMENT.slots(&name);
    let fits = lines.fits(slots.get(names + companies..).unwrap_or_default());
    let arrangement = if fits { DEFAULT_ARRANGEMENT } else { DENSE_ARRANGEMENT };
    let (slots, names) = arrangement.slots(&name);
    let (name_slots, rest) = slots.split_at(names);
    let style = if names == 1 { arrangement.name } else { arrangement.long_name };
    let name = Name::new("fullName", name, style, name_slots);
    let (company_slots, rest) = rest.split_at(companies);
    let company = Name::new("companyName", company, arrangement.company, company_slots);
    AddressBlock { names: vec![name, company], lines, slots: rest.to_vec() }
}

fn receiver_lines(order: &OrderRequest, layout: Layout) -> AddressLines<'_> {
    let receiver = &order.receiver;
    let address = &receiver.address;
    let id = to_single_line(receiver.national_id.as_deref().unwrap_or_default());
    let kind = label_text::id_type_name(receiver.id_type.as_ref());
    let id = if id.is_empty() { id } else { format!("{kind} {id}") };
    let [line2, province, zip] =
        [&address.line2, &address.province, &address.zip_code].map(|text| or_empty(text.as_ref()));
    AddressLines {
        street_parts: [("address.line1", &address.line1), ("address.line2", line2)],
        street: join([address.line1.as_str(), line2], ", "),
        city_parts: [
            ("address.city", &address.city),
            ("address.province", province),
            ("address.zipCode", zip),
        ],
        city: town::receiver_line(layout, address),
        country_code: address.country,
        country: country(address.country),
        phone: to_single_line(&receiver.phone),
        id,
    }
}

fn country(code: CountryCode) -> String {
    format!("{} ({code})", code.name(Language::En).to_uppercase())
}

fn or_empty(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}
