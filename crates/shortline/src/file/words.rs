//! What messages about the configuration file say to somebody who comes from nginx, Caddy, HAProxy or PgBouncer.

use shortline_daemon::file::Words;

/// What messages say beside what the parser says.
pub const WORDS: Words = Words {
    elsewhere: ELSEWHERE,
    missing: &[
        ("address", "address = \":80\""),
        ("path", "path = \"/\""),
        ("upstream", "upstream = [\"127.0.0.1:9000\"]"),
        ("url", "url = \"127.0.0.1:9000\""),
        ("access", "access = \"/var/log/shortline/access.log\""),
    ],
    wanted: &[
        (
            "struct Listen",
            "a table: write [[listen]] and below it address = \":80\"",
        ),
        (
            "struct RouteKeys",
            "a table: write [[route]] and below it path = \"/\" and upstream = [\"127.0.0.1:9000\"]",
        ),
        (
            "a map",
            "a table of names and values, such as headers.set = { X-Frame-Options = \"DENY\" }",
        ),
    ],
};

/// What keys of other programs are called here. Only keys that are not known where they stand are looked for.
const ELSEWHERE: &[(&str, &str)] = &[
    ("listen", "`address` of a `[[listen]]`, or of `[admin]`"),
    ("bind", "`address` of a `[[listen]]`"),
    (
        "port",
        "`address` of a `[[listen]]`, such as address = \":8080\"",
    ),
    ("addr", "`address` of a `[[listen]]`"),
    ("root", "`root` of `[site]`"),
    ("folder", "`root` of `[site]`"),
    ("http", "a `[[site]]` with its `[[listen]]`"),
    ("frontend", "a `[[listen]]`, and a `[[site]]` for its names"),
    ("backend", "`upstream` of a `[[route]]`"),
    ("upstreams", "`upstream` of a `[[route]]`"),
    ("upstream", "`upstream` of a `[[route]]`, or of `[gate]`"),
    ("gzip", "`compress` of `[site]`"),
    ("encode", "`compress` of `[site]`"),
    ("bandwidth", "`rate` of `[uplink]`"),
    ("limit_req", "`rate` of a `[[site.rule]]`"),
    (
        "level",
        "nothing: warnings and errors are always told. `access` of `[log]` is the access log",
    ),
    (
        "error_log",
        "nothing: warnings and errors go to standard error",
    ),
    (
        "worker_processes",
        "nothing: there is a thread for each processor",
    ),
    ("keepalive_timeout", "`idle-time-max` of `[limits]`"),
    ("default_server", "a `[[site]]` without `names`"),
    ("error_page", "`error-page` of `[site]`"),
    ("basicauth", "`basic-auth` of a `[[site.rule]]`"),
    ("auth_basic", "`basic-auth` of a `[[site.rule]]`"),
    (
        "pgbouncer",
        "`[gate]`: `shortline gate import FILE` translates pgbouncer.ini",
    ),
    (
        "databases",
        "`upstream` of `[gate]`: `shortline gate import FILE` translates pgbouncer.ini",
    ),
    (
        "listen_addr",
        "`listen` of `[gate]`, such as listen = \":6432\"",
    ),
    (
        "listen_port",
        "`listen` of `[gate]`, such as listen = \":6432\"",
    ),
    ("default_pool_size", "`pool-size` of `[gate]`"),
    ("max_client_conn", "`connections-max` of `[gate]`"),
    ("query_wait_timeout", "`wait-max` of `[gate]`"),
    (
        "auth_type",
        "nothing: the gate does as `pool-users` of `[gate]` says",
    ),
    ("auth_query", "`pool-auth-query` of `[gate]`"),
    ("server_idle_timeout", "`pool-idle-max` of `[gate]`"),
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

/// What to do with another program's configuration.
pub fn foreign(text: &str) -> Option<&'static str> {
    let lines = || {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
    };
    let begins = |words: &[&str]| {
        lines().any(|line| words.contains(&line.split_whitespace().next().unwrap_or("")))
    };
    let first = lines().next().unwrap_or("");
    if lines().any(|line| line.starts_with("[pgbouncer]") || line.starts_with("[databases]")) {
        return Some(
            "is PgBouncer's configuration: `shortline gate import pgbouncer.ini` translates it",
        );
    }
    if lines().any(|line| line.starts_with("%include")) {
        return Some(
            "is no TOML; PgBouncer's configuration is translated by `shortline gate import pgbouncer.ini`",
        );
    }
    if first.starts_with('{') && !first.ends_with('{')
        || first == "{" && text.trim_end().ends_with('}') && text.contains("\":")
    {
        return Some(
            "is JSON, and the configuration is TOML: docs/moving.md has Caddy's words beside ours",
        );
    }
    if lines().any(|line| line.ends_with(';')) && lines().any(|line| line.ends_with('{')) {
        return Some(
            "is nginx's configuration, and ours is TOML: docs/moving.md has its words beside ours",
        );
    }
    if lines().any(|line| line.ends_with(" {")) || first == "{" {
        return Some(
            "is like Caddy's configuration, and ours is TOML: docs/moving.md has its words beside ours",
        );
    }
    if begins(&["frontend", "backend", "defaults"]) {
        return Some(
            "is like HAProxy's configuration, and ours is TOML: docs/moving.md tells how a site moves",
        );
    }
    if lines().all(|line| line.ends_with(':') || line.contains(": ") || line.starts_with("- ")) {
        return Some(
            "is like YAML, and the configuration is TOML: write [TABLE] and below it KEY = VALUE",
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_of_other_programs_are_known() {
        for (text, told) in [
            ("http {\n  server {\n    listen 80;\n  }\n}\n", "nginx's"),
            ("example.org {\n\troot * /srv\n}\n", "Caddy's"),
            ("{\"apps\": {}}\n", "JSON"),
            ("# c\nfrontend www\n  bind *:80\n", "HAProxy's"),
            ("[databases]\na = host=b\n", "PgBouncer's"),
            ("site:\n  root: /srv\n", "YAML"),
        ] {
            assert!(
                foreign(text).is_some_and(|what| what.contains(told)),
                "{text}"
            );
        }
        assert_eq!(foreign("[site]\nroot = /srv\n"), None);
    }
}
