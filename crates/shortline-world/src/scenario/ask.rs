//! The requests that a seed draws, and how a backend answers them.

use rand::Rng;
use rand::seq::IndexedRandom;
use rand_chacha::ChaCha8Rng;

use super::{FILES, FILES_OF_SECOND, Features, MS, TEXTS, UPLOAD_BYTES_MAX};

/// Names of responses that are kept: few, so that many ask for the same.
const KEPT_NAMES: u64 = 3;

/// One request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its number in the run.
    pub number: u64,
    /// What it asks for.
    pub what: What,
    /// Of which site.
    pub host: Host,
    /// The codings that it takes.
    pub codings: Option<&'static str>,
    /// How long the client waits before it asks, in nanoseconds.
    pub think_ns: u64,
}

/// The host that a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// A name that no site has: that without names answers.
    Default,
    /// The second site's.
    Second,
    /// Another name of the second site.
    BelowSecond,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A file, whole.
    File(usize),
    /// A file's head.
    Head(usize),
    /// The bytes `first..=last` of a file.
    Range(usize, u64, u64),
    /// A file that is a text.
    Text(usize),
    /// A path that does not exist.
    Nothing,
    /// A response from a backend.
    Relayed {
        /// Bytes of its body.
        bytes: u64,
        /// How the backend answers.
        answer: Answer,
        /// Bytes of the request's body.
        upload_bytes: u64,
        /// Which backend.
        behind: Behind,
    },
    /// A response from a backend that may be kept for others.
    Kept {
        /// Bytes of its body.
        bytes: u64,
        /// What the backend says of it.
        kind: KeptKind,
        /// Its name.
        name: u64,
    },
}

/// The backends of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// They speak HTTP/1.1.
    Http1,
    /// They speak HTTP/1.1, and send texts.
    Texts,
    /// They speak HTTP/2.
    Http2,
    /// They are said to speak HTTP/2, and do not.
    NotHttp2,
    /// They speak FastCGI.
    FastCgi,
}

/// How a backend answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// With a length.
    Length,
    /// In chunks, or in pieces whose sum the head does not tell.
    Chunks,
    /// Delimited by closing the connection.
    Close,
    /// With a length or in chunks, broken off halfway.
    BreaksOff {
        /// In chunks.
        chunks: bool,
        /// With a reset.
        resets: bool,
    },
    /// With a length, and then bytes that look like another response.
    TooMuch,
    /// As something that is compressed already.
    Packed,
    /// HTTP/2: with a length; halfway the stream is reset as if it had ended well.
    EndsWell,
    /// HTTP/2: whole, and the backend says goodbye (GOAWAY).
    SaysGoodbye,
    /// HTTP/2: the backend refuses the stream.
    Refuses,
    /// After a long silence.
    Late,
    /// Never.
    Never,
}

/// What a backend says of a response that may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptKind {
    /// All may have it, for two seconds.
    Public,
    /// The same, in chunks.
    Chunks,
    /// All may have it, for a second, and some more while it is fetched anew.
    Stale,
    /// It is for the client alone that asked.
    Private,
    /// It sets a cookie.
    Cookie,
    /// It depends on who asks.
    Varies,
    /// It is shorter than its length.
    Lies,
}

impl Host {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "h",
            Self::Second => "second.example",
            Self::BelowSecond => "www.second.example",
        }
    }

    /// Whether the second site has it.
    pub fn is_second(self) -> bool {
        self != Self::Default
    }
}

impl Behind {
    /// Its route.
    pub fn route(self) -> &'static str {
        match self {
            Self::Http1 => "/app",
            Self::Texts => "/texts",
            Self::Http2 => "/h2",
            Self::NotHttp2 => "/nh2",
            Self::FastCgi => "/php",
        }
    }
}

impl KeptKind {
    const ALL: [Self; 7] = [
        Self::Public,
        Self::Chunks,
        Self::Stale,
        Self::Private,
        Self::Cookie,
        Self::Varies,
        Self::Lies,
    ];

    /// Its name in a target.
    pub fn name(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Chunks => "public-in-chunks",
            Self::Stale => "stale",
            Self::Private => "private",
            Self::Cookie => "cookie",
            Self::Varies => "varies",
            Self::Lies => "lies",
        }
    }

    /// That of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl Answer {
    /// Its name in a target.
    pub fn name(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Chunks => "chunks",
            Self::Close => "close",
            Self::BreaksOff {
                chunks: false,
                resets: false,
            } => "ends-early",
            Self::BreaksOff {
                chunks: true,
                resets: false,
            } => "ends-early-in-chunks",
            Self::BreaksOff {
                chunks: false,
                resets: true,
            } => "resets",
            Self::BreaksOff {
                chunks: true,
                resets: true,
            } => "resets-in-chunks",
            Self::TooMuch => "too-much",
            Self::Packed => "packed",
            Self::EndsWell => "ends-well",
            Self::SaysGoodbye => "goodbye",
            Self::Refuses => "refuses",
            Self::Late => "late",
            Self::Never => "never",
        }
    }
}

impl What {
    /// The request's target. Those of responses that may be kept are the same for all who ask.
    pub fn target(self, number: u64) -> String {
        match self {
            Self::File(file) | Self::Head(file) | Self::Range(file, ..) => {
                format!("/f{file}?{number}")
            }
            Self::Text(text) => format!("/t{text}.txt?{number}"),
            Self::Nothing => format!("/nothing?{number}"),
            Self::Relayed {
                bytes,
                answer,
                behind,
                ..
            } => {
                let route = behind.route();
                format!("{route}/{bytes}/{}?{number}", answer.name())
            }
            Self::Kept { bytes, kind, name } => format!("/kept/{bytes}/{}/{name}", kind.name()),
        }
    }

