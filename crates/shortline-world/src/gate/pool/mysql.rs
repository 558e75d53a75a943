//! MySQL's pool in a simulated world, in front of what behaves as MariaDB 10.11 does.
//!
//! | module | is |
//! |---|---|
//! | `plan`, `texts` | what a client does, and its statements |
//! | `sql`, `statements`, `words` | one session of MariaDB, as the server keeps it, and as each client expects it |
//! | `variables`, `transaction`, `track` | what it has, and what it reports of that |
//! | `packets`, `command` | the protocol |
//! | `server` | the server, with all that goes wrong at its connections |
//! | `client`, `failure` | a client that compares each answer; the errors that it is told |
//! | `killer` | who ends others' statements and sessions |

mod client;
mod command;
mod failure;
mod killer;
mod packets;
mod plan;
mod server;
mod sql;
mod statements;
mod texts;
mod track;
mod transaction;
mod variables;
mod words;

use std::sync::Arc;

use shortline_gate::Gate;
use shortline_gate::classify::{Dialect, Protocol};
use shortline_gate::mysql::pool::Users;
use shortline_gate::mysql::{MysqlRelay, Pool, PoolConfig};
use shortline_gate::pool::PoolLimits;
use shortline_gate::relay::RelayConfig;

use super::arena::{Door, Life, upstream};
use crate::gate::arena::classify;
pub use plan::ClientPlan;
pub use server::serve;

/// The password of every user.
const PASSWORD: &str = "secret";
/// One user with a password, and one with its hash.
const USERS: &str = "\"ann\" \"secret\"\n\"bob\" \"*14E65567ABDB5135D0CFD9A70B3032C179A49EE7\"";

/// A gate of MySQL's with a pool.
pub fn door(limits: PoolLimits, gate: &Gate) -> Door {
    let config = RelayConfig::new(upstream(), classify(Protocol::Sql(Dialect::MySql)));
    let registry = Arc::clone(&config.registry);
    let pool = PoolConfig {
        limits,
        users: Arc::new(Users::parse(USERS).expect("the lines are right")),
        cluster: None,
    };
    let pool = Pool::new(pool, &config, gate);
    let relay = MysqlRelay::new(config, Some(Arc::clone(&pool)), gate.clone());
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

impl From<ClientPlan> for Life {
    fn from(plan: ClientPlan) -> Self {
        Self {
            described: plan.to_string(),
            live: Box::new(move |arena, index| Box::pin(client::live(arena, index, plan))),
        }
    }
}
