//! Accounts, their sessions, and their keys that used the legacy API.

use std::{
    collections::{BTreeMap, HashMap},
    net::Ipv4Addr,
};

use parcelo_domain::{
    AccountRowId, Shop, Tenant,
    sample::TEST_AUTHOR,
    session::{NewSession, PasswordLogin, Session},
};

use super::{NOW, SECRET, insert_key, key};
use crate::Store;

conformance_tests!(
    an_account_is_created_once,
    accounts_are_found_by_name_and_listed_oldest_first,
    the_last_shop_settings_apply,
    a_new_password_invalidates_the_previous_one,
    a_session_lasts_until_it_ends_expires_or_is_replaced,
    the_latest_day_of_use_of_a_key_is_kept,
    legacy_uses_add_up_by_key_and_day,
);

async fn an_account_is_created_once(store: Store) {
    assert!(store.is_new().await.unwrap() && store.claim_new().await.unwrap());
    let one = store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    assert!(!store.is_new().await.unwrap() && !store.claim_new().await.unwrap());
    assert_eq!(store.account("default", "acc_2".to_owned(), NOW).await.unwrap(), one);
    assert_ne!(store.account("other", "acc_3".to_owned(), NOW).await.unwrap(), one);
    assert_eq!(store.secret(), SECRET);
}

async fn accounts_are_found_by_name_and_listed_oldest_first(store: Store) {
    let one = store.account("shop", "acc_1".to_owned(), NOW).await.unwrap();
    let two = store.account("Shop", "acc_2".to_owned(), NOW.plus(-5)).await.unwrap();
    assert_eq!(store.account_named("shop").await.unwrap(), Some(one));
    assert_eq!(store.account_named("Shop").await.unwrap(), Some(two), "names are case-sensitive");
    assert_eq!(store.account_named("SHOP").await.unwrap(), None);
    let all = store.accounts().await.unwrap();
    let fields: Vec<_> = all.iter().map(|entry| (entry.id.as_str(), entry.name.as_str())).collect();
    assert_eq!(fields, [("acc_1", "shop"), ("acc_2", "Shop")]);
    assert_eq!((all[1].key, all[1].created_at), (two, NOW.plus(-5)));
    let record = store.account_record(one).await.unwrap();
    assert_eq!((record.id.as_str(), record.name.as_str()), ("acc_1", "shop"));
}

async fn the_last_shop_settings_apply(store: Store) {
    let one = store.account("one", "acc_1".to_owned(), NOW).await.unwrap();
    let two = store.account("two", "acc_2".to_owned(), NOW).await.unwrap();
    assert_eq!(store.shop(one).await.unwrap(), Shop::default(), "it has no settings at first");
    let first = Shop::parse("Café «Quito» 'x'", "+593 99 123 4567").unwrap();
    store.set_shop(one, &first, &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.shop(one).await.unwrap(), first);
    let second = Shop::parse("", "https://shop.example/help").unwrap();
    store.set_shop(one, &second, &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.shop(one).await.unwrap(), second, "the last settings replace earlier ones");
    assert_eq!(store.shop(two).await.unwrap(), Shop::default(), "each account has its own");
    store.set_shop(one, &Shop::default(), &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.shop(one).await.unwrap(), Shop::default());
}

async fn create_login(store: &Store, name: &str) -> (AccountRowId, PasswordLogin) {
    let account = store.account(name, format!("acc_{name}"), NOW).await.unwrap();
    store.set_password(account, format!("hash of {name}"), NOW, &TEST_AUTHOR).await.unwrap();
    (account, store.login(name).await.unwrap().unwrap())
}

/// Returns a session that ends this many milliseconds after `NOW`.
pub(crate) fn new_session(hash: u8, ends: i64) -> NewSession {
    let client = Ipv4Addr::LOCALHOST.into();
    NewSession { hash: [hash; 32], begins_at: NOW, ends_at: NOW.plus(ends), client }
}

async fn a_new_password_invalidates_the_previous_one(store: Store) {
    let account = store.account("bare", "acc_0".to_owned(), NOW).await.unwrap();
    assert!(store.login("bare").await.unwrap().is_none(), "the account has no password");
    assert!(store.login("unknown").await.unwrap().is_none());
    let (shop, login) = create_login(&store, "shop").await;
    assert!(shop != account);
    assert!(login == PasswordLogin { account: shop, password: "hash of shop".into() });
    assert!(store.begin_session(login.clone(), new_session(1, 9), None).await.unwrap());
    store.set_password(shop, "another hash".to_owned(), NOW, &TEST_AUTHOR).await.unwrap();
    assert_eq!(store.login("shop").await.unwrap().unwrap().password, "another hash");
    assert_eq!(store.session(&[1; 32]).await.unwrap(), None, "a new password ends all sessions");
    let begun = store.begin_session(login, new_session(2, 9), None).await.unwrap();
    assert!(!begun, "the login was checked against the previous password");
    assert_eq!(store.session(&[2; 32]).await.unwrap(), None);
}

