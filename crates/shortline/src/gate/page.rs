//! The live page of the admin endpoint: HTML, style and script in one answer. It fetches nothing
//! from elsewhere. The script asks for `/history` once and for `/status` every second.

/// The page.
pub fn html() -> String {
    include_str!("page/page.html")
        .replace("/* STYLE */", include_str!("page/page.css"))
        .replace("/* SCRIPT */", include_str!("page/page.js"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_fetched_from_elsewhere() {
        let page = html();
        for link in ["http://", "https://", "//cdn", "src=", "@import", "/* S"] {
            let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!without_namespace.contains(link), "{link}");
        }
    }
}
