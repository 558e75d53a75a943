//! Random calls, as a link makes them with clients that stall, vanish and lie: nothing is lost.

use super::*;

#[derive(Clone, Debug)]
enum Call {
    Submit { client: Option<u128>, work: u64 },
    Serve { work: u64, then: Then },
    Suspend(usize),
    Resume(usize),
    Revise(usize, u64),
    Remove(usize),
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Resume,
    Suspend,
    Remove,
}

fn call() -> impl Strategy<Value = Call> {
    let client = prop::option::of(0..6u128);
    let work = prop_oneof![9 => 0..5000u64, 1 => Just(u64::MAX)];
    let then =
        prop_oneof![3 => Just(Then::Resume), 1 => Just(Then::Suspend), 2 => Just(Then::Remove)];
    prop_oneof![
        4 => (client, work).prop_map(|(client, work)| Call::Submit { client, work }),
        4 => (0..9000u64, then).prop_map(|(work, then)| Call::Serve { work, then }),
        1 => (0..40usize).prop_map(Call::Suspend),
        2 => (0..40usize).prop_map(Call::Resume),
        1 => (0..40usize, 0..9000u64).prop_map(|(which, work)| Call::Revise(which, work)),
        1 => (0..40usize).prop_map(Call::Remove),
    ]
}

proptest! {
    #[test]
    fn each_that_waits_is_served_in_the_end(calls in prop::collection::vec(call(), 0..300)) {
        let mut scheduler = Scheduler::new(SchedulerConfig::new(Policy::Shares, 40));
        let mut held: Vec<JobId> = Vec::new();
        for call in calls {
            let named = |which: usize| held.get(which % held.len().max(1)).copied();
            match call {
                Call::Submit { client, work } => {
                    let client = client.map(|name| Client { name, weight: NonZeroU32::MIN });
                    held.extend(scheduler.submit(JobSpec { work, client, ..JobSpec::default() }));
                }
                Call::Serve { work, then } => {
                    let waiting = scheduler.waiting();
                    if let Some(id) = scheduler.take(0) {
                        prop_assert_eq!(scheduler.waiting(), waiting - 1);
                        scheduler.record(id, work);
                        match then {
                            Then::Resume => scheduler.resume(id),
                            Then::Suspend => scheduler.suspend(id),
                            Then::Remove => {
                                scheduler.remove(id);
                                held.retain(|other| *other != id);
                            }
                        }
                    } else {
                        prop_assert_eq!(waiting, 0);
                    }
                }
                Call::Suspend(which) => named(which).into_iter().for_each(|id| scheduler.suspend(id)),
                Call::Resume(which) => named(which).into_iter().for_each(|id| scheduler.resume(id)),
                Call::Revise(which, work) => {
                    named(which).into_iter().for_each(|id| scheduler.revise(id, work, work));
                }
                Call::Remove(which) => {
                    if let Some(id) = named(which) {
                        prop_assert!(scheduler.remove(id).is_some());
                        held.retain(|other| *other != id);
                    }
                }
            }
            prop_assert_eq!(scheduler.len(), held.len());
            let waiting = held.iter().filter(|&&id| scheduler.is_waiting(id)).count();
            prop_assert_eq!(scheduler.waiting(), waiting);
            prop_assert_eq!(scheduler.peek(0).is_some(), waiting > 0);
        }
        held.iter().for_each(|&id| scheduler.resume(id));
        for left in (0..held.len()).rev() {
            let id = scheduler.take(0).unwrap();
            scheduler.remove(id);
            prop_assert_eq!(scheduler.len(), left);
        }
    }
}
