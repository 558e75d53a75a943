//! The gate as its relays use it: which requests are admitted, which wait, and what is given back.

#![allow(clippy::unwrap_used)]
use std::future::Future;
use std::num::NonZeroU64;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use shortline_sched::admission::{AdmissionConfig, Order, Outcome, Refusal};

use super::*;

const WAIT_MAX: Duration = Duration::from_secs(2);

/// A gate that admits one request at a time.
fn narrow(queue_max: usize) -> Gate {
    narrow_with_escape(queue_max, None)
}

/// The same. After `stall_ms` without progress, the next request is admitted.
fn narrow_with_escape(queue_max: usize, stall_ms: Option<u64>) -> Gate {
    Gate::new(GateConfig {
        admission: AdmissionConfig {
            order: Order::Sjf,
            capacity: "1ns".parse().unwrap(),
            queue_max,
            stall_ns: stall_ms.and_then(|ms| NonZeroU64::new(ms * 1_000_000)),
            ..AdmissionConfig::default()
        },
        wait_max: WAIT_MAX,
        ..GateConfig::default()
    })
}

/// Polls once: `None` if it is not ready.
fn poll_once<F: Future + ?Sized>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_runs_when_one_has_ended() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let first = gate.admit(kind).await.unwrap();
    assert_eq!(first.waited(), Duration::ZERO);
    let second = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit(kind).await.unwrap() }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(gate.snapshot().waiting, 1);
    first.finish(Outcome::Completed);
    let second = second.await.unwrap();
    assert!(second.waited() >= Duration::from_millis(50));
    drop(second);
    let snapshot = gate.snapshot();
    assert_eq!((snapshot.running, snapshot.load_ns), (0, 0));
    let view = &snapshot.types[1];
    assert_eq!((view.completed, view.failed), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_future_that_is_dropped_leaves_the_queue() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let first = gate.admit(kind).await.unwrap();
    {
        let mut waiting = pin!(gate.admit(kind));
        assert!(poll_once(waiting.as_mut()).is_none());
        assert_eq!(gate.snapshot().waiting, 1);
    }
    assert_eq!(gate.snapshot().waiting, 0);
    drop(first);
    assert_eq!(gate.snapshot().running, 0);
}

#[tokio::test(start_paused = true)]
async fn one_that_is_dropped_after_it_was_admitted_gives_its_load_back() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let first = gate.admit(kind).await.unwrap();
    {
        let mut waiting = pin!(gate.admit(kind));
        assert!(poll_once(waiting.as_mut()).is_none());
        drop(first);
        assert_eq!(gate.snapshot().running, 1);
    }
    let snapshot = gate.snapshot();
    assert_eq!((snapshot.running, snapshot.load_ns), (0, 0));
    assert!(gate.0.state.lock().waiters.is_empty());
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_longer_than_may_be_nor_in_a_full_queue() {
    let gate = narrow(1);
    let kind = gate.type_of("a");
    let first = gate.admit(kind).await.unwrap();
    let waits = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit(kind).await }
    });
    tokio::task::yield_now().await;
    let full = gate.admit(kind).await.unwrap_err();
    assert_eq!(full, Refusal::QueueFull { limit: 1 });
    let Err(Refusal::WaitedTooLong { wait_ns }) = waits.await.unwrap() else {
        panic!("admitted beside another");
    };
    assert_eq!(wait_ns, 2_000_000_000);
    first.finish(Outcome::Completed);
    assert!(gate.admit(kind).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn others_run_while_one_is_paused() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let mut first = gate.admit(kind).await.unwrap();
    first.pause();
    let second = gate.admit(kind).await.unwrap();
    first.resume();
    assert_eq!(gate.snapshot().active, 2);
    first.finish(Outcome::Completed);
    second.finish(Outcome::Completed);
    assert_eq!(gate.snapshot().active, 0);
}

