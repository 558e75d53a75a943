//! What stands for [`http3`](crate::http3) in a program without it: no port can be opened.

pub mod port {
    //! No ports.

    use std::io;
    use std::net::SocketAddr;
    use std::sync::Arc;

    use http::HeaderValue;

    use crate::server::Taker;

    /// One that cannot be opened.
    pub struct Port(());

    impl Port {
        /// None.
        ///
        /// # Errors
        /// Always.
        pub fn bind(_: SocketAddr) -> io::Result<Arc<Self>> {
            Err(io::Error::other("this program is built without HTTP/3"))
        }

        /// None.
        pub fn later(_: SocketAddr) -> Arc<Self> {
            Arc::new(Self(()))
        }

        /// Nothing.
        pub fn retire(&self) {}
    }

    /// Nobody is accepted.
    #[derive(Clone)]
    pub struct QuicListener(Arc<Port>);

    impl QuicListener {
        /// Nothing.
        ///
        /// # Errors
        /// Never.
        pub fn new(port: Arc<Port>, _: &rustls::ServerConfig) -> io::Result<Self> {
            Ok(Self(port))
        }

        /// The port.
        pub fn port(&self) -> &Arc<Port> {
            &self.0
        }

        /// Nothing.
        pub fn announcement(&self) -> Option<HeaderValue> {
            None
        }

        /// Nothing.
        pub async fn accept(self, _: Taker) {}
    }
}
