//! A shop's export of 200 orders, as Shopify writes it and Excel saves it: in windows-1252, with common mistakes.

use std::fmt::Write;

pub(super) const ORDERS: u32 = 200;
/// The order whose telephone number Excel has shortened to `5,93E+11`.
pub(super) const SHORTENED_PHONE: &str = "#1010";
pub(super) const CANCELLED: &str = "#1020";
/// The order with the name of a country instead of its code.
pub(super) const COUNTRY_NAME: &str = "#1030";
/// A reference that a spreadsheet would run as a formula.
pub(super) const FORMULA: &str = "=1040";
/// The order with a product without HS code, which gets a warning.
pub(super) const WITHOUT_HS_CODE: &str = "#1050";

/// A column map for the fields that Shopify's export does not have.
pub(super) const MAP: &str = "[columns]\nreceiver_national_id = ['Cedula']\nproduct_hs_code = ['HS code']\n\
    [defaults]\nweight_kg = 1.25\nreceiver_id_type = 'cedula'\n";

pub(super) const SENDER: &str = "fullName = 'Ana Ruiz'\nphone = '+13055550100'\nemail = 'ana@shop.example'\n[address]\n\
    line1 = '8400 NW 25th St'\ncity = 'Miami'\nstate = 'FL'\nzipCode = '33122'\ncountry = 'US'\n";

const HEADINGS: &str = "Name,Email,Financial Status,Subtotal,Currency,Lineitem quantity,Lineitem name,\
    Lineitem price,Lineitem sku,Shipping Name,Shipping Address1,Shipping City,Shipping Zip,\
    Shipping Province,Shipping Country,Shipping Phone,Cancelled at,Notes,Cedula,HS code\n";

/// Returns the e-mail address of an order's receiver.
pub(super) fn email(reference: &str) -> String {
    format!("receiver{}@mail.example", &reference[1..])
}

fn reference(number: u32) -> String {
    if number == 1040 { FORMULA.to_owned() } else { format!("#{number}") }
}

/// Returns the file; `cell` formats a reference.
pub(super) fn orders(cell: impl Fn(&str) -> String) -> Vec<u8> {
    let mut text = HEADINGS.to_owned();
    for number in 1001..=1000 + ORDERS {
        let name = reference(number);
        let (written, email) = (cell(&name), email(&name));
        let phone = if name == SHORTENED_PHONE { "\"5,93E+11\"" } else { "'593991234567" };
        let cancelled = if name == CANCELLED { "2026-11-20 09:12:44 -0500" } else { "" };
        let country = if name == COUNTRY_NAME { "Ecuador" } else { "EC" };
        let hs_code = if name == WITHOUT_HS_CODE { "" } else { "610910" };
        let note = if number % 20 == 0 { "\"Ring twice.\nThank you!\"" } else { "" };
        writeln!(
            text,
            "{written},{email},paid,55.00,USD,2,Cotton shirt,22.75,SHIRT-M,José Peña,\
             Av. Amazonas N34-451,Quito,'170515,Pichincha,{country},{phone},{cancelled},{note},1714307103,{hs_code}"
        )
        .unwrap();
        // Every fifth order has a second product, in a row of its own.
        if number % 5 == 0 {
            writeln!(text, "{written},{email},,,,1,Cap,9.50,CAP-1,,,,,,,,,,,650500").unwrap();
        }
    }
    // All of its characters have the same code in windows-1252 as in Unicode.
    text.chars().map(|character| u8::try_from(character).unwrap()).collect()
}