#[tokio::test(start_paused = true)]
async fn a_standstill_ends_after_a_while() {
    let gate = narrow_with_escape(10, Some(500));
    let kind = gate.type_of("holds a lock");
    let holder = gate.admit(kind).await.unwrap();
    // Waits at the backend for a lock whose session is in the queue.
    let released = gate.admit(kind).await.unwrap();
    assert!(released.waited() >= Duration::from_millis(500));
    assert!(released.waited() < Duration::from_millis(510));
    assert_eq!(gate.snapshot().totals.escaped, 1);
    released.finish(Outcome::Completed);
    holder.finish(Outcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_watch_ends_with_the_queue_and_begins_again() {
    let gate = narrow_with_escape(10, Some(500));
    let kind = gate.type_of("a");
    for _ in 0..2 {
        let first = gate.admit(kind).await.unwrap();
        {
            let mut waiting = pin!(gate.admit(kind));
            assert!(poll_once(waiting.as_mut()).is_none());
            assert!(gate.0.state.lock().watched);
        }
        drop(first);
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(!gate.0.state.lock().watched);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_learnt_outlives_the_gate() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let first = gate.admit(kind).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    first.finish(Outcome::Completed);
    let next = narrow(10);
    next.restore(&gate.kept());
    assert_eq!(next.snapshot().types[1].estimate_ns, 30_000_000);
}

#[test]
fn refusals_are_one_line() {
    let refusals = [
        Refusal::QueueFull { limit: 1 },
        Refusal::WaitedTooLong { wait_ns: 1_000_000 },
        Refusal::Shed {
            wait_ns_expected: 9_000_000,
            limit_ns: 5_000_000,
        },
    ];
    for refusal in refusals {
        let text = refusal.to_string();
        assert!(text.lines().count() == 1 && !text.contains("  "), "{text}");
    }
}

/// Tasks on several threads ask, wait, give up, pause and end in every way. In the end the gate is
/// empty and still admits.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_left_behind_by_many_at_once() {
    let gate = Gate::new(GateConfig {
        admission: AdmissionConfig {
            capacity: "30ms".parse().unwrap(),
            queue_max: 100,
            ..AdmissionConfig::default()
        },
        wait_max: Duration::from_millis(20),
        ..GateConfig::default()
    });
    let tasks: Vec<_> = (0..2000u32)
        .map(|number| tokio::spawn(visit(gate.clone(), number)))
        .collect();
    let mut refused = 0;
    for task in tasks {
        refused += usize::from(!task.await.unwrap());
    }
    let snapshot = gate.snapshot();
    let left = (snapshot.waiting, snapshot.running, snapshot.active);
    assert_eq!((left, snapshot.load_ns), ((0, 0, 0), 0));
    let totals = snapshot.totals;
    assert_eq!(totals.admitted, totals.completed + totals.failed);
    assert!(totals.admitted > 0 && (totals.admitted as usize) <= 2000 - refused);
    assert!(gate.0.state.lock().waiters.is_empty());
    let kind = gate.type_of("after");
    gate.admit(kind).await.unwrap().finish(Outcome::Completed);
}

/// One of the tasks. Returns false if its request was refused.
async fn visit(gate: Gate, number: u32) -> bool {
    let kind = gate.type_of(&(number % 7).to_string());
    if number.is_multiple_of(5) {
        // Gives up after a while, admitted or not.
        let patience = Duration::from_micros(u64::from(number % 300));
        let _ = tokio::time::timeout(patience, gate.admit(kind)).await;
        return true;
    }
    let Ok(mut admitted) = gate.admit(kind).await else {
        return false;
    };
    tokio::task::yield_now().await;
    if number.is_multiple_of(3) {
        admitted.pause();
        tokio::task::yield_now().await;
        admitted.resume();
    }
    match number % 4 {
        0 => drop(admitted),
        1 => admitted.finish(Outcome::Failed),
        _ => admitted.finish(Outcome::Completed),
    }
    true
}

#[tokio::test(start_paused = true)]
async fn a_pause_keeps_all_waiting_and_counts_for_nobodys_limit() {
    let gate = narrow_with_escape(10, Some(100));
    let kind = gate.type_of("a");
    let first = gate.admit(kind).await.unwrap();
    let waiting = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit(kind).await }
    });
    tokio::time::sleep(Duration::from_millis(50)).await;
    gate.hold(None).unwrap();
    assert!(gate.hold(None).is_err());
    first.finish(Outcome::Completed);
    tokio::time::sleep(WAIT_MAX * 10).await;
    let snapshot = gate.snapshot();
    assert_eq!((snapshot.running, snapshot.waiting), (0, 1));
    gate.resume(None).unwrap();
    assert!(gate.resume(None).is_err());
    let second = waiting.await.unwrap().unwrap();
    assert!(second.waited() >= WAIT_MAX * 10);
    // After the pause the limits hold as before, and so does the escape from a standstill.
    let third = gate.admit(kind).await.unwrap();
    assert!(third.waited() >= Duration::from_millis(100));
    assert_eq!(gate.snapshot().totals.escaped, 1);
}

