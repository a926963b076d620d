//! Places all elements of a label. The writers of PNG, PDF and ZPL copy the positions, so that all three look the same.
//!
//! Positions are dots at 203 dpi (8 dots are 1 mm), on 812 × 1218; a text's `y` is its baseline. From top to bottom,
//! between the rules: header 16-124 (brand and route), band 124-183 (sandbox or export), sender 183-380 next to the QR
//! symbol, receiver 380-660, cells 660-733 (weight, pieces, date, reference), bar code 733-980, customs 980-1154,
//! instructions 1154-1202, with more lines if customs leaves room. Within a country, instructions replace the customs
//! box. The receiver has the largest text, because drivers read it.

use parcelo_domain::Layout;
use parcelo_types::OrderRequest;

use super::{
    LabelData, LabelError, address, code128, customs,
    element::{Code128, Element, Qr, QrPlacement, Span, WIDTH},
    label_text,
    page::{Page, RULE, TextSlot, bold, fits_into, is_fully_shown, regular, span},
    qr, route,
    text::{join, to_single_line},
    text_fit::TextStyle,
};

/// The frame, 2 mm inside the edge of the media, where the outer 4 dots must stay white.
const FRAME: Span = span(16, 796);
const FRAME_TOP: u32 = 16;
const FRAME_BOTTOM: u32 = 1202;
/// The columns of text, 2 mm inside the frame.
const TEXT_SPAN: Span = span(32, 780);
/// The rules below header, band and receiver.
const BAND_TOP: u32 = 124;
const BAND_BOTTOM: u32 = 183;
const CELLS_TOP: u32 = 660;
/// The rule between sender and receiver; it ends at the QR box.
const RECEIVER_TOP: u32 = 380;
/// The band of the bar code. It has no side borders: nothing may be printed within 10 modules of a Code 128, and the
/// widest symbols need the space up to the edge of the media.
const BARCODE_BAND: (u32, u32) = (733, 980);

/// Returns the elements of a label.
pub(super) fn lay_out(data: &LabelData<'_>) -> Result<Vec<Element>, LabelError> {
    let mut page = Page::default();
    let footer = Footer::new(data.order, data.layout);
    draw_frame(&mut page, &footer);
    draw_header(&mut page, data);
    draw_band(&mut page, data);
    address::draw_sender(&mut page, data);
    address::draw_receiver(&mut page, data);
    page.push(Element::Qr(place_qr(data.tracking_url)?));
    draw_cells(&mut page, data);
    draw_barcode(&mut page, data)?;
    if footer.has_customs {
        customs::draw_customs(&mut page, data.order, footer.total_baseline());
    }
    footer.draw(&mut page);
    Ok(page.into_elements())
}

fn draw_frame(page: &mut Page, footer: &Footer) {
    page.add_outline(FRAME, (FRAME_TOP, BARCODE_BAND.0));
    if footer.is_drawn() {
        page.add_outline(FRAME, (BARCODE_BAND.1, FRAME_BOTTOM));
    }
    for y in [BAND_TOP, BAND_BOTTOM, CELLS_TOP] {
        page.add_rule(y, FRAME);
    }
    if footer.has_customs {
        page.add_rule(footer.top(), FRAME);
    }
    page.add_rule(RECEIVER_TOP, span(FRAME.left, QR_LEFT + RULE));
    page.add_vertical_rule(QR_LEFT, (BAND_BOTTOM, QR_BOTTOM + RULE));
    page.add_rule(QR_BOTTOM, span(QR_LEFT, FRAME.right));
}

fn draw_header(page: &mut Page, data: &LabelData<'_>) {
    // The route has the largest text of the header: parcels are sorted by it.
    let left = span(TEXT_SPAN.left, 448);
    page.add_line(label_text::BRAND, TextSlot::new(76, left, bold(&[52])));
    page.add_line(service_name(data), TextSlot::new(112, left, regular(&[26])));
    let route = route::route_code(&data.order.receiver.address);
    page.add_line(&route, TextSlot::new(104, span(456, 784), bold(&[84, 72, 60])).right());
}

