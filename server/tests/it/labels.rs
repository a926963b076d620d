//! Label files: by key, and by the link that an order's answer holds.

use parcelo_server::mock::MockServer;

use crate::api::{Api, order, send};

async fn start() -> (MockServer, Api) {
    let server = crate::embedded::start().await;
    let api = Api::with_key(server.url(), &server.key().issue());
    (server, api)
}

#[tokio::test]
async fn each_format_is_a_file_to_save() {
    let (_server, api) = start().await;
    let number = api.created(&order("order-0001")).await;
    let table = [
        ("", "application/pdf", "pdf", &b"%PDF-"[..]),
        ("?format=PDF", "application/pdf", "pdf", b"%PDF-"),
        ("?format=png", "image/png", "png", b"\x89PNG"),
        ("?format=Zpl", "text/plain", "zpl", b"^XA"),
    ];
    for (query, kind, extension, magic) in table {
        let path = format!("/api/v1/labels/{number}/download{query}");
        let answer = api.get(&path).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        assert_eq!(answer.header("content-type"), kind);
        let name = format!("attachment; filename=\"label-{number}.{extension}\"");
        assert_eq!(answer.header("content-disposition"), name);
        assert_eq!(answer.header("content-length"), answer.bytes.len().to_string());
        assert_eq!(answer.header("cache-control"), "private, no-store");
        assert!(answer.header("etag").len() > 10);
        assert!(answer.bytes.starts_with(magic), "{query}");
        let again = api.get(&path).await;
        assert_eq!((again.header("etag"), &again.bytes), (answer.header("etag"), &answer.bytes));
    }
}

#[tokio::test]
async fn what_cannot_be_downloaded_is_refused_in_json() {
    let (server, api) = start().await;
    let number = api.created(&order("order-0001")).await;
    let gif = api.get(&format!("/api/v1/labels/{number}/download?format=gif")).await;
    assert_eq!(gif.faults(), ["format UNKNOWN_VALUE"]);
    let stranger = Api::with_key(server.url(), &server.key().account("other").issue());
    for (api, number) in [(&api, "SB-ABSENT-0001"), (&api, "x"), (&stranger, &number)] {
        let answer = api.get(&format!("/api/v1/labels/{number}/download")).await;
        assert_eq!(answer.refusal(), (404, "PARCEL_NOT_FOUND".to_owned()), "{number}");
    }
}

#[tokio::test]
async fn the_link_serves_every_format_without_a_key_and_only_with_its_signature() {
    let (_server, api) = start().await;
    let created = api.create(&order("order-0001")).await.json();
    let other = api.create(&order("order-0002")).await.json();
    let link =
        |created: &serde_json::Value| created["parcel"]["labelUrl"].as_str().unwrap().to_owned();
    let (link, other) = (link(&created), link(&other));
    let anyone = Api::new("");
    for extension in ["pdf", "png", "zpl", "PNG"] {
        let file = anyone.get(&link.replace(".pdf?", &format!(".{extension}?"))).await;
        assert_eq!((file.status, file.header("x-robots-tag")), (200, "noindex"), "{extension}");
        assert_eq!(file.header("cache-control"), "private, no-store");
    }
    let signature = |link: &str| link.split_once("sig=").unwrap().1.to_owned();
    for wrong in [
        link.replace("?sig=", "?signature="),
        link.replace(&signature(&link), &signature(&other)),
        link.replace(&signature(&link), &signature(&link)[..21]),
        link.replace(".pdf", ".gif"),
        link.replace(".pdf", ""),
        link.split_once('?').unwrap().0.to_owned(),
    ] {
        assert_eq!(anyone.get(&wrong).await.refusal(), (404, "NOT_FOUND".to_owned()), "{wrong}");
    }
}

#[tokio::test]
async fn a_label_that_is_there_already_is_not_sent_again_and_another_version_is_refused() {
    let (_server, api) = start().await;
    let number = api.created(&order("order-0002")).await;
    let metadata = api.get(&format!("/api/v1/labels/{number}")).await.json();
    let link = metadata["data"]["labelUrl"].as_str().unwrap().to_owned();
    let paths =
        [format!("/api/v1/labels/{number}/download"), link, format!("/api/labels/{number}.pdf")];
    for path in &paths {
        let file = api.get(path).await;
        let tag = file.header("etag").to_owned();
        let asked = |name: &'static str, values: &[String]| {
            let request =
                values.iter().fold(api.request("GET", path), |one, it| one.header(name, it));
            send(request)
        };
        let known = [
            vec![tag.clone()],
            vec![format!("W/{tag}")],
            vec![format!("\"other\", {tag}")],
            vec!["\"other\"".to_owned(), tag.clone()],
            vec!["*".to_owned()],
        ];
        for values in known {
            let answer = asked("if-none-match", &values).await;
            assert_eq!((answer.status, answer.bytes.len()), (304, 0), "{path} {values:?}");
            assert_eq!(answer.header("etag"), tag);
            assert_eq!(answer.header("cache-control"), "private, no-store");
        }
        let same = [vec![tag.clone()], vec![format!("\"other\",{tag}")], vec!["*".to_owned()]];
        for values in same {
            assert_eq!(asked("if-match", &values).await.bytes, file.bytes, "{path} {values:?}");
        }
        for value in ["\"other\"".to_owned(), format!("W/{tag}"), tag.replace('"', "")] {
            let answer = asked("if-match", std::slice::from_ref(&value)).await;
            assert_eq!(answer.status, 412, "{path} {value}");
            assert!(answer.text().contains("PRECONDITION_FAILED"), "{}", answer.text());
        }
        let unknown = asked("if-none-match", &["\"other\"".to_owned()]).await;
        assert_eq!((unknown.status, &unknown.bytes), (200, &file.bytes));
    }
}
