//! Searches: the parcels that they find and do not find, and terms that are deleted with their parcel.

use std::collections::BTreeSet;

use fastrand::Rng;
use parcelo_domain::{Changes, Millis, State, StoreOp, StoredOrder, Tenant, search::Search};
use parcelo_types::internal::check_list;

use super::{
    super::first_seed, NOW, apply, changes_to, commit, create, create_parcel, manifest,
    move_parcel, order, production, row, sandbox,
};
use crate::{SearchPage, Store};

conformance_tests!(
    a_parcel_is_found_by_beginnings_and_endings,
    a_search_by_air_waybill_finds_its_parcels,
    a_search_is_limited_to_tenant_and_filters,
    search_results_are_paged_newest_first,
    an_oversized_search_is_reported_as_incomplete,
    long_references_in_many_index_pieces_are_found,
    voided_parcels_are_found_and_deleted_ones_are_not,
    random_searches_match_a_full_scan,
    erasing_parcels_removes_them_from_a_late_index,
);

async fn search(store: &Store, tenant: Tenant, query: &[(&str, &str)]) -> SearchPage {
    let pairs = query.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let query = check_list(pairs).unwrap();
    let search = Search::new(&query).unwrap();
    store.search(tenant, query, search).await.unwrap()
}

/// Searches the parcels of the first sandbox.
pub(crate) async fn search_text(store: &Store, text: &str) -> SearchPage {
    search(store, sandbox(1), &[("search", text)]).await
}

/// Brings the index up to date.
pub(crate) async fn maintain_index(store: &Store) {
    while store.maintain_search_index().await.unwrap() {}
}

async fn find_numbers(store: &Store, tenant: Tenant, query: &[(&str, &str)]) -> String {
    let page = search(store, tenant, query).await;
    assert!(page.is_complete, "{query:?}");
    assert!(page.total >= page.parcels.len() as u64);
    numbers(&page)
}

fn numbers(page: &SearchPage) -> String {
    let numbers: Vec<_> =
        page.parcels.iter().map(|listed| listed.parcel.tracking_number.as_str()).collect();
    numbers.join(" ")
}

/// Returns changes that create an order with this reference, external order id and receiver.
fn searchable_order(tenant: Tenant, number: &str, texts: [&str; 3]) -> Changes {
    let mut changes = create(tenant, number, 0);
    changes.idempotency_record = None;
    if let StoreOp::InsertParcel(parcel) = &mut changes.ops[0] {
        let [reference, order_id, receiver] = texts.map(str::to_owned);
        let mut order = order("key-1");
        order.customer_reference = Some(reference).filter(|text| !text.is_empty());
        order.external_order_id = Some(order_id).filter(|text| !text.is_empty());
        order.receiver.full_name = receiver;
        parcel.order = StoredOrder::to_json(&order);
        parcel.external_order_id = order.external_order_id;
    }
    changes
}

async fn a_parcel_is_found_by_beginnings_and_endings(store: Store) {
    let tenant = sandbox(1);
    commit(&store, searchable_order(tenant, "SB-AAAA-1234", ["PO 4711", "#1001", "María Núñez"]))
        .await;
    commit(&store, searchable_order(tenant, "SB-BBBB-5678", ["PO-9902", "", "Zoë Straße"])).await;
    let (first, second) = ("SB-AAAA-1234", "SB-BBBB-5678");
    let both = format!("{second} {first}");
    let table = [
        ("SB-AAAA-1234", first),
        ("sbaaaa1234", first),
        ("SB AAAA 1234", first),
        ("sb-a", first),
        ("sb", &both),
        ("1234", first),
        ("a1234", first),
        ("234", ""),
        ("AAAA", ""),
        ("po4711", first),
        ("po 4711", first),
        ("PO 47", first),
        ("4711", first),
        ("711", ""),
        ("po", &both),
        ("1001", first),
        ("#10", first),
        ("nunez", first),
        ("NÚÑEZ maría", first),
        ("mari 4711", first),
        ("mari 9902", ""),
        ("strasse", second),
        ("stra", second),
        ("zoe", second),
        ("unez", ""),
        ("quito", ""),
        ("\"PO 4711\"", first),
        ("\"PO 471\"", ""),
        ("\"nunez maria\"", first),
        ("\"nunez mari\"", ""),
        ("\"SB-BBBB-5678\"", second),
    ];
    for (text, expected) in table {
        assert_eq!(find_numbers(&store, tenant, &[("search", text)]).await, expected, "{text}");
    }
    for (text, expected) in [("PO", both.as_str()), ("4711", first), ("1001", first), ("maria", "")]
    {
        assert_eq!(find_numbers(&store, tenant, &[("reference", text)]).await, expected, "{text}");
    }
    let narrowed = [("search", "maria"), ("reference", "9902")];
    assert_eq!(find_numbers(&store, tenant, &narrowed).await, "");
}

