//! Resident memory of a server with 10,000 idle connections (or as many as the study names) after one request on each: HTTP/1.1 in the
//! clear, and HTTP/2 over TLS.
//!
//! The connections come from many loopback addresses (127.0.1.1 and so on), because a server may limit
//! those of one address.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shortline_sched::Policy;

use super::study::{Choices, Data, Findings, Job, Study};
use super::uplink::free_port;
use crate::LabError;
use crate::study::design::{Experiment, Memory};
use crate::study::plan::{read_json, write_json};
use shortline_table::{Table, bytes};
use shortline_testbed::idle_client::{self, IdleClient};
use shortline_testbed::proc_fs;
use shortline_testbed::process::raise_open_files;
use shortline_testbed::server::{self, OursMode, Running, Server, ServerSetup, Speech};
use shortline_testbed::{Place, Testbed, guest};

/// File descriptors that this process needs besides.
const FILES_SPARE: u64 = 200;
/// How long the connections are idle before the memory is read. By then the server has parked them.
const IDLE: Duration = Duration::from_secs(5);
/// So many connections have a MiB of a guest: in the server, in the client, and in a socket of each in the kernel.
const GUEST_CONNECTIONS_A_MIB: u32 = 8;
/// The response to each request, in bytes.
const BODY_BYTES: usize = 1_000;

/// The file with all measurements.
const RESULTS: &str = "memory.json";

/// One measurement, as kept in `memory.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    server: String,
    protocol: String,
    connections: u32,
    #[serde(flatten)]
    resident: Resident,
}

/// The server's resident memory.
#[derive(Debug, Serialize, Deserialize)]
struct Resident {
    /// Before the first connection.
    #[serde(rename = "resident_begin_bytes")]
    begin_bytes: u64,
    /// With all of them idle.
    #[serde(rename = "resident_bytes")]
    idle_bytes: u64,
    /// After they have closed.
    #[serde(rename = "resident_end_bytes")]
    end_bytes: u64,
}

impl Study for Memory {
    fn length(&self) -> String {
        "about 2 minutes".into()
    }

    fn runs_in_guests(&self) -> bool {
        true
    }

    fn guest_memory_mib(&self) -> u32 {
        guest::MEMORY_MIB + self.connections / GUEST_CONNECTIONS_A_MIB
    }

    fn job(&self, _id: &str, asked: &Choices) -> Result<Job, LabError> {
        let mut servers = asked.servers()?;
        if servers.is_empty() {
            servers = vec![Server::Ours(OursMode::Auto(Policy::Srpt)), Server::Nginx];
        }
        let connections = self.connections;
        Ok(Box::new(move |testbed| run(testbed, &servers, connections)))
    }

    fn has_results(&self, folder: &Path) -> Result<bool, LabError> {
        Ok(folder.join(RESULTS).exists())
    }

    fn report(&self, _experiment: &Experiment, folder: &Path) -> Result<Findings, LabError> {
        Ok(Findings {
            text: report(folder)?,
            void_runs: 0,
            data: Data::Text,
        })
    }
}

/// Measures each server with both protocols and keeps `memory.json`.
///
/// # Errors
/// If there are too few file descriptors, or a server or connection fails.
fn run(testbed: &Testbed, servers: &[Server], connections: u32) -> Result<(), LabError> {
    // Nine of ten of nginx's are for connections, and any server keeps some for itself.
    raise_open_files(u64::from(connections) * 5 / 4 + FILES_SPARE)?;
    server::make_certificate(testbed, "127.0.0.1")?;
    let root = testbed.scratch().join("site");
    fs::create_dir_all(&root).map_err(LabError::file(&root))?;
    let file = root.join("a.bin");
    fs::write(&file, vec![b'x'; BODY_BYTES]).map_err(LabError::file(&file))?;
    let mut all = Vec::new();
    for server in servers {
        for (protocol, speech) in protocols() {
            tracing::info!("memory: {server}, {protocol}, {connections} connections");
            let usual = ServerSetup::new(Place::Here, free_port()?, &root);
            // nginx closes idle connections once 15 of 16 are taken.
            let room_for = u64::from(connections) * 16 / 15 + FILES_SPARE;
            let setup = ServerSetup {
                speech,
                connections_max: usual.connections_max.max(room_for),
                ..usual
            };
            let resident = measure(testbed, *server, &setup, connections)?;
            all.push(Measured {
                server: server.to_string(),
                protocol: protocol.into(),
                connections,
                resident,
            });
            write_json(&testbed.out().join(RESULTS), &all)?;
        }
    }
    Ok(())
}

fn protocols() -> [(&'static str, Speech); 2] {
    let encrypted = Speech {
        tls: true,
        http2: true,
        http3: false,
    };
    [
        ("HTTP/1.1", Speech::default()),
        ("HTTP/2 over TLS", encrypted),
    ]
}

fn measure(
    testbed: &Testbed,
    server: Server,
    setup: &ServerSetup,
    connections: u32,
) -> Result<Resident, LabError> {
    let tls = setup.speech.tls;
    let mut running = Running::start(testbed, server, setup)?;
    let begin_bytes = proc_fs::resident_bytes(running.pid());
    let client = IdleClient {
        server: SocketAddr::from((Ipv4Addr::LOCALHOST, setup.port)),
        path: "/a.bin",
        body_bytes: BODY_BYTES,
        connections,
        certificate: tls.then(|| server::certificate_file(testbed)),
    };
    let idle_bytes = idle_client::hold(&client, || {
        std::thread::sleep(IDLE);
        proc_fs::resident_bytes(running.pid())
    })?;
    std::thread::sleep(IDLE);
    running.still_runs()?;
    Ok(Resident {
        begin_bytes,
        idle_bytes,
        end_bytes: proc_fs::resident_bytes(running.pid()),
    })
}

/// The report on the results in `folder`.
///
/// # Errors
/// If `memory.json` is missing or wrong.
fn report(folder: &Path) -> Result<String, LabError> {
    let all: Vec<Measured> = read_json(&folder.join(RESULTS))?;
    let mut table = Table::new(&[
        "server",
        "protocol",
        "connections",
        "resident",
        "per connection",
        "before",
        "after",
    ]);
    for measured in &all {
        let resident = &measured.resident;
        let grown = resident.idle_bytes.saturating_sub(resident.begin_bytes);
        table.row(vec![
            measured.server.clone(),
            measured.protocol.clone(),
            measured.connections.to_string(),
            bytes(resident.idle_bytes as f64),
            bytes(grown as f64 / f64::from(measured.connections)),
            bytes(resident.begin_bytes as f64),
            bytes(resident.end_bytes as f64),
        ]);
    }
    let mut text = String::new();
    writeln!(
        text,
        "memory: resident memory with idle connections after a request each\n"
    )
    .ok();
    text += &table.to_string();
    Ok(text)
}
