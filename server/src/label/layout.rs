//! Where everything stands on a label: the one drawing of which PNG, PDF and ZPL are copies.
//!
//! A label is a pure function of the order, its number, its version and its tracking URL.

use super::{
    LabelData, LabelError, address, caption, code128, customs,
    mark::{Code128, Mark, Qr, Room, Spot, WIDTH},
    qr, route,
    sheet::{Place, RULE, Sheet, bold, regular, room},
    text::{clean, join},
};

const FRAME: Room = room(16, 796);
const INNER: Room = room(32, 780);
const TOP: u32 = 16;
const BOTTOM: u32 = 1202;
/// No side border here: it would stand in the quiet zone of the bars.
const BARE: (u32, u32) = (733, 980);

/// The marks of a label.
pub(super) fn layout(data: &LabelData<'_>) -> Result<Vec<Mark>, LabelError> {
    let mut sheet = Sheet::default();
    frame(&mut sheet);
    header(&mut sheet, data);
    band(&mut sheet, data);
    address::from(&mut sheet, data.order);
    address::to(&mut sheet, data.order);
    sheet.push(Mark::Qr(symbol(data.tracking_url)?));
    cells(&mut sheet, data);
    barcode(&mut sheet, data)?;
    customs::customs(&mut sheet, data.order);
    instructions(&mut sheet, data);
    Ok(sheet.into_marks())
}

fn frame(sheet: &mut Sheet) {
    sheet.outline(FRAME, (TOP, BARE.0));
    sheet.outline(FRAME, (BARE.1, BOTTOM));
    for y in [124, 183, 660, 1154] {
        sheet.rule(y, FRAME);
    }
    sheet.rule(380, room(FRAME.left, QR_LEFT + RULE));
    sheet.post(QR_LEFT, (183, QR_BOTTOM + RULE));
    sheet.rule(QR_BOTTOM, room(QR_LEFT, FRAME.right));
}

fn header(sheet: &mut Sheet, data: &LabelData<'_>) {
    let left = room(INNER.left, 448);
    sheet.line(caption::BRAND, Place::new(76, left, bold(&[52])));
    sheet.line(service(data), Place::new(112, left, regular(&[26])));
    let route = route::code(&data.order.receiver.address);
    sheet.line(&route, Place::new(104, room(456, 784), bold(&[84, 72, 60])).right());
}

fn service(data: &LabelData<'_>) -> &'static str {
    if crosses_a_border(data) { caption::CROSS_BORDER } else { caption::DOMESTIC }
}

fn crosses_a_border(data: &LabelData<'_>) -> bool {
    data.order.sender.address.country != data.order.receiver.address.country
}

fn band(sheet: &mut Sheet, data: &LabelData<'_>) {
    if data.sandbox {
        sheet.rect((FRAME.left + RULE, 127), (FRAME.width() - 2 * RULE, 56));
        sheet.line(caption::SANDBOX, Place::new(169, INNER, bold(&[40])).centre().white());
    } else {
        let text = if crosses_a_border(data) { caption::EXPORT } else { caption::DOMESTIC };
        sheet.line(text, Place::new(164, INNER, bold(&[28])));
    }
}

const QR_LEFT: u32 = 502;
const QR_BOTTOM: u32 = 483;
/// The white inside of the QR box: left, top, width, height.
const QR_INSIDE: (u32, u32, u32, u32) = (505, 186, 288, 297);
/// Light modules around a QR symbol.
const QR_QUIET: u32 = 4;
const QR_MODULES: std::ops::RangeInclusive<u32> = 3..=7;

fn symbol(url: &str) -> Result<Qr, LabelError> {
    let modules = qr::modules(url).ok_or(LabelError::Qr)?;
    let own = qr_spot(modules)?;
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

fn cells(sheet: &mut Sheet, data: &LabelData<'_>) {
    for x in [196, 316, 496] {
        sheet.post(x, (660, 733));
    }
    let (caption, reference) = reference(data);
    let cells = [
        (caption::WEIGHT, customs::weight(data.order), room(32, 192)),
        (caption::PIECES, caption::ONE_PIECE.to_owned(), room(212, 312)),
        (caption::DATE, data.created_on.to_string(), room(332, 492)),
        (caption, reference, room(512, 784)),
    ];
    for (caption, value, across) in cells {
        sheet.line(caption, Place::new(684, across, bold(&[18, 16])));
        sheet.line(&value, Place::new(720, across, bold(&[34, 32, 30, 28, 26, 24, 22])));
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

/// Light modules on each side of a Code 128.
const BAR_QUIET: u32 = 10;
/// The widest bars that anybody needs, in dots for one module.
const WIDEST_MODULE: u32 = 4;

fn barcode(sheet: &mut Sheet, data: &LabelData<'_>) -> Result<(), LabelError> {
    let number = data.tracking_number.as_str();
    let bars = code128::encode(number).ok_or(LabelError::Barcode)?;
    let modules = bars.modules();
    let module = (WIDTH / (modules + 2 * BAR_QUIET)).min(WIDEST_MODULE);
    if module == 0 {
        return Err(LabelError::Barcode);
    }
    let x = (WIDTH - modules * module) / 2;
    let data_text = number.to_owned();
    sheet.push(Mark::Code128(Code128 { x, y: 748, module, height: 176, data: data_text, bars }));
    let sizes = bold(&[42, 38, 34, 30, 26, 22]);
    sheet.line(number, Place::new(966, room(96, 716), sizes).centre());
    if data.version > 1 {
        let reprint = format!("R{}", data.version - 1);
        sheet.line(&reprint, Place::new(966, room(720, 780), bold(&[34, 28, 22, 16, 10])).right());
    }
    Ok(())
}

fn instructions(sheet: &mut Sheet, data: &LabelData<'_>) {
    let text = data.order.receiver.address.delivery_instructions.as_deref();
    let text = join(text, " ");
    sheet.line(&text, Place::new(1184, INNER, regular(&[24, 22, 20])));
}
