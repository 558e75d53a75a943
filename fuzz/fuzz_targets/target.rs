//! Request targets: never a panic, never a path that could leave the root.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shortline_web::site::paths::{PATH_BYTES_MAX, Target, parse_target};

fuzz_target!(|raw: &str| {
    let Ok(Target::Resource { path, .. }) = parse_target(raw) else {
        return;
    };
    let text = path.as_str();
    assert!(text.starts_with('/') && text.len() <= PATH_BYTES_MAX);
    assert!(!text.contains("//") && !text.contains('\\') && !text.chars().any(char::is_control));
    assert!(!path.relative().starts_with('/'));
    for (index, segment) in text.split('/').skip(1).enumerate() {
        assert!(!segment.starts_with('.') || (index == 0 && segment == ".well-known"));
    }
    // The canonical spelling names the same path.
    let url = path.encoded();
    match parse_target(&url) {
        Ok(Target::Resource {
            path: again,
            query: None,
        }) => assert_eq!(again.as_str(), text),
        other => panic!("{url}: {other:?}"),
    }
});
