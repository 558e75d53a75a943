//! The deterministic simulation: the server as it is shipped, its link and its proxy, with clients,
//! backends, a network and a disk that do not exist, in one thread and in virtual time, all of it
//! drawn from one seed. After FoundationDB's and TigerBeetle's.
//!
//! After each event it is looked whether everything holds ([`Fault`]); a seed that fails is one command
//! to repeat, with a trace that a person can read.
//!
//! | module | is |
//! |---|---|
//! | [`world`] | virtual time and what is to come |
//! | [`network`] | connections, with loss, reordering, closed windows, resets |
//! | `scenario` | what a seed draws |
//! | `content` | what every file and response consists of, so that no byte can be wrong unseen |
//! | `client` | clients of HTTP/1.1 and HTTP/2, honest and not |
//! | `backend` | application servers, sound and not |
//! | `machine` | the disk and the rest of the machine, as the program asks for it |
//! | `gate` | the gate instead of the web server: its relays, a database and its clients |
//! | `many` | one seed after another, on several threads |
//! | `arena` | all of them together, and what each saw |

mod arena;
mod backend;
mod client;
mod content;
mod gate;
mod machine;
mod many;
pub mod network;
mod scenario;
mod verdict;
pub mod world;

use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use arena::Arena;
use machine::Machine;
use scenario::Scenario;
use world::{Rest, World};

pub use gate::simulate_gate;
pub use many::simulate_many;
pub use verdict::Fault;

/// What came of a seed.
#[derive(Debug)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// What was drawn from it, in a line.
    pub scenario: String,
    /// What did not hold, and when, in nanoseconds.
    pub fault: Option<(u64, Fault)>,
    /// Events that were fired.
    pub events: u64,
    /// How long it took in the world, in nanoseconds.
    pub lasted_ns: u64,
    /// Responses that clients got whole, and all that were asked for.
    pub responses_whole: usize,
    /// All that were asked for.
    pub requests: usize,
    /// The same for the same seed and the same program.
    pub digest: u64,
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns / 1_000_000;
        match &self.fault {
            Some((at_ns, fault)) => {
                write!(
                    formatter,
                    "seed {}: {fault}, at {} ms",
                    self.seed,
                    ms(*at_ns)
                )?;
            }
            None => write!(
                formatter,
                "seed {}: all holds; {} of {} responses whole, {} events in {} ms",
                self.seed,
                self.responses_whole,
                self.requests,
                self.events,
                ms(self.lasted_ns)
            )?,
        }
        write!(formatter, " ({})", self.scenario)
    }
}

/// Runs what `seed` draws: the web server, its link and its proxy.
///
/// # Panics
/// If no runtime or no folder for files can be had.
#[must_use]
pub fn simulate(seed: u64, traced: bool) -> Run {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let scenario = Scenario::draw(&mut random);
    live_in_world(seed, random.random(), traced, move |world| {
        let described = scenario.to_string();
        let machine = arena::machine(world, &scenario);
        (machine, described, move |world: &Arc<World>| {
            Arena::new(world, scenario)
        })
    })
}

/// Whether everything held.
type Judged = Result<(), Fault>;

/// All that lives in a world.
trait Living: Send + 'static {
    /// Lets everybody live until all have gone.
    fn run(&self) -> impl Future<Output = Judged> + Send;

    /// How many got what they asked for, and how many asked.
    fn counts(&self) -> (usize, usize);
}

/// Lets what `begin` makes live in a world of its own: the machine, a description, and what makes the
/// living in it.
fn live_in_world<L: Living, B: FnOnce(&Arc<World>) -> L + Send + 'static>(
    seed: u64,
    drawn: u64,
    traced: bool,
    begin: impl FnOnce(&Arc<World>) -> (Machine, String, B),
) -> Run {
    let rest: Arc<Rest> = Arc::default();
    let parking = Arc::clone(&rest);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .on_thread_park(move || parking.reached())
        .build()
        .expect("a runtime of one thread needs nothing of the machine");
    let random = ChaCha8Rng::seed_from_u64(drawn);
    let world = runtime.block_on(async { World::new(random, rest, traced) });
    let (machine, scenario, begin) = begin(&world);
    let life = shortline_base::world::enter(Rc::new(machine));
    let live = async move {
        let living = begin(&world);
        let judged = living.run().await;
        let (responses_whole, requests) = living.counts();
        Run {
            seed,
            scenario,
            fault: judged.err().map(|fault| (world.now_ns(), fault)),
            events: world.fired(),
            lasted_ns: world.now_ns(),
            responses_whole,
            requests,
            digest: world.digest(),
            trace: world.take_trace(),
        }
    };
    // As a task, for a task that is woken while the runtime parks needs no trip to the operating system.
    let run = runtime
        .block_on(async { tokio::spawn(live).await })
        .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    // What is left of the tasks still needs the world.
    drop(runtime);
    drop(life);
    run
}
