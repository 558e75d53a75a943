//! Asks each server of a cluster what it is, for ever: over a connection of the gate's own, which is kept between
//! two looks. Servers are asked each by a task, so that one that hangs delays no other.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::{Cluster, ClusterConfig, Said};
use crate::relay::Upstream;
use crate::relay::tls::UpstreamTls;

/// Between two looks there is at least so much time, however often somebody cannot reach the server.
const EVERY_MIN: Duration = Duration::from_millis(50);

/// How a server is asked.
pub(crate) trait Looks: Send + Sync + 'static {
    /// A connection of the gate's own.
    type Connection: Send;

    /// Opens one.
    fn connect(
        &self,
        server: &Upstream,
        time_max: Duration,
    ) -> impl Future<Output = Result<Self::Connection, String>> + Send;

    /// What the server is. After an error the connection is of no more use.
    fn ask(
        &self,
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<Said, String>> + Send;
}

/// Who asks the servers, by a protocol's login.
pub(crate) struct Asker<L> {
    pub tls: UpstreamTls,
    pub user: String,
    /// The user's login as the file of users has it now. `None` without a line that tells it.
    pub login: Box<dyn Fn() -> Option<L> + Send + Sync>,
}

/// Watches all servers of a cluster until it is dropped; ends at once where there is only one.
pub(crate) async fn watch<L: Looks>(cluster: Arc<Cluster>, looks: L) {
    let Some(config) = cluster.config.clone() else {
        return;
    };
    let (config, looks) = (Arc::new(config), Arc::new(looks));
    let mut tasks = JoinSet::new();
    for at in 0..cluster.servers.len() {
        let (cluster, config) = (Arc::clone(&cluster), Arc::clone(&config));
        tasks.spawn(watch_one(cluster, config, Arc::clone(&looks), at));
    }
    while tasks.join_next().await.is_some() {}
}

async fn watch_one<L: Looks>(
    cluster: Arc<Cluster>,
    config: Arc<ClusterConfig>,
    looks: Arc<L>,
    at: usize,
) {
    let mut connection = None;
    loop {
        let looking = look(&*looks, &cluster.servers[at], &config, &mut connection);
        let looked = timeout(config.answer_time_max, looking).await;
        let said = looked.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        if said.is_err() {
            connection = None;
        }
        cluster.note(at, said, Instant::now());
        let every = config.every.max(EVERY_MIN);
        sleep(EVERY_MIN).await;
        tokio::select! {
            () = sleep(every.saturating_sub(EVERY_MIN)) => {}
            () = cluster.hurry[at].notified() => {}
        }
    }
}

async fn look<L: Looks>(
    looks: &L,
    server: &Upstream,
    config: &ClusterConfig,
    connection: &mut Option<L::Connection>,
) -> Result<Said, String> {
    let connection = match connection {
        Some(connection) => connection,
        None => connection.insert(looks.connect(server, config.answer_time_max).await?),
    };
    looks.ask(connection).await
}
