//! The figures of each group of clients, which are the networks of 004 one by one (its Figs. 13 to 16,
//! Tables 4 to 7).
//!
//! A record has the address that its request came from, and each group has its own address. Means are
//! over finished requests, as everywhere in 004.
#![deny(clippy::disallowed_methods)]

use std::net::IpAddr;

use serde::Serialize;
use shortline_load::record::RequestRecord;

use super::point::Point;
use shortline_testbed::bed::client_address;

/// The figures of a group of clients.
#[derive(Clone, Debug, Serialize)]
pub struct GroupFigures {
    /// The group's name in the setup.
    pub name: String,
    /// The number of its requests.
    pub requests: usize,
    /// The number of those that finished.
    pub finished: usize,
    /// The mean response time of these, in seconds. `None` if none finished.
    pub mean_finished_s: Option<f64>,
}

/// The figures of each group of the point's setup. Empty if there is one group, or if the records have
/// no addresses.
pub fn of(records: &[RequestRecord], point: &Point) -> Vec<GroupFigures> {
    let groups = &point.setup.environment.groups;
    if groups.len() < 2 || records.iter().all(|record| record.source.is_none()) {
        return Vec::new();
    }
    let groups = groups.iter().enumerate();
    groups
        .map(|(number, group)| {
            let source = Some(IpAddr::V4(client_address(number)));
            let theirs = records.iter().filter(|record| record.source == source);
            GroupFigures::of(&group.name, theirs)
        })
        .collect()
}

impl GroupFigures {
    fn of<'a>(name: &str, records: impl Iterator<Item = &'a RequestRecord>) -> Self {
        let (mut requests, mut finished, mut sum_s) = (0, 0, 0.0);
        for record in records {
            requests += 1;
            if record.ok() {
                finished += 1;
                sum_s += record.response_time_s;
            }
        }
        Self {
            name: name.into(),
            requests,
            finished,
            mean_finished_s: (finished > 0).then(|| sum_s / finished as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use shortline_load::record::Failure;

    use super::*;
    use crate::study::environment::Environment;
    use crate::study::point::Arrivals;

    fn wans() -> Point {
        Point::new("wans", Arrivals::Users(6), 10)
            .with(|setup| setup.environment = "wans".parse::<Environment>().unwrap().0)
    }

    fn record(source: &str, response_time_s: f64) -> RequestRecord {
        RequestRecord {
            source: Some(source.parse().unwrap()),
            ..RequestRecord::finished(0.0, "/a", 1, response_time_s)
        }
    }

    #[test]
    fn each_record_counts_for_the_group_it_came_from() {
        let failed = RequestRecord {
            failure: Some(Failure::Reset),
            ..record("10.92.1.1", 9.0)
        };
        let records = [
            record("10.92.0.1", 1.0),
            record("10.92.1.1", 2.0),
            record("10.92.1.1", 4.0),
            failed,
        ];
        let groups = of(&records, &wans());
        let seen: Vec<_> = groups
            .iter()
            .map(|group| (group.name.as_str(), group.requests, group.mean_finished_s))
            .collect();
        assert_eq!(
            seen[..3],
            [
                ("wan1", 1, Some(1.0)),
                ("wan2", 3, Some(3.0)),
                ("wan3", 0, None)
            ]
        );
        assert_eq!((seen.len(), groups[1].finished), (6, 2));
    }

    #[test]
    fn one_group_or_records_of_before_have_none() {
        let records = [record("10.91.0.2", 1.0)];
        let local = Point::new("w1", Arrivals::table_one("w1"), 10);
        assert!(of(&records, &local).is_empty());
        let unsaid = [RequestRecord::finished(0.0, "/a", 1, 1.0)];
        assert!(of(&unsaid, &wans()).is_empty());
    }
}