fn of(request_type: TypeId, client: &GateClient) -> Question<'_> {
    Question {
        client: Some(client),
        ..request_type.into()
    }
}

#[tokio::test(start_paused = true)]
async fn a_database_that_is_paused_keeps_nobody_of_another() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let client = |database: &str| {
        let mut client = gate.client("user");
        client.set_database(database);
        client
    };
    let (shop, other) = (client("shop"), client("other"));
    let Ok(Decision::Admitted(first)) = gate.ask(of(kind, &shop)) else {
        panic!("the first is admitted at once");
    };
    let Ok(Decision::Waits(mut in_queue)) = gate.ask(of(kind, &shop)) else {
        panic!("the second waits");
    };
    assert!(poll_once(in_queue.as_mut()).is_none());
    gate.hold(Some("shop")).unwrap();
    assert!(poll_once(in_queue.as_mut()).is_none());
    assert_eq!(gate.snapshot().waiting, 0);
    first.finish(Outcome::Completed);
    let Ok(Decision::Admitted(of_other)) = gate.ask(of(kind, &other)) else {
        panic!("the other database is open");
    };
    let Ok(Decision::Waits(mut before_queue)) = gate.ask(of(kind, &shop)) else {
        panic!("it is kept out");
    };
    tokio::time::sleep(WAIT_MAX * 10).await;
    assert!(poll_once(before_queue.as_mut()).is_none());
    of_other.finish(Outcome::Completed);
    assert!(poll_once(in_queue.as_mut()).is_none());
    gate.resume(Some("shop")).unwrap();
    assert_eq!(
        gate.resume(Some("shop")),
        Err(DoorError::IsNotPaused("database shop".to_owned()))
    );
    let admitted = in_queue.await.unwrap();
    assert!(poll_once(before_queue.as_mut()).is_none());
    drop(admitted);
    assert!(before_queue.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_limit_of_a_wait_goes_on_where_a_pause_of_the_database_began() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let mut client = gate.client("user");
    client.set_database("shop");
    let running = gate.admit(kind).await.unwrap();
    let mut waiting = pin!(gate.admit(of(kind, &client)));
    assert!(poll_once(waiting.as_mut()).is_none());
    let most = WAIT_MAX * 3 / 4;
    for _ in 0..2 {
        tokio::time::sleep(most / 2).await;
        gate.hold(Some("shop")).unwrap();
        assert!(poll_once(waiting.as_mut()).is_none());
        tokio::time::sleep(WAIT_MAX * 10).await;
        gate.resume(Some("shop")).unwrap();
        assert!(poll_once(waiting.as_mut()).is_none());
    }
    let resumed = Instant::now();
    let refusal = waiting.await.unwrap_err();
    // Timers are exact to a millisecond.
    let is_near = |time: Duration, expected| time.abs_diff(expected) < Duration::from_millis(10);
    assert!(is_near(resumed.elapsed(), WAIT_MAX - most));
    let Refusal::WaitedTooLong { wait_ns } = refusal else {
        panic!("{refusal}");
    };
    assert!(is_near(Duration::from_nanos(wait_ns), WAIT_MAX));
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn gates_beside_each_other_have_queues_of_their_own_and_one_door() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let first = gate.admit(kind).await.unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    first.finish(Outcome::Completed);
    let beside = gate.beside();
    // It begins with what the other has learnt.
    assert_eq!(beside.snapshot().types[1].estimate_ns, 30_000_000);
    let busy = gate.admit(kind).await.unwrap();
    let there = beside.admit(beside.type_of("a")).await.unwrap();
    assert_eq!((gate.running(), gate.running_in_all()), (1, 2));
    assert!(gate.left_ns() > 0 && beside.left_ns() > 0);
    there.finish(Outcome::Completed);
    assert_eq!(beside.left_ns(), 0);
    gate.hold(None).unwrap();
    let mut waiting = pin!(beside.admit(beside.type_of("a")));
    assert!(poll_once(waiting.as_mut()).is_none());
    assert_eq!(beside.waiting(), 1);
    gate.resume(None).unwrap();
    waiting.await.unwrap().finish(Outcome::Completed);
    busy.finish(Outcome::Completed);
    // Its settings are the other's.
    let config = GateConfig {
        wait_max: Duration::from_millis(1),
        ..gate.0.config.read().clone()
    };
    gate.reconfigure(&config);
    assert_eq!(beside.0.config.read().wait_max, Duration::from_millis(1));
}

