//! Properties of labels that hold for any text.

use std::collections::BTreeSet;

use parcelo_domain::Layout;
use parcelo_types::{
    LabelFormat, OrderRequest,
    internal::{is_chinese, is_invisible, is_printable},
};
use proptest::prelude::*;
use serde_json::Value;

use super::{
    super::{
        LabelData, PRINTS_CHINESE, draw,
        element::{Align, Code128, Colour, Element, HEIGHT, Rect, Text, WIDTH},
        font::{BoundingBox, Weight, is_drawable},
        ink_bounds::{InkBounds, overlaps},
        layout,
        text::to_single_line,
        text_fit::{TextStyle, fit, shows_all},
        truncated_fields,
    },
    find_code128, find_qr, sample, texts,
};

/// Generates text of every kind: scripts with and without glyphs, control characters, commands of
/// printers, up to 500 characters.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,60}",
        "[A-Za-zÁÉÑñüç0-9 .,#-]{0,260}",
        "[ẨỘṨǺÅgjpqyQ]{1,20}",
        "[А-яЁё ]{1,80}",
        "[Α-ωάέή ]{1,80}",
        "[一-龥 ]{1,60}",
        "[א-ת\u{200F}\u{202B}\u{202E} ]{0,40}",
        "[😀-😿👩\u{200D}\u{FE0F} ]{0,40}",
        "[W\u{301}\u{200B}深😀 ^~_\\\\]{500}",
        "(\\^XZ|\\^XA|~JA|\\^FS|_5E|\\\\&|\\^FD|>:|,|\r\n|\u{1B}){1,20}",
        proptest::collection::vec(any::<char>(), 0..40).prop_map(String::from_iter),
    ]
}

fn any_layout() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::First), Just(Layout::Second)]
}

/// Generates an order with random words in every field that a label shows.
pub(super) fn any_order() -> impl Strategy<Value = OrderRequest> {
    let paths = TRUNCATABLE_FIELDS.into_iter().chain(["sender/address/line2", "products/0/hsCode"]);
    let words = proptest::collection::vec(any_text(), TRUNCATABLE_FIELDS.len() + 2);
    (words, any::<u32>(), 0..6_usize).prop_map(move |(words, quantity, products)| {
        let mut order = serde_json::to_value(sample::order()).unwrap();
        for (path, text) in paths.clone().zip(words) {
            set_field(&mut order, path, text);
        }
        let mut order: OrderRequest = serde_json::from_value(order).unwrap();
        order.products[0].quantity = quantity;
        order.products[0].country_of_origin = Some(order.sender.address.country);
        order.products = order.products.iter().cycle().take(products).cloned().collect();
        order
    })
}

/// Sets the field of an order at a path such as `products/0/description`.
fn set_field(order: &mut Value, path: &str, text: String) {
    let field = path.split('/').fold(order, |at, key| match key.parse::<usize>() {
        Ok(index) => &mut at[index],
        Err(_) => &mut at[key],
    });
    *field = text.into();
}

/// The fields that a label shows and whose texts may be longer than their space.
const TRUNCATABLE_FIELDS: [&str; 19] = [
    "customerReference",
    "sender/companyName",
    "sender/fullName",
    "sender/phone",
    "sender/address/line1",
    "sender/address/city",
    "sender/address/state",
    "sender/address/zipCode",
    "receiver/companyName",
    "receiver/fullName",
    "receiver/phone",
    "receiver/nationalId",
    "receiver/address/line1",
    "receiver/address/line2",
    "receiver/address/city",
    "receiver/address/province",
    "receiver/address/zipCode",
    "receiver/address/deliveryInstructions",
    "products/0/description",
];

/// Returns an order whose texts all fit on the label, with one line for each address.
fn short_order() -> OrderRequest {
    let mut order = sample::order();
    order.sender.address.line2 = None;
    order
}

fn area(Rect { x, y, w, h }: Rect) -> BoundingBox {
    let [left, top, right, bottom] = [x, y, x + w, y + h].map(u32::cast_signed);
    BoundingBox { left, top, right, bottom }
}

/// Returns the areas of rules and boxes.
pub(super) fn rules(elements: &[Element]) -> impl Iterator<Item = BoundingBox> {
    let rules = elements.iter().flat_map(|element| match element {
        Element::Rect(rect) => vec![*rect],
        Element::Outline(outline) => outline.rects().to_vec(),
        _ => vec![],
    });
    rules.map(area)
}

/// Returns the areas that black text must not touch: rules, and both symbols with their quiet zones.
fn obstacles(elements: &[Element]) -> Vec<BoundingBox> {
    let Code128 { y, height, .. } = find_code128(elements);
    let bars = Rect { x: 0, y: *y, w: WIDTH, h: *height };
    let qr = find_qr(elements);
    let (side, quiet) = (qr.modules * qr.module, 4 * qr.module);
    let (x, y, w) = (qr.x - quiet, qr.y - quiet, side + 2 * quiet);
    rules(elements).chain([bars, Rect { x, y, w, h: w }].map(area)).collect()
}

