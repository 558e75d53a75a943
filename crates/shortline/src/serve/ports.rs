//! The addresses that the server listens on. A reload may add some, give some up, and change what they speak.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::sign::CertifiedKey;
use shortline_acme::Served;
use shortline_command::CommandError;
use shortline_daemon::sockets::{Address, SocketFile, set_mode};
use shortline_tls::{Certificate, NamedCertificates, Shown};
use shortline_web::http3::port::Port as UdpPort;
use shortline_web::server::{ALPN, Listener, Socket};

use super::settings::Settings;
use super::sockets::{Bound, bind};
use crate::file::Listen;

/// A listening socket, and what it speaks.
#[derive(Clone)]
pub struct Port {
    /// Its settings.
    pub listen: Listen,
    /// No option names it: whoever started the process opened it.
    pub is_unnamed: bool,
    certificate: Option<Arc<Certificate>>,
    listener: Listener,
    /// The file of a Unix socket.
    file: Option<SocketFile>,
}

/// A key for a certificate that goes on being shown.
type NewKey = (Arc<Certificate>, CertifiedKey);

/// What a reload makes of the ports.
pub struct Changed {
    /// All ports from now on.
    pub ports: Vec<Port>,
    /// The keys of those that stay.
    pub keys: Vec<NewKey>,
}

impl Port {
    /// A port at a socket.
    ///
    /// # Errors
    /// [`CommandError::Failure`]: the certificate cannot be used.
    pub fn open(bound: Bound, named: &Arc<NamedCertificates>) -> Result<Self, CommandError> {
        let key = load_key(&bound.listen)?;
        let udp = match bound.listen.http3 {
            // The process before closes it once its connections have ended.
            Some(true) if bound.is_inherited => Some(UdpPort::later(address(&bound.socket)?)),
            Some(true) => Some(bind_udp(&bound.socket)?),
            _ => None,
        };
        let socket = Arc::new(bound.socket);
        Self::at(socket, bound.listen, bound.is_unnamed, key, (named, udp))
    }

    fn at(
        socket: Arc<Socket>,
        listen: Listen,
        is_unnamed: bool,
        key: Option<CertifiedKey>,
        (named, udp): (&Arc<NamedCertificates>, Option<Arc<UdpPort>>),
    ) -> Result<Self, CommandError> {
        let certificate = key.map(Certificate::new);
        let file = match &listen.address {
            Address::Unix(path) => {
                set_mode(path, listen.mode.unwrap_or_default())?;
                SocketFile::at(path).ok()
            }
            Address::Tcp(_) => None,
        };
        let tls = tls(&listen, certificate.as_ref(), named)?;
        Ok(Self {
            listener: Listener::new(socket, tls)
                .and_then(|listener| listener.beside(udp))
                .map_err(CommandError::failure)?
                .behind(listen.proxies()),
            listen,
            is_unnamed,
            certificate,
            file,
        })
    }

    /// The same socket with other settings, and the key of its certificate if it goes on showing the one it has.
    fn with(
        &self,
        listen: &Listen,
        named: &Arc<NamedCertificates>,
    ) -> Result<(Self, Option<NewKey>), CommandError> {
        if let Address::Unix(path) = &listen.address {
            set_mode(path, listen.mode.unwrap_or_default())?;
        }
        let key = load_key(listen)?;
        let speaks_alike =
            listen.speaks_tls() == self.listen.speaks_tls() && listen.http3 == self.listen.http3;
        if speaks_alike && key.is_some() == self.certificate.is_some() {
            let same = Self {
                listen: listen.clone(),
                listener: self.listener.clone().behind(listen.proxies()),
                ..self.clone()
            };
            return Ok((same, self.certificate.clone().zip(key)));
        }
        let socket = Arc::clone(self.listener.socket());
        let udp = match (listen.http3, self.listener.port()) {
            (Some(true), Some(port)) => Some(Arc::clone(port)),
            (Some(true), None) => Some(bind_udp(&socket)?),
            _ => None,
        };
        let port = Self::at(socket, listen.clone(), self.is_unnamed, key, (named, udp))?;
        Ok((port, None))
    }

    /// Its certificate, if it has one of its own.
    pub fn served(&self) -> Option<Served> {
        let certificate = self.certificate.clone()?;
        Some(Served {
            name: self.told_address(),
            file: self.listen.tls_cert.clone(),
            certificate,
        })
    }

    /// What the server accepts from.
    pub fn listener(&self) -> Listener {
        self.listener.clone()
    }

    /// The socket.
    pub fn socket(&self) -> &Socket {
        self.listener.socket()
    }

    /// The path of a Unix socket.
    pub fn path(&self) -> Option<&Path> {
        match &self.listen.address {
            Address::Unix(path) => Some(path),
            Address::Tcp(_) => None,
        }
    }

