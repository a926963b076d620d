//! The commercial invoice for customs: exporter, consignee, values, and every item of the order.
//!
//! Like the label, it is a function of the parcel and the label's version, without a clock, so its bytes are always the
//! same. It contains only facts that the order states: an origin that the order does not name is left open.

use parcelo_domain::country_language;
use parcelo_types::{CountryCode, Language, OrderRequest};

use super::{
    LabelData, customs,
    element::{Element, Span},
    invoice_items::{self, Item, format_amount},
    invoice_text::{self as words, BilingualText, other_language},
    label_text,
    page::{Page, RULE, TextSlot, bold, regular, span},
    pdf::{PageFormat, PrintScaling},
    text::to_single_line,
    text_fit::{TextStyle, fit},
    town,
};

/// A4, in half points.
pub(super) const A4: PageFormat =
    PageFormat { width: 1190, height: 1684, points_per_unit: 0.5, scaling: PrintScaling::Allowed };

/// The span between the margins of 13 mm.
const TEXT_SPAN: Span = span(72, 1118);
const LEFT_COLUMN: Span = span(72, 587);
const RIGHT_COLUMN: Span = span(603, 1118);
/// The height at which the rows of a page end; the page number is below it.
const ROWS_BOTTOM: u32 = 1600;
/// The distance of text from the box around it.
const BOX_INSET: u32 = 12;

const CAPTION_STYLE: TextStyle = bold(&[16, 14, 12]);
const FINE_PRINT_STYLE: TextStyle = regular(&[14, 12, 10]);
const VALUE_STYLE: TextStyle = regular(&[20, 18, 16, 14, 12, 10]);
/// The style of texts that may be long, which are wrapped before they are truncated.
const WRAPPED_STYLE: TextStyle = regular(&[20, 18, 16, 14]);
const LINE_HEIGHT: u32 = 26;
/// Maximum number of lines for one field of an address, and for one description. Both hold 255 characters.
const MAX_ADDRESS_LINES: usize = 4;
const MAX_DESCRIPTION_LINES: usize = 4;

const ROW_TEXT: TextStyle = regular(&[18, 16, 14]);
const ROW_FIGURE: TextStyle = regular(&[18, 16, 14, 12, 10, 8]);
const ROW_HEIGHT: u32 = 22;

const NUMBER: Span = span(72, 116);
const DESCRIPTION: Span = span(122, 500);
const HS_CODE: Span = span(508, 618);
const ORIGIN: Span = span(624, 690);
const QUANTITY: Span = span(694, 780);
const NET_KG: Span = span(788, 868);
const UNIT_VALUE: Span = span(876, 988);
const AMOUNT: Span = span(996, 1118);

/// Draws the pages of an invoice.
pub(super) fn draw_pages(data: &LabelData<'_>) -> Vec<Vec<Element>> {
    let items = invoice_items::items(data.order);
    let mut invoice = Invoice::new(data);
    invoice.draw_parties();
    invoice.draw_facts();
    invoice.draw_headings();
    for (number, item) in (1..).zip(&items) {
        invoice.draw_row(number, item);
    }
    invoice.draw_totals(&items);
    invoice.draw_statement();
    invoice.finish()
}

/// An invoice, written from the top of its first page to the end of its last.
struct Invoice<'a> {
    data: &'a LabelData<'a>,
    /// The language of the destination, which comes first.
    first: Language,
    finished: Vec<Page>,
    page: Page,
    /// The height to which the current page is filled.
    y: u32,
}

impl<'a> Invoice<'a> {
    fn new(data: &'a LabelData<'a>) -> Self {
        let first = country_language(data.order.receiver.address.country);
        let mut invoice = Self { data, first, finished: Vec::new(), page: Page::default(), y: 0 };
        invoice.draw_header();
        invoice
    }

