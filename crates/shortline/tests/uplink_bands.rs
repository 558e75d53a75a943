//! The kernel's priority bands, on a link of the test's own: two network namespaces and a veth
//! pair, with `shortline uplink` and `shortline serve --link-mode bands` on one end. Needs root; says
//! so and passes without. Everything is gone at the end, also after a failure.
//!
//! Source: paper 003 3.2 floods two connections of different priorities and wants 100 to 0 of the
//! packets on the wire, and 3.3.2 gives SYN-ACKs a band of their own.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use shortline_link::qdisc::DeviceBands;
use socket2::SockRef;

const PROGRAM: &str = env!("CARGO_BIN_EXE_shortline");
/// Slow enough that the bottleneck is the qdisc, whatever else the machine does.
const RATE: &str = "8mbit";
/// How long two floods are watched.
const WATCH: Duration = Duration::from_millis(1500);
/// How often it is watched before it is taken for true that the lower band has a share.
const WATCHES_MAX: usize = 20;
/// What the higher band sends in a watch in which the link is busy.
const BUSY_BYTES_MIN: u64 = 300_000;
/// What a connection sends of 1000 while the other one has a higher band: the 8 kbit/s that a class
/// of HTB has to itself are 1, and a packet or two of the start.
const LOWER_PER_MILLE_MAX: u64 = 20;

const LARGE_BYTES: usize = 1_000_000;
/// Far longer than anything here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two namespaces and the link between them; gone when dropped.
struct Bed {
    server: String,
    client: String,
}

impl Bed {
    /// `None` without root, `ip` or veth: the test has nothing to run on.
    fn make(name: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: namespaces need root");
            return None;
        }
        let id = std::process::id();
        let bed = Self {
            server: format!("shortline-{name}-s{id}"),
            client: format!("shortline-{name}-c{id}"),
        };
        for namespace in [&bed.server, &bed.client] {
            if !ip(&["netns", "add", namespace]) {
                eprintln!("skipped: `ip netns add` does not work here");
                return None;
            }
        }
        let one = [
            "link",
            "add",
            "up0",
            "gso_max_segs",
            "1",
            "netns",
            &bed.server,
        ];
        let two = ["type", "veth", "peer", "down0", "netns", &bed.client];
        if !ip(&[&one[..], &two].concat()) {
            eprintln!("skipped: the kernel has no veth");
            return None;
        }
        for (namespace, device, address) in [
            (&bed.server, "up0", "10.93.0.1/30"),
            (&bed.client, "down0", "10.93.0.2/30"),
        ] {
            for words in [
                &["address", "add", address, "dev", device][..],
                &["link", "set", "dev", device, "up"],
                &["link", "set", "dev", "lo", "up"],
            ] {
                assert!(ip(&[&["-n", namespace][..], words].concat()));
            }
        }
        Some(bed)
    }

    /// Runs `shortline` in the server's namespace.
    fn shortline(&self, words: &[&str]) -> Output {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.server, PROGRAM]);
        command.args(words).output().unwrap()
    }

    /// Installs strict bands; `None` where the kernel has none.
    fn install(&self) -> Option<DeviceBands> {
        let words = ["uplink", "install", "--dev", "up0", "--rate", RATE];
        let installed = self.shortline(&words);
        let told = String::from_utf8(installed.stderr).unwrap();
        if !installed.status.success() && told.contains("the kernel has no") {
            eprintln!("skipped: {told}");
            return None;
        }
        assert!(installed.status.success(), "{told}");
        Some(self.bands())
    }

    /// Runs `tc` in the server's namespace.
    fn tc(&self, words: &[&str]) -> String {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.server, "tc"]);
        let output = command.args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// What the kernel calls the root qdisc.
    fn root_kind(&self) -> String {
        let shown = self.tc(&["qdisc", "show", "dev", "up0", "root"]);
        shown.split(' ').nth(1).unwrap().to_owned()
    }

    fn bands(&self) -> DeviceBands {
        inside(&self.server, || DeviceBands::read("up0").unwrap())
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        // So that its note of what was there goes, too.
        self.shortline(&["uplink", "remove", "--dev", "up0"]);
        ip(&["netns", "del", &self.server]);
        ip(&["netns", "del", &self.client]);
    }
}

