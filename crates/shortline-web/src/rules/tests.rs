//! Which rule applies, and what it makes of a request.
#![allow(clippy::unwrap_used)]
use http::Request;

use super::*;

fn head(method: &str, uri: &str, fields: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn when(path: &str) -> When {
    When {
        path: Some(path.parse().unwrap()),
        ..When::default()
    }
}

fn rule(path: &str) -> Rule {
    Rule {
        when: when(path),
        ..Rule::default()
    }
}

const CLIENT: Asker = Asker {
    address: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
    name: 7,
};

#[test]
fn the_first_that_matches_counts_whatever_the_path_is_spelled_like() {
    let of_method = When {
        methods: vec![Method::POST],
        ..when("/a/*")
    };
    let with_field = When {
        header: Some(("x-a".parse().unwrap(), Some("b*".parse().unwrap()))),
        ..When::default()
    };
    let rules = [of_method, when("/a/b"), when("/a/*"), with_field].map(|when| Rule {
        when,
        ..Rule::default()
    });
    let rules = Rules::new(rules.to_vec()).unwrap();
    for (method, uri, field, found) in [
        ("POST", "/a/b", "", Some(0)),
        ("GET", "/a/b", "", Some(1)),
        ("GET", "//a/%62", "", Some(1)),
        ("GET", "/a/c?d", "", Some(2)),
        ("GET", "/%61/", "", Some(2)),
        ("GET", "/a", "", None),
        ("GET", "/", "bc", Some(3)),
        ("GET", "/", "cb", None),
    ] {
        let head = head(method, uri, &[("x-a", field)]);
        assert_eq!(rules.find(&head), found, "{method} {uri}");
    }
}

#[test]
fn a_rule_behind_one_that_takes_all_of_it_is_refused() {
    let unreachable = |rules: &[Rule]| Rules::new(rules.to_vec()).err();
    let told = unreachable(&[rule("/b"), rule("/a/*"), rule("/a/b")]);
    assert_eq!(
        told,
        Some(Unreachable {
            later: 3,
            earlier: 2
        })
    );
    assert!(unreachable(&[Rule::default(), rule("/a")]).is_some());
    assert_eq!(
        unreachable(&[rule("/a/b"), rule("/a/*"), Rule::default()]),
        None
    );
    let posts = Rule {
        when: When {
            methods: vec![Method::POST],
            ..when("/a")
        },
        ..Rule::default()
    };
    assert_eq!(unreachable(&[posts.clone(), rule("/a")]), None);
    assert!(unreachable(&[rule("/a"), posts]).is_some());
}

fn location(rule: &Rule, uri: &str) -> String {
    match rule.apply(&head("GET", uri, &[("host", "a.example:81")]), CLIENT) {
        Ruled::Answered(answer) => answer.plan.headers[LOCATION].to_str().unwrap().to_owned(),
        Ruled::Goes(_) => panic!("no answer"),
    }
}

#[test]
fn a_redirect_is_filled_and_leads_nowhere_else() {
    let to = |path, to: &str| Rule {
        reply: Some(Reply::Redirect {
            to: to.parse().unwrap(),
            status: StatusCode::FOUND,
        }),
        ..rule(path)
    };
    let moved = to("/old/*", "https://new.example/{rest}{query}");
    assert_eq!(
        location(&moved, "/old/a%20b/c?d=e"),
        "https://new.example/a%20b/c?d=e"
    );
    let same = to("*", "{path}x");
    // Not `//evil.example/x`, which would be another host.
    assert_eq!(location(&same, "//evil.example/"), "/evil.example/x");
    let host = to("*", "https://www.{host}{path}");
    assert_eq!(
        location(&host, "/%0d%0aset-cookie:a"),
        "https://www.a.example/%0D%0Aset-cookie%3Aa"
    );
}

#[test]
fn networks_are_let_in_or_kept_out() {
    let mut guarded = rule("*");
    guarded.allow = vec!["192.0.2.0/24".parse().unwrap()];
    let asks = |rule: &Rule| match rule.apply(&head("GET", "/", &[]), CLIENT) {
        Ruled::Answered(answer) => Some(answer.plan.status.as_u16()),
        Ruled::Goes(_) => None,
    };
    assert_eq!(asks(&guarded), None);
    guarded.deny = vec!["192.0.2.7".parse().unwrap()];
    assert_eq!(asks(&guarded), Some(403));
    guarded.deny.clear();
    guarded.allow = vec!["10.0.0.0/8".parse().unwrap()];
    assert_eq!(asks(&guarded), Some(403));
}

#[test]
fn the_target_changes_and_keeps_what_is_not_named() {
    let target = |change, uri| {
        let rule = Rule {
            path: Some(change),
            ..rule("/api/*")
        };
        match rule.apply(&head("GET", uri, &[]), CLIENT) {
            Ruled::Goes(uri) => uri.unwrap().to_string(),
            Ruled::Answered(_) => panic!("an answer"),
        }
    };
    let strip = || PathChange::Strip("/api".to_owned());
    assert_eq!(target(strip(), "/api/a%2Fb?c"), "/a%2Fb?c");
    assert_eq!(target(strip(), "http://h/api/a"), "http://h/a");
    assert_eq!(target(strip(), "/api?c"), "/?c");
    assert_eq!(target(strip(), "/apiary"), "/apiary");
    assert_eq!(target(strip(), "/%61pi/a%20b?c"), "/a%20b?c");
    let rewrite = PathChange::Rewrite("/v2/{rest}{query}".parse().unwrap());
    assert_eq!(target(rewrite, "/api/a%20b?c"), "/v2/a%20b?c");
}

#[test]
fn fields_are_removed_then_set_then_added() {
    let value = HeaderValue::from_static;
    let name = |text: &'static str| HeaderName::from_static(text);
    let changes = Changes {
        remove: vec![name("a")],
        set: vec![(name("b"), value("2"))],
        add: vec![(name("c"), value("2")), (name("a"), value("new"))],
    };
    let mut headers = HeaderMap::new();
    for field in ["a", "b", "c"] {
        headers.insert(field, value("1"));
    }
    changes.apply(&mut headers);
    let of = |field| -> Vec<&str> {
        let values = headers.get_all(field).iter();
        values.map(|value| value.to_str().unwrap()).collect()
    };
    assert_eq!(
        (of("a"), of("b"), of("c")),
        (vec!["new"], vec!["2"], vec!["1", "2"])
    );
}

#[test]
fn a_host_is_matched_and_covered_like_a_name() {
    let of_host = |name: &str| When {
        hosts: vec![name.parse().unwrap()],
        ..When::default()
    };
    let rules = ["a.example", "*.example"].map(|name| Rule {
        when: of_host(name),
        ..Rule::default()
    });
    let ruled = Rules::new(rules.to_vec()).unwrap();
    for (host, found) in [
        ("A.example:80", Some(0)),
        ("b.example.", Some(1)),
        ("c.b.example", None),
        ("", None),
    ] {
        assert_eq!(
            ruled.find(&head("GET", "/", &[("host", host)])),
            found,
            "{host}"
        );
    }
    let [narrow, wide] = rules;
    let unreachable = Rules::new(vec![wide.clone(), narrow]).unwrap_err();
    assert_eq!((unreachable.later, unreachable.earlier), (2, 1));
    let anywhere = Rule::default();
    assert!(Rules::new(vec![wide.clone(), anywhere.clone()]).is_ok());
    assert!(Rules::new(vec![anywhere, wide]).is_err());
}

#[test]
fn a_client_cannot_take_a_rules_field_from_the_backend() {
    let rule = Rule {
        request: Changes {
            add: vec![("x-a".parse().unwrap(), "ours".parse().unwrap())],
            ..Changes::default()
        },
        ..Rule::default()
    };
    let mut headers = head(
        "GET",
        "/",
        &[
            ("connection", "close, X-A, x-b"),
            ("x-a", "theirs"),
            ("x-b", "1"),
        ],
    )
    .headers;
    rule.change(&Granted::default(), &mut headers);
    assert_eq!(headers["connection"], "close, x-b");
    assert_eq!(headers.get_all("x-a").iter().collect::<Vec<_>>(), ["ours"]);
    let mut headers = head("GET", "/", &[("connection", "x-a")]).headers;
    rule.change(&Granted::default(), &mut headers);
    assert!(!headers.contains_key("connection") && headers["x-a"] == "ours");
}
