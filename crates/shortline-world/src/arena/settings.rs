//! The server's settings in a world: two sites, and routes to backends of each kind.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use shortline_link::Link;
use shortline_web::compress::Compress;
use shortline_web::files::{CacheOptions, FileCache, Files, FilesOptions};
use shortline_web::programs::Programs;
use shortline_web::proxy::routes::{Route, Routes};
use shortline_web::proxy::upstream::Upstream;
use shortline_web::proxy::{RetryLimit, UpstreamAddress, UpstreamOptions};
use shortline_web::response_cache::{ResponseCache, ResponseCacheOptions};
use shortline_web::rules::pages::{Errors, Page, Pages};
use shortline_web::rules::{Changes, Rule, Rules};
use shortline_web::sites::{Site, Sites};
use shortline_web::{Clients, Limits, Settings};

use crate::backend;
use crate::content::Content;
use crate::folder::{self, Folder};
use crate::scenario::{Behind, Host, KEPT_BYTES_MAX};

/// The limits on bytes of a connection to a backend: of a response that waits for its client, and of one read.
pub const BUFFER_BYTES_MAX: usize = 32 << 10;
/// That of one read.
pub const READ_BYTES_MAX: usize = 16 << 10;
/// The longest body of a response that is kept. It is held while it comes, however slow its client is.
pub const KEPT_RESPONSE_BYTES_MAX: usize = 64 << 10;
/// How long a request may wait for a connection to a backend: less than a run goes on.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(300);

/// The time limits. They are shorter than a server's, so that a run reaches all of them.
const LIMITS: Limits = Limits {
    connections_max: 1_000,
    connections_per_address_max: 1_000,
    header_bytes_max: 8_192,
    header_fields_max: 100,
    header_time_max: Duration::from_secs(4),
    idle_time_max: Duration::from_secs(300),
    stall_time_max: Duration::from_secs(20),
    streams_max: 128,
    disk_reads_max: 2,
    compressions_max: 64,
};

/// What settings are made of, however often they are exchanged.
pub struct Ground {
    /// The link.
    pub link: Arc<Link>,
    /// The first site's files.
    pub folder: Folder,
    /// The second site's.
    pub second: Folder,
    /// The responses that are kept.
    pub cache: Arc<ResponseCache>,
    /// The most connections to a backend.
    pub backend_connections_max: usize,
}

impl Ground {
    /// The ground of a world with this link.
    ///
    /// # Panics
    /// No folder can be made.
    pub fn new(link: Arc<Link>, backend_connections_max: usize) -> Self {
        let cache = ResponseCache::new(ResponseCacheOptions {
            response_bytes_max: KEPT_RESPONSE_BYTES_MAX,
            wait_time_max: Duration::from_secs(1),
            ..ResponseCacheOptions::default()
        });
        Self {
            link,
            folder: Folder::new().expect("a folder for the site's files"),
            second: Folder::of_second().expect("a folder for the second site's files"),
            cache,
            backend_connections_max,
        }
    }

    /// New settings, and the groups of backends that are theirs.
    pub fn settings(&self) -> (Settings, Vec<Arc<Upstream>>) {
        let files = FileCache::new(&CacheOptions {
            file_bytes_max: KEPT_BYTES_MAX,
            ..CacheOptions::default()
        });
        let open = |folder: &Folder| {
            let options = FilesOptions {
                precompressed: false,
                programs: vec![".php".to_owned()],
                ..FilesOptions::default()
            };
            Files::open(folder.path(), options, &files).expect("a folder of our own can be served")
        };
        let (routes, upstreams) = self.routes(&|| open(&self.folder));
        let sites = vec![
            site(&[], open(&self.folder), routes.clone()),
            Site {
                rules: says_its_name(),
                pages: pages(),
                ..site(
                    &["second.example", "*.second.example"],
                    open(&self.second),
                    routes,
                )
            },
        ];
        let settings = Settings {
            sites: Sites::new(sites).expect("their names differ"),
            limits: LIMITS,
            clients: Clients::default(),
            link: Arc::clone(&self.link),
            tells_request_id: false,
            sampling: None,
        };
        (settings, upstreams)
    }

