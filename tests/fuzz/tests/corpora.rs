//! Runs every target on its corpus and on mutations of it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    fs,
};

use parcelo_fuzz::{FuzzRun, TARGETS, Target, corpus_folder};

fn run_target(name: &str) {
    let target = Target::by_name(name).unwrap();
    let run = FuzzRun::new(target, &target.check);
    run.replay();
    run.mutate();
}

/// Defines a test for each target.
macro_rules! target_tests {
    ($($test:ident: $target:ident;)+) => {
        $(#[test] fn $test() { run_target(stringify!($target)); })+
        const TESTED_TARGETS: &[&str] = &[$(stringify!($target)),+];
    };
}

target_tests! {
    a_browser_gets_its_preferred_language: accept_language;
    fingerprints_are_equal_exactly_for_equal_json: canonical_json;
    each_scan_has_one_outcome_and_a_repeated_one_is_a_duplicate: carrier_events;
    no_form_breaks_the_dashboard_or_becomes_markup: dashboard_forms;
    no_message_shows_a_database_password: database_address;
    packets_of_any_size_make_the_same_requests: http_packets;
    an_idempotency_key_identifies_one_request_of_a_tenant: idempotency_keys;
    no_text_of_an_order_becomes_a_printers_command: label_zpl;
    orders_follow_the_offline_rules_and_are_stored_once: order_json;
    pages_list_every_parcel_once: parcel_pages;
    a_client_follows_retry_after_within_its_limits: retry_after;
    a_secret_key_survives_a_round_trip_and_is_never_shown: secret_keys;
    a_typed_number_finds_its_parcel_and_never_becomes_markup: tracking_number;
    a_message_is_accepted_only_with_a_valid_signature: webhook_signature;
}

#[test]
fn every_target_has_a_test_and_every_corpus_a_target() {
    let targets: BTreeSet<_> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(targets, TESTED_TARGETS.iter().copied().collect());
    let folders = fs::read_dir(corpus_folder("")).unwrap();
    let folders = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // The inputs of `csv_import` are tried by a test of the command line.
    let corpora: BTreeSet<_> = folders.filter(|name| name != "csv_import").collect();
    assert_eq!(corpora, targets.into_iter().map(str::to_owned).collect());
}

#[test]
fn a_run_by_time_tries_other_mutations_until_the_time_is_over() {
    let target = Target::by_name("retry_after").unwrap();
    let (inputs, seconds_left) = (RefCell::new(Vec::new()), Cell::new(3));
    let check = |input: &[u8]| inputs.borrow_mut().push(input.to_vec());
    let cases = FuzzRun::new(target, &check).mutate_until(1, || {
        seconds_left.set(seconds_left.get() - 1);
        seconds_left.get() == 0
    });
    let inputs = inputs.into_inner();
    let of_each_seed: Vec<_> = inputs.chunks(target.cases as usize).collect();
    assert_eq!((cases, of_each_seed.len()), (inputs.len() as u64, 3));
    assert_ne!(of_each_seed[0], of_each_seed[1]);
    assert_ne!(of_each_seed[1], of_each_seed[2]);
}