    /// Draws title and number, on every page.
    fn draw_header(&mut self) {
        let title = TextSlot::new(104, span(72, 800), bold(&[34, 32, 30]));
        self.page.add_line(&words::TITLE.both(self.first), title);
        let number = TextSlot::new(104, span(808, 1118), bold(&[24, 22, 20, 18, 16, 14])).right();
        self.page.add_line(self.data.tracking_number.as_str(), number);
        self.y = 124;
        if self.data.sandbox {
            self.page.add_rect((TEXT_SPAN.left, self.y), (TEXT_SPAN.width(), 44));
            let mark = TextSlot::new(self.y + 32, TEXT_SPAN, bold(&[28])).centre().white();
            self.page.add_line(label_text::sandbox_notice(self.data.layout), mark);
            self.y += 58;
        }
    }

    /// Starts a new page if `height` does not fit on this one.
    fn make_room(&mut self, height: u32) {
        if self.y + height > ROWS_BOTTOM {
            self.finished.push(std::mem::take(&mut self.page));
            self.draw_header();
            self.draw_headings();
        }
    }

    /// Draws exporter and consignee side by side, in boxes of the same height.
    fn draw_parties(&mut self) {
        let top = self.y;
        let from =
            self.draw_party(LEFT_COLUMN, words::EXPORTER, &sender_lines(self.data, self.first));
        let to =
            self.draw_party(RIGHT_COLUMN, words::CONSIGNEE, &receiver_lines(self.data, self.first));
        let bottom = from.max(to) + BOX_INSET;
        for cell_span in [LEFT_COLUMN, RIGHT_COLUMN] {
            self.page.add_outline(cell_span, (top, bottom));
        }
        self.y = bottom + 16;
    }

    /// Draws the lines of one party; returns the baseline of the last.
    fn draw_party(&mut self, box_span: Span, caption: BilingualText, lines: &[String]) -> u32 {
        let cell_span = span(box_span.left + BOX_INSET, box_span.right - BOX_INSET);
        let mut y = self.y + 28;
        self.page.add_line(&caption.both(self.first), TextSlot::new(y, cell_span, CAPTION_STYLE));
        for text in lines.iter().filter(|text| !text.is_empty()) {
            let slots: Vec<_> = (1..=MAX_ADDRESS_LINES as u32)
                .map(|line| TextSlot::new(y + line * LINE_HEIGHT, cell_span, WRAPPED_STYLE))
                .collect();
            y += LINE_HEIGHT * self.page.add_lines(text, WRAPPED_STYLE, &slots) as u32;
        }
        y
    }

    /// Draws the cells with the facts about the whole parcel.
    fn draw_facts(&mut self) {
        let (data, order, first) = (self.data, self.data.order, self.first);
        let goods = order.customs_info.clone().unwrap_or_default();
        let contents = goods.contents_category.as_ref().and_then(words::contents_category);
        let incoterm = goods.incoterm.map(|incoterm| incoterm.code().to_owned());
        let rows = [
            [
                (words::NUMBER, Some(data.tracking_number.to_string())),
                (words::DATE, Some(data.created_on.to_string())),
                (words::ORDER, order.external_order_id.clone()),
                (words::REFERENCE, order.customer_reference.clone()),
            ],
            [
                (words::DESTINATION, Some(country(order.receiver.address.country, first))),
                (words::AWB, data.awb.map(str::to_owned)),
                (words::INCOTERM, incoterm),
                (words::CONTENTS, contents.map(|contents| contents.both(first))),
            ],
            [
                (words::PACKAGES, Some("1".to_owned())),
                (words::GROSS_WEIGHT, Some(customs::format_weight(order))),
                (words::SIZE, dimensions(order)),
                (words::CURRENCY, Some(order.parcel_details.currency.to_string())),
            ],
        ];
        for row in rows {
            self.draw_cells(row);
        }
        self.y += 16;
    }

    fn draw_cells(&mut self, cells: [(BilingualText, Option<String>); 4]) {
        const HEIGHT: u32 = 62;
        let width = TEXT_SPAN.width() / cells.len() as u32;
        for (column, (caption, value)) in (0..).zip(cells) {
            let left = TEXT_SPAN.left + column * width;
            // Neighbouring cells share a rule.
            let cell_span = span(left, (left + width + RULE).min(TEXT_SPAN.right));
            self.page.add_outline(cell_span, (self.y, self.y + HEIGHT + RULE));
            let inside = span(left + BOX_INSET, left + width - BOX_INSET);
            let caption = caption.both(self.first);
            self.page.add_line(&caption, TextSlot::new(self.y + 22, inside, FINE_PRINT_STYLE));
            let value = to_single_line(value.as_deref().unwrap_or(label_text::MISSING_VALUE));
            self.page.add_line(&value, TextSlot::new(self.y + 50, inside, VALUE_STYLE));
        }
        self.y += HEIGHT;
    }