fn service_name(data: &LabelData<'_>) -> &'static str {
    if is_cross_border(data.order) { label_text::CROSS_BORDER } else { label_text::DOMESTIC }
}

fn is_cross_border(order: &OrderRequest) -> bool {
    order.sender.address.country != order.receiver.address.country
}

fn draw_band(page: &mut Page, data: &LabelData<'_>) {
    if data.sandbox {
        // Fill the whole band with black, so that a sandbox label is not mistaken for a real one.
        let height = BAND_BOTTOM - BAND_TOP - RULE;
        page.add_rect((FRAME.left + RULE, BAND_TOP + RULE), (FRAME.width() - 2 * RULE, height));
        page.add_line(
            label_text::sandbox_notice(data.layout),
            TextSlot::new(169, TEXT_SPAN, bold(&[40])).centre().white(),
        );
    } else {
        let text =
            if is_cross_border(data.order) { label_text::EXPORT } else { label_text::DOMESTIC };
        page.add_line(text, TextSlot::new(164, TEXT_SPAN, bold(&[28])));
    }
}

/// The QR box, right of the sender and of the receiver's name. Its 36 mm are enough for the quiet zone, and for a
/// symbol one version larger than ours.
const QR_LEFT: u32 = 502;
const QR_BOTTOM: u32 = 483;
/// The inside of the QR box, between its rules: left, top, width, height.
const QR_INSIDE: (u32, u32, u32, u32) = (505, 186, 288, 297);
/// The quiet zone around a QR symbol, in modules (ISO/IEC 18004).
const QR_QUIET_MODULES: u32 = 4;
/// The size of a QR module: 7 dots where the URL is short enough, and at least 3 (0.375 mm).
const QR_MODULE_DOTS: std::ops::RangeInclusive<u32> = 3..=7;

fn place_qr(url: &str) -> Result<Qr, LabelError> {
    let modules = qr::side_modules(url).ok_or(LabelError::Qr)?;
    let drawn = qr_placement(modules)?;
    // A ZPL printer encodes the symbol itself, and may choose one version (4 modules) more for the same text.
    let native = qr_placement(modules + 4)?;
    let (x, y, module, data) = (drawn.x, drawn.y, drawn.module, url.to_owned());
    Ok(Qr { x, y, module, modules, data, native })
}

/// Places a symbol of this many modules on a side, as large as possible with its quiet zone inside the box.
fn qr_placement(modules: u32) -> Result<QrPlacement, LabelError> {
    let (left, top, width, height) = QR_INSIDE;
    let module = (width / (modules + 2 * QR_QUIET_MODULES)).min(*QR_MODULE_DOTS.end());
    let side = modules * module;
    let fits = QR_MODULE_DOTS.contains(&module);
    let placement =
        QrPlacement { x: left + (width - side) / 2, y: top + (height - side) / 2, module };
    fits.then_some(placement).ok_or(LabelError::Qr)
}

const CELL_STYLE: TextStyle = bold(&[34, 32, 30, 28, 26, 24, 22]);
const REFERENCE_SPAN: Span = span(512, 784);

fn draw_cells(page: &mut Page, data: &LabelData<'_>) {
    for x in [196, 316, 496] {
        page.add_vertical_rule(x, (CELLS_TOP, BARCODE_BAND.0));
    }
    let (caption, reference) = reference_cell(data);
    let cells = [
        (label_text::WEIGHT, customs::format_weight(data.order), span(32, 192)),
        (label_text::PIECES, label_text::ONE_PIECE.to_owned(), span(212, 312)),
        (label_text::DATE, data.created_on.to_string(), span(332, 492)),
        (caption, reference, REFERENCE_SPAN),
    ];
    for (caption, value, cell_span) in cells {
        page.add_line(caption, TextSlot::new(684, cell_span, bold(&[18, 16])));
        page.add_line(&value, TextSlot::new(720, cell_span, CELL_STYLE));
    }
}

/// Returns the air waybill once there is one, and the sender's reference before that.
fn reference_cell(data: &LabelData<'_>) -> (&'static str, String) {
    if let Some(awb) = data.awb {
        return (label_text::AWB, to_single_line(awb));
    }
    let reference =
        sender_reference(data.order).map_or(label_text::MISSING_VALUE, |(_, text)| text);
    (label_text::REFERENCE, to_single_line(reference))
}

/// Returns the sender's reference, preceded by the name of its field.
fn sender_reference(order: &OrderRequest) -> Option<(&'static str, &str)> {
    let reference = order.customer_reference.as_deref().map(|text| ("customerReference", text));
    reference.or(order.external_order_id.as_deref().map(|text| ("externalOrderId", text)))
}

/// Returns the fields of an order whose text the label truncates.
pub(super) fn truncated_fields(order: &OrderRequest, layout: Layout) -> Vec<String> {
    let footer = Footer::new(order, layout);
    let mut truncated = address::truncated_fields(order, layout);
    let cell = TextSlot::new(0, REFERENCE_SPAN, CELL_STYLE);
    let reference = sender_reference(order)
        .filter(|(_, text)| !fits_into(&to_single_line(text), CELL_STYLE, &[cell]));
    truncated.extend(reference.map(|(field, _)| field.to_owned()));
    if footer.has_customs {
        truncated.extend(customs::truncated_fields(order));
    }
    if !footer.shows_all_instructions() {
        truncated.push("receiver.address.deliveryInstructions".to_owned());
    }
    truncated
}

/// The quiet zone on each side of a Code 128, in modules (ISO/IEC 15417).
const BAR_QUIET_MODULES: u32 = 10;
/// Maximum width of a module (0.5 mm). A symbol has 11 modules for each character and 35 more, so the label's width
/// allows 4 dots for up to 13 characters, 3 for up to 19, and 2 for up to 30, the maximum.
const MAX_BAR_MODULE_DOTS: u32 = 4;
/// The top and the height of the bars: 22 mm, 2 mm below the rule.
const BARS_TOP: u32 = 748;
const BARS_HEIGHT: u32 = 176;

fn draw_barcode(page: &mut Page, data: &LabelData<'_>) -> Result<(), LabelError> {
    let number = data.tracking_number.as_str();
    let bars = code128::encode(number).ok_or(LabelError::Barcode)?;
    let modules = bars.modules();
    let module = (WIDTH / (modules + 2 * BAR_QUIET_MODULES)).min(MAX_BAR_MODULE_DOTS);
    if module == 0 {
        return Err(LabelError::Barcode);
    }
    let x = (WIDTH - modules * module) / 2;
    page.push(Element::Code128(Code128 {
        x,
        y: BARS_TOP,
        module,
        height: BARS_HEIGHT,
        data: number.to_owned(),
        bars,
    }));
    // The number in figures, in case the bars cannot be read; a reprint is marked next to it.
    let sizes = bold(&[42, 38, 34, 30, 26, 22]);
    page.add_line(number, TextSlot::new(966, span(96, 716), sizes).centre());
    if data.version > 1 {
        let reprint = format!("R{}", data.version - 1);
        page.add_line(
            &reprint,
            TextSlot::new(966, span(720, 780), bold(&[34, 28, 22, 16, 10])).right(),
        );
    }
    Ok(())
}

const INSTRUCTIONS_STYLE: TextStyle = regular(&[24, 22, 20]);
/// The baselines of the instructions. They are as far apart as the customs box's rows, because the upper lines replace
/// some of these rows.
const INSTRUCTION_BASELINES: [u32; 3] = [1128, 1156, 1184];
/// The distance from the rule above the instructions to their first baseline, and from the customs total to that rule.
const BASELINE_BELOW_RULE: u32 = 30;
const TOTAL_ABOVE_RULE: u32 = 8;

/// The baselines of instructions that replace the customs box.
const BASELINES_WITHOUT_CUSTOMS: [u32; 7] = [1016, 1044, 1072, 1100, 1128, 1156, 1184];
/// The caption, left of the first line.
const CAPTION_SLOT: TextSlot = TextSlot::new(0, span(32, 204), bold(&[18, 16, 14]));
const BESIDE_CAPTION_SPAN: Span = span(212, 780);

/// The delivery instructions: one line, or up to three if they need them and the customs box has free rows.
struct Footer {
    instructions: String,
    lines: Vec<TextSlot>,
    has_caption: bool,
    has_customs: bool,
}

impl Footer {
    fn new(order: &OrderRequest, layout: Layout) -> Self {
        let text = order.receiver.address.delivery_instructions.as_deref();
        let instructions = join(text, " ");
        let (has_caption, has_customs) = match layout {
            Layout::First => (false, true),
            Layout::Second => (!instructions.is_empty(), is_cross_border(order)),
        };
        let lines = match (has_customs, has_caption) {
            (true, _) => lines_below_customs(&instructions, order, has_caption),
            (false, true) => instruction_slots(&BASELINES_WITHOUT_CUSTOMS, has_caption),
            (false, false) => Vec::new(),
        };
        Self { instructions, lines, has_caption, has_customs }
    }

    fn draw(&self, page: &mut Page) {
        if let (true, Some(first)) = (self.has_caption, self.lines.first()) {
            page.add_line(
                label_text::INSTRUCTIONS,
                TextSlot { baseline: first.baseline, ..CAPTION_SLOT },
            );
        }
        page.add_lines(&self.instructions, INSTRUCTIONS_STYLE, &self.lines);
    }

    fn shows_all_instructions(&self) -> bool {
        is_fully_shown(&self.instructions, INSTRUCTIONS_STYLE, &self.lines)
    }

    /// Returns `false` for a parcel that crosses no border and has no instructions: its footer is empty.
    fn is_drawn(&self) -> bool {
        self.has_customs || self.has_caption
    }

    /// Returns the position of the rule above the instructions.
    fn top(&self) -> u32 {
        self.lines.first().map_or(FRAME_BOTTOM, |line| line.baseline - BASELINE_BELOW_RULE)
    }

    /// Returns the baseline of the customs box's last line.
    fn total_baseline(&self) -> u32 {
        self.top() - TOTAL_ABOVE_RULE
    }
}

/// Returns the lines below the customs box: as many as the instructions need, if there are that many.
fn lines_below_customs(
    instructions: &str,
    order: &OrderRequest,
    has_caption: bool,
) -> Vec<TextSlot> {
    let max_lines = (1 + customs::free_rows(order)).min(INSTRUCTION_BASELINES.len());
    let last_slots = |count: usize| {
        let lines = INSTRUCTION_BASELINES.get(INSTRUCTION_BASELINES.len() - count..);
        instruction_slots(lines.unwrap_or_default(), has_caption)
    };
    let enough = (1..max_lines)
        .find(|count| fits_into(instructions, INSTRUCTIONS_STYLE, &last_slots(*count)));
    last_slots(enough.unwrap_or(max_lines))
}

/// Returns lines at these baselines. The first line is next to the caption, if there is one.
fn instruction_slots(baselines: &[u32], has_caption: bool) -> Vec<TextSlot> {
    let cell_span =
        |index: usize| if has_caption && index == 0 { BESIDE_CAPTION_SPAN } else { TEXT_SPAN };
    let lines = baselines.iter().enumerate();
    lines.map(|(index, y)| TextSlot::new(*y, cell_span(index), INSTRUCTIONS_STYLE)).collect()
}