async fn a_search_by_air_waybill_finds_its_parcels(store: Store) {
    let tenant = sandbox(1);
    let one = create_parcel(&store, tenant, "SB-ONE-00001").await;
    let two = create_parcel(&store, tenant, "SB-TWO-00001").await;
    create_parcel(&store, tenant, "SB-NONE-0001").await;
    apply(&store, vec![manifest(tenant, vec![one.key, two.key], 1)]).await;
    let both = "SB-TWO-00001 SB-ONE-00001";
    for (text, expected) in [
        ("176-12345675", both),
        ("17612345675", both),
        ("176 1234 5675", both),
        ("176", both),
        ("1761", both),
        ("5675", both),
        ("612345675", both),
        ("675", ""),
        ("9675", ""),
    ] {
        assert_eq!(find_numbers(&store, tenant, &[("search", text)]).await, expected, "{text}");
    }
    assert_eq!(find_numbers(&store, sandbox(2), &[("search", "176")]).await, "", "another tenant");
    store.reset(tenant).await.unwrap();
    assert_eq!(find_numbers(&store, tenant, &[("search", "5675")]).await, "");
}

async fn a_search_is_limited_to_tenant_and_filters(store: Store) {
    let texts = ["PO-1", "A-1", "Luis Ñandú"];
    commit(&store, searchable_order(sandbox(1), "SB-ONE-00001", texts)).await;
    commit(&store, searchable_order(production(1), "EC-ONE-00001", texts)).await;
    commit(&store, searchable_order(sandbox(2), "SB-TWO-00001", texts)).await;
    let luis = ("search", "nandu");
    assert_eq!(find_numbers(&store, sandbox(1), &[luis]).await, "SB-ONE-00001");
    assert_eq!(find_numbers(&store, production(1), &[luis]).await, "EC-ONE-00001");
    for (name, value, is_found) in [
        ("country", "EC", true),
        ("country", "MX", false),
        ("status", "LABEL_GENERATED", true),
        ("status", "DELIVERED", false),
        ("externalOrderId", "A-1", true),
        ("externalOrderId", "A", false),
        ("createdFrom", "2026-01-10", true),
        ("createdFrom", "2026-01-11", false),
        ("createdTo", "2026-01-10", false),
    ] {
        let expected = if is_found { "SB-ONE-00001" } else { "" };
        let found = find_numbers(&store, sandbox(1), &[luis, (name, value)]).await;
        assert_eq!(found, expected, "{name} {value}");
    }
}

async fn search_results_are_paged_newest_first(store: Store) {
    for (number, after) in [("SB-ONE-00001", 0), ("SB-TWO-00001", 9), ("SB-THREE-001", 5)] {
        let mut changes = searchable_order(sandbox(1), number, ["PO-1", "", "Luis"]);
        if let StoreOp::InsertParcel(parcel) = &mut changes.ops[0] {
            parcel.created_at = NOW.plus(after);
        }
        commit(&store, changes).await;
    }
    let luis = ("search", "luis");
    let found = find_numbers(&store, sandbox(1), &[luis]).await;
    assert_eq!(found, "SB-TWO-00001 SB-THREE-001 SB-ONE-00001");
    let last = search(&store, sandbox(1), &[luis, ("limit", "2"), ("page", "2")]).await;
    assert_eq!((numbers(&last).as_str(), last.total), ("SB-ONE-00001", 3));
    let past = search(&store, sandbox(1), &[luis, ("page", "4294967295")]).await;
    assert_eq!((numbers(&past).as_str(), past.total), ("", 3));
}

