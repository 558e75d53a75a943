//! The servers of others: which program they are, and how each is told what to serve. Their configurations are in `peers/`.
//!
//! All have files or, with [`Source::Backend`], a backend; HAProxy and Envoy have a backend alone. At [`Place::Processor`] each has one
//! worker. Caddy finds out by itself how many processors it may use.

use std::path::PathBuf;

use rustix::process::{Resource, getrlimit};

use super::{Server, ServerSetup, Source, Speech, certificate, written};
use crate::place::Place;
use crate::testbed::Testbed;
use crate::{TestbedError, command};

/// Apache's processes, which share a given number of workers. 350 workers are 50 each.
const CHILDREN: u32 = 7;

/// Where Apache's modules are.
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// The program of a server, and what makes it say its version.
///
/// # Errors
/// It is not installed.
pub fn program(server: Server) -> Result<(PathBuf, &'static str), TestbedError> {
    let (name, package, version) = match server {
        Server::Apache => ("apache2", "apache2", "-v"),
        Server::H2o => ("h2o", "h2o", "-v"),
        Server::Caddy => ("caddy", "caddy", "version"),
        Server::Haproxy => ("haproxy", "haproxy", "-v"),
        Server::Envoy => ("envoy", "envoy", "--version"),
        Server::Nginx | Server::NginxBehind(_) | Server::Ours(_) => ("nginx", "nginx-light", "-v"),
    };
    Ok((command::find(name, package)?, version))
}

/// How a server is started.
///
/// # Errors
/// It is not installed, its configuration cannot be written, or it cannot serve what it should.
pub fn command_line(
    testbed: &Testbed,
    server: Server,
    setup: &ServerSetup,
) -> Result<(PathBuf, Vec<String>), TestbedError> {
    let (program, _) = program(server)?;
    let folder = testbed.scratch();
    let scratch = folder.display().to_string();
    let written = |name: &str, text: &str| written(testbed, name, text);
    let name = |ending: &str| format!("{server}-{}.{ending}", setup.port);
    let arguments: Vec<String> = match server {
        Server::Apache => {
            let conf = written(&name("conf"), &apache_configuration(&scratch, setup))?;
            vec!["-f".into(), conf, "-DFOREGROUND".into()]
        }
        Server::H2o => {
            let conf = written(&name("conf"), &h2o_configuration(&scratch, setup))?;
            vec!["-c".into(), conf, "-m".into(), "worker".into()]
        }
        Server::Caddy => {
            let conf = written(&name("caddyfile"), &caddy_configuration(&scratch, setup))?;
            ["run", "--adapter", "caddyfile", "--config", &conf]
                .map(String::from)
                .into()
        }
        Server::Haproxy => {
            let pem = setup.speech.tls.then(|| both_in_one(testbed)).transpose()?;
            let backend = backend(server, setup)?;
            let text = haproxy_configuration(&scratch, setup, backend, pem.as_deref());
            vec!["-db".into(), "-f".into(), written(&name("cfg"), &text)?]
        }
        Server::Envoy => {
            let text = envoy_configuration(&scratch, setup, backend(server, setup)?);
            let conf = written(&name("yaml"), &text)?;
            let fixed = ["-c", &conf, "-l", "error", "--disable-hot-restart"];
            let workers =
                workers(setup).map(|workers| ["--concurrency".into(), workers.to_string()]);
            let workers = workers.into_iter().flatten();
            fixed.map(String::from).into_iter().chain(workers).collect()
        }
        Server::Nginx | Server::NginxBehind(_) | Server::Ours(_) => {
            let conf = written(&name("conf"), &nginx_configuration(&scratch, setup))?;
            vec!["-p".into(), scratch, "-c".into(), conf]
        }
    };
    Ok((program, arguments))
}

/// The certificate and its key in one file, as HAProxy wants them.
fn both_in_one(testbed: &Testbed) -> Result<String, TestbedError> {
    let mut both = String::new();
    for ending in ["crt", "key"] {
        let path = certificate(testbed, ending);
        both += &std::fs::read_to_string(&path).map_err(TestbedError::file(&path))?;
    }
    written(testbed, "site.pem", &both)
}

/// The host and port of the backend of a server that has no files.
fn backend(server: Server, setup: &ServerSetup) -> Result<&str, TestbedError> {
    backend_of(setup).ok_or_else(|| TestbedError::NoFiles(server.to_string()))
}

fn backend_of(setup: &ServerSetup) -> Option<&str> {
    match &setup.source {
        Source::Backend(url) => Some(url.trim_start_matches("http://")),
        _ => None,
    }
}

