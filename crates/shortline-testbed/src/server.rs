//! The servers that are compared, each started as a process: ours in its modes, and others. The
//! configurations of the others are in `peers/`, tuned as their documentation recommends.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use shortline_sched::Policy;
use shortline_sched::units::Rate;

use crate::place::Place;
use crate::process::Process;
use crate::testbed::Testbed;
use crate::{TestbedError, proc_fs};

mod name;
mod peer;
mod source;

pub use name::{OursMode, Server};
pub use source::Source;

/// How long a server may take to listen.
const START_MAX: Duration = Duration::from_secs(10);
/// Connections that a server is set up for, unless its setup says more. An overload of W1 has a few thousand.
const CONNECTIONS: u64 = 16_000;

/// The protocol that the server must speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speech {
    /// Over TLS.
    pub tls: bool,
    /// HTTP/2: by ALPN over TLS, else by prior knowledge.
    pub http2: bool,
    /// HTTP/3 beside them, which the generator then speaks (ours only).
    #[serde(default)]
    pub http3: bool,
}

impl Speech {
    /// The bytes that the link carries for a request besides its body and the heads of its packets,
    /// with a connection for each request. It was measured before.
    pub fn per_request_bytes(self) -> u64 {
        match (self.tls, self.http2) {
            _ if self.http3 => 4000,
            (false, false) => 460,
            (true, false) => 1950,
            (false, true) => 570,
            (true, true) => 2100,
        }
    }
}

/// How to start a server.
#[derive(Clone, Debug)]
pub struct ServerSetup {
    /// Where it runs.
    pub place: Place,
    /// The address to listen on.
    pub address: String,
    /// The port to listen on.
    pub port: u16,
    /// The files to serve.
    pub root: PathBuf,
    /// The uplink's rate, if it is known.
    pub rate: Option<Rate>,
    /// TLS and HTTP/2.
    pub speech: Speech,
    /// Schedule loopback clients too (ours only).
    pub uplink_loopback: bool,
    /// The port of 127.0.0.1 for the admin address (ours only).
    pub admin_port: Option<u16>,
    /// Requests served at once (Apache only). `None`: as many as suit it.
    pub workers: Option<u32>,
    /// The number of writers (paper 001's server only).
    pub writers: Option<u32>,
    /// Connections at once, at most.
    pub connections_max: u64,
    /// Where it has its responses from. Others than ours have files, or a backend.
    pub source: Source,
}

impl ServerSetup {
    /// At 127.0.0.1, with a folder of files and nothing else said.
    pub fn new(place: Place, port: u16, root: &Path) -> Self {
        Self {
            place,
            address: "127.0.0.1".into(),
            port,
            root: root.into(),
            rate: None,
            speech: Speech::default(),
            uplink_loopback: false,
            admin_port: None,
            workers: None,
            writers: None,
            connections_max: CONNECTIONS,
            source: Source::Files,
        }
    }
}

/// A running server that listens.
#[derive(Debug)]
pub struct Running {
    /// Which one.
    pub server: Server,
    process: Process,
}

impl Running {
    /// Starts `server` and waits until it listens, at its admin address, too.
    ///
    /// # Errors
    /// If it is not installed, ends at once, or does not listen within 10 s.
    pub fn start(
        testbed: &Testbed,
        server: Server,
        setup: &ServerSetup,
    ) -> Result<Self, TestbedError> {
        let (program, arguments) = command_line(testbed, server, setup)?;
        // Two servers of a kind may run at once.
        let log = testbed.log(&format!("{server}-{}", setup.port));
        let process = Process::start(testbed, &setup.place, &program, &arguments, &log)?;
        let mut running = Self { server, process };
        running.wait_until_listening(setup.port)?;
        // Ours opens it after the others, on a busy machine a while after.
        if let (Server::Ours(_), Some(port)) = (server, setup.admin_port) {
            running.wait_until_listening(port)?;
        }
        Ok(running)
    }

    /// Its process id; the workers of some are its children.
    pub fn pid(&self) -> i32 {
        self.process.pid()
    }

    /// Fails if it has ended.
    ///
    /// # Errors
    /// Its exit status and the last line of its log.
    pub fn still_runs(&mut self) -> Result<(), TestbedError> {
        match self.process.ended() {
            Some(status) => Err(self.failed(format!("ended: {status}"))),
            None => Ok(()),
        }
    }