#[tokio::test(start_paused = true)]
async fn a_client_is_of_the_same_tenant_at_a_gate_beside() {
    let gate = narrow(10);
    let beside = gate.beside();
    let mut client = gate.client("user");
    client.join(Some("shop")).unwrap();
    let there = client.at(&beside);
    let admitted = beside.admit(Question {
        tenant: there.tenant(),
        ..of(beside.type_of("a"), &there)
    });
    let admitted = admitted.await.unwrap();
    let tenants = beside.snapshot().tenants;
    let shop = tenants.iter().find(|tenant| tenant.name == "shop").unwrap();
    // Its connection is counted where it is.
    assert_eq!((shop.running, shop.connections), (1, 0));
    admitted.finish(Outcome::Completed);
}

#[tokio::test(start_paused = true)]
async fn the_escape_comes_although_all_places_were_taken_for_a_while() {
    let gate = narrow_with_escape(10, Some(1500));
    let kind = gate.type_of("a");
    let first = gate.admit(kind).await.unwrap();
    gate.set_running_max(NonZeroUsize::MIN);
    let second = tokio::spawn({
        let gate = gate.clone();
        async move { gate.admit(kind).await.unwrap() }
    });
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert_eq!(gate.snapshot().waiting, 1, "the only place is taken");
    gate.set_running_max(NonZeroUsize::new(2).unwrap());
    let second = second.await.unwrap();
    assert_eq!(second.waited().as_millis() / 100, 15);
    assert_eq!(gate.snapshot().running, 2);
    drop((first, second));
}

#[test]
fn waits_end_in_time_also_when_the_runtime_of_the_first_is_gone() {
    let gate = narrow(10);
    let kind = gate.type_of("a");
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_time().start_paused(true).build().unwrap()
    };
    let (_running, _waiting) = runtime().block_on(async {
        let running = gate.admit(kind).await.unwrap();
        (running, gate.ask(kind).unwrap())
    });
    assert!(!gate.0.state.lock().expiring);
    let refused = runtime().block_on(gate.admit(kind)).unwrap_err();
    assert!(
        matches!(refused, Refusal::WaitedTooLong { .. }),
        "{refused}"
    );
}
