//! The sockets the server listens on: bound here, handed over by systemd, or by the process whose place this one
//! takes.
//!
//! A socket that is handed over replaces the configured address it is bound to, and gets that
//! address's certificate. Other configured addresses are bound here; the default address is not. A
//! socket from systemd at an address that the configuration does not name speaks plain HTTP, or TLS
//! if `--tls-cert` was given. One of the process before that is not named any more is closed.

use std::net::{SocketAddr, TcpListener};

use rustix::net::Shutdown;

use super::Args;
use super::settings::Settings;
use crate::file::Listen;
use shortline_command::CommandError;
use shortline_daemon::sockets::{bind, handed_over, is_at};

/// A listening socket and its settings.
pub struct Bound {
    /// The socket.
    pub socket: TcpListener,
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
}

/// The sockets to listen on, and what is left of those of the process before.
#[derive(Default)]
pub struct Opened {
    /// First those handed over, then those bound here.
    pub bound: Vec<Bound>,
    /// At addresses that nobody names any more.
    pub given_up: Vec<TcpListener>,
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
    if opening.opened.bound.is_empty() || settings.listen_asked {
        opening.bind_missing()?;
    }
    Ok(opening.opened)
}

/// Listens no more at these. The process before holds them too, so closing them would leave clients waiting.
pub fn give_up(sockets: &[TcpListener]) {
    for socket in sockets {
        if let Err(error) = rustix::net::shutdown(socket, Shutdown::Read) {
            tracing::warn!("an address of the process before: {error}");
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
        let named = self.missing.iter().position(|listen| fits(listen.address));
        let is_unnamed = named.is_none();
        let listen = match (named, socket.local_addr()) {
            (Some(place), _) => self.missing.remove(place),
            (None, Ok(address)) if stays => Listen {
                address,
                tls: None,
                tls_cert: self.args.tls_cert.clone(),
                tls_key: self.args.tls_key.clone(),
                proxy_from: None,
                http3: Some(self.args.http3 && self.args.tls_cert.is_some()),
            },
            (None, _) => return self.opened.given_up.push(socket),
        };
        self.opened.bound.push(Bound {
            socket,
            listen,
            is_unnamed,
            is_inherited,
        });
    }

    fn bind_missing(&mut self) -> Result<(), CommandError> {
        for listen in self.missing.drain(..) {
            let socket = bind(listen.address)?;
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
