//! A relay to measure, without the command line around it:
//! `postgres_relay LISTEN UPSTREAM [CAPACITY]`, where CAPACITY is `off` or a time.
//! All statements are of one type. It ends with the first line of its input.

use std::error::Error;
use std::sync::Arc;

use shortline_gate::classify::Client;
use shortline_gate::postgres::{PostgresConfig, run};
use shortline_gate::{Gate, GateConfig};
use tokio::io::AsyncReadExt;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [listen, upstream, rest @ ..] = arguments.as_slice() else {
        return Err("usage: postgres_relay LISTEN UPSTREAM [CAPACITY]".into());
    };
    let mut config = GateConfig::default();
    if let [capacity, ..] = rest {
        config.admission.capacity = capacity.parse()?;
    }
    let gate = Gate::new(config);
    let statement: Arc<str> = "statement".into();
    let classify = Arc::new(move |_: &[u8], _: &Client<'_>| Arc::clone(&statement));
    let config = PostgresConfig::new(upstream.parse()?, classify);
    let listener = tokio::net::TcpListener::bind(listen).await?;
    let end_of_input = async {
        let _ = tokio::io::stdin().read_u8().await;
    };
    run(listener, config, gate, end_of_input).await?;
    Ok(())
}
