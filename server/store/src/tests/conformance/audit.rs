//! The audit log: changes and their authors.

use super::{NOW, credential, key, webhooks::endpoint};
use crate::{AuditFilter, Store};
use parcelo::webhook::Secret;
use parcelo_domain::{
    AccountRowId, Millis, Shop, Tenant,
    audit::{Actor, AuditAction, Author},
    credentials::{AdminScope, ApiKeyScope, NewSecret},
    mail::DisabledMailKinds,
    session::{NewSession, PasswordLogin},
    webhooks::DisabledBy,
};
use parcelo_types::Environment;

conformance_tests!(
    each_change_is_logged_with_its_author_and_no_ops_are_not,
    an_account_sees_only_its_own_entries_newest_first,
    a_sign_in_is_logged_with_its_address_and_apart_from_changes,
    old_entries_are_purged,
);

fn session(at: Millis) -> Author {
    Author { actor: Actor::Session, at }
}

async fn account(store: &Store, name: &str) -> AccountRowId {
    store.account(name, format!("acc_{name}"), NOW).await.unwrap()
}

fn secret(hash: u8) -> NewSecret {
    NewSecret { hash: [hash; 32], last4: "wxyz".to_owned(), old_until: NOW, replaces: None }
}

/// Makes every change that is logged, and some calls that change nothing.
async fn make_every_kind_of_change(store: &Store, account: AccountRowId, by: &Author) {
    let tenant = Tenant { account, environment: Environment::Sandbox };
    store.insert_credential::<ApiKeyScope>(key(account, 1), by).await.unwrap();
    store.rotate_key("key_1", secret(2), by).await.unwrap();
    for _ in 0..2 {
        store.revoke_credential::<ApiKeyScope>("key_1", NOW, by).await.unwrap();
    }
    store.rotate_key("key_1", secret(3), by).await.unwrap();
    store.rotate_key("key_9", secret(3), by).await.unwrap();
    store.enable_endpoint(tenant, by).await.unwrap();
    store.rotate_secret(tenant, (None, Secret::from_random(&[1; 32])), NOW, by).await.unwrap();
    store.set_endpoint(endpoint(tenant), by).await.unwrap();
    store.rotate_secret(tenant, (None, Secret::from_random(&[1; 32])), NOW, by).await.unwrap();
    for _ in 0..2 {
        store.disable_endpoint(tenant, DisabledBy::Operator, by).await.unwrap();
    }
    for _ in 0..2 {
        store.enable_endpoint(tenant, by).await.unwrap();
    }
    store.set_password(account, "hash".to_owned(), NOW, by).await.unwrap();
    store.set_mails_off(account, DisabledMailKinds::default(), by).await.unwrap();
    store.set_shop(account, &Shop::default(), by).await.unwrap();
    for _ in 0..2 {
        store.remove_endpoint(tenant, by).await.unwrap();
    }
}

async fn each_change_is_logged_with_its_author_and_no_ops_are_not(store: Store) {
    let one = account(&store, "one").await;
    let author = Author { actor: Actor::Token("adt_1".to_owned()), at: NOW };
    make_every_kind_of_change(&store, one, &author).await;
    let expected = [
        ("key.created", "key_1"),
        ("key.rotated", "key_1"),
        ("key.revoked", "key_1"),
        ("webhook.set", "sandbox"),
        ("webhook.secret_rotated", "sandbox"),
        ("webhook.disabled", "sandbox"),
        ("webhook.enabled", "sandbox"),
        ("password.set", ""),
        ("mails.set", ""),
        ("shop.set", ""),
        ("webhook.removed", "sandbox"),
    ];
    let own = store.audit_log(AuditFilter::Account(one), Millis(0), 100).await.unwrap();
    let own: Vec<_> =
        own.iter().rev().map(|entry| (entry.action.code(), entry.subject.as_str())).collect();
    assert_eq!(own, expected);
    let all = store.audit_log(AuditFilter::All, NOW, 100).await.unwrap();
    assert!(all.iter().all(|entry| entry.actor == author.actor && entry.at == NOW));
    assert!(all.iter().all(|entry| entry.account.as_deref() == Some("one")));
}

