//! Listening sockets: bound here, or handed over by systemd (`LISTEN_FDS`, sd_listen_fds(3)).

use std::net::{SocketAddr, TcpListener};

use listenfd::ListenFd;
use socket2::{Domain, Protocol, Socket, Type};

use shortline_command::CommandError;

/// How many connections wait in the kernel before they are accepted; it may cut this down
/// (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

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

/// The sockets that systemd opened for us, with their addresses; none if it did not start us so.
///
/// # Errors
/// [`CommandError::Failure`] if one of them is no listening TCP socket.
pub fn handed_over() -> Result<Vec<(TcpListener, SocketAddr)>, CommandError> {
    let mut passed = ListenFd::from_env();
    let sockets = (0..passed.len())
        .filter_map(|index| passed.take_tcp_listener(index).transpose())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| {
            CommandError::failure(format!(
                "socket handed over (LISTEN_FDS): {error}; a listening TCP socket is needed (ListenStream=)"
            ))
        })?;
    let with_address = sockets.into_iter().map(|socket| {
        let address = socket
            .local_addr()
            .map_err(|error| CommandError::failure(format!("socket handed over: {error}")))?;
        Ok((socket, address))
    });
    with_address.collect()
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
