//! Entity tags and dates: never a panic, tags are quoted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use shortline_web::site::conditional::{entity_tags, parse_date};

fuzz_target!(|field: &[u8]| {
    for tag in entity_tags(field) {
        let [b'"', inner @ .., b'"'] = tag.opaque else {
            panic!("{tag:?} is not quoted")
        };
        assert!(!inner.contains(&b'"'));
    }
    let _date = parse_date(field);
});
