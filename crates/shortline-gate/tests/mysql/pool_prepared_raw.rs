//! The binary protocol through a pool, packet by packet: types that are left out, long data, cursors, and numbers.

use std::net::SocketAddr;

use shortline_gate::pool::{PoolMode, Shown};

use crate::gated::{Gated, limits};
use crate::raw::{DEPRECATE_EOF, MYSQL, PLAIN, Raw, code};
use crate::server::{Server, shared};

const LONG: &[u8] = b"\x08\0";
const TEXT: &[u8] = b"\xfd\0";
const LAST: u32 = u32::MAX;

/// A client without EOF packets.
struct Client(Raw);

impl Client {
    async fn new(gated: &Gated) -> Self {
        Self::at(gated.address).await
    }

    async fn at(address: SocketAddr) -> Self {
        Self(Raw::connect(address, PLAIN | MYSQL | DEPRECATE_EOF).await)
    }

    async fn send(&mut self, command: u8, number: u32, rest: &[u8]) {
        let payload = [&[command], &number.to_le_bytes()[..], rest].concat();
        self.0.write(0, &payload).await;
    }

    /// Sends a command of two packets.
    async fn write_long(&mut self, payload: &[u8]) {
        let (first, second) = payload.split_at(0xff_ffff);
        self.0.write(0, first).await;
        self.0.write(1, second).await;
    }

    /// Prepares a statement. Returns its number.
    async fn prepare(&mut self, text: &str) -> u32 {
        self.0.write(0, &[b"\x16", text.as_bytes()].concat()).await;
        let (_, ok) = self.0.read().await;
        assert_eq!(ok[0], 0, "{}", String::from_utf8_lossy(&ok));
        let number = |at: usize| u16::from_le_bytes([ok[at], ok[at + 1]]);
        for _ in 0..number(5) + number(7) {
            self.0.read().await;
        }
        u32::from_le_bytes(ok[1..5].try_into().unwrap())
    }

    /// Sends an execution: flags, and what is behind the number of iterations.
    async fn send_execute(&mut self, number: u32, flags: u8, parts: &[&[u8]]) {
        let rest = [&[flags, 1, 0, 0, 0], &parts.concat()[..]].concat();
        self.send(0x17, number, &rest).await;
    }

    /// Executes a statement of one column. Returns the rows, or the error's code. A row is its value.
    async fn execute(&mut self, number: u32, parts: &[&[u8]]) -> Result<Vec<Vec<u8>>, u16> {
        self.send_execute(number, 0, parts).await;
        let (_, first) = self.0.read().await;
        if let Some(code) = code(&first) {
            return Err(code);
        }
        assert_eq!(first, [1], "one column");
        self.0.read().await;
        Ok(self.rows().await.0)
    }

    /// Rows up to their end, and the status there.
    async fn rows(&mut self) -> (Vec<Vec<u8>>, u16) {
        let mut rows = Vec::new();
        loop {
            let (_, packet) = self.0.read().await;
            match packet[0] {
                0xfe => return (rows, u16::from_le_bytes([packet[3], packet[4]])),
                // A header, a byte of NULLs.
                0 => rows.push(packet[2..].to_vec()),
                _ => panic!("{}", String::from_utf8_lossy(&packet)),
            }
        }
    }
}

async fn pooled(server: &Server, size: usize) -> Gated {
    let limits = limits(PoolMode::Transaction, size, 3);
    Gated::lending(server.address, None, limits, |_| {}).await
}

fn pinned(gated: &Gated) -> usize {
    gated.pool.as_ref().unwrap().pinned()
}

