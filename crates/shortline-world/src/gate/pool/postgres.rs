//! PostgreSQL's pool in a simulated world.
//!
//! | module | is |
//! |---|---|
//! | `plan` | what a client does |
//! | `sql`, `fields` | one session of PostgreSQL, as the server keeps it, and as each client expects it |
//! | `server` | the server, with all that goes wrong at its connections |
//! | `client`, `failure` | a client that compares each answer; the errors that it is told |

mod client;
mod failure;
mod fields;
mod plan;
mod server;
mod sql;

use std::sync::Arc;

use shortline_gate::Gate;
use shortline_gate::classify::{Dialect, Protocol};
use shortline_gate::pool::PoolLimits;
use shortline_gate::postgres::pool::{Users, md5_of};
use shortline_gate::postgres::{Pool, PoolConfig, PostgresConfig, PostgresRelay};

use super::arena::{Door, Life, upstream};
use crate::gate::arena::classify;
use client::PASSWORD;
pub use plan::ClientPlan;
pub use server::serve;

/// A gate of PostgreSQL's with a pool.
pub fn door(limits: PoolLimits, gate: &Gate) -> Door {
    let mut config = PostgresConfig::new(upstream(), classify(Protocol::Sql(Dialect::Postgres)));
    let registry = Arc::clone(&config.relay.registry);
    let pool = PoolConfig {
        limits,
        users: Arc::new(users()),
        lookup: None,
        cluster: None,
    };
    let pool = Pool::new(pool, &config, gate);
    config.pool = Some(Arc::clone(&pool));
    let relay = PostgresRelay::new(config, gate.clone());
    let swept = Arc::clone(&pool);
    Door {
        serve: Box::new(move |theirs, peer| {
            let relay = relay.clone();
            Box::pin(async move { relay.serve(theirs.into(), peer).await })
        }),
        sweep: Box::pin(async move { swept.sweep().await }),
        pool,
        registry,
    }
}

/// The users, with the MD5 hashes of their passwords.
fn users() -> Users {
    let line = |user: &str| {
        let hash = md5_of(&[PASSWORD.as_bytes(), user.as_bytes()]);
        format!("\"{user}\" \"md5{hash}\"\n")
    };
    Users::parse(&["ann", "bob"].map(line).concat()).expect("the lines are right")
}

impl From<ClientPlan> for Life {
    fn from(plan: ClientPlan) -> Self {
        Self {
            described: format!("{} {:?} {:?}", plan.user, plan.startup, plan.path),
            live: Box::new(move |arena, index| Box::pin(client::live(arena, index, plan))),
        }
    }
}
