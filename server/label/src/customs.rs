//! The customs box, with as many of the parcel's items as fit. The [invoice](super::invoice) lists all of them.

use parcelo_types::{CountryCode, OrderRequest, Product};
use rust_decimal::{Decimal, RoundingStrategy};

use super::{
    element::Span,
    label_text,
    page::{Page, TextSlot, bold, fits_into, regular, span},
    text::to_single_line,
    text_fit::TextStyle,
};

/// Columns of the table. Descriptions get about half of the width, because they are the longest texts.
const DESCRIPTION: Span = span(32, 412);
const QUANTITY: Span = span(416, 464);
/// The span of the quantity's heading, which is wider than its column and may extend over the description's.
const QUANTITY_HEADING: Span = span(380, 464);
const HS_CODE: Span = span(480, 592);
/// The column of origins, if the order states any: the sender's country is not an origin.
const ORIGIN: Span = span(600, 652);
const VALUE: Span = span(660, 784);

/// Baselines of the rows, 28 dots apart for text of 24. Four fill the box; with more items, the last row counts the
/// rest.
const ROW_BASELINES: [u32; 4] = [1032, 1060, 1088, 1116];
const DESCRIPTION_STYLE: TextStyle = regular(&[24, 22, 20]);
/// The style of figures. They shrink further than words, because a truncated figure would be wrong.
const FIGURE_STYLE: TextStyle = regular(&[24, 22, 20, 18, 16, 14, 12]);
const HEADING_STYLE: TextStyle = bold(&[18, 16, 14]);

/// Draws headings, items and total. `total_baseline` is below the rows that are used.
pub(super) fn draw_customs(page: &mut Page, order: &OrderRequest, total_baseline: u32) {
    let items = items(order);
    let (listed, further) = items.split_at(listed_rows(items.len()));
    draw_headings(page, listed.iter().any(|item| item.origin.is_some()));
    for (item, y) in listed.iter().zip(ROW_BASELINES) {
        draw_row(page, item, y);
    }
    let full_span = span(DESCRIPTION.left, VALUE.right);
    if let (false, Some(y)) = (further.is_empty(), ROW_BASELINES.last()) {
        let more = format!("+ {} {}", further.len(), label_text::MORE_ITEMS);
        page.add_line(&more, TextSlot::new(*y, full_span, DESCRIPTION_STYLE));
    }
    page.add_line(
        &total_line(order),
        TextSlot::new(total_baseline, full_span, bold(&[24, 22, 20])),
    );
}

/// Returns the number of rows that the box can give up to other texts.
pub(super) fn free_rows(order: &OrderRequest) -> usize {
    let items = if order.products.is_empty() {
        usize::from(order.customs_info.is_some())
    } else {
        order.products.len()
    };
    ROW_BASELINES.len().saturating_sub(items)
}

/// Returns the fields of item descriptions whose text is truncated.
pub(super) fn truncated_fields(order: &OrderRequest) -> Vec<String> {
    let slot = TextSlot::new(0, DESCRIPTION, DESCRIPTION_STYLE);
    let is_cut = |text: &str| !fits_into(&to_single_line(text), DESCRIPTION_STYLE, &[slot]);
    let products = order.products.iter().take(listed_rows(order.products.len()));
    let product_fields = products.clone().enumerate().filter_map(|(index, product)| {
        let (field, text) = description_field(product)?;
        is_cut(text).then(|| format!("products[{index}].{field}"))
    });
    // The field is reported once, however many items it describes.
    let is_shown = order.products.is_empty()
        || products.clone().any(|product| description_field(product).is_none());
    let goods = order.customs_info.as_ref().filter(|_| is_shown);
    let goods = goods.and_then(|goods| goods.description.as_deref()).filter(|text| is_cut(text));
    product_fields.chain(goods.map(|_| "customsInfo.description".to_owned())).collect()
}

/// Returns the number of items that have a row of their own.
fn listed_rows(items: usize) -> usize {
    if items > ROW_BASELINES.len() { ROW_BASELINES.len() - 1 } else { items }
}

/// Returns the text that describes a product, preceded by the name of its field.
fn description_field(product: &Product) -> Option<(&'static str, &str)> {
    let description = product.description.as_deref().map(|text| ("description", text));
    description.or(product.sku.as_deref().map(|text| ("sku", text)))
}

