//! Downloads of labels: a saved label is complete, or the call is an error.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use parcelo::{Client, Error, ErrorKind, LabelFormat, calls::LabelDownload};

use crate::scripted_transport::{Piece, ScriptedTransport, Step, key, number, refusal, response};

const LABEL: &[u8] = b"%PDF-1.7 label";

fn label(length: usize, pieces: &[&'static [u8]]) -> Step {
    let pieces = pieces.iter().map(|piece| Piece::Bytes(Bytes::from_static(piece)));
    Step::in_pieces(200, pieces).with_header("content-length", length.to_string())
}

/// Returns the download of the test's label.
fn download(client: &Client) -> LabelDownload {
    client.labels().download(&number(), LabelFormat::Pdf)
}

fn file_names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_saved_label_is_complete_and_replaces_an_older_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("label.pdf");
    std::fs::write(&path, "an older and much longer label").unwrap();
    let reader = std::fs::File::open(&path).unwrap();
    let (client, script) = ScriptedTransport::client([label(14, &[&LABEL[..5], &LABEL[5..]])]);
    let length = download(&client).save_to(&path).await.unwrap();
    assert_eq!((length, std::fs::read(&path).unwrap()), (14, LABEL.to_vec()));
    assert_eq!(file_names(directory.path()), ["label.pdf"]);
    let still = std::io::read_to_string(reader).unwrap();
    assert_eq!(
        still, "an older and much longer label",
        "an open reader still gets the whole old file"
    );
    assert_eq!(
        script.sent_requests()[0].uri(),
        "http://localhost/api/v1/labels/SB-SUCCESS-0001/download?format=PDF"
    );
}

#[tokio::test(start_paused = true)]
async fn a_truncated_label_leaves_the_old_file() {
    let broken = Step::in_pieces(200, [Piece::Bytes(LABEL.into()), Piece::Break]);
    let silent = Step::in_pieces(200, [Piece::Bytes(LABEL.into()), Piece::Silence]);
    let refused = response(409, refusal("LABEL_VOIDED"));
    // The range was not requested.
    let part = response(206, "%PDF-1.7 label").with_header("content-range", "bytes 0-13/99");
    let table = [
        (label(15, &[LABEL]), ErrorKind::Network),
        (label(13, &[LABEL]), ErrorKind::Network),
        (broken, ErrorKind::Network),
        (silent, ErrorKind::Timeout),
        (refused, ErrorKind::Conflict),
        (label(17 << 20, &[]), ErrorKind::Decode),
        (part, ErrorKind::Decode),
    ];
    for (step, kind) in table {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join("old.pdf");
        std::fs::write(&old, "old").unwrap();
        for path in [&old, &directory.path().join("new.pdf")] {
            let (client, _) = ScriptedTransport::client([step.clone()]);
            let error = download(&client).save_to(path).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{step:?}");
        }
        assert_eq!(file_names(directory.path()), ["old.pdf"], "{step:?}");
        assert_eq!(std::fs::read(&old).unwrap(), b"old");
    }
}

#[tokio::test(start_paused = true)]
async fn a_label_is_saved_under_the_longest_valid_file_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("n".repeat(255));
    let (client, _) = ScriptedTransport::client([label(14, &[LABEL])]);
    let saved = download(&client).save_to(&path).await;
    assert_eq!((saved.unwrap(), std::fs::read(&path).unwrap()), (14, LABEL.to_vec()));
}

#[tokio::test(start_paused = true)]
async fn html_or_json_instead_of_a_label_is_not_saved() {
    let typed = |kind: &str| label(14, &[LABEL]).with_header("content-type", kind);
    let broken = Step::in_pieces(200, [Piece::Bytes(LABEL[..5].into()), Piece::Break]);
    let table = [
        (vec![typed("application/pdf")], None),
        (vec![typed("text/plain; charset=utf-8")], None),
        (vec![typed("application/octet-stream")], None),
        (vec![typed("text/html")], Some(1)),
        (vec![typed("Text/HTML; charset=utf-8")], Some(1)),
        (vec![typed("application/json")], Some(1)),
        (vec![broken, typed("text/html")], Some(2)),
    ];
    for (steps, attempts) in table {
        let directory = tempfile::tempdir().unwrap();
        let (client, _) = ScriptedTransport::client(steps.clone());
        let saved = download(&client).save_in(&directory).await;
        let failed = saved.map_err(|error| (error.kind(), error.attempts())).err();
        assert_eq!(failed, attempts.map(|count| (ErrorKind::Decode, count)), "{steps:?}");
        assert_eq!(
            file_names(directory.path()).len(),
            usize::from(attempts.is_none()),
            "{steps:?}"
        );
    }
    let (client, _) = ScriptedTransport::client([typed("text/html")]);
    assert_eq!(download(&client).bytes().await.unwrap_err().kind(), ErrorKind::Decode);
}