async fn a_session_lasts_until_it_ends_expires_or_is_replaced(store: Store) {
    let (account, login) = create_login(&store, "shop").await;
    let begin = async |hash: u8, ends, before: Option<u8>| {
        let before = before.map(|hash| [hash; 32]);
        store.begin_session(login.clone(), new_session(hash, ends), before).await.unwrap()
    };
    let exists = async |hash: u8| store.session(&[hash; 32]).await.unwrap().is_some();
    assert!(begin(1, 5, None).await && begin(2, 9, None).await);
    let session = Session { account, name: "shop".to_owned(), ends_at: NOW.plus(5) };
    assert_eq!(store.session(&[1; 32]).await.unwrap(), Some(session));
    assert!(begin(3, 9, Some(2)).await);
    assert!(!exists(2).await && exists(3).await, "a new session replaces its browser's old one");
    store.purge_sessions(NOW.plus(4)).await.unwrap();
    assert!(exists(1).await);
    store.purge_sessions(NOW.plus(5)).await.unwrap();
    assert!(!exists(1).await && exists(3).await);
    store.end_session([3; 32]).await.unwrap();
    assert!(!exists(3).await);
}

async fn the_latest_day_of_use_of_a_key_is_kept(store: Store) {
    let account = store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    let other = store.account("other", "acc_2".to_owned(), NOW).await.unwrap();
    let one = insert_key(&store, key(account, 1)).await.unwrap().row;
    let unused = insert_key(&store, key(account, 3)).await.unwrap().row;
    let mut other_key = key(other, 2);
    other_key.scope.tenant = Tenant { account: other, ..other_key.scope.tenant };
    let two = insert_key(&store, other_key).await.unwrap().row;
    assert_eq!(store.key_uses(Some(account)).await.unwrap(), BTreeMap::new());
    store.save_key_uses(BTreeMap::from([(one, 20_000), (two, 20_003)])).await.unwrap();
    store.save_key_uses(BTreeMap::from([(one, 20_001)])).await.unwrap();
    // Another server saw an earlier use, and reports it late.
    store.save_key_uses(BTreeMap::from([(one, 19_999)])).await.unwrap();
    // More keys than fit into one statement.
    let many = (1_000..1_150).map(|key| (key, 20_000)).chain([(two, 20_003)]);
    store.save_key_uses(many.collect()).await.unwrap();
    let own = store.key_uses(Some(account)).await.unwrap();
    assert_eq!(own, BTreeMap::from([(one, 20_001)]));
    assert!(!own.contains_key(&unused));
    assert_eq!(store.key_uses(Some(other)).await.unwrap(), BTreeMap::from([(two, 20_003)]));
    let all = BTreeMap::from([(one, 20_001), (two, 20_003)]);
    assert_eq!(store.key_uses(None).await.unwrap(), all, "of every account, without unknown keys");
}

async fn legacy_uses_add_up_by_key_and_day(store: Store) {
    let account = store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    let other = store.account("other", "acc_2".to_owned(), NOW).await.unwrap();
    let one = insert_key(&store, key(account, 1)).await.unwrap().row;
    let mut other_key = key(other, 2);
    other_key.scope.tenant = Tenant { account: other, ..other_key.scope.tenant };
    let two = insert_key(&store, other_key).await.unwrap().row;
    store.add_legacy_uses(HashMap::from([((one, 20_000), 2), ((one, 20_001), 1)])).await.unwrap();
    store.add_legacy_uses(HashMap::from([((one, 20_000), 3), ((two, 20_000), 9)])).await.unwrap();
    let uses = store.legacy_uses().await.unwrap();
    let fields: Vec<_> = uses.iter().map(|day| (day.key_id.as_str(), day.requests)).collect();
    assert_eq!(fields, [("key_1", 1), ("key_2", 9), ("key_1", 5)], "the latest day first");
    assert_eq!(uses[0].day.to_string(), "2024-10-05");
    assert_eq!(uses[0].name, "Warehouse");
    let own = store.account_legacy_uses(account).await.unwrap();
    assert_eq!(own.iter().map(|day| day.requests).collect::<Vec<_>>(), [1, 5]);
}
