//! The fields in which proxies name the client.

use http::{HeaderMap, HeaderName, HeaderValue};
use shortline_web::Clients;

/// A byte that chooses the field, then its value. Only what trusted proxies said may count.
pub fn field(bytes: &[u8]) {
    let Some((&chosen, value)) = bytes.split_first() else {
        return;
    };
    let name = HeaderName::from_static(match chosen % 3 {
        0 => "x-forwarded-for",
        1 => "forwarded",
        _ => "x-real-ip",
    });
    let network = |text: &str| text.parse().expect("a network");
    let clients = Clients {
        proxies: vec![network("10.0.0.0/8"), network("fd00::/8")],
        header: name.clone(),
        ..Clients::default()
    };
    let trusted = "10.0.0.7".parse().expect("an address");
    let stranger = "192.0.2.66".parse().expect("an address");
    let asks = |peer, value: &[u8]| {
        let mut headers = HeaderMap::new();
        headers.insert(name.clone(), HeaderValue::from_bytes(value).ok()?);
        Some(clients.asks(peer, None, &headers).address)
    };
    let (Some(told), Some(of_stranger)) = (asks(trusted, value), asks(stranger, value)) else {
        return;
    };
    assert_eq!(of_stranger, stranger);
    // The end of the field decides who is named. A claim before it must change nothing.
    if !clients.proxies.iter().any(|network| network.has(told)) {
        let claimed = [b"203.0.113.9, for=203.0.113.9, ", value].concat();
        assert_eq!(asks(trusted, &claimed), Some(told));
    }
}
