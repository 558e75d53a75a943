//! The sockets the server listens on: bound here, or handed over by systemd.
//!
//! A socket that is handed over replaces the configured address it is bound to, and gets that
//! address's certificate. Other configured addresses are bound here; the default address is not. A
//! handed-over socket at an address that the configuration does not name speaks plain HTTP, or TLS
//! if `--tls-cert` was given.

use std::net::TcpListener;

use super::Args;
use super::settings::Settings;
use crate::file::Listen;
use shortline_command::CommandError;
use shortline_daemon::sockets::{bind, handed_over};

/// A listening socket and its settings.
pub struct Bound {
    /// The socket.
    pub socket: TcpListener,
    /// Its address as configured (perhaps with port 0), and its certificate.
    pub listen: Listen,
}

/// All sockets: first those handed over, then those bound here.
///
/// # Errors
/// [`CommandError::Failure`] with the address that cannot be used.
pub fn open_all(args: &Args, settings: &Settings) -> Result<Vec<Bound>, CommandError> {
    let mut sockets = Vec::new();
    let mut missing = settings.listen.clone();
    for (socket, address) in handed_over()? {
        let named = missing.iter().position(|listen| listen.address == address);
        let listen = match named {
            Some(place) => missing.remove(place),
            None => Listen {
                address,
                tls: None,
                tls_cert: args.tls_cert.clone(),
                tls_key: args.tls_key.clone(),
            },
        };
        sockets.push(Bound { socket, listen });
    }
    if sockets.is_empty() || settings.listen_asked {
        for listen in missing {
            let socket = bind(listen.address)?;
            sockets.push(Bound { socket, listen });
        }
    }
    Ok(sockets)
}
