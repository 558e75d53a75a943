//! PostgreSQL's pool in a simulated world: many clients on few connections, each of which must not notice.
//!
//! | module | is |
//! |---|---|
//! | `scenario`, `plan` | what a seed draws, and what a client does |
//! | `sql`, `fields` | one session of PostgreSQL, as the server keeps it, and as each client expects it |
//! | `server` | the server, with all that goes wrong at its connections |
//! | `client`, `excuse` | a client that compares each answer; what the gate may answer instead |
//! | `arena` | all of them together |

mod arena;
mod client;
mod excuse;
mod fields;
mod plan;
mod scenario;
mod server;
mod sql;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::{Run, live_in_world};
use arena::Arena;
use scenario::Scenario;

/// Runs what `seed` draws.
pub fn simulate(seed: u64, traced: bool) -> Run {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let scenario = Scenario::draw(&mut random);
    live_in_world(seed, random.random(), traced, move |world| {
        let described = scenario.to_string();
        let server = arena::server(world, &scenario);
        let machine = arena::machine(world, &scenario, &server);
        let begin = move |world: &_| Arena::new(world, scenario, server);
        (machine, described, begin)
    })
}
