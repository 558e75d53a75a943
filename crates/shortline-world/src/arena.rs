//! The server and its clients together, and what each saw of the other.

mod certificate;
mod judge;
mod settings;

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::HeaderName;
use parking_lot::Mutex;
use shortline_link::Link;
use shortline_web::http3::port::{Port, QuicListener};
use shortline_web::proxy::upstream::Upstream;
use shortline_web::proxy_header::Ends;
use shortline_web::server::Server;
use shortline_web::{AccessLog, AccessRecord, Fields};

use crate::backend::{self, Knowledge};
use crate::client;
use crate::machine::{Machine, Peers};
use crate::network::{Connection, Datagrams, End, Uplink, server_halves};
use crate::requests::Requests;
use crate::scenario::{Announced, ClientPlan, Scenario, Speaks, UPLOAD_BYTES_MAX};
use crate::verdict::{Fault, Outcome};
use crate::world::World;
use crate::{Judged, Living, held_of};
use settings::{Ground, KEPT_RESPONSE_BYTES_MAX, READ_BYTES_MAX};

const SECOND_NS: u64 = 1_000_000_000;
/// The server's own address. It is one for examples (RFC 5737), which no interface has.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// The port of HTTP/3.
pub const SERVER_PORT: SocketAddr = SocketAddr::new(SERVER, 443);
/// The address of the proxy that announces clients.
const PROXY: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9));

/// The most bytes that are held of one request: a response that is recorded, or a body whose length FastCGI must know before.
const BUFFERED_BYTES_MAX: usize = KEPT_RESPONSE_BYTES_MAX + UPLOAD_BYTES_MAX + READ_BYTES_MAX;

/// Everything; see the module's text.
pub struct Arena {
    /// Time.
    pub world: Arc<World>,
    scenario: Scenario,
    server: Arc<Server>,
    link: Arc<Link>,
    uplink: Arc<Uplink>,
    /// Those of HTTP/3.
    pub datagrams: Arc<Datagrams>,
    log: Arc<Log>,
    ground: Ground,
    upstreams: Mutex<Vec<Arc<Upstream>>>,
    /// What clients asked for and got.
    pub requests: Requests,
    /// Clients that are not finished.
    living: AtomicUsize,
}

/// The access log: how each request ended, as often as it did, and whose it was.
struct Log {
    fields: Fields,
    ended: Mutex<HashMap<u64, Vec<(bool, IpAddr)>>>,
}

impl Default for Log {
    fn default() -> Self {
        let fields = Fields {
            request: vec![HeaderName::from_static(backend::NUMBER_FIELD)],
            ..Fields::default()
        };
        Self {
            fields,
            ended: Mutex::default(),
        }
    }
}

impl AccessLog for Log {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn log(&self, record: AccessRecord) {
        let number = record.fields.request.into_iter().flatten().next();
        let number = number.and_then(|number| String::from_utf8(number).ok()?.parse().ok());
        let mut ended = self.ended.lock();
        ended
            .entry(number.unwrap_or(0))
            .or_default()
            .push((record.complete, record.peer));
    }
}

impl Arena {
    /// The arena of a scenario, before anybody has come.
    pub fn new(world: &Arc<World>, scenario: Scenario) -> Arc<Self> {
        let link = Link::new(scenario.link.clone()).expect("a scenario's link is sound");
        link.watch_grants();
        let log: Arc<Log> = Arc::default();
        let ground = Ground::new(Arc::clone(&link), scenario.backend_connections_max);
        let (settings, upstreams) = ground.settings();
        let knows = knowledge(&scenario);
        let server = Server::new(settings, Some(Arc::clone(&log) as Arc<dyn AccessLog>));
        let uplink = Uplink::new(scenario.uplink_bps, scenario.uplink_queue_bytes);
        Arc::new(Self {
            world: Arc::clone(world),
            datagrams: Datagrams::new(world, Arc::clone(&uplink), SERVER_PORT),
            uplink,
            living: AtomicUsize::new(scenario.clients.len()),
            scenario,
            server,
            link,
            log,
            ground,
            upstreams: Mutex::new(upstreams),
            requests: Requests::new(world, knows),
        })
    }

