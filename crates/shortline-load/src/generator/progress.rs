//! The progress of a run, live on standard error: a bar on a terminal, a line every five seconds
//! elsewhere. Either fits into 80 columns and shows time, requests sent, done and in flight, and
//! the mean response time of the requests that ended in the last second.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use shortline_table::time;

use super::visit::Shared;

const TICK: Duration = Duration::from_millis(250);
const TICKS_PER_SECOND: usize = 4;
const TICKS_PER_LINE: usize = 20;

/// Counters of a run.
#[derive(Default)]
pub(super) struct Progress {
    sent: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    /// Sum of the response times of finished requests, in microseconds.
    time_us: AtomicU64,
}

impl Progress {
    pub(super) fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn done(&self, response_time_s: f64, ok: bool) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.failed.fetch_add(u64::from(!ok), Ordering::Relaxed);
        self.time_us
            .fetch_add((response_time_s * 1e6) as u64, Ordering::Relaxed);
    }
}

/// Shows the progress until the run is over.
pub(super) async fn show(shared: Arc<Shared>) {
    let view = View::new(&shared);
    let mut window = Window::default();
    let mut stopped = shared.stopped();
    let mut tick = tokio::time::interval(TICK);
    for ticks in 1.. {
        tokio::select! {
            _ = tick.tick() => {}
            _ = stopped.wait_for(|stopped| *stopped) => break,
        }
        let text = window.text(&shared);
        match &view {
            View::Bar(bar) => {
                bar.set_position(shared.elapsed().min(shared.length()).as_millis() as u64);
                bar.set_message(text);
            }
            View::Lines if ticks % TICKS_PER_LINE == 0 => tracing::info!("{text}"),
            View::Lines => {}
        }
    }
    if let View::Bar(bar) = view {
        bar.finish_and_clear();
    }
}

enum View {
    Bar(ProgressBar),
    Lines,
}

impl View {
    fn new(shared: &Shared) -> Self {
        if !stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::new(shared.length().as_millis() as u64);
        let style = ProgressStyle::with_template("{bar:16} {msg}")
            .expect("invariant: the template is well-formed");
        bar.set_style(style.progress_chars("=> "));
        Self::Bar(bar)
    }
}

/// The counters at the ticks of the last second: requests done by then and their summed time.
#[derive(Default)]
struct Window {
    ticks: std::collections::VecDeque<(u64, u64)>,
}

impl Window {
    fn text(&mut self, shared: &Shared) -> String {
        let counters = &shared.progress;
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (done, time_us) = (load(&counters.done), load(&counters.time_us));
        let (sent, failed) = (load(&counters.sent), load(&counters.failed));
        let (done_before, time_us_before) = self.ticks.front().copied().unwrap_or_default();
        self.ticks.push_back((done, time_us));
        if self.ticks.len() > TICKS_PER_SECOND {
            self.ticks.pop_front();
        }
        let mean = match done - done_before {
            0 => "-".into(),
            ended => time((time_us - time_us_before) as f64 / 1e6 / ended as f64),
        };
        format!(
            "{:.0}/{:.0} s  sent {sent}  done {done}  failed {failed}  in flight {}  mean {mean}",
            shared.elapsed().as_secs_f64(),
            shared.length().as_secs_f64(),
            sent.saturating_sub(done),
        )
    }
}
