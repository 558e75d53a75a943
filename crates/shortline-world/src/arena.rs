//! The server and its clients together, and what each saw of the other.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use shortline_link::Link;
use shortline_web::files::{CacheOptions, FileCache, Files, FilesOptions};
use shortline_web::proxy::UpstreamAddress;
use shortline_web::proxy::UpstreamOptions;
use shortline_web::proxy::routes::{Route, Routes};
use shortline_web::proxy::upstream::Upstream;
use shortline_web::server::Server;
use shortline_web::sites::Sites;
use shortline_web::{AccessLog, AccessRecord, Clients, Limits, Settings};

use crate::backend;
use crate::client;
use crate::folder::Folder;
use crate::machine::{Machine, Peers};
use crate::network::{Connection, End, Uplink, server_halves};
use crate::requests::{RequestState, Requests};
use crate::scenario::{CUT_FILE, ClientPlan, FILES, KEPT_BYTES_MAX, Manner, Scenario, What};
use crate::verdict::{Fault, Outcome};
use crate::world::World;
use crate::{Judged, Living, held_of};

const SECOND_NS: u64 = 1_000_000_000;
/// The server's own address. It is one for examples (RFC 5737), which no interface has.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// The limits on bytes of a connection to a backend: of a response that waits for its client, and of one read.
const BUFFER_BYTES_MAX: usize = 32 << 10;
const READ_BYTES_MAX: usize = 16 << 10;
/// How long a request may wait for a connection to a backend: less than a run goes on.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(300);

/// What a client may send on an HTTP/2 connection before the server gives it more room (RFC 9113, 6.9.2).
const FIRST_WINDOW_BYTES: u64 = 65_535;

/// The time limits. They are shorter than a server's, so that a run reaches all of them.
const LIMITS: Limits = Limits {
    connections_max: 1_000,
    connections_per_address_max: 1_000,
    header_bytes_max: 8_192,
    header_fields_max: 100,
    header_time_max: Duration::from_secs(4),
    idle_time_max: Duration::from_secs(300),
    stall_time_max: Duration::from_secs(20),
    streams_max: 128,
    disk_reads_max: 2,
    compressions_max: 64,
};

/// Everything; see the module's text.
pub struct Arena {
    /// Time.
    pub world: Arc<World>,
    scenario: Scenario,
    server: Arc<Server>,
    link: Arc<Link>,
    uplink: Arc<Uplink>,
    log: Arc<Log>,
    folder: Folder,
    upstreams: Mutex<Vec<Arc<Upstream>>>,
    /// What clients asked for and got.
    pub requests: Requests,
    /// Clients that are not finished.
    living: AtomicUsize,
}

/// The access log: how often each request ended, and how.
#[derive(Default)]
struct Log(Mutex<HashMap<u64, Vec<bool>>>);

impl AccessLog for Log {
    fn log(&self, record: AccessRecord) {
        let number = record.target.split_once('?');
        let number = number.and_then(|(_, number)| number.parse().ok());
        let mut ended = self.0.lock();
        ended
            .entry(number.unwrap_or(0))
            .or_default()
            .push(record.complete);
    }
}

impl Arena {
    /// The arena of a scenario, before anybody has come.
    pub fn new(world: &Arc<World>, scenario: Scenario) -> Arc<Self> {
        let folder = Folder::new().expect("a folder for the site's files");
        let link = Link::new(scenario.link.clone()).expect("a scenario's link is sound");
        link.watch_grants();
        let log: Arc<Log> = Arc::default();
        let (settings, upstream) = settings(&link, &folder, scenario.backend_connections_max);
        let server = Server::new(settings, Some(Arc::clone(&log) as Arc<dyn AccessLog>));
        Arc::new(Self {
            world: Arc::clone(world),
            uplink: Uplink::new(scenario.uplink_bps, scenario.uplink_queue_bytes),
            living: AtomicUsize::new(scenario.clients.len()),
            scenario,
            server,
            link,
            log,
            folder,
            upstreams: Mutex::new(vec![upstream]),
            requests: Requests::new(world),
        })
    }

