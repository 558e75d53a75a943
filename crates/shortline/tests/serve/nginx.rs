//! The system's nginx behind a server; killed when the test lets go of it.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::process::wait_for;

/// A running nginx.
pub struct Nginx {
    child: Child,
    folder: TempDir,
}

/// An address where nobody listens.
pub fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

impl Nginx {
    /// One with these blocks `http`, which listens at `address`. Its log has lines of `$uri` and `of_log`. `None`, with a line
    /// that says so, if there is no nginx.
    pub fn start(address: SocketAddr, of_log: &str, blocks: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let configuration = format!(
            "daemon off; master_process off; pid {0}/pid; error_log {0}/error.log;
             events {{ worker_connections 256; }}
             http {{
               log_format told '$uri {of_log}'; access_log {0}/access.log told;
               client_body_temp_path {0}/body; proxy_temp_path {0}/proxy;
               fastcgi_temp_path {0}/fastcgi; uwsgi_temp_path {0}/uwsgi; scgi_temp_path {0}/scgi;
               {blocks}
             }}",
            root.display()
        );
        std::fs::write(root.join("nginx.conf"), configuration).unwrap();
        let programs = ["nginx", "/usr/sbin/nginx"].into_iter();
        let started = programs.map(|program| {
            Command::new(program)
                .arg("-p")
                .arg(root)
                .arg("-c")
                .arg(root.join("nginx.conf"))
                .stderr(Stdio::null())
                .spawn()
        });
        let Some(child) = started.into_iter().find_map(Result::ok) else {
            eprintln!("skipped: no nginx; scripts/setup installs it");
            return None;
        };
        let nginx = Self { child, folder };
        wait_for("nginx", || TcpStream::connect(address).ok());
        Some(nginx)
    }

    /// The lines of its log.
    pub fn logged(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.folder.path().join("access.log"));
        log.unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