fn ip(words: &[&str]) -> bool {
    let output = Command::new("ip").args(words).output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs `work` on a thread of its own in a namespace. Sockets stay where they were made.
fn inside<T: Send>(namespace: &str, work: impl FnOnce() -> T + Send) -> T {
    let file = std::fs::File::open(format!("/run/netns/{namespace}")).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

/// A connection from the server's end to the client's, flooded until told to stop, and what
/// arrived.
struct Flood {
    sending: TcpStream,
    arrived: Arc<AtomicU64>,
}

impl Flood {
    fn start(
        bed: &Bed,
        priority: u32,
        unsent_bytes_max: Option<u32>,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        let listener = inside(&bed.server, || TcpListener::bind("10.93.0.1:0").unwrap());
        let address = listener.local_addr().unwrap();
        let mut receiving = inside(&bed.client, || TcpStream::connect(address).unwrap());
        let (sending, _) = listener.accept().unwrap();
        let socket = SockRef::from(&sending);
        socket.set_priority(priority).unwrap();
        if let Some(bytes) = unsent_bytes_max {
            socket.set_tcp_notsent_lowat(bytes).unwrap();
        }
        sending
            .set_write_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        receiving
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let arrived = Arc::new(AtomicU64::new(0));
        let (mut writer, stopped) = (sending.try_clone().unwrap(), Arc::clone(stop));
        std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                // As 003 did: 1 KiB at a time. A full socket only times out.
                let _ = writer.write(&[7; 1024]);
            }
        });
        let (counter, stopped) = (Arc::clone(&arrived), Arc::clone(stop));
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while !stopped.load(Ordering::Relaxed) {
                let read = receiving.read(&mut buffer).unwrap_or(0);
                counter.fetch_add(read as u64, Ordering::Relaxed);
            }
        });
        Self { sending, arrived }
    }

    fn arrived(&self) -> u64 {
        self.arrived.load(Ordering::Relaxed)
    }
}

/// Bytes of each band sent while watching.
fn sent_while_watching(bed: &Bed) -> Vec<u64> {
    let before = sent(bed);
    std::thread::sleep(WATCH);
    let after = sent(bed);
    after
        .iter()
        .zip(before)
        .map(|(after, before)| after - before)
        .collect()
}

