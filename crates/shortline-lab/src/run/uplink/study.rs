//! An experiment over an uplink, as a kind of experiment.

use std::path::Path;

use shortline_sched::Policy;
use shortline_testbed::bed::setup::Bottleneck;
use shortline_testbed::server::{OursMode, Server};

use crate::LabError;
use crate::report::{self, plot, table};
use crate::run::study::{Choices, Data, Findings, Job, Study};
use crate::study::design::{Design, Experiment};
use crate::study::figures::Figures;
use crate::study::kept;
use crate::study::plan::{Plan, write_json};
use crate::study::point::Point;

impl Study for Design {
    fn length(&self) -> String {
        let servers = self.servers.len();
        let here = |point: &Point| {
            self.servers
                .iter()
                .filter(|server| point.runs(server))
                .count()
        };
        let all_s = self
            .points
            .iter()
            .map(|point| point.seconds * here(point) as u64);
        let all_s: u64 = all_s.sum();
        let seeds = match self.seeds {
            1 => String::new(),
            number => format!(", {number} seeds"),
        };
        let length = match &self.points[..] {
            [point] => format!(
                "{servers} servers{seeds}, {} s each and what is left then",
                point.seconds
            ),
            points => {
                let minutes = (all_s * self.seeds).div_ceil(60);
                let points = points.len();
                format!(
                    "{points} points, {servers} servers{seeds}, {minutes} min and what is left then"
                )
            }
        };
        match self.needs() {
            Some(needs) => format!("{length}; needs {needs}"),
            None => length,
        }
    }

    fn has_bed(&self) -> bool {
        !self.on_loopback()
    }

    fn has_rate(&self) -> bool {
        true
    }

    fn job(&self, id: &str, asked: &Choices) -> Result<Job, LabError> {
        let plan = self.plan(id, asked)?;
        Ok(Box::new(move |testbed| super::run(testbed, &plan)))
    }

    fn has_results(&self, folder: &Path) -> Result<bool, LabError> {
        let is_planned = folder.join("plan.json").exists();
        Ok(is_planned && kept::whole_runs(folder, &Plan::read(folder)?) > 0)
    }

    fn report(&self, experiment: &Experiment, folder: &Path) -> Result<Findings, LabError> {
        let plan = Plan::read(folder)?;
        if plan.experiment != experiment.id {
            let plan_file = folder.join("plan.json");
            let problem = format!("is of experiment `{}`", plan.experiment);
            return Err(LabError::kept(&plan_file)(problem));
        }
        let figures = Figures::of(folder, &plan)?;
        write_json(&folder.join("summary.json"), &figures)?;
        if let [point] = &plan.points[..] {
            plot::draw(&folder.join("plot.svg"), folder, &plan, point)?;
        }
        let whole = kept::whole_runs(folder, &plan);
        let path = report::write(&report::Results {
            folder,
            experiment,
            axis: &self.axis,
            plan: &plan,
            figures: &figures,
            whole,
        })?;
        let text = table::table(experiment, &plan, &figures, whole);
        let text = format!("{text}\npage: {}\n", path.display());
        Ok(Findings {
            text,
            void_runs: figures.void_runs(),
            data: Data::Uplink(plan, figures),
        })
    }
}

impl Design {
    /// The plan, with the command line's changes.
    fn plan(&self, id: &str, asked: &Choices) -> Result<Plan, LabError> {
        let servers: Vec<String> = match &asked.servers()?[..] {
            [] => self.servers.clone(),
            named => named.iter().map(ToString::to_string).collect(),
        };
        for server in &servers {
            self.check_server(id, server.parse()?)?;
        }
        let change = |point: &Point| Point {
            seconds: asked.seconds.unwrap_or(point.seconds),
            ..point.clone().at_rate(asked.rate.unwrap_or(point.rate))
        };
        Ok(Plan {
            experiment: id.into(),
            points: self.points.iter().map(change).collect(),
            servers,
            seeds: (1..=asked.seeds.unwrap_or(self.seeds)).collect(),
        })
    }

    fn check_server(&self, experiment: &str, server: Server) -> Result<(), LabError> {
        let ours = matches!(
            server,
            Server::Ours(OursMode::Paced(_) | OursMode::PacedAging(..))
        );
        if self.on_loopback() && !ours {
            let policies: Vec<String> = Policy::ALL.iter().map(ToString::to_string).collect();
            return Err(LabError::ServerNotInExperiment {
                experiment: experiment.into(),
                server: server.to_string(),
                allowed: format!("ours by policy: {}", policies.join(", ")),
            });
        }
        if self.is_narrow_behind() && matches!(server, Server::NginxBehind(_)) {
            return Err(LabError::ServerNotInExperiment {
                experiment: experiment.into(),
                server: server.to_string(),
                allowed: "no queue of today: the link is narrow one hop away, where a FIFO is"
                    .into(),
            });
        }
        Ok(())
    }

    fn is_narrow_behind(&self) -> bool {
        let is_behind =
            |point: &Point| matches!(point.setup.environment.bottleneck, Bottleneck::Hop { .. });
        self.points.iter().any(is_behind)
    }

    fn on_loopback(&self) -> bool {
        self.points.iter().all(|point| point.setup.loopback)
    }
}
