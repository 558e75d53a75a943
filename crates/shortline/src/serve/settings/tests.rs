//! What flags and file mean together, and which combinations are refused.
#![allow(clippy::unwrap_used)]
use clap::Parser;
use shortline_link::LinkMode;
use shortline_sched::{Aging, Growing, Policy};

use super::*;
use crate::serve::root::Root;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// The settings of flags and a file with a root named, or the error without the file's folder.
fn settings(flags: &str, file: &str) -> Result<Settings, String> {
    let flags = if flags.contains("/srv") {
        flags.to_owned()
    } else {
        format!("{flags} /srv")
    };
    as_told(&flags, file)
}

pub(super) fn as_told(flags: &str, file: &str) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.toml");
    std::fs::write(&path, file).unwrap();
    let words = std::iter::once("serve").chain(flags.split_whitespace());
    let mut line = Line::try_parse_from(words).unwrap();
    line.args.config = Some(path);
    read(&line.args).map_err(|error| {
        let folder = format!("{}/", folder.path().display());
        error.to_string().replace(&folder, "")
    })
}

fn refused(flags: &str, file: &str) -> String {
    settings(flags, file).unwrap_err()
}

#[test]
fn nothing_said_is_auto_and_shares_at_the_default_address() {
    let settings = settings("", "").unwrap();
    assert_eq!(settings.link.mode, LinkMode::Auto);
    assert_eq!(settings.link.policy.name(), "shares");
    assert_eq!(settings.listen[0].address, LISTEN_DEFAULT);
    assert!(!settings.listen_asked);
    assert_eq!(settings.limits, Limits::default());
}

#[test]
fn files_come_from_a_folder_that_is_named_and_from_nowhere_else() {
    let route = "[[route]]\npath = \"/api\"\nupstream = [\"a:1\"]\n";
    let root = |flags: &str, file: &str| as_told(flags, file).unwrap().sites[0].root.clone();
    assert_eq!(root("", route), Root::Nowhere);
    assert_eq!(root("/srv", ""), Root::Named("/srv".into()));
    let in_file = "[site]\nroot = \"/srv/www\"";
    assert_eq!(root("", in_file), Root::Named("/srv/www".into()));
    let nothing = as_told("", "[uplink]\nslots = 3").unwrap_err();
    assert!(
        nothing.starts_with("a.toml: names neither a folder nor a route"),
        "{nothing}"
    );
    let bare = Line::try_parse_from(["serve", "--slots", "3"]).unwrap();
    assert_eq!(read(&bare.args).unwrap().sites[0].root, Root::Current);
}

#[test]
fn what_is_said_of_files_without_a_folder_is_refused() {
    let route = "[[route]]\npath = \"/api\"\nupstream = [\"a:1\"]\n[site]\nlisting = true";
    let in_file = as_told("", route).unwrap_err();
    assert!(
        in_file.starts_with("a.toml:5: site.listing: is about files"),
        "{in_file}"
    );
    let route = route.replace("listing = true", "");
    let by_flag = as_told("--index a.html", &route).unwrap_err();
    assert!(by_flag.starts_with("--index: is about files"), "{by_flag}");
}

#[test]
fn a_folder_of_the_system_is_refused_wherever_it_is_named() {
    for (flags, file, expected) in [
        ("/", "", "ROOT: / is a folder of the system"),
        ("/srv/..", "", "ROOT: / is"),
        ("/etc", "", "ROOT: /etc is"),
        ("/proc/self/root", "", "ROOT: / is"),
        (
            "",
            "[site]\nroot = \"/etc/../etc\"",
            "a.toml:2: site.root: /etc is",
        ),
    ] {
        let error = as_told(flags, file).unwrap_err();
        assert!(error.starts_with(expected), "{flags} {file}: {error}");
        assert!(error.contains("--allow-system-root"), "{error}");
        let meant = as_told(&format!("{flags} --allow-system-root"), file);
        assert!(meant.is_ok(), "{flags} {file}");
    }
    let in_file = "[site]\nroot = \"/etc\"\nallow-system-root = true";
    assert_eq!(
        as_told("", in_file).unwrap().sites[0].root,
        Root::Named("/etc".into())
    );
}

