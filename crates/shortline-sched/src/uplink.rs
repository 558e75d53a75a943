//! The controller of `--uplink auto`, which finds the uplink's rate, without I/O or a clock.
//!
//! Every few milliseconds the link passes in what it saw ([`Observation`]). The [`Controller`]
//! returns a pacing rate, its confidence, and a state ([`Decision`]). The aim is that of Bundler
//! (Cangialosi et al., EuroSys 2021, arXiv 2011.01258, section 4): one rate for all
//! responses together, slightly held back by the queueing delay that they share. Then the queue of
//! a bottleneck anywhere on the way stands here instead, where it can be ordered.
//!
//! | part | what it does | source |
//! |---|---|---|
//! | `meter` | bytes, delay and what limited us over the last second and a half | BBR's rate samples (draft-ietf-ccwg-bbr, 4.1) |
//! | `delay` | the delay that all paths share, without what they vary by themselves | |
//! | `estimate` | what was delivered *while a queue stood* is the capacity; how well such measurements agree is the confidence | cake-autorate |
//! | `paced` | the rate follows the estimate, less what empties the queue in about two round trips; without a queue it grows, slowly first | Nimbus' delay control (Goyal et al., SIGCOMM 2022, 4.1) |
//! | `trial` | send less than the estimate: a queue of our own goes away as predicted, one that others fill does not | in the place of Nimbus' pulses and FFT (ibid. 3), see there |
//! | `sweep` | a little less now and then, so that no queue is taken for the ground | BBR's ProbeRTT |
//! | `local` | the bottleneck is our own interface and the kernel states its rate: nothing to search | |
//!
//! ```text
//!             a queue stood, its rate measured      measurements agree
//!  Starting ---------------------------------> Searching <---------> Confident
//!   |    ^                                      |     ^ a trial empties  |
//!   |    | no queue                             |     | the queue        |
//!   v    | at all                               v     |                  |
//!  Open  '----------------------------------- Yielding <-----------------'
//!                                                  a trial does not empty the queue
//!  any -> Blind: bytes are sent and nothing is known of any delay; back when it is
//!  any -> Local: the interface's own queue stands and its rate is stated
//! ```
//!
//! Starting, Open and Yielding do not hold back: the rate is the highest allowed, and each
//! connection's congestion control acts as behind a plain server. The exception is a
//! sweep now and then in Open, after losses while our own interface had no queue. A queue beyond it
//! that was full when every path was first seen shows in no other way.

mod config;
mod controller;
mod decision;
mod delay;
mod estimate;
mod local;
mod meter;
mod observation;
mod paced;
mod sweep;
mod trial;
mod yielding;

pub use config::UplinkConfig;
pub use controller::Controller;
pub use decision::{Decision, State};
pub use observation::{Limit, LocalQueue, Observation};