#[test]
fn two_flooded_connections_of_different_bands_share_100_to_0() {
    let Some(bed) = Bed::make("flood") else {
        return;
    };
    let Some(bands) = bed.install() else {
        return;
    };
    for unsent_bytes_max in [None, Some(8 * 1024)] {
        let stop = Arc::new(AtomicBool::new(false));
        let low = Flood::start(&bed, bands.bands[4].priority, unsent_bytes_max, &stop);
        let high = Flood::start(&bed, bands.bands[2].priority, unsent_bytes_max, &stop);
        // Both windows have grown by then, and the bands below have filled.
        std::thread::sleep(Duration::from_millis(700));
        let watched = || {
            let (low_before, high_before) = (low.arrived(), high.arrived());
            let sent = sent_while_watching(&bed);
            let arrived = (low.arrived() - low_before, high.arrived() - high_before);
            eprintln!("unsent marks {unsent_bytes_max:?}: bands {sent:?}, arrived {arrived:?}");
            (sent[2] > BUSY_BYTES_MIN).then_some([(sent[4], sent[2]), arrived])
        };
        let starved =
            |(low, high): (u64, u64)| low * 1000 / (low + high).max(1) <= LOWER_PER_MILLE_MAX;
        // Where the machine is so busy that the writer of the higher band is not run, that band
        // is empty and the other one rightly sent: such a watch says nothing.
        let found = (0..WATCHES_MAX)
            .filter_map(|_| watched())
            .any(|shares| shares.into_iter().all(starved));
        assert!(
            found,
            "in no watch was the link busy and the lower band idle"
        );
        // A new connection's SYN-ACK waits for neither flood.
        let first_before = bed.bands().bands[0].traffic.packets;
        let began = Instant::now();
        let third = Flood::start(&bed, 0, None, &Arc::new(AtomicBool::new(true)));
        let waited = began.elapsed();
        eprintln!("a connection was made after {waited:?}");
        assert!(bed.bands().bands[0].traffic.packets > first_before);
        stop.store(true, Ordering::Relaxed);
        drop((low.sending, high.sending, third.sending));
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A server on the bed with two files, killed when dropped.
struct Server {
    child: Child,
    address: SocketAddr,
    admin: SocketAddr,
    _site: tempfile::TempDir,
}

impl Server {
    fn start(bed: &Bed, flags: &[&str]) -> Self {
        let site = tempfile::tempdir().unwrap();
        std::fs::write(site.path().join("large.bin"), vec![7; LARGE_BYTES]).unwrap();
        std::fs::write(site.path().join("small.txt"), "small").unwrap();
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &bed.server, PROGRAM, "serve"]);
        command.arg(site.path());
        command.args(["--listen", "10.93.0.1:0", "--admin", "10.93.0.1:0"]);
        command.args(["--link-mode", "bands"]).args(flags);
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut address_after = |text: &str| -> SocketAddr {
            let line = lines.next().unwrap().unwrap();
            let (_, told) = line.split_once(text).unwrap_or_else(|| panic!("{line}"));
            told.split(' ').next().unwrap().parse().unwrap()
        };
        let (admin, address) = (address_after("admin on "), address_after("listening on "));
        Self {
            child,
            address,
            admin,
            _site: site,
        }
    }

    fn get(&self, bed: &Bed, path: &str) -> Vec<u8> {
        get(bed, self.address, path)
    }

    fn band_changes(&self, bed: &Bed) -> u64 {
        let status = get(bed, self.admin, "/status");
        let status: serde_json::Value = serde_json::from_slice(&status).unwrap();
        status["link"]["band_changes_total"].as_u64().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The body that `path` has for a client of the bed.
fn get(bed: &Bed, address: SocketAddr, path: &str) -> Vec<u8> {
    let mut stream = inside(&bed.client, || TcpStream::connect(address).unwrap());
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let head_end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 "));
    answer.split_off(head_end + 4)
}

fn sent(bed: &Bed) -> Vec<u64> {
    let bands = bed.bands().bands.into_iter();
    bands.map(|band| band.traffic.bytes.unwrap_or(0)).collect()
}

#[test]
fn a_response_waits_in_the_band_of_what_remains_of_it() {
    let Some(bed) = Bed::make("serve") else {
        return;
    };
    if bed.install().is_none() {
        return;
    }
    let server = Server::start(&bed, &[]);
    let before = sent(&bed);
    assert_eq!(server.get(&bed, "/small.txt"), b"small");
    let small = sent(&bed);
    assert!(small[0] > before[0], "the SYN-ACK has the first band");
    assert!(small[1] > before[1], "the response has that of up to 1 KB");
    assert_eq!(small[2..], before[2..]);
    let changes = server.band_changes(&bed);
    assert_eq!(server.get(&bed, "/large.bin").len(), LARGE_BYTES);
    let large = sent(&bed);
    let most = large[5] - small[5];
    assert!(most > 900_000 && most < 1_100_000, "{small:?} {large:?}");
    assert!(
        large[4] - small[4] > 30_000,
        "50 to 5 KB: {small:?} {large:?}"
    );
    // Five bands at most, and one for the answer that tells it.
    let changes = server.band_changes(&bed) - changes;
    assert!((2..=6).contains(&changes), "{changes}");
}

#[test]
fn without_their_band_control_packets_wait_with_the_largest() {
    let Some(bed) = Bed::make("control") else {
        return;
    };
    if bed.install().is_none() {
        return;
    }
    let server = Server::start(&bed, &["--control-band=false", "--policy", "quickfix:1KB"]);
    let before = sent(&bed);
    assert_eq!(server.get(&bed, "/small.txt"), b"small");
    let after = sent(&bed);
    assert!(after[2] > before[2], "the SYN-ACK: {before:?} {after:?}");
    assert!(after[1] > before[1], "the response: {before:?} {after:?}");
}

#[test]
fn what_was_there_is_put_back_and_foreign_qdiscs_stay() {
    let Some(bed) = Bed::make("remove") else {
        return;
    };
    let refused = |words: &[&str], code: i32, expected: &str| {
        let output = bed.shortline(words);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        assert!(told.contains(expected), "{words:?}: {told}");
    };
    let install = ["uplink", "install", "--dev", "up0"];
    let remove = ["uplink", "remove", "--dev", "up0"];
    refused(
        &["uplink", "show", "--dev", "up0"],
        1,
        "uplink install --dev up0",
    );
    refused(
        &["uplink", "show", "--dev", "up9"],
        1,
        "'up9' does not exist",
    );
    refused(&remove, 1, "nothing that `shortline uplink install` made");
    let serve = [
        "serve",
        "/tmp",
        "--link-mode",
        "bands",
        "--listen",
        "10.93.0.1:0",
    ];
    refused(&serve, 1, "no device has priority bands");
    refused(&[&install[..], &["--kind", "htb"]].concat(), 2, "--rate");
    refused(
        &[&install[..], &["--kind", "htb", "--bands", "9"]].concat(),
        2,
        "from 2 to 8",
    );
    if bed.install().is_none() {
        return;
    }
    let shown = bed.shortline(&["uplink", "show", "--dev", "up0"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("bands") && shown.contains("all"), "{shown}");
    refused(&install, 1, "installed before");
    assert!(bed.shortline(&remove).status.success());
    assert_eq!(bed.root_kind(), "noqueue");
    // Somebody's own.
    bed.tc(&[
        "qdisc", "add", "dev", "up0", "root", "handle", "7:", "tbf", "rate", "1mbit", "burst",
        "1600", "limit", "10000",
    ]);
    bed.tc(&[
        "qdisc", "add", "dev", "up0", "parent", "7:1", "handle", "8:", "pfifo", "limit", "33",
    ]);
    let rated = [&install[..], &["--rate", RATE]].concat();
    refused(&rated, 1, "--replace");
    assert_eq!(bed.root_kind(), "tbf");
    let replaced = bed.shortline(&[&rated[..], &["--replace"]].concat());
    assert!(replaced.status.success(), "{replaced:?}");
    let bands = bed.bands();
    assert!(bands.bands.len() >= 3, "{bands:?}");
    assert!(bed.shortline(&remove).status.success());
    let back = bed.tc(&["qdisc", "show", "dev", "up0"]);
    assert!(
        back.contains("tbf 7:") && back.contains("rate 1Mbit"),
        "{back}"
    );
    assert!(back.contains("pfifo 8: parent 7:1 limit 33p"), "{back}");
    // Somebody's own with a class: of the same kind as ours on kernels without prio.
    bed.tc(&["qdisc", "del", "dev", "up0", "root"]);
    for words in [
        "qdisc add dev up0 root handle 1: htb default 10",
        "class add dev up0 parent 1: classid 1:10 htb rate 10mbit burst 1600b",
        "qdisc add dev up0 parent 1:10 handle 10: pfifo limit 100",
    ] {
        bed.tc(&words.split(' ').collect::<Vec<_>>());
    }
    let replaced = bed.shortline(&[&rated[..], &["--replace"]].concat());
    assert!(replaced.status.success(), "{replaced:?}");
    assert!(bed.shortline(&remove).status.success());
    let back = bed.tc(&["qdisc", "show", "dev", "up0"]);
    assert!(
        back.contains("htb 1: root") && back.contains("default 0x10"),
        "{back}"
    );
    assert!(back.contains("pfifo 10: parent 1:10 limit 100p"), "{back}");
    let classes = bed.tc(&["class", "show", "dev", "up0"]);
    assert!(
        classes.contains("htb 1:10 root") && classes.contains("rate 10Mbit"),
        "{classes}"
    );
}
