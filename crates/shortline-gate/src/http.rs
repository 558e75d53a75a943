//! The gate in front of a web application: `shortline gate http`, and the routes of `serve`.
//!
//! The proxy itself is `shortline_web::proxy`. It calls this module to admit each request. The
//! [`Classifier`] finds the request's type (a rule, or else method and route template), and the
//! [`Gate`] decides. The unit of work is the request, from its admission until the last byte of its
//! response has come from the backend. Time in which the backend waits for a slow client is not
//! service.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use shortline_link::{Link, LinkConfig, LinkError};
use shortline_sched::admission::Outcome;
use shortline_tls::TlsError;
use shortline_web::proxy::UpstreamOptions;
use shortline_web::proxy::admission::{Admission, Admitting, Applicant, Permit};
use shortline_web::proxy::routes::{Route, Routes};
use shortline_web::proxy::upstream::Upstream;
use shortline_web::server::{Listener, Server, ServerSnapshot};
use shortline_web::sites::Sites;
use shortline_web::{AccessLog, Clients, Limits, Settings};
use tokio::net::TcpListener;

use crate::classify::{Classifier, HttpRequest};
use crate::gate::{Admitted, Gate, Question};

/// The settings of a gate in front of a web application.
#[derive(Clone)]
pub struct HttpConfig {
    /// The backends.
    pub upstream: UpstreamOptions,
    /// Finds the types of requests.
    pub classifier: Classifier,
    /// The limits of clients.
    pub limits: Limits,
    /// The uplink that responses leave through.
    pub link: LinkConfig,
    /// The certificate and protocols, if clients speak TLS.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Receives a record of every response.
    pub access_log: Option<Arc<dyn AccessLog>>,
    /// Time that responses under way get after shutdown begins.
    pub drain_time_max: Duration,
}

/// Why the gate does not run.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The uplink cannot be used as configured.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// TLS to the backends cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A socket or thread cannot be created.
    #[error("gate http: {0}")]
    Io(#[from] io::Error),
}

/// A relay at any number of addresses. Its state can be read while it runs.
pub struct HttpRelay {
    server: Arc<Server>,
    link: Arc<Link>,
    tls: Option<Arc<rustls::ServerConfig>>,
    drain_time_max: Duration,
}

/// Admits the requests of a proxy through a gate.
pub struct GateAdmission {
    gate: Gate,
    classifier: Classifier,
}

impl HttpRelay {
    /// A relay that does not listen yet. Must be called inside a runtime.
    ///
    /// # Errors
    /// [`HttpError::Link`], [`HttpError::Tls`]
    pub fn new(config: HttpConfig, gate: Gate) -> Result<Self, HttpError> {
        let link = Link::new(config.link)?;
        let route = Route {
            admission: Some(Arc::new(GateAdmission::new(gate, config.classifier))),
            ..Route::new("/".to_owned(), Upstream::open(config.upstream)?)
        };
        let settings = Settings {
            sites: Sites::one(None, Routes::new(vec![route])),
            limits: config.limits,
            clients: Clients::default(),
            link: Arc::clone(&link),
            tells_request_id: false,
            sampling: None,
        };
        Ok(Self {
            server: Server::new(settings, config.access_log),
            link,
            tls: config.tls,
            drain_time_max: config.drain_time_max,
        })
    }

    /// The state of its connections, responses and backends.
    pub fn snapshot(&self) -> ServerSnapshot {
        self.server.snapshot()
    }

    /// Relays until `shutdown`, then lets responses finish.
    ///
    /// # Errors
    /// [`HttpError::Io`]
    pub async fn run(
        &self,
        listeners: Vec<TcpListener>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), HttpError> {
        let listeners = listeners.into_iter().map(|listener| self.prepare(listener));
        let listeners = listeners.collect::<io::Result<Vec<_>>>()?;
        let link = Arc::clone(&self.link);
        let pacer = tokio::spawn(async move { link.run().await });
        let drained = async {
            shutdown.await;
            let closed = self.server.drain(self.drain_time_max).await;
            if closed > 0 {
                tracing::warn!("closed {closed} connections with responses under way");
            }
            Ok(())
        };
        // An error ends it at once, not only when it is told to end.
        self.server.listen(listeners);
        let ended = tokio::try_join!(self.server.run(), drained);
        pacer.abort();
        ended?;
        Ok(())
    }

    fn prepare(&self, listener: TcpListener) -> io::Result<Listener> {
        let socket = listener.into_std()?;
        self.link.prepare_listener(&socket)?;
        Listener::new(Arc::new(socket.into()), self.tls.clone())
    }
}

impl GateAdmission {
    /// Finds types with `classifier` and admits through `gate`.
    pub fn new(gate: Gate, classifier: Classifier) -> Self {
        Self { gate, classifier }
    }
}

impl Admission for GateAdmission {
    fn admit<'a>(&'a self, applicant: &'a Applicant<'a>) -> Admitting<'a> {
        Box::pin(async move {
            let class = self.classifier.request(&HttpRequest {
                method: applicant.method.as_str(),
                host: applicant.host,
                path: applicant.target,
                peer: Some(applicant.peer),
                header: &|name| applicant.only(name),
            });
            let question = Question {
                tenant: class
                    .tenant
                    .map(|name| self.gate.tenant_of(&name))
                    .unwrap_or_default(),
                never_waits: class.never_waits,
                runaway: class.runaway,
                ..self.gate.type_of(&class.name).into()
            };
            let admitted = self.gate.admit(question).await?;
            Ok(Box::new(Permitted(admitted)) as Box<dyn Permit>)
        })
    }
}

struct Permitted(Admitted);

impl Permit for Permitted {
    fn pause(&mut self) {
        self.0.pause();
    }

    fn resume(&mut self) {
        self.0.resume();
    }

    fn finish(self: Box<Self>, completed: bool) {
        self.0.finish(if completed {
            Outcome::Completed
        } else {
            Outcome::Failed
        });
    }
}
