//! What clients saw, against what they had to see.

use shortline_web::proxy::UpstreamOptions;

use super::{Arena, SECOND_NS, address, udp_address};
use crate::Judged;
use crate::requests::RequestState;
use crate::scenario::{
    Answer, Behind, CUT_FILE, CUT_TEXT, ClientPlan, FILES, Manner, Speaks, What,
};
use crate::verdict::{Fault, Outcome};

/// What a client may send on an HTTP/2 connection before the server gives it more room (RFC 9113, 6.9.2).
const FIRST_WINDOW_BYTES: u64 = 65_535;
/// The same of an HTTP/3 connection.
const FIRST_WINDOW_BYTES_HTTP3: u64 = 512 << 10;
/// QUIC doubles its wait with each datagram in a row that is lost. So many of them may outlast the server's patience.
const LOST_IN_ROW_MAX: u32 = 4;

impl Arena {
    pub(super) fn judge_one(&self, asked: &RequestState) -> Judged {
        let (plan, what) = (&self.scenario.clients[asked.client], asked.ask.what);
        let whose = || {
            let target = what.target(asked.ask.number);
            format!("client {}, {target}", asked.client)
        };
        match &asked.outcome {
            Some(Outcome::Whole(status)) if plan.is_nobodys() => Err(Fault::Broken {
                whose: whose(),
                how: format!("status {status} for nobody"),
            }),
            Some(Outcome::Whole(200 | 206)) if what.breaks() => {
                Err(Fault::TakenForWhole { whose: whose() })
            }
            Some(Outcome::Whole(status)) if self.allows(plan, what, *status) => Ok(()),
            Some(Outcome::Whole(status)) => Err(Fault::Broken {
                whose: whose(),
                how: format!("status {status}"),
            }),
            Some(Outcome::Broken(_)) if self.lost_much(asked.client) => Ok(()),
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
                What::File(_) | What::Head(_) | What::Text(_) => status == 200,
                What::Range(file, ..) => {
                    status == 206
                        || file == CUT_FILE && self.scenario.cut_ns.is_some() && status == 416
                }
                What::Nothing => status == 404,
                What::Relayed {
                    upload_bytes,
                    behind,
                    answer,
                    ..
                } => {
                    let refuses = behind == Behind::NotHttp2 || answer == Answer::Refuses;
                    match status {
                        200 => true,
                        // A request with a body is not sent twice.
                        502 => upload_bytes > 0 || refuses || self.may_break_by_itself(what),
                        503 => refuses,
                        504 => what.breaks(),
                        408 => upload_bytes > 0 && self.may_wait_for_window(plan),
                        _ => false,
                    }
                }
                What::Kept { .. } => status == 200 || status == 502 && what.breaks(),
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
        // The page that stands for an error is a file there.
        let has_pages = plan.asks.iter().any(|ask| ask.host.is_second());
        let of_page = has_pages && what.is_relayed() && scenario.disk.failures > 0.0;
        !takes
            || of_page
            || plan.is_nobodys()
            || self.may_break_by_itself(what)
            || of_another
            || scenario.drain_ns.is_some()
    }

    fn may_break_by_itself(&self, what: What) -> bool {
        let scenario = &self.scenario;
        match what {
            What::File(file) | What::Range(file, ..) => {
                let cut = file == CUT_FILE && scenario.cut_ns.is_some();
                cut || FILES[file] > 0 && scenario.disk.failures > 0.0
            }
            What::Text(text) => {
                let cut = text == CUT_TEXT && scenario.cut_ns.is_some();
                cut || scenario.disk.failures > 0.0
            }
            // The page that stands for it is in memory.
            What::Head(_) | What::Nothing => false,
            What::Relayed {
                upload_bytes,
                behind,
                ..
            } => {
                let with_others = behind == Behind::Http2 && scenario.ends_connections();
                upload_bytes > 0 || what.breaks() || with_others
            }
            What::Kept { .. } => what.breaks(),
        }
    }

    /// Whether so much was lost on the way to a client of HTTP/3 that its connection may have been given up.
    fn lost_much(&self, client: usize) -> bool {
        let own = udp_address(client, &self.scenario.clients[client]);
        self.datagrams.lost_in_row_max(own) > LOST_IN_ROW_MAX
    }

    /// Whether an upload may be silent for too long although its client is honest: in HTTP/2 the news
    /// that there is room for more stands in the socket behind other responses, and the uplink and the
    /// client's path are busy for longer than the limit.
    fn may_wait_for_window(&self, plan: &ClientPlan) -> bool {
        let uploads = plan.asks.iter().map(|ask| match ask.what {
            What::Relayed { upload_bytes, .. } => upload_bytes,
            _ => 0,
        });
        let uploads = uploads.sum::<u64>();
        let waits = match plan.speaks {
            Speaks::Http1 => false,
            Speaks::Http2 => uploads > FIRST_WINDOW_BYTES,
            // The news is not behind responses, but what it answers to may be lost.
            Speaks::Http3 => uploads > FIRST_WINDOW_BYTES_HTTP3,
        };
        let scenario = &self.scenario;
        let changed_bps = scenario.change.map_or(u64::MAX, |(_, rate_bps)| rate_bps);
        let uplink_bps = scenario.uplink_bps.min(changed_bps);
        let uplink_ns = self.uplink.sent_bytes() * 8 * SECOND_NS / uplink_bps;
        let backlog_ns = uplink_ns + plan.path.backlog_ns();
        let limit_ns = UpstreamOptions::default().upload_time_max.as_nanos() as u64;
        waits && backlog_ns >= limit_ns
    }

    /// Checks the access log against what clients saw.
    pub(super) fn judge_log(&self) -> Judged {
        let (log, asked) = (self.log.ended.lock(), self.requests.lock());
        for (number, asked) in asked.iter() {
            let whose = || format!("client {}, {:?}", asked.client, asked.ask.what);
            let ended = log.get(number).map_or(&[][..], Vec::as_slice);
            let whole = matches!(asked.outcome, Some(Outcome::Whole(_)));
            let right = match ended {
                [] => !whole,
                [(complete, _)] => *complete || !whole,
                _ => false,
            };
            if !right {
                let times = ended.len();
                return Err(Fault::Counted {
                    whose: whose(),
                    times,
                });
            }
            let client = address(&self.scenario.clients[asked.client]);
            if let Some((_, other)) = ended.iter().find(|(_, peer)| *peer != client) {
                return Err(Fault::Mistaken {
                    whose: whose(),
                    other: *other,
                });
            }
        }
        Ok(())
    }
}
