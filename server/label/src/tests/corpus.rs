//! The labels that are checked in as `docs/labels` and read by independent readers. Each has content that once broke
//! a label, or that could break one.

use chrono::NaiveDate;
use parcelo_domain::Layout;
use parcelo_types::{
    CountryCode, CustomsInfo, IdType, OrderRequest, Receiver, Sender, TrackingNumber,
};

use super::super::{LabelData, sample};

/// One label of the corpus.
pub(super) struct Case {
    pub name: String,
    pub number: TrackingNumber,
    pub order: OrderRequest,
    pub sandbox: bool,
    pub version: u32,
    pub awb: Option<&'static str>,
    pub layout: Layout,
    /// `true` if every field has its maximum length: the file may be larger than a usual one.
    pub crowded: bool,
    url: String,
}

impl Case {
    fn new(name: &str, number: &str, order: OrderRequest) -> Self {
        let sandbox = number.starts_with("SB");
        let host = if sandbox { "sandbox.parcelo.example" } else { "parcelo.example" };
        let url = format!("https://{host}/track/{number}");
        let (name, number) = (name.to_owned(), sample::number(number));
        let layout = Layout::First;
        Self { name, number, order, sandbox, version: 1, awb: None, layout, crowded: false, url }
    }

    pub(super) fn data(&self) -> LabelData<'_> {
        LabelData {
            order: &self.order,
            layout: self.layout,
            tracking_number: &self.number,
            tracking_url: &self.url,
            sandbox: self.sandbox,
            created_on: NaiveDate::from_ymd_opt(2026, 11, 21).unwrap(),
            version: self.version,
            awb: self.awb,
        }
    }
}

/// Returns the labels that are checked in as files, byte for byte: first in the newest layout, then in the first
/// layout.
pub(super) fn golden_cases() -> Vec<Case> {
    let new =
        |name, number, order| Case { layout: Layout::Second, ..Case::new(name, number, order) };
    vec![
        new("united-states", "SB-US-0000000001", order_to_united_states()),
        new("canada", "CA7K2M9QX4T8WD0", order_to_canada()),
        new("within-ecuador", "EC1234567890", domestic_order()),
        Case::new("sandbox", "SB-SUCCESS-00010203", typical_order()),
        Case::new("live", "EC123456789CN", order_to_coast()),
        Case::new("domestic", "EC9876543210", domestic_order()),
        Case {
            version: 3,
            awb: Some("045-12345675"),
            ..Case::new("reprint", "EC7K2M9QX4T8WD0", typical_order())
        },
        Case::new("colombia", "CO12345678", order_to_colombia()),
        Case::new("mexico", "MX-2026-11-21-00042", order_to_mexico()),
        Case::new("peru", "SB-PE-CUSTOMS-000102", order_to_peru()),
        Case::new("cyrillic-greek", "EC0000012345CN", order_in_cyrillic_and_greek()),
        Case::new("chinese", "SBEC7K2M9QX4T8WD0", order_in_chinese()),
        Case {
            version: 1000,
            awb: Some("045-12345675"),
            ..Case::new("full", "WWWW-WWWWWWWWWW-WWWWWWWWWWWWWW", sample::full_order())
        },
        Case::new("commands", "SB-RETURN-0001", order_with_zpl_commands()),
        Case::new("odd-characters", "EC-ODD-0000001", order_with_odd_characters()),
    ]
}

/// Returns a label for each length that a tracking number may have.
pub(super) fn cases_of_every_length() -> Vec<Case> {
    const CHARACTERS: &str = "SB0123456789ABCDEFGHIJKLMNOPQR";
    let case = |length| Case {
        layout: Layout::Second,
        ..Case::new(&format!("length-{length}"), &CHARACTERS[..length], typical_order())
    };
    (10..=CHARACTERS.len()).map(case).collect()
}

/// Returns labels whose fields all have their maximum length, each label with one kind of text.
pub(super) fn max_length_cases() -> Vec<Case> {
    let cases = [
        ("crowded-words", "SB-WORDS-0123456789-0123456789", "María Ñandú gjpqy "),
        ("crowded-wide", "WWWWWWWWWW", "W"),
        ("crowded-cyrillic", "SB-CYRILLIC-0001", "Щедровицкий Ёж "),
        ("crowded-accents", "EC-ACCENTS-00001", "ẨṨgjǺ"),
        ("crowded-boxes", "SB-BOXES-0001", "😀שלום "),
        ("crowded-commands", "SB-COMMANDS-000001", "^XA~JA^FD^FS^XZ_5E\\"),
    ];
    let case = |(name, number, text)| Case {
        crowded: true,
        layout: Layout::Second,
        ..Case::new(name, number, order_filled_with(text))
    };
    cases.into_iter().map(case).collect()
}