#[test]
fn a_rate_that_is_found_out_has_a_floor() {
    let floor = |flags: &str, file: &str| settings(flags, file).unwrap().link.rate_min.bps();
    assert_eq!(floor("", ""), 100_000);
    let file = "[uplink]\nrate-min = \"2mbit\"";
    assert_eq!(floor("", file), 2_000_000);
    assert_eq!(floor("--uplink-rate-min 1mbit", file), 1_000_000);
    assert_eq!(floor("--uplink 1gbit", file), 100_000);
}

#[test]
fn slots_without_a_mode_are_asked_for() {
    let by_flag = settings("--slots 3", "").unwrap().link;
    let in_file = settings("", "[uplink]\nslots = 3").unwrap().link;
    for link in [by_flag, in_file] {
        assert_eq!((link.mode, link.slots_max), (LinkMode::Slots, 3));
    }
}

#[test]
fn a_rate_means_paced() {
    let by_flag = settings("--uplink 10mbit", "").unwrap().link;
    let in_file = settings("", "[uplink]\nrate = \"10mbit\"").unwrap().link;
    for link in [by_flag, in_file] {
        assert_eq!(link.mode, LinkMode::Paced);
        assert_eq!(link.rate.unwrap().bps(), 10_000_000);
    }
}

#[test]
fn flags_override_the_file() {
    let file =
        "[uplink]\nrate = \"10mbit\"\npolicy = \"fair\"\n[limits]\ndrain = \"5s\"\nstreams-max = 7";
    let settings = settings("--policy las --streams-max 9 /srv", file).unwrap();
    assert_eq!(settings.link.policy.name(), "las");
    assert_eq!(settings.limits.streams_max, 9);
    assert_eq!(settings.drain_time_max, Duration::from_secs(5));
    assert_eq!(settings.sites[0].root, Root::Named("/srv".into()));
}

#[test]
fn a_mode_by_flag_hides_what_the_file_says_of_other_modes() {
    let file = "[uplink]\nrate = \"10mbit\"\npolicy = \"fair\"";
    assert_eq!(
        settings("--link-mode off", file).unwrap().link.mode,
        LinkMode::Off
    );
    assert_eq!(
        settings("--uplink off", file).unwrap().link.mode,
        LinkMode::Off
    );
    let file = "[uplink]\nslots = 5";
    assert_eq!(
        settings("--uplink 1gbit", file).unwrap().link.mode,
        LinkMode::Paced
    );
}

#[test]
fn every_policy_is_offered_and_some_only_with_a_rate() {
    for policy in Policy::ALL {
        let flags = format!("--policy {policy}");
        let paced = settings(&format!("{flags} --uplink 10mbit"), "").unwrap();
        assert_eq!(paced.link.policy, policy);
        if ["fsp", "boost", "swift"].contains(&policy.name()) {
            let expected = format!("--policy: `{policy}` needs the uplink's rate");
            assert!(refused(&flags, "").starts_with(&expected));
        } else {
            assert_eq!(settings(&flags, "").unwrap().link.policy, policy);
        }
    }
    let bands = settings("--policy bands:1KB,1MB", "").unwrap().link.policy;
    assert_eq!(bands.to_string(), "bands:1kB,1MB");
    let slots = settings("--policy fsp --uplink 1mbit --link-mode slots", "");
    assert_eq!(slots.unwrap().link.mode, LinkMode::Slots);
    let in_file = refused("", "[uplink]\npolicy = \"swift\"");
    assert!(in_file.starts_with("a.toml:2: uplink.policy: `swift` needs"));
}

