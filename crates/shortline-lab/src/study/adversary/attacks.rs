//! The attacks by name, and the servers that cannot be tested with one.

use super::surface::Surface;
use shortline_testbed::attacker::Way;
use shortline_testbed::server::Server;

/// One attack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attack {
    /// Its name.
    pub name: &'static str,
    /// The attacker's behaviour and its number of connections. `None` without an attacker.
    pub on_the_wire: Option<(Way, u32)>,
}

/// The name of the run without an attacker.
pub const NONE: &str = "none";
/// One honest download, with which every attack is compared.
pub const DOWNLOAD: &str = "download";
/// Very many honest downloads.
pub const MANY_DOWNLOADS: &str = "downloads-1000";

/// All of them, in turn.
pub const ATTACKS: [Attack; 13] = [
    Attack {
        name: NONE,
        on_the_wire: None,
    },
    attack(DOWNLOAD, Way::Download, 1),
    attack(MANY_DOWNLOADS, Way::Download, 1000),
    attack("ranges-1k-1", Way::Ranges(1_000), 1),
    attack("ranges-1k-8", Way::Ranges(1_000), 8),
    attack("ranges-1k-64", Way::Ranges(1_000), 64),
    attack("ranges-1k-1000", Way::Ranges(1_000), 1000),
    attack("ranges-16k-64", Way::Ranges(16_000), 64),
    attack(
        "h2-ranges-1k",
        Way::Streams {
            piece_bytes: 1_000,
            at_a_time: 64,
        },
        1,
    ),
    attack("h2-bytes-20x100", Way::Trickle { at_a_time: 100 }, 20),
    attack("never-reads-1000", Way::NeverRead, 1000),
    attack("never-acks-1000", Way::NeverAcknowledge, 1000),
    attack("connects-64", Way::Connect, 64),
];

const fn attack(name: &'static str, way: Way, connections: u32) -> Attack {
    Attack {
        name,
        on_the_wire: Some((way, connections)),
    }
}

impl Attack {
    /// Whether it asks for the large file in pieces.
    pub fn is_in_pieces(self) -> bool {
        matches!(
            self.on_the_wire,
            Some((Way::Ranges(_) | Way::Streams { .. }, _))
        )
    }

    /// Why that server cannot be tested with it. `None` if it can.
    pub fn cannot_meet(self, server: Server, surface: Surface) -> Option<&'static str> {
        let (way, _) = self.on_the_wire?;
        if surface == Surface::Route && !matches!(server, Server::Ours(_)) {
            return Some("as set up here, it has files and no route");
        }
        // Over TLS the client chooses between HTTP/1.1 and HTTP/2.
        let speaks_both = matches!(server, Server::Ours(_)) || surface == Surface::Tls;
        (matches!(way, Way::Streams { .. } | Way::Trickle { .. }) && !speaks_both).then_some(
            "as set up here, its port in the clear does not speak HTTP/2 beside the users' HTTP/1.1",
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_differ_and_those_that_are_compared_are_there() {
        let names: BTreeSet<&str> = ATTACKS.iter().map(|attack| attack.name).collect();
        assert_eq!(names.len(), ATTACKS.len());
        for name in [NONE, DOWNLOAD, MANY_DOWNLOADS] {
            assert!(names.contains(name), "{name}");
        }
        let in_pieces = ATTACKS.iter().filter(|attack| attack.is_in_pieces());
        assert!(
            in_pieces
                .clone()
                .all(|attack| attack.name.contains("ranges"))
        );
        assert_eq!(in_pieces.count(), 6);
    }

    #[test]
    fn http2_is_for_those_who_speak_it_beside_http1() {
        let h2 = ATTACKS.iter().find(|attack| attack.name.starts_with("h2"));
        let h2 = *h2.unwrap();
        let plain = |attack: Attack, server| attack.cannot_meet(server, Surface::Plain);
        assert_eq!(plain(h2, "shares".parse().unwrap()), None);
        assert!(plain(h2, Server::Nginx).is_some());
        assert_eq!(plain(ATTACKS[1], Server::Nginx), None);
        assert_eq!(h2.cannot_meet(Server::Nginx, Surface::Tls), None);
        let routed = ATTACKS[1].cannot_meet(Server::Nginx, Surface::Route);
        assert!(routed.is_some());
    }
}