    /// Draws the headings of the columns, with one language below the other.
    fn draw_headings(&mut self) {
        let columns = [
            (words::ITEM_NUMBER, NUMBER, false),
            (words::DESCRIPTION, DESCRIPTION, false),
            (words::HS_CODE, HS_CODE, false),
            (words::ORIGIN, ORIGIN, false),
            (words::QUANTITY, QUANTITY, true),
            (words::NET_KG, NET_KG, true),
            (words::UNIT_VALUE, UNIT_VALUE, true),
            (words::AMOUNT, AMOUNT, true),
        ];
        for (heading, cell_span, is_figure) in columns {
            let lines = [
                (self.first, 24, CAPTION_STYLE),
                (other_language(self.first), 44, FINE_PRINT_STYLE),
            ];
            for (language, below, style) in lines {
                let slot = TextSlot::new(self.y + below, cell_span, style);
                let slot = if is_figure { slot.right() } else { slot };
                self.page.add_line(heading.pick(language), slot);
            }
        }
        self.y += 54;
        self.page.add_rule(self.y, TEXT_SPAN);
        self.y += 6;
    }

    fn draw_row(&mut self, number: usize, item: &Item) {
        let widths = [DESCRIPTION.width(); MAX_DESCRIPTION_LINES];
        let height = fit(&item.description, ROW_TEXT, &widths).lines.len().max(1) as u32;
        let height = height * ROW_HEIGHT + 10;
        self.make_room(height);
        let first = self.y + ROW_HEIGHT;
        let slots: Vec<_> = (0..MAX_DESCRIPTION_LINES as u32)
            .map(|line| TextSlot::new(first + line * ROW_HEIGHT, DESCRIPTION, ROW_TEXT))
            .collect();
        self.page.add_lines(&item.description, ROW_TEXT, &slots);
        let cells = [
            (number.to_string(), NUMBER),
            (item.hs_code.clone(), HS_CODE),
            (item.origin.map_or_else(String::new, |origin| origin.to_string()), ORIGIN),
        ];
        for (text, cell_span) in cells {
            self.page.add_line(&text, TextSlot::new(first, cell_span, ROW_FIGURE));
        }
        let net = item.net_weight_kg.map(|net| net.normalize().to_string());
        let figures = [
            (item.quantity.to_string(), QUANTITY),
            (net.unwrap_or_default(), NET_KG),
            (format_amount(item.unit_value), UNIT_VALUE),
            (format_amount(item.amount), AMOUNT),
        ];
        for (text, cell_span) in figures {
            self.page.add_line(&text, TextSlot::new(first, cell_span, ROW_FIGURE).right());
        }
        self.y += height;
        self.page.add_rect((TEXT_SPAN.left, self.y), (TEXT_SPAN.width(), 1));
    }

    /// Draws the sums of the items, and the declared value, which may be higher because it may include freight.
    fn draw_totals(&mut self, items: &[Item]) {
        self.make_room(230);
        let sum = invoice_items::totals(items);
        let net = sum.net_weight_kg.map(|net| net.normalize().to_string());
        let currency = self.data.order.parcel_details.currency;
        let baseline = self.y + 34;
        let caption = TextSlot::new(baseline, span(72, QUANTITY.left - 8), bold(&[18, 16, 14]));
        self.page.add_line(&words::SUM.both(self.first), caption);
        let figures = [
            (sum.quantity.to_string(), QUANTITY),
            (net.unwrap_or_default(), NET_KG),
            (
                format!("{currency} {}", format_amount(sum.amount)),
                span(UNIT_VALUE.left, AMOUNT.right),
            ),
        ];
        for (text, cell_span) in figures {
            let slot = TextSlot::new(baseline, cell_span, bold(&[18, 16, 14, 12, 10, 8]));
            self.page.add_line(&text, slot.right());
        }
        let caption = TextSlot::new(baseline + 34, span(72, NET_KG.right), bold(&[20, 18, 16]));
        self.page.add_line(&words::DECLARED.both(self.first), caption);
        let slot =
            TextSlot::new(baseline + 34, span(UNIT_VALUE.left, AMOUNT.right), bold(&[20, 18, 16]));
        self.page.add_line(&self.declared_value(), slot.right());
        self.y = baseline + 50;
        self.page.add_rule(self.y, TEXT_SPAN);
    }

