//! `order template`: a valid sample order, with real places and invented people, or a copy of an earlier order.

use parcelo::{
    Client, CountryCode, CustomsInfo, Decimal, Error, IdType, IdempotencyKey, OrderRequest,
    Product, Receiver, ReceiverAddress, Sender, SenderAddress, TrackingNumber,
};

use super::call;
use crate::{
    failure::Failure,
    import,
    results::{CommandOutcome, Results},
    texts::{self, Message},
};

/// A sample receiver in one country.
struct Sample {
    country: &'static str,
    name: &'static str,
    /// The telephone number without the calling code.
    phone: &'static str,
    national_id: Option<(&'static str, IdType)>,
    line1: &'static str,
    city: &'static str,
    province: Option<&'static str>,
    zip_code: Option<&'static str>,
}

#[rustfmt::skip]
const SAMPLES: &[Sample] = &[
    Sample { country: "EC", name: "Luis Paredes", phone: "991234567", national_id: Some(("1714307103", IdType::Cedula)), line1: "Av. Amazonas N34-451", city: "Quito", province: Some("Pichincha"), zip_code: Some("170515") },
    Sample { country: "CO", name: "Camila Rojas", phone: "3001234567", national_id: Some(("1020304050", IdType::Cedula)), line1: "Calle 72 # 10-07", city: "Bogotá, D.C.", province: Some("Bogotá, D.C."), zip_code: Some("110231") },
    Sample { country: "MX", name: "Diego Fuentes", phone: "5512345678", national_id: None, line1: "Av. Insurgentes Sur 1602", city: "Ciudad de México", province: Some("Ciudad de México"), zip_code: Some("03940") },
    Sample { country: "PE", name: "Rosa Quispe", phone: "912345678", national_id: None, line1: "Av. Larco 345", city: "Lima", province: Some("Lima"), zip_code: Some("15074") },
    Sample { country: "US", name: "Jordan Lee", phone: "2125550123", national_id: None, line1: "350 Fifth Avenue", city: "New York", province: Some("NY"), zip_code: Some("10118") },
    Sample { country: "CA", name: "Robin Martin", phone: "4165550123", national_id: None, line1: "290 Bremner Blvd", city: "Toronto", province: Some("ON"), zip_code: Some("M5V 3L9") },
    Sample { country: "GB", name: "Jamie Clark", phone: "2079460123", national_id: None, line1: "221B Baker Street", city: "London", province: None, zip_code: Some("NW1 6XE") },
    Sample { country: "DE", name: "Lena Vogel", phone: "3023125123", national_id: None, line1: "Unter den Linden 77", city: "Berlin", province: None, zip_code: Some("10117") },
    Sample { country: "FR", name: "Camille Petit", phone: "199001234", national_id: None, line1: "10 rue de Rivoli", city: "Paris", province: None, zip_code: Some("75004") },
    Sample { country: "ES", name: "Lucía Romero", phone: "612345678", national_id: None, line1: "Gran Vía 28", city: "Madrid", province: None, zip_code: Some("28013") },
    Sample { country: "JP", name: "Haruka Sato", phone: "312345678", national_id: None, line1: "1-1 Chiyoda", city: "Chiyoda-ku", province: Some("Tokyo"), zip_code: Some("100-8111") },
    Sample { country: "BR", name: "Marina Souza", phone: "11912345678", national_id: None, line1: "Av. Paulista 1578", city: "São Paulo", province: Some("SP"), zip_code: Some("01310-200") },
];

/// The receiver for countries without a sample.
const DEFAULT_SAMPLE: Sample = Sample {
    country: "",
    name: "Alex Moreno",
    phone: "2025550123",
    national_id: None,
    line1: "1 Harbour Street",
    city: "Capital",
    province: None,
    zip_code: None,
};

/// Towns in countries that have no sample but require a postal code: country, town, state or province if required,
/// postal code.
#[rustfmt::skip]
const TOWNS: &[[&str; 4]] = &[
    ["AS", "Pago Pago", "", "96799"],
    ["AT", "Wien", "", "1010"],
    ["AU", "Sydney", "NSW", "2000"],
    ["AX", "Mariehamn", "", "22100"],
    ["BE", "Bruxelles", "", "1000"],
    ["BL", "Gustavia", "", "97133"],
    ["CH", "Bern", "", "3011"],
    ["CN", "Beijing", "Beijing", "100006"],
    ["DK", "København", "", "1050"],
    ["FI", "Helsinki", "", "00100"],
    ["FK", "Stanley", "", "FIQQ 1ZZ"],
    ["FM", "Kolonia", "", "96941"],
    ["GF", "Cayenne", "", "97300"],
    ["GG", "St Peter Port", "", "GY1 1AA"],
    ["GL", "Nuuk", "", "3900"],
    ["GP", "Pointe-à-Pitre", "", "97110"],
    ["GR", "Athens", "", "104 31"],
    ["GS", "Grytviken", "", "SIQQ 1ZZ"],
    ["GU", "Hagåtña", "", "96910"],
    ["IM", "Douglas", "", "IM1 1AA"],
    ["IN", "New Delhi", "Delhi", "110001"],
    ["IO", "Diego Garcia", "", "BBND 1ZZ"],
    ["IT", "Roma", "", "00184"],
    ["JE", "St Helier", "", "JE1 1AA"],
    ["KR", "Seoul", "", "04524"],
    ["LI", "Vaduz", "", "9490"],
    ["LU", "Luxembourg", "", "1150"],
    ["MF", "Marigot", "", "97150"],
    ["MH", "Majuro", "", "96960"],
    ["MP", "Saipan", "", "96950"],
    ["MQ", "Fort-de-France", "", "97200"],
    ["MY", "Kuala Lumpur", "", "50050"],
    ["NC", "Nouméa", "", "98800"],
    ["NL", "Amsterdam", "", "1012 JS"],
    ["NO", "Oslo", "", "0150"],
    ["NZ", "Wellington", "", "6011"],
    ["PF", "Papeete", "", "98714"],
    ["PL", "Warszawa", "", "00-001"],
    ["PM", "Saint-Pierre", "", "97500"],
    ["PN", "Adamstown", "", "PCRN 1ZZ"],
    ["PR", "San Juan", "", "00901"],
    ["PT", "Lisboa", "", "1100-148"],
    ["PW", "Koror", "", "96940"],
    ["RE", "Saint-Denis", "", "97400"],
    ["RU", "Moskva", "", "101000"],
    ["SE", "Stockholm", "", "111 20"],
    ["SG", "Singapore", "", "018956"],
    ["SH", "Jamestown", "", "STHL 1ZZ"],
    ["SJ", "Longyearbyen", "", "9170"],
    ["SM", "San Marino", "", "47890"],
    ["TC", "Grand Turk", "", "TKCA 1ZZ"],
    ["TR", "Ankara", "", "06050"],
    ["TW", "Taipei", "", "100"],
    ["VI", "Charlotte Amalie", "", "00802"],
    ["WF", "Mata-Utu", "", "98600"],
    ["YT", "Mamoudzou", "", "97600"],
    ["ZA", "Pretoria", "", "0002"],
];

pub(super) fn show(country: CountryCode) -> Result<CommandOutcome, Failure> {
    let name = Message::in_both(|language| country.name(language).to_owned());
    let about = texts::SAMPLE.with_message("country", &name);
    let order = order(country, IdempotencyKey::random())?;
    let outcome = CommandOutcome::with(Results::Sample(Box::new(order)));
    Ok(outcome.note(about).note(texts::SAMPLE_KEY).note(texts::SAMPLE_FIELDS))
}

/// Fetches the order of a parcel, as a new order: without what names the earlier one alone, and with a key of its own.
pub(super) async fn copy(
    client: &Client,
    number: &TrackingNumber,
) -> Result<CommandOutcome, Failure> {
    let mut order = call::execute_read(client.orders().get(number)).await?.into_inner();
    order.idempotency_key = IdempotencyKey::random();
    (order.tracking_number, order.external_order_id) = (None, None);
    Ok(CommandOutcome::with(Results::Sample(Box::new(order)))
        .note(texts::COPIED_ORDER.with(&[("number", number.as_str())]))
        .note(texts::SAMPLE_KEY))
}

/// Returns a CSV file for `order import` with every column and one order.
pub(super) fn csv() -> Result<CommandOutcome, Failure> {
    let lost = |err: csv::Error| Failure::for_lost_output(&err);
    let columns = import::sample();
    let mut rows = csv::Writer::from_writer(Vec::new());
    rows.write_record(columns.iter().map(|[name, _]| name)).map_err(lost)?;
    rows.write_record(columns.iter().map(|[_, sample]| sample)).map_err(lost)?;
    let file = rows.into_inner().map_err(|err| Failure::for_lost_output(&err))?;
    Ok(CommandOutcome::with(Results::Raw(file)))
}

const HS_CODE: &str = "610910";

/// Returns the sample order to a country.
fn order(country: CountryCode, idempotency_key: IdempotencyKey) -> Result<OrderRequest, Error> {
    let shirt = Product::new("Cotton shirt", 2, Decimal::new(2275, 2));
    let order = OrderRequest::builder()
        .idempotency_key(idempotency_key)
        .sender(sender())
        .receiver(receiver(country))
        .weight_kg(Decimal::new(125, 2))
        .size_cm(Decimal::from(30), Decimal::from(20), Decimal::from(10))
        .declared_value(Decimal::new(4550, 2))
        .customs_info(CustomsInfo::new("Cotton shirts").with_hs_code(HS_CODE))
        .product(shirt.with_hs_code(HS_CODE).with_sku("SHIRT-M"))
        .build()?;
    Ok(order)
}

fn sender() -> Sender {
    let address = SenderAddress::new("8400 NW 25th Street", "Miami", CountryCode::US);
    Sender::new("Ana Ruiz", "+13055550100", address.with_state("FL").with_zip_code("33122"))
}

fn receiver(country: CountryCode) -> Receiver {
    let sample = SAMPLES.iter().find(|sample| sample.country == country.as_str());
    let sample = sample.unwrap_or(&DEFAULT_SAMPLE);
    let mut address = ReceiverAddress::new(sample.line1, sample.city, country);
    address.province = sample.province.map(str::to_owned);
    address.zip_code = sample.zip_code.map(str::to_owned);
    if let Some([_, town, province, zip]) =
        TOWNS.iter().find(|[code, ..]| *code == country.as_str())
    {
        (*town).clone_into(&mut address.city);
        address.province = Some((*province).to_owned()).filter(|province| !province.is_empty());
        address.zip_code = Some((*zip).to_owned());
    }
    let phone = format!("+{}{}", country.calling_code(), sample.phone);
    let receiver = Receiver::new(sample.name, phone, address);
    match sample.national_id.clone() {
        Some((number, kind)) => receiver.with_national_id(kind, number),
        None => receiver,
    }
}

#[cfg(test)]
mod tests {
    use parcelo::{
        Environment,
        rules::{Destinations, OrderContext, check_order},
    };
    use parcelo_types::internal::parse_body;

    use super::*;

    #[test]
    fn every_country_has_a_valid_sample_without_warnings() {
        for country in CountryCode::all() {
            let key = IdempotencyKey::derive("sample", country.as_str());
            let order = order(country, key).unwrap();
            let body = parse_body(&serde_json::to_vec(&order).unwrap()).unwrap();
            let offline = OrderContext::new(&Destinations::All);
            let in_environment = |environment| offline.clone().with_environment(environment);
            let online = [Environment::Production, Environment::Sandbox].map(in_environment);
            for context in [offline.clone()].into_iter().chain(online) {
                let accepted = check_order(&body, &context)
                    .unwrap_or_else(|rejected| panic!("{country}: {:?}", rejected.faults));
                assert!(accepted.warnings.is_empty(), "{country}: {:?}", accepted.warnings);
            }
        }
    }
}
