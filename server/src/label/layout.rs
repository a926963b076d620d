//! Where everything stands on a label: the one drawing of which PNG, PDF and ZPL are copies.
//!
//! A label is a pure function of the order, its number, its version and its tracking URL.
//!
//! All positions are dots at 203 dpi (8 dots are 1 mm), on 812 × 1218. From top to bottom, between the rules:
//! header 16-124 (brand and route), band 124-183 (sandbox or export), sender 183-380 beside the QR symbol,
//! receiver 380-660, cells 660-733 (weight, pieces, date, reference), bar code 733-980, customs 980-1154,
//! instructions 1154-1202. The receiver has the largest text, since drivers read it. The bar code has the
//! whole width: its modules are then 4 dots for up to 13 characters, 3 for up to 19, 2 for up to 30.

use super::{
    LabelData, LabelError, address, caption, code128, customs,
    element::{Code128, Element, Qr, Span, Spot, WIDTH},
    page::{Page, RULE, TextSlot, bold, regular, span},
    qr, route,
    text::{clean, join},
};

const FRAME: Span = span(16, 796);
const INNER: Span = span(32, 780);
const TOP: u32 = 16;
const BOTTOM: u32 = 1202;
/// Without side borders, which would stand in the bar code's quiet zone.
const BARE: (u32, u32) = (733, 980);

/// The elements of a label.
pub(super) fn layout(data: &LabelData<'_>) -> Result<Vec<Element>, LabelError> {
    let mut page = Page::default();
    frame(&mut page);
    header(&mut page, data);
    band(&mut page, data);
    address::from(&mut page, data.order);
    address::to(&mut page, data.order);
    page.push(Element::Qr(symbol(data.tracking_url)?));
    cells(&mut page, data);
    barcode(&mut page, data)?;
    customs::customs(&mut page, data.order);
    instructions(&mut page, data);
    Ok(page.into_elements())
}

fn frame(page: &mut Page) {
    page.outline(FRAME, (TOP, BARE.0));
    page.outline(FRAME, (BARE.1, BOTTOM));
    for y in [124, 183, 660, 1154] {
        page.rule(y, FRAME);
    }
    page.rule(380, span(FRAME.left, QR_LEFT + RULE));
    page.post(QR_LEFT, (183, QR_BOTTOM + RULE));
    page.rule(QR_BOTTOM, span(QR_LEFT, FRAME.right));
}

fn header(page: &mut Page, data: &LabelData<'_>) {
    let left = span(INNER.left, 448);
    page.line(caption::BRAND, TextSlot::new(76, left, bold(&[52])));
    page.line(service(data), TextSlot::new(112, left, regular(&[26])));
    let route = route::code(&data.order.receiver.address);
    page.line(&route, TextSlot::new(104, span(456, 784), bold(&[84, 72, 60])).right());
}

