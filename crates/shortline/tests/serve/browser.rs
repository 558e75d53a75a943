//! A live page in a real browser.

use std::process::{Command, Stdio};

use crate::process::Server;

/// The page's document after its script has run for some seconds of its own time.
pub fn document(server: &Server) -> Option<String> {
    let address = format!("http://{}/", server.admin.unwrap());
    let profile = tempfile::tempdir().unwrap();
    let mut command = Command::new("chromium");
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=4000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--dump-dom", &address])
        .stderr(Stdio::null());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: chromium: {error} (scripts/setup installs it)");
            return None;
        }
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The text of the element with that id.
pub fn text_of<'a>(document: &'a str, id: &str) -> &'a str {
    let (_, behind) = document.split_once(&format!("id=\"{id}\"")).unwrap();
    let (_, inside) = behind.split_once('>').unwrap();
    inside.split("</").next().unwrap()
}
