//! The servers of a pool: the connections to each, and which of them a unit gets one of.
//!
//! Each server has connections of its own, up to the pool's size, and an admission of its own: what may run at
//! once is a matter of the server that it runs on, and the permit is one of its connections. The pool's gate is
//! that of the primary, whichever server that is, so what waits in it goes on with the next primary where it
//! stands. Beside it each server has a gate for what it is given as a replica.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::{Instant, sleep};

use super::connections::{AcquireError, Connections, Lending};
use super::{Backend, Counts, PoolLimits, ServerView};
use crate::Gate;
use crate::cluster::choice::Left;
use crate::cluster::{Cluster, ClusterConfig, Looks, ServerState, watch};
use crate::relay::{Order, Registry, Upstream};

/// All servers of a pool, in the order of the configuration.
#[derive(Debug)]
pub struct Nodes<B: Backend> {
    cluster: Arc<Cluster>,
    nodes: Box<[Node<B>]>,
    registry: Arc<Registry>,
}

/// One of them.
#[derive(Debug)]
pub struct Node<B: Backend> {
    /// Its connections.
    pub connections: Arc<Connections<B>>,
    /// Admits what it is given as a replica; None where there is only one server.
    reads: Option<Gate>,
    /// How many transactions it was given as a replica.
    given: AtomicU64,
}

/// A server as an operator sees it.
#[derive(Clone, Debug)]
pub struct NodeView {
    /// What is known of it.
    pub state: ServerState,
    /// Its connections.
    pub counts: Counts,
    /// Transactions that run there as on a replica.
    pub running: usize,
    /// Those that wait to.
    pub waiting: usize,
    /// The estimates of both, in nanoseconds.
    pub left_ns: u64,
    /// How many transactions it was given as a replica.
    pub given: u64,
}

