//! The name servers of the system: the lines `nameserver ADDRESS` of `/etc/resolv.conf` (resolv.conf(5)), three at most, as the C library
//! takes them. Without one it is this machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const FILE: &str = "/etc/resolv.conf";
const SERVERS_MAX: usize = 3;
const PORT: u16 = 53;

/// The name servers. The file is read each time, so that a change counts.
pub fn of_the_system() -> Vec<SocketAddr> {
    let text = std::fs::read_to_string(FILE).unwrap_or_default();
    let servers = read(&text);
    match servers.is_empty() {
        true => vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT)],
        false => servers,
    }
}

fn read(text: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let mut words = line.split_whitespace();
        let address = (words.next()? == "nameserver").then(|| words.next())??;
        // Names of interfaces behind `%` belong to addresses that are of one link only.
        let address: IpAddr = address.parse().ok()?;
        Some(SocketAddr::new(address, PORT))
    };
    text.lines().filter_map(server).take(SERVERS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_name_no_server_are_passed_over() {
        let text = "# nameserver 192.0.2.9\nsearch example.org\nnameserver 192.0.2.1\n nameserver\t2001:db8::1 # x\n\
                    nameserver\nnameserver fe80::1%eth0\nnameservers 192.0.2.8\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n";
        let read: Vec<String> = read(text).iter().map(SocketAddr::to_string).collect();
        assert_eq!(read, ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.2:53"]);
        assert!(super::read("").is_empty());
    }
}
