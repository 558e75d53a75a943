//! scratch
use std::ops::ControlFlow;
fn main() {
    let args: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    if std::env::args().any(|a| a == "trace") {
        let run = shortline_world::simulate(args[0], true);
        for line in &run.trace {
            println!("{line}");
        }
        println!("{run}");
        return;
    }
    let begun = std::time::Instant::now();
    let (mut n, mut events, mut faults) = (0, 0, 0);
    let all = args[1] - args[0];
    shortline_world::simulate_many(args[0], args.get(2).map_or(2, |n| *n as usize), |run| {
        n += 1;
        events += run.events;
        if run.fault.is_some() {
            faults += 1;
            println!("{run}");
        }
        if n == all {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    let s = begun.elapsed().as_secs_f64();
    println!(
        "{all} seeds, {faults} faults, {events} events, {s:.1} s, {:.0} seeds/s",
        all as f64 / s
    );
}
