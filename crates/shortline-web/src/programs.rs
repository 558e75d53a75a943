//! Which program of a folder answers a request (FastCGI, such as PHP), and which requests are for files beside the programs.
//!
//! | the path names | answers |
//! |---|---|
//! | a program: `/a.php` | that program |
//! | something below a program: `/a.php/x` | that program, with `/x` as its `PATH_INFO` |
//! | a folder with an index program | that; without the slash a redirect to the path with it |
//! | another file, or a folder with an index file or a listing (GET and HEAD) | the files |
//! | anything else | the index program of the route's path, as front controller; 404 if the route has none |
//!
//! So a program runs only if it is a file below the folder, and its name ends as programs' names do. `/upload.jpg/x.php` names no
//! program, whatever PHP may think of it: it goes to the front controller. A path is compared as a file's is: decoded, with single
//! slashes. What no file can be called (a dotfile, `%2F`) goes to the front controller as well.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, StatusCode, header};
use shortline_base::world::run_blocking;

use crate::context::Connection;
use crate::files::paths::{FilePath, Target, TargetError, parse_target};
use crate::files::{Files, OpenError, PathKind, Plan, RequestHead, Wait, ends_with};
use crate::proxy::fastcgi::Call;

/// A folder of programs; see the module's text.
pub struct Programs {
    /// The files of the folder.
    pub files: Files,
    /// The folder as the backend names it.
    pub root: Arc<str>,
    /// How the names of programs end.
    pub suffix: String,
    /// The name of the program of a folder.
    pub index: String,
    /// The path of the program that answers what names no file, if one does.
    pub front: Option<String>,
    /// Variables that the configuration sets.
    pub set: Arc<[(String, String)]>,
}

/// What answers a request.
pub enum Found {
    /// A file, or an error.
    Answer(Plan),
    /// A program.
    Program(Program),
}

/// A program that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its path below the folder, from a slash.
    pub script: String,
    /// What follows it in the request's path.
    pub path_info: String,
}

/// Where a path leads, when only names have been looked at.
enum Way {
    Program(Program),
    Files,
    Nowhere,
}

impl Programs {
    /// What answers a request for `target`, if that is known without waiting for a disk.
    /// A file may be compressed for it if `compress` says so.
    pub fn find_now(
        &self,
        head: &Parts,
        target: &str,
        compress: bool,
        now_ns: u64,
    ) -> Option<Found> {
        let path = match path_of(target) {
            Ok(path) => path,
            Err(status) => return Some(refused(status, head)),
        };
        let asked = request_head(head, target, compress);
        if self.may_be_file(head, path.as_ref()) {
            let plan = self.files.respond_now(&asked, now_ns)?;
            if is_answer(&plan) {
                return Some(Found::Answer(plan));
            }
        }
        match self.way(path.as_ref(), reads(head), Wait::Never) {
            Err(OpenError::WouldBlock) => None,
            Ok(Way::Files) => Some(Found::Answer(self.files.respond_now(&asked, now_ns)?)),
            way => Some(found(way, head)),
        }
    }

    /// What answers a request for `target`.
    pub async fn find(
        self: &Arc<Self>,
        head: &Parts,
        target: &str,
        compress: bool,
        now_ns: u64,
    ) -> Found {
        if let Some(found) = self.find_now(head, target, compress, now_ns) {
            return found;
        }
        let path = match path_of(target) {
            Ok(path) => path,
            Err(status) => return refused(status, head),
        };
        let asked = request_head(head, target, compress);
        if self.may_be_file(head, path.as_ref()) {
            let plan = self.files.respond(&asked, now_ns).await;
            if is_answer(&plan) {
                return Found::Answer(plan);
            }
        }
        let (programs, owned, reads) = (Arc::clone(self), target.to_owned(), reads(head));
        let way = run_blocking(move || {
            let path = path_of(&owned).unwrap_or_default();
            programs.way(path.as_ref(), reads, Wait::Allowed)
        });
        // The task fails only if the runtime is shutting down.
        match way.await.unwrap_or(Err(OpenError::Broken)) {
            Ok(Way::Files) => Found::Answer(self.files.respond(&asked, now_ns).await),
            way => found(way, head),
        }
    }

    /// Whether a target may name a program.
    pub fn may_be_program(&self, target: &str) -> bool {
        path_of(target).is_ok_and(|path| path.is_some_and(|path| self.is_program(path.as_str())))
    }

    /// The program that a target names, if it is there. No front controller stands in for it.
    pub async fn named(self: &Arc<Self>, target: &str) -> Option<Program> {
        let (programs, target) = (Arc::clone(self), target.to_owned());
        let named = run_blocking(move || match path_of(&target) {
            Ok(Some(path)) => programs.below_program(&path, Wait::Allowed).ok()?,
            _ => None,
        });
        named.await.ok()?
    }

