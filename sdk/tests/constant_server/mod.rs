//! A server that responds to every request with the same created order, for measurements of a call.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
};

pub(crate) const ORDER: &str = r#"{"idempotencyKey":"order-0001","sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50}}"#;
const CREATED: &str = r#"{"success":true,"parcel":{"id":"par_01JH8Z0000000000000000000A","trackingNumber":"SBEC7K2M9QX4T8WD0","status":"LABEL_GENERATED","labelUrl":"http://127.0.0.1:8081/files/SBEC7K2M9QX4T8WD0.pdf?sig=0000000000000000000000","createdAt":"2026-01-10T15:05:00.000Z"}}"#;

/// Answers the requests of all connections, each on a thread of its own.
pub(crate) fn serve(listener: &TcpListener) {
    for connection in listener.incoming() {
        std::thread::spawn(move || respond_to_requests(connection.unwrap()));
    }
}

fn respond_to_requests(connection: TcpStream) -> Option<()> {
    connection.set_nodelay(true).ok()?;
    let mut writer = connection.try_clone().ok()?;
    let mut reader = BufReader::new(connection);
    let head = "HTTP/1.1 201 Created\r\ncontent-type: application/json\r\nx-request-id: req_1\r\n\
        date: Sat, 10 Jan 2026 15:05:00 GMT\r\nx-ratelimit-limit: 50\r\nx-ratelimit-remaining: 40\r\n\
        x-ratelimit-reset: 1768057501\r\n";
    let response = format!("{head}content-length: {}\r\n\r\n{CREATED}", CREATED.len());
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim().to_ascii_lowercase();
            if let Some(text) = line.strip_prefix("content-length:") {
                length = text.trim().parse().ok()?;
            }
            if line.is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).ok()?;
        writer.write_all(response.as_bytes()).ok()?;
    }
}
