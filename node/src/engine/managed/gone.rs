//! Which of the keys that were ours have to leave a tree.

use std::collections::BTreeMap;

use super::Keys;

/// What leaves: values, and then the containers we made that are empty without them.
#[derive(Debug)]
pub(super) struct Gone {
    /// Paths where a value of ours may stand.
    pub(super) leaves: Keys,
    /// Paths where a container of ours may stand.
    pub(super) containers: Keys,
}

impl Gone {
    /// Everything that was ours.
    pub(super) fn all(ours: &Keys) -> Self {
        Self { leaves: ours.clone(), containers: ours.clone() }
    }

    /// Compares what was ours with the leaves that are wanted now, each with true where it is an empty container; answers
    /// what goes and what is ours then, containers aside that are yet to be made.
    pub(super) fn of<'a>(before: &Keys, wanted: impl Iterator<Item = (&'a [String], bool)>) -> (Self, Keys) {
        let wanted: BTreeMap<&[String], bool> = wanted.collect();
        let is_on_the_way =
            |path: &[String]| wanted.keys().any(|leaf| leaf.len() > path.len() && leaf.starts_with(path));
        let is_wanted_container = |path: &[String]| wanted.get(path) == Some(&true) || is_on_the_way(path);
        let leaves =
            before.iter().filter(|path| wanted.get(path.as_slice()) != Some(&false)).cloned().collect();
        let (kept, containers): (Keys, Keys) =
            before.iter().cloned().partition(|path| is_wanted_container(path));
        let values = wanted.iter().filter(|(_, is_container)| !**is_container).map(|(path, _)| path.to_vec());
        let ours = values.chain(kept).collect();
        (Self { leaves, containers }, ours)
    }
}
