//! Gates before other servers that do the same work: each has a queue, a capacity and estimates of its own, and
//! all of them open and close together.

use std::sync::Arc;

use super::Gate;

impl Gate {
    /// A gate before another server of the same kind. It begins with what this one has learnt, is paused and
    /// resumed with it, and follows its settings.
    pub fn beside(&self) -> Self {
        let config = self.0.config.read().clone();
        let tenants = config.tenants.clone();
        let gate = Self::without_tenants(config, Arc::clone(&self.0.doors));
        gate.set_tenants(&tenants);
        gate.restore(&self.kept());
        self.0.beside.write().push(gate.clone());
        gate
    }

    /// The estimates of what runs and waits, in nanoseconds.
    pub fn left_ns(&self) -> u64 {
        self.0.state.lock().admission.left_ns()
    }

    /// Requests that were admitted and have not ended.
    pub fn running(&self) -> usize {
        self.0.state.lock().admission.running()
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.0.state.lock().admission.waiting()
    }

    /// Requests that were admitted and have not ended, here and at the gates beside this one.
    pub fn running_in_all(&self) -> usize {
        let beside = self.0.beside.read();
        self.running() + beside.iter().map(Self::running).sum::<usize>()
    }

    /// Does this here and at the gates beside.
    pub(super) fn for_each(&self, mut act: impl FnMut(&Self)) {
        act(self);
        self.each_beside(act);
    }

    /// Does this at the gates beside.
    pub(super) fn each_beside(&self, mut act: impl FnMut(&Self)) {
        for gate in self.0.beside.read().iter() {
            act(gate);
        }
    }
}
