//! The live pages of the admin endpoints: HTML, style and script in one answer. They fetch nothing
//! from elsewhere. The script asks for `/history` once and for `/status` every second. Their frame, style and common
//! script are here; what each shows is beside its command.

/// A page with this title, these sections and this script, in the frame that all pages have.
pub fn html(title: &str, sections: &str, script: &str) -> String {
    include_str!("page/frame.html")
        .replace("/* TITLE */", title)
        .replace("<!-- MAIN -->", sections)
        .replace("/* STYLE */", include_str!("page/page.css"))
        .replace("/* SHARED */", include_str!("page/shared.js"))
        .replace("/* SCRIPT */", script)
}

#[cfg(test)]
pub mod testing {
    //! What holds for each page.

    /// It links to nothing but itself.
    pub fn assert_fetches_nothing(page: &str) {
        for link in [
            "http://",
            "https://",
            "//cdn",
            "src=",
            "@import",
            "innerHTML",
            "/* S",
            "/* T",
            "<!-- MAIN",
        ] {
            let without_namespace = page.replace("http://www.w3.org/2000/svg", "");
            assert!(!without_namespace.contains(link), "{link}");
        }
    }
}
