//! Environments: their names, what each changes, and names that are refused.

#![allow(clippy::unwrap_used)]
use super::*;

fn setup(name: &str) -> Setup {
    name.parse::<Environment>().unwrap().0
}

#[test]
fn every_name_is_a_setup_that_can_be_and_is_kept_as_json() {
    for name in NAMES {
        let setup = setup(name);
        assert_eq!((setup.name.as_str(), setup.check()), (name, Ok(())));
        let json = serde_json::to_string(&setup).unwrap();
        assert_eq!(serde_json::from_str::<Setup>(&json).unwrap(), setup);
    }
    let error = "k".parse::<Environment>().unwrap_err().to_string();
    assert!(
        error.starts_with("setup `k`: want one of today, a, "),
        "{error}"
    );
}

#[test]
fn table_ii_changes_one_factor_a_row_and_all_in_the_last() {
    let a = setup("a");
    assert_eq!(a.groups, [ClientGroup::local()]);
    assert_eq!(a.system.initial_rto, ms(3000));
    let b = &setup("b").groups[0];
    assert_eq!(
        (b.down.delay, b.up.delay, b.up.loss),
        (ms(50), ms(50), Loss::None)
    );
    let c = &setup("c").groups[0];
    assert_eq!(c.down.loss, Loss::Uniform { probability: 0.05 });
    assert_eq!((c.up.loss, c.up.delay), (c.down.loss, ms(0)));
    let j = setup("j");
    assert_eq!(j.groups, setup("d").groups);
    assert_eq!(
        j.requests_per_connection,
        setup("e").requests_per_connection
    );
    assert_eq!(
        (j.abort.unwrap().after, j.abort.unwrap().retries),
        (ms(7000), 3)
    );
    assert_eq!(j.system, a.system);
    assert!(setup("g").system.syn_cookies);
    assert!(!setup("i").has_wan() && setup("i").packet_bytes == 536);
}

#[test]
fn only_what_is_received_is_changed_in_the_six_wans() {
    let wans = setup("wans");
    assert_eq!(wans.groups.len(), 6);
    assert!(wans.groups.iter().all(|group| group.up.is_direct()));
    let last = &wans.groups[5];
    assert_eq!((last.down.delay, last.down.jitter), (ms(350), ms(50)));
}

#[test]
fn the_five_delays_go_from_0_to_150_ms() {
    let delays = setup("delays").groups;
    let rtt = |group: &ClientGroup| group.down.delay.duration() + group.up.delay.duration();
    assert_eq!(rtt(&delays[0]), Duration::ZERO);
    assert_eq!(rtt(&delays[4]), Duration::from_millis(150));
}

#[test]
fn todays_system_changes_nothing_else() {
    let j = as_today(setup("j"));
    assert_eq!((j.name.as_str(), j.system), ("j-today", System::today()));
    assert_eq!(j.groups, setup("j").groups);
    assert_eq!(setup("j-today"), j);
    for wrong in ["-today", "k-today", "a-today-today"] {
        let error = wrong.parse::<Environment>().unwrap_err();
        assert_eq!(error, UnknownEnvironment(wrong.into()));
    }
}

#[test]
fn what_cannot_be_is_refused_with_its_place() {
    let mut wrong = setup("d");
    wrong.groups[0].up.loss = Loss::Uniform { probability: -0.1 };
    let text = wrong.check().unwrap_err().to_string();
    assert_eq!(
        text,
        "group `all`: loss -0.1 is no probability: want 0 to 1"
    );
    let mut wrong = setup("i");
    wrong.packet_bytes = 100;
    let text = wrong.check().unwrap_err().to_string();
    assert_eq!(text, "packet_bytes is 100: want 536 to 1500");
    let mut wrong = setup("a");
    wrong.groups.clear();
    assert!(wrong.check().is_err());
}
