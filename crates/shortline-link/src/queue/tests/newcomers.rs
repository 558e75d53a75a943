//! Connections that acknowledge nothing.

use super::*;

/// Connections whose clients acknowledge nothing.
fn deaf_connections(bed: &mut Bed, number: usize) -> Vec<ConnectionId> {
    let opened = (0..number).map(|_| bed.queue.open(PACKETS, 0).0);
    let opened: Vec<_> = opened.collect();
    bed.sockets.deaf.borrow_mut().extend(&opened);
    opened
}

fn submitted(bed: &mut Bed, connection: ConnectionId, client: u128, now_ns: u64) -> JobId {
    let client = Client {
        name: client,
        ..self::client()
    };
    let length = Length::Known(100_000);
    let id = bed.queue.submit(connection, client, length, None, now_ns);
    bed.queue.dispatch(&bed.sockets, now_ns);
    id.unwrap()
}

/// How many of the jobs were granted something that they have not taken.
fn granted(bed: &mut Bed, jobs: &[JobId]) -> usize {
    let granted = |id: &&JobId| bed.queue.take_grant(**id).is_some();
    jobs.iter().filter(granted).count()
}

fn look(bed: &mut Bed, now_ns: u64) -> Option<u64> {
    bed.queue.dispatch(&bed.sockets, now_ns);
    bed.queue.take_look_again_ns()
}

#[test]
fn few_connections_of_a_client_are_new_at_a_time() {
    let mut bed = Bed::of(LinkMode::Auto);
    let deaf = deaf_connections(&mut bed, 40);
    let jobs: Vec<JobId> = deaf
        .iter()
        .map(|&connection| submitted(&mut bed, connection, 1, SECOND))
        .collect();
    assert_eq!(granted(&mut bed, &jobs), 32);
    // Another client is not concerned; nor is one of this client's that has had something before.
    let known = bed.id;
    let other = submitted(&mut bed, known, 2, SECOND);
    assert_eq!(granted(&mut bed, &[other]), 1);
    let again = submitted(&mut bed, deaf[0], 1, SECOND);
    assert_eq!(granted(&mut bed, &[again]), 1);
    // One that waits can go.
    assert!(bed.queue.remove(jobs[39]).is_some());
    // Nobody acknowledges: after three seconds they are new no more, and the next begin.
    assert_eq!(look(&mut bed, 2 * SECOND), Some(250_000));
    assert_eq!(granted(&mut bed, &jobs[..39]), 0);
    look(&mut bed, 4 * SECOND + 1);
    assert_eq!(granted(&mut bed, &jobs[..39]), 7);
    assert_eq!(look(&mut bed, 5 * SECOND), None);
}

/// 32 at a time would be a bound on a client's connections a second, far below what such a link carries.
#[test]
fn a_fast_link_has_as_many_new_as_fill_four_milliseconds() {
    let of = |gbit: u64| {
        let mut bed = Bed::of(LinkMode::Auto);
        let rate = Rate::from_bps(gbit * 1_000_000_000);
        bed.queue.pace(Pacing::Rate(rate), SECOND);
        let jobs: Vec<JobId> = deaf_connections(&mut bed, 400)
            .into_iter()
            .map(|connection| submitted(&mut bed, connection, 1, SECOND))
            .collect();
        let looks = (0..100).map(|millisecond| {
            look(&mut bed, SECOND + millisecond * 1_000_000);
            granted(&mut bed, &jobs)
        });
        looks.sum::<usize>()
    };
    assert_eq!([1, 2, 10].map(of), [34, 68, 342]);
}

#[test]
fn where_nobody_ever_acknowledges_the_next_are_new_for_twice_as_long() {
    let mut bed = Bed::of(LinkMode::Auto);
    for connection in deaf_connections(&mut bed, 80) {
        submitted(&mut bed, connection, 1, SECOND);
    }
    let held = [4, 7, 9, 10, 15].map(|second| {
        look(&mut bed, second * SECOND + 1);
        bed.queue.newcomers.held()
    });
    assert_eq!(held, [16, 16, 16, 0, 0]);
}

