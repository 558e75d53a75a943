//! Connections that acknowledge nothing, over the kernel's own TCP.

use socket2::{SockFilter, SockRef};

use super::*;

/// Connections of one client whose kernel drops whatever comes: it acknowledges nothing.
async fn deaf_connections(link: &Arc<Link>, number: usize) -> Vec<(TransportHandle, TcpStream)> {
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let listener = TcpListener::bind((here, 0)).await.unwrap();
    let mut connections = Vec::new();
    for _ in 0..number {
        let client = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let drop_all = SockFilter::new(0x06, 0, 0, 0);
        SockRef::from(&client).attach_filter(&[drop_all]).unwrap();
        let (_, socket) = listener.accept().await.unwrap().0.into_split();
        connections.push((link.transport(Box::new(socket), here, here), client));
    }
    connections
}

fn submitted(queue: &mut Queue, transport: &TransportHandle, client: u128, now_ns: u64) -> JobId {
    let client = Client {
        name: client,
        ..self::client()
    };
    let length = Length::Known(100_000);
    let id = queue.submit(transport.shared(), client, length, None, now_ns);
    queue.dispatch(now_ns);
    id.unwrap()
}

#[tokio::test]
async fn few_connections_of_a_client_are_new_at_a_time() {
    let (mut queue, known, _client) = queue_and_connection(LinkMode::Auto).await;
    let deaf = deaf_connections(known.link(), 40).await;
    let jobs: Vec<JobId> = deaf
        .iter()
        .map(|(transport, _)| submitted(&mut queue, transport, 1, SECOND))
        .collect();
    let granted = |queue: &mut Queue, jobs: &[JobId]| -> usize {
        let granted = |id: &&JobId| queue.take_grant(**id).is_some();
        jobs.iter().filter(granted).count()
    };
    assert_eq!(granted(&mut queue, &jobs), 32);
    // Another client is not concerned; nor is one of this client's that has had something before.
    let other = submitted(&mut queue, &known, 2, SECOND);
    assert!(queue.take_grant(other).is_some());
    let again = submitted(&mut queue, &deaf[0].0, 1, SECOND);
    assert!(queue.take_grant(again).is_some());
    // One that waits can go.
    assert!(queue.remove(jobs[39]).is_some());
    // Nobody acknowledges: after three seconds they are new no more, and the next begin.
    let look_again_ns = queue.dispatch(2 * SECOND);
    assert_eq!(look_again_ns, Some(250_000));
    assert_eq!(granted(&mut queue, &jobs[..39]), 0);
    queue.dispatch(4 * SECOND + 1);
    assert_eq!(granted(&mut queue, &jobs[..39]), 7);
    assert_eq!(queue.dispatch(5 * SECOND), None);
}

#[tokio::test]
async fn where_nobody_ever_acknowledges_the_next_are_new_for_twice_as_long() {
    let (mut queue, known, _client) = queue_and_connection(LinkMode::Auto).await;
    let deaf = deaf_connections(known.link(), 80).await;
    for (transport, _) in &deaf {
        submitted(&mut queue, transport, 1, SECOND);
    }
    let held = [4, 7, 9, 10, 15].map(|second| {
        queue.dispatch(second * SECOND + 1);
        queue.newcomers.held()
    });
    assert_eq!(held, [16, 16, 16, 0, 0]);
}

/// More than are asked at a look.
#[tokio::test]
async fn clients_whose_connections_wait_are_looked_at_in_turn() {
    const CLIENTS: usize = 10;
    let (mut queue, known, _client) = queue_and_connection(LinkMode::Auto).await;
    let deaf = deaf_connections(known.link(), CLIENTS * 33).await;
    let submitted: Vec<JobId> = (0..deaf.len())
        .map(|place| {
            let client = (place % CLIENTS) as u128;
            submitted(&mut queue, &deaf[place].0, client, SECOND)
        })
        .collect();
    let last = &submitted[CLIENTS * 32..];
    let granted = |queue: &mut Queue| -> usize {
        let granted = |id: &&JobId| queue.take_grant(**id).is_some();
        last.iter().filter(granted).count()
    };
    assert_eq!(granted(&mut queue), 0);
    queue.dispatch(5 * SECOND);
    assert_eq!(granted(&mut queue), 256 / 32);
    queue.dispatch(6 * SECOND);
    assert_eq!(granted(&mut queue), CLIENTS - 256 / 32);
    assert_eq!(queue.dispatch(7 * SECOND), None);
}

#[tokio::test]
async fn who_acknowledges_makes_room_at_once() {
    let (mut queue, known, mut client) = queue_and_connection(LinkMode::Auto).await;
    let deaf = deaf_connections(known.link(), 32).await;
    submitted(&mut queue, &known, 1, SECOND);
    let jobs: Vec<JobId> = deaf
        .iter()
        .map(|(transport, _)| submitted(&mut queue, transport, 1, SECOND))
        .collect();
    assert!(queue.take_grant(jobs[31]).is_none());
    poll_fn(|context| known.socket().poll_write_ready(context))
        .await
        .unwrap();
    known.socket().try_write(&[IoSlice::new(b"data")]).unwrap();
    client.read_exact(&mut [0; 4]).await.unwrap();
    // The kernel may put its acknowledgement off for a moment.
    while !known.has_acknowledged() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    queue.dispatch(2 * SECOND);
    assert!(queue.take_grant(jobs[31]).is_some());
}