    /// What a program is told of a request over `connection`.
    pub fn call(
        &self,
        connection: &Connection,
        head: &Parts,
        program: Program,
        target: &str,
    ) -> Call {
        Call {
            root: Arc::clone(&self.root),
            script: program.script,
            path_info: program.path_info,
            target: target.to_owned(),
            version: head.version,
            client: connection.asks(&head.headers).address,
            peer: connection.ends.0,
            local: connection.ends.1,
            set: Arc::clone(&self.set),
        }
    }

    /// Whether a file is the likeliest answer: most requests are for files.
    fn may_be_file(&self, head: &Parts, path: Option<&FilePath<'_>>) -> bool {
        let is_file =
            |path: &&FilePath<'_>| !path.is_directory() && !self.is_program(path.as_str());
        reads(head) && path.filter(is_file).is_some()
    }

    fn is_program(&self, name: &str) -> bool {
        ends_with(name, &self.suffix)
    }

    fn way(&self, path: Option<&FilePath<'_>>, reads: bool, wait: Wait) -> Result<Way, OpenError> {
        let way = match path {
            Some(path) if path.is_directory() => self.of_folder(path, reads, wait)?,
            Some(path) => match self.below_program(path, wait)? {
                Some(program) => Some(Way::Program(program)),
                None => self.of_name(path, reads, wait)?,
            },
            None => None,
        };
        match (way, &self.front) {
            (Some(way), _) => Ok(way),
            (None, Some(front)) => Ok(self
                .program(front, wait)?
                .map_or(Way::Nowhere, Way::Program)),
            (None, None) => Ok(Way::Nowhere),
        }
    }

    /// The program at the beginning of a path. Nothing is below a name that is no folder, so the first such name decides.
    fn below_program(&self, path: &FilePath<'_>, wait: Wait) -> Result<Option<Program>, OpenError> {
        let text = path.as_str();
        let ends = text.match_indices('/').map(|(at, _)| at).skip(1);
        for end in ends.chain([text.len()]) {
            let (name, rest) = text.split_at(end);
            if !self.is_program(name) {
                continue;
            }
            match self.files.kind(relative(name), wait)? {
                Some(PathKind::File) => {
                    return Ok(Some(Program {
                        script: name.to_owned(),
                        path_info: rest.to_owned(),
                    }));
                }
                Some(PathKind::Directory) => {}
                None => return Ok(None),
            }
        }
        Ok(None)
    }

    fn of_folder(
        &self,
        path: &FilePath<'_>,
        reads: bool,
        wait: Wait,
    ) -> Result<Option<Way>, OpenError> {
        if let Some(program) = self.below_program(path, wait)? {
            return Ok(Some(Way::Program(program)));
        }
        let folder = path.as_str();
        if let Some(program) = self.program(&format!("{folder}{}", self.index), wait)? {
            return Ok(Some(Way::Program(program)));
        }
        Ok((reads && self.shows(folder, wait)?).then_some(Way::Files))
    }

    /// A path without a slash at its end, and without a program.
    fn of_name(
        &self,
        path: &FilePath<'_>,
        reads: bool,
        wait: Wait,
    ) -> Result<Option<Way>, OpenError> {
        if self.files.kind(path.relative(), wait)? != Some(PathKind::Directory) {
            return Ok(None);
        }
        let folder = format!("{}/", path.as_str());
        let program = self.program(&format!("{folder}{}", self.index), wait)?;
        match program {
            // The files redirect to the path with a slash.
            Some(_) if reads => Ok(Some(Way::Files)),
            Some(program) => Ok(Some(Way::Program(program))),
            None => Ok((reads && self.shows(&folder, wait)?).then_some(Way::Files)),
        }
    }

