//! The pools in a simulated world: many clients on few connections, each of which must not notice.
//!
//! | module | is |
//! |---|---|
//! | `scenario` | what a seed draws |
//! | `server` | what goes wrong at the server, and what its connections do |
//! | `client`, `roster`, `excuse` | how a client ends; what it knows of others; what the gate may answer instead |
//! | `arena` | all of them together |
//! | `postgres`, `mysql` | a session of each protocol, its server, and clients that compare each answer |

mod arena;
mod client;
mod excuse;
mod mysql;
mod postgres;
mod roster;
mod scenario;
mod server;

use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use shortline_gate::Gate;
use shortline_gate::pool::PoolLimits;

use crate::network::End;
use crate::{Run, live_in_world};
use arena::{Arena, Door, Life};
use scenario::{Plan, Scenario};
use server::Server;

/// Runs what `seed` draws, with PostgreSQL's pool.
pub fn simulate_postgres(seed: u64, traced: bool) -> Run {
    simulate::<postgres::ClientPlan, _>(seed, traced, postgres::door, postgres::serve)
}

/// Runs what `seed` draws, with MySQL's pool.
pub fn simulate_mysql(seed: u64, traced: bool) -> Run {
    simulate::<mysql::ClientPlan, _>(seed, traced, mysql::door, mysql::serve)
}

fn simulate<P: Plan + Into<Life>, S: Future<Output = ()> + Send + 'static>(
    seed: u64,
    traced: bool,
    door: fn(PoolLimits, &Gate) -> Door,
    serve: fn(Arc<Server>, End) -> S,
) -> Run {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (scenario, clients) = Scenario::draw::<P>(&mut random);
    live_in_world(seed, random.random(), traced, move |world| {
        let described = scenario.to_string();
        let server = arena::server(world, &scenario);
        let machine = arena::machine(world, &scenario, &server, serve);
        let lives = clients.into_iter().map(P::into).collect();
        let begin = move |world: &_| Arena::new(world, scenario, server, door, lives);
        (machine, described, begin)
    })
}
