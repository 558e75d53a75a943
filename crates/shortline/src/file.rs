//! The configuration file: TOML, every key optional, unknown keys refused.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use shortline_daemon::file::Keys;
use shortline_daemon::keys::{all_from_text, from_text, some_from_text};
use shortline_daemon::sockets::{Address, SocketMode};
use shortline_sched::Network;

use super::gate::options::GateOptions;
use super::serve::acme::keys::AcmeKeys;
use super::serve::options::{
    AdminOptions, CacheKeys, ClientOptions, HandoverOptions, LimitOptions, LogOptions,
    UplinkOptions,
};
use super::serve::routes::keys::RouteKeys;
use super::serve::sites::keys::SiteTables;

/// What a configuration file says.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    /// `[[listen]]`, once per address.
    pub listen: Vec<Listen>,
    /// `[uplink]`
    pub uplink: UplinkOptions,
    /// `[site]`, or several `[[site]]`.
    pub site: SiteTables,
    /// `[[route]]`, once per path.
    pub route: Vec<RouteKeys>,
    /// `[cache]`
    pub cache: CacheKeys,
    /// `[clients]`
    pub clients: ClientOptions,
    /// `[limits]`
    pub limits: LimitOptions,
    /// `[admin]`
    pub admin: AdminOptions,
    /// `[log]`
    pub log: LogOptions,
    /// `[handover]`
    pub handover: HandoverOptions,
    /// `[acme]`
    pub acme: AcmeKeys,
    /// `[gate]`
    pub gate: GateOptions,
}

/// An address, and the certificate if it speaks TLS.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Listen {
    /// Where connections are taken.
    #[serde(deserialize_with = "from_text")]
    pub address: Address,
    /// Who may connect to a Unix socket.
    #[serde(default, deserialize_with = "some_from_text")]
    pub mode: Option<SocketMode>,
    /// Whether it speaks TLS. With a certificate of its own it does.
    pub tls: Option<bool>,
    /// The certificate chain, PEM.
    pub tls_cert: Option<PathBuf>,
    /// Its key, PEM.
    pub tls_key: Option<PathBuf>,
    /// The networks of proxies that announce each client by the PROXY protocol. No others may connect.
    #[serde(default, deserialize_with = "all_from_text")]
    pub proxy_from: Option<Vec<Network>>,
    /// Whether it has HTTP/3, at the same port of UDP.
    pub http3: Option<bool>,
}

impl Keys for File {
    const ELSEWHERE: &'static [(&'static str, &'static str)] = &[
        (
            "location",
            "a `[[route]]`, or a `[[site.rule]]` with `path`",
        ),
        ("proxy_pass", "`upstream` of a `[[route]]`"),
        (
            "fastcgi_pass",
            "`upstream = [\"fastcgi:///run/php/php-fpm.sock\"]` of a `[[route]]`",
        ),
        (
            "php_fastcgi",
            "`upstream = [\"fastcgi:///run/php/php-fpm.sock\"]` of a `[[route]]`",
        ),
        ("proxy_protocol", "`proxy-from` of a `[[listen]]`"),
        ("fastcgi_param", "`variables` of a `[route.fastcgi]`"),
        ("fastcgi_index", "`index` of a `[route.fastcgi]`"),
        ("reverse_proxy", "`upstream` of a `[[route]]`"),
        ("server", "a `[[site]]`"),
        ("server_name", "`names` of a `[[site]]`"),
        ("file_server", "`root` of `[site]`"),
        (
            "alias",
            "`root` of a `[[site]]`, or `rewrite` of a `[[site.rule]]`",
        ),
        ("autoindex", "`listing` of `[site]`"),
        ("ssl_certificate", "`tls-cert`"),
        ("acme_ca", "`directory` of `[acme]`"),
        ("acme_certificate", "`tls = \"auto\"` of a `[[site]]`"),
        ("acme_eab", "`eab-kid` and `eab-key-file` of `[acme]`"),
        ("email", "`contact` of `[acme]`"),
        ("ssl_certificate_key", "`tls-key`"),
        ("ssl_client_certificate", "`client-ca` of a `[[site]]`"),
        ("ssl_verify_client", "`client-auth` of a `[[site]]`"),
        ("ssl_crl", "`client-crl` of a `[[site]]`"),
        ("return", "`redirect` or `respond` of a `[[site.rule]]`"),
        ("redir", "`redirect` of a `[[site.rule]]`"),
        ("handle_path", "`strip-prefix` of a `[[site.rule]]`"),
        ("try_files", "`try-files` of a `[[site.rule]]`"),
        ("add_header", "`headers` of a `[[site.rule]]`"),
        ("header", "`headers` of a `[[site.rule]]`"),
        ("proxy_set_header", "`request-headers` of a `[[site.rule]]`"),
        ("mirror_request_body", "`mirror` of a `[[route]]`"),
        ("limit_rate", "`bandwidth-max` of a `[[site.rule]]`"),
        ("limit_rate_after", "`bandwidth-after` of a `[[site.rule]]`"),
        ("auth_request", "`forward-auth` of a `[[site.rule]]`"),
        ("expires", "`cache-control` of a `[[site.rule]]`"),
        ("cache-file-size-max", "`file-size-max` of `[cache]`"),
        ("cache-size-max", "`size-max` of `[cache]`"),
        ("cache-files-max", "`files-max` of `[cache]`"),
        ("cache-open-files-max", "`open-files-max` of `[cache]`"),
        ("access_log", "`access` of `[log]` or `[site.log]`"),
        (
            "client_max_body_size",
            "`request-size-max` of `[site.limits]`",
        ),
        ("request_body", "`request-size-max` of `[site.limits]`"),
        (
            "connections-max",
            "`connections-max` of `[limits]`: it holds before the site is known",
        ),
        (
            "connections-per-address-max",
            "`connections-per-address-max` of `[limits]`: it holds before the site is known",
        ),
        (
            "header-size-max",
            "`header-size-max` of `[limits]`: it holds before the site is known",
        ),
        (
            "header-fields-max",
            "`header-fields-max` of `[limits]`: it holds before the site is known",
        ),
        (
            "header-time-max",
            "`header-time-max` of `[limits]`: it holds before the site is known",
        ),
        (
            "idle-time-max",
            "`idle-time-max` of `[limits]`: it holds for a connection, which may be of several sites",
        ),
        (
            "stall-time-max",
            "`stall-time-max` of `[limits]`: it holds for a connection, which may be of several sites",
        ),
        (
            "streams-max",
            "`streams-max` of `[limits]`: it holds before the site is known",
        ),
        ("log_format", "`format` of `[log]`"),
        ("pool_mode", "`pool` of `[gate]`"),
        ("auth_file", "`pool-users` of `[gate]`"),
    ];
}