/// The frame of a label.
const FRAME: BoundingBox = BoundingBox { left: 16, top: 0, right: 796, bottom: 1202 };

/// Checks the box of every glyph: none is beyond its span or the frame, on an obstacle, or on another text.
pub(super) fn assert_texts_are_apart(
    elements: &[Element],
    obstacles: &[BoundingBox],
    frame: BoundingBox,
) {
    let texts = texts(elements);
    let inks: Vec<_> = texts.iter().map(|text| InkBounds::new(text)).collect();
    for (index, text) in texts.iter().enumerate() {
        let inside = text.x >= text.span.left && text.x + text.width <= text.span.right;
        assert!(inside, "out of its span: {text:?}");
        for glyph in &inks[index].glyphs {
            let in_frame = glyph.left >= frame.left
                && glyph.right <= frame.right
                && glyph.bottom < frame.bottom;
            assert!(in_frame, "out of the frame: {text:?}");
            let hit = obstacles.iter().find(|obstacle| overlaps(*glyph, **obstacle));
            assert!(hit.is_none() || text.colour == Colour::White, "{text:?} on {hit:?}");
        }
        for (other, ink) in texts.iter().zip(&inks).take(index) {
            assert!(!inks[index].touches(ink), "{text:?} touches {other:?}");
        }
    }
}

/// Checks that every character on a label leaves ink, as itself or as a box.
pub(super) fn assert_nothing_vanishes(elements: &[Element]) {
    for text in texts(elements) {
        let shown = text.line.chars().filter(|c| !c.is_whitespace()).count();
        assert_eq!(InkBounds::new(text).glyphs.len(), shown, "{text:?}");
    }
}

/// Checks that each field that has its own line begins one.
fn assert_fields_are_shown(order: &OrderRequest, elements: &[Element]) {
    let (from, to) = (&order.sender, &order.receiver);
    let fields = [
        order.customer_reference.as_deref(),
        from.company_name.as_deref(),
        Some(&from.address.line1),
        Some(&from.address.city),
        Some(&from.full_name),
        Some(&to.full_name),
        to.company_name.as_deref(),
        Some(&to.address.line1),
        to.address.zip_code.as_deref(),
        to.address.delivery_instructions.as_deref(),
    ];
    let texts = texts(elements);
    for field in fields.into_iter().flatten() {
        let begins =
            |text: &&Text| text.line.chars().next() == to_single_line(field).chars().next();
        assert!(to_single_line(field).is_empty() || texts.iter().any(begins), "{field:?}");
    }
}

/// Returns the commands for an element.
fn commands_of(element: &Element) -> Vec<&'static str> {
    match element {
        Element::Rect(_) | Element::Outline(_) => vec!["^FO", "^GB", "^FS"],
        Element::Code128(_) => vec!["^FO", "^BY", "^BC", "^FD", "^FS"],
        Element::Qr(_) => vec!["^FO", "^BQ", "^FD", "^FS"],
        Element::Text(text) if super::super::zpl::is_native_line(text) => {
            let mut commands = vec!["^FT", "^A0"];
            commands.extend((text.align != Align::Left).then_some("^FB"));
            commands.extend((text.colour == Colour::White).then_some("^FR"));
            commands.extend(["^FD", "^FS"]);
            commands
        }
        Element::Text(_) => vec!["^FO", "^GF", "^FS"],
    }
}