    /// Its address by TCP; with port 0 the kernel chose the port.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.socket() {
            Socket::Tcp(socket) => socket.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    /// Removes the file of a Unix socket that nobody listens on from now on.
    pub fn remove_file(&self) {
        self.file.iter().for_each(SocketFile::remove);
    }

    /// Where it listens; with port 0 the kernel chose the port.
    fn told_address(&self) -> String {
        let address = self.address().map(|address| address.to_string());
        address.unwrap_or_else(|| self.listen.address.to_string())
    }

    /// Says where it listens.
    pub fn announce(&self) {
        tracing::info!("listening on {}", self.told());
    }

    /// The address and its protocol.
    pub fn told(&self) -> String {
        format!("{} ({})", self.told_address(), self.protocols())
    }

    fn protocols(&self) -> &'static str {
        match (self.listen.speaks_tls(), self.listen.http3) {
            (_, Some(true)) => "https, http3",
            (true, _) => "https",
            (false, _) => "http",
        }
    }

    fn is_at_socket_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.listener.socket(), other.listener.socket())
    }
}

/// The ports that `settings` ask for. Sockets at the same addresses stay, and those that no option names.
///
/// # Errors
/// [`CommandError::Failure`]: an address or a certificate cannot be used. Nothing has changed then.
pub fn changed(
    before: &[Port],
    settings: &Settings,
    named: &Arc<NamedCertificates>,
) -> Result<Changed, CommandError> {
    let (unnamed, mut left): (Vec<&Port>, Vec<&Port>) =
        before.iter().partition(|port| port.is_unnamed);
    let binds = settings.listen_asked || unnamed.is_empty();
    let mut changed = Changed {
        ports: Vec::new(),
        keys: Vec::new(),
    };
    for port in unnamed {
        changed.add(port.with(&port.listen, named)?);
    }
    for listen in &settings.listen {
        let known = left
            .iter()
            .position(|port| port.listen.address == listen.address);
        match known.map(|place| left.remove(place)) {
            Some(port) => changed.add(port.with(listen, named)?),
            None if binds => changed.add((Port::open(new(listen)?, named)?, None)),
            None => {}
        }
    }
    Ok(changed)
}

/// The UDP port at the address of a TCP socket.
fn bind_udp(socket: &Socket) -> Result<Arc<UdpPort>, CommandError> {
    let address = address(socket)?;
    UdpPort::bind(address).map_err(|error| {
        CommandError::failure(format!(
            "cannot listen on UDP {address} for HTTP/3: {error}"
        ))
    })
}

fn address(socket: &Socket) -> Result<SocketAddr, CommandError> {
    match socket {
        Socket::Tcp(socket) => socket.local_addr().map_err(CommandError::failure),
        // The settings have refused it.
        Socket::Unix(_) => Err(CommandError::failure(
            "a socket in the file system has no UDP port",
        )),
    }
}

fn new(listen: &Listen) -> Result<Bound, CommandError> {
    Ok(Bound {
        socket: bind(listen)?,
        listen: listen.clone(),
        is_unnamed: false,
        is_inherited: false,
    })
}

impl Changed {
    fn add(&mut self, (port, key): (Port, Option<NewKey>)) {
        self.ports.push(port);
        self.keys.extend(key);
    }

    /// Says what is new and what is no more, whose files it removes.
    pub fn announce(&self, before: &[Port]) {
        let had = |port: &Port| before.iter().find(|old| old.is_at_socket_of(port));
        for port in &self.ports {
            if had(port).is_none_or(|old| old.protocols() != port.protocols()) {
                port.announce();
            }
        }
        for port in before {
            if !self.ports.iter().any(|kept| kept.is_at_socket_of(port)) {
                port.remove_file();
                tracing::info!("listening no more on {}", port.told_address());
            }
        }
    }
}

fn tls(
    listen: &Listen,
    certificate: Option<&Arc<Certificate>>,
    named: &Arc<NamedCertificates>,
) -> Result<Option<Arc<ServerConfig>>, CommandError> {
    let shown = listen.speaks_tls().then(|| Shown {
        own: certificate.cloned(),
        named: Arc::clone(named),
    });
    let config = shown.map(|shown| shown.server_config(ALPN)).transpose();
    config.map_err(CommandError::failure)
}

/// Reads the certificate of an address, if it has one of its own.
///
/// # Errors
/// [`CommandError::Failure`]: it cannot be used.
pub fn load_key(listen: &Listen) -> Result<Option<CertifiedKey>, CommandError> {
    match (&listen.tls_cert, &listen.tls_key) {
        (Some(cert), Some(key)) => shortline_tls::load(cert, key)
            .map(Some)
            .map_err(CommandError::failure),
        _ => Ok(None),
    }
}
