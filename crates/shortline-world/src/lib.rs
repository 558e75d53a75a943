//! The deterministic simulation: the server as it is shipped, its link and its proxy, with clients,
//! backends, a network and a disk that do not exist. It runs in one thread and in virtual time, and
//! everything is drawn from one seed. After FoundationDB's and TigerBeetle's.
//!
//! After each event it checks that all invariants hold ([`Fault`]). A seed that fails can be
//! repeated with one command, with a trace that a person can read.
//!
//! | module | is |
//! |---|---|
//! | `world` | virtual time and the events to come |
//! | `network` | connections, with loss, reordering, closed windows, resets |
//! | `scenario` | what a seed draws |
//! | `content` | the content of files and responses, so that no wrong byte goes unnoticed |
//! | `client` | clients of HTTP/1.1 and HTTP/2, honest and not |
//! | `backend` | application servers, sound and not |
//! | `machine` | the disk and the rest of the machine, as the program uses it |
//! | `gate` | the gate instead of the web server: its relays, a database and its clients |
//! | `many` | one seed after another, on several threads |
//! | `arena` | all of them together, and what each saw |

mod arena;
mod backend;
mod client;
mod content;
mod folder;
mod gate;
mod machine;
mod many;
mod network;
mod requests;
mod scenario;
mod verdict;
mod world;

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use arena::Arena;
use machine::Machine;
use scenario::Scenario;
use world::World;

pub use gate::simulate_gate;
pub use many::simulate_many;
pub use verdict::Fault;

/// The result of a seed.
#[derive(Debug)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// What was drawn from it, in one line.
    pub scenario: String,
    /// The first fault, and when it occurred, in nanoseconds.
    pub fault: Option<(u64, Fault)>,
    /// How many events were fired.
    pub events: u64,
    /// How long it took in the world, in nanoseconds.
    pub lasted_ns: u64,
    /// Responses that clients got whole.
    pub responses_whole: usize,
    /// Requests that clients made.
    pub requests: usize,
    /// The same for the same seed and the same program.
    pub digest: u64,
    /// What happened, if a trace was asked for.
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
/// No runtime or no folder for files can be created.
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

/// Whether all invariants held.
type Judged = Result<(), Fault>;

/// Everything that lives in a world.
trait Living: Send + Sync + 'static {
    /// A client not served by then is stuck.
    const SERVED_NS_MAX: u64;
    /// Nothing may be held this long after all clients have gone.
    const GONE_NS_MAX: u64;

    /// Starts everybody.
    fn begin(&self);

    /// Checks the invariants while all tasks are at rest.
    fn look(&self) -> Judged;

    /// Whether all clients have gone.
    fn is_served(&self) -> bool;

    /// What clients still wait for.
    fn waiting(&self) -> Vec<String>;

    /// What is still held for clients that have gone.
    fn left(&self) -> Vec<String>;

    /// Checks what clients saw against what they had to see.
    fn judge(&self) -> Judged;

    /// As [`Self::judge`], once nothing is held any more.
    fn judge_empty(&self) -> Judged;

    /// How many clients got what they asked for, and how many asked.
    fn counts(&self) -> (usize, usize);
}

/// Those of the things whose count is not 0.
fn held_of<const N: usize>(things: [(&str, usize); N]) -> Vec<String> {
    let held = things.into_iter().filter(|(_, count)| *count > 0);
    held.map(|(what, count)| format!("{count} {what}"))
        .collect()
}

/// Runs until all clients have gone and nothing is held.
async fn live<L: Living>(living: &L, world: &World) -> Judged {
    living.begin();
    let served = |now_ns| match living.is_served() {
        true => Some(Ok(())),
        false => (now_ns > L::SERVED_NS_MAX).then(|| {
            let clients = living.waiting();
            Err(Fault::Stuck { clients })
        }),
    };
    drive(living, world, served).await?;
    living.judge()?;
    let since_ns = world.now_ns();
    let empty = |now_ns| {
        let left = living.left();
        if left.is_empty() {
            return Some(Ok(()));
        }
        let what = left.join(", ");
        (now_ns - since_ns > L::GONE_NS_MAX).then_some(Err(Fault::Leaked { what }))
    };
    drive(living, world, empty).await?;
    living.judge_empty()
}

/// Lets time pass until an invariant fails, or `ends` has a result.
async fn drive<L: Living>(
    living: &L,
    world: &World,
    ends: impl Fn(u64) -> Option<Judged>,
) -> Judged {
    let look = || match world.fault().map_or_else(|| living.look(), Err) {
        Err(fault) => Some(Err(fault)),
        Ok(()) => ends(world.now_ns()),
    };
    world.drive(look).await
}

/// Runs what `begin` makes in a world of its own: the machine, a description, and what makes the
/// living in it.
fn live_in_world<L: Living, B: FnOnce(&Arc<World>) -> L + Send + 'static>(
    seed: u64,
    drawn: u64,
    traced: bool,
    begin: impl FnOnce(&Arc<World>) -> (Machine, String, B),
) -> Run {
    let (runtime, rest) = world::runtime();
    let random = ChaCha8Rng::seed_from_u64(drawn);
    let world = runtime.block_on(async { World::new(random, rest, traced) });
    let (machine, scenario, begin) = begin(&world);
    let ending = Arc::clone(&world);
    let life = shortline_base::world::enter(Rc::new(machine));
    let living = async move {
        let living = begin(&world);
        let judged = crate::live(&living, &world).await;
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
    // As a task, since a task that is woken while the runtime parks needs no trip to the operating
    // system.
    let run = runtime
        .block_on(async { tokio::spawn(living).await })
        .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
    // The remaining tasks still need the world.
    drop(runtime);
    drop(life);
    ending.end();
    run
}
