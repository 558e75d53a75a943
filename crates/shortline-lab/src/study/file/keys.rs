//! The keys of a study's file, as written. The modules beside this one check them together.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use shortline_bookstore::{Interaction, Kind as Database, Locking, Statements};
use shortline_load::workload::LoadSchedule;
use shortline_sched::units::{Rate, Span};
use toml::Spanned;

use crate::study::adversary::Surface;
use crate::study::application::Door as HttpDoor;
use crate::study::claim::{Across, Plot};
use crate::study::environment::Environment;
use crate::study::point::{Files, Through};
use crate::study::shop::{Door, Load};
use crate::study::verdict::Better;
use shortline_testbed::bed::setup::{CongestionControl, SynTimeouts};
use shortline_testbed::server::Server;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StudyKeys {
    /// What it runs. By default an uplink.
    #[serde(default)]
    pub kind: KindName,
    /// The quantity in which the points differ, with its unit.
    pub axis: Option<Spanned<String>>,
    /// The servers, in turn.
    pub servers: Option<Spanned<Vec<Spanned<Text<Server>>>>>,
    /// How many seeds each server has a run with. By default one.
    pub seeds: Option<Spanned<u64>>,
    /// How an attacker reaches the server.
    pub surface: Option<Spanned<Surface>>,
    /// Who keeps conflicting interactions apart.
    pub locking: Option<Spanned<Locking>>,
    /// How the shop sends its statements.
    pub statements: Option<Spanned<Statements>>,
    /// The rows of a comparison. By default all.
    pub rows: Option<Spanned<Vec<Spanned<String>>>>,
    /// How many connections are idle. By default 10,000.
    pub connections: Option<Spanned<u32>>,
    /// What is before a web application, in turn.
    pub doors: Option<Spanned<Vec<Text<HttpDoor>>>>,
    /// The web application.
    pub application: Option<Spanned<ApplicationKeys>>,
    /// The keys that all points share.
    pub setup: Option<Spanned<PointKeys>>,
    /// The points, with the keys of each.
    #[serde(default)]
    pub point: Vec<Spanned<PointKeys>>,
    /// The databases, in turn.
    #[serde(default)]
    pub stage: Vec<Spanned<StageKeys>>,
    /// The steps of each database that has none of its own.
    #[serde(default)]
    pub step: Vec<Spanned<StepKeys>>,
    /// What is drawn and claimed.
    #[serde(default)]
    pub figure: Vec<Spanned<FigureKeys>>,
}

/// What a study runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KindName {
    /// Response times over a saturated uplink.
    #[default]
    Uplink,
    /// One client that attacks beside honest users.
    Adversary,
    /// Work per second of processor time.
    Throughput,
    /// The same beside other servers.
    Versus,
    /// Memory of idle connections.
    Memory,
    /// The bookstore before a database.
    Bookstore,
    /// A gate before a web application.
    Application,
}

/// Declares the keys of a point, all of them optional. The keys of `[setup]` replace those that a
/// point lacks.
macro_rules! point_keys {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty,)+) => {
        /// The keys of a point.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct PointKeys {
            $($(#[doc = $doc])+ pub $name: Option<Spanned<$type>>,)+
        }

        impl PointKeys {
            /// These keys, completed by those of `others`.
            pub fn or(self, others: &Self) -> Self {
                Self { $($name: self.$name.or_else(|| others.$name.clone()),)+ }
            }
        }
    };
}

