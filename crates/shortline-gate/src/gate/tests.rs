#![allow(clippy::unwrap_used)]
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use shortline_sched::admission::{AdmissionConfig, Order};

use super::*;

const WAIT_MAX: Duration = Duration::from_secs(10);

/// A gate that lets one request through at a time.
fn narrow(queue_max: usize) -> Gate {
    Gate::new(GateConfig {
        admission: AdmissionConfig {
            order: Order::Sjf,
            capacity: "1ns".parse().unwrap(),
            queue_max,
            ..AdmissionConfig::default()
        },
        wait_max: WAIT_MAX,
    })
}

/// Polls once: `None` if it is not ready.
fn poll_once<F: Future>(future: std::pin::Pin<&mut F>) -> Option<F::Output> {
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
    assert_eq!(full, Refused::QueueFull { limit: 1 });
    let Err(Refused::WaitedTooLong { wait_ms }) = waits.await.unwrap() else {
        panic!("admitted beside another");
    };
    assert_eq!(wait_ms, 10_000);
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
