//! What stands behind our server at a point whose responses go through more than files.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use shortline_testbed::command;
use shortline_testbed::process::Process;
use shortline_testbed::server::{OursMode, Running, Server, ServerSetup, Source, Speech};
use shortline_testbed::{Place, Testbed};

use crate::LabError;
use crate::study::point::Through;

/// Programs that PHP-FPM runs at once. Each is free again when the server has taken its output.
const PROGRAMS: u32 = 16;
/// How long PHP-FPM may take to listen.
const START_MAX: Duration = Duration::from_secs(10);
/// Sends the file that the request names.
const PROGRAM: &str = r#"<?php
$file = realpath($_SERVER['SITE'] . rawurldecode(parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)));
header('Content-Type: application/octet-stream');
if (@LENGTH@) {
    header('Content-Length: ' . filesize($file));
}
readfile($file);
"#;

/// What runs behind our server. It ends when it is dropped.
pub enum Behind {
    /// Nothing.
    Nothing,
    /// A server.
    Server {
        /// Where it listens.
        address: SocketAddr,
        /// It runs as long as this.
        _running: Box<Running>,
    },
    /// PHP-FPM.
    Php {
        /// Its socket and the folder of its program.
        source: Source,
        /// It runs as long as this.
        _process: Process,
    },
}

/// Starts what `through` needs, where our server runs.
///
/// # Errors
/// It is not installed, or does not start.
pub fn start(through: Through, testbed: &Testbed, ours: &ServerSetup) -> Result<Behind, LabError> {
    match through {
        Through::Files | Through::Site | Through::Compressed => Ok(Behind::Nothing),
        Through::Kept | Through::Route | Through::RouteHttp2 => start_server(testbed, ours),
        Through::Php => start_php(testbed, &ours.place, true),
        Through::PhpUnknown => start_php(testbed, &ours.place, false),
    }
}

impl Behind {
    /// What our server is told of it.
    pub fn source(&self, through: Through) -> Source {
        match self {
            Self::Nothing if through == Through::Site => Source::Site,
            Self::Nothing if through == Through::Compressed => Source::Texts,
            Self::Nothing => Source::Files,
            Self::Server { address, .. } if through == Through::Kept => {
                Source::Kept(address.to_string())
            }
            Self::Server { address, .. } if through == Through::RouteHttp2 => {
                Source::Backend(format!("h2c://{address}"))
            }
            Self::Server { address, .. } => Source::Backend(address.to_string()),
            Self::Php { source, .. } => source.clone(),
        }
    }
}

fn start_server(testbed: &Testbed, ours: &ServerSetup) -> Result<Behind, LabError> {
    let port = super::free_port()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let setup = ServerSetup {
        address: address.ip().to_string(),
        port,
        rate: None,
        speech: Speech::default(),
        uplink_loopback: false,
        admin_port: None,
        ..ours.clone()
    };
    let running = Running::start(testbed, Server::Ours(OursMode::Off), &setup)?;
    Ok(Behind::Server {
        address,
        _running: Box::new(running),
    })
}

fn start_php(testbed: &Testbed, place: &Place, tells_length: bool) -> Result<Behind, LabError> {
    let folder = testbed.scratch().join("php");
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(LabError::file(&path))?;
        Ok::<PathBuf, LabError>(path)
    };
    fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
    write(
        "index.php",
        PROGRAM.replace("@LENGTH@", if tells_length { "true" } else { "false" }),
    )?;
    let socket = testbed.scratch().join("php.sock");
    // A run before may have left it.
    let _ = fs::remove_file(&socket);
    let user = match rustix::process::geteuid().is_root() {
        true => "user = root\ngroup = root\n",
        false => "",
    };
    let place_of_log = folder.join("fpm.log");
    let text = format!(
        "[global]\nerror_log = {}\ndaemonize = no\n[www]\n{user}listen = {}\nlisten.backlog = 4096\n\
         pm = static\npm.max_children = {PROGRAMS}\n",
        place_of_log.display(),
        socket.display()
    );
    let configuration = write("fpm.conf", text)?;
    let program = command::find("php-fpm8.2", "php8.2-fpm")?;
    let words = [
        "--no-php-ini",
        "--allow-to-run-as-root",
        "--nodaemonize",
        "--fpm-config",
    ];
    let mut arguments: Vec<String> = words.map(str::to_owned).into();
    arguments.push(configuration.display().to_string());
    let log = testbed.log("php-fpm");
    let process = Process::start(testbed, place, &program, &arguments, &log)?;
    wait_for(&socket)?;
    Ok(Behind::Php {
        source: Source::Php {
            socket: socket.display().to_string(),
            folder: folder.display().to_string(),
        },
        _process: process,
    })
}

fn wait_for(socket: &Path) -> Result<(), LabError> {
    let until = Instant::now() + START_MAX;
    while !socket.exists() {
        if Instant::now() > until {
            return Err(LabError::failed("php-fpm", &"does not listen"));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
