//! How a page lies in a browser of a certain width. The page is put into a frame, because a browser without a window is no
//! narrower than 500 pixels.

use std::process::{Command, Stdio};

/// Where the frame's page says how wide it is.
const RESULT: &str = "<p id=\"width\">";

/// How wide a page is that has `width` pixels, in pixels: more if it has to be moved sideways. `answers` is a script that runs
/// before the page's own. `None` without a browser.
pub fn scroll_width(page: &str, answers: &str, width: u32) -> Option<u32> {
    let folder = tempfile::tempdir().unwrap();
    let page = page.replacen("<head>", &format!("<head><script>{answers}</script>"), 1);
    let escaped = page.replace('&', "&amp;").replace('"', "&quot;");
    let around = format!(
        "<!doctype html><body>{RESULT}</p><iframe id=\"page\" width=\"{width}\" height=\"3000\" style=\"border:0\" \
         srcdoc=\"{escaped}\"></iframe><script>setInterval(() => {{ const root = \
         document.getElementById(\"page\").contentDocument.documentElement; \
         document.getElementById(\"width\").textContent = root.scrollWidth; }}, 100)</script></body>"
    );
    let file = folder.path().join("around.html");
    std::fs::write(&file, around).unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--virtual-time-budget=4000",
        ])
        .arg(format!(
            "--user-data-dir={}",
            folder.path().join("profile").display()
        ))
        .arg("--window-size=1400,3200")
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .stderr(Stdio::null())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: chromium: {error} (scripts/setup installs it)");
            return None;
        }
    };
    let document = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = document.split(RESULT).nth(1).unwrap_or_default();
    let told = told.split('<').next().unwrap_or_default();
    Some(
        told.parse()
            .unwrap_or_else(|_| panic!("no width in {document}")),
    )
}