fn service(data: &LabelData<'_>) -> &'static str {
    if crosses_a_border(data) { caption::CROSS_BORDER } else { caption::DOMESTIC }
}

fn crosses_a_border(data: &LabelData<'_>) -> bool {
    data.order.sender.address.country != data.order.receiver.address.country
}

fn band(page: &mut Page, data: &LabelData<'_>) {
    if data.sandbox {
        page.rect((FRAME.left + RULE, 127), (FRAME.width() - 2 * RULE, 56));
        page.line(caption::SANDBOX, TextSlot::new(169, INNER, bold(&[40])).centre().white());
    } else {
        let text = if crosses_a_border(data) { caption::EXPORT } else { caption::DOMESTIC };
        page.line(text, TextSlot::new(164, INNER, bold(&[28])));
    }
}

const QR_LEFT: u32 = 502;
const QR_BOTTOM: u32 = 483;
/// The white inside of the QR box: left, top, width, height.
const QR_INSIDE: (u32, u32, u32, u32) = (505, 186, 288, 297);
/// Light modules around a QR symbol (ISO/IEC 18004).
const QR_QUIET: u32 = 4;
/// Dots a module; 3 are 0.375 mm.
const QR_MODULES: std::ops::RangeInclusive<u32> = 3..=7;

fn symbol(url: &str) -> Result<Qr, LabelError> {
    let modules = qr::modules(url).ok_or(LabelError::Qr)?;
    let own = qr_spot(modules)?;
    // A ZPL printer makes the symbol itself, and may need one size (4 modules) more for the same text.
    let native = qr_spot(modules + 4)?;
    let (x, y, module, data) = (own.x, own.y, own.module, url.to_owned());
    Ok(Qr { x, y, module, modules, data, native })
}

/// The largest symbol of `modules` on a side that leaves its quiet zone inside the box.
fn qr_spot(modules: u32) -> Result<Spot, LabelError> {
    let (left, top, width, height) = QR_INSIDE;
    let module = (width / (modules + 2 * QR_QUIET)).min(*QR_MODULES.end());
    let side = modules * module;
    let fits = QR_MODULES.contains(&module);
    let spot = Spot { x: left + (width - side) / 2, y: top + (height - side) / 2, module };
    fits.then_some(spot).ok_or(LabelError::Qr)
}

fn cells(page: &mut Page, data: &LabelData<'_>) {
    for x in [196, 316, 496] {
        page.post(x, (660, 733));
    }
    let (caption, reference) = reference(data);
    let cells = [
        (caption::WEIGHT, customs::weight(data.order), span(32, 192)),
        (caption::PIECES, caption::ONE_PIECE.to_owned(), span(212, 312)),
        (caption::DATE, data.created_on.to_string(), span(332, 492)),
        (caption, reference, span(512, 784)),
    ];
    for (caption, value, across) in cells {
        page.line(caption, TextSlot::new(684, across, bold(&[18, 16])));
        page.line(&value, TextSlot::new(720, across, bold(&[34, 32, 30, 28, 26, 24, 22])));
    }
}

/// The air waybill once there is one; before, what the sender calls the order.
fn reference(data: &LabelData<'_>) -> (&'static str, String) {
    if let Some(awb) = data.awb {
        return (caption::AWB, clean(awb));
    }
    let order = data.order;
    let given = order.customer_reference.as_deref().or(order.external_order_id.as_deref());
    (caption::REFERENCE, clean(given.unwrap_or(caption::NOTHING)))
}

/// Light modules on each side of a Code 128 (ISO/IEC 15417).
const BAR_QUIET: u32 = 10;
/// Dots a module, at most (0.5 mm): short numbers get no wider bars.
const WIDEST_MODULE: u32 = 4;

fn barcode(page: &mut Page, data: &LabelData<'_>) -> Result<(), LabelError> {
    let number = data.tracking_number.as_str();
    let bars = code128::encode(number).ok_or(LabelError::Barcode)?;
    let modules = bars.modules();
    let module = (WIDTH / (modules + 2 * BAR_QUIET)).min(WIDEST_MODULE);
    if module == 0 {
        return Err(LabelError::Barcode);
    }
    let x = (WIDTH - modules * module) / 2;
    let data_text = number.to_owned();
    page.push(Element::Code128(Code128 { x, y: 748, module, height: 176, data: data_text, bars }));
    let sizes = bold(&[42, 38, 34, 30, 26, 22]);
    page.line(number, TextSlot::new(966, span(96, 716), sizes).centre());
    if data.version > 1 {
        let reprint = format!("R{}", data.version - 1);
        page.line(
            &reprint,
            TextSlot::new(966, span(720, 780), bold(&[34, 28, 22, 16, 10])).right(),
        );
    }
    Ok(())
}

fn instructions(page: &mut Page, data: &LabelData<'_>) {
    let text = data.order.receiver.address.delivery_instructions.as_deref();
    let text = join(text, " ");
    page.line(&text, TextSlot::new(1184, INNER, regular(&[24, 22, 20])));
}
