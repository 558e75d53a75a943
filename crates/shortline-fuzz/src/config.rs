//! The configuration file of `shortline serve` and `shortline gate`. The program parses it, and the
//! program is not a library. So its source files are compiled in here too.

#![allow(dead_code, unreachable_pub)]

#[macro_use]
#[path = "../../shortline/src/keys.rs"]
mod keys;

#[path = "../../shortline/src/file.rs"]
mod file_source;
#[path = "../../shortline/src/admin"]
mod admin {
    mod hosts;
    pub use hosts::HostName;
}
#[path = "../../shortline/src/gate"]
mod gate {
    pub mod options;
}
#[path = "../../shortline/src/serve"]
mod serve {
    pub mod options;
    pub mod routes {
        pub mod keys;
        mod values;
    }
}

/// Reads a whole file. An error must name the file and fit on one line.
pub fn file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let path = std::path::Path::new("site.toml");
    if let Err(error) = file_source::parse(path, text.to_owned()) {
        crate::assert_one_line(&error);
        assert!(error.to_string().starts_with("site.toml:"), "{error}");
    }
}
