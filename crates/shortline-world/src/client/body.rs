//! The body of a response: what its bytes should be, by the request and what its head says.

use std::io::Read;

use http::{HeaderMap, StatusCode};

use crate::backend::{self, Owner};
use crate::content::{Checked, Content};
use crate::folder;
use crate::scenario::{Answer, Ask, FILES, KeptKind, TEXTS, What};

/// What a response's head says, besides how long its body is.
#[derive(Clone, Debug, Default)]
pub struct HeadFields {
    /// Its status.
    pub status: u16,
    /// Its coding.
    pub coding: Option<String>,
    /// Its tag.
    pub tag: Option<String>,
    /// The site that it says it is of.
    pub site: Option<String>,
}

impl HeadFields {
    /// Those of a head of HTTP/2 or HTTP/3.
    pub fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let field = |name| {
            let value = headers.get(name)?.to_str().ok()?;
            Some(value.to_owned())
        };
        Self {
            status: status.as_u16(),
            coding: field("content-encoding"),
            tag: field("etag"),
            site: field("x-site"),
        }
    }
}

/// A body that is checked as it comes.
pub enum Body {
    /// Nothing is known of its bytes.
    Any,
    /// Its bytes are known.
    Plain(Checked),
    /// Its bytes are those of another in a coding.
    Coded {
        /// The coding.
        coding: String,
        /// What has come.
        bytes: Vec<u8>,
        /// What it stands for.
        of: Checked,
    },
}

impl Body {
    /// The body that a response with this head must have, for a request of the client `who` that was sent when what may be kept
    /// had the version `sent_at_version`.
    ///
    /// # Errors
    /// What is wrong with the head.
    pub fn of(
        ask: &Ask,
        who: u64,
        sent_at_version: u64,
        told: &HeadFields,
    ) -> Result<Self, String> {
        check_site(ask, told)?;
        let Some(checked) = expected(ask, who, sent_at_version, told)? else {
            return Ok(Self::Any);
        };
        let is_packed = matches!(
            ask.what,
            What::Relayed {
                answer: Answer::Packed,
                ..
            }
        );
        match &told.coding {
            None if is_packed && told.status == 200 => Err("its coding is lost".to_owned()),
            Some(coding) if is_packed => match &**coding {
                "gzip" => Ok(Self::Plain(checked)),
                _ => Err(format!("it is compressed twice: {coding}")),
            },
            None => Ok(Self::Plain(checked)),
            Some(coding) => {
                let taken = ask.codings.unwrap_or_default();
                if !taken.split(", ").any(|taken| taken == coding) {
                    return Err(format!("{coding} for {taken:?}"));
                }
                Ok(Self::Coded {
                    coding: coding.clone(),
                    bytes: Vec::new(),
                    of: checked,
                })
            }
        }
    }

    /// Checks the next bytes.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        match self {
            Self::Any => Ok(()),
            Self::Plain(checked) => checked.take(bytes),
            Self::Coded { bytes: all, .. } => {
                all.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// How many bytes are missing at its end.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn finish(self) -> Result<u64, String> {
        match self {
            Self::Any => Ok(0),
            Self::Plain(checked) => Ok(checked.missing()),
            Self::Coded {
                coding,
                bytes,
                mut of,
            } => {
                let text = decoded(&coding, &bytes);
                let text = text.map_err(|error| format!("{coding} that is none: {error}"))?;
                of.take(&text)?;
                Ok(of.missing())
            }
        }
    }
}

/// A response of the second site says so, and no other does. One that says that there is no room for it says nothing.
fn check_site(ask: &Ask, told: &HeadFields) -> Result<(), String> {
    let is_second = told.site.is_some();
    let is_meant = ask.host.is_second();
    let may_miss = ![200, 206, 404, 502, 504].contains(&told.status);
    match is_second == is_meant || is_meant && may_miss {
        true => Ok(()),
        false => Err(format!("a response of the site {:?}", told.site)),
    }
}

/// What a response's body should be. `None`: its bytes are not known.
fn expected(
    ask: &Ask,
    who: u64,
    sent_at_version: u64,
    told: &HeadFields,
) -> Result<Option<Checked>, String> {
    let file = |file: usize| folder::key(ask.host.is_second(), file);
    Ok(match (ask.what, told.status) {
        (What::File(at), 200) => Some(Checked::new(file(at), 0, FILES[at])),
        (What::Head(_), _) => Some(Checked::new(0, 0, 0)),
        (What::Range(at, first, last), 206) => Some(Checked::new(file(at), first, last + 1)),
        (What::Range(at, ..), 200) => Some(Checked::new(file(at), 0, FILES[at])),
        (What::Text(at), 200) => Some(Checked::of(folder::text(at), 0, TEXTS[at])),
        (What::Nothing, 404) if ask.host.is_second() => {
            let page = folder::PAGE_BYTES;
            Some(Checked::of(Content::Text(folder::PAGE_KEY), 0, page as u64))
        }
        (What::Relayed { bytes, behind, .. }, 200) => {
            Some(Checked::of(backend::relayed(behind, bytes), 0, bytes))
        }
        (What::Kept { bytes, kind, name }, 200) => {
            let version = version(told).ok_or("no version")?;
            let is_kept = !matches!(kind, KeptKind::Private | KeptKind::Cookie);
            if is_kept && version < sent_at_version {
                return Err(format!(
                    "version {version}, which was purged before it asked"
                ));
            }
            let owner = Owner {
                version,
                who,
                number: ask.number,
            };
            // Nobody can tell that one is missing if there is no length, but there is.
            Some(Checked::of(
                backend::kept(kind, name, bytes, owner),
                0,
                bytes,
            ))
        }
        _ => None,
    })
}

fn version(told: &HeadFields) -> Option<u64> {
    let tag = told.tag.as_ref()?.trim_matches('"');
    tag.strip_prefix('v')?.parse().ok()
}

fn decoded(coding: &str, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    match coding {
        "zstd" => zstd::stream::read::Decoder::new(bytes)?.read_to_end(&mut text),
        "br" => brotli::Decompressor::new(bytes, 4096).read_to_end(&mut text),
        "gzip" => flate2::read::GzDecoder::new(bytes).read_to_end(&mut text),
        other => Err(std::io::Error::other(format!("no coding {other}"))),
    }?;
    Ok(text)
}
