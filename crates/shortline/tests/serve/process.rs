//! A server process of a test, with a site of its own; killed when the test lets go of it.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// How long a test waits for something that must happen. An order of a certificate is begun anew
/// where its nonces are refused, and on a busy machine each takes long.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_shortline");

/// A folder with a site and whatever else a test needs.
pub struct Site(TempDir);

impl Site {
    /// Some files of known content: see [`Site::with`].
    pub fn new() -> Self {
        Self::of(tempfile::tempdir())
    }

    /// The same on tmpfs. Some kernels say of each read there that it may have to wait.
    pub fn in_memory() -> Self {
        Self::of(tempfile::tempdir_in("/dev/shm"))
    }

    fn of(folder: std::io::Result<TempDir>) -> Self {
        let site = Self(folder.unwrap());
        std::fs::create_dir(site.root()).unwrap();
        site.with("index.html", "<p>index\n")
            .with("hello.txt", "hello\n")
            .with(".hidden", "secret\n")
            .with("folder/page.html", "<p>page\n")
            .with("large.bin", pattern(1_000_000))
    }

    /// The site's root.
    pub fn root(&self) -> PathBuf {
        self.0.path().join("site")
    }

    /// A path beside the site.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Adds a file.
    pub fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.root().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }
}

/// Bytes that differ from place to place.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// A running server.
pub struct Server {
    child: Child,
    lines: Receiver<String>,
    /// Where it listens, in the order of its flags.
    pub addresses: Vec<SocketAddr>,
    /// Its admin endpoint, if it is at an address by TCP.
    pub admin: Option<SocketAddr>,
    /// The lines of standard error that were read so far.
    pub said: Vec<String>,
}

impl Server {
    /// Serves `site` at a free port of the loopback interface, with an admin endpoint.
    pub fn start(site: &Site, flags: &[&str]) -> Self {
        let mut command = Command::new(PROGRAM);
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .arg(site.root())
            .args(flags);
        Self::spawn(&mut command)
    }

    /// Runs `command`, which becomes a server, until it listens.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                eprintln!("server: {line}");
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut server = Self {
            child,
            lines,
            addresses: Vec::new(),
            admin: None,
            said: Vec::new(),
        };
        let first = server.line_with("listening on ");
        server.addresses.push(address_in(&first));
        server
    }

    /// Waits for a line of standard error that contains `text`.
    pub fn line_with(&mut self, text: &str) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(left)
                .unwrap_or_else(|_| panic!("no line with `{text}`"));
            if line.contains("admin on ") {
                self.admin = word_behind_on(&line).parse().ok();
            }
            self.said.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// Its first address.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        wait_for("the server's end", || self.child.try_wait().unwrap())
    }

    /// The ends of pipes that it has open.
    pub fn pipes(&self) -> usize {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
        let targets = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        let is_pipe = |target: &PathBuf| target.to_string_lossy().starts_with("pipe:");
        targets.filter(is_pipe).count()
    }

    /// Its resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn address_in(line: &str) -> SocketAddr {
    word_behind_on(line).parse().unwrap()
}

fn word_behind_on(line: &str) -> &str {
    let mut words = line.split_whitespace().skip_while(|word| *word != "on");
    // In a log of objects a quote ends it.
    words.nth(1).unwrap().split('"').next().unwrap()
}

/// Polls until there is an answer.
pub fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = poll() {
            return answer;
        }
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What a program said and how it ended.
pub struct Ended {
    /// Its exit code.
    pub code: i32,
    /// Its standard error.
    pub stderr: String,
}

/// Runs `shortline` with `arguments` in `folder` to its end, which must come soon.
pub fn shortline(folder: &Path, arguments: &[&str]) -> Ended {
    let mut child = Command::new(PROGRAM)
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let until = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code().expect("invariant: it was not killed"),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A route with these lines is refused, in one line that says this.
pub fn assert_route_is_refused(site: &Site, lines: &str, expected: &str) {
    let file = site.beside("a.toml");
    let text = format!("[site]\nroot = \".\"\n[[route]]\npath = \"/app\"\n{lines}\n");
    std::fs::write(&file, text).unwrap();
    let ended = shortline(&site.root(), &["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    assert_eq!(ended.stderr.trim().lines().count(), 1, "{}", ended.stderr);
}