/// A thousand downloads of one client would fill the kernel before the rate is found.
#[test]
fn while_the_uplink_is_unknown_a_connection_is_new_until_all_is_acknowledged() {
    let mut bed = Bed::of(LinkMode::Auto);
    let connections: Vec<_> = (0..40).map(|_| bed.queue.open(PACKETS, 0).0).collect();
    for &connection in &connections {
        bed.sockets.holds(connection, 20_000);
    }
    let jobs: Vec<JobId> = connections
        .iter()
        .map(|&connection| submitted(&mut bed, connection, 1, SECOND))
        .collect();
    assert_eq!(granted(&mut bed, &jobs), 32);
    look(&mut bed, 2 * SECOND);
    assert_eq!(granted(&mut bed, &jobs), 0);
    // One has everything: it makes room for the next.
    bed.sockets.holds(connections[0], 0);
    look(&mut bed, 2 * SECOND + 1_000_000);
    assert_eq!(granted(&mut bed, &jobs), 1);
    // There is no bottleneck: all have acknowledged something, and go on.
    bed.queue.pace(Pacing::Free, 2 * SECOND + 2_000_000);
    look(&mut bed, 2 * SECOND + 2_000_000);
    assert_eq!(granted(&mut bed, &jobs), 7);
}

/// Whoever acknowledges a handshake of TLS, and then nothing, was known and had a window of data on each connection.
#[test]
fn a_connection_is_new_once_more_after_its_handshake() {
    let mut bed = Bed::of(LinkMode::Auto);
    let connections: Vec<_> = (0..40).map(|_| bed.queue.open(PACKETS, 0).0).collect();
    for &connection in &connections {
        let handshake = submitted(&mut bed, connection, 1, SECOND);
        assert_eq!(granted(&mut bed, &[handshake]), 1);
        bed.queue.remove(handshake);
        bed.queue.handshake_done(connection, 1);
    }
    bed.sockets.deaf.borrow_mut().extend(&connections);
    let jobs: Vec<JobId> = connections
        .iter()
        .map(|&connection| submitted(&mut bed, connection, 1, SECOND))
        .collect();
    assert_eq!(granted(&mut bed, &jobs), 32);
}

/// More than are asked at a look.
#[test]
fn clients_whose_connections_wait_are_looked_at_in_turn() {
    const CLIENTS: usize = 10;
    let mut bed = Bed::of(LinkMode::Auto);
    let deaf = deaf_connections(&mut bed, CLIENTS * 33);
    let submitted: Vec<JobId> = (0..deaf.len())
        .map(|place| {
            let client = (place % CLIENTS) as u128;
            submitted(&mut bed, deaf[place], client, SECOND)
        })
        .collect();
    let last = &submitted[CLIENTS * 32..];
    assert_eq!(granted(&mut bed, last), 0);
    look(&mut bed, 5 * SECOND);
    assert_eq!(granted(&mut bed, last), 256 / 32);
    look(&mut bed, 6 * SECOND);
    assert_eq!(granted(&mut bed, last), CLIENTS - 256 / 32);
    assert_eq!(look(&mut bed, 7 * SECOND), None);
}

#[test]
fn who_acknowledges_makes_room_at_once_and_so_does_who_goes() {
    let mut bed = Bed::of(LinkMode::Auto);
    let deaf = deaf_connections(&mut bed, 34);
    let jobs: Vec<JobId> = deaf
        .iter()
        .map(|&connection| submitted(&mut bed, connection, 1, SECOND))
        .collect();
    assert_eq!(granted(&mut bed, &jobs), 32);
    bed.sockets.deaf.borrow_mut().remove(0);
    look(&mut bed, 2 * SECOND);
    assert_eq!(granted(&mut bed, &jobs), 1);
    bed.queue.remove(jobs[1]);
    bed.queue.close(deaf[1]);
    let watched = bed.queue.facts().recent;
    bed.queue.let_go(watched);
    look(&mut bed, 3 * SECOND);
    assert_eq!(granted(&mut bed, &jobs[2..]), 1);
}
