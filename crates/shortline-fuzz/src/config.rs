//! The configuration file of `shortline serve` and `shortline gate`. Its keys are in the program, which is not a
//! library. So the program's source files are compiled in here too.

#![allow(dead_code, unreachable_pub)]

#[path = "../../shortline/src/file.rs"]
mod file_source;
#[path = "../../shortline/src/gate"]
mod gate {
    pub mod options;
}
#[path = "../../shortline/src/serve"]
mod serve {
    pub mod acme {
        pub mod keys;
    }
    pub mod options;
    pub mod routes {
        pub mod cache;
        pub mod fastcgi;
        pub mod keys;
        pub mod mirror;
        mod upstreams;
        mod values;
    }
    pub mod sites {
        pub mod keys;
        pub mod rules;
    }
}

/// Reads a whole file. An error must name the file and fit on one line.
pub fn file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let path = std::path::Path::new("site.toml");
    let read = shortline_daemon::file::parse::<file_source::File>(path, text.to_owned());
    if let Err(error) = read {
        crate::assert_one_line(&error);
        assert!(error.to_string().starts_with("site.toml:"), "{error}");
    }
}