#[tokio::test]
async fn types_that_are_left_out_are_the_sessions_last() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 1).await;
    let (mut a, mut b) = (Client::new(&gated).await, Client::new(&gated).await);
    let text = "SELECT CONCAT(?, '!')";
    let (of_a, of_b) = (a.prepare(text).await, b.prepare(text).await);
    let seven = 7_u64.to_le_bytes();
    let typed = a.execute(of_a, &[b"\0\x01", LONG, &seven]).await;
    assert_eq!(typed, Ok(vec![b"\x027!".to_vec()]));
    let mut own = Client::at(server.address).await;
    let of_own = own.prepare(text).await;
    assert_eq!(own.execute(of_own, &[b"\0\0", &seven]).await, Err(1210));
    // Another session's types of the same statement are not its own.
    assert_eq!(b.execute(of_b, &[b"\0\0", &seven]).await, Err(1210));
    let typed = b.execute(of_b, &[b"\0\x01", TEXT, b"\x02ab"]).await;
    assert_eq!(typed, Ok(vec![b"\x03ab!".to_vec()]));
    let eight = 8_u64.to_le_bytes();
    for _ in 0..2 {
        let again = a.execute(of_a, &[b"\0\0", &eight]).await;
        assert_eq!(again, Ok(vec![b"\x028!".to_vec()]));
        let again = b.execute(of_b, &[b"\0\0", b"\x01c"]).await;
        assert_eq!(again, Ok(vec![b"\x02c!".to_vec()]));
        // The connection gives up what it has.
        for number in 0..3 {
            let other = b.prepare(&format!("SELECT {number} + ?")).await;
            b.send(0x19, other, b"").await;
        }
    }
    // The last one prepared, as in MariaDB.
    assert_eq!(b.execute(LAST, &[b"\0\x01", LONG, &seven]).await, Err(1243));
    let last = b.prepare("SELECT ?").await;
    let found = b.execute(LAST, &[b"\0\x01", LONG, &seven]).await;
    assert_eq!(found, Ok(vec![seven.to_vec()]));
    b.send(0x19, last, b"").await;
    assert_eq!(b.execute(last, &[b"\0\0", &seven]).await, Err(1243));
    assert_eq!(pinned(&gated), 0);
    gated.until_empty().await;
}

#[tokio::test]
async fn long_data_is_its_sessions_alone() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 2).await;
    let (mut a, mut b) = (Client::new(&gated).await, Client::new(&gated).await);
    let text = "SELECT CONCAT(?, '!')";
    let (of_a, of_b) = (a.prepare(text).await, b.prepare(text).await);
    // MariaDB takes long data for a number if the execution before had one; another session's does not count.
    let seven = 7_u64.to_le_bytes();
    let found = b.execute(of_b, &[b"\0\x01", LONG, &seven]).await;
    assert_eq!(found, Ok(vec![b"\x027!".to_vec()]));
    // Once in several parts, once dropped by a reset, once followed by a failure.
    for round in 0..3 {
        a.send(0x18, of_a, b"\0\0lo").await;
        a.send(0x18, of_a, b"\0\0ng").await;
        gated.until("under way", |now| now.running == 1).await;
        let others = b.execute(of_b, &[b"\0\x01", TEXT, b"\x02ab"]).await;
        assert_eq!(others, Ok(vec![b"\x03ab!".to_vec()]));
        // Its unit goes on over another statement.
        a.0.query("DO 1").await;
        assert_eq!(a.0.read().await.1[0], 0);
        if round == 1 {
            a.send(0x1a, of_a, b"").await;
            assert_eq!(a.0.read().await.1[0], 0);
            gated.until_empty().await;
        }
        let expected: &[u8] = if round == 1 { b"\x03cd!" } else { b"\x05long!" };
        let value: &[u8] = if round == 1 { b"\x02cd" } else { b"" };
        let found = a.execute(of_a, &[b"\0\x01", TEXT, value]).await;
        assert_eq!(found, Ok(vec![expected.to_vec()]), "round {round}");
        gated.until_empty().await;
    }
    // A parameter that is not there: each execution fails until a reset, and only there.
    let typed: &[&[u8]] = &[b"\0\x01", TEXT, b"\x02ab"];
    a.send(0x18, of_a, b"\x01\0long").await;
    for _ in 0..2 {
        assert_eq!(a.execute(of_a, typed).await, Err(1210));
        gated.until("kept", |_| pinned(&gated) == 1).await;
        assert_eq!(b.execute(of_b, typed).await, Ok(vec![b"\x03ab!".to_vec()]));
    }
    a.send(0x1a, of_a, b"").await;
    assert_eq!(a.0.read().await.1[0], 0);
    gated.until("given back", |_| pinned(&gated) == 0).await;
    assert_eq!(a.execute(of_a, typed).await, Ok(vec![b"\x03ab!".to_vec()]));
    // It does not stay for whoever executes the statement next.
    a.send(0x18, of_a, b"\0\0left").await;
    a.send(0x19, of_a, b"").await;
    gated.until_empty().await;
    let others = b.execute(of_b, &[b"\x01\x01", TEXT]).await;
    assert_eq!(others, Ok(vec![Vec::new()]), "NULL");
    assert_eq!(pinned(&gated), 0);
}

