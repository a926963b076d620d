//! The statements of a group of creates, sent bare over one connection: what PostgreSQL does of them with no
//! service around it, every statement of a group on its way at once, and nothing judged.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use parcelo_server::internals::CREATE_STATEMENTS;
use tokio_postgres::{Client, Statement, types::ToSql};

/// About what the service keeps of an order, and of its answer.
const ORDER: &str = r#"{"sender":{"fullName":"Ana Ruiz","phone":"+13055550100","address":{"line1":"8400 NW 25th St","city":"Miami","state":"FL","zipCode":"33122","country":"US"}},"receiver":{"fullName":"Luis Paredes","phone":"+593991234567","nationalId":"1714307103","idType":"cedula","address":{"line1":"Av. Amazonas N34-451","city":"Quito","province":"Pichincha","zipCode":"170515","country":"EC"}},"parcelDetails":{"weightKg":1.25,"declaredValue":45.50},"customsInfo":{"description":"Cotton shirts","hsCode":"610910"},"idempotencyKey":"0123456789abcdefghijkl"}"#;
const ANSWER: [u8; 400] = [b'a'; 400];
const TENANT: i64 = 999;

/// Creates groups of so many orders for a while; how many orders a second.
pub(crate) async fn rate(client: &Client, orders: usize, time: Duration) -> f64 {
    let mut statements = Vec::new();
    for sql in CREATE_STATEMENTS {
        statements.push(client.prepare(sql).await.unwrap());
    }
    let bare = Bare { client, statements };
    let (begun, mut made) = (Instant::now(), 0);
    while begun.elapsed() < time {
        bare.create(orders).await;
        made += orders;
    }
    made as f64 / begun.elapsed().as_secs_f64()
}

struct Bare<'c> {
    client: &'c Client,
    statements: Vec<Statement>,
}

impl Bare<'_> {
    async fn create(&self, orders: usize) {
        let mut keys = random(orders);
        keys.sort_unstable();
        let now = i64::try_from(
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis(),
        )
        .unwrap();
        let mut numbers: Vec<String> = (0..orders).map(|_| number(now / 1_000)).collect();
        numbers.sort_unstable();
        /// A column of the group, with the same in every row.
        macro_rules! all {
            ($value:expr) => {
                vec![$value; orders]
            };
        }
        let (tenants, nows, prints) = (all!(TENANT), all!(now), all!(vec![7_u8; 32]));
        let (bodies, lifetime) = (all!(ANSWER.to_vec()), 86_400_000_i64);
        let (environments, public_ids) = (all!(1_i16), random(orders));
        let (places, countries, days) = (all!("Quito, EC"), all!("EC"), all!(20_500));
        let (steps, dues, external) = (all!(Some(0_i16)), all!(Some(now)), all!(None::<&str>));
        let (texts, state) = (all!(ORDER), 2_i16);
        let (tenant, day) = (vec![TENANT], vec![now / 86_400_000]);
        let (one_state, one_country, total) = (vec![state], vec!["EC"], vec![orders as i64]);
        let given: [Vec<&(dyn ToSql + Sync)>; 3] = [
            vec![&keys, &tenants, &nows, &prints, &bodies, &lifetime],
            vec![
                &tenants,
                &environments,
                &numbers,
                &public_ids,
                &nows,
                &places,
                &places,
                &countries,
                &days,
                &steps,
                &dues,
                &external,
                &texts,
                &state,
            ],
            vec![&tenant, &day, &one_state, &one_country, &total],
        ];
        let begin = self.client.batch_execute("BEGIN");
        let all = self.statements.iter().zip(&given);
        let all = try_join_all(all.map(|(sql, given)| self.client.execute(sql, given)));
        let commit = self.client.batch_execute("COMMIT");
        let ((), written, ()) = tokio::try_join!(begin, all, commit).unwrap();
        assert_eq!(written, [orders as u64, orders as u64, 1]);
    }
}

fn random(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| fastrand::u128(..).to_be_bytes().to_vec()).collect()
}

/// A number as the service generates it: five characters are the second, eight are random.
fn number(second: i64) -> String {
    const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let letter = |bits: u64| char::from(CROCKFORD[(bits % 32) as usize]);
    let time = (0..5).rev().map(|place| letter(second.unsigned_abs() >> (5 * place)));
    let random = (0..8).map(|_| letter(fastrand::u64(..)));
    format!("SBEC{}", time.chain(random).collect::<String>())
}
