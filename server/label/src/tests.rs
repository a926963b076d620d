//! Tests of single labels, in each format.

mod corpus;
mod golden;
mod invoice;
mod oracles;
mod random;

use std::collections::HashMap;

use miniz_oxide::inflate::decompress_to_vec_zlib;
use rxing::BarcodeFormat;

use super::{
    element::{Code128, Element, HEIGHT, Qr, Text, WIDTH},
    text::to_single_line,
    *,
};

/// Tracking numbers of every width of bars.
const NUMBERS: [&str; 8] = [
    "0123456789",
    "EC123456789CN",
    "SB-SUCCESS-001",
    "SB-SUCCESS-00010203",
    "SB-SUCCESS-000102030",
    "ec7k2m9qx4t8wd0",
    "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWW",
    "SB-CUSTOMS-0123456789-01234567",
];

fn draw_sample(sandbox: bool, format: LabelFormat) -> Vec<u8> {
    let (order, number) = (sample::order(), sample::number("EC7K2M9QX4T8WD0"));
    draw(&LabelData { sandbox, ..sample::data(&order, &number) }, format).unwrap()
}

fn lay_out_order(order: &OrderRequest) -> Vec<Element> {
    layout::lay_out(&sample::data(order, &sample::number("EC7K2M9QX4T8WD0"))).unwrap()
}

/// The dots of a PNG file: `true` is black.
struct Dots(Vec<bool>);

impl Dots {
    fn read(file: &[u8]) -> Self {
        let mut reader = ::png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let info = reader.info();
        assert_eq!((info.width, info.height), (WIDTH, HEIGHT));
        assert_eq!(
            (info.color_type, info.bit_depth),
            (::png::ColorType::Grayscale, ::png::BitDepth::One)
        );
        let density = info.pixel_dims.unwrap();
        assert_eq!((density.xppu, density.yppu, density.unit), (7992, 7992, ::png::Unit::Meter));
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut bytes).unwrap();
        let row = |row: &[u8]| -> Vec<bool> {
            (0..WIDTH as usize).map(|x| row[x / 8] >> (7 - x % 8) & 1 == 0).collect()
        };
        Self(bytes.chunks(WIDTH.div_ceil(8) as usize).flat_map(row).collect())
    }

    /// Returns `true` if no dot is black from `left` to `right` and `top` to `bottom`, ends excluded.
    fn is_white(&self, (left, right): (u32, u32), (top, bottom): (u32, u32)) -> bool {
        let at = |x: u32, y: u32| self.0[(y * WIDTH + x) as usize];
        (top..bottom).all(|y| (left..right).all(|x| !at(x, y)))
    }

    fn decode(&self, format: BarcodeFormat) -> Option<String> {
        let luma: Vec<u8> = self.0.iter().map(|black| if *black { 0 } else { 255 }).collect();
        let found =
            rxing::helpers::detect_in_luma_slice(&luma, WIDTH, HEIGHT, Some(format)).ok()?;
        Some(found.getText().to_owned())
    }
}

fn find_code128(elements: &[Element]) -> &Code128 {
    let found = elements.iter().find_map(|element| match element {
        Element::Code128(code) => Some(code),
        _ => None,
    });
    found.unwrap()
}