/// The number of workers; `None`: as many as there are processors.
fn workers(setup: &ServerSetup) -> Option<u32> {
    matches!(setup.place, Place::Processor(_)).then_some(1)
}

fn haproxy_configuration(
    scratch: &str,
    setup: &ServerSetup,
    backend: &str,
    pem: Option<&str>,
) -> String {
    let alpn = if setup.speech.http2 {
        "h2,http/1.1"
    } else {
        "http/1.1"
    };
    let tls = pem.map(|pem| format!(" ssl crt {pem} alpn {alpn}"));
    let threads = workers(setup).map(|workers| format!("    nbthread {workers}"));
    // One towards each client and one towards the backend, and some to listen.
    let connections = setup.connections_max.min(open_files_max() / 3);
    fill_in(
        include_str!("../../peers/haproxy.cfg"),
        scratch,
        setup,
        &[
            ("@TLS@", &tls.unwrap_or_default()),
            ("@THREADS@", &threads.unwrap_or_default()),
            ("@AUTHORITY@", backend),
            ("@CONNECTIONS@", &connections.to_string()),
        ],
    )
}

fn envoy_configuration(scratch: &str, setup: &ServerSetup, backend: &str) -> String {
    let tls = if setup.speech.tls {
        include_str!("../../peers/envoy-tls.yaml")
    } else {
        ""
    };
    let (host, port) = backend.split_once(':').unwrap_or((backend, "80"));
    fill_in(
        include_str!("../../peers/envoy.yaml"),
        scratch,
        setup,
        &[
            ("@TLS@", tls),
            ("@BACKEND_HOST@", host),
            ("@BACKEND_PORT@", port),
            ("@CONNECTIONS@", &setup.connections_max.to_string()),
        ],
    )
}

fn caddy_configuration(scratch: &str, setup: &ServerSetup) -> String {
    let way = backend_of(setup).map_or_else(
        || "root * @ROOT@\n\tfile_server".to_owned(),
        |backend| format!("reverse_proxy {backend}"),
    );
    let (scheme, tls) = match setup.speech.tls {
        true => ("https", "tls @SCRATCH@/site.crt @SCRATCH@/site.key"),
        false => ("http", ""),
    };
    let special = [("@TLS@", tls), ("@SCHEME@", scheme), ("@WAY@", &way)];
    fill_in(
        include_str!("../../peers/Caddyfile"),
        scratch,
        setup,
        &special,
    )
}

fn h2o_configuration(scratch: &str, setup: &ServerSetup) -> String {
    let tls = if setup.speech.tls {
        include_str!("../../peers/h2o-tls.conf")
    } else {
        ""
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = workers(setup).map_or(processors, |workers| workers as usize);
    let backend = backend_of(setup).unwrap_or_default();
    let way = match backend {
        "" => "        file.dir: \"@ROOT@\"\n",
        _ => include_str!("../../peers/h2o-proxy.conf"),
    };
    fill_in(
        include_str!("../../peers/h2o.conf"),
        scratch,
        setup,
        &[
            ("@TLS@", tls),
            ("@WAY@", way),
            ("@WORKERS@", &workers.to_string()),
            ("@BACKEND@", backend),
            ("@CONNECTIONS@", &setup.connections_max.to_string()),
        ],
    )
}

fn nginx_configuration(scratch: &str, setup: &ServerSetup) -> String {
    let Speech { tls, http2, .. } = setup.speech;
    let options = format!(
        "{}{}",
        if tls { " ssl" } else { "" },
        if http2 { " http2" } else { "" }
    );
    let tls = if tls {
        include_str!("../../peers/nginx-tls.conf")
    } else {
        ""
    };
    let upstream = backend_of(setup).map_or(String::new(), |backend| {
        include_str!("../../peers/nginx-upstream.conf").replace("@BACKEND@", backend)
    });
    let way = match upstream.as_str() {
        "" => "root @ROOT@;",
        _ => include_str!("../../peers/nginx-proxy.conf"),
    };
    let workers = workers(setup).map_or("auto".to_owned(), |workers| workers.to_string());
    fill_in(
        include_str!("../../peers/nginx.conf"),
        scratch,
        setup,
        &[
            ("@TLS@", tls),
            ("@UPSTREAM@", &upstream),
            ("@WAY@", way),
            ("@WORKERS@", &workers),
            ("@LISTEN_OPTIONS@", &options),
            ("@USER@", user_of_nginx()),
            ("@NOFILE@", &open_files_max().to_string()),
            (
                "@CONNECTIONS@",
                &setup
                    .connections_max
                    .min(open_files_max() * 9 / 10)
                    .to_string(),
            ),
        ],
    )
}

/// Whom nginx's workers run as. In a user namespace that a user has made there is only its root, who is that user outside.
fn user_of_nginx() -> &'static str {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let last = map.split_whitespace().next_back();
    match last {
        Some("1") => "root root",
        _ => "nobody nogroup",
    }
}