#[test]
fn bands_have_policies_and_keys_of_their_own() {
    let link = |flags: &str, file: &str| settings(flags, file).unwrap().link;
    let usual = link("--link-mode bands", "");
    assert_eq!(usual.mode, LinkMode::Bands);
    assert_eq!(usual.policy.name(), "bands");
    assert!(usual.control_band);
    let policies = [
        "bands:6",
        "bands:2kB,9kB",
        "quickfix:1kB",
        "srrt",
        "stert",
        "fcf",
    ];
    for policy in policies {
        let flags = format!("--link-mode bands --control-band=false --policy {policy}");
        let told = link(&flags, "");
        assert_eq!(told.policy.to_string(), policy);
        assert!(!told.control_band);
    }
    let swift = link("--link-mode bands --policy swift --uplink 10mbit", "");
    assert_eq!(
        (swift.mode, swift.policy.name(), swift.rate.is_some()),
        (LinkMode::Bands, "swift", true)
    );
    let file = "[uplink]\nrate = \"10mbit\"\naging = 3.0\npolicy = \"las\"";
    assert_eq!(link("--link-mode bands", file).policy.name(), "bands");
    let bands = "[uplink]\nlink-mode = \"bands\"\ncontrol-band = false\n";
    assert_eq!(link("--uplink 1gbit", bands).mode, LinkMode::Paced);
}

#[test]
fn the_writers_of_001_are_35_unless_told() {
    let link = |flags: &str| settings(flags, "").unwrap().link;
    assert_eq!(link("--link-mode writers").slots_max, 35);
    let few = link("--link-mode writers --slots 1 --policy fair");
    assert_eq!((few.mode, few.slots_max), (LinkMode::Writers, 1));
}

#[test]
fn growing_is_offered_with_a_rate_and_in_place_of_aging() {
    let urgency = |flags: &str, file: &str| settings(flags, file).unwrap().link.urgency;
    let growing = urgency("--uplink 10mbit --growing 4", "");
    assert_eq!(growing.growing().map(Growing::factor), Some(4.0));
    let file = "[uplink]\nrate = \"10mbit\"\ngrowing = 4.0";
    assert_eq!(urgency("", file), growing);
    let aging = urgency("--aging 2", file).aging().map(Aging::factor);
    assert_eq!(aging, Some(2.0));
    assert!(refused("--growing 4", "").starts_with("--growing: needs the uplink's rate"));
    let both = refused("--uplink 1mbit --growing 4 --aging 4", "");
    assert!(both.starts_with("--growing: contradicts aging"), "{both}");
}

