//! What a name server, or somebody in its name, answers to a question for a service.

use shortline_web::proxy::service::dns::{Said, read};
use shortline_web::proxy::{BackendOptions, UpstreamAddress};

const NAME: &str = "_http._tcp.example.org";
const ID: u16 = 7;

/// An answer. Each server that it names can be one of a route, and is no more than a host and a port.
pub fn answer(bytes: &[u8]) {
    match read(bytes, ID, NAME) {
        Ok(Said::Truncated) => {}
        Ok(Said::Found(found)) => {
            assert!(!found.targets.is_empty());
            for target in found.targets {
                let text = format!("{}:{}", target.host, target.port);
                let server = text.parse::<BackendOptions>().expect("a host and a port");
                let expected = UpstreamAddress::Tcp {
                    host: target.host,
                    port: target.port,
                };
                assert_eq!(server.address, expected);
            }
        }
        Err(error) => crate::assert_one_line(&error),
    }
    // It answers one question at most.
    let others = read(bytes, ID, "_other._tcp.example.org");
    assert!(others.is_err() || read(bytes, ID, NAME).is_err());
}
