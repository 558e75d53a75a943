//! A server that a page starts. It ends with the test.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a test waits for something that must happen.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A shell's line that serves until it is told to end.
pub struct Serving(Child);

impl Serving {
    /// Runs `line` until it listens. An error is what it said instead.
    pub fn start(mut shell: Command) -> Result<Self, String> {
        let mut child = shell
            .process_group(0)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                // Whoever does not listen any more does not want the rest; the server must not wait for it.
                let _ = sender.send(line);
            }
        });
        let serving = Self(child);
        let until = Instant::now() + PATIENCE;
        let mut said = String::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = lines.recv_timeout(left) else {
                return Err(format!("does not listen: {said}"));
            };
            if line.contains("listening on ") {
                return Ok(serving);
            }
            said += &line;
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.0);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.0.wait();
    }
}
