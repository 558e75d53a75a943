//! What a pipeline expects after all kinds of answers and errors.

#![allow(clippy::unwrap_used)]
use super::super::prepared::{Notes, Table};
use super::*;
use proptest::prelude::*;

fn prepares(id: u64, client_name: Option<&[u8]>) -> Prepares {
    Prepares {
        id,
        is_unnamed: false,
        client_name: client_name.map(Into::into),
    }
}

#[test]
fn answers_of_our_own_stay_and_what_is_put_in_keeps_its_place() {
    let mut pipeline = Pipeline::default();
    pipeline.send_hidden_query();
    pipeline.send_parse(prepares(1, None), None);
    pipeline.send();
    pipeline.put(vec![7], Effect::Prepared(b"x".as_slice().into()));
    pipeline.send();
    pipeline.send_sync();
    assert_eq!(pipeline.receive(b'C'), Fate::Hidden);
    assert!(!pipeline.ready(false));
    assert_eq!(pipeline.receive(b'1'), Fate::Prepared(prepares(1, None)));
    assert_eq!(pipeline.take_put(), None);
    assert_eq!(pipeline.receive(b'2'), Fate::Passed);
    assert_eq!(pipeline.take_put(), Some(vec![7]));
    assert_eq!(pipeline.receive(b'D'), Fate::Passed);
    assert_eq!(pipeline.receive(b'C'), Fate::Passed);
    assert!(pipeline.ready(true) && pipeline.is_empty());
}

#[test]
fn an_error_takes_all_with_it_up_to_the_sync() {
    let mut pipeline = Pipeline::default();
    pipeline.send_parse(prepares(1, Some(b"a")), None);
    pipeline.send();
    pipeline.put(vec![7], Effect::Prepared(b"x".as_slice().into()));
    pipeline.send_hidden_close(Arc::<Table>::default().enter(&b"a\0\0\0"[..], Notes::of));
    pipeline.send_parse(prepares(2, Some(b"b")), None);
    pipeline.send_sync();
    pipeline.send_parse(prepares(3, Some(b"c")), None);
    pipeline.send_sync();
    let lost = pipeline.fail();
    let [
        Lost::Parse(a),
        Lost::Effect(Effect::Prepared(x)),
        Lost::Close(_),
        Lost::Parse(b),
    ] = &lost[..]
    else {
        panic!("{lost:?}")
    };
    assert_eq!((a, b), (&prepares(1, Some(b"a")), &prepares(2, Some(b"b"))));
    assert_eq!(**x, *b"x");
    assert!(pipeline.ready(false));
    assert_eq!(
        pipeline.receive(b'1'),
        Fate::Prepared(prepares(3, Some(b"c")))
    );
    assert!(pipeline.ready(true));
}

#[test]
fn without_a_sync_what_is_sent_later_is_ignored_too() {
    let mut pipeline = Pipeline::default();
    pipeline.send();
    assert!(pipeline.fail().is_empty() && pipeline.is_skipping());
    pipeline.send();
    assert!(pipeline.is_empty());
    pipeline.send_sync();
    assert!(!pipeline.is_skipping() && pipeline.ready(true) && pipeline.is_empty());
}

#[test]
fn an_error_of_a_query_ends_nothing_else() {
    let mut pipeline = Pipeline::default();
    pipeline.send_query();
    assert!(pipeline.is_last());
    pipeline.send_query();
    assert!(!pipeline.is_last());
    assert!(pipeline.fail().is_empty());
    assert!(pipeline.ready(false) && !pipeline.is_empty());
    assert!(pipeline.ready(true));
}

#[test]
fn what_was_sent_behind_the_sync_that_is_answered_is_still_expected() {
    let mut pipeline = Pipeline::default();
    pipeline.send();
    pipeline.send_sync();
    pipeline.send_parse(prepares(1, None), None);
    pipeline.send();
    assert_eq!(pipeline.receive(b'2'), Fate::Passed);
    // No Sync is unanswered now.
    assert!(pipeline.ready(true));
    assert_eq!(pipeline.receive(b'1'), Fate::Prepared(prepares(1, None)));
    assert_eq!(pipeline.receive(b'2'), Fate::Passed);
    assert!(pipeline.is_empty());
    // Syncs that a COPY has ignored are not waited for.
    pipeline.send();
    pipeline.send_sync();
    pipeline.send_sync();
    pipeline.send_parse(prepares(2, None), None);
    assert!(pipeline.ready(true));
    assert_eq!(pipeline.receive(b'1'), Fate::Prepared(prepares(2, None)));
}

