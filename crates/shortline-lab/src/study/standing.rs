//! The servers that stand for the papers' SRPT and FAIR, and the papers' own systems beside ours.
//!
//! FAIR is nginx if it was run, else the server nearest to it. The papers' SRPT is the kernel's bands, and their FAIR is
//! Apache.

/// The servers that may stand for FAIR. The first one that was run does.
pub const FAIR: [&str; 4] = ["nginx", "apache", "off", "fair"];
/// The same for SRPT.
pub const OURS: [&str; 5] = ["srpt", "shares", "slots", "quickfix", "bands"];
/// Servers, and what the papers had in their place.
const PAPERS: [(&str, &str); 7] = [
    ("srpt", "kernel-bands"),
    ("shares", "kernel-bands"),
    ("slots", "kernel-bands"),
    ("bands", "kernel-bands"),
    ("quickfix", "kernel-quickfix"),
    ("srrt", "kernel-srrt"),
    ("stert", "kernel-stert"),
];

/// The one that stands for FAIR among the servers that were run.
pub fn fair_of<'a>(servers: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    first_of(&FAIR, servers)
}

/// The one that stands for SRPT among them.
pub fn ours_of<'a>(servers: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    first_of(&OURS, servers)
}

/// What the papers had in a server's place, among the servers of a study. nginx stands for itself where no Apache is.
/// `None` if the study does not run it.
pub fn papers_own(server: &str, servers: &[String]) -> Option<String> {
    let is_run = |name: &str| servers.iter().any(|server| server == name);
    if server == "nginx" {
        let own = if is_run("apache") { "apache" } else { server };
        return Some(own.into());
    }
    let own = PAPERS.iter().find(|(ours, _)| *ours == server);
    match own {
        None => Some(server.into()),
        Some((_, own)) => is_run(own).then(|| (*own).into()),
    }
}

fn first_of<'a>(names: &[&str], servers: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let ran = |wanted: &&str| servers.clone().find(|name| name == wanted);
    names.iter().find_map(ran)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nginx_stands_for_fair_and_our_own_ps_last() {
        let of = |names: &[&'static str]| fair_of(names.iter().copied());
        assert_eq!(of(&["srpt", "fair", "off", "nginx"]), Some("nginx"));
        assert_eq!(of(&["srpt", "fair"]), Some("fair"));
        assert_eq!(of(&["srpt"]), None);
    }

    #[test]
    fn the_papers_had_bands_and_apache() {
        let servers = ["srpt", "kernel-bands", "nginx", "apache"].map(String::from);
        let of = |server: &str, number: usize| papers_own(server, &servers[..number]);
        assert_eq!(of("srpt", 4).as_deref(), Some("kernel-bands"));
        assert_eq!(of("srpt", 1), None);
        assert_eq!(of("nginx", 4).as_deref(), Some("apache"));
        assert_eq!(of("nginx", 3).as_deref(), Some("nginx"));
        assert_eq!(of("writers-srpt", 4).as_deref(), Some("writers-srpt"));
    }
}
