//! Pages in a real browser.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::client::get;
use crate::frame::scroll_width;
use crate::process::Server;

/// The width of a phone's screen in pixels.
const PHONE: u32 = 390;

/// The live page's document after its script has run for some seconds of its own time.
pub fn document(server: &Server) -> Option<String> {
    document_at(&format!("http://{}/", server.admin.unwrap()))
}

/// The same of any page.
pub fn document_at(page: &str) -> Option<String> {
    let profile = tempfile::tempdir().unwrap();
    let mut command = chromium(profile.path());
    command.args(["--dump-dom", page]);
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: chromium: {error} (scripts/setup installs it)");
            return None;
        }
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A browser without a window, with this folder for its profile.
pub fn chromium(profile: &Path) -> Command {
    let mut command = Command::new("chromium");
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--virtual-time-budget=4000",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .stderr(Stdio::null());
    command
}

/// The text of the element with that id.
pub fn text_of<'a>(document: &'a str, id: &str) -> &'a str {
    let (_, behind) = document.split_once(&format!("id=\"{id}\"")).unwrap();
    let (_, inside) = behind.split_once('>').unwrap();
    inside.split("</").next().unwrap()
}

/// The live page with what it shows now is not wider than a phone.
pub fn assert_fits_a_phone(server: &Server) {
    let text = |path: &str| String::from_utf8(get(server.admin.unwrap(), path).body).unwrap();
    let answers = serde_json::json!({ "status": text("/status"), "history": text("/history") });
    let answers = format!(
        "const ANSWERS = {}; window.fetch = async (path) => ({{ ok: true, json: async () => JSON.parse(ANSWERS[path]) }});",
        answers.to_string().replace('<', "\\u003c")
    );
    if let Some(width) = scroll_width(&text("/"), &answers, PHONE) {
        assert_eq!(width, PHONE, "the page is wider than a phone");
    }
}
