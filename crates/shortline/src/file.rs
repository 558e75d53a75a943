//! The configuration file: TOML, every key optional, unknown keys refused.

// The fuzz targets compile this file from another folder.
#[path = "file/words.rs"]
mod words;

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use shortline_daemon::file::{Keys, Words};
use shortline_daemon::keys::{all_from_text, any_number, from_text, some_from_text};
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
    #[serde(deserialize_with = "any_number")]
    pub listen: Vec<Listen>,
    /// `[uplink]`
    pub uplink: UplinkOptions,
    /// `[site]`, or several `[[site]]`.
    pub site: SiteTables,
    /// `[[route]]`, once per path.
    #[serde(deserialize_with = "any_number")]
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
    const WORDS: Words = words::WORDS;

    fn foreign(text: &str) -> Option<&'static str> {
        words::foreign(text)
    }
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
    fn what_means_only_one_thing_is_taken() {
        let read = |text: &str| {
            let parsed = shortline_daemon::file::parse::<File>("a.toml".as_ref(), text.to_owned());
            parsed.unwrap().0
        };
        let short = read(
            "[listen]\naddress = 8080\n[uplink]\nrate = \"AUTO\"\npolicy = \"SRPT\"\n[site]\nnames = \"a.org\"\nindex = \
             \"a.html\"\n[site.rule]\ntry-files = \"/a\"\n[route]\npath = \"/\"\nupstream = \"9000\"\n[admin]\naddress = \
             \":9180\"\n[cache]\nsize-max = 1000\n[gate]\nlisten = \":6432\"\npolicy = \"SJF\"\n",
        );
        let long = read(
            "[[listen]]\naddress = \"0.0.0.0:8080\"\n[uplink]\nrate = \"auto\"\npolicy = \"srpt\"\n[site]\nnames = [\"a.org\"]\n\
             index = [\"a.html\"]\n[[site.rule]]\ntry-files = [\"/a\"]\n[[route]]\npath = \"/\"\nupstream = \
             [\"127.0.0.1:9000\"]\n[admin]\naddress = \"127.0.0.1:9180\"\n[cache]\nsize-max = \"1kB\"\n[gate]\nlisten = \
             [\"0.0.0.0:6432\"]\npolicy = \"sjf\"\n",
        );
        assert_eq!(short, long);
        assert_eq!(read("\u{feff}[site]\n"), File::default());
    }

    #[test]
    fn a_wrong_value_is_told_with_line_key_and_remedy() {
        let error = error_of("[site]\nroot = \"/srv\"\n\n[uplink]\nrate = \"10mbits\"\n");
        assert!(
            error.starts_with("site.toml:5: uplink.rate: rate `10mbits`"),
            "{error}"
        );
        assert!(error.ends_with("write it like 10mbit"), "{error}");
    }

    #[test]
    fn a_wrong_type_is_told_with_line_and_key() {
        let error = error_of("[limits]\nconnections-max = \"many\"\n");
        assert!(
            error.starts_with("site.toml:2: limits.connections-max:"),
            "{error}"
        );
        let error = error_of("[limits]\nconnections-max = 0\n");
        assert!(
            error.ends_with("`0`: must be a whole number from 1 on, without quotes"),
            "{error}"
        );
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
        let told = "site.toml:2: site.server_name: unknown field `server_name`: here it is `names` of a `[[site]]`";
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