/// Returns an order whose fields all have their maximum length, filled with repetitions of `text`.
fn order_filled_with(text: &str) -> OrderRequest {
    let long = |length: usize| text.chars().cycle().take(length).collect::<String>();
    let mut order = typical_order();
    order.customer_reference = Some(long(100));
    let from = &mut order.sender;
    (from.full_name, from.company_name) = (long(255), Some(long(255)));
    (from.address.line1, from.address.line2) = (long(255), Some(long(255)));
    (from.address.city, from.address.state) = (long(255), Some(long(255)));
    let to = &mut order.receiver;
    to.full_name = long(255);
    to.company_name = Some(long(255));
    (to.address.line1, to.address.city) = (long(255), long(255));
    to.address.line2 = Some(long(255));
    to.address.delivery_instructions = Some(long(500));
    order.products[0].description = Some(long(255));
    order.products[0].quantity = 1_000_000;
    order.products = order.products.iter().cycle().take(50).cloned().collect();
    order
}

/// Sets the name and the address of a receiver: street, city, province, postal code and country.
fn set_receiver(to: &mut Receiver, name: &str, address: [&str; 5]) {
    let [line1, city, province, zip_code, country] = address;
    to.full_name = name.to_owned();
    (to.address.line1, to.address.city) = (line1.to_owned(), city.to_owned());
    to.address.province = Some(province.to_owned());
    to.address.zip_code = Some(zip_code.to_owned());
    to.address.country = self::country(country);
}

/// Sets the name and the address of a sender without a company: street, city, state, postal code and country.
fn set_sender(from: &mut Sender, name: &str, address: [&str; 5]) {
    let [line1, city, state, zip_code, country] = address;
    (from.full_name, from.company_name) = (name.to_owned(), None);
    (from.address.line1, from.address.line2) = (line1.to_owned(), None);
    from.address.city = city.to_owned();
    from.address.state = Some(state.to_owned());
    from.address.zip_code = Some(zip_code.to_owned());
    from.address.country = self::country(country);
}

fn typical_order() -> OrderRequest {
    let mut order = sample::order();
    order.external_order_id = Some("ORD-2026-000123".to_owned());
    order.sender.full_name = "Wei Chen".to_owned();
    order
}

const INSTRUCTIONS: &str = "Ring twice and wait: the bell is quiet. If no one is at home leave the parcel with \
    the porter at the side entrance, and on Saturdays call +1 212 555 0123 first. Fragile glass.";

fn order_to_united_states() -> OrderRequest {
    let mut order = order_to_canada();
    let address = ["350 Fifth Avenue, Suite 7700", "New York", "NY", "10118", "US"];
    set_receiver(&mut order.receiver, "Jordan Lee", address);
    order
}

/// Returns an order from Miami with one item and long instructions.
fn order_to_canada() -> OrderRequest {
    let mut order = typical_order();
    let address = ["8400 NW 25th Street", "Miami", "FL", "33122", "US"];
    set_sender(&mut order.sender, "Ana Ruiz", address);
    order.sender.phone = "+1 305 555 0100".to_owned();
    order.products.truncate(1);
    order.products[0].description = Some("Drinking glasses".to_owned());
    order.products[0].hs_code = Some("701337".to_owned());
    let to = &mut order.receiver;
    set_receiver(to, "Robin Martin", ["290 Bremner Blvd", "Toronto", "ON", "M5V 3L9", "CA"]);
    (to.national_id, to.id_type) = (None, None);
    to.phone = "+1 416 555 0123".to_owned();
    to.address.delivery_instructions = Some(INSTRUCTIONS.to_owned());
    order
}

fn order_to_coast() -> OrderRequest {
    let mut order = typical_order();
    let address = ["Cdla. Kennedy Norte, Mz. 804, villa 12", "Guayaquil", "Guayas", "090513", "EC"];
    set_receiver(&mut order.receiver, "Ñusta Peñafiel Yánez", address);
    order
}

