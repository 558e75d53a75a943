//! Runs seeds: `seeds FROM TO [trace]`.
fn main() {
    let args: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|a| a.parse().ok())
        .collect();
    let traced = std::env::args().any(|a| a == "trace");
    let begun = std::time::Instant::now();
    let (mut events, mut faults) = (0, 0);
    for seed in args[0]..args[1] {
        let run = shortline_world::simulate(seed, traced);
        events += run.events;
        for line in &run.trace {
            println!("{line}");
        }
        if let Some((at, fault)) = &run.fault {
            faults += 1;
            println!(
                "seed {seed}: {fault} at {} ms ({})",
                at / 1_000_000,
                run.scenario
            );
        } else if args[1] - args[0] < 20 {
            println!(
                "seed {seed}: ok {}/{} whole, {} events, {} ms, {:x} ({})",
                run.responses_whole,
                run.requests,
                run.events,
                run.lasted_ns / 1_000_000,
                run.digest,
                run.scenario
            );
        }
    }
    let s = begun.elapsed().as_secs_f64();
    println!(
        "{} seeds, {faults} faults, {events} events, {:.1} s, {:.0} seeds/s",
        args[1] - args[0],
        s,
        (args[1] - args[0]) as f64 / s
    );
}
