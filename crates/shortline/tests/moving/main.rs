//! The configurations of docs/moving.md, beside those they come from: nginx or Caddy with its own, and `shortline serve`
//! with ours, in front of the same files. Both must answer alike.
//!
//! The files are those of `docs/moving`. A test fills in a folder and ports, as an operator's machine has its own, and
//! nothing else. What is compared: [`answer::Answer`].
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used)]

mod answer;
mod applications;
mod bed;
mod features;
mod php;
#[path = "../serve/service.rs"]
mod service;

use answer::{Request, differences};
use bed::{Bed, Given};

/// Asks both servers, and tells what they answer differently.
fn compare(bed: &Bed, requests: &[Request]) {
    let mut told = Vec::new();
    for request in requests {
        let theirs = bed.theirs.ask(request);
        let ours = bed.ours.ask(request);
        for difference in differences(request, &theirs, &ours) {
            told.push(format!("{request}: {difference}"));
        }
    }
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// A move without applications.
fn of_files<'a>(name: &'a str, hosts: &'a [&'a str]) -> Given<'a> {
    Given {
        name,
        hosts,
        applications: &[],
    }
}

#[test]
fn a_static_blog_from_nginx() {
    let (blog, www) = ("blog.example.org", "www.blog.example.org");
    let Some(bed) = Bed::of_nginx(&of_files("blog", &[blog, www]), |files| {
        files
            .with("blog/index.html", "<h1>Blog</h1>\n")
            .with("blog/index.xml", "<rss/>\n")
            .with("blog/404.html", "<h1>Nothing here</h1>\n")
            .with("blog/2026/spring/index.html", "<p>Spring\n")
            .with("blog/assets/site.css", "body { margin: 0 }\n".repeat(100))
            .with("blog/assets/site.css.gz", "packed")
            .with("blog/assets/photo.jpg", vec![7; 100_000])
            .with("blog/drafts/next.html", "not yet\n");
    }) else {
        return;
    };
    compare(
        &bed,
        &[
            Request::plain(blog, "/2026/spring/?from=mail"),
            Request::plain(www, "/"),
            Request::secure(www, "/2026/?a=b"),
            Request::secure(blog, "/"),
            Request::secure(blog, "/2026/spring/"),
            Request::secure(blog, "/2026/spring"),
            Request::secure(blog, "/feed"),
            Request::secure(blog, "/assets/site.css"),
            Request::secure(blog, "/assets/site.css").with("Accept-Encoding", "gzip"),
            Request::secure(blog, "/assets/photo.jpg").with("Range", "bytes=10-99"),
            Request::secure(blog, "/assets/photo.jpg").method("HEAD"),
            Request::secure(blog, "/drafts/next.html"),
            Request::secure(blog, "/nothing").own_page(),
            Request::secure(blog, "/").revalidated(),
        ],
    );
}

#[test]
fn a_single_page_application_from_caddy() {
    let app = "app.example.org";
    let Some(bed) = Bed::of_caddy(&of_files("app", &[app]), |files| {
        files
            .with("app/index.html", "<script src=/assets/app.js></script>\n")
            .with("app/assets/app.js", "console.log(1)\n")
            .with("app/robots.txt", "User-agent: *\n");
    }) else {
        return;
    };
    compare(
        &bed,
        &[
            Request::plain(app, "/settings"),
            Request::secure(app, "/"),
            Request::secure(app, "/settings/profile?tab=2"),
            Request::secure(app, "/assets/app.js"),
            Request::secure(app, "/assets/gone.js"),
            Request::secure(app, "/robots.txt"),
            Request::secure(app, "/health"),
            Request::secure(app, "/old/page?x=1"),
            Request::secure(app, "/").revalidated(),
        ],
    );
}

#[test]
fn a_mirror_from_nginx() {
    let large = 64 << 20;
    let Some(bed) = Bed::of_nginx(&of_files("mirror", &[]), |files| {
        files
            .with("mirror/debian/dists/stable/Release", "Origin: Debian\n")
            .with("mirror/debian/pool/a.tar.gz", vec![1; 10_000])
            .with("mirror/README.txt", "mirror\n")
            .with("mirror/.private/key", "secret\n")
            .sparse("mirror/images/disc.iso", large)
            // As many bytes as a whole mirror has.
            .sparse("mirror/images/all.img", 100 << 30);
    }) else {
        return;
    };
    let host = "mirror.example.org";
    let end = format!("bytes={}-", large - 1000);
    compare(
        &bed,
        &[
            Request::plain(host, "/README.txt"),
            Request::plain(host, "/debian/dists/stable/Release"),
            Request::plain(host, "/debian/pool/a.tar.gz"),
            Request::plain(host, "/images/disc.iso"),
            Request::plain(host, "/images/disc.iso").with("Range", "bytes=5-10"),
            Request::plain(host, "/images/disc.iso").with("Range", &end),
            Request::plain(host, "/images/disc.iso").with("Range", "bytes=99999999999-"),
            Request::plain(host, "/images/disc.iso").method("HEAD"),
            Request::plain(host, "/images/all.img").method("HEAD"),
            Request::plain(host, "/images/all.img").with("Range", "bytes=107374182390-"),
            Request::plain(host, "/images").listing(),
            Request::plain(host, "/images/").listing(),
            Request::plain(host, "/nothing"),
            Request::plain(host, "/README.txt").revalidated(),
        ],
    );
}
