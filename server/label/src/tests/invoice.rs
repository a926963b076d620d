//! Tests of invoices. Three are compared byte for byte with the golden files in `docs/invoices`:
//! `PARCELO_BLESS=1 cargo test -p parcelo-label golden_invoices` writes them.

use parcelo_types::{ContentsCategory, CountryCode, CustomsInfo, Incoterm, OrderRequest};
use proptest::prelude::*;
use rust_decimal::Decimal;

use super::{
    super::{
        draw_invoice, element::Element, font::BoundingBox, invoice, invoice_items,
        text::to_single_line,
    },
    extract_pages, golden,
    random::{any_order, assert_nothing_vanishes, assert_texts_are_apart, rules},
    sample, texts,
};
use crate::LabelData;

/// Returns an order with everything that an order can state for customs.
fn complete_order() -> OrderRequest {
    let mut order = sample::order();
    order.external_order_id = Some("ORD-2026-000123".to_owned());
    order.customer_reference = Some("Pedido n.º 7".to_owned());
    order.sender.full_name = "Wei Chen".to_owned();
    order.sender.email = Some("export@brillante.example".to_owned());
    order.receiver.company_name = Some("Andina de Repuestos S.A.".to_owned());
    order.receiver.address.line2 = Some("Dpto. 402".to_owned());
    let goods = CustomsInfo::new("Repuestos")
        .with_contents_category(ContentsCategory::SaleOfGoods)
        .with_incoterm(Incoterm::Dap);
    order.customs_info = Some(goods);
    let details = &mut order.parcel_details;
    let ten = Some(Decimal::TEN);
    (details.length_cm, details.width_cm, details.height_cm) = (ten, ten, ten);
    for product in &mut order.products {
        product.country_of_origin = Some(CountryCode::parse("CN").unwrap());
        product.unit_net_weight_kg = Some(Decimal::new(125, 3));
        product.sku = Some("SKU-1".to_owned());
    }
    order
}

/// Returns an order with this number of items, to a destination where English comes first on the invoice.
fn order_to_united_states(items: usize) -> OrderRequest {
    let mut order = complete_order();
    order.receiver.address.country = CountryCode::US;
    order.products = order.products.iter().cycle().take(items).cloned().collect();
    for (number, product) in (1..).zip(&mut order.products) {
        product.description = Some(format!("Article {number:03} of cotton, knitted"));
    }
    order.parcel_details.declared_value =
        invoice_items::totals(&invoice_items::items(&order)).amount;
    order
}

/// Returns the invoices that have a golden file: file name, order and tracking number.
fn golden_invoices() -> [(&'static str, OrderRequest, &'static str); 3] {
    let mut bare = sample::order();
    bare.products.clear();
    [
        ("ecuador.pdf", complete_order(), "EC7K2M9QX4T8WD0"),
        ("hundred-items.pdf", order_to_united_states(100), "US123456789CN"),
        ("without-items.pdf", bare, "SB-SUCCESS-0001"),
    ]
}

fn draw_pdf(order: &OrderRequest, number: &str) -> Vec<u8> {
    let number = sample::number(number);
    let sandbox = number.is_sandbox();
    let awb = (!sandbox).then_some("045-12345675");
    draw_invoice(&LabelData { sandbox, awb, ..sample::data(order, &number) }).unwrap()
}

fn lay_out_pages(order: &OrderRequest) -> Vec<Vec<Element>> {
    invoice::draw_pages(&sample::data(order, &sample::number("EC7K2M9QX4T8WD0")))
}

fn invoice_lines(order: &OrderRequest) -> Vec<String> {
    let pages = lay_out_pages(order);
    pages.iter().flat_map(|page| texts(page)).map(|text| text.line.clone()).collect()
}

#[test]
fn golden_invoices_are_unchanged() {
    let drawn = golden_invoices().into_iter();
    let drawn = drawn.map(|(name, order, number)| (name.to_owned(), draw_pdf(&order, number)));
    golden::assert_golden("invoices", drawn);
}

