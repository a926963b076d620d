//! A label is whole, or it is an error.

use std::{path::Path, time::Duration};

use bytes::Bytes;
use parcelo::{ErrorKind, LabelFormat, StopReason};

use crate::script::{Piece, Script, Step, answer, number, refusal};

const LABEL: &[u8] = b"%PDF-1.7 label";

fn label(length: usize, pieces: &[&'static [u8]]) -> Step {
    let pieces = pieces.iter().map(|piece| Piece::Bytes(Bytes::from_static(piece))).collect();
    Step::Answer(200, vec![("content-length", length.to_string())], pieces)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_label_is_saved_whole_in_place_of_an_older_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("label.pdf");
    std::fs::write(&path, "an older and much longer label").unwrap();
    let reader = std::fs::File::open(&path).unwrap();
    let (client, script) = Script::client([label(14, &[&LABEL[..5], &LABEL[5..]])]);
    let length =
        client.labels().download(&number(), LabelFormat::Pdf).save_to(&path).await.unwrap();
    assert_eq!((length, std::fs::read(&path).unwrap()), (14, LABEL.to_vec()));
    assert_eq!(names(directory.path()), ["label.pdf"]);
    let still = std::io::read_to_string(reader).unwrap();
    assert_eq!(still, "an older and much longer label", "who reads the old file reads it whole");
    assert_eq!(
        script.sent()[0].uri(),
        "http://localhost/api/v1/labels/SB-SUCCESS-0001/download?format=PDF"
    );
}

#[tokio::test(start_paused = true)]
async fn a_label_that_is_cut_short_leaves_no_file_and_the_old_one_alone() {
    let broken = Step::Answer(200, vec![], vec![Piece::Bytes(LABEL.into()), Piece::Break]);
    let silent = Step::Answer(200, vec![], vec![Piece::Bytes(LABEL.into()), Piece::Silence]);
    let refused = answer(409, refusal("LABEL_VOIDED"));
    let table = [
        (label(15, &[LABEL]), ErrorKind::Network),
        (label(13, &[LABEL]), ErrorKind::Network),
        (broken, ErrorKind::Network),
        (silent, ErrorKind::Timeout),
        (refused, ErrorKind::Conflict),
        (label(17 << 20, &[]), ErrorKind::Decode),
    ];
    for (step, kind) in table {
        let directory = tempfile::tempdir().unwrap();
        let old = directory.path().join("old.pdf");
        std::fs::write(&old, "old").unwrap();
        for path in [&old, &directory.path().join("new.pdf")] {
            let (client, _) = Script::client([step.clone()]);
            let number = number();
            let download = client.labels().download(&number, LabelFormat::Pdf);
            assert_eq!(download.save_to(path).await.unwrap_err().kind(), kind, "{step:?}");
        }
        assert_eq!(names(directory.path()), ["old.pdf"], "{step:?}");
        assert_eq!(std::fs::read(&old).unwrap(), b"old");
    }
}

#[tokio::test(start_paused = true)]
async fn a_download_that_breaks_off_is_begun_again() {
    let (client, script) = Script::client([label(14, &[&LABEL[..5]]), label(14, &[LABEL])]);
    let bytes = client.labels().download(&number(), LabelFormat::Png).bytes().await.unwrap();
    assert_eq!((&bytes[..], script.sent().len()), (LABEL, 2));
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_written_is_told_and_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let taken = directory.path().join("taken");
    std::fs::create_dir(&taken).unwrap();
    std::fs::write(taken.join("x"), "x").unwrap();
    let missing = directory.path().join("missing/label.pdf");
    for path in [taken.clone(), missing, "/".into(), "..".into()] {
        let (client, _) = Script::client([label(14, &[LABEL])]);
        let number = number();
        let download = client.labels().download(&number, LabelFormat::Pdf);
        let error = download.save_to(&path).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::File, "{path:?}");
    }
    assert_eq!(names(directory.path()), ["taken"]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_label_may_take_longer_than_any_other_call() {
    let slow = vec![Piece::After(Duration::from_secs(9), LABEL.into()); 10];
    let (client, _) = Script::client([Step::Answer(200, vec![], slow)]);
    let bytes = client.labels().download(&number(), LabelFormat::Zpl).bytes().await.unwrap();
    assert_eq!(bytes.len(), 140);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_an_error_unless_the_file_is_whole() {
    for (length, whole) in [(14, true), (15, false)] {
        let (client, script) = Script::client([label(length, &[&LABEL[..5], &LABEL[5..]])]);
        let number = number();
        let download = client.labels().download(&number, LabelFormat::Pdf);
        let mut stream = download.stream().await.unwrap();
        assert_eq!(stream.length(), Some(length as u64));
        assert_eq!(stream.next().await.unwrap().unwrap(), &LABEL[..5]);
        assert_eq!(stream.next().await.unwrap().unwrap(), &LABEL[5..]);
        let end = stream.next().await.map(Result::unwrap_err);
        assert_eq!(end.is_none(), whole);
        assert!(
            end.is_none_or(|error| error.stop_reason() == Some(StopReason::NotRepeatable)
                && error.attempts() == 1)
        );
        assert!(stream.next().await.is_none());
        assert_eq!(script.sent().len(), 1);
    }
}