point_keys! {
    /// The point's name. A single point may have the study's.
    label: String,
    /// Its place on the axis.
    x: f64,
    /// The files that are served.
    files: Files,
    /// Open loop: the load over time.
    schedule: Text<LoadSchedule>,
    /// Closed loop: the number of user equivalents.
    users: u32,
    /// What each of them asks for a second: there are as many of ours as ask for that.
    user_rate: Rate,
    /// The requests of a trace, at their times.
    trace: PathBuf,
    /// The load that the requests must offer at least.
    least_load: f64,
    /// How long requests arrive.
    time: Span,
    /// The only servers that are run at this point.
    only: Vec<Text<Server>>,
    /// The uplink's rate.
    rate: Rate,
    /// The name of an environment: networks, habits and system.
    environment: Text<Environment>,
    /// The round trip time of all clients.
    rtt: Span,
    /// The share of packets that is lost each way.
    loss: f64,
    /// The clients' networks, one by one.
    groups: Vec<GroupKeys>,
    /// How many requests a connection serves.
    requests_per_connection: u32,
    /// A few connections serve all requests.
    shared_connections: bool,
    /// The bytes that the link carries for a request besides its body and the heads of its packets.
    per_request_bytes: u32,
    /// Over TLS.
    tls: bool,
    /// Over HTTP/2.
    http2: bool,
    /// Over HTTP/3 (our server's alone), which has TLS always.
    http3: bool,
    /// On loopback, without a bed.
    loopback: bool,
    /// What our server's responses go through.
    through: Through,
    /// The number of writers of 001's server.
    writers: u32,
    /// The number of processes of the generator.
    generators: u32,
    /// How long the generator waits for requests under way after the last arrival.
    drain: Span,
    /// The longest packet.
    packet_bytes: u32,
    /// How long users wait before they give up.
    abort_after: Span,
    /// How often they try again.
    retries: u32,
    /// TCP's first timeout.
    initial_rto: Span,
    /// How timeouts of a SYN grow.
    syn_timeouts: SynTimeouts,
    /// Whether a full SYN queue is answered with cookies.
    syn_cookies: bool,
    /// Connections that may wait for the handshake's end.
    syn_queue: u32,
    /// Connections that may wait for `accept`.
    accept_queue: u32,
    /// Requests that Apache serves at once.
    workers: u32,
    /// The congestion control.
    congestion_control: CongestionControl,
    /// The uplink is narrow one hop away, behind a FIFO of this time.
    hop_queue: Span,
    /// Changes of the link's rate.
    steps: Vec<ChangeKeys>,
    /// Another server's downloads through the same queue.
    downloads: DownloadsKeys,
    /// A second server of the same kind behind the same uplink.
    twin: bool,
}

/// Clients in one network.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GroupKeys {
    /// Its name in results.
    pub name: String,
    /// The weight of their requests: the share is this weight over the sum of all groups'.
    #[serde(default = "whole")]
    pub share: f64,
    /// The round trip time.
    pub rtt: Option<Span>,
    /// The share of packets that is lost each way.
    pub loss: Option<f64>,
    /// The rate of the clients' own link, both ways.
    pub rate: Option<Rate>,
}

fn whole() -> f64 {
    1.0
}

/// A change of the link's rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChangeKeys {
    /// When the rate changes.
    pub at: Spanned<Span>,
    /// The new rate.
    pub rate: Rate,
}

/// Downloads from another server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DownloadsKeys {
    /// How many.
    pub number: Spanned<u32>,
    /// When they begin.
    pub from: Spanned<Span>,
    /// When they give up.
    pub to: Spanned<Span>,
}

/// A database, and the steps that are run on it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StageKeys {
    /// Which.
    pub database: Text<Database>,
    /// The factor of 002's times.
    pub factor: Spanned<f64>,
    /// The capacity that was found for it, as estimated service.
    pub capacity: Spanned<Span>,
    /// The length of a phase of the open loop.
    pub phase_interactions: Spanned<u32>,
    /// The shop's number of connections in the open loop.
    pub open_connections: Spanned<u32>,
    /// How many of them are used from the beginning. By default all.
    pub warm_connections: Option<Spanned<u32>>,
    /// The steps, in turn. By default the study's.
    #[serde(default)]
    pub step: Vec<Spanned<StepKeys>>,
}

