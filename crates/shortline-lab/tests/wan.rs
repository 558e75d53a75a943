//! The bed with emulated networks, in namespaces of its own, if the tests run as root. Packets arrive
//! whole and with the right delay, losses are counted, and nothing is left behind, however it ends.
#![allow(clippy::unwrap_used, missing_docs)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use shortline_lab::Environment;
use shortline_sched::units::{Rate, Span};
use shortline_testbed::Place;
use shortline_testbed::Testbed;
use shortline_testbed::bed::native::SERVER_ADDRESS;
use shortline_testbed::bed::setup::{ClientGroup, SynTimeouts};
use shortline_testbed::bed::{BedConfig, NativeBed, Setup};
use shortline_testbed::instruments::Instruments;
use shortline_testbed::wan::loss::Loss;
use socket2::{Domain, Socket, Type};

/// Far longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The variable that makes this program the lab that will be killed.
const TO_BE_KILLED: &str = "SHORTLINE_TEST_LAB_TO_BE_KILLED";

fn possible() -> bool {
    let tools = ["/usr/sbin/ip", "/usr/sbin/tc", "/dev/net/tun"];
    let possible =
        rustix::process::geteuid().is_root() && tools.iter().all(|path| Path::new(path).exists());
    if !possible {
        eprintln!("skipped: needs root, iproute2 and TUN");
    }
    possible
}

fn testbed(folder: &Path) -> Testbed {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_shortline-lab")).with_file_name("shortline");
    Testbed::of_program(program, folder).unwrap()
}

fn named(name: &str) -> Setup {
    name.parse::<Environment>().unwrap().0
}

fn bed(testbed: &Testbed, setup: Setup) -> NativeBed {
    let config = BedConfig {
        rate: Rate::from_bps(100_000_000),
        queue_packets: 100,
        setup,
        seed: 1,
        neighbour: false,
    };
    NativeBed::make(testbed, &config).unwrap()
}

/// Runs `work` on a thread in that place's namespace.
fn at<T: Send>(place: &Place, work: impl FnOnce() -> T + Send) -> T {
    let Place::Namespace(name) = place else {
        unreachable!("a bed's places are namespaces");
    };
    let namespace = File::open(Path::new("/run/netns").join(name)).unwrap();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let network = Some(LinkNameSpaceType::Network);
            move_into_link_name_space(namespace.as_fd(), network).unwrap();
            work()
        });
        thread.join().unwrap()
    })
}

fn server_port(port: u16) -> SocketAddr {
    format!("{SERVER_ADDRESS}:{port}").parse().unwrap()
}

/// The shortest of several round trips of a packet from the clients of `group`.
fn round_trip(bed: &NativeBed, group: usize) -> Duration {
    // A process that another test starts has our sockets until it executes its program.
    let port = server_port(1000 + group as u16);
    let server = at(&bed.server_place(), || UdpSocket::bind(port).unwrap());
    let (address, _) = bed.clients()[group];
    let client = at(&bed.client_place(), || {
        UdpSocket::bind((address, 0)).unwrap()
    });
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
    }
    let once = || {
        let begin = Instant::now();
        client.send_to(b"there", port).unwrap();
        let mut buffer = [0; 16];
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(from.ip(), address);
        server.send_to(&buffer[..length], from).unwrap();
        client.recv_from(&mut buffer).unwrap();
        begin.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap()
}

fn namespaces(run_id: &str) -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.contains(run_id)).collect()
}

/// Processes with the run's id in their environment or command line, except this one.
fn processes(run_id: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let told = |folder: &PathBuf| {
        let read = |name: &str| fs::read(folder.join(name)).unwrap_or_default();
        let text = [read("environ"), read("cmdline")].concat();
        String::from_utf8_lossy(&text).contains(run_id)
    };
    entries.filter(told).collect()
}

fn wait_for(what: &str, found: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !found() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn ms(milliseconds: u64) -> Span {
    Span::from_duration(Duration::from_millis(milliseconds))
}

#[test]
fn each_group_has_its_own_round_trip_and_streams_arrive_whole() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let testbed = testbed(folder.path());
    let mut bed = bed(&testbed, named("delays"));
    let sources = "10.92.0.1=0.2,10.92.1.1=0.2,10.92.2.1=0.2,10.92.3.1=0.2,10.92.4.1=0.2";
    assert_eq!(bed.source_argument().unwrap(), sources);
    let far = round_trip(&bed, 4);
    assert!(far >= Duration::from_millis(150), "{far:?}");
    assert!(far < Duration::from_millis(1000), "{far:?}");
    let near = round_trip(&bed, 0);
    assert!(near < far, "{near:?}");

    let sent: Vec<u8> = (0..300_000_u32)
        .map(|number| (number % 251) as u8)
        .collect();
    let listener = at(&bed.server_place(), || {
        TcpListener::bind(server_port(80)).unwrap()
    });
    let (address, _) = bed.clients()[2];
    let received = std::thread::scope(|scope| {
        scope.spawn(|| listener.accept().unwrap().0.write_all(&sent).unwrap());
        at(&bed.client_place(), || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::from((address, 0)).into()).unwrap();
            socket.connect(&server_port(80).into()).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            let mut received = Vec::new();
            (&socket).read_to_end(&mut received).unwrap();
            received
        })
    });
    assert!(received == sent);

    let report = bed.wan_report().unwrap().unwrap();
    assert_eq!(bed.wan_report().unwrap(), None);
    assert_eq!((report.strays, report.device_drops), (0, 0), "{report:?}");
    let lanes = || {
        report
            .groups
            .iter()
            .flat_map(|group| [group.down, group.up])
    };
    assert!(
        lanes().all(|lane| (lane.lost, lane.dropped) == (0, 0)),
        "{report:?}"
    );
    assert_eq!(
        (report.groups[4].down.offered, report.groups[4].up.offered),
        (3, 3)
    );
    assert!(report.groups[2].down.bytes > 300_000);
    let run_id = testbed.run_id().to_owned();
    assert_eq!(namespaces(&run_id).len(), 3);
    drop(bed);
    assert_eq!(namespaces(&run_id), Vec::<String>::new());
}