impl<B: Backend> Nodes<B> {
    /// The servers of `config`, or the one at `upstream`. A backend opens connections to the server that it is
    /// told.
    pub fn new(
        config: Option<ClusterConfig>,
        upstream: Upstream,
        limits: &PoolLimits,
        gate: &Gate,
        registry: &Arc<Registry>,
        backend: impl Fn(Upstream) -> B,
    ) -> Self {
        let cluster = match config {
            Some(config) => Cluster::new(config),
            None => Cluster::of_one(upstream),
        };
        let ids = Arc::default();
        let is_one = cluster.config().is_none();
        let servers = cluster.servers().iter().enumerate();
        let nodes = servers.map(|(at, server)| Node {
            connections: Connections::new(backend(server.clone()), at, limits, &ids),
            reads: (!is_one).then(|| gate.beside()),
            given: AtomicU64::new(0),
        });
        Self {
            nodes: nodes.collect(),
            cluster,
            registry: Arc::clone(registry),
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Node<B>> {
        self.nodes.iter()
    }

    /// What is known of them.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Where the server of this number listens.
    pub fn upstream(&self, at: usize) -> &Upstream {
        &self.cluster.servers()[at]
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.nodes.len() > 1
    }

    /// The connections of the server of this number.
    pub fn connections(&self, at: usize) -> &Arc<Connections<B>> {
        &self.nodes[at].connections
    }

    /// The replica for a read, and what admits it there.
    pub fn replica(&self) -> Option<(usize, &Gate)> {
        let at = self.cluster.replica(|at| self.nodes[at].left())?;
        let node = &self.nodes[at];
        node.given.fetch_add(1, Ordering::Relaxed);
        node.reads.as_ref().map(|gate| (at, gate))
    }

    /// Whether another server than this one is the primary.
    pub fn is_left(&self, at: usize) -> bool {
        let primary = self.cluster.primary();
        primary.is_some_and(|primary| primary != at)
    }

    /// One of a replica's that is idle, or of the primary's, if there is one.
    pub fn try_take(&self, replica: Option<usize>, kind: &Arc<B::Kind>) -> Option<Lending<B>> {
        let at = replica.or_else(|| self.cluster.primary())?;
        self.connections(at).try_take(kind)
    }

    /// A connection to this replica, or to the primary, as soon as there is one.
    ///
    /// # Errors
    /// [`AcquireError`]
    pub async fn acquire(
        self: Arc<Self>,
        replica: Option<usize>,
        kind: Arc<B::Kind>,
        login: B::Login,
    ) -> Result<Lending<B>, AcquireError<B::Refusal>> {
        let Some(at) = replica else {
            return self.acquire_primary(kind, login).await;
        };
        let acquired = Arc::clone(self.connections(at)).acquire(kind, login).await;
        if acquired.is_err() {
            self.cluster.doubt(at);
        }
        acquired
    }

    /// A connection to be asked something that every server knows: to a replica while no primary is known.
    ///
    /// # Errors
    /// [`AcquireError`]
    pub async fn acquire_any(
        self: Arc<Self>,
        kind: Arc<B::Kind>,
        login: B::Login,
    ) -> Result<Lending<B>, AcquireError<B::Refusal>> {
        let has_primary = self.cluster.primary().is_some();
        let replica = match has_primary {
            true => None,
            false => self.replica().map(|(at, _)| at),
        };
        self.acquire(replica, kind, login).await
    }

    /// Where one server dies that is of the next primary.
    async fn acquire_primary(
        &self,
        kind: Arc<B::Kind>,
        login: B::Login,
    ) -> Result<Lending<B>, AcquireError<B::Refusal>> {
        let Some(config) = self.cluster.config() else {
            let connections = Arc::clone(self.connections(0));
            return connections.acquire(kind, login).await;
        };
        let until = Instant::now() + config.primary_wait_max;
        loop {
            let known = self.cluster.primary_in_time().await;
            let at = known.map_err(AcquireError::NoPrimary)?;
            let connections = Arc::clone(self.connections(at));
            match connections.acquire(kind.clone(), login.clone()).await {
                Err(AcquireError::Login(error))
                    if B::is_unreachable(&error) && Instant::now() < until =>
                {
                    self.cluster.doubt(at);
                    self.until_elsewhere(at, config).await;
                }
                acquired => return acquired,
            }
        }
    }

    /// Waits until the primary is not this one any more, or a look long.
    async fn until_elsewhere(&self, at: usize, config: &ClusterConfig) {
        let mut changes = self.cluster.changes();
        tokio::select! {
            _ = changes.wait_for(|primary| *primary != Some(at)) => {}
            () = sleep(config.every) => {}
        }
    }

    /// Asks the servers what they are, for ever, and follows what they say.
    pub(crate) async fn watch<L: Looks>(&self, looks: L) {
        let watching = watch(Arc::clone(&self.cluster), looks);
        let following = self.follow();
        tokio::join!(watching, following);
    }

    /// When the primary is another: the connections to the last one are closed, and what runs on it, if it is
    /// not there or still takes writes that would be lost.
    async fn follow(&self) {
        let mut changes = self.cluster.changes();
        let mut last = None;
        while changes.changed().await.is_ok() {
            let Some(primary) = *changes.borrow_and_update() else {
                continue;
            };
            if let Some(last) = last.replace(primary).filter(|last| *last != primary) {
                self.leave(last);
            }
        }
    }

    fn leave(&self, at: usize) {
        let connections = self.connections(at);
        connections.close(None);
        if self.cluster.states()[at].role_name() == "replica" {
            return;
        }
        let lent = connections.servers().views();
        for client in lent.into_iter().filter_map(|server| server.client) {
            self.registry.give(client, Order::Close);
        }
    }

    /// All servers, if there are several.
    pub fn views(&self) -> Vec<NodeView> {
        if !self.are_several() {
            return Vec::new();
        }
        let states = self.cluster.states().into_iter().zip(&self.nodes);
        states.map(|(state, node)| node.view(state)).collect()
    }

    /// All connections as they are now.
    pub fn servers(&self) -> Vec<ServerView> {
        let mut all = Vec::new();
        for (node, server) in self.nodes.iter().zip(self.cluster.servers()) {
            let mut views = node.connections.servers().views();
            if self.are_several() {
                let address: Arc<str> = server.to_string().into();
                for view in &mut views {
                    view.address = Some(Arc::clone(&address));
                }
            }
            all.extend(views);
        }
        all
    }

    /// How many there are at all servers together.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for counts in self.iter().map(|node| node.connections.counts()) {
            sum.total += counts.total;
            sum.idle += counts.idle;
            sum.waiting += counts.waiting;
            sum.opening += counts.opening;
        }
        sum
    }
}

impl<B: Backend> Node<B> {
    /// It may have so many connections from now on.
    pub fn resize(&self, size: NonZeroUsize) {
        self.connections.resize(size.get());
        if let Some(gate) = &self.reads {
            gate.set_running_max(size);
        }
    }

    fn left(&self) -> Left {
        Left {
            work_ns: self.reads.as_ref().map_or(0, Gate::left_ns),
            given: self.given.load(Ordering::Relaxed),
        }
    }

    fn view(&self, state: ServerState) -> NodeView {
        let reads = self.reads.as_ref();
        NodeView {
            state,
            counts: self.connections.counts(),
            running: reads.map_or(0, Gate::running),
            waiting: reads.map_or(0, Gate::waiting),
            left_ns: self.left().work_ns,
            given: self.given.load(Ordering::Relaxed),
        }
    }
}