fn find_qr(elements: &[Element]) -> &Qr {
    let found = elements.iter().find_map(|element| match element {
        Element::Qr(qr) => Some(qr),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn both_symbols_can_be_decoded_from_the_image() {
    let order = sample::order();
    for text in NUMBERS {
        let number = sample::number(text);
        let url = format!("https://sandbox.parcelo.example/track/{text}");
        let data = LabelData { tracking_url: &url, ..sample::data(&order, &number) };
        let dots = Dots::read(&draw(&data, LabelFormat::Png).unwrap());
        assert_eq!(dots.decode(BarcodeFormat::CODE_128).as_deref(), Some(text));
        assert_eq!(dots.decode(BarcodeFormat::QR_CODE).as_deref(), Some(url.as_str()));
    }
}

#[test]
fn module_width_depends_on_the_length_of_the_number() {
    let order = sample::order();
    for (length, module) in [(10, 4), (13, 4), (14, 3), (19, 3), (20, 2), (30, 2)] {
        let number = sample::number(&"A".repeat(length));
        let data = sample::data(&order, &number);
        let elements = layout::lay_out(&data).unwrap();
        let code = find_code128(&elements);
        let right = code.x + code.bars.modules() * code.module;
        assert_eq!((code.module, code.y, code.height), (module, 748, 176), "{length}");
        assert!(code.x >= 10 * module && WIDTH - right >= 10 * module, "{length}");

        let dots = Dots::read(&draw(&data, LabelFormat::Png).unwrap());
        for side in [(0, code.x), (right, WIDTH)] {
            assert!(dots.is_white(side, (code.y, code.y + code.height)), "{length}: {side:?}");
        }
    }
}

#[test]
fn quiet_zone_of_the_qr_symbol_and_the_edge_are_white() {
    let order = sample::order();
    let number = sample::number("EC7K2M9QX4T8WD0");
    for length in [30, 45, 60, 75, 100, 150] {
        let url = format!("https://x.example/{}", "a".repeat(length - 18));
        let data = LabelData { tracking_url: &url, ..sample::data(&order, &number) };
        let elements = layout::lay_out(&data).unwrap();
        let Qr { x, y, module, modules, .. } = find_qr(&elements);
        let (side, quiet) = (modules * module, 4 * module);
        let (left, right) = (x - quiet, x + side + quiet);
        let (top, bottom) = (y - quiet, y + side + quiet);
        let dots = Dots::read(&draw(&data, LabelFormat::Png).unwrap());
        assert!(dots.is_white((left, right), (top, *y)), "{length}: above");
        assert!(dots.is_white((left, right), (y + side, bottom)), "{length}: below");
        assert!(dots.is_white((left, *x), (top, bottom)), "{length}: left");
        assert!(dots.is_white((x + side, right), (top, bottom)), "{length}: right");
        for (across, down) in [
            ((0, WIDTH), (0, 4)),
            ((0, WIDTH), (HEIGHT - 4, HEIGHT)),
            ((0, 4), (0, HEIGHT)),
            ((WIDTH - 4, WIDTH), (0, HEIGHT)),
        ] {
            assert!(dots.is_white(across, down), "{length}: edge");
        }
    }
}

#[test]
fn a_url_beyond_the_box_is_an_error() {
    let (order, number) = (sample::order(), sample::number("EC7K2M9QX4T8WD0"));
    let url = format!("https://x.example/{}", "a".repeat(3000));
    let data = LabelData { tracking_url: &url, ..sample::data(&order, &number) };
    assert_eq!(draw(&data, LabelFormat::Pdf).err(), Some(LabelError::Qr));
}

/// Returns the streams of a PDF file, decompressed.
fn streams(pdf: &[u8]) -> Vec<Vec<u8>> {
    let find = |from: usize, marker: &[u8]| {
        pdf[from..].windows(marker.len()).position(|bytes| bytes == marker).map(|at| from + at)
    };
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(start) = find(from, b"\nstream\n") {
        let end = find(start, b"\nendstream").unwrap();
        found.push(decompress_to_vec_zlib(&pdf[start + 8..end]).unwrap());
        from = end;
    }
    found
}

/// Returns the lines of text that can be copied from a label's PDF.
fn extract_text(pdf: &[u8]) -> Vec<String> {
    extract_pages(pdf, 1)
}

fn extract_pages(pdf: &[u8], pages: usize) -> Vec<String> {
    let streams = streams(pdf);
    // Each font has two streams; a document without Chinese has two fonts.
    let [regular, bold, han] = [0, 2, 4].map(|index| {
        streams.get(pages + index).map(|map| parse_to_unicode(map)).unwrap_or_default()
    });
    let mut lines: Vec<String> = Vec::new();
    let mut map = &regular;
    let content = streams[..pages].concat();
    let mut rest = content.as_slice();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'/' if tail[0] == b'H' => map = &han,
            b'/' => map = if tail[0] == b'R' { &regular } else { &bold },
            b'(' | b'<' => {
                let (glyphs, after) = parse_pdf_string(*first, tail);
                let ids = glyphs.chunks(2).map(|id| u16::from_be_bytes([id[0], id[1]]));
                lines.push(ids.map(|id| map[&id]).collect());
                rest = after;
            }
            _ => {}
        }
    }
    lines
}

/// Reads a PDF string, literal or hexadecimal; returns it and the rest.
fn parse_pdf_string(opening: u8, text: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut bytes = Vec::new();
    let mut at = 0;
    let mut depth = 0;
    loop {
        match (opening, text[at]) {
            (b'<', b'>') => return (bytes, &text[at + 1..]),
            (b'<', _) => {
                let pair = std::str::from_utf8(&text[at..at + 2]).unwrap();
                bytes.push(u8::from_str_radix(pair, 16).unwrap());
                at += 1;
            }
            (_, b')') if depth == 0 => return (bytes, &text[at + 1..]),
            (_, b'\\') => {
                at += 1;
                let known = [(b'n', b'\n'), (b'r', b'\r'), (b't', b'\t'), (b'b', 8), (b'f', 12)];
                let byte = known.iter().find(|(letter, _)| *letter == text[at]);
                if text[at].is_ascii_digit() {
                    let octal = std::str::from_utf8(&text[at..at + 3]).unwrap();
                    bytes.push(u8::from_str_radix(octal, 8).unwrap());
                    at += 2;
                } else {
                    bytes.push(byte.map_or(text[at], |(_, byte)| *byte));
                }
            }
            (_, byte) => {
                depth += i32::from(byte == b'(') - i32::from(byte == b')');
                bytes.push(byte);
            }
        }
        at += 1;
    }
}

/// Returns glyph → character from a `ToUnicode` map.
fn parse_to_unicode(map: &[u8]) -> HashMap<u16, char> {
    let text = std::str::from_utf8(map).unwrap();
    let pair = |line: &str| {
        let (id, character) = line.strip_prefix('<')?.strip_suffix('>')?.split_once("> <")?;
        let number = |hex| u32::from_str_radix(hex, 16).ok();
        Some((number(id)? as u16, char::from_u32(number(character)?)?))
    };
    text.lines().filter_map(pair).collect()
}

#[test]
fn sandbox_labels_say_so_and_others_do_not() {
    for sandbox in [true, false] {
        let pdf = extract_text(&draw_sample(sandbox, LabelFormat::Pdf)).join("\n");
        assert_eq!(pdf.contains("SANDBOX"), sandbox, "PDF");
        let zpl = String::from_utf8(draw_sample(sandbox, LabelFormat::Zpl)).unwrap();
        assert_eq!(zpl.contains("SANDBOX") && zpl.contains("^FO19,127^GB774,56,56"), sandbox);
        let dots = Dots::read(&draw_sample(sandbox, LabelFormat::Png));
        // The band to the right of all texts is black with the mark and white without.
        assert_eq!(!dots.is_white((782, 790), (130, 180)), sandbox, "PNG");
    }
}

#[test]
fn accented_text_is_drawn_in_every_format() {
    let pdf = extract_text(&draw_sample(true, LabelFormat::Pdf));
    assert!(pdf.iter().any(|line| line.ends_with("Иван Ёлкин")), "{pdf:?}");
    let zpl = String::from_utf8(draw_sample(true, LabelFormat::Zpl)).unwrap();
    assert!(zpl.contains("^FH^FDJos_C3_A9 _C3_81ngel Mu_C3_B1oz G_C3_BCi_C3_B1az_C3_BA^FS"));
    assert!(zpl.is_ascii());
    assert_eq!(zpl.matches("^GFA").count(), 1, "the line with Cyrillic, and no other");
}

#[test]
fn files_are_small() {
    let number = sample::number("EC7K2M9QX4T8WD0");
    let mut latin = sample::order();
    latin.sender.full_name = "Juan Zhang".to_owned();
    let rows = [
        (LabelFormat::Png, sample::order(), 24 * 1024),
        (LabelFormat::Png, sample::full_order(), 24 * 1024),
        (LabelFormat::Pdf, sample::order(), 18 * 1024),
        (
            LabelFormat::Pdf,
            sample::full_order(),
            if cfg!(feature = "cjk") { 24 } else { 18 } * 1024,
        ),
        (LabelFormat::Zpl, sample::order(), 6_656),
        (LabelFormat::Zpl, latin, 3_072),
    ];
    for (format, order, limit) in rows {
        let size = draw(&sample::data(&order, &number), format).unwrap().len();
        assert!(size <= limit, "{format}: {size} > {limit}");
    }
}

#[test]
fn a_pdf_is_one_page_of_four_by_six_inches_without_dates() {
    let pdf = draw_sample(true, LabelFormat::Pdf);
    let text = String::from_utf8_lossy(&pdf);
    for part in ["/MediaBox[0 0 288 432]", "/PrintScaling/None", "/ToUnicode", "/FontFile2"] {
        assert!(text.contains(part), "{part}");
    }
    for part in ["/CreationDate", "/ModDate", "/ID"] {
        assert!(!text.contains(part), "{part}");
    }
}

#[test]
fn labels_show_reprints_and_air_waybills() {
    let (order, number) = (sample::order(), sample::number("EC7K2M9QX4T8WD0"));
    let data = sample::data(&order, &number);
    let lines = |data| extract_text(&draw(&data, LabelFormat::Pdf).unwrap());
    assert!(!lines(data).contains(&"R1".to_owned()));
    assert!(lines(LabelData { version: 2, ..data }).contains(&"R1".to_owned()));
    assert!(lines(LabelData { version: u32::MAX, ..data }).iter().any(|l| l.starts_with('R')));
    let flown = lines(LabelData { awb: Some("045-12345675"), ..data });
    assert!(flown.contains(&"045-12345675".to_owned()));
}

/// The lines of a usual label that show each of its parts, with captions in both languages.
const PARTS: [&str; 32] = [
    "PARCELO",
    "CROSS-BORDER / TRANSFRONTERIZO",
    "UIO-170",
    "EXPORT / EXPORTACIÓN",
    "FROM / REMITENTE",
    "Shenzhen Brillante Trading Co. Ltd.",
    "Wei Chen",
    "Rm 1203, Bldg 7, Nanshan Science Park, Keji South Rd 12",
    "Shenzhen, Guangdong 518057",
    "CHINA (CN)   +86 755 8888 1234",
    "TO / DESTINATARIO",
    "José Ángel Muñoz Güiñazú",
    "Av. Amazonas N34-451 y",
    "Atahualpa, Edificio Ñandú, Piso 7, Oficina 702",
    "170150 Quito, Pichincha",
    "ECUADOR (EC)   CÉDULA 1712345678",
    "+593 99 123 4567",
    "WEIGHT / PESO",
    "1.25 kg",
    "PCS / PZAS",
    "DATE / FECHA",
    "2026-11-21",
    "AWB / GUÍA AÉREA",
    "045-12345675",
    "EC7K2M9QX4T8WD0",
    "R2",
    "CUSTOMS / ADUANA",
    "QTY / CANT",
    "HS / SA",
    "VALUE / VALOR",
    "TOTAL 6 items / artículos   1.25 kg   USD 59.50",
    "Entregar en portería; llamar antes. No dejar con vecinos.",
];

#[test]
fn every_part_is_shown_in_both_languages() {
    let cases = corpus::golden_cases();
    let reprint = cases.iter().find(|case| case.name == "reprint").unwrap();
    let shown = extract_text(&draw(&reprint.data(), LabelFormat::Pdf).unwrap());
    let missing: Vec<_> =
        PARTS.into_iter().filter(|part| !shown.iter().any(|line| line == part)).collect();
    assert!(missing.is_empty(), "{missing:?} in {shown:?}");
}

#[test]
#[cfg(feature = "cjk")]
fn chinese_is_drawn_without_warning() {
    let cases = corpus::golden_cases();
    let chinese = cases.iter().find(|case| case.name == "chinese").unwrap();
    let pdf = draw(&chinese.data(), LabelFormat::Pdf).unwrap();
    let (file, text) = (String::from_utf8_lossy(&pdf), extract_text(&pdf).concat());
    assert!(file.contains("/CIDFontType0C") && file.contains("NotoSansCJKsc"));
    assert!(text.contains("深圳市光辉贸易有限公司陈伟"), "{text}");
    assert!(!text.contains(char::REPLACEMENT_CHARACTER), "{text}");
    assert!("深圳市".chars().all(parcelo_types::internal::is_chinese));
}

#[test]
fn at_most_four_items_are_listed() {
    for (count, more) in [(0, None), (1, None), (4, None), (5, Some(2)), (500, Some(497))] {
        let mut order = sample::order();
        order.products = vec![order.products[0].clone(); count];
        let shown = label_lines(&order);
        let rows = shown.iter().filter(|line| line.starts_with("Teléfono")).count();
        assert_eq!(rows, if more.is_some() { 3 } else { count }, "{count}");
        let line = more.map(|more| format!("+ {more} more: see the invoice / más: ver la factura"));
        assert_eq!(shown.iter().find(|line| line.starts_with("+ ")), line.as_ref());
    }
}

#[test]
fn weights_are_in_kilograms_and_at_least_a_gram() {
    for (kilograms, shown) in
        [("1.250", "1.25 kg"), ("0.4", "0.4 kg"), ("0.001", "0.001 kg"), ("0.0004", "0.001 kg")]
    {
        let mut order = sample::order();
        order.parcel_details.weight_kg = Some(kilograms.parse().unwrap());
        assert!(label_lines(&order).iter().any(|line| line == shown), "{shown}");
    }
}

#[test]
fn a_long_address_is_shown_in_full() {
    let order = sample::full_order();
    let street = &order.receiver.address.line1;
    let shown = label_lines(&order).join(" ");
    assert!(shown.contains(street), "{shown}");
    assert!(shown.contains(&order.receiver.full_name), "{shown}");
}

/// Country, telephone number and national id never displace each other while the label has room.
#[test]
fn a_long_national_id_does_not_hide_the_telephone_number() {
    let streets = ["King Edward Point", &sample::full_order().receiver.address.line1.clone()];
    for street in streets {
        for id in ["X12345678", "123456789012345678901234567890", &"X".repeat(255)] {
            let mut order = sample::order();
            order.receiver.address.line1 = street.to_owned();
            order.receiver.address.country = parcelo_types::CountryCode::parse("GS").unwrap();
            order.receiver.id_type = Some(parcelo_types::IdType::Passport);
            order.receiver.national_id = Some(id.to_owned());
            let shown = label_lines(&order);
            assert!(shown.iter().any(|line| line.contains("+593 99 123 4567")), "{shown:?}");
            assert!(shown.iter().any(|line| line.contains("SANDWICH ISLANDS (GS)")), "{shown:?}");
            assert!(shown.iter().any(|line| line.contains("PASSPORT")), "{shown:?}");
            let whole = shown.iter().any(|line| line.contains(&format!("PASAPORTE {id}")));
            let span = street.len() < 30 && id.len() < 40 || id.len() < 10;
            assert!(whole || !span, "{id} of {shown:?}");
        }
    }
}

fn label_lines(order: &OrderRequest) -> Vec<String> {
    texts(&lay_out_order(order)).into_iter().map(|text| text.line.clone()).collect()
}

/// Without the number of the flat, the parcel cannot be delivered.
#[test]
fn the_receivers_flat_and_company_are_on_the_label() {
    let mut order = sample::order();
    order.receiver.address.line1 = "Av. 6 de Diciembre N33-42".to_owned();
    order.receiver.address.line2 = Some("Edificio Titanium, Dpto. 402".to_owned());
    order.receiver.company_name = Some("Andina de Repuestos S.A.".to_owned());
    let shown = label_lines(&order);
    for line in [
        "José Ángel Muñoz Güiñazú",
        "Andina de Repuestos S.A.",
        "Av. 6 de Diciembre N33-42, Edificio Titanium, Dpto. 402",
        "170150 Quito, Pichincha",
        "+593 99 123 4567",
    ] {
        assert!(shown.iter().any(|shown| shown == line), "{line}: {shown:?}");
    }
}

#[test]
fn person_and_company_have_a_line_each_beside_long_addresses() {
    let mut order = sample::full_order();
    order.receiver.company_name = Some("Comercializadora Andina de Repuestos S.A.".to_owned());
    order.receiver.address.line2 =
        Some("Entrada por el parqueadero posterior, Dpto. 402".to_owned());
    order.sender.address.line1 = "Building 7, Nanshan Science and Technology Park".to_owned();
    order.sender.address.line2 = Some("Keji South Road 12, Block C, Room 1203".to_owned());
    let shown = label_lines(&order);
    let marks = lay_out_order(&order);
    let bold = |line: &str| {
        texts(&marks).iter().any(|text| text.line == line && text.weight == font::Weight::Bold)
    };
    assert!(bold("Comercializadora Andina de Repuestos S.A.") && bold("Villavicencio Rodríguez"));
    for line in [&order.sender.company_name, &order.receiver.company_name] {
        assert!(shown.iter().any(|shown| Some(shown) == line.as_ref()), "{line:?}: {shown:?}");
    }
    let joined = shown.join(" ");
    for part in [
        "Nanshan Science and Technology Park, Keji South Road 12, Block C, Room 1203",
        "Calle de los Conquistadores, Entrada por el parqueadero posterior, Dpto. 402",
        "María Fernanda de los Ángeles Villavicencio Rodríguez",
        "CHINA (CN)",
        "+86 755 8888 1234",
        "ECUADOR (EC)",
        "CÉDULA 1712345678",
        "+593 99 123 4567",
    ] {
        assert!(joined.contains(part), "{part}: {joined}");
    }
}

/// The sender's country is where goods are shipped from, not where they were made.
#[test]
fn an_origin_is_shown_only_where_the_order_states_one() {
    let mut order = sample::order();
    let origins = |order: &OrderRequest| -> Vec<String> {
        let shown = label_lines(order);
        shown.into_iter().filter(|line| ["ORIG.", "CN", "VN"].contains(&line.as_str())).collect()
    };
    assert_eq!(origins(&order), [""; 0]);
    order.products[1].country_of_origin = Some(parcelo_types::CountryCode::parse("VN").unwrap());
    assert_eq!(origins(&order), ["ORIG.", "VN"]);
    // Nothing is shown of an item that is only counted.
    order.products = vec![order.products[0].clone(); 5];
    order.products[4].country_of_origin = Some(parcelo_types::CountryCode::parse("VN").unwrap());
    assert_eq!(origins(&order), [""; 0]);
}

#[test]
fn instructions_take_the_free_rows_of_the_customs_box() {
    let long = "Entregar en portería; llamar antes. No dejar con vecinos. ".repeat(8);
    let two = "Entregar en portería; llamar antes. ".repeat(4);
    for (items, text, lines) in [
        (1, "Timbre roto", 1),
        (1, two.as_str(), 2),
        (1, &long, 3),
        (2, &long, 3),
        (3, &long, 2),
        (4, &long, 1),
        (20, &long, 1),
    ] {
        let mut order = sample::order();
        order.products = vec![order.products[0].clone(); items];
        order.receiver.address.delivery_instructions = Some(text.to_owned());
        let elements = lay_out_order(&order);
        let texts = texts(&elements);
        let total = texts.iter().position(|text| text.line.starts_with("TOTAL")).unwrap();
        let below = &texts[total + 1..];
        assert_eq!(below.len(), lines, "{items}: {below:?}");
        let shown: Vec<_> = below.iter().map(|text| text.line.as_str()).collect();
        let shown = shown.join(" ");
        let whole = shown == to_single_line(text);
        assert!(whole || shown.ends_with('…'), "{items}: {shown}");
        assert!(below.iter().all(|line| line.baseline > texts[total].baseline + 30));
    }
}

/// Draws a new label. The functions above draw labels in the first layout.
fn new_label(order: &OrderRequest) -> Vec<Element> {
    let number = sample::number("EC7K2M9QX4T8WD0");
    layout::lay_out(&LabelData { layout: Layout::Second, ..sample::data(order, &number) }).unwrap()
}

fn new_lines(order: &OrderRequest) -> Vec<String> {
    texts(&new_label(order)).into_iter().map(|text| text.line.clone()).collect()
}

/// Postal services publish these forms. Orders may be between any two countries.
#[test]
fn town_region_and_postal_code_are_in_the_countrys_order() {
    let table = [
        ("US", "New York", "NY", "10118", "New York, NY 10118"),
        ("CA", "Toronto", "ON", "M5V 3L9", "Toronto ON M5V 3L9"),
        ("GB", "London", "", "EC1A 1BB", "London EC1A 1BB"),
        ("AU", "Sydney", "NSW", "2000", "Sydney NSW 2000"),
        ("EC", "Quito", "Pichincha", "170515", "170515 Quito, Pichincha"),
        ("MX", "Guadalajara", "Jalisco", "44100", "44100 Guadalajara, Jalisco"),
        ("CO", "Medellín", "Antioquia", "050001", "Medellín, Antioquia 050001"),
        ("BR", "São Paulo", "SP", "01310-100", "São Paulo-SP 01310-100"),
        ("DE", "Berlin", "", "10115", "10115 Berlin"),
        ("US", "Reno", "", "", "Reno"),
    ];
    for (country, city, region, zip, line) in table {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let mut order = sample::order();
        let to = &mut order.receiver.address;
        to.country = parcelo_types::CountryCode::parse(country).unwrap();
        (to.city, to.province, to.zip_code) = (city.to_owned(), given(region), given(zip));
        let from = &mut order.sender.address;
        from.country = parcelo_types::CountryCode::parse(country).unwrap();
        (from.city, from.state, from.zip_code) = (city.to_owned(), given(region), given(zip));
        let shown = new_lines(&order);
        let count = shown.iter().filter(|shown| *shown == line).count();
        assert_eq!(count, 2, "{line}: {shown:?}");
    }
}

#[test]
fn within_a_country_instructions_replace_the_customs_box() {
    let mut order = sample::order();
    assert!(new_lines(&order).contains(&"CUSTOMS / ADUANA".to_owned()));
    order.sender.address.country = order.receiver.address.country;
    let long = "Entregar en portería; llamar antes. No dejar con vecinos. ".repeat(8);
    order.receiver.address.delivery_instructions = Some(long.clone());
    let shown = new_lines(&order);
    assert!(!shown.iter().any(|line| line.contains("CUSTOMS") || line.starts_with("TOTAL")));
    assert!(shown.join(" ").contains(to_single_line(&long).trim()), "{shown:?}");
    order.receiver.address.delivery_instructions = None;
    let below_bars =
        |element: &Element| matches!(element, Element::Outline(outline) if outline.outer.y > 900);
    assert!(!new_label(&order).iter().any(below_bars), "no empty box");
}

#[test]
fn instructions_have_a_caption_and_a_warning_if_truncated() {
    let caption = |shown: &[String]| shown.iter().any(|line| line == "DELIVERY / ENTREGA");
    let long = "Entregar en portería; llamar antes. No dejar con vecinos. ".repeat(8);
    for (items, instructions, cut) in [
        (1, "", false),
        (1, "Timbre roto", false),
        (1, &long[..150], false),
        (4, &long[..150], true),
        (1, &long, true),
    ] {
        let mut order = sample::order();
        order.products = vec![order.products[0].clone(); items];
        order.receiver.address.delivery_instructions = Some(instructions.to_owned());
        let shown = new_lines(&order);
        assert_eq!(caption(&shown), !instructions.is_empty(), "{shown:?}");
        assert_eq!(shown.iter().any(|line| line.ends_with('…')), cut, "{items}: {shown:?}");
        let expected: &[_] = if cut { &["receiver.address.deliveryInstructions"] } else { &[] };
        assert_eq!(super::truncated_fields(&order), expected, "{items} {instructions}");
    }
    let mut order = sample::order();
    order.external_order_id = Some("AMZ-2026-11-24-0000001234567890-0001".to_owned());
    assert_eq!(super::truncated_fields(&order), ["externalOrderId"]);
    order.customer_reference = Some("7".to_owned());
    assert_eq!(super::truncated_fields(&order), [""; 0]);
}

#[test]
fn every_field_of_a_truncated_line_has_a_warning() {
    let long = |word: &str| word.repeat(120 / word.len());
    let cut = |change: fn(&mut OrderRequest, String), text: String| {
        let mut order = sample::order();
        change(&mut order, text);
        super::truncated_fields(&order)
    };
    let line1 = |order: &mut OrderRequest, text| order.sender.address.line1 = text;
    let both = ["sender.address.line1", "sender.address.line2"];
    assert_eq!(cut(line1, long("AlamedaW")), both);
    let line2 = |order: &mut OrderRequest, text| order.sender.address.line2 = Some(text);
    assert_eq!(cut(line2, long("Km 7 ")), ["sender.address.line2"]);
    // In Ecuador, the postal code is before the city and the province after it.
    let city = |order: &mut OrderRequest, text| order.receiver.address.city = text;
    let expected = ["receiver.address.city", "receiver.address.province"];
    assert_eq!(cut(city, long("QuitoWW ")), expected);
    let same = |order: &mut OrderRequest, text: String| {
        order.receiver.address.city = "Quito".to_owned();
        order.receiver.address.province = Some(text);
    };
    assert_eq!(cut(same, long("Quito W ")), ["receiver.address.province"]);
}

/// The last row counts the other items, which are on the invoice.
#[test]
fn a_truncated_item_has_a_warning_on_the_field_with_its_text() {
    let long = || Some("Teléfono móvil con funda de silicona, cargador y audífonos".to_owned());
    let mut order = sample::order();
    order.products[1].description = long();
    order.products[2].description = None;
    order.products[2].sku = long();
    assert_eq!(super::truncated_fields(&order), ["products[1].description", "products[2].sku"]);
    order.products = vec![order.products[0].clone(); 4];
    order.products[3].description = long();
    assert_eq!(super::truncated_fields(&order), ["products[3].description"]);
    order.products.push(order.products[3].clone());
    assert_eq!(super::truncated_fields(&order), [""; 0]);
    order.products[0].description = None;
    order.products[1].description = None;
    order.customs_info = Some(parcelo_types::CustomsInfo::new(long().unwrap()));
    assert_eq!(super::truncated_fields(&order), ["customsInfo.description"]);
    order.products.clear();
    assert_eq!(super::truncated_fields(&order), ["customsInfo.description"]);
    order.sender.address.country = order.receiver.address.country;
    assert_eq!(super::truncated_fields(&order), [""; 0], "no customs box within a country");
}

#[test]
fn a_sandbox_label_says_so_in_english_first_if_new() {
    let order = sample::order();
    let band =
        |shown: Vec<String>| shown.into_iter().find(|line| line.starts_with("SANDBOX")).unwrap();
    assert_eq!(band(new_lines(&order)), "SANDBOX  NOT FOR SHIPMENT / NO VÁLIDO");
    assert_eq!(band(label_lines(&order)), "SANDBOX  NO VÁLIDO / NOT FOR SHIPMENT");
}

fn texts(elements: &[Element]) -> Vec<&Text> {
    let texts = elements.iter().filter_map(|element| match element {
        Element::Text(text) => Some(text),
        _ => None,
    });
    texts.collect()
}