fn draw_headings(page: &mut Page, with_origin: bool) {
    let caption = span(DESCRIPTION.left, QUANTITY_HEADING.left);
    page.add_line(label_text::CUSTOMS, TextSlot::new(1004, caption, bold(&[20])));
    page.add_line(
        label_text::QUANTITY,
        TextSlot::new(1004, QUANTITY_HEADING, HEADING_STYLE).right(),
    );
    page.add_line(label_text::HS_CODE, TextSlot::new(1004, HS_CODE, HEADING_STYLE));
    if with_origin {
        page.add_line(label_text::ORIGIN, TextSlot::new(1004, ORIGIN, HEADING_STYLE));
    }
    page.add_line(label_text::VALUE, TextSlot::new(1004, VALUE, HEADING_STYLE).right());
}

struct Item {
    description: String,
    quantity: u32,
    hs_code: String,
    origin: Option<CountryCode>,
    value: String,
}

/// Returns an item for each product. Without products, returns the goods as a whole if `customsInfo` describes them.
fn items(order: &OrderRequest) -> Vec<Item> {
    let goods = order.customs_info.clone().unwrap_or_default();
    let description = goods.description.as_deref().unwrap_or_default();
    let hs_code = goods.hs_code.as_deref().unwrap_or_default();
    if order.products.is_empty() && order.customs_info.is_some() {
        return vec![Item {
            description: to_single_line(description),
            quantity: 1,
            hs_code: to_single_line(hs_code),
            origin: None,
            value: format_money(order, order.parcel_details.declared_value),
        }];
    }
    let product_item = |product: &Product| Item {
        description: to_single_line(
            description_field(product).map_or(description, |(_, text)| text),
        ),
        quantity: product.quantity,
        hs_code: to_single_line(product.hs_code.as_deref().unwrap_or(hs_code)),
        origin: product.country_of_origin,
        value: format_money(order, line_value(product)),
    };
    order.products.iter().map(product_item).collect()
}

fn draw_row(page: &mut Page, item: &Item, y: u32) {
    let hs_code = if item.hs_code.is_empty() { label_text::MISSING_VALUE } else { &item.hs_code };
    page.add_line(&item.description, TextSlot::new(y, DESCRIPTION, DESCRIPTION_STYLE));
    page.add_line(&item.quantity.to_string(), TextSlot::new(y, QUANTITY, FIGURE_STYLE).right());
    page.add_line(hs_code, TextSlot::new(y, HS_CODE, FIGURE_STYLE));
    if let Some(origin) = item.origin {
        page.add_line(origin.as_str(), TextSlot::new(y, ORIGIN, FIGURE_STYLE));
    }
    page.add_line(&item.value, TextSlot::new(y, VALUE, FIGURE_STYLE).right());
}

pub(super) fn line_value(product: &Product) -> Decimal {
    let quantity = Decimal::from(product.quantity);
    product.unit_fob_value.checked_mul(quantity).unwrap_or(product.unit_fob_value)
}

/// Returns the line with the number of pieces, the weight and the declared value, which need not be the sum of the
/// items.
fn total_line(order: &OrderRequest) -> String {
    let pieces: u64 = order.products.iter().map(|product| u64::from(product.quantity)).sum();
    let declared = format_money(order, order.parcel_details.declared_value);
    let weight = format_weight(order);
    let items = if pieces > 1 { label_text::ITEMS } else { label_text::ITEM };
    let count = format!("{} {} {items}", label_text::TOTAL, pieces.max(1));
    format!("{count}   {weight}   {declared}")
}

/// Formats the weight in kilograms; a weight below a gram counts as a gram.
pub(super) fn format_weight(order: &OrderRequest) -> String {
    let kilograms = order.parcel_details.kilograms().map(|kg| kg.max(Decimal::new(1, 3)));
    kilograms.map_or(label_text::MISSING_VALUE.to_owned(), |kg| format!("{} kg", kg.normalize()))
}

fn format_money(order: &OrderRequest, amount: Decimal) -> String {
    let amount = amount.round_dp_with_strategy(2, RoundingStrategy::MidpointAwayFromZero);
    format!("{} {amount:.2}", order.parcel_details.currency)
}
