//! Which of several backends gets a request, over real sockets.

use std::net::SocketAddr;
use std::time::Duration;

use shortline_web::proxy::{BackendOptions, KeyOf, RetryLimit, StickyCookie, UpstreamOptions};

use crate::backend::Backend;
use crate::client::{Response, get, refusing, wait_for};
use crate::front::Front;

/// A backend that answers with its name.
fn named(name: &str) -> Backend {
    let length = name.len();
    Backend::answering(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}"
    ))
}

fn server(address: SocketAddr, change: impl FnOnce(&mut BackendOptions)) -> BackendOptions {
    let mut server = address.to_string().parse().unwrap();
    change(&mut server);
    server
}

fn front(servers: Vec<BackendOptions>, change: impl FnOnce(&mut UpstreamOptions)) -> Front {
    Front::with(&[], |options| {
        options.backends = servers;
        change(options);
    })
}

fn asked(front: &Front, fields: &str) -> Response {
    get(front.address, "/", fields)
}

#[test]
fn requests_are_shared_by_weight_and_a_backup_gets_none() {
    let (small, large, spare) = (named("small"), named("large"), named("spare"));
    let servers = vec![
        server(small.address, |_| ()),
        server(large.address, |one| one.weight = 3),
        server(spare.address, |one| one.backup = true),
    ];
    let front = front(servers, |_| ());
    for _ in 0..20 {
        asked(&front, "");
        front.wait_until_idle();
    }
    let heads = [&small, &large, &spare].map(|backend| backend.heads().len());
    assert_eq!(heads, [5, 15, 0]);
}

#[test]
fn a_backup_is_asked_when_no_other_answers() {
    let spare = named("spare");
    let servers = vec![
        server(refusing(), |_| ()),
        server(spare.address, |one| one.backup = true),
    ];
    let front = front(servers, |_| ());
    for _ in 0..5 {
        assert_eq!(asked(&front, "").text(), "spare");
    }
    let main = front.backend();
    assert_eq!((main.up, main.failures_total), (false, 3));
}

#[test]
fn a_cookie_keeps_a_client_at_its_backend_until_that_is_gone() {
    let (blue, green) = (named("blue"), named("green"));
    let gone = refusing();
    let servers = vec![
        server(blue.address, |one| one.id = Some("blue".to_owned())),
        server(green.address, |_| ()),
        server(gone, |one| {
            one.id = Some("gone".to_owned());
            one.weight = 0;
        }),
    ];
    let front = front(servers, |options| {
        options.sticky_cookie = Some(StickyCookie("route".to_owned()));
    });
    let mut seen = Vec::new();
    for _ in 0..2 {
        let first = asked(&front, "");
        let cookie = first.field("set-cookie").unwrap().to_owned();
        let pair = cookie.split(';').next().unwrap();
        assert!(
            cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax"),
            "{cookie}"
        );
        for _ in 0..5 {
            let again = asked(&front, &format!("Cookie: a=b; {pair}\r\n"));
            assert_eq!(again.body, first.body);
            assert_eq!(again.field("set-cookie"), None);
        }
        seen.push((first.text(), pair.to_owned()));
    }
    seen.sort();
    assert_eq!((&*seen[0].0, &*seen[1].0), ("blue", "green"));
    assert_eq!(seen[0].1, "route=blue");
    for unknown in ["route=gone", "route=red"] {
        let other = asked(&front, &format!("Cookie: {unknown}\r\n"));
        assert_eq!(other.status, 200);
        assert!(other.field("set-cookie").is_some());
    }
}

#[test]
fn requests_with_the_same_key_go_to_the_same_backend() {
    let backends = ["one", "two", "three"].map(named);
    let servers = backends.iter().map(|one| server(one.address, |_| ()));
    let front = front(servers.collect(), |options| {
        options.hash_by = Some(KeyOf::Header("x-user".parse().unwrap()));
    });
    let mut answers = Vec::new();
    for user in 0..30 {
        let asked = || {
            let answer = asked(&front, &format!("X-User: {user}\r\n")).text();
            front.wait_until_idle();
            answer
        };
        let first = asked();
        assert!((0..2).all(|_| asked() == first));
        answers.push(first);
    }
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 3);
}

#[test]
fn a_request_is_tried_at_another_backend_unless_the_limit_says_no() {
    let fine = named("fine");
    for (least, expected) in [(0, 502), (1_000_000, 200)] {
        let servers = vec![
            server(refusing(), |one| one.weight = 1000),
            server(fine.address, |_| ()),
        ];
        let front = front(servers, |options| {
            options.health.failures_max = 1000;
            options.retries = RetryLimit { share: 0.0, least };
        });
        for _ in 0..5 {
            assert_eq!(asked(&front, "").status, expected);
        }
        let retries = front.backends()[1].retries_total;
        assert_eq!(retries, if least == 0 { 0 } else { 5 });
    }
}

#[test]
fn each_address_of_a_name_is_a_backend() {
    let backend = Backend::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    let name = format!("localhost:{}", backend.address.port());
    let front = front(vec![name.parse().unwrap()], |options| {
        options.resolve_every = Some(Duration::from_millis(50));
    });
    let address = format!("{name} (127.0.0.1)");
    wait_for("the addresses", || {
        let backends = front.backends();
        backends
            .iter()
            .any(|one| one.address == address)
            .then_some(())
    });
    for _ in 0..5 {
        assert_eq!(asked(&front, "").status, 200);
    }
    let backends = front.backends();
    let own = backends.iter().find(|one| one.address == address).unwrap();
    assert!(own.requests_total > 0, "{backends:?}");
}