    /// Opens a connection from a client to the server.
    pub async fn connect(self: &Arc<Self>, index: usize, plan: &ClientPlan) -> End {
        let uplink = Some(Arc::clone(&self.uplink));
        let connection = Connection::open(&self.world, index as u64, plan.path, uplink);
        self.world.sleep(plan.path.delay_ns).await;
        self.world.note(format_args!("client {index} is accepted"));
        let peer = IpAddr::V4(Ipv4Addr::new(198, 51, 100, plan.address));
        self.server.take(server_halves(&connection), peer, SERVER);
        self.world.sleep(plan.path.delay_ns).await;
        End::of_client(&connection)
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
            let connections_max = arena.scenario.backend_connections_max;
            let (settings, upstream) = settings(&arena.link, &arena.folder, connections_max);
            arena.upstreams.lock().push(upstream);
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
            arena.folder.cut().expect("a file of our own can be cut");
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

    fn judge_one(&self, asked: &RequestState) -> Judged {
        let (plan, what) = (&self.scenario.clients[asked.client], asked.ask.what);
        let whose = || {
            let target = what.target(asked.ask.number);
            format!("client {}, {target}", asked.client)
        };
        match &asked.outcome {
            Some(Outcome::Whole(200 | 206)) if what.breaks() => {
                Err(Fault::TakenForWhole { whose: whose() })
            }
            Some(Outcome::Whole(status)) if self.allows(plan, what, *status) => Ok(()),
            Some(Outcome::Whole(status)) => Err(Fault::Broken {
                whose: whose(),
                how: format!("status {status}"),
            }),
            Some(Outcome::Broken(how)) if !self.may_break(plan, what) => Err(Fault::Broken {
                whose: whose(),
                how: how.clone(),
            }),
            Some(Outcome::Broken(_) | Outcome::GivenUp) | None => Ok(()),
        }
    }

    /// Whether a complete response with this status is a valid answer to the request.
    fn allows(&self, plan: &ClientPlan, what: What, status: u16) -> bool {
        let crowded = self.scenario.link.jobs_max < 100 && status == 503;
        let fails = self.scenario.disk.failures > 0.0 && status == 500;
        crowded
            || fails
            || match what {
                What::File(_) | What::Head(_) => status == 200,
                What::Range(file, ..) => {
                    status == 206
                        || file == CUT_FILE && self.scenario.cut_ns.is_some() && status == 416
                }
                What::Nothing => status == 404,
                What::Relayed { upload_bytes, .. } => match status {
                    200 => true,
                    // A request with a body is not sent twice.
                    502 => upload_bytes > 0 || what.breaks(),
                    504 => what.breaks(),
                    408 => upload_bytes > 0 && self.may_wait_for_window(plan),
                    _ => false,
                },
            }
    }

    /// Whether something may prevent a complete response.
    fn may_break(&self, plan: &ClientPlan, what: What) -> bool {
        let scenario = &self.scenario;
        let takes = matches!(plan.manner, Manner::Honest | Manner::Slow { .. });
        // A reset of one response also loses what is in flight of those before it.
        let of_another = plan.pipelines
            && plan
                .asks
                .iter()
                .any(|other| other.what != what && self.may_break_by_itself(other.what));
        !takes || self.may_break_by_itself(what) || of_another || scenario.drain_ns.is_some()
    }

    fn may_break_by_itself(&self, what: What) -> bool {
        let scenario = &self.scenario;
        match what {
            What::File(file) | What::Range(file, ..) => {
                let cut = file == CUT_FILE && scenario.cut_ns.is_some();
                cut || FILES[file] > 0 && scenario.disk.failures > 0.0
            }
            What::Head(_) | What::Nothing => false,
            What::Relayed { upload_bytes, .. } => upload_bytes > 0 || what.breaks(),
        }
    }

    /// Whether an upload may be silent for too long although its client is honest: in HTTP/2 the news
    /// that there is room for more stands in the socket behind other responses, and the uplink and the
    /// client's path are busy for longer than the limit.
    fn may_wait_for_window(&self, plan: &ClientPlan) -> bool {
        let uploads = plan.asks.iter().map(|ask| match ask.what {
            What::Relayed { upload_bytes, .. } => upload_bytes,
            _ => 0,
        });
        let waits = plan.http2 && uploads.sum::<u64>() > FIRST_WINDOW_BYTES;
        let scenario = &self.scenario;
        let changed_bps = scenario.change.map_or(u64::MAX, |(_, rate_bps)| rate_bps);
        let uplink_bps = scenario.uplink_bps.min(changed_bps);
        let uplink_ns = self.uplink.sent_bytes() * 8 * SECOND_NS / uplink_bps;
        let backlog_ns = uplink_ns + plan.path.backlog_ns();
        let limit_ns = UpstreamOptions::default().upload_time_max.as_nanos() as u64;
        waits && backlog_ns >= limit_ns
    }

    /// Checks the access log against what clients saw.
    fn judge_log(&self) -> Judged {
        let (log, asked) = (self.log.0.lock(), self.requests.lock());
        for (number, asked) in asked.iter() {
            let ended = log.get(number).map_or(&[][..], Vec::as_slice);
            let whole = matches!(asked.outcome, Some(Outcome::Whole(_)));
            let right = match ended {
                [] => !whole,
                [complete] => *complete || !whole,
                _ => false,
            };
            if !right {
                return Err(Fault::Counted {
                    whose: format!("client {}, {:?}", asked.client, asked.ask.what),
                    times: ended.len(),
                });
            }
        }
        Ok(())
    }
}

impl Living for Arc<Arena> {
    const SERVED_NS_MAX: u64 = 400 * SECOND_NS;
    const GONE_NS_MAX: u64 = 400 * SECOND_NS;

