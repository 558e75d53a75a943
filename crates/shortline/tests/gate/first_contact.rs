//! What a new gate warns of at its start, each with what to do.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::process::PROGRAM;

/// The lines of a gate that a shell starts once it has run `before`, up to one with `text`.
fn lines_until(text: &str, before: &str, flags: &[&str]) -> Vec<String> {
    let mut gate = Command::new("sh")
        .args(["-c", &format!("{before}; exec timeout 120 \"$@\""), "sh"])
        .args([PROGRAM, "gate", "postgres", "--listen", "127.0.0.1:0"])
        .args(flags)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = Vec::new();
    for line in BufReader::new(gate.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        let is_last = line.contains(text);
        lines.push(line);
        if is_last {
            break;
        }
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&gate),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    gate.wait().unwrap();
    assert!(
        lines.last().is_some_and(|line| line.contains(text)),
        "{lines:?}"
    );
    lines
}

/// The line with `text`.
fn line_with(text: &str, before: &str, flags: &[&str]) -> String {
    lines_until(text, before, flags).pop().unwrap()
}

#[test]
fn too_few_files_are_told_with_the_number_needed() {
    let upstream = ["--upstream", "127.0.0.1:1"];
    let told = line_with("files may be open", "ulimit -n 300", &upstream);
    assert!(told.contains("300 files"), "{told}");
    assert!(told.contains("enough for 86 clients"), "{told}");
    assert!(told.contains("needs 20128"), "{told}");
}

#[test]
fn a_soft_limit_of_files_is_raised_without_a_word() {
    let flags = ["--upstream", "db.invalid:1", "--connections-max", "300"];
    // This warning comes behind the one there would be.
    let last = "clients have no TLS here";
    let lines = lines_until(last, "ulimit -Hn 1000; ulimit -Sn 300", &flags);
    assert!(!lines.iter().any(|line| line.contains("files may be open")));
}

#[test]
fn a_backend_elsewhere_that_would_get_no_tls_is_told() {
    let upstream = ["--upstream", "db.invalid:1"];
    let told = line_with("clients have no TLS here", "true", &upstream);
    assert!(told.contains("--upstream-tls require"), "{told}");
}

#[test]
fn a_certificate_that_clients_will_refuse_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let mut made = rcgen::CertificateParams::default();
    made.distinguished_name
        .push(rcgen::DnType::CommonName, "db.example");
    let made = made.self_signed(&key).unwrap();
    let (cert_path, key_path) = (folder.path().join("a.crt"), folder.path().join("a.key"));
    std::fs::write(&cert_path, made.pem()).unwrap();
    std::fs::write(&key_path, key.serialize_pem()).unwrap();
    let files = [cert_path.to_str().unwrap(), key_path.to_str().unwrap()];
    let flags = ["--tls-cert", files[0], "--tls-key", files[1]];
    let flags = [&["--upstream", "127.0.0.1:1"], &flags[..]].concat();
    let told = line_with("many clients will refuse it", "true", &flags);
    assert!(told.contains("a.crt"), "{told}");
    assert!(told.contains("has no subjectAltName"), "{told}");
}
