//! Accounts and keys while other servers start, and while PostgreSQL vacuums.

use parcelo_domain::{
    AdminTokenRecord, ApiKeyRecord,
    credentials::{AdminScope, ApiKeyScope},
    sample::TEST_AUTHOR,
};
use tokio::sync::oneshot;

use crate::postgres::test_util::cluster::{new_store, run_sql};
use crate::{
    postgres,
    tests::conformance::{NOW, SECRET, credential},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_later_start_creates_the_account_of_a_dead_server() {
    let Some((store, address)) = new_store().await else { return };
    assert!(store.claim_new().await.unwrap());
    assert!(!store.claim_new().await.unwrap(), "the first claim may still be in progress");
    let later = "UPDATE meta SET value = convert_to((now() - interval '61 s')::text, 'UTF8') \
         WHERE name = 'claimed'";
    run_sql(&address, later);
    assert!(store.claim_new().await.unwrap());
    assert!(!store.claim_new().await.unwrap(), "only one server takes the claim over");
    store.account("default", "acc_1".to_owned(), NOW).await.unwrap();
    run_sql(&address, later);
    assert!(!store.claim_new().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_and_ids_with_nul_match_nothing() {
    let Some((store, _)) = new_store().await else { return };
    assert_eq!(store.account_named("shop\0").await.unwrap(), None);
    assert!(store.login("shop\0").await.unwrap().is_none());
    let key: Option<ApiKeyRecord> = store.credential("key_\0").await.unwrap();
    assert!(key.is_none());
    assert!(
        store
            .revoke_credential::<ApiKeyScope>("key_\0", NOW, &TEST_AUTHOR)
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_created_during_a_vacuum_of_its_table() {
    let Some((store, address)) = new_store().await else { return };
    let other = postgres::Store::connect(address, SECRET, postgres::READERS).await.unwrap();
    let (locked, is_locked) = oneshot::channel();
    let (done, is_done) = oneshot::channel::<()>();
    let channels = std::sync::Mutex::new(Some((locked, is_done)));
    let vacuum = tokio::spawn(async move {
        let lock = async move |db: &postgres::connection::Connection| {
            // The lock that VACUUM and ANALYZE take.
            db.run("BEGIN; LOCK TABLE admin_tokens IN SHARE UPDATE EXCLUSIVE MODE").await?;
            let channels = channels.lock().unwrap().take();
            if let Some((locked, is_done)) = channels {
                locked.send(()).unwrap();
                let _done = is_done.await;
            }
            db.run("ROLLBACK").await
        };
        other.call_reader(lock).await
    });
    is_locked.await.unwrap();
    let new = credential("adm", 1, AdminScope);
    let created: AdminTokenRecord = store.insert_credential(new, &TEST_AUTHOR).await.unwrap();
    assert_eq!(created.id, "adm_1");
    done.send(()).unwrap();
    vacuum.await.unwrap().unwrap();
}