    /// Opens a connection from a client to the server.
    pub async fn connect(self: &Arc<Self>, index: usize, plan: &ClientPlan) -> End {
        let uplink = Some(Arc::clone(&self.uplink));
        let connection = Connection::open(&self.world, index as u64, plan.path, uplink);
        self.world.sleep(plan.path.delay_ns).await;
        self.world.note(format_args!("client {index} is accepted"));
        let halves = server_halves(&connection);
        match plan.announced {
            Announced::No => self.server.take(halves, address(plan), SERVER),
            Announced::By(_) | Announced::Wrongly | Announced::Halfway => {
                self.server.take_announced(halves, PROXY, SERVER);
            }
        }
        self.world.sleep(plan.path.delay_ns).await;
        End::of_client(&connection)
    }

    /// Lets clients of HTTP/3 in.
    fn open_port(&self) {
        let (endpoint, _) = self.datagrams.endpoint(SERVER_PORT, None);
        let listener = QuicListener::new(Port::of(endpoint, SERVER_PORT), &certificate::tls());
        let listener = listener.expect("its TLS can do 1.3");
        let server = Arc::clone(&self.server);
        tokio::spawn(async move { server.accept_quic(listener).await });
    }

    /// Schedules the events that affect everybody.
    fn schedule(self: &Arc<Self>) {
        let plan = &self.scenario;
        let happens = |at_ns: Option<u64>, what: fn(&Arc<Self>)| {
            if let Some(at_ns) = at_ns {
                let arena = Arc::clone(self);
                let run = async move {
                    arena.world.sleep(at_ns).await;
                    what(&arena);
                };
                tokio::spawn(run);
            }
        };
        happens(plan.reload_ns, |arena| {
            arena.world.note(format_args!("the settings are exchanged"));
            let (settings, upstreams) = arena.ground.settings();
            arena.upstreams.lock().extend(upstreams);
            arena.server.replace(settings);
        });
        happens(plan.change.map(|(at_ns, _)| at_ns), |arena| {
            if let Some((_, rate_bps)) = arena.scenario.change {
                arena
                    .world
                    .note(format_args!("the uplink has {rate_bps} bit/s"));
                arena.uplink.set_rate(rate_bps);
            }
        });
        happens(plan.cut_ns, |arena| {
            arena.world.note(format_args!("a file is cut short"));
            arena
                .ground
                .folder
                .cut()
                .expect("a file of our own can be cut");
        });
        happens(plan.purge_ns, |arena| {
            arena.world.note(format_args!("what is kept is purged"));
            // HTTP/3 has TLS.
            for scheme in ["http://", "https://"] {
                arena.ground.cache.purge(scheme, true);
            }
        });
        happens(plan.drain_ns, |arena| {
            arena
                .world
                .note(format_args!("the server is told to finish"));
            let arena = Arc::clone(arena);
            tokio::spawn(async move { arena.server.drain(Duration::from_secs(20)).await });
        });
    }

    fn buffered_bytes(&self) -> usize {
        let upstreams = self.upstreams.lock();
        let each = upstreams.iter();
        each.map(|upstream| upstream.buffered_bytes().load(Ordering::Relaxed))
            .sum()
    }
}

impl Living for Arc<Arena> {
    const SERVED_NS_MAX: u64 = 400 * SECOND_NS;
    const GONE_NS_MAX: u64 = 400 * SECOND_NS;

    fn begin(&self) {
        let (link, server) = (Arc::clone(&self.link), Arc::clone(&self.server));
        tokio::spawn(async move { link.run().await });
        tokio::spawn(async move { server.keep_limits().await });
        let mut plans = self.scenario.clients.iter();
        if plans.any(|plan| plan.speaks == Speaks::Http3) {
            self.open_port();
        }
        for (index, plan) in self.scenario.clients.iter().cloned().enumerate() {
            let arena = Arc::clone(self);
            self.world.note(format_args!(
                "client {index}: {:?}, {:?}",
                plan.manner, plan.path
            ));
            tokio::spawn(async move {
                client::live(Arc::clone(&arena), index, plan).await;
                arena.living.fetch_sub(1, Ordering::Relaxed);
            });
        }
        self.schedule();
    }

