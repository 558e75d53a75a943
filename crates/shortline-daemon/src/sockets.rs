//! Listening sockets: bound here, by TCP or in the file system, or handed over by systemd (`LISTEN_FDS`,
//! sd_listen_fds(3)).

mod address;

use std::fs::Permissions;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use listenfd::ListenFd;
use socket2::{Domain, Protocol, Socket, Type};

use shortline_command::CommandError;

pub use address::{Address, AddressError, AdminAddress};

/// How many connections wait in the kernel before they are accepted; it may cut this down
/// (`net.core.somaxconn`).
const BACKLOG: i32 = 4096;

/// Who may connect to a Unix socket: the mode of its file, as `chmod` takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketMode(pub u32);

impl Default for SocketMode {
    /// This user and its group.
    fn default() -> Self {
        Self(0o660)
    }
}

/// A text that is no mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no mode of a file: write it in octal, such as 0660 (this user and its group) or 0666 (all)"
)]
pub struct SocketModeError(String);

impl FromStr for SocketMode {
    type Err = SocketModeError;

    fn from_str(text: &str) -> Result<Self, SocketModeError> {
        let mode = u32::from_str_radix(text, 8).ok();
        let is_octal = text.bytes().all(|byte| byte.is_ascii_digit());
        mode.filter(|mode| is_octal && *mode <= 0o777)
            .map(Self)
            .ok_or_else(|| SocketModeError(text.escape_debug().to_string()))
    }
}

/// The file of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketFile {
    path: PathBuf,
    /// By this it is known that no other has taken its place.
    number: (u64, u64),
}

impl SocketFile {
    /// The file that is there now.
    ///
    /// # Errors
    /// There is none.
    pub fn at(path: &Path) -> std::io::Result<Self> {
        let found = std::fs::symlink_metadata(path)?;
        Ok(Self {
            path: path.to_owned(),
            number: (found.dev(), found.ino()),
        })
    }

    /// Removes it, unless another has taken its place.
    pub fn remove(&self) {
        if Self::at(&self.path).is_ok_and(|found| found == *self) {
            // Another process may be faster, and what is left is replaced at the next start.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A Unix socket that another process of ours connects to: `unix:/PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivatePath(pub PathBuf);

/// A text that is no such path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no path of a Unix socket: give unix:/PATH, such as unix:/run/shortline/handover")]
pub struct PrivatePathError(String);

impl FromStr for PrivatePath {
    type Err = PrivatePathError;

    fn from_str(text: &str) -> Result<Self, PrivatePathError> {
        match text.parse() {
            Ok(Address::Unix(path)) => Ok(Self(path)),
            Ok(Address::Tcp(_)) | Err(_) => Err(PrivatePathError(text.escape_debug().to_string())),
        }
    }
}

/// Makes a Unix socket that this user alone may connect to, and listens. One that nobody listens on any more is
/// replaced.
///
/// # Errors
/// [`CommandError::Failure`] with the path.
pub fn bind_private(path: &Path) -> Result<UnixListener, CommandError> {
    bind_path(path, 0o600)
}

/// Makes a Unix socket and listens. Everybody on this machine may connect, as with PostgreSQL's own. One that nobody
/// listens on any more is replaced.
///
/// # Errors
/// [`CommandError::Failure`] with the path.
pub fn bind_unix(path: &Path) -> Result<UnixListener, CommandError> {
    bind_path(path, 0o777)
}

/// Makes a Unix socket with that mode, and listens. One that nobody listens on any more is replaced.
///
/// # Errors
/// [`CommandError::Failure`] with the path.
pub fn bind_path(path: &Path, mode: u32) -> Result<UnixListener, CommandError> {
    let bound = || -> std::io::Result<UnixListener> {
        let found = std::fs::symlink_metadata(path);
        if found.is_ok_and(|found| !found.file_type().is_socket()) {
            return Err(std::io::Error::other(
                "there is a file that is no socket; choose another path",
            ));
        }
        match UnixStream::connect(path) {
            Ok(_) => return Err(std::io::ErrorKind::AddrInUse.into()),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                std::fs::remove_file(path)?;
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
        Ok(listener)
    };
    bound().map_err(|error| {
        let path = path.display();
        CommandError::failure(format!("cannot listen on unix:{path}: {}", told(&error)))
    })
}

/// Lets those connect to a Unix socket whom the mode allows it.
///
/// # Errors
/// [`CommandError::Failure`] with the path.
pub fn set_mode(path: &Path, mode: SocketMode) -> Result<(), CommandError> {
    let set = std::fs::set_permissions(path, Permissions::from_mode(mode.0));
    set.map_err(|error| CommandError::failure(format!("unix:{}: {error}", path.display())))
}

/// Binds one address and listens.
///
/// # Errors
/// [`CommandError::Failure`] with the address.
pub fn bind(address: SocketAddr) -> Result<TcpListener, CommandError> {
    bind_as(address, false)
}

/// The same for an address that other processes, which say so too, may listen on at the same time.
///
/// # Errors
/// [`CommandError::Failure`] with the address.
pub fn bind_shared(address: SocketAddr) -> Result<TcpListener, CommandError> {
    bind_as(address, true)
}

fn bind_as(address: SocketAddr, is_shared: bool) -> Result<TcpListener, CommandError> {
    let bound = || -> std::io::Result<TcpListener> {
        let socket = Socket::new(
            Domain::for_address(address),
            Type::STREAM,
            Some(Protocol::TCP),
        )?;
        // A restart must not wait for old connections' TIME_WAIT.
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(is_shared)?;
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

/// Whether a socket at `is` is what `wanted` asks for. Port 0 asks for any.
pub fn is_at(is: SocketAddr, wanted: SocketAddr) -> bool {
    is.ip() == wanted.ip() && (wanted.port() == 0 || is.port() == wanted.port())
}

fn told(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            "the address is in use; stop the other server or choose another port".to_owned()
        }
        std::io::ErrorKind::PermissionDenied => {
            "not permitted; ports below 1024 need CAP_NET_BIND_SERVICE".to_owned()
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "no interface of this machine has the address; 0.0.0.0 is all that it has".to_owned()
        }
        _ => error.to_string(),
    }
}