#[test]
fn a_parse_of_an_earlier_segment_is_awaited_until_it_is_answered() {
    let mut pipeline = Pipeline::default();
    pipeline.send_parse(prepares(1, Some(b"a")), None);
    let is_first = |pending: Pending<'_>| matches!(pending, Pending::Parse(parse) if parse.id == 1);
    assert!(!pipeline.awaits(is_first), "it fails with what follows");
    pipeline.send_sync();
    assert!(pipeline.awaits(is_first) && !pipeline.awaits(|_| false));
    pipeline.receive(b'1');
    assert!(!pipeline.awaits(is_first));
}

#[test]
fn a_parse_that_fails_removes_the_unnamed_statement_and_one_that_is_skipped_does_not() {
    let table = Arc::<Table>::default();
    let [a, b, c] =
        [b"a\0\0\0", b"b\0\0\0", b"c\0\0\0"].map(|body| table.enter(&body[..], Notes::of));
    let unnamed = |statement: &Arc<Statement>| Prepares {
        id: statement.id,
        is_unnamed: true,
        client_name: Some(b"".as_slice().into()),
    };
    let ids = |pipeline: &Pipeline| {
        let Unnamed { client, there } = pipeline.unnamed();
        (client.map(|statement| statement.id), there)
    };
    let mut pipeline = Pipeline::default();
    pipeline.begin(Unnamed {
        client: Some(Arc::clone(&a)),
        there: Some(9),
    });
    // A Bind fails, and the Parse behind it is skipped.
    pipeline.send();
    pipeline.send_parse(unnamed(&b), Some(Arc::clone(&b)));
    pipeline.send_sync();
    assert!(pipeline.awaits_unnamed());
    assert_eq!(ids(&pipeline), (Some(b.id), Some(b.id)));
    pipeline.fail();
    assert_eq!(ids(&pipeline), (Some(a.id), Some(9)));
    assert!(pipeline.ready(true) && !pipeline.awaits_unnamed());
    // A Parse fails, and another has been sent behind it.
    pipeline.send_parse(unnamed(&b), Some(Arc::clone(&b)));
    pipeline.send_sync();
    pipeline.send_parse(unnamed(&c), Some(Arc::clone(&c)));
    assert!(!pipeline.awaits_unnamed(), "it is skipped with the Parse");
    pipeline.fail();
    assert_eq!(ids(&pipeline), (Some(c.id), Some(c.id)));
    pipeline.send_sync();
    assert!(pipeline.ready(false));
    pipeline.fail();
    assert_eq!(ids(&pipeline), (None, None));
}

proptest! {
    #[test]
    fn any_order_of_messages_is_followed(steps in prop::collection::vec(0..12_u8, 0..100)) {
        let statement = Arc::<Table>::default().enter(&b"a\0\0\0"[..], Notes::of);
        let mut pipeline = Pipeline::default();
        for step in steps {
            match step {
                0 => pipeline.send(),
                1 => pipeline.send_parse(prepares(1, None), None),
                2 => pipeline.send_hidden_close(Arc::clone(&statement)),
                3 => pipeline.put(vec![1], Effect::Closed(b"x".as_slice().into(), None)),
                4 => pipeline.send_query(),
                5 => pipeline.send_sync(),
                6 => pipeline.send_hidden_query(),
                7 => { pipeline.take_put(); }
                8 => { pipeline.receive(b'1'); }
                9 => { pipeline.receive(b'C'); }
                10 => { pipeline.fail(); }
                _ => { pipeline.ready(false); }
            }
        }
        pipeline.send_sync();
        while !pipeline.is_empty() {
            pipeline.ready(false);
        }
    }
}
