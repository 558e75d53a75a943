//! The sockets the server listens on: bound here, handed over by systemd, or by the process whose place this one
//! takes.
//!
//! A socket that is handed over replaces the configured address it is bound to, and gets that
//! address's certificate. Other configured addresses are bound here; the default address is not. A
//! socket from systemd at an address that the configuration does not name speaks plain HTTP, or TLS
//! if `--tls-cert` was given. One of the process before that is not named any more is closed.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rustix::net::Shutdown;

use super::Args;
use super::settings::Settings;
use crate::file::Listen;
use shortline_command::CommandError;
use shortline_daemon::sockets::{self, Address, handed_over, is_at};
use shortline_web::server::Socket;

/// A listening socket and its settings.
pub struct Bound {
    /// The socket.
    pub socket: Socket,
    /// Its address as configured (perhaps with port 0), and its certificate.
    pub listen: Listen,
    /// No option names it: whoever started the process opened it.
    pub is_unnamed: bool,
    /// The process before has it too.
    pub is_inherited: bool,
}

/// The sockets of the process whose place this one takes.
#[derive(Default)]
pub struct Before {
    /// At addresses that its options name.
    pub named: Vec<TcpListener>,
    /// Others.
    pub unnamed: Vec<TcpListener>,
    /// In the file system, at these paths.
    pub unix: Vec<(UnixListener, PathBuf)>,
}

/// The sockets to listen on, and what is left of those of the process before.
#[derive(Default)]
pub struct Opened {
    /// First those handed over, then those bound here.
    pub bound: Vec<Bound>,
    /// At addresses that nobody names any more.
    pub given_up: Vec<Socket>,
}

/// All sockets.
///
/// # Errors
/// [`CommandError::Failure`] with the address that cannot be used.
pub fn open_all(args: &Args, settings: &Settings, before: Before) -> Result<Opened, CommandError> {
    let mut opening = Opening {
        args,
        missing: settings.listen.clone(),
        opened: Opened::default(),
    };
    for (socket, address) in handed_over()? {
        opening.take(socket, |listen| listen == address, true, false);
    }
    for (sockets, stay) in [
        (before.unnamed, true),
        (before.named, !settings.listen_asked),
    ] {
        for socket in sockets {
            let address = socket.local_addr().map_err(CommandError::failure)?;
            opening.take(socket, |listen| is_at(address, listen), stay, true);
        }
    }
    for (socket, path) in before.unix {
        opening.take_unix(socket, path);
    }
    if opening.opened.bound.is_empty() || settings.listen_asked {
        opening.bind_missing()?;
    }
    Ok(opening.opened)
}

/// Listens no more at these. The process before holds them too, so closing them would leave clients waiting.
pub fn give_up(sockets: &[Socket]) {
    for socket in sockets {
        if let Err(error) = rustix::net::shutdown(socket, Shutdown::Read) {
            tracing::warn!("an address of the process before: {error}");
        }
    }
}

/// Makes the socket of an address.
///
/// # Errors
/// [`CommandError::Failure`] with the address.
pub fn bind(listen: &Listen) -> Result<Socket, CommandError> {
    match &listen.address {
        Address::Tcp(address) => sockets::bind(*address).map(Socket::Tcp),
        Address::Unix(path) => {
            let mode = listen.mode.unwrap_or_default();
            sockets::bind_path(path, mode.0).map(Socket::Unix)
        }
    }
}

struct Opening<'a> {
    args: &'a Args,
    missing: Vec<Listen>,
    opened: Opened,
}

impl Opening<'_> {
    /// Takes a socket for the address that fits, or for its own if it is to stay without.
    fn take(
        &mut self,
        socket: TcpListener,
        fits: impl Fn(SocketAddr) -> bool,
        stays: bool,
        is_inherited: bool,
    ) {
        let fits = |listen: &Listen| listen.address.tcp().is_some_and(&fits);
        let named = self.missing.iter().position(fits);
        let is_unnamed = named.is_none();
        let listen = match (named, socket.local_addr()) {
            (Some(place), _) => self.missing.remove(place),
            (None, Ok(address)) if stays => Listen {
                tls_cert: self.args.tls_cert.clone(),
                tls_key: self.args.tls_key.clone(),
                http3: Some(self.args.http3 && self.args.tls_cert.is_some()),
                ..Listen::at(Address::Tcp(address))
            },
            (None, _) => return self.opened.given_up.push(socket.into()),
        };
        self.opened.bound.push(Bound {
            socket: socket.into(),
            listen,
            is_unnamed,
            is_inherited,
        });
    }

    fn take_unix(&mut self, socket: UnixListener, path: PathBuf) {
        let (socket, address) = (Socket::Unix(socket), Address::Unix(path));
        let named = self
            .missing
            .iter()
            .position(|listen| listen.address == address);
        match named {
            Some(place) => self.opened.bound.push(Bound {
                socket,
                listen: self.missing.remove(place),
                is_unnamed: false,
                is_inherited: true,
            }),
            None => self.opened.given_up.push(socket),
        }
    }

    fn bind_missing(&mut self) -> Result<(), CommandError> {
        for listen in self.missing.drain(..) {
            let socket = bind(&listen)?;
            self.opened.bound.push(Bound {
                socket,
                listen,
                is_unnamed: false,
                is_inherited: false,
            });
        }
        Ok(())
    }
}