    /// Draws the statement that the sender signs.
    fn draw_statement(&mut self) {
        for (language, below) in [(self.first, 34), (other_language(self.first), 58)] {
            let slot = TextSlot::new(self.y + below, TEXT_SPAN, STATEMENT_STYLE);
            self.page.add_line(words::STATEMENT.pick(language), slot);
        }
        for (caption, cell_span) in [(words::PLACE, LEFT_COLUMN), (words::SIGNATURE, RIGHT_COLUMN)]
        {
            self.page.add_rect((cell_span.left, self.y + 118), (cell_span.width(), 2));
            let slot = TextSlot::new(self.y + 138, cell_span, FINE_PRINT_STYLE);
            self.page.add_line(&caption.both(self.first), slot);
        }
    }

    /// Adds the page numbers and returns the pages.
    fn finish(mut self) -> Vec<Vec<Element>> {
        self.finished.push(self.page);
        let count = self.finished.len();
        let caption = words::PAGE.both(self.first);
        let numbered = (1..).zip(self.finished).map(|(number, mut page)| {
            let slot = TextSlot::new(1640, TEXT_SPAN, FINE_PRINT_STYLE).right();
            page.add_line(&format!("{caption} {number} / {count}"), slot);
            page.into_elements()
        });
        numbered.collect()
    }

    fn declared_value(&self) -> String {
        let details = &self.data.order.parcel_details;
        format!("{} {}", details.currency, format_amount(details.declared_value))
    }
}

const STATEMENT_STYLE: TextStyle = regular(&[18, 16, 14]);

fn sender_lines(data: &LabelData<'_>, first: Language) -> Vec<String> {
    let (from, at) = (&data.order.sender, &data.order.sender.address);
    vec![
        to_single_line(or_empty(from.company_name.as_ref())),
        to_single_line(&from.full_name),
        to_single_line(&at.line1),
        to_single_line(or_empty(at.line2.as_ref())),
        town::sender_line(data.layout, at),
        country(at.country, first),
        to_single_line(&from.phone),
        to_single_line(or_empty(from.email.as_ref())),
    ]
}

fn receiver_lines(data: &LabelData<'_>, first: Language) -> Vec<String> {
    let (to, at) = (&data.order.receiver, &data.order.receiver.address);
    let id = to_single_line(or_empty(to.national_id.as_ref()));
    let kind = label_text::id_type_name(to.id_type.as_ref());
    vec![
        to_single_line(or_empty(to.company_name.as_ref())),
        to_single_line(&to.full_name),
        if id.is_empty() { id } else { format!("{kind} {id}") },
        to_single_line(&at.line1),
        to_single_line(or_empty(at.line2.as_ref())),
        town::receiver_line(data.layout, at),
        country(at.country, first),
        to_single_line(&to.phone),
        to_single_line(or_empty(to.email.as_ref())),
    ]
}

fn country(code: CountryCode, language: Language) -> String {
    format!("{} ({code})", code.name(language).to_uppercase())
}

/// Returns length, width and height, if the order has all three.
fn dimensions(order: &OrderRequest) -> Option<String> {
    let details = &order.parcel_details;
    let sides = [details.length_cm?, details.width_cm?, details.height_cm?];
    let sides = sides.map(|side| side.normalize().to_string());
    Some(format!("{} cm", sides.join(" × ")))
}

fn or_empty(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}