#[test]
fn timeouts_of_a_syn_grow_as_the_setup_says() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let testbed = testbed(folder.path());
    let is_settable = Path::new("/proc/sys/net/ipv4/tcp_syn_linear_timeouts").exists();
    let doubled = "each timeout doubled";
    for (asked, told) in [
        (SynTimeouts::Doubled, doubled),
        (SynTimeouts::Linear, "4 linear timeouts, then doubled"),
    ] {
        let mut setup = named("today");
        setup.system.syn_timeouts = asked;
        let bed = bed(&testbed, setup);
        let had = bed.syn_backoff().unwrap();
        assert_eq!(had, if is_settable { told } else { doubled });
        let is_noted = bed.notes().iter().any(|note| note.contains("of a SYN"));
        assert_eq!(is_noted, had != told);
    }
}

#[test]
fn what_is_lost_is_counted_and_the_instruments_see_who_is_connected() {
    if !possible() {
        return;
    }
    const SENT: u64 = 100;
    let folder = tempfile::tempdir().unwrap();
    let testbed = testbed(folder.path());
    let mut setup = Setup::today();
    setup.groups = vec![ClientGroup::symmetric("all", ms(2), 0.0)];
    // The client sends lost packets of a handshake again.
    setup.groups[0].down.loss = Loss::Uniform { probability: 0.1 };
    let mut bed = bed(&testbed, setup);
    let own = i32::try_from(std::process::id()).unwrap();
    let instruments = Instruments::start(bed.subject(own, vec![own], None)).unwrap();
    let (listener, server) = at(&bed.server_place(), || {
        let listener = TcpListener::bind(server_port(80)).unwrap();
        (listener, UdpSocket::bind(server_port(9)).unwrap())
    });
    let (address, _) = bed.clients()[0];
    let (client, waiting) = at(&bed.client_place(), || {
        let waiting = std::net::TcpStream::connect(server_port(80)).unwrap();
        (UdpSocket::bind((address, 9)).unwrap(), waiting)
    });
    for number in 0..SENT {
        server.send_to(&number.to_be_bytes(), (address, 9)).unwrap();
    }
    // Some are lost, so only a silence shows that these were all. Each is under way for a millisecond.
    client
        .set_read_timeout(Some(Duration::from_secs(3)))
        .unwrap();
    let arrived = std::iter::from_fn(|| client.recv(&mut [0; 16]).ok()).count() as u64;
    let seen = instruments.stop().unwrap();
    let report = bed.wan_report().unwrap().unwrap();
    drop((listener, waiting));

    let down = report.groups[0].down;
    let dropped = down.dropped + report.device_drops + report.strays;
    assert_eq!(dropped, 0, "{report:?}");
    // Besides the handshake, in which packets may have been lost too.
    assert!(
        down.offered > SENT && down.lost > 0 && down.lost < SENT / 2,
        "{down:?}"
    );
    assert!(
        (SENT..SENT + 10).contains(&(arrived + down.lost)),
        "{arrived} {down:?}"
    );
    let last = seen.samples.last().unwrap();
    assert_eq!(
        (last.sockets.established, last.sockets.accept_queue),
        (1, 1)
    );
    assert_eq!(last.sockets.connections(), 0);
}

/// Not a test of its own: it is the lab that the next test kills.
#[test]
fn a_lab_that_waits_to_be_killed() {
    let Some(folder) = std::env::var_os(TO_BE_KILLED) else {
        return;
    };
    let folder = PathBuf::from(folder);
    let testbed = testbed(&folder);
    let _bed = bed(&testbed, named("d"));
    fs::write(folder.join("new"), testbed.run_id()).unwrap();
    fs::rename(folder.join("new"), folder.join("run-id")).unwrap();
    std::thread::sleep(2 * PATIENCE);
}

#[test]
fn a_killed_lab_leaves_no_emulator_and_no_namespace_behind() {
    if !possible() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_lab_that_waits_to_be_killed"])
        .env(TO_BE_KILLED, folder.path())
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the bed", || folder.path().join("run-id").exists());
    let run_id = fs::read_to_string(folder.path().join("run-id")).unwrap();
    assert_eq!(namespaces(&run_id).len(), 3);
    // A kernel with netem needs no process for it.
    let emulates = !processes(&run_id).is_empty();
    eprintln!("networks are emulated by a process: {emulates}");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of the emulator", || processes(&run_id).is_empty());
    wait_for("the end of the namespaces", || {
        namespaces(&run_id).is_empty()
    });
    let scratch = folder.path().join(format!("shortline-lab-{run_id}"));
    wait_for("the end of the scratch directory", || !scratch.exists());
}