    fn begin(&self) {
        let (link, server) = (Arc::clone(&self.link), Arc::clone(&self.server));
        tokio::spawn(async move { link.run().await });
        tokio::spawn(async move { server.keep_limits().await });
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
        // Of two backends, before and after the settings are exchanged.
        let connections_max = 2 * 2 * self.scenario.backend_connections_max;
        if self.buffered_bytes() > connections_max * (BUFFER_BYTES_MAX + READ_BYTES_MAX) {
            let what = format!("{} bytes of backends", self.buffered_bytes());
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
    let serving = Arc::clone(world);
    let serve = move |_, end| {
        tokio::spawn(backend::serve(Arc::clone(&serving), end));
    };
    let peers = Peers {
        serve: Box::new(serve),
        refusals: Box::new(backend::refusals),
    };
    Machine::new(world, scenario.disk, scenario.backend_path, peers)
}

fn settings(
    link: &Arc<Link>,
    folder: &Folder,
    backend_connections_max: usize,
) -> (Settings, Arc<Upstream>) {
    let options = FilesOptions {
        precompressed: false,
        ..FilesOptions::default()
    };
    let cache = CacheOptions {
        file_bytes_max: KEPT_BYTES_MAX,
        ..CacheOptions::default()
    };
    let backend = |host: &str, port| {
        let host = host.to_owned();
        UpstreamAddress::Tcp { host, port }.into()
    };
    let upstream = Upstream::open(UpstreamOptions {
        backends: vec![
            backend("sound", backend::SOUND_PORT),
            backend("flaky", backend::FLAKY_PORT),
        ],
        first_byte_time_max: Duration::from_secs(3),
        connect_time_max: CONNECT_TIME_MAX,
        connections_max: backend_connections_max,
        idle_connections_max: 2,
        buffer_bytes_max: BUFFER_BYTES_MAX,
        response_head_bytes_max: READ_BYTES_MAX,
        ..UpstreamOptions::default()
    });
    let upstream = upstream.expect("backends without TLS need nothing");
    let files = Files::open(folder.path(), options, &FileCache::new(&cache))
        .expect("a folder of our own can be served");
    let settings = Settings {
        sites: Sites::one(
            Some(files),
            Routes::new(vec![Route::new("/app".to_owned(), Arc::clone(&upstream))]),
        ),
        limits: LIMITS,
        clients: Clients::default(),
        link: Arc::clone(link),
        tells_request_id: false,
        sampling: None,
    };
    (settings, upstream)
}
