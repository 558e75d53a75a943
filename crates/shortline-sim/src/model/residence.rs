//! How long smaller arrivals hold up a job under SRPT once it has begun: the integral of rho(t) /
//! (1 - rho(t)) from 0 to its size (Schrage, Miller 1966), as a table at the mesh's borders. It is
//! infinite from the size at which the smaller jobs alone overload the server.

use super::mesh::{Mesh, gauss};
use crate::dist::Distribution;

/// Delays by size, for one arrival rate.
#[derive(Debug)]
pub(super) struct Residence<'a> {
    sizes: &'a Distribution,
    arrival_rate: f64,
    borders: &'a [f64],
    delays: Vec<f64>,
}

impl<'a> Residence<'a> {
    pub(super) fn new(sizes: &'a Distribution, arrival_rate: f64, mesh: &'a Mesh) -> Self {
        let mut residence = Self {
            sizes,
            arrival_rate,
            borders: &mesh.borders,
            delays: Vec::with_capacity(mesh.borders.len()),
        };
        // Nothing, or one job in 1e10, is smaller than the first border.
        let mut delay = 0.0;
        let mut from = mesh.borders.first().copied().unwrap_or_default();
        for &border in &mesh.borders {
            delay += residence.held_up(from, border);
            residence.delays.push(delay);
            from = border;
        }
        residence
    }

    pub(super) fn delay(&self, size: f64) -> f64 {
        match self.borders.partition_point(|&border| border <= size) {
            0 => 0.0,
            place => self.delays[place - 1] + self.held_up(self.borders[place - 1], size),
        }
    }

    fn held_up(&self, from: f64, to: f64) -> f64 {
        if to <= from {
            return 0.0;
        }
        gauss(from, to)
            .map(|(size, weight)| {
                let load = self.arrival_rate * self.sizes.partial_moment(1, size);
                if load < 1.0 {
                    weight * load / (1.0 - load)
                } else {
                    f64::INFINITY
                }
            })
            .sum()
    }
}