async fn an_oversized_search_is_reported_as_incomplete(store: Store) {
    let all = (0..1_100)
        .map(|n| searchable_order(sandbox(1), &format!("SB-MANY-{n:05}"), ["", "", "Luis"]));
    for page in all.collect::<Vec<_>>().chunks(200) {
        futures_util::future::join_all(page.iter().map(|changes| commit(&store, changes.clone())))
            .await;
    }
    // Parcels that are not in the index yet are checked one by one.
    let page = search(&store, sandbox(1), &[("search", "luis")]).await;
    assert_eq!((page.total, page.is_complete), (1_000, false));
    maintain_index(&store).await;
    // The index alone finds all matches, up to a limit (in tests, 1,000). Above it, only the newest 1,000 are checked,
    // and the few that are in no run yet.
    let page = search(&store, sandbox(1), &[("search", "sbmany000")]).await;
    assert_eq!((page.total, page.is_complete), (100, true));
    for filters in [&[][..], &[("country", "EC")]] {
        let page = search(&store, sandbox(1), &[&[("search", "luis")], filters].concat()).await;
        assert!((1_000..1_020).contains(&page.total) && !page.is_complete, "{}", page.total);
    }
    let page = search(&store, sandbox(1), &[("search", "luis 00007"), ("country", "EC")]).await;
    assert_eq!((numbers(&page).as_str(), page.is_complete), ("SB-MANY-00007", true));
}

async fn long_references_in_many_index_pieces_are_found(store: Store) {
    let mut rng = Rng::with_seed(1);
    for n in 0..900 {
        let reference = format!("shop-{:032x}", rng.u128(..));
        let number = format!("SB-LONG-{n:05}");
        commit(&store, searchable_order(sandbox(1), &number, [&reference, "", "Luis"])).await;
    }
    maintain_index(&store).await;
    let page = search(&store, sandbox(1), &[("search", "shop")]).await;
    assert_eq!((page.total, page.is_complete), (900, true));
}

async fn voided_parcels_are_found_and_deleted_ones_are_not(store: Store) {
    let tenant = sandbox(1);
    assert!(!store.maintain_search_index().await.unwrap(), "a new database has nothing to add");
    let parcel = create_parcel(&store, tenant, "SB-ONE-00001").await;
    commit(&store, changes_to(&parcel, vec![move_parcel(&parcel, State::Voided, 5)])).await;
    create_parcel(&store, production(1), "EC-ONE-00001").await;
    let luis = [("search", "nandu")];
    assert_eq!(find_numbers(&store, tenant, &luis).await, "SB-ONE-00001", "voided");
    store.reset(tenant).await.unwrap();
    assert_eq!(find_numbers(&store, tenant, &luis).await, "", "reset");
    // A new parcel gets the number of the erased one.
    create_parcel(&store, tenant, "SB-ONE-00001").await;
    assert_eq!(find_numbers(&store, tenant, &luis).await, "SB-ONE-00001");
    store.purge(Millis(i64::MAX)).await.unwrap();
    assert_eq!(row(&store, "SB-ONE-00001").await, None);
    assert_eq!(find_numbers(&store, tenant, &luis).await, "", "purged");
    assert_eq!(find_numbers(&store, production(1), &luis).await, "EC-ONE-00001");
}

/// A parcel that was created, with the texts by which a search must find it.
struct TestParcel {
    number: String,
    codes: Vec<String>,
    words: Vec<String>,
}

async fn random_searches_match_a_full_scan(store: Store) {
    let seed = first_seed();
    let mut rng = Rng::with_seed(seed);
    let mut expected_parcels: Vec<TestParcel> = Vec::new();
    for n in 0..240_u32 {
        let one = TestParcel::random(&mut rng, n);
        let receiver = one.words.join(" ");
        let texts = [one.codes[1].as_str(), one.codes[2].as_str(), &receiver];
        let mut changes = searchable_order(sandbox(1), &one.number, texts);
        if let StoreOp::InsertParcel(parcel) = &mut changes.ops[0] {
            parcel.created_at = NOW.plus(n.into());
        }
        commit(&store, changes).await;
        expected_parcels.push(one);
        // The index is sometimes behind, sometimes in the middle of a merge.
        if rng.u8(..8) == 0 {
            store.maintain_search_index().await.unwrap();
        }
        if n % 40 == 0 {
            check_searches(&store, &expected_parcels, &mut rng, seed).await;
        }
    }
    // The older ones are deleted, some of them while they are being merged.
    for deleted in [60_u32, 100, 150] {
        store.purge(NOW.plus(i64::from(deleted) - 1)).await.unwrap();
        store.maintain_search_index().await.unwrap();
        check_searches(&store, &expected_parcels[deleted as usize..], &mut rng, seed).await;
    }
    maintain_index(&store).await;
    check_searches(&store, &expected_parcels[150..], &mut rng, seed).await;
}

