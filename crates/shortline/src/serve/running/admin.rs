//! The admin endpoint of a running server. A reload may move it.

use std::sync::Arc;

use tokio::task::JoinHandle;

use super::super::certificates::CertificatesStatus;
use super::super::options::AdminOptions;
use super::super::status::{Status, StatusPages};
use super::Running;
use crate::history::History;
use shortline_command::CommandError;
use shortline_daemon::admin::{self, AdminSocket, Hosts};
use shortline_daemon::sockets::SocketFile;

/// What answers the admin.
pub struct Admin {
    /// Where.
    pub socket: AdminSocket,
    /// Accepts its clients.
    pub task: JoinHandle<()>,
    file: Option<SocketFile>,
}

impl Admin {
    /// Removes the file of a socket that nobody listens on from now on.
    pub fn remove_file(&self) {
        self.file.iter().for_each(SocketFile::remove);
    }
}

impl Running {
    /// The admin's socket: one that is there already if it has the address.
    pub(super) fn bind_admin(
        &self,
        wanted: &AdminOptions,
        there: Option<AdminSocket>,
    ) -> Result<Option<AdminSocket>, CommandError> {
        let wanted = wanted.address.as_ref().map(|address| &address.0);
        wanted
            .map(|wanted| AdminSocket::open(wanted, there))
            .transpose()
    }

    /// Answers the admin at this socket from now on, and at no other.
    pub(super) fn answer_admin(&mut self, socket: Option<AdminSocket>) -> Result<(), CommandError> {
        let started = socket.map(|socket| self.start_admin(socket)).transpose()?;
        if let Some(before) = std::mem::replace(&mut self.admin, started) {
            before.task.abort();
            let now = self.admin.as_ref().and_then(|admin| admin.file.as_ref());
            if before.file.as_ref() != now {
                before.remove_file();
            }
        }
        Ok(())
    }

    fn start_admin(&self, socket: AdminSocket) -> Result<Admin, CommandError> {
        let options = &self.settings.admin;
        let server = Arc::clone(&self.server);
        let log = Arc::clone(&self.log);
        let routes = Arc::clone(&self.routes);
        let purged = Arc::clone(&self.routes);
        let listens = Arc::clone(&self.listens);
        let kept = self.kept.clone();
        let started = self.started;
        self.server.compare().map_err(CommandError::failure)?;
        let of_routes = move || {
            let routes = routes.lock();
            (routes.caches(), routes.mirrors(), routes.gates())
        };
        let told = move |(caches, mirrors, gates), certificates| Status {
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: started.elapsed().as_secs_f64(),
            listen: listens.lock().clone(),
            link: server.link_snapshot(),
            server: server.snapshot(),
            comparison: server.comparison(),
            caches,
            mirrors,
            gates,
            certificates,
            access_log_dropped_total: log.lock().dropped_total(),
            warnings: shortline_daemon::warnings::last(),
        };
        let status = Arc::new(move |certificates| told(of_routes(), certificates));
        let sampled = Arc::clone(&status);
        let pages = StatusPages {
            // Nothing of them is kept, and there may be thousands.
            history: History::start(started, move |_| {
                sampled(CertificatesStatus::default()).sample()
            }),
            status: Box::new(move || status(kept.status())),
            purge: Box::new(move |url| purged.lock().purge(url)),
        };
        let hosts = Hosts::new(options.host.as_deref().unwrap_or_default());
        let answering = socket
            .try_clone()
            .and_then(|socket| admin::start(socket, options.connections_max, hosts, pages));
        Ok(Admin {
            task: answering.map_err(CommandError::failure)?,
            file: socket.file(),
            socket,
        })
    }

    pub(super) fn admin_socket(&self) -> Result<Option<AdminSocket>, CommandError> {
        let socket = self.admin.as_ref().map(|admin| admin.socket.try_clone());
        socket.transpose().map_err(CommandError::failure)
    }
}