async fn an_account_sees_only_its_own_entries_newest_first(store: Store) {
    let (one, two) = (account(&store, "one").await, account(&store, "two").await);
    for (account, at) in [(one, NOW), (two, NOW.plus(1)), (one, NOW.plus(2))] {
        store.set_shop(account, &Shop::default(), &session(at)).await.unwrap();
    }
    let token = credential("adt", 1, AdminScope);
    store.insert_credential::<AdminScope>(token, &session(NOW)).await.unwrap();
    let times = async |filter, since, max| {
        let entries = store.audit_log(filter, since, max).await.unwrap();
        entries.iter().map(|entry| entry.at).collect::<Vec<_>>()
    };
    assert_eq!(times(AuditFilter::Account(one), NOW, 9).await, [NOW.plus(2), NOW]);
    assert_eq!(times(AuditFilter::Account(two), NOW, 9).await, [NOW.plus(1)]);
    assert_eq!(times(AuditFilter::Account(one), NOW.plus(1), 9).await, [NOW.plus(2)]);
    assert_eq!(times(AuditFilter::Account(one), NOW, 1).await, [NOW.plus(2)]);
    assert_eq!(times(AuditFilter::All, NOW, 9).await, [NOW, NOW.plus(2), NOW.plus(1), NOW]);
    let server = &store.audit_log(AuditFilter::All, NOW, 1).await.unwrap()[0];
    assert_eq!((server.action.code(), server.account.as_deref()), ("token.created", None));
}

async fn a_sign_in_is_logged_with_its_address_and_apart_from_changes(store: Store) {
    let (one, two) = (account(&store, "one").await, account(&store, "two").await);
    store.set_password(one, "hash".to_owned(), NOW, &session(NOW)).await.unwrap();
    for (hash, at, client) in [(1, 1, "203.0.113.7"), (2, 2, "2001:db8::7")] {
        let login = store.login("one").await.unwrap().unwrap();
        let (begins_at, client) = (NOW.plus(at), client.parse().unwrap());
        let session = NewSession { hash: [hash; 32], begins_at, ends_at: NOW.plus(9), client };
        assert!(store.begin_session(login.clone(), session, None).await.unwrap());
        let outdated = PasswordLogin { password: "another hash".to_owned(), ..login };
        let refused = NewSession { hash: [hash + 2; 32], ..session };
        assert!(!store.begin_session(outdated, refused, None).await.unwrap());
    }
    store.set_shop(one, &Shop::default(), &session(NOW.plus(3))).await.unwrap();
    let entries = async |filter| {
        let entries = store.audit_log(filter, NOW, 9).await.unwrap();
        entries.into_iter().map(|entry| (entry.action.code(), entry.subject)).collect::<Vec<_>>()
    };
    let [latest, first] = ["2001:db8::7", "203.0.113.7"]
        .map(|client| (AuditAction::SignedIn.code(), client.to_owned()));
    let [shop, password] = ["shop.set", "password.set"].map(|code| (code, String::new()));
    assert_eq!(entries(AuditFilter::SignIns(one)).await, [latest.clone(), first.clone()]);
    assert_eq!(entries(AuditFilter::Changes(one)).await, [shop.clone(), password.clone()]);
    assert_eq!(entries(AuditFilter::Account(one)).await, [shop, latest, first, password]);
    assert_eq!(entries(AuditFilter::SignIns(two)).await, []);
    let by = store.audit_log(AuditFilter::SignIns(one), NOW, 1).await.unwrap().remove(0);
    assert_eq!((by.actor, by.at), (Actor::Session, NOW.plus(2)));
}

async fn old_entries_are_purged(store: Store) {
    let one = account(&store, "one").await;
    for at in [NOW, NOW.plus(1), NOW.plus(2)] {
        store.set_shop(one, &Shop::default(), &session(at)).await.unwrap();
    }
    assert_eq!(store.purge_audit_log(NOW.plus(-1)).await.unwrap(), 0);
    assert_eq!(store.purge_audit_log(NOW.plus(1)).await.unwrap(), 2);
    assert_eq!(store.audit_log(AuditFilter::All, Millis(0), 9).await.unwrap()[0].at, NOW.plus(2));
}
