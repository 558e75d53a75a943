//! A relay to measure, without the command line around it:
//! `relay (postgres|mysql) LISTEN UPSTREAM [CAPACITY [THREADS]]`, where CAPACITY is `off` or a time.
//! Types are told as by default. It ends with the first line of its input.

use std::error::Error;
use std::sync::Arc;

use shortline_gate::classify::{Classifier, ClassifierConfig, Classify, Client, Dialect, Protocol};
use shortline_gate::mysql;
use shortline_gate::postgres::{self, PostgresConfig};
use shortline_gate::relay::{Limits, RelayConfig};
use shortline_gate::{Gate, GateConfig};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [kind, listen, upstream, rest @ ..] = arguments.as_slice() else {
        return Err("usage: relay (postgres|mysql) LISTEN UPSTREAM [CAPACITY [THREADS]]".into());
    };
    let mut config = GateConfig::default();
    if let [capacity, ..] = rest {
        config.admission.capacity = capacity.parse()?;
    }
    let mut limits = Limits::default();
    if let [_, threads] = rest {
        limits.workers = threads.parse()?;
    }
    let gate = Gate::new(config);
    let upstream = upstream.parse()?;
    let is_mysql = kind == "mysql";
    let dialect = if is_mysql {
        Dialect::MySql
    } else {
        Dialect::Postgres
    };
    let classifier = Classifier::new(&ClassifierConfig::new(Protocol::Sql(dialect)))?;
    let classify: Classify =
        Arc::new(move |text: &[u8], client: &Client<'_>| classifier.statement(text, client));
    let listener = TcpListener::bind(listen).await?;
    let end_of_input = async {
        let _ = tokio::io::stdin().read_u8().await;
    };
    if is_mysql {
        let mut config = RelayConfig::new(upstream, classify);
        config.limits = limits;
        mysql::run(listener, config, None, gate, end_of_input).await?;
    } else {
        let mut config = PostgresConfig::new(upstream, classify);
        config.relay.limits = limits;
        postgres::run(listener, config, gate, end_of_input).await?;
    }
    Ok(())
}