fn apache_configuration(scratch: &str, setup: &ServerSetup) -> String {
    let Speech { tls, http2, .. } = setup.speech;
    let mut modules = String::new();
    let mut load = |name: &str| {
        modules += &format!("LoadModule {name}_module @MODULES@/mod_{name}.so\n");
    };
    if tls {
        load("socache_shmcb");
        load("ssl");
    }
    if http2 {
        load("http2");
    }
    // All children have the same number of threads.
    let (children, per_child, async_factor) = match setup.workers {
        Some(workers) => (CHILDREN, workers.div_ceil(CHILDREN), "0.1"),
        None => (32, 64, "16"),
    };
    let protocols = match (tls, http2) {
        (_, false) => "",
        (true, true) => "Protocols h2 http/1.1",
        (false, true) => "Protocols h2c http/1.1",
    };
    let tls = if tls {
        include_str!("../../peers/apache-tls.conf")
    } else {
        ""
    };
    fill_in(
        include_str!("../../peers/apache.conf"),
        scratch,
        setup,
        &[
            ("@PROTOCOL_MODULES@", &modules),
            ("@WORKERS@", &(children * per_child).to_string()),
            ("@PER_CHILD@", &per_child.to_string()),
            ("@ASYNC_FACTOR@", async_factor),
            ("@PROTOCOLS@", protocols),
            ("@TLS@", tls),
            ("@MODULES@", APACHE_MODULES),
        ],
    )
}

/// Fills a template. The special values go first, because they may contain placeholders themselves.
fn fill_in(template: &str, scratch: &str, setup: &ServerSetup, special: &[(&str, &str)]) -> String {
    let root = setup.root.display().to_string();
    let port = setup.port.to_string();
    let general = [
        ("@SCRATCH@", scratch),
        ("@ROOT@", &root),
        ("@ADDRESS@", &setup.address),
        ("@PORT@", &port),
    ];
    let places = special.iter().chain(&general);
    places.fold(template.to_owned(), |text, (place, value)| {
        text.replace(place, value)
    })
}

/// The hard limit of open files, to which servers raise their limits.
fn open_files_max() -> u64 {
    getrlimit(Resource::Nofile).maximum.unwrap_or(1 << 20)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::path::Path;

    fn setup(speech: Speech, source: Source) -> ServerSetup {
        ServerSetup {
            speech,
            source,
            ..ServerSetup::new(Place::Here, 8080, Path::new("/srv/www"))
        }
    }

    /// The lines with places that nobody has filled in.
    fn left(text: &str) -> Vec<&str> {
        let settings = text
            .lines()
            .filter(|line| !line.trim_start().starts_with('#') && !line.contains("\"@type\""));
        settings.filter(|line| line.contains('@')).collect()
    }

    #[test]
    fn every_place_of_the_templates_is_filled_in() {
        for (tls, http2) in [(false, false), (false, true), (true, false), (true, true)] {
            for source in [Source::Files, Source::Backend("http://127.0.0.1:99".into())] {
                let setup = setup(
                    Speech {
                        tls,
                        http2,
                        http3: false,
                    },
                    source,
                );
                for text in [
                    nginx_configuration("/tmp/x", &setup),
                    apache_configuration("/tmp/x", &setup),
                    h2o_configuration("/tmp/x", &setup),
                    caddy_configuration("/tmp/x", &setup),
                    haproxy_configuration(
                        "/tmp/x",
                        &setup,
                        "127.0.0.1:99",
                        tls.then_some("/tmp/x.pem"),
                    ),
                    envoy_configuration("/tmp/x", &setup, "127.0.0.1:99"),
                ] {
                    assert_eq!(left(&text), Vec::<&str>::new());
                }
            }
        }
    }

    #[test]
    fn a_proxy_without_files_says_so() {
        let setup = setup(Speech::default(), Source::Files);
        let error = backend(Server::Haproxy, &setup).unwrap_err().to_string();
        assert!(error.starts_with("haproxy has no files"), "{error}");
    }
}