    fn routes(&self, files: &dyn Fn() -> Files) -> (Routes, Vec<Arc<Upstream>>) {
        let tcp = |host: &str, port| UpstreamAddress::Tcp {
            host: host.to_owned(),
            port,
        };
        let h2c = |host: &str, port| UpstreamAddress::H2c {
            host: host.to_owned(),
            port,
        };
        let http1 = self.upstream(&[
            tcp("sound", backend::SOUND_PORT),
            tcp("flaky", backend::FLAKY_PORT),
        ]);
        let http2 = self.upstream(&[
            h2c("sound", backend::SOUND_HTTP2_PORT),
            h2c("flaky", backend::FLAKY_HTTP2_PORT),
        ]);
        let not_http2 = self.upstream(&[h2c("other", backend::NOT_HTTP2_PORT)]);
        let fastcgi = self.upstream(&[UpstreamAddress::FastCgiTcp {
            host: "php".to_owned(),
            port: backend::FASTCGI_PORT,
        }]);
        let route = |path: &str, upstream: &Arc<Upstream>| {
            Route::new(path.to_owned(), Arc::clone(upstream))
        };
        let routes = vec![
            route(Behind::Http1.route(), &http1),
            route(Behind::Texts.route(), &http1),
            route(Behind::Http2.route(), &http2),
            route(Behind::NotHttp2.route(), &not_http2),
            Route {
                programs: Some(Arc::new(programs(files()))),
                ..route(Behind::FastCgi.route(), &fastcgi)
            },
            Route {
                cache: Some(Arc::clone(&self.cache)),
                ..route("/kept", &http1)
            },
        ];
        (Routes::new(routes), vec![http1, http2, not_http2, fastcgi])
    }

    fn upstream(&self, addresses: &[UpstreamAddress]) -> Arc<Upstream> {
        let upstream = Upstream::open(UpstreamOptions {
            backends: addresses.iter().cloned().map(Into::into).collect(),
            first_byte_time_max: Duration::from_secs(3),
            connect_time_max: CONNECT_TIME_MAX,
            connections_max: self.backend_connections_max,
            idle_connections_max: 2,
            buffer_bytes_max: BUFFER_BYTES_MAX,
            response_head_bytes_max: READ_BYTES_MAX,
            // One that refuses requests must not use up what others need.
            retries: RetryLimit {
                share: 1.0,
                least: 1_000,
            },
            ..UpstreamOptions::default()
        });
        upstream.expect("backends without TLS need nothing")
    }
}

fn site(names: &[&str], files: Files, routes: Routes) -> Site {
    let names = names.iter().map(|name| name.parse());
    let names: Result<Vec<_>, _> = names.collect();
    Site {
        names: names.expect("they are names"),
        compress: Compress::ALL,
        ..Site::plain(Some(files), routes)
    }
}

fn programs(files: Files) -> Programs {
    Programs {
        files,
        root: "/srv".into(),
        suffix: ".php".to_owned(),
        index: "index.php".to_owned(),
        front: Some(format!("/{}", folder::PROGRAM)),
        set: Arc::from([]),
    }
}

/// A rule for all requests of a site.
fn says_its_name() -> Rules {
    let name = HeaderName::from_static("x-site");
    let value = HeaderValue::from_static(Host::Second.name());
    let rule = Rule {
        response: Changes {
            set: vec![(name, value)],
            ..Changes::default()
        },
        ..Rule::default()
    };
    Rules::new(vec![rule]).expect("one rule hides no other")
}

fn pages() -> Pages {
    let text = Content::Text(folder::PAGE_KEY).piece(0, folder::PAGE_BYTES);
    Pages::new(vec![
        (Errors::Status(404), Page::Text(text.into())),
        (Errors::Class(5), Page::File("/f2".to_owned())),
    ])
}
