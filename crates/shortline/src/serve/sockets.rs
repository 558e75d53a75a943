//! The sockets the server listens on: bound here, or handed over by systemd.
//!
//! Socket activation (`LISTEN_FDS`, sd_listen_fds(3)): a socket handed over takes the place of
//! the address it is bound to, with that address's certificate. Addresses that nobody handed
//! over are bound here, except for the default one. A socket at an address that the
//! configuration does not name speaks plain HTTP, or TLS if `--tls-cert` was given.

use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;
use socket2::{Domain, Protocol, Socket, Type};

use super::Args;
use super::file::Listen;
use super::settings::Settings;
use crate::error::CommandError;

/// How many connections wait in the kernel before they are accepted; it may cut this down
/// (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// A listening socket and what it was told.
pub struct Bound {
    /// The socket.
    pub socket: TcpListener,
    /// Its address as it was asked for (port 0 perhaps), and its certificate.
    pub listen: Listen,
}

/// All sockets: those handed over, then those bound here.
///
/// # Errors
/// [`CommandError::Failure`] with the address that cannot be had.
pub fn open_all(args: &Args, settings: &Settings) -> Result<Vec<Bound>, CommandError> {
    let mut sockets = Vec::new();
    let mut missing = settings.listen.clone();
    for socket in handed_over()? {
        let address = socket
            .local_addr()
            .map_err(|error| CommandError::failure(format!("socket handed over: {error}")))?;
        let named = missing.iter().position(|listen| listen.address == address);
        let listen = match named {
            Some(place) => missing.remove(place),
            None => Listen {
                address,
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

/// Binds one address and listens.
///
/// # Errors
/// [`CommandError::Failure`] with the address.
pub fn bind(address: SocketAddr) -> Result<TcpListener, CommandError> {
    let bound = || -> std::io::Result<TcpListener> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        // A restart must not wait for old connections' TIME_WAIT.
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        Ok(socket.into())
    };
    bound().map_err(|error| {
        CommandError::failure(format!("cannot listen on {address}: {}", told(&error)))
    })
}

fn handed_over() -> Result<Vec<TcpListener>, CommandError> {
    let mut passed = ListenFd::from_env();
    (0..passed.len())
        .filter_map(|index| passed.take_tcp_listener(index).transpose())
        .collect::<Result<_, _>>()
        .map_err(|error| {
            CommandError::failure(format!(
                "socket handed over (LISTEN_FDS): {error}; a listening TCP socket is needed (ListenStream=)"
            ))
        })
}

fn told(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "the address is in use; stop the other server or choose another port".to_owned()
        }
        std::io::ErrorKind::PermissionDenied => {
            "not permitted; ports below 1024 need CAP_NET_BIND_SERVICE".to_owned()
        }
        _ => error.to_string(),
    }
}