    fn look(&self) -> Judged {
        let buffered_bytes = self.buffered_bytes();
        if buffered_bytes > self.scenario.relayed() * BUFFERED_BYTES_MAX {
            let what = format!("{buffered_bytes} bytes of backends");
            return Err(Fault::Unbounded { what });
        }
        let kept = self.ground.cache.snapshot().bytes;
        if kept > self.ground.cache.options.bytes_max {
            let what = format!("{kept} bytes of responses that are kept");
            return Err(Fault::Unbounded { what });
        }
        self.link.audit().map_err(Fault::Link)
    }

    fn is_served(&self) -> bool {
        self.living.load(Ordering::Relaxed) == 0
    }

    fn waiting(&self) -> Vec<String> {
        let asked = self.requests.lock();
        let waits = asked.values().filter(|asked| asked.outcome.is_none());
        let mut waits: Vec<_> = waits.collect();
        waits.sort_by_key(|asked| asked.ask.number);
        let named = waits.into_iter();
        named
            .map(|asked| format!("client {}, {:?}", asked.client, asked.ask.what))
            .collect()
    }

    fn left(&self) -> Vec<String> {
        let server = self.server.snapshot();
        let link = self.link.snapshot();
        let (fetches, recorded_bytes) = self.ground.cache.under_way();
        let busy = server.backends.iter().map(|backend| {
            let used = backend.connections_open - backend.connections_idle;
            used.max(backend.outstanding)
        });
        held_of([
            ("connections", server.connections.open),
            ("jobs of the link", link.jobs),
            ("reads of the disk", server.disk_jobs),
            ("places at backends", busy.sum()),
            ("bytes of backends", self.buffered_bytes()),
            ("fetches for the cache", fetches),
            ("bytes that are recorded", recorded_bytes),
        ])
    }

    fn judge(&self) -> Judged {
        let asked = self.requests.lock();
        let mut asked: Vec<_> = asked.values().collect();
        asked.sort_by_key(|asked| asked.ask.number);
        asked
            .into_iter()
            .try_for_each(|asked| self.judge_one(asked))
    }

    fn judge_empty(&self) -> Judged {
        let passed_bytes = self.uplink.sent_bytes();
        self.world
            .note(format_args!("the uplink has passed {passed_bytes} bytes"));
        self.link.audit_empty().map_err(Fault::Link)?;
        self.judge_log()
    }

    fn counts(&self) -> (usize, usize) {
        let asked = self.requests.lock();
        let whole = asked.values();
        let whole = whole.filter(|asked| matches!(asked.outcome, Some(Outcome::Whole(_))));
        (whole.count(), asked.len())
    }
}

/// The machine of a scenario.
pub fn machine(world: &Arc<World>, scenario: &Scenario) -> Machine {
    let (serving, knows) = (Arc::clone(world), knowledge(scenario));
    let serve = move |port, end| {
        tokio::spawn(backend::serve(Arc::clone(&serving), knows, port, end));
    };
    let peers = Peers {
        serve: Box::new(serve),
        refusals: Box::new(backend::refusals),
    };
    Machine::new(world, scenario.disk, scenario.backend_path, peers)
}

fn knowledge(scenario: &Scenario) -> Knowledge {
    Knowledge {
        purge_ns: scenario.purge_ns,
    }
}

/// The address and port of a client of HTTP/3.
pub fn udp_address(index: usize, plan: &ClientPlan) -> SocketAddr {
    SocketAddr::new(address(plan), 40_000 + index as u16)
}

/// A client's address.
fn address(plan: &ClientPlan) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(198, 51, 100, plan.address))
}

/// The ends of a client's connection to the proxy that announces it.
pub fn announced_ends(plan: &ClientPlan) -> Ends {
    Ends {
        client: SocketAddr::new(address(plan), 50_000),
        proxy: SocketAddr::new(PROXY, 443),
    }
}
