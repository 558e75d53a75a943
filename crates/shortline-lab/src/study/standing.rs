//! The servers that stand for the papers' SRPT and FAIR. FAIR is nginx if it was run, else the server
//! nearest to it.

/// The servers that may stand for FAIR. The first one that was run does.
pub const FAIR: [&str; 4] = ["nginx", "apache", "off", "fair"];
/// The same for SRPT.
pub const OURS: [&str; 5] = ["srpt", "shares", "slots", "quickfix", "bands"];

/// The one that stands for FAIR among the servers that were run.
pub fn fair_of<'a>(servers: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    first_of(&FAIR, servers)
}

/// The one that stands for SRPT among them.
pub fn ours_of<'a>(servers: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    first_of(&OURS, servers)
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
}
