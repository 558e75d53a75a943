//! What the keys of routes become, and which are refused.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use super::fastcgi::FastCgiKeys;
use crate::file::File;

fn read(text: &str) -> Result<FastCgiKeys, String> {
    let text = format!(
        "[[route]]\npath = \"/\"\nupstream = [\"fastcgi:///a\"]\n[route.fastcgi]\n{text}\n"
    );
    let (file, _) = shortline_daemon::file::parse::<File>(Path::new("a.toml"), text)
        .map_err(|error| error.to_string())?;
    Ok(file.route[0].fastcgi.clone().unwrap())
}

#[test]
fn what_is_left_out_suits_php() {
    let settings = read("").unwrap().resolve("/");
    assert_eq!(settings.front.as_deref(), Some("/index.php"));
    assert_eq!(settings.suffix, ".php");
    let settings = read("index = \"app.php\"").unwrap().resolve("/blog/");
    assert_eq!(settings.front.as_deref(), Some("/blog/app.php"));
    let settings = read("front-controller = false").unwrap().resolve("/");
    assert_eq!(settings.front, None);
}

#[test]
fn wrong_values_come_with_a_remedy() {
    for (text, told) in [
        ("upstream-root = \"html\"", "such as /var/www/html"),
        ("index = \"a/b.php\"", "such as index.php"),
        ("index = \".php\"", "such as index.php"),
        ("suffix = \"php\"", "such as .php"),
        ("suffix = \".\"", "such as .php"),
        ("variables = { \"a=b\" = \"c\" }", "like APP_ENV"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(told), "{text}: {error}");
    }
}