    /// Whether the response cannot be complete.
    pub fn breaks(self) -> bool {
        match self {
            Self::Relayed { bytes, answer, .. } => match answer {
                Answer::Never => true,
                // If the head says that the body is empty, nothing is missing.
                Answer::BreaksOff { chunks, .. } => chunks || bytes > 0,
                Answer::EndsWell => bytes > 0,
                _ => false,
            },
            Self::Kept { kind, .. } => kind == KeptKind::Lies,
            _ => false,
        }
    }

    /// Whether a backend answers.
    pub fn is_relayed(self) -> bool {
        matches!(self, Self::Relayed { .. } | Self::Kept { .. })
    }

    /// Whether a whole connection of HTTP/2 ends with it, on which others may be.
    pub fn ends_connection(self) -> bool {
        matches!(
            self,
            Self::Relayed {
                answer: Answer::BreaksOff { resets: true, .. },
                behind: Behind::Http2,
                ..
            }
        )
    }
}

impl Ask {
    /// A request for a file.
    pub fn of_file(number: u64, file: usize) -> Self {
        Self {
            number,
            what: What::File(file),
            host: Host::Default,
            codings: None,
            think_ns: 0,
        }
    }

    /// Draws a request.
    pub fn draw(random: &mut ChaCha8Rng, number: &mut u64, features: Features) -> Self {
        *number += 1;
        let host = match random.random_range(0..4) {
            0 if features.sites => Host::Second,
            1 if features.sites => Host::BelowSecond,
            _ => Host::Default,
        };
        let files = if host.is_second() {
            FILES_OF_SECOND
        } else {
            FILES.len()
        };
        let what = what(random, features, files, host);
        let takes_codings = features.texts && random.random_bool(0.7);
        Self {
            number: *number,
            what,
            host,
            codings: takes_codings.then(|| {
                *["gzip", "br", "zstd", "gzip, deflate, br, zstd"]
                    .choose(random)
                    .expect("there are some")
            }),
            think_ns: match random.random_range(0..4) {
                0 => random.random_range(0..1500 * MS),
                _ => random.random_range(0..5 * MS),
            },
        }
    }
}

fn what(random: &mut ChaCha8Rng, features: Features, files: usize, host: Host) -> What {
    let file = random.random_range(0..files);
    let Features {
        http2,
        fastcgi,
        kept,
        texts,
        ..
    } = features;
    let more = [http2, fastcgi, kept, texts];
    let has_more = more.contains(&true);
    if has_more && random.random_bool(0.6) {
        let offered: Vec<usize> = (0..more.len()).filter(|at| more[*at]).collect();
        return match offered.choose(random) {
            Some(0) if random.random_bool(0.15) => relayed(random, Behind::NotHttp2),
            Some(0) => relayed(random, Behind::Http2),
            Some(1) => relayed(random, Behind::FastCgi),
            Some(2) => kept_response(random),
            _ if random.random_bool(0.5) && !host.is_second() => {
                What::Text(random.random_range(0..TEXTS.len()))
            }
            _ => relayed(random, Behind::Texts),
        };
    }
    match random.random_range(0..20) {
        0..9 => What::File(file),
        9 => What::Head(file),
        10 | 11 if FILES[file] > 1 => {
            let first = random.random_range(0..FILES[file] - 1);
            What::Range(file, first, random.random_range(first..FILES[file]))
        }
        12 => What::Nothing,
        _ => relayed(random, Behind::Http1),
    }
}

fn kept_response(random: &mut ChaCha8Rng) -> What {
    What::Kept {
        bytes: *[0, 700, 20_000, 120_000]
            .choose(random)
            .expect("there are some"),
        kind: *KeptKind::ALL.choose(random).expect("there are some"),
        name: random.random_range(0..KEPT_NAMES),
    }
}

fn relayed(random: &mut ChaCha8Rng, behind: Behind) -> What {
    let breaks_off = |random: &mut ChaCha8Rng, chunks| Answer::BreaksOff {
        chunks,
        resets: random.random_bool(0.5),
    };
    let answer = match (random.random_range(0..20), behind) {
        (0..5, _) => Answer::Length,
        (5..10, _) => Answer::Chunks,
        (10 | 11, Behind::Http2) => Answer::SaysGoodbye,
        (10 | 11, _) => Answer::Close,
        (12, _) => breaks_off(random, false),
        (13, _) => breaks_off(random, true),
        (14, _) => Answer::Late,
        (15, _) => Answer::Never,
        (16 | 17, Behind::Http2) => Answer::Refuses,
        (18, Behind::Http2) => Answer::EndsWell,
        (16 | 17, Behind::Http1) => Answer::TooMuch,
        (16..19, Behind::Texts) => Answer::Packed,
        _ => Answer::Length,
    };
    let bytes = match behind {
        // A text of a megabyte that becomes a kilobyte.
        Behind::Texts if random.random_bool(0.1) => BOMB_BYTES,
        _ => *[0, 1, 1000, 20_000, 120_000]
            .choose(random)
            .expect("there are some"),
    };
    // A head that says that nothing follows needs no end in HTTP/1.1. FastCGI always has one.
    let bytes = match behind {
        Behind::FastCgi | Behind::Http2 => bytes.max(1),
        _ => bytes,
    };
    What::Relayed {
        bytes,
        answer,
        upload_bytes: match random.random_range(0..4) {
            0 => random.random_range(1..UPLOAD_BYTES_MAX as u64),
            _ => 0,
        },
        behind,
    }
}

/// A body of this length is all the same byte.
pub const BOMB_BYTES: u64 = 1_000_000;