fn domestic_order() -> OrderRequest {
    let mut order = typical_order();
    let address = ["Calle Larga 7-42", "Cuenca", "Azuay", "010101", "EC"];
    set_sender(&mut order.sender, "Lucía Andrade", address);
    order.customer_reference = Some("Pedido n.º 7".to_owned());
    order.receiver.address.delivery_instructions = None;
    order.products.clear();
    order.customs_info = Some(CustomsInfo::new("Libros usados"));
    order
}

fn order_to_colombia() -> OrderRequest {
    let mut order = typical_order();
    order.products.truncate(1);
    order.receiver.id_type = Some(IdType::Cedula);
    let address = ["Cra. 7 # 71-21, Torre B, Of. 1202", "Bogotá", "Bogotá D. C.", "110231", "CO"];
    set_receiver(&mut order.receiver, "Íngrid Bermúdez", address);
    order
}

fn order_to_mexico() -> OrderRequest {
    let mut order = typical_order();
    order.products = [&order.products[..], &order.products[..1]].concat();
    for product in &mut order.products {
        product.country_of_origin = Some(country("CN"));
    }
    let to = &mut order.receiver;
    let street = "Av. Paseo de la Reforma 222, Piso 3, Col. Juárez";
    let address = [street, "Cuauhtémoc", "Ciudad de México", "06600", "MX"];
    set_receiver(to, "Xóchitl Íñiguez Zúñiga", address);
    to.company_name = Some("Papelería del Ángel S.A. de C.V.".to_owned());
    to.address.line2 = Some("Int. 304".to_owned());
    to.id_type = Some(IdType::Passport);
    to.national_id = Some("G12345678".to_owned());
    order
}

fn order_to_peru() -> OrderRequest {
    let mut order = typical_order();
    order.products = order.products.iter().cycle().take(20).cloned().collect();
    let to = &mut order.receiver;
    let address = ["Jr. de la Unión 1095, Int. 4", "Lima", "Lima", "15001", "PE"];
    set_receiver(to, "Gümercindo Ñaupari Quispe", address);
    to.id_type = Some(IdType::Dni);
    to.national_id = Some("41234567".to_owned());
    order
}

fn order_in_cyrillic_and_greek() -> OrderRequest {
    let mut order = typical_order();
    order.sender.full_name = "Иван Ёлкин".to_owned();
    order.sender.company_name = Some("ООО «Сибирь»".to_owned());
    order.sender.address.line1 = "ул. Щорса, д. 5, кв. 12".to_owned();
    order.receiver.full_name = "Ελένη Παπαδοπούλου Ώρα".to_owned();
    order
}

fn order_in_chinese() -> OrderRequest {
    let mut order = typical_order();
    order.sender.full_name = "陈伟".to_owned();
    order.sender.company_name = Some("深圳市光辉贸易有限公司".to_owned());
    order.sender.address.line1 = "南山区科技园 7 栋 1203 室".to_owned();
    order.products[0].description = Some("手机壳 (phone case)".to_owned());
    order
}

fn order_with_zpl_commands() -> OrderRequest {
    let mut order = typical_order();
    order.external_order_id = Some("^XZ^XA^JUS~JA".to_owned());
    order.sender.full_name = "^FS^XZ".to_owned();
    order.sender.company_name = Some("~DGR:A,1,1,".to_owned());
    order.receiver.full_name = "José ^FD_5EXZ".to_owned();
    order.receiver.address.city = "Quito\\&^FS".to_owned();
    order.receiver.address.delivery_instructions = Some("a\r\n^XZ\u{1b}^JUS {^}".to_owned());
    order.products[0].description = Some("^GB800,800,800^FS _ \\ ~".to_owned());
    order
}

fn order_with_odd_characters() -> OrderRequest {
    let mut order = typical_order();
    order.sender.company_name = None;
    order.sender.full_name = "\u{202E}Anna\u{200B}\u{FEFF} \u{200F}שלום".to_owned();
    order.receiver.full_name = "Ẩn Ộ Ṩ Ǻ gjpqy".to_owned();
    order.receiver.address.line1 = "Casa 🏠 azul, mun\u{303}oz, a\u{301}e\u{301}".to_owned();
    order.receiver.address.city = "Ẩmbåto".to_owned();
    order.products[0].description = Some("😀 Taza 👩‍👩‍👧".to_owned());
    order
}

fn country(code: &str) -> CountryCode {
    CountryCode::parse(code).unwrap()
}