    fn wait_until_listening(&mut self, port: u16) -> Result<(), TestbedError> {
        let deadline = Instant::now() + START_MAX;
        while !proc_fs::is_listening(self.pid(), port) {
            self.still_runs()?;
            if Instant::now() > deadline {
                let problem = format!("does not listen after {} s", START_MAX.as_secs());
                return Err(self.failed(problem));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn failed(&self, problem: String) -> TestbedError {
        TestbedError::Server {
            server: self.server.to_string(),
            problem,
            log: self.process.last_words(),
        }
    }
}

/// The version that a server reports of itself, for the results.
pub fn version(testbed: &Testbed, server: Server) -> Result<String, TestbedError> {
    let (program, argument) = match server {
        Server::Ours(_) => (testbed.program().to_owned(), "--version"),
        other => peer::program(other)?,
    };
    let mut command = std::process::Command::new(&program);
    // Envoy says as what it was called, which is no path of the machine then.
    command.arg0(program.file_name().unwrap_or(program.as_os_str()));
    let output = command.arg(argument).output();
    let output = output.map_err(TestbedError::file(&program))?;
    // nginx writes its version to standard error, Envoy begins with an empty line.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines().map(str::trim);
    let version = lines.find(|line| !line.is_empty());
    Ok(version
        .unwrap_or_default()
        .trim_start_matches("Server version: ")
        .trim_start_matches("nginx version: ")
        .to_owned())
}

fn command_line(
    testbed: &Testbed,
    server: Server,
    setup: &ServerSetup,
) -> Result<(PathBuf, Vec<String>), TestbedError> {
    let Server::Ours(mode) = server else {
        return peer::command_line(testbed, server, setup);
    };
    let mut arguments = our_arguments(testbed, mode, setup);
    if let Some(text) = setup.source.configuration(&setup.address, &setup.root) {
        let name = format!("shortline-{}.toml", setup.port);
        arguments.extend(["--config".into(), written(testbed, &name, &text)?]);
    }
    Ok((testbed.program().to_owned(), arguments))
}

/// Writes a configuration, and returns its path.
fn written(testbed: &Testbed, name: &str, text: &str) -> Result<String, TestbedError> {
    let path = testbed.scratch().join(name);
    fs::write(&path, text).map_err(TestbedError::file(&path))?;
    Ok(path.display().to_string())
}

fn our_arguments(testbed: &Testbed, mode: OursMode, setup: &ServerSetup) -> Vec<String> {
    let mut arguments = vec!["serve".to_owned()];
    if setup.source.has_root() {
        arguments.push(setup.root.display().to_string());
    }
    let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
    add("--listen", format!("{}:{}", setup.address, setup.port));
    match mode {
        OursMode::Paced(policy) | OursMode::PacedAging(policy, _) => {
            let rate = setup.rate.map(|rate| rate.to_string());
            add("--uplink", rate.unwrap_or_else(|| "1gbit".into()));
            add("--policy", policy.to_string());
        }
        OursMode::Auto(policy) => {
            add("--uplink", "auto".into());
            add("--policy", policy.to_string());
        }
        OursMode::Slots(policy) => {
            add("--link-mode", "slots".into());
            add("--policy", policy.to_string());
        }
        OursMode::Writers(policy) => {
            add("--link-mode", "writers".into());
            add("--policy", policy.to_string());
            if let Some(writers) = setup.writers {
                add("--slots", writers.to_string());
            }
        }
        OursMode::Kernel(policy) | OursMode::KernelMixed(policy) => {
            add("--link-mode", "bands".into());
            add("--policy", policy.to_string());
            if let (Policy::Swift, Some(rate)) = (policy, setup.rate) {
                add("--uplink", rate.to_string());
            }
        }
        OursMode::Off => add("--uplink", "off".into()),
    }
    if let OursMode::PacedAging(_, aging) = mode {
        add("--aging", aging.to_string());
    }
    // All clients of a bed have one address.
    for flag in ["--connections-max", "--connections-per-address-max"] {
        add(flag, setup.connections_max.to_string());
    }
    if setup.speech.tls {
        add(
            "--tls-cert",
            certificate(testbed, "crt").display().to_string(),
        );
        add(
            "--tls-key",
            certificate(testbed, "key").display().to_string(),
        );
    }
    if setup.speech.http3 {
        arguments.push("--http3".into());
    }
    let mut add = |flag: &str, value: String| arguments.extend([flag.to_owned(), value]);
    if let Some(port) = setup.admin_port {
        add("--admin", format!("127.0.0.1:{port}"));
    }
    if let OursMode::KernelMixed(_) = mode {
        arguments.push("--control-band=false".into());
    }
    if setup.uplink_loopback {
        arguments.push("--uplink-loopback".into());
    }
    arguments
}

/// Makes the certificate that all servers use over TLS.
///
/// # Errors
/// If it cannot be made or written.
pub fn make_certificate(testbed: &Testbed, name: &str) -> Result<(), TestbedError> {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]);
    let made = made.map_err(TestbedError::refused)?;
    for (ending, text) in [
        ("crt", made.cert.pem()),
        ("key", made.signing_key.serialize_pem()),
    ] {
        let path = certificate(testbed, ending);
        fs::write(&path, text).map_err(TestbedError::file(&path))?;
    }
    Ok(())
}

fn certificate(testbed: &Testbed, ending: &str) -> PathBuf {
    testbed.scratch().join(format!("site.{ending}"))
}

/// The certificate as a file, for clients to trust.
pub fn certificate_file(testbed: &Testbed) -> PathBuf {
    certificate(testbed, "crt")
}
