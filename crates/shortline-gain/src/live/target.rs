//! A server of ours in this process: files on loopback, paced at a rate, in an order.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use shortline_link::{Link, LinkConfig, LinkMode};
use shortline_load::generator::Target;
use shortline_sched::units::Rate;
use shortline_web::files::{CacheOptions, FileCache, Files, FilesOptions};
use shortline_web::proxy::routes::Routes;
use shortline_web::server::{Listener, Server as WebServer, Socket};
use shortline_web::sites::Sites;
use shortline_web::{Clients, Limits, Settings};
use tokio::runtime::{Builder, Handle};

use super::{IN_FLIGHT_MAX, LiveError};
use crate::waits::Server;

/// It runs until it is dropped.
pub(super) struct Running {
    server: Arc<WebServer>,
    address: SocketAddr,
    /// The caller's runtime, which waits for the end.
    runtime: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Serves a folder. The link's alarm and the server have a thread with a runtime of their own, as in `serve`.
    pub(super) fn start(
        runtime: &Handle,
        server: Server,
        rate: Rate,
        root: &Path,
    ) -> Result<Self, LiveError> {
        let failed = |error: io::Error| LiveError::Server(error.to_string());
        let own = Builder::new_current_thread().enable_all().build();
        let own = own.map_err(failed)?;
        let inside = own.enter();
        let link = Link::new(LinkConfig {
            mode: LinkMode::Paced,
            rate: Some(rate),
            policy: server.policy(),
            schedule_loopback: true,
            ..LinkConfig::default()
        });
        let link = link.map_err(|error| LiveError::Server(error.to_string()))?;
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        link.prepare_listener(&socket).map_err(failed)?;
        let listener = Listener::new(Arc::new(Socket::from(socket)), None).map_err(failed)?;
        let web = WebServer::new(settings(root, Arc::clone(&link))?, None);
        web.listen(vec![listener]);
        drop(inside);
        let running = Arc::clone(&web);
        let serve = move || {
            own.block_on(async {
                tokio::select! {
                    _ = running.run() => {}
                    _ = link.run() => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("replay".to_owned());
        let thread = thread.spawn(serve).map_err(failed)?;
        Ok(Self {
            server: web,
            address,
            runtime: runtime.clone(),
            thread: Some(thread),
        })
    }

    /// Where to ask it.
    pub(super) fn target(&self) -> Target {
        let target = format!("http://{}", self.address).parse();
        target.expect("invariant: an address and a port are a target")
    }

    /// Bytes that its link has carried.
    pub(super) fn wire_bytes(&self) -> u64 {
        self.server.link_snapshot().wire_bytes_total
    }

    /// Bytes of body in a packet of its link.
    pub(super) fn quantum_bytes(&self) -> NonZeroU64 {
        let bytes = self.server.link_snapshot().quantum_bytes;
        NonZeroU64::new(bytes.into()).unwrap_or(NonZeroU64::MIN)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.runtime.block_on(self.server.drain(Duration::ZERO));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn settings(root: &Path, link: Arc<Link>) -> Result<Settings, LiveError> {
    let options = FilesOptions {
        precompressed: false,
        compress: false,
        ..FilesOptions::default()
    };
    let cache = FileCache::new(&CacheOptions::default());
    let files = Files::open(root, options, &cache).map_err(|error| LiveError::Files {
        why: error.to_string(),
    })?;
    Ok(Settings {
        sites: Sites::one(Some(files), Routes::default()),
        limits: Limits {
            connections_max: 2 * IN_FLIGHT_MAX,
            ..Limits::default()
        },
        clients: Clients::default(),
        link,
        tells_request_id: false,
        sampling: None,
    })
}
