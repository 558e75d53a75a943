//! A site of PHP programs behind nginx, run by the system's PHP-FPM. The programs are those of `tests/serve/php`.

use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::answer::Request;
use crate::bed::{Bed, Given};
use crate::compare;

const PATIENCE: Duration = Duration::from_secs(60);
const HOST: &str = "shop.example.org";

/// PHP-FPM, which ends with the test.
struct Fpm {
    folder: tempfile::TempDir,
    master: Child,
}

impl Fpm {
    /// `None`, with a line that says so, if there is no PHP-FPM.
    fn start() -> Option<Self> {
        let program =
            ["8.2", "8.4", "8.3", ""].map(|version| format!("/usr/sbin/php-fpm{version}"));
        let Some(program) = program.iter().find(|program| Path::new(program).is_file()) else {
            eprintln!("skipped: no php-fpm; scripts/setup installs it");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        let user = match rustix::process::geteuid().is_root() {
            true => "user = root\ngroup = root\n",
            false => "",
        };
        // nginx's worker is another user.
        let text = format!(
            "[global]\nerror_log = {place}/fpm.log\ndaemonize = no\n[www]\n{user}listen = {place}/php.sock\n\
             listen.mode = 0666\npm = static\npm.max_children = 3\n"
        );
        std::fs::write(folder.path().join("fpm.conf"), text).unwrap();
        std::fs::set_permissions(
            folder.path(),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        let master = Command::new(program)
            .args([
                "--no-php-ini",
                "--allow-to-run-as-root",
                "--nodaemonize",
                "--fpm-config",
            ])
            .arg(folder.path().join("fpm.conf"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let fpm = Self { folder, master };
        let until = Instant::now() + PATIENCE;
        while UnixStream::connect(fpm.socket()).is_err() {
            assert!(Instant::now() < until, "php-fpm does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(fpm)
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("php.sock")
    }
}

impl Drop for Fpm {
    fn drop(&mut self) {
        // Its processes would outlive it. Already gone is fine.
        let group = rustix::process::Pid::from_child(&self.master);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.master.wait();
    }
}

#[test]
fn a_site_of_php_programs_from_nginx() {
    let Some(fpm) = Fpm::start() else { return };
    let socket = fpm.socket().display().to_string();
    let given = Given {
        name: "shop",
        hosts: &[HOST],
        applications: &[("/run/php/php8.2-fpm.sock", socket)],
    };
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/serve/php");
    let read = |name: &str| std::fs::read(programs.join(name)).unwrap();
    let Some(bed) = Bed::of_nginx(&given, |files| {
        for name in [
            "index.php",
            "admin/index.php",
            "style.css",
            "uploads/photo.jpg",
        ] {
            files.with(&format!("shop/{name}"), read(name));
        }
        files
            .with("shop/uploads/evil.php", "<?php echo 'evil';")
            .with("shop/.env", "secret");
    }) else {
        return;
    };
    compare(
        &bed,
        &[
            Request::plain(HOST, "/hello/you"),
            Request::secure(HOST, "/"),
            Request::secure(HOST, "/hello/you?page=3"),
            Request::secure(HOST, "/hello/%C3%A4%20b"),
            Request::secure(HOST, "/index.php"),
            Request::secure(HOST, "/nothing").own_page(),
            Request::secure(HOST, "/moved"),
            Request::secure(HOST, "/admin"),
            Request::secure(HOST, "/admin/"),
            Request::secure(HOST, "/style.css"),
            Request::secure(HOST, "/uploads/photo.jpg"),
            Request::secure(HOST, "/uploads/photo.jpg/x.php"),
            Request::secure(HOST, "/uploads/evil.php"),
            Request::secure(HOST, "/form").form(b"name=eve+%26+co"),
            Request::secure(HOST, "/body").form(&[b'x'; 300_000]),
            Request::secure(HOST, "/download/3000000"),
            Request::secure(HOST, "/hello/you").method("HEAD"),
            Request::secure(HOST, "/style.css").revalidated(),
        ],
    );
}