#[test]
fn an_invoice_says_all_that_the_order_says_in_both_languages() {
    let shown = extract_pages(&draw_pdf(&complete_order(), "EC7K2M9QX4T8WD0"), 1);
    let expected = [
        "FACTURA COMERCIAL / COMMERCIAL INVOICE",
        "EXPORTADOR / EXPORTER",
        "Shenzhen Brillante Trading Co. Ltd.",
        "Wei Chen",
        "Keji South Rd 12",
        "Shenzhen, Guangdong 518057",
        "export@brillante.example",
        "CONSIGNATARIO / CONSIGNEE",
        "Andina de Repuestos S.A.",
        "José Ángel Muñoz Güiñazú",
        "CÉDULA 1712345678",
        "Dpto. 402",
        "170150 Quito, Pichincha",
        "ECUADOR (EC)",
        "+593 99 123 4567",
        "Número / Number",
        "EC7K2M9QX4T8WD0",
        "2026-11-21",
        "ORD-2026-000123",
        "Pedido n.º 7",
        "045-12345675",
        "Incoterms 2020",
        "DAP",
        "Venta de mercancías / Sale of goods",
        "10 × 10 × 10 cm",
        "1.25 kg",
        "Teléfono móvil, funda de silicona · SKU-1",
        "392690",
        "CN",
        "12.00",
        "24.00",
        "Total de los artículos / Total of the items",
        "6",
        "0.75",
        "USD 59.50",
        "Valor declarado en aduana / Declared customs value",
        "Declaro que los datos de esta factura son verdaderos y correctos.",
        "I declare that the information on this invoice is true and correct.",
        "Página / Page 1 / 1",
    ];
    let missing: Vec<_> =
        expected.into_iter().filter(|part| !shown.iter().any(|line| line == part)).collect();
    assert!(missing.is_empty(), "{missing:?} in {shown:?}");
    assert!(!shown.iter().any(|line| line.contains("SANDBOX")));
}

#[test]
fn all_items_are_listed_in_order_on_as_many_pages_as_needed() {
    for count in [1, 20, 24, 25, 60, 500] {
        let order = order_to_united_states(count);
        let pages = lay_out_pages(&order);
        let shown = invoice_lines(&order);
        let items: Vec<_> = shown.iter().filter(|line| line.starts_with("Article ")).collect();
        let expected: Vec<_> = invoice_items::items(&order);
        assert_eq!(items.len(), count);
        assert!(items.iter().zip(&expected).all(|(line, item)| **line == item.description));
        for (number, page) in (1..).zip(&pages) {
            let number = format!("Page / Página {number} / {}", pages.len());
            let lines = texts(page);
            assert!(lines.iter().any(|text| text.line == number), "{number}");
            assert!(lines.iter().any(|text| text.line == "EC7K2M9QX4T8WD0"), "{number}");
            assert!(lines.iter().any(|text| text.line == "HS code"), "{number}: its headings");
        }
        assert_eq!(shown.iter().filter(|line| line.starts_with("Total of the items")).count(), 1);
        assert!(pages.len() <= 1 + count / 20, "{count} items on {} pages", pages.len());
    }
}

#[test]
fn nothing_is_stated_that_the_order_does_not_state() {
    let order = sample::order();
    let shown = invoice_lines(&order);
    assert!(!shown.iter().any(|line| line == "CN" || line == "DAP" || line == "0.75"), "{shown:?}");
    let open = shown.iter().filter(|line| *line == "—").count();
    assert_eq!(open, 5, "reference, air waybill, Incoterms, contents, size: {shown:?}");
}

#[test]
fn an_invoice_file_has_no_dates_and_lets_printers_scale_it() {
    let pdf = draw_pdf(&complete_order(), "SB-SUCCESS-0001");
    let text = String::from_utf8_lossy(&pdf);
    assert!(text.contains("/MediaBox[0 0 595 842]") && text.contains("/ToUnicode"));
    for part in ["/CreationDate", "/ModDate", "/ID", "/PrintScaling"] {
        assert!(!text.contains(part), "{part}");
    }
    assert!(extract_pages(&pdf, 1).iter().any(|line| line.starts_with("SANDBOX")));
}

/// The columns of text, and the bottom of the page.
const MARGINS: BoundingBox = BoundingBox { left: 64, top: 0, right: 1126, bottom: 1660 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_of_an_invoice_overlaps_overflows_or_vanishes(
        order in any_order(),
        items in 0..70_usize,
    ) {
        let mut order = order;
        order.products = order.products.iter().cycle().take(items).cloned().collect();
        let pages = lay_out_pages(&order);
        for page in &pages {
            assert_texts_are_apart(page, &rules(page).collect::<Vec<_>>(), MARGINS);
            assert_nothing_vanishes(page);
        }
        let shown = invoice_lines(&order);
        for field in [&order.receiver.company_name, &order.receiver.address.line2] {
            let field = to_single_line(field.as_deref().unwrap_or_default());
            let begins = |line: &String| line.chars().next() == field.chars().next();
            prop_assert!(field.is_empty() || shown.iter().any(begins), "{field:?}");
        }
        draw_pdf(&order, "SB-SUCCESS-0001");
    }
}