#[tokio::test(start_paused = true)]
async fn a_label_is_streamed_to_disk_and_removed_if_dropped() {
    let slow = Piece::After(Duration::from_secs(9), Bytes::from_static(&LABEL[5..]));
    let pieces = vec![Piece::Bytes(Bytes::from_static(&LABEL[..5])), slow];
    let (client, _) = ScriptedTransport::client([Step::in_pieces(200, pieces)]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("label.pdf");
    std::fs::write(&path, "old").unwrap();
    let save = download(&client).save_to(&path);
    let mut save = Box::pin(tokio::time::timeout(Duration::from_secs(20), save));
    let early = tokio::time::timeout(Duration::from_secs(5), &mut save).await;
    assert!(early.is_err());
    let draft = file_names(directory.path()).into_iter().find(|name| name != "label.pdf").unwrap();
    assert_eq!(std::fs::read(directory.path().join(draft)).unwrap(), &LABEL[..5]);
    drop(save);
    assert_eq!(file_names(directory.path()), ["label.pdf"]);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_label_continues_where_it_stopped() {
    let broken = vec![Piece::Bytes(Bytes::from_static(&LABEL[..5])), Piece::Break];
    let (client, script) =
        ScriptedTransport::client([Step::in_pieces(200, broken), label(14, &[LABEL])]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("label.pdf");
    let save = download(&client).save_to(&path);
    assert_eq!((save.await.unwrap(), script.sent_requests().len()), (14, 2));
    assert_eq!(std::fs::read(&path).unwrap(), LABEL);
    assert_eq!(file_names(directory.path()), ["label.pdf"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_download_is_retried() {
    let (client, script) =
        ScriptedTransport::client([label(14, &[&LABEL[..5]]), label(14, &[LABEL])]);
    let bytes = download(&client).bytes().await.unwrap();
    assert_eq!((&bytes[..], script.sent_requests().len()), (LABEL, 2));
}

#[tokio::test(start_paused = true)]
async fn an_unwritable_file_is_an_error_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let taken = directory.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("x"), "x").unwrap();
    let missing = directory.path().join("missing/label.pdf");
    for path in [taken.clone(), missing, "/".into(), "..".into()] {
        let (client, _) = ScriptedTransport::client([label(14, &[LABEL])]);
        let error = download(&client).save_to(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::File, "{path:?}");
    }
    assert_eq!(file_names(directory.path()), ["taken"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_label_may_outlast_the_call_timeout() {
    let slow = vec![Piece::After(Duration::from_secs(9), LABEL.into()); 10];
    let (client, _) = ScriptedTransport::client([Step::in_pieces(200, slow)]);
    let bytes = download(&client).bytes().await.unwrap();
    assert_eq!(bytes.len(), 140);
}

/// Returns the pieces of a streamed label, and the error at its end.
async fn read_stream(client: &Client) -> (Vec<Bytes>, Option<Error>) {
    let mut stream = download(client).stream().await.unwrap();
    let mut pieces = Vec::new();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(piece) => pieces.push(piece),
            Err(error) => {
                assert!(stream.next().await.is_none(), "an error is the last item");
                return (pieces, Some(error));
            }
        }
    }
    (pieces, None)
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_complete_despite_interruptions() {
    let broken = |pieces: &[&'static [u8]], end: Piece| {
        let pieces = pieces.iter().map(|piece| Piece::Bytes(Bytes::from_static(piece)));
        Step::in_pieces(200, pieces.chain([end]))
    };
    let whole = || label(14, &[&LABEL[..7], &LABEL[7..]]);
    let table = [
        (vec![whole()], 1),
        (vec![label(14, &[&LABEL[..5]]), whole()], 2),
        (vec![label(14, &[]), whole()], 2),
        (vec![broken(&[&LABEL[..7]], Piece::Break), whole()], 2),
        (vec![broken(&[LABEL], Piece::Break), whole()], 2),
        (vec![broken(&[&LABEL[..9]], Piece::Silence), label(14, &[&LABEL[..2]]), whole()], 3),
        (vec![broken(&[&LABEL[..9]], Piece::Break), response(503, ""), whole()], 3),
    ];
    for (steps, requests) in table {
        let (client, script) = ScriptedTransport::client(steps.clone());
        let (pieces, error) = read_stream(&client).await;
        assert!(error.is_none(), "{steps:?}: {error:?}");
        assert_eq!(
            (&pieces.concat()[..], script.sent_requests().len()),
            (LABEL, requests),
            "{steps:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_be_completed_ends_with_an_error() {
    let begun = || label(14, &[&LABEL[..5]]);
    let other = label(14, &[b"%PDX-1.7 label"]);
    let gone = response(409, refusal("LABEL_VOIDED"));
    let endless = Step::in_pieces(200, vec![Piece::Bytes(vec![b' '; 1 << 20].into()); 17]);
    let table = [
        (vec![begun()], ErrorKind::Network, 4),
        (vec![begun(), gone], ErrorKind::Conflict, 2),
        (vec![begun(), other], ErrorKind::Conflict, 2),
        (vec![begun(), label(3, &[&LABEL[..3]])], ErrorKind::Conflict, 2),
        (vec![label((16 << 20) + 1, &[])], ErrorKind::Decode, 1),
        (vec![endless], ErrorKind::Decode, 1),
    ];
    for (steps, kind, requests) in table {
        let (client, script) = ScriptedTransport::client(steps.clone());
        let (_, error) = read_stream(&client).await;
        let error = error.unwrap();
        assert_eq!((error.kind(), script.sent_requests().len()), (kind, requests), "{steps:?}");
        assert_eq!(error.attempts() as usize, requests, "{steps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_may_outlast_the_call_timeout() {
    let slow = vec![Piece::After(Duration::from_secs(9), Bytes::from_static(b"0123456789")); 10];
    let broken: Vec<_> = slow.iter().cloned().chain([Piece::Break]).collect();
    let (client, _) =
        ScriptedTransport::client([Step::in_pieces(200, broken), Step::in_pieces(200, slow)]);
    let (pieces, error) = read_stream(&client).await;
    assert!(error.is_none() && pieces.concat().len() == 100, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_label_is_saved_under_a_safe_file_name() {
    let directory = tempfile::tempdir().unwrap();
    let (client, _) = ScriptedTransport::client([label(14, &[LABEL])]);
    let number = number();
    let download = client.labels().download(&number, LabelFormat::Zpl);
    let path = download.save_in(directory.path()).await.unwrap();
    assert_eq!(path, directory.path().join("SB-SUCCESS-0001.zpl"));
    let link = "http://localhost/files/..%2F..%2Fevil.pdf?sig=CANARY";
    let download = client.labels().download_link(link);
    let path = download.save_in(directory.path()).await.unwrap();
    assert_eq!(path.parent(), Some(directory.path()));
    assert_eq!(file_names(directory.path()).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_link_is_opened_without_the_key_on_label_hosts_only() {
    let open = async |base: &str, link: &str| {
        let script = ScriptedTransport::client([label(14, &[LABEL])]).1;
        let builder = Client::builder(key()).base_url(base).unwrap().transport(script.clone());
        let client = builder.label_hosts(["labels.parcelo.example"]).build().unwrap();
        let fetched = client.labels().download_link(link).bytes().await;
        let sent = script.sent_requests();
        if let Ok(bytes) = &fetched {
            assert!(bytes == LABEL && sent[0].uri() == link && sent[0].method() == "GET");
            assert!(!sent[0].headers().contains_key("x-api-key"), "{link}");
            let shown = format!("{:?}", sent[0]);
            assert!(!shown.contains(key().secret()), "{shown}");
        } else {
            assert!(sent.is_empty(), "{link}");
        }
        fetched.map_err(|error| error.kind())
    };
    let table = [
        ("http://127.0.0.1:81", "http://127.0.0.1:81/files/a.pdf?sig=x", true),
        ("https://api.parcelo.example/v", "https://api.parcelo.example/files/a.pdf", true),
        ("https://api.parcelo.example", "https://labels.parcelo.example/a.pdf", true),
        ("https://api.parcelo.example", "https://LABELS.parcelo.example:8443/a.pdf", true),
        ("https://api.parcelo.example", "http://labels.parcelo.example/a.pdf", false),
        ("https://api.parcelo.example", "http://api.parcelo.example/a.pdf", false),
        ("https://api.parcelo.example", "https://api.parcelo.example:444/a.pdf", false),
        ("https://api.parcelo.example", "https://evil.example/a.pdf", false),
        ("https://api.parcelo.example", "https://api.parcelo.example.evil.example/a", false),
        ("https://api.parcelo.example", "https://api.parcelo.example@evil.example/a", false),
        ("https://api.parcelo.example", "https://u:p@api.parcelo.example/a.pdf", false),
        ("https://api.parcelo.example", "file:///etc/passwd", false),
        ("https://api.parcelo.example", "//evil.example/a.pdf", false),
        ("https://api.parcelo.example", "", false),
        ("http://127.0.0.1:81", "http://127.0.0.1:82/a.pdf", false),
        // A URL parser drops line breaks and tabs silently.
        ("http://127.0.0.1:81", "http://127.0.0.1:81/a\r\nb.pdf", false),
        ("http://127.0.0.1:81", "http://127.0.0.1:81/a.pdf\n", false),
        ("http://127.0.0.1:81", " http://127.0.0.1:81/\ta.pdf", false),
    ];
    for (base, link, fine) in table {
        let expected = if fine { Ok(()) } else { Err(ErrorKind::Config) };
        assert_eq!(open(base, link).await.map(|_| ()), expected, "{base} {link}");
    }
}
