//! HTTP/1.1 and HTTP/2 over TCP and TLS: static files.
#![forbid(unsafe_code)]
