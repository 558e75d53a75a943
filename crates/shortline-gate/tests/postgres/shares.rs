//! A client that used more than it was admitted for goes after others until that is repaid.

use shortline_gate::Outcome;
use tokio::sync::mpsc;

use crate::cluster::Cluster;
use crate::relay::{Relay, one_at_a_time, soon};

const SHORT: &str = "select pg_sleep(0.001), 1";

/// Waits for the gate with [`SHORT`], and says when it is through.
fn ask(client: tokio_postgres::Client, who: &'static str, through: &mpsc::Sender<&'static str>) {
    let through = through.clone();
    tokio::spawn(async move {
        client.batch_execute(SHORT).await.unwrap();
        through.send(who).await.unwrap();
    });
}

#[tokio::test]
async fn an_open_transaction_pays_with_the_next_of_its_user_even_over_a_new_connection() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut gate = one_at_a_time();
    gate.admission.estimates_fixed = true;
    let relay = Relay::start(cluster.port, gate, |_| {});
    let kept = serde_json::json!({
        "capacity_ns": null,
        "estimates": [{ "name": &SHORT[..24], "service_ns": 1_000_000, "requests": 8 }],
    });
    relay.gate.restore(&serde_json::from_value(kept).unwrap());
    for reconnects in [false, true] {
        let (through, mut order) = mpsc::channel(2);
        let mut debtor = relay.client_as("user=md5 password=secret").await;
        debtor.batch_execute("begin").await.unwrap();
        for _ in 0..4 {
            let statement = format!("{SHORT}, pg_sleep(0.5)");
            debtor.batch_execute(&statement).await.unwrap();
        }
        debtor.batch_execute("commit").await.unwrap();
        relay.until_at_rest().await;
        if reconnects {
            drop(debtor);
            relay.until_alone().await;
            debtor = relay.client_as("user=md5 password=secret").await;
        }
        let other = relay.client().await;
        let held = relay.gate.admit(relay.gate.type_of("held")).await.unwrap();
        ask(debtor, "debtor", &through);
        relay.until("one waits", |gate| gate.waiting == 1).await;
        ask(other, "other", &through);
        relay.until("two wait", |gate| gate.waiting == 2).await;
        held.finish(Outcome::Failed);
        let first = soon(order.recv()).await;
        assert_eq!(first, Some("other"), "reconnects: {reconnects}");
        assert_eq!(soon(order.recv()).await, Some("debtor"));
        relay.until_at_rest().await;
    }
}