#[tokio::test]
async fn a_cursor_keeps_the_connection_until_it_has_no_more_rows() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 3).await;
    let (mut a, mut b) = (Client::new(&gated).await, Client::new(&gated).await);
    let text = "SELECT 1 UNION SELECT 2 UNION SELECT 3";
    let (of_a, of_b) = (a.prepare(text).await, b.prepare(text).await);
    let twice = a.prepare(text).await;
    a.send(0x1c, of_a, &2_u32.to_le_bytes()).await;
    assert_eq!(code(&a.0.read().await.1), Some(1421));
    for ends_by in ["rows", "reset", "close"] {
        a.send_execute(of_a, 1, &[]).await;
        assert_eq!(a.0.read().await.1, [1]);
        a.0.read().await;
        let (rows, status) = a.rows().await;
        assert_eq!((rows.len(), status & 0x40), (0, 0x40), "a cursor");
        gated.until("kept", |_| pinned(&gated) == 1).await;
        // The same statement for others, and for itself.
        assert_eq!(b.execute(of_b, &[]).await.unwrap().len(), 3);
        assert_eq!(a.execute(twice, &[]).await.unwrap().len(), 3);
        a.send(0x1c, of_a, &2_u32.to_le_bytes()).await;
        assert_eq!(a.rows().await.0.len(), 2);
        gated.until("kept", |_| pinned(&gated) == 1).await;
        match ends_by {
            "rows" => {
                a.send(0x1c, of_a, &2_u32.to_le_bytes()).await;
                let (rows, status) = a.rows().await;
                assert_eq!((rows.len(), status & 0x80), (1, 0x80));
            }
            "reset" => {
                a.send(0x1a, of_a, b"").await;
                assert_eq!(a.0.read().await.1[0], 0);
            }
            _ => a.send(0x19, of_a, b"").await,
        }
        gated.until("given back", |_| pinned(&gated) == 0).await;
    }
    gated.until_empty().await;
    assert_eq!(b.execute(of_b, &[]).await.unwrap().len(), 3);
}

