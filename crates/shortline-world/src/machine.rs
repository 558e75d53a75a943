//! The machine as the program uses it: time, alarms, connections to backends, threads that may
//! block, and a disk that is slow and may fail.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::Rng;
use shortline_base::alarm::Alarm;
use shortline_base::world::{Boxed, DiskRead, Stream};

use crate::network::{Connection, End, Path};
use crate::scenario::DiskPlan;
use crate::world::World;

/// The first number of a connection to a backend.
const FIRST_NUMBER: u64 = 10_000;

/// The machine.
pub struct Machine {
    world: Arc<World>,
    disk: DiskPlan,
    path: Path,
    peers: Arc<Peers>,
    connections: AtomicU64,
}

/// The peers that the program connects to, by port.
pub struct Peers {
    /// Starts to serve a connection, in its own task.
    pub serve: Box<dyn Fn(u16, End) + Send + Sync>,
    /// The share of connections that are refused.
    pub refusals: Box<dyn Fn(u16) -> f64 + Send + Sync>,
}

impl Machine {
    /// A machine with this disk, and this path to its peers.
    pub fn new(world: &Arc<World>, disk: DiskPlan, path: Path, peers: Peers) -> Self {
        Self {
            world: Arc::clone(world),
            disk,
            path,
            peers: Arc::new(peers),
            connections: AtomicU64::new(FIRST_NUMBER),
        }
    }
}

impl shortline_base::world::World for Machine {
    fn now_ns(&self) -> u64 {
        self.world.now_ns()
    }

    fn alarm(&self) -> Box<dyn Alarm> {
        self.world.alarm()
    }

    fn connect(&self, host: &str, port: u16) -> Boxed<io::Result<Box<dyn Stream>>> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        let world = Arc::clone(&self.world);
        let (path, peers) = (self.path, Arc::clone(&self.peers));
        world.note(format_args!("c{number} is opened to {host}:{port}"));
        let refuses = self.world.chance((self.peers.refusals)(port));
        Box::pin(async move {
            world.sleep(2 * path.delay_ns).await;
            if refuses {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
            let connection = Connection::open(&world, number, path, None);
            (peers.serve)(port, End::of_backend(&connection));
            let ours: Box<dyn Stream> = Box::new(End::of_client(&connection));
            Ok(ours)
        })
    }

    fn random(&self) -> u64 {
        self.world.draw(|random| random.random())
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send>) {
        let takes_ns = self
            .world
            .draw(|random| random.random_range(20_000..self.disk.wait_ns_max));
        self.world.note(format_args!("the disk is at work"));
        self.world.after(takes_ns, work);
    }

    fn disk_read(&self, may_wait: bool) -> DiskRead {
        if may_wait {
            return match self.world.chance(self.disk.failures) {
                true => DiskRead::Broken,
                false => DiskRead::There,
            };
        }
        match self.world.chance(self.disk.misses) {
            true => DiskRead::NotAtHand,
            false => DiskRead::There,
        }
    }
}
