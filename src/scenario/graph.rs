//! What comes before what. Pure.

use std::collections::{BTreeMap, BTreeSet};

/// Nodes by number, and for each those that have to be done before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    before: Vec<BTreeSet<usize>>,
}

impl Graph {
    /// A graph of so many nodes without edges.
    pub fn new(nodes: usize) -> Self {
        Self { before: vec![BTreeSet::new(); nodes] }
    }

    /// `first` has to be done before `then`.
    pub fn edge(&mut self, first: usize, then: usize) {
        if let Some(before) = self.before.get_mut(then) {
            before.insert(first);
        }
    }

    /// How many nodes there are.
    pub const fn nodes(&self) -> usize {
        self.before.len()
    }

    /// What has to be done right before this node.
    pub fn before(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        self.before.get(node).into_iter().flatten().copied()
    }

    /// An order in which each node comes after all that have to be done before it: of several that may come next the one with the
    /// lowest number does.
    ///
    /// # Errors
    /// The nodes of a circle, each before the next and the last before the first.
    pub fn order(&self) -> Result<Vec<usize>, Vec<usize>> {
        let mut open: BTreeMap<usize, usize> =
            self.before.iter().enumerate().map(|(node, before)| (node, before.len())).collect();
        let mut after: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (node, before) in self.before.iter().enumerate() {
            for first in before {
                after.entry(*first).or_default().push(node);
            }
        }
        let mut ready: BTreeSet<usize> =
            open.iter().filter(|(_, left)| **left == 0).map(|(node, _)| *node).collect();
        let mut order = Vec::with_capacity(self.before.len());
        while let Some(node) = ready.pop_first() {
            open.remove(&node);
            order.push(node);
            for then in after.get(&node).into_iter().flatten() {
                if let Some(left) = open.get_mut(then) {
                    *left -= 1;
                    if *left == 0 {
                        ready.insert(*then);
                    }
                }
            }
        }
        if open.is_empty() { Ok(order) } else { Err(self.circle(&open)) }
    }

    /// A circle among nodes that all wait for another one of them.
    fn circle(&self, waiting: &BTreeMap<usize, usize>) -> Vec<usize> {
        let mut path: Vec<usize> = Vec::new();
        let mut next = waiting.keys().next().copied();
        while let Some(node) = next {
            if let Some(start) = path.iter().position(|seen| *seen == node) {
                let mut circle = path.split_off(start);
                circle.reverse();
                return circle;
            }
            path.push(node);
            next = self.before(node).find(|first| waiting.contains_key(first));
        }
        path
    }
}
