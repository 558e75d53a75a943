//! What `packaging` puts on a machine: which files, whether systemd takes the units, and whether each configuration there is sound. The
//! package itself is installed, upgraded and purged by `scripts/package-test`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{PROGRAM, Site};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What `scripts/install` puts into a package, but for manual pages.
const FILES: [&str; 16] = [
    "/etc/apparmor.d/shortline",
    "/etc/logrotate.d/shortline",
    "/etc/shortline/shortline.toml",
    "/usr/bin/shortline",
    "/usr/lib/shortline/reload",
    "/usr/lib/systemd/system/shortline-gate@.service",
    "/usr/lib/systemd/system/shortline.service",
    "/usr/lib/systemd/system/shortline.socket",
    "/usr/lib/sysusers.d/shortline.conf",
    "/usr/share/bash-completion/completions/shortline",
    "/usr/share/fish/vendor_completions.d/shortline.fish",
    "/usr/share/shortline/grafana-dashboard.json",
    "/usr/share/shortline/grafana-gate-dashboard.json",
    "/usr/share/shortline/prometheus-rules.yml",
    "/usr/share/shortline/welcome/index.html",
    "/usr/share/zsh/vendor-completions/_shortline",
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(path)).unwrap()
}

/// Runs `scripts/install` for a folder in the place of `/`.
fn install(folder: &Path, prefix: &str, argument: &str) {
    let mut command = Command::new(Path::new(ROOT).join("scripts/install"));
    command.env("DESTDIR", folder).env("PREFIX", prefix);
    assert!(command.arg(argument).status().unwrap().success());
}

/// A package's files, with a program that stands for ours.
fn installed(site: &Site) -> PathBuf {
    let folder = site.beside("installed");
    install(&folder, "/usr", "/bin/true");
    folder
}

/// The files below a folder, as paths from it.
fn files_below(folder: &Path) -> Vec<String> {
    let mut folders = vec![folder.to_owned()];
    let mut found = Vec::new();
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(format!("/{}", path.strip_prefix(folder).unwrap().display())),
            }
        }
    }
    found.sort();
    found
}

/// What `serve --check` says of a configuration.
fn checked(site: &Site, configuration: &str) -> Result<String, String> {
    let file = site.beside("checked.toml");
    fs::write(&file, configuration).unwrap();
    let output = Command::new(PROGRAM)
        .args(["serve", "--check", "--config"])
        .arg(&file)
        .env("STATE_DIRECTORY", site.beside("state"))
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

/// The same configuration, with a test's folders.
fn here(site: &Site, configuration: &str) -> String {
    let root = site.root();
    let root = root.to_str().unwrap();
    configuration
        .replace("/usr/share/shortline/welcome", root)
        .replace("/srv/www", root)
}

#[test]
fn a_package_has_these_files() {
    let site = Site::new();
    let (pages, others): (Vec<_>, Vec<_>) = files_below(&installed(&site))
        .into_iter()
        .partition(|path| path.starts_with("/usr/share/man/man1/shortline"));
    assert_eq!(others, FILES);
    assert!(
        pages
            .iter()
            .any(|page| page.ends_with("/shortline-serve.1"))
    );
}

#[test]
fn an_installation_leaves_a_configuration_alone() {
    let site = Site::new();
    let folder = site.beside("installed");
    let own = folder.join("etc/shortline/shortline.toml");
    fs::create_dir_all(own.parent().unwrap()).unwrap();
    fs::write(&own, "mine").unwrap();
    install(&folder, "/usr/local", "/bin/true");
    install(&folder, "/usr/local", "/bin/true");
    assert_eq!(fs::read_to_string(&own).unwrap(), "mine");
    let unit = folder.join("usr/local/lib/systemd/system/shortline.service");
    let unit = fs::read_to_string(unit).unwrap();
    assert!(unit.contains("ExecStart=/usr/local/bin/shortline serve"));
    assert!(!unit.contains("/usr/bin/shortline") && !unit.contains("/usr/lib/shortline"));
    install(&folder, "/usr/local", "--uninstall");
    let left = files_below(&folder);
    assert!(
        left.iter().all(|path| path.starts_with("/etc/")),
        "{left:?}"
    );
}

#[test]
fn systemd_takes_the_units() {
    let site = Site::new();
    let folder = installed(&site);
    let units = folder.join("usr/lib/systemd/system");
    let gate = units.join("shortline-gate@postgres.service");
    fs::copy(units.join("shortline-gate@.service"), &gate).unwrap();
    // A unit that systemd has everywhere.
    for target in [
        "sysinit",
        "basic",
        "shutdown",
        "network-online",
        "sockets",
        "multi-user",
    ] {
        let target = units.join(format!("{target}.target"));
        fs::write(target, "[Unit]\nDescription=stands for systemd's\n").unwrap();
    }
    let program = folder.join("bin/sh");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::copy("/bin/true", program).unwrap();
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no", "--recursive-errors=no"]);
    command.arg(format!("--root={}", folder.display()));
    for unit in [
        "shortline.service",
        "shortline.socket",
        "shortline-gate@postgres.service",
    ] {
        command.arg(units.join(unit));
    }
    let Ok(output) = command.output() else {
        println!("skipped: no systemd-analyze (Debian: systemd)");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

#[test]
fn the_sample_serves_one_folder() {
    let site = Site::new();
    let sample = here(&site, &read("packaging/shortline.toml"));
    let said = checked(&site, &sample).unwrap();
    assert!(said.contains(site.root().to_str().unwrap()), "{said}");
    let image = here(&site, &read("packaging/container/shortline.toml"));
    checked(&site, &image).unwrap();
}

#[test]
fn the_samples_examples_are_sound() {
    let site = Site::new();
    let sample = here(&site, &read("packaging/shortline.toml"));
    let alone = format!("[site]\nroot = \"{}\"\n", site.root().display());
    assert!(sample.contains(&alone));
    let sample = sample.replace(&alone, "");
    let examples: Vec<&str> = sample
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(example) if !example.starts_with(' ') => example,
            _ => line,
        })
        .collect();
    let said = checked(&site, &examples.join("\n")).unwrap();
    assert!(said.contains("100mbit"), "{said}");
}

#[test]
fn the_chart_is_of_this_version_and_its_configuration_sound() {
    let site = Site::new();
    let version = env!("CARGO_PKG_VERSION");
    let chart = read("packaging/helm/shortline/Chart.yaml");
    assert!(chart.contains(&format!("\nversion: {version}\n")));
    assert!(chart.contains(&format!("\nappVersion: \"{version}\"\n")));
    let values = read("packaging/helm/shortline/values.yaml");
    let configuration: Vec<&str> = values
        .lines()
        .skip_while(|line| *line != "config: |")
        .skip(1)
        .take_while(|line| line.is_empty() || line.starts_with("  "))
        .collect();
    checked(&site, &here(&site, &configuration.join("\n"))).unwrap();
    let schema = read("packaging/helm/shortline/values.schema.json");
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let keys = values
        .lines()
        .filter(|line| line.starts_with(char::is_alphabetic));
    for key in keys.filter_map(|line| line.split(':').next()) {
        assert!(
            schema["properties"][key].is_object(),
            "{key}: not in the schema"
        );
    }
}
