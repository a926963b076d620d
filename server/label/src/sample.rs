//! Orders for tests of labels.

use chrono::NaiveDate;
use parcelo_domain::Layout;
use parcelo_types::{OrderRequest, TrackingNumber};

use super::LabelData;

/// Returns an order from China to Quito, with Cyrillic and the characters that ZPL escapes.
pub(super) fn order() -> OrderRequest {
    serde_json::from_value(serde_json::json!({
        "idempotencyKey": "label-sample-1",
        "externalOrderId": "ORD-2026-000123_^~\\",
        "sender": {
            "fullName": "Иван Ёлкин", "companyName": "Shenzhen Brillante Trading Co. Ltd.",
            "phone": "+86 755 8888 1234",
            "address": {
                "line1": "Rm 1203, Bldg 7, Nanshan Science Park", "line2": "Keji South Rd 12",
                "city": "Shenzhen", "state": "Guangdong", "zipCode": "518057", "country": "CN",
            },
        },
        "receiver": {
            "fullName": "José Ángel Muñoz Güiñazú", "phone": "+593 99 123 4567",
            "nationalId": "1712345678", "idType": "cedula",
            "address": {
                "line1": "Av. Amazonas N34-451 y Atahualpa, Edificio Ñandú, Piso 7, Oficina 702",
                "city": "Quito", "province": "Pichincha", "zipCode": "170150", "country": "EC",
                "deliveryInstructions": "Entregar en portería; llamar antes. No dejar con vecinos.",
            },
        },
        "parcelDetails": {"weightKg": 1.25, "declaredValue": 59.5},
        "products": [
            {"description": "Teléfono móvil, funda de silicona", "quantity": 2,
             "unitFobValue": 12, "hsCode": "392690"},
            {"description": "Camiseta de algodón niño", "quantity": 3,
             "unitFobValue": 10, "hsCode": "610910"},
            {"description": "Cable USB-C", "quantity": 1, "unitFobValue": 5.5, "hsCode": "854442"},
        ],
    }))
    .unwrap()
}

/// Returns an order with as much text as a label may have to hold.
pub(super) fn full_order() -> OrderRequest {
    let mut order = order();
    let long = "Entregar en portería; llamar antes. No dejar con vecinos. ".repeat(8);
    order.receiver.full_name = "María Fernanda de los Ángeles Villavicencio Rodríguez".to_owned();
    order.receiver.address.line1 = "Conjunto Residencial Los Arrayanes de Cumbayá, Torre 3 Norte, \
        Departamento 1204-B, Avenida Francisco de Orellana E11-160 y Calle de los Conquistadores"
        .to_owned();
    order.receiver.address.delivery_instructions = Some(long);
    order.receiver.company_name = Some("Comercializadora Andina de Repuestos S.A.".to_owned());
    order.receiver.address.line2 = Some("Entrada por el parqueadero posterior".to_owned());
    order.sender.full_name = "陈伟 (Wei Chen)".to_owned();
    order.sender.address.line1 =
        "Building 7, Nanshan Science and Technology Park, Block C".to_owned();
    order.products = [&order.products[..], &order.products[..]].concat();
    for product in &mut order.products {
        product.country_of_origin = Some(order.sender.address.country);
    }
    order
}

/// Returns the label data of an order, for the first version in the sandbox.
pub(super) fn data<'a>(order: &'a OrderRequest, number: &'a TrackingNumber) -> LabelData<'a> {
    LabelData {
        order,
        layout: Layout::First,
        tracking_number: number,
        tracking_url: "https://parcelo.example/track/EC7K2M9QX4T8WD0",
        sandbox: true,
        created_on: NaiveDate::from_ymd_opt(2026, 11, 21).unwrap(),
        version: 1,
        awb: None,
    }
}

pub(super) fn number(text: &str) -> TrackingNumber {
    TrackingNumber::parse(text).unwrap()
}