/// Returns the commands of a ZPL file in order, without `^FH`, which depends on the content of a field.
fn commands(zpl: &str) -> Vec<&str> {
    let starts = zpl.match_indices(['^', '~']);
    starts.map(|(at, _)| &zpl[at..at + 3]).filter(|command| *command != "^FH").collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_overlaps_overflows_or_vanishes(
        order in any_order(),
        number in "[A-Za-z0-9]([A-Za-z0-9-]{8,28})[A-Za-z0-9]",
        sandbox in any::<bool>(),
        version in any::<u32>(),
        layout in any_layout(),
    ) {
        let number = sample::number(&number);
        let data = LabelData { layout, sandbox, version, ..sample::data(&order, &number) };
        let elements = layout::lay_out(&data).unwrap();
        assert_texts_are_apart(&elements, &obstacles(&elements), FRAME);
        assert_nothing_vanishes(&elements);
        assert_fields_are_shown(&order, &elements);
        prop_assert!(draw(&data, LabelFormat::Png).unwrap().len() <= 24 * 1024);
        draw(&data, LabelFormat::Pdf).unwrap();
    }

    #[test]
    fn domestic_labels_keep_text_in_its_place(mut order in any_order()) {
        order.sender.address.country = order.receiver.address.country;
        let number = sample::number("EC7K2M9QX4T8WD0");
        let data = LabelData { layout: Layout::Second, ..sample::data(&order, &number) };
        let elements = layout::lay_out(&data).unwrap();
        assert_texts_are_apart(&elements, &obstacles(&elements), FRAME);
        assert_nothing_vanishes(&elements);
    }

    #[test]
    fn no_text_becomes_a_command(order in any_order(), layout in any_layout()) {
        let number = sample::number("EC7K2M9QX4T8WD0");
        let data = LabelData { layout, ..sample::data(&order, &number) };
        let zpl = String::from_utf8(draw(&data, LabelFormat::Zpl).unwrap()).unwrap();
        prop_assert!(zpl.bytes().all(|byte| byte == b'\n' || (b' '..=b'~').contains(&byte)));
        let elements = layout::lay_out(&data).unwrap();
        let drawn = elements.iter().flat_map(commands_of);
        let expected: Vec<_> =
            ["^XA", "^CI", "^PW", "^LL", "^LH"].into_iter().chain(drawn).chain(["^XZ"]).collect();
        prop_assert_eq!(commands(&zpl), expected);
        // Some interpreters read `\&` as a line break.
        prop_assert!(!zpl.contains("_5C&"), "{zpl}");
    }

    #[test]
    fn a_fitted_text_is_whole_or_ends_in_an_ellipsis(
        text in any_text(),
        widths in proptest::collection::vec(60..800_u32, 1..5),
    ) {
        let text = to_single_line(&text);
        let style = TextStyle { weight: Weight::Bold, sizes: &[44, 30, 20] };
        let fitted = fit(&text, style, &widths);
        let joined = |text: &str| text.replace(' ', "");
        let (given, shown) = (joined(&text), joined(&fitted.lines.concat()));
        match shown.strip_suffix('…') {
            Some(start) if !shows_all(&text, style, &widths.iter().copied()) => {
                prop_assert!(given.starts_with(start));
            }
            _ => prop_assert_eq!(given, shown),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_truncated_fields_have_a_warning(
        path in proptest::sample::select(&TRUNCATABLE_FIELDS[..]),
        text in prop_oneof![any_text(), "[A-Za-zñÉ0-9 ,W-]{20,90}"],
    ) {
        prop_assume!(!text.contains('…'));
        let mut order = serde_json::to_value(short_order()).unwrap();
        set_field(&mut order, path, text);
        let fields = order.clone();
        let order: OrderRequest = serde_json::from_value(order).unwrap();
        let number = sample::number("EC7K2M9QX4T8WD0");
        let data = LabelData { layout: Layout::NEWEST, ..sample::data(&order, &number) };
        let elements = layout::lay_out(&data).unwrap();
        let drawn: String = texts(&elements).iter().map(|text| text.line.replace(' ', "")).collect();
        let is_cut = |path: &&&str| {
            let text = fields.pointer(&format!("/{path}")).and_then(Value::as_str);
            text.is_some_and(|text| !drawn.contains(&to_single_line(text).replace(' ', "")))
        };
        let cut = TRUNCATABLE_FIELDS.iter().filter(is_cut);
        let expected = cut.map(|path| path.replace("/0/", "[0].").replace('/', "."));
        let found = truncated_fields(&order);
        prop_assert_eq!(BTreeSet::from_iter(found), expected.collect::<BTreeSet<_>>());
    }
}

/// Returns `true` if these labels promise to print the character: the rules accept it without a warning.
fn is_accepted_without_warning(c: char) -> bool {
    is_printable(c) || PRINTS_CHINESE && is_chinese(c)
}

#[test]
fn undrawable_characters_cause_a_warning() {
    let warned = |c: char| !is_accepted_without_warning(c) && !is_invisible(c) && !c.is_control();
    let silent: BTreeSet<char> = ('\0'..=char::MAX)
        .flat_map(|c| to_single_line(&c.to_string()).chars().collect::<Vec<_>>())
        .filter(|c| !is_drawable(*c) && !warned(*c))
        .collect();
    assert!(silent.is_empty(), "boxes without a warning: {silent:?}");
}

#[test]
fn labels_omit_only_invisible_characters() {
    let gone: Vec<char> = ('\0'..=char::MAX)
        .filter(|c| to_single_line(&c.to_string()).is_empty())
        .filter(|c| !is_invisible(*c) && !c.is_control() && !c.is_whitespace())
        .collect();
    assert!(gone.is_empty(), "{gone:?}");
}

#[test]
fn printable_characters_can_be_drawn() {
    let printable = ('\0'..=char::MAX).filter(|c| is_accepted_without_warning(*c));
    let missing: String = printable.filter(|c| !is_drawable(*c)).collect();
    assert_eq!(missing, "", "the rules accept characters that the fonts lack");
}

#[test]
fn no_element_is_below_the_bottom_edge() {
    let order = sample::order();
    let number = sample::number("EC7K2M9QX4T8WD0");
    let elements = layout::lay_out(&sample::data(&order, &number)).unwrap();
    assert!(obstacles(&elements).iter().all(|area| area.bottom < HEIGHT.cast_signed()));
}