#[test]
fn contradictions_are_told_with_their_place() {
    let cases = [
        (
            "--link-mode paced",
            "",
            "--link-mode: link mode paced needs",
        ),
        (
            "--link-mode off --policy srpt",
            "",
            "--policy: contradicts link mode off",
        ),
        (
            "--link-mode off --uplink 1gbit",
            "",
            "--uplink: contradicts link mode off",
        ),
        (
            "--uplink off --link-mode slots",
            "",
            "--uplink: `off` contradicts",
        ),
        ("--uplink 1gbit --slots 3", "", "--slots: slots contradict"),
        (
            "",
            "[uplink]\nlink-mode = \"paced\"",
            "a.toml:2: uplink.link-mode: link mode paced",
        ),
        (
            "",
            "[uplink]\n\npolicy = \"las\"\nrate = \"off\"",
            "a.toml:3: uplink.policy: contra",
        ),
        (
            "--link-mode off --growing 3",
            "",
            "--growing: contradicts link mode off",
        ),
        (
            "--link-mode bands --policy srpt",
            "",
            "--policy: `srpt` contradicts link mode bands, which has bands, quickfix, srrt,",
        ),
        (
            "--link-mode bands --uplink 1gbit",
            "",
            "--uplink: contradicts link mode bands",
        ),
        (
            "--link-mode bands",
            "[uplink]\nslots = 3\nlink-mode = \"slots\"\n[limits]\nidle-time-max = \"0s\"",
            "a.toml:5: limits.idle-time-max",
        ),
        (
            "",
            "[uplink]\nlink-mode = \"bands\"\naging = 3.0",
            "a.toml:3: uplink.aging: contradicts link mode bands",
        ),
        (
            "--control-band",
            "",
            "--control-band: contradicts link mode auto",
        ),
        (
            "--uplink 1gbit --uplink-rate-min 1mbit",
            "",
            "--uplink-rate-min: contradicts link mode paced",
        ),
        ("--quantum 0", "", "--quantum: 0B is out of range"),
        (
            "",
            "[limits]\nheader-size-max = \"1KiB\"",
            "a.toml:2: limits.header-size-max: 1KiB is",
        ),
        (
            "--idle-time-max 0s",
            "",
            "--idle-time-max: must be more than 0",
        ),
        (
            "--tls-cert a --tls-key b",
            "[[listen]]\naddress = \"[::]:1\"",
            "--tls-cert without",
        ),
        (
            "",
            "[[listen]]\naddress = \"[::]:1\"\ntls-cert = \"a\"",
            "listen [::]:1: tls-cert and",
        ),
        (
            "",
            "[[route]]\npath = \"api\"\nupstream = [\"a:1\"]",
            "a.toml:2: route.path: `api` is not a path",
        ),
        (
            "",
            "[[route]]\npath = \"/api\"\nupstream = [\"a:1\", \"b\"]",
            "a.toml:3: route.upstream: upstream `b`: has no port: write b:9000",
        ),
        (
            "",
            "[[route]]\npath = \"/api\"\nupstream = []",
            "a.toml:3: route.upstream: no backend",
        ),
        (
            "",
            "[[route]]\npath = \"/\"\nupstream = [\"a:1\"]\nidle-time-max = \"0s\"",
            "a.toml:4: route.idle-time-max: must be more than 0",
        ),
        (
            "",
            "[[route]]\npath = \"/a\"\nupstream = [\"a:1\"]\n[[route]]\npath = \"/a\"\nupstream = [\"b:1\"]",
            "a.toml:4: route /a: appears twice",
        ),
    ];
    for (flags, file, expected) in cases {
        let error = refused(flags, file);
        let bare = error
            .split_once(": ")
            .filter(|(place, _)| place.starts_with("a.toml:"));
        let is_told =
            error.starts_with(expected) || bare.is_some_and(|(_, told)| told.starts_with(expected));
        assert!(is_told, "{flags} {file}: {error}");
    }
}

#[test]
fn tls_auto_is_https_and_http_for_its_names() {
    let auto = settings("--tls-auto a.example --tls-auto b.example", "").unwrap();
    let listen = |settings: &Settings| -> Vec<(String, bool)> {
        let listen = settings.listen.iter();
        listen
            .map(|listen| (listen.address.to_string(), listen.speaks_tls()))
            .collect()
    };
    let expected = [
        ("0.0.0.0:443".to_owned(), true),
        ("0.0.0.0:80".to_owned(), false),
    ];
    assert_eq!(listen(&auto), expected);
    assert_eq!(auto.sites[0].names.len(), 2);
    assert_eq!(auto.sites[0].certificate, CertificateSource::Auto);
    assert!(auto.sites[0].plain_until_certificate);
    assert_eq!(auto.acme.directory, shortline_acme::DIRECTORY);
    let elsewhere = settings("--tls-auto a.example --listen 127.0.0.1:8443", "").unwrap();
    assert_eq!(listen(&elsewhere), [("127.0.0.1:8443".to_owned(), true)]);
    let several = as_told("--tls-auto a.b", "[[site]]\nroot = \"/srv\"\n").unwrap_err();
    assert!(several.contains("write tls = \"auto\" there"), "{several}");
    let staging = settings("--tls-auto a.b --acme-staging", "").unwrap();
    assert_eq!(staging.acme.directory, shortline_acme::DIRECTORY_STAGING);
    let explicit = "[site]\nnames = [\"a.b\"]\ntls = \"auto\"\nplain-http = \"redirect\"\n\
        [[listen]]\naddress = \"127.0.0.1:443\"\ntls = true\n";
    assert!(!settings("", explicit).unwrap().sites[0].plain_until_certificate);
}
