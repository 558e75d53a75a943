//! The socket that the admin's clients connect to: by TCP, or in the file system.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;

use shortline_command::CommandError;
use socket2::{Domain, SockRef};

use crate::sockets::{Address, SocketFile, SocketMode, bind, bind_path, is_at};

/// A listening socket.
#[derive(Debug)]
pub enum AdminSocket {
    /// By TCP.
    Tcp(TcpListener),
    /// In the file system.
    Unix(UnixListener),
}

impl AdminSocket {
    /// The socket at an address: `there`, if it is at that, or else a new one. One in the file system is for this user and its
    /// group.
    ///
    /// # Errors
    /// [`CommandError::Failure`] with the address.
    pub fn open(wanted: &Address, there: Option<Self>) -> Result<Self, CommandError> {
        match (there.filter(|there| there.is_at(wanted)), wanted) {
            (Some(there), _) => Ok(there),
            (None, Address::Tcp(address)) => bind(*address).map(Self::Tcp),
            (None, Address::Unix(path)) => bind_path(path, SocketMode::default().0).map(Self::Unix),
        }
    }

    fn is_at(&self, wanted: &Address) -> bool {
        match (self.address(), wanted) {
            (Ok(Address::Tcp(is)), Address::Tcp(wanted)) => is_at(is, *wanted),
            (Ok(is), wanted) => is == *wanted,
            (Err(_), _) => false,
        }
    }

    /// Its address; with port 0 the kernel chose the port.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn address(&self) -> io::Result<Address> {
        match self {
            Self::Tcp(socket) => socket.local_addr().map(Address::Tcp),
            Self::Unix(socket) => {
                let address = socket.local_addr()?;
                let path = address.as_pathname().map(Into::into);
                path.map(Address::Unix)
                    .ok_or_else(|| io::ErrorKind::AddrNotAvailable.into())
            }
        }
    }

    /// The file of one in the file system.
    pub fn file(&self) -> Option<SocketFile> {
        match self.address() {
            Ok(Address::Unix(path)) => SocketFile::at(&path).ok(),
            Ok(Address::Tcp(_)) | Err(_) => None,
        }
    }

    /// The same socket once more.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(socket) => socket.try_clone().map(Self::Tcp),
            Self::Unix(socket) => socket.try_clone().map(Self::Unix),
        }
    }
}

impl AsFd for AdminSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
        }
    }
}

/// One of another process.
impl From<OwnedFd> for AdminSocket {
    fn from(file: OwnedFd) -> Self {
        let address = SockRef::from(&file).local_addr();
        match address.is_ok_and(|address| address.domain() == Domain::UNIX) {
            true => Self::Unix(file.into()),
            false => Self::Tcp(file.into()),
        }
    }
}