/// A load, and the doors that it is run with.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StepKeys {
    /// Who comes.
    pub load: Text<Load>,
    /// The doors (what is before the database), in turn.
    pub doors: Spanned<Vec<Text<Door>>>,
    /// The length of its counted time, in multiples of the others'.
    pub times: Option<Spanned<u64>>,
    /// Whether it is run with each seed.
    #[serde(default)]
    pub repeated: bool,
}

/// A web application, and the load on it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ApplicationKeys {
    /// Requests that are served at once without slowing each other down.
    pub servers: Spanned<f64>,
    /// More inside than this cost throughput.
    pub knee: Spanned<f64>,
    /// The share that each costs.
    pub fall: Spanned<f64>,
    /// How long each load lasts.
    pub phase: Spanned<Span>,
    /// How long requests come.
    pub time: Spanned<Span>,
    /// The types of requests.
    #[serde(default, rename = "type")]
    pub types: Vec<Spanned<RequestTypeKeys>>,
}

/// A type of a web application's requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RequestTypeKeys {
    /// Its path.
    pub path: Spanned<String>,
    /// The mean work of one.
    pub service: Spanned<Span>,
    /// Its share of the requests, by weight.
    pub share: Spanned<f64>,
}

/// What is drawn and claimed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FigureKeys {
    /// The paper's figure or table.
    #[serde(default)]
    pub name: String,
    /// What it shows, in words, if it claims nothing of a paper.
    pub claim: Option<Spanned<String>>,
    /// What the paper claims, clause by clause.
    #[serde(default)]
    pub clause: Vec<Spanned<ClauseKeys>>,
    /// What it draws.
    pub shows: Option<Vec<Plot>>,
    /// Our own aims, in numbers.
    #[serde(default)]
    pub check: Vec<Spanned<CheckKeys>>,
}

/// A clause of a paper's claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClauseKeys {
    /// The prose.
    pub says: String,
    /// The same in numbers.
    #[serde(default)]
    pub check: Vec<Spanned<CheckKeys>>,
}

/// A claim in numbers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CheckKeys {
    /// What is compared.
    pub measure: Spanned<String>,
    /// The first server or door.
    pub of: Option<Spanned<String>>,
    /// The second server or door.
    pub over: Option<Spanned<String>>,
    /// The points, by the beginning of their labels; for a bookstore the load.
    pub at: Option<Spanned<String>>,
    /// The point at which the second server's run is taken.
    pub over_at: Option<Spanned<String>>,
    /// The group of clients whose requests count.
    pub group: Option<Spanned<String>>,
    /// The group that it is compared with.
    pub over_group: Option<Spanned<String>>,
    /// The percentiles of size between which requests count.
    pub sizes: Option<Spanned<(f64, f64)>>,
    /// The sizes of the files whose requests count, in bytes.
    pub bytes: Option<Spanned<(f64, f64)>>,
    /// The second that the measure is about.
    pub second: Option<Spanned<f64>>,
    /// The number of connections that the measure is about.
    pub connections: Option<Spanned<f64>>,
    /// How points are combined.
    pub across: Option<Spanned<Across>>,
    /// The only database that it is about.
    pub database: Option<Spanned<Text<Database>>>,
    /// The type of interaction that the measure is about.
    pub interaction: Option<Spanned<Text<Interaction>>>,
    /// The least value.
    pub at_least: Option<Spanned<f64>>,
    /// The greatest value.
    pub at_most: Option<Spanned<f64>>,
    /// The improvement in per cent that about comes out.
    pub percent_shorter: Option<Spanned<f64>>,
    /// The least and the greatest value.
    pub between: Option<Spanned<(f64, f64)>>,
    /// The value that about comes out.
    pub near: Option<Spanned<f64>>,
    /// How far from it, as a share.
    pub within: Option<Spanned<f64>>,
    /// The better side of a range.
    pub better: Option<Spanned<Better>>,
    /// The paper's finding, in its words. Without it the check is our own aim.
    pub paper: Option<String>,
}

/// A value that is written as text and parsed by its own type.
#[derive(Clone, Debug)]
pub struct Text<T>(pub T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}
