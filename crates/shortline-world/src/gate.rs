//! The gate in a simulated world: the relays of PostgreSQL and MySQL, with clients, a database and
//! a network drawn from one seed.
//!
//! | module | is |
//! |---|---|
//! | `scenario` | what a seed draws |
//! | `database` | the database behind it: who runs what, and what is to stop |
//! | `postgres`, `mysql` | the protocols, from both ends |
//! | `client` | what a client does, and what it must see |
//! | `arena` | all of them together |
//! | `pool` | the same for the pools |

mod answer;
mod arena;
mod client;
mod database;
mod mysql;
mod pool;
mod postgres;
mod scenario;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Run, live_in_world};
use arena::Arena;
use database::Database;
use scenario::Scenario;

/// Runs what `seed` draws: of an odd seed a pool, PostgreSQL's if it is 1 mod 4 and MySQL's if it is 3, of an even one
/// a gate whose clients have connections of their own.
///
/// # Panics
/// No runtime can be created.
#[must_use]
pub fn simulate_gate(seed: u64, traced: bool) -> Run {
    match seed % 4 {
        1 => return pool::simulate_postgres(seed, traced),
        3 => return pool::simulate_mysql(seed, traced),
        _ => {}
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let scenario = Scenario::draw(&mut random);
    live_in_world(seed, random.random(), traced, move |world| {
        let described = scenario.to_string();
        let database = Database::new(world, scenario.kills);
        let machine = arena::machine(world, &scenario, &database);
        let begin = move |world: &_| Arena::new(world, scenario, database);
        (machine, described, begin)
    })
}
