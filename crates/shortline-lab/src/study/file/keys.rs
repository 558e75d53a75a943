//! The keys of a study's file, as they are written; what they mean together is for the modules
//! beside this one.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use shortline_bookstore::{Interaction, Kind as Database, Locking, Statements};
use shortline_load::workload::LoadSchedule;
use shortline_sched::units::{Rate, Span};
use toml::Spanned;

use crate::study::adversary::Surface;
use crate::study::claim::{Across, Plot};
use crate::study::environment::Environment;
use crate::study::point::Files;
use crate::study::shop::{Door, Load};
use shortline_testbed::bed::setup::CongestionControl;
use shortline_testbed::server::Server;

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StudyKeys {
    /// What it runs; an uplink if not said.
    #[serde(default)]
    pub kind: KindName,
    /// What the points differ in, with the unit.
    pub axis: Option<Spanned<String>>,
    /// In turn.
    pub servers: Option<Spanned<Vec<Spanned<Text<Server>>>>>,
    /// What an attacker meets.
    pub surface: Option<Spanned<Surface>>,
    /// Who keeps conflicting interactions apart.
    pub locking: Option<Spanned<Locking>>,
    /// How the shop sends its statements.
    pub statements: Option<Spanned<Statements>>,
    /// What all points have.
    pub setup: Option<Spanned<PointKeys>>,
    /// The points, and what each has of its own.
    #[serde(default)]
    pub point: Vec<Spanned<PointKeys>>,
    /// The databases, in turn.
    #[serde(default)]
    pub stage: Vec<Spanned<StageKeys>>,
    /// What is run on each database that has no steps of its own.
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
    /// Memory of idle connections.
    Memory,
    /// The bookstore before a database.
    Bookstore,
}

/// Declares the keys of a point, all of which may be left out, and how those of a study's
/// `[setup]` stand in for a point's own.
macro_rules! point_keys {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ty,)+) => {
        /// The keys of a point.
        #[derive(Clone, Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct PointKeys {
            $($(#[doc = $doc])+ pub $name: Option<Spanned<$type>>,)+
        }

        impl PointKeys {
            /// These keys, and those of `others` that are not among them.
            pub fn or(self, others: &Self) -> Self {
                Self { $($name: self.$name.or_else(|| others.$name.clone()),)+ }
            }
        }
    };
}

point_keys! {
    /// The point's name; the study's if there is one point.
    label: String,
    /// Its place on the axis.
    x: f64,
    /// The files that are served.
    files: Files,
    /// Open loop: the load over time.
    schedule: Text<LoadSchedule>,
    /// Closed loop: so many user equivalents.
    users: u32,
    /// The requests of a trace, at their times.
    trace: PathBuf,
    /// How long requests arrive.
    time: Span,
    /// The uplink's rate.
    rate: Rate,
    /// Networks, habits and system by a name.
    environment: Text<Environment>,
    /// All clients are so far away.
    rtt: Span,
    /// The share of packets that is lost each way.
    loss: f64,
    /// The clients' networks, one by one.
    groups: Vec<GroupKeys>,
    /// How many requests a connection serves.
    requests_per_connection: u32,
    /// A few connections serve all requests.
    shared_connections: bool,
    /// What the link carries for a request beside its body and the heads of its packets.
    per_request_bytes: u32,
    /// Over TLS.
    tls: bool,
    /// Over HTTP/2.
    http2: bool,
    /// On loopback, without a bed.
    loopback: bool,
    /// Writers of 001's server.
    writers: u32,
    /// Processes of the generator.
    generators: u32,
    /// How long what is under way after the last arrival has.
    drain: Span,
    /// The longest packet.
    packet_bytes: u32,
    /// How long users wait before they give up.
    abort_after: Span,
    /// How often they try again.
    retries: u32,
    /// TCP's first timeout.
    initial_rto: Span,
    /// Whether a full SYN queue is answered with cookies.
    syn_cookies: bool,
    /// Connections that may wait for the handshake's end.
    syn_queue: u32,
    /// Connections that may wait for `accept`.
    accept_queue: u32,
    /// Requests that Apache serves at once.
    workers: u32,
    /// How TCP finds its rate.
    congestion_control: CongestionControl,
    /// The uplink is narrow one hop away, behind a FIFO of so much time.
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
    /// How many of the requests are theirs, as a share of all groups' sum.
    #[serde(default = "whole")]
    pub share: f64,
    /// There and back.
    pub rtt: Option<Span>,
    /// The share of packets that is lost each way.
    pub loss: Option<f64>,
    /// The rate of a link of their own, both ways.
    pub rate: Option<Rate>,
}

fn whole() -> f64 {
    1.0
}

/// The link has another rate from then on.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChangeKeys {
    /// When.
    pub at: Spanned<Span>,
    /// Which.
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

/// A database, and what is run on it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StageKeys {
    /// Which.
    pub database: Text<Database>,
    /// What 002's times are multiplied by.
    pub factor: Spanned<f64>,
    /// The capacity that was found for it, as estimated service.
    pub capacity: Spanned<Span>,
    /// How long a phase of the open loop is.
    pub phase_interactions: Spanned<u32>,
    /// How many connections the shop has in the open loop.
    pub open_connections: Spanned<u32>,
    /// In turn; the study's if there are none.
    #[serde(default)]
    pub step: Vec<Spanned<StepKeys>>,
}

/// Who comes, and what is before the database then.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StepKeys {
    /// Who comes.
    pub load: Text<Load>,
    /// What is before the database, in turn.
    pub doors: Spanned<Vec<Text<Door>>>,
    /// How many times as long it counts as others.
    pub times: Option<Spanned<u64>>,
    /// Whether it is run with each seed.
    #[serde(default)]
    pub repeated: bool,
}

/// What is drawn and claimed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FigureKeys {
    /// A paper's figure or table.
    #[serde(default)]
    pub name: String,
    /// What it claims, in words.
    pub claim: String,
    /// What it draws.
    pub shows: Option<Vec<Plot>>,
    /// What it claims, in numbers.
    #[serde(default)]
    pub check: Vec<Spanned<CheckKeys>>,
}

/// A claim in numbers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct CheckKeys {
    /// What is compared.
    pub measure: Spanned<String>,
    /// Of which server, or of what before a database.
    pub of: Option<Spanned<String>>,
    /// With which.
    pub over: Option<Spanned<String>>,
    /// At the points whose label begins so, or with which load of a bookstore.
    pub at: Option<Spanned<String>>,
    /// Of the requests of a group of clients.
    pub group: Option<Spanned<String>>,
    /// Over those of another group.
    pub over_group: Option<Spanned<String>>,
    /// How points are put together.
    pub across: Option<Spanned<Across>>,
    /// On one database only.
    pub database: Option<Spanned<Text<Database>>>,
    /// Which type of interaction the measure is of.
    pub interaction: Option<Spanned<Text<Interaction>>>,
    /// No smaller.
    pub at_least: Option<Spanned<f64>>,
    /// No larger.
    pub at_most: Option<Spanned<f64>>,
    /// Shorter by so many per cent, or more.
    pub percent_shorter: Option<Spanned<f64>>,
    /// What a paper found, in its words; without it the check is an aim of our own.
    pub paper: Option<String>,
}

/// A value that is written as text and read by its own parser.
#[derive(Clone, Debug)]
pub struct Text<T>(pub T);

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(serde::de::Error::custom)
    }
}