impl Listen {
    /// An address without more.
    pub fn at(address: Address) -> Self {
        Self {
            address,
            mode: None,
            tls: None,
            tls_cert: None,
            tls_key: None,
            proxy_from: None,
            http3: None,
        }
    }

    /// The networks of proxies that announce each client, if there are some.
    pub fn proxies(&self) -> Option<Arc<[Network]>> {
        self.proxy_from.as_deref().map(Arc::from)
    }

    /// Whether connections begin with TLS.
    pub fn speaks_tls(&self) -> bool {
        self.tls == Some(true) || self.tls_cert.is_some()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use shortline_daemon::file::read;

    use super::*;

    fn error_of(text: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("site.toml");
        std::fs::write(&path, text).unwrap();
        let error = read::<File>(&path).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        error.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn a_wrong_value_is_told_with_line_key_and_remedy() {
        let error = error_of("[site]\nroot = \"/srv\"\n\n[uplink]\nrate = \"10mbits\"\n");
        assert!(
            error.starts_with("site.toml:5: uplink.rate: rate `10mbits`"),
            "{error}"
        );
        assert!(error.contains("10mbit,"), "{error}");
    }

    #[test]
    fn a_wrong_type_is_told_with_line_and_key() {
        let error = error_of("[limits]\nconnections-max = \"many\"\n");
        assert!(
            error.starts_with("site.toml:2: limits.connections-max:"),
            "{error}"
        );
        let error = error_of("[limits]\nconnections-max = 0\n");
        assert!(error.ends_with("expected a nonzero usize"), "{error}");
    }

    #[test]
    fn an_unknown_key_is_told_with_those_that_exist() {
        let error = error_of("[limits]\nconections-max = 5\n");
        assert!(
            error.starts_with("site.toml:2: limits.conections-max:"),
            "{error}"
        );
        assert!(error.contains("`connections-max`"), "{error}");
    }

    #[test]
    fn a_key_of_another_server_is_told_with_ours() {
        let error = error_of("[[site]]\nserver_name = \"a\"\n");
        let told = "site.toml:2: site.server_name: unknown field `server_name`: here it is `names` of a `[[site]]`;";
        assert!(error.starts_with(told), "{error}");
        let error = error_of("[site]\ncache-size-max = \"1MB\"\n");
        assert!(
            error.contains("here it is `size-max` of `[cache]`"),
            "{error}"
        );
    }

    #[test]
    fn an_array_of_tables_is_searched_too() {
        let error =
            error_of("[[listen]]\naddress = \"0.0.0.0:80\"\n[[listen]]\naddress = \"localhost\"\n");
        assert!(error.starts_with("site.toml:4: listen.address:"), "{error}");
    }

    #[test]
    fn broken_toml_is_told_with_its_line() {
        let error = error_of("[uplink]\nrate = \n");
        assert!(error.starts_with("site.toml:2:"), "{error}");
    }
}