async fn check_searches(store: &Store, expected_parcels: &[TestParcel], rng: &mut Rng, seed: u64) {
    for _ in 0..30 {
        let wanted = [rng.usize(1..6), rng.usize(0..4)].map(|length| text(rng, length));
        let wanted: Vec<&str> =
            wanted.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
        let (query, is_whole) = (wanted.join(" "), rng.bool());
        let query = if is_whole { format!("\"{query}\"") } else { query };
        let expected: BTreeSet<&str> = expected_parcels
            .iter()
            .filter(|one| {
                if is_whole { one.equals_words(&wanted) } else { one.begins_or_ends_with(&wanted) }
            })
            .map(|one| one.number.as_str())
            .collect();
        let page = search(store, sandbox(1), &[("search", &query), ("limit", "100")]).await;
        let all = numbers(&page);
        let all: BTreeSet<&str> = all.split(' ').filter(|number| !number.is_empty()).collect();
        assert!(all.is_subset(&expected), "{query} (seed {seed}): {all:?}, not {expected:?}");
        assert_eq!(page.total, expected.len() as u64, "{query} (seed {seed})");
    }
}

/// Returns a text of few letters, so that a search finds some.
fn text(rng: &mut Rng, length: usize) -> String {
    (0..length).map(|_| *rng.choice(&['a', 'b', '1', '2']).unwrap()).collect()
}

impl TestParcel {
    fn random(rng: &mut Rng, n: u32) -> Self {
        let number = format!("SB{}{n:03}", text(rng, 8)).to_uppercase();
        let lengths = [rng.usize(0..7), rng.usize(0..7)];
        let [reference, order_id] = lengths.map(|length| text(rng, length));
        let words = vec![text(rng, 3), text(rng, 2)];
        Self { codes: vec![number.to_lowercase(), reference, order_id], number, words }
    }

    /// Returns `true` if each text is the beginning or the end of a code, or the beginning of a word.
    fn begins_or_ends_with(&self, wanted: &[&str]) -> bool {
        let is_code = |text: &str| {
            let ends = |code: &String| text.len() >= 4 && code.ends_with(text);
            self.codes.iter().any(|code| code.starts_with(text) || ends(code))
        };
        let is_word = |text: &str| self.words.iter().any(|word| word.starts_with(text));
        wanted.iter().all(|text| is_code(text) || is_word(text)) || is_code(&wanted.concat())
    }

    /// Returns `true` if each text is a whole code or a whole word.
    fn equals_words(&self, wanted: &[&str]) -> bool {
        let has_all =
            |text: &&str| self.codes.iter().chain(&self.words).any(|known_text| known_text == text);
        wanted.iter().all(has_all) || self.codes.contains(&wanted.concat())
    }
}

async fn erasing_parcels_removes_them_from_a_late_index(store: Store) {
    let tenant = sandbox(1);
    let parcels = async |range: std::ops::Range<u32>| {
        for number in range {
            let number = format!("SB-LATE-{number:06}");
            commit(&store, searchable_order(tenant, &number, ["nandu", &number, "Ana"])).await;
        }
    };
    // The ids of parcels are far ahead of those of runs.
    parcels(0..30).await;
    store.purge(NOW).await.unwrap();
    parcels(30..60).await;
    maintain_index(&store).await;
    assert_eq!(search(&store, tenant, &[("search", "nandu")]).await.total, 30);
    store.purge(NOW).await.unwrap();
    assert_eq!(search(&store, tenant, &[("search", "nandu")]).await.total, 0);
}
