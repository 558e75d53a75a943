//! A server under test in this process. It proxies everything to some backends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use shortline_link::{Link, LinkConfig, LinkMode};
use shortline_web::proxy::routes::{Route, Routes};
use shortline_web::proxy::upstream::Upstream;
use shortline_web::proxy::{BackendSnapshot, UpstreamOptions};
use shortline_web::server::{Listener, Server};
use shortline_web::sites::Sites;
use shortline_web::{Clients, Limits, Settings};
use tokio::runtime::Runtime;

use crate::client::wait_for;

/// A running server. It ends when the test drops it.
pub struct Front {
    runtime: Option<Runtime>,
    server: Arc<Server>,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Front {
    /// Sends everything to these backends.
    pub fn start(backends: &[SocketAddr]) -> Self {
        Self::with(backends, |_| ())
    }

    /// The same with other options.
    pub fn with(backends: &[SocketAddr], change: impl FnOnce(&mut UpstreamOptions)) -> Self {
        let mut options = UpstreamOptions {
            backends: backends
                .iter()
                .map(|address| address.to_string().parse().unwrap())
                .collect(),
            ..UpstreamOptions::default()
        };
        change(&mut options);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let inside = runtime.enter();
        let link = Link::new(LinkConfig {
            mode: LinkMode::Off,
            ..LinkConfig::default()
        });
        let route = Route::new("/".to_owned(), Upstream::open(options).unwrap());
        let settings = Settings {
            sites: Sites::one(None, Routes::new(vec![route])),
            limits: Limits::default(),
            clients: Clients::default(),
            link: link.unwrap(),
            tells_request_id: false,
            sampling: None,
        };
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let server = Server::new(settings, None);
        let running = Arc::clone(&server);
        runtime.spawn(async move {
            let listener = Listener::new(Arc::new(socket.into()), None).unwrap();
            running.listen(vec![listener]);
            running.run().await.unwrap();
        });
        drop(inside);
        Self {
            runtime: Some(runtime),
            server,
            address,
        }
    }

    /// Waits until no request is under way. A client may have its whole response before its
    /// connection is back in the pool.
    pub fn wait_until_idle(&self) {
        wait_for("the connections to be kept", || {
            let is_idle = |backend: &BackendSnapshot| {
                let idle = backend.connections_idle == backend.connections_open;
                idle && backend.outstanding == 0
            };
            self.backends().iter().all(is_idle).then_some(())
        });
    }

    /// The server's view of its first backend.
    pub fn backend(&self) -> BackendSnapshot {
        self.backends().remove(0)
    }

    /// The server's view of all of them.
    pub fn backends(&self) -> Vec<BackendSnapshot> {
        self.server.snapshot().backends
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(self.server.drain(Duration::ZERO));
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }
}