/// The error of a statement that cannot be prepared on the connection is that of its execution.
#[tokio::test]
async fn what_cannot_be_prepared_again_is_told_at_its_execution() {
    let Some(server) = shared() else { return };
    server.query("CREATE TABLE shop.pool_gone (t TEXT)");
    let gated = pooled(server, 2).await;
    let mut a = Client::new(&gated).await;
    let text = "SELECT t FROM shop.pool_gone WHERE t <> ?";
    let (one, two) = (a.prepare(text).await, a.prepare(text).await);
    let give_up = async |a: &mut Client| {
        for number in 0..3 {
            a.prepare(&format!("SELECT {number}")).await;
        }
    };
    give_up(&mut a).await;
    server.query("DROP TABLE shop.pool_gone");
    let typed: &[&[u8]] = &[b"\0\x01", TEXT, b"\x01a"];
    assert_eq!(a.execute(one, typed).await, Err(1146));
    // Long data has no answer.
    a.send(0x18, two, b"\0\0long").await;
    assert_eq!(a.execute(two, &[b"\0\x01", TEXT]).await, Err(1146));
    server.query("CREATE TABLE shop.pool_gone (t TEXT)");
    server.query("INSERT INTO shop.pool_gone VALUES ('b')");
    assert_eq!(a.execute(one, typed).await, Ok(vec![b"\x01b".to_vec()]));
    assert_eq!(a.execute(two, typed).await, Err(1146), "until it is reset");
    a.send(0x1a, two, b"").await;
    assert_eq!(a.0.read().await.1[0], 0);
    assert_eq!(a.execute(two, typed).await, Ok(vec![b"\x01b".to_vec()]));
    // In a transaction, too, which goes on.
    a.0.query("BEGIN").await;
    assert_eq!(a.0.read().await.1[0], 0);
    a.0.query("INSERT INTO shop.pool_gone VALUES ('c')").await;
    assert_eq!(a.0.read().await.1[0], 0);
    give_up(&mut a).await;
    assert_eq!(a.execute(one, typed).await.map(|rows| rows.len()), Ok(2));
    a.0.query("ROLLBACK").await;
    assert_eq!(a.0.read().await.1[0], 0);
    gated.until_empty().await;
    assert_eq!(pinned(&gated), 0);
}

/// Of an execution of several packets, and of a statement that is too long to be read.
#[tokio::test]
async fn long_commands_pass() {
    let Some(server) = shared() else { return };
    let gated = pooled(server, 2).await;
    let mut a = Client::new(&gated).await;
    let length = a.prepare("SELECT LENGTH(?)").await;
    let value = vec![b'x'; 2 << 20];
    let sized = [&b"\xfd"[..], &(2_u32 << 20).to_le_bytes()[..3], &value].concat();
    let expected = Ok(vec![(2_u64 << 20).to_le_bytes().to_vec()]);
    let shorten = |rows: Result<Vec<Vec<u8>>, u16>| {
        rows.map(|rows| {
            rows.into_iter()
                .map(|mut row| {
                    row.resize(8, 0);
                    row
                })
                .collect::<Vec<_>>()
        })
    };
    let typed = a.execute(length, &[b"\0\x01", TEXT, &sized]).await;
    assert_eq!(shorten(typed), expected);
    let again = a.execute(length, &[b"\0\0", &sized]).await;
    assert_eq!(shorten(again), expected);
    // In several packets, with and without its types.
    let length_bytes = 17_u32 << 20;
    let value = vec![b'y'; length_bytes as usize];
    let sized = [&b"\xfe"[..], &u64::from(length_bytes).to_le_bytes(), &value].concat();
    for behind in [&b"\0\x01\xfd\0"[..], b"\0\0"] {
        let head = [&[0x17][..], &length.to_le_bytes(), &[0, 1, 0, 0, 0], behind].concat();
        a.write_long(&[&head[..], &sized].concat()).await;
        let (number, first) = a.0.read().await;
        assert_eq!((number, first), (2, vec![1]));
        a.0.read().await;
        let found = a.rows().await.0;
        assert_eq!(
            shorten(Ok(found)),
            Ok(vec![u64::from(length_bytes).to_le_bytes().to_vec()])
        );
    }
    assert_eq!(pinned(&gated), 0);
    let text = format!("SELECT /* {} */ LENGTH(?)", "x".repeat(2 << 20));
    let long = a.prepare(&text).await;
    gated.until("kept", |_| pinned(&gated) == 1).await;
    let typed = a.execute(long, &[b"\0\x01", TEXT, b"\x02ab"]).await;
    assert_eq!(shorten(typed), Ok(vec![2_u64.to_le_bytes().to_vec()]));
}