    /// Whether the files have something to show for a folder.
    fn shows(&self, folder: &str, wait: Wait) -> Result<bool, OpenError> {
        let is_there = |name: &str| Ok(self.files.kind(relative(name), wait)?.is_some());
        if self.files.lists() {
            return is_there(folder);
        }
        for index in self
            .files
            .index()
            .iter()
            .filter(|index| !self.is_program(index))
        {
            if is_there(&format!("{folder}{index}"))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn program(&self, script: &str, wait: Wait) -> Result<Option<Program>, OpenError> {
        let kind = self.files.kind(relative(script), wait)?;
        Ok((kind == Some(PathKind::File)).then(|| Program {
            script: script.to_owned(),
            path_info: String::new(),
        }))
    }
}

/// The path of a target. `None`: it names something that no file is called.
fn path_of(target: &str) -> Result<Option<FilePath<'_>>, StatusCode> {
    match parse_target(target) {
        Ok(Target::Resource { path, .. }) => Ok(Some(path)),
        Err(TargetError::Hidden(_)) => Ok(None),
        Ok(Target::Asterisk) | Err(TargetError::Malformed(_)) => Err(StatusCode::BAD_REQUEST),
    }
}

fn relative(path: &str) -> &str {
    match path.trim_matches('/') {
        "" => ".",
        relative => relative,
    }
}

/// Whether a file can answer the method. Others are for programs.
fn reads(head: &Parts) -> bool {
    [Method::GET, Method::HEAD].contains(&head.method)
}

fn request_head<'a>(head: &'a Parts, target: &'a str, compress: bool) -> RequestHead<'a> {
    RequestHead {
        method: &head.method,
        target,
        headers: &head.headers,
        compress,
    }
}

/// Whether a file is there. A redirect is for a folder, which may have a program.
fn is_answer(plan: &Plan) -> bool {
    plan.status != StatusCode::NOT_FOUND && !plan.headers.contains_key(header::LOCATION)
}

fn refused(status: StatusCode, head: &Parts) -> Found {
    Found::Answer(Plan::text(status, &head.method))
}

fn found(way: Result<Way, OpenError>, head: &Parts) -> Found {
    match way {
        Ok(Way::Program(program)) => Found::Program(program),
        Ok(Way::Files | Way::Nowhere) => refused(StatusCode::NOT_FOUND, head),
        Err(error) => refused(error.status(), head),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::files::{CacheOptions, FileCache, FilesOptions};

    struct Bed {
        folder: tempfile::TempDir,
        programs: Arc<Programs>,
    }

    fn bed(front: Option<&str>) -> Bed {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        for (name, text) in [
            ("index.php", "front"),
            ("a.php", "a"),
            ("Loud.PHP", "loud"),
            ("page.html", "page"),
            ("photo.jpg", "<?php evil();"),
            ("admin/index.php", "admin"),
            ("docs/index.html", "docs"),
            ("bare/x.txt", "x"),
            ("lib.php/real.php", "real"),
        ] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let options = FilesOptions {
            index: vec!["index.php".to_owned(), "index.html".to_owned()],
            programs: vec![".php".to_owned()],
            ..FilesOptions::default()
        };
        std::fs::write(folder.path().join("outside.php"), "outside").unwrap();
        std::os::unix::fs::symlink("../outside.php", root.join("link.php")).unwrap();
        let cache = FileCache::new(&CacheOptions::default());
        let programs = Arc::new(Programs {
            files: Files::open(&root, options, &cache).unwrap(),
            root: "/srv".into(),
            suffix: ".php".to_owned(),
            index: "index.php".to_owned(),
            front: front.map(str::to_owned),
            set: Arc::new([]),
        });
        Bed { folder, programs }
    }

    async fn told(bed: &Bed, method: &str, target: &str) -> String {
        let request = http::Request::builder().method(method).uri("/");
        let head = request.body(()).unwrap().into_parts().0;
        match bed.programs.find(&head, target, false, 0).await {
            Found::Program(program) => format!("{} {}", program.script, program.path_info),
            Found::Answer(plan) => match plan.headers.get(header::LOCATION) {
                Some(location) => format!("to {}", location.to_str().unwrap()),
                None => plan.status.as_u16().to_string(),
            },
        }
    }

    #[tokio::test]
    async fn a_path_leads_to_a_program_a_file_or_the_front_controller() {
        let bed = bed(Some("/index.php"));
        assert!(bed.folder.path().exists());
        for (target, answer) in [
            ("/", "/index.php "),
            ("/index.php", "/index.php "),
            ("/a.php?x=/b.php", "/a.php "),
            ("/a.php/b/c", "/a.php /b/c"),
            ("/a.php/", "/a.php /"),
            ("/%61.php//b", "/a.php /b"),
            ("/a.php/b.php", "/a.php /b.php"),
            ("/lib.php/real.php/x", "/lib.php/real.php /x"),
            ("/Loud.PHP", "/Loud.PHP "),
            ("/page.html", "200"),
            ("/admin", "to /admin/"),
            ("/admin/", "/admin/index.php "),
            ("/docs", "to /docs/"),
            ("/docs/", "200"),
            ("/bare", "/index.php "),
            ("/bare/", "/index.php "),
            ("/2024/hello-world", "/index.php "),
            ("/none.php", "/index.php "),
            ("/none.php/a.php", "/index.php "),
            ("/photo.jpg", "200"),
            ("/photo.jpg/x.php", "/index.php "),
            ("/photo.jpg%00.php", "400"),
            ("/photo.jpg/x%2Fy.php", "/index.php "),
            ("/link.php", "/index.php "),
            ("/.env", "/index.php "),
            ("/a.php/../photo.jpg", "400"),
            ("/lib.php", "/index.php "),
        ] {
            assert_eq!(told(&bed, "GET", target).await, answer, "{target}");
        }
        for (target, answer) in [
            ("/page.html", "/index.php "),
            ("/admin", "/admin/index.php "),
            ("/a.php/x", "/a.php /x"),
        ] {
            assert_eq!(told(&bed, "POST", target).await, answer, "{target}");
        }
    }

    #[tokio::test]
    async fn without_a_front_controller_what_is_not_there_is_not_found() {
        let bed = bed(None);
        for (target, answer) in [
            ("/", "/index.php "),
            ("/none", "404"),
            ("/none.php", "404"),
            ("/photo.jpg/x.php", "404"),
            ("/link.php", "404"),
        ] {
            assert_eq!(told(&bed, "GET", target).await, answer, "{target}");
        }
    }
}
