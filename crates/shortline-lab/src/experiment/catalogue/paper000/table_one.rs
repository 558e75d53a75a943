//! Table 1 of paper 000: the overloads W1 to W10.

use super::*;

/// Whole periods of each, about as long as two of W1.
const TABLE_ONE: [(&str, u64); 10] = [
    ("w1", 100),
    ("w2", 80),
    ("w3", 100),
    ("w4", 100),
    ("w5", 80),
    ("w6", 80),
    ("w7", 69),
    ("w8", 73),
    ("w9", 69),
    ("w10", 77),
];

fn of_table_one(left_out: &[&str]) -> Vec<Point> {
    let numbered = (1..).zip(TABLE_ONE);
    let kept = numbered.filter(|(_, (name, _))| !left_out.contains(name));
    kept.map(|(number, (name, seconds))| {
        as_then(format!("w{number:02}"), Arrivals::table_one(name), seconds).at(f64::from(number))
    })
    .collect()
}

pub(super) fn table_one(files: Files) -> Experiment {
    let points = of_table_one(&[])
        .into_iter()
        .map(|point| point.of(files))
        .collect();
    let checks = || {
        vec![
            Check::new(
                FinishedGain,
                Want::AtLeast(2.0),
                "2 to 8 (0.3-7.2 s to 0.15-1.2 s)",
            ),
            Check::new(LargestRatio, Want::AtMost(1.1), "1.1 at most"),
            Check::new(BytesRatio, Want::AtLeast(0.98), "1"),
            Check::own_aim(FinishedGain, Want::AtLeast(1.0)).of("srpt", "kernel-bands"),
        ]
    };
    if files == Files::Nasa {
        let claim = "W1 to W10 with the files of the NASA trace: gains as with the World Cup's";
        let figures = vec![figure("000 Fig. 16", claim, &[Mean], checks())];
        return uplink(
            "000-nasa-table1",
            "workload W",
            &WITH_BANDS,
            points,
            figures,
        );
    }
    let claim = "W1 to W10: FAIR 0.3 to 7.2 s, SRPT 0.15 to 1.2 s, 2 to 8 times shorter";
    let figures = vec![
        figure("000 Fig. 12", claim, &[Mean], checks()),
        figure(
            "000 Table I",
            "W1 to W10: the largest 1 % at most 10 % worse than under FAIR, SYNs dropped by FAIR alone",
            &[OverTime],
            vec![
                Check::new(LargestRatio, Want::AtMost(1.1), "1.1 at most"),
                Check::new(SynDrops, Want::AtMost(0.0), "0"),
            ],
        ),
    ];
    uplink("000-table1", "workload W", &WITH_BANDS, points, figures)
}

pub(super) fn table_one_realistic() -> Experiment {
    let points = of_table_one(&["w3", "w6"]);
    uplink(
        "000-table1-realistic",
        "workload W",
        &BOTH,
        points
            .into_iter()
            .map(|point| point.with(make_realistic))
            .collect(),
        vec![figure(
            "000 sec. 5.2, setup J",
            "W1 to W10 without W3 and W6 in setup J: 1.4 to 4 times shorter, incomplete 0.2 % at a load of 0.7 and 10 to 15 % at 0.9 in both",
            &[Mean],
            vec![
                Check::new(FinishedGain, Want::AtLeast(1.4), "1.4 to 4"),
                Check::new(IncompleteRatio, Want::AtMost(1.0), "about the same"),
            ],
        )],
    )
}
