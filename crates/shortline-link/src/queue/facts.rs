//! What discovery goes by of the queue, and the connections that it watches.

use shortline_sched::uplink::Limit;

use super::Queue;
use crate::connections::ConnectionId;

/// Connections that discovery asks at one look: 64 system calls of half a microsecond in 10 ms. With fewer a link of
/// 100 Mbit/s has more responses in that time than are asked, and what is seen of them is late.
pub(crate) const SAMPLES_MAX: usize = 64;

/// What discovery goes by of the queue.
pub(crate) struct Facts {
    /// Wire bytes charged since the start.
    pub charged_bytes_total: u64,
    /// What keeps more from being sent.
    pub limited_by: Limit,
    /// Who had grants since the last look, and is not watched yet. Discovery holds them until [`Queue::let_go`].
    pub recent: Vec<ConnectionId>,
}

impl Queue {
    /// What discovery goes by; the list of recent connections begins anew.
    pub fn facts(&mut self) -> Facts {
        Facts {
            charged_bytes_total: self.charged_total,
            limited_by: self.limited_by(),
            recent: self.recent.as_mut().map(std::mem::take).unwrap_or_default(),
        }
    }

    /// Discovery watches these connections no more.
    pub fn let_go(&mut self, watched: Vec<ConnectionId>) {
        for id in watched {
            self.connections.of_mut(id).is_watched = false;
            self.connections.let_go(id);
        }
    }

    /// What keeps more from being sent now: work that waits for the pacer, connections that take no
    /// more, or nothing to send.
    fn limited_by(&self) -> Limit {
        if self.scheduler.waiting() > 0 {
            Limit::Pacing
        } else if self.blocked() > 0 {
            Limit::Network
        } else {
            Limit::Application
        }
    }
}
