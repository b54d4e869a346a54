//! Which steps are begun when, and which are not any more (provider.md D17). Pure.

use super::graph::Graph;

/// What happens to the others when a step fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum OnFailure {
    /// Nothing new is begun, what runs may end.
    #[default]
    Stop,
    /// Only what depends on it is left out.
    Continue,
    /// As stop, and then everything that was done is taken back.
    Undo,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Not begun.
    Waiting,
    /// Begun.
    Running,
    /// Done.
    Done,
    /// Not done, or not known to be done.
    Failed,
    /// Never to be begun in this run.
    Skipped,
}

/// All steps of a run.
#[derive(Debug, Clone)]
pub struct Schedule {
    graph: Graph,
    /// Nodes in the order in which they are begun when several could be.
    order: Vec<usize>,
    stages: Vec<Stage>,
    most: usize,
    on_failure: OnFailure,
    stopped: bool,
}

impl Schedule {
    /// A schedule with at most `most` steps at a time; `order` is one that the graph allows.
    pub fn new(graph: Graph, order: Vec<usize>, most: usize, on_failure: OnFailure) -> Self {
        let stages = vec![Stage::Waiting; graph.nodes()];
        Self { graph, order, stages, most: most.max(1), on_failure, stopped: false }
    }

    /// How far this step is.
    pub fn stage(&self, node: usize) -> Stage {
        self.stages.get(node).copied().unwrap_or(Stage::Skipped)
    }

    /// The steps to begin now; they count as running from here on.
    pub fn begin(&mut self) -> Vec<usize> {
        let mut begun = Vec::new();
        if self.stopped {
            return begun;
        }
        let mut room = self.most.saturating_sub(self.count(Stage::Running));
        for node in &self.order {
            if room == 0 {
                break;
            }
            let ready = self.graph.before(*node).all(|first| self.stages.get(first) == Some(&Stage::Done));
            if let Some(stage) = self.stages.get_mut(*node).filter(|stage| **stage == Stage::Waiting && ready)
            {
                *stage = Stage::Running;
                begun.push(*node);
                room -= 1;
            }
        }
        begun
    }

    /// A step has ended.
    pub fn ended(&mut self, node: usize, done: bool) {
        self.set(node, if done { Stage::Done } else { Stage::Failed });
        if !done && self.on_failure != OnFailure::Continue {
            self.stopped = true;
        }
    }

    /// Nothing new is begun.
    pub const fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether nothing runs and nothing will be begun.
    pub fn is_over(&self) -> bool {
        let can_begin = |node: &usize| {
            self.stage(*node) == Stage::Waiting
                && self.graph.before(*node).all(|first| self.stage(first) == Stage::Done)
        };
        self.count(Stage::Running) == 0 && (self.stopped || !self.order.iter().any(can_begin))
    }

    /// Marks what was never begun, and tells it.
    pub fn skip_rest(&mut self) -> Vec<usize> {
        let rest: Vec<usize> =
            self.order.iter().copied().filter(|node| self.stage(*node) == Stage::Waiting).collect();
        for node in &rest {
            self.set(*node, Stage::Skipped);
        }
        rest
    }

    /// How many are at this stage.
    pub fn count(&self, stage: Stage) -> usize {
        self.stages.iter().filter(|this| **this == stage).count()
    }

    fn set(&mut self, node: usize, stage: Stage) {
        if let Some(this) = self.stages.get_mut(node) {
            *this = stage;
        }
    }
}
