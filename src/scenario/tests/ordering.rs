//! What comes before what, and what is begun when.

use crate::scenario::graph::Graph;
use crate::scenario::schedule::{OnFailure, Schedule, Stage};

/// A graph of so many nodes with these edges, each from first to then.
fn graph(nodes: usize, edges: &[(usize, usize)]) -> Graph {
    let mut graph = Graph::new(nodes);
    for (first, then) in edges {
        graph.edge(*first, *then);
    }
    graph
}

fn schedule(nodes: usize, edges: &[(usize, usize)], most: usize, on_failure: OnFailure) -> Schedule {
    let graph = graph(nodes, edges);
    let order = graph.order().unwrap();
    Schedule::new(graph, order, most, on_failure)
}

#[test]
fn an_order_keeps_edges_and_else_that_of_the_file() {
    for (nodes, edges, order) in [
        (3, &[][..], &[0, 1, 2][..]),
        (3, &[(2, 0)], &[1, 2, 0]),
        (4, &[(3, 1), (1, 0), (3, 2)], &[3, 1, 0, 2]),
    ] {
        assert_eq!(graph(nodes, edges).order().unwrap(), order, "{edges:?}");
    }
}

#[test]
fn a_circle_is_told_in_its_order() {
    assert_eq!(graph(4, &[(0, 1), (1, 2), (2, 0), (2, 3)]).order(), Err(vec![1, 2, 0]));
    assert_eq!(graph(2, &[(1, 1)]).order(), Err(vec![1]));
}

#[test]
fn steps_are_begun_as_soon_as_what_is_before_them_is_done() {
    let mut plan = schedule(4, &[(0, 2), (1, 2), (2, 3)], 64, OnFailure::Stop);
    assert_eq!(plan.begin(), [0, 1]);
    plan.ended(0, true);
    assert_eq!(plan.begin(), [] as [usize; 0]);
    plan.ended(1, true);
    assert_eq!(plan.begin(), [2]);
    plan.ended(2, true);
    assert_eq!(plan.begin(), [3]);
    assert!(!plan.is_over());
    plan.ended(3, true);
    assert!(plan.is_over() && plan.skip_rest().is_empty());
}

#[test]
fn no_more_run_at_a_time_than_may() {
    let mut plan = schedule(5, &[], 2, OnFailure::Stop);
    assert_eq!(plan.begin(), [0, 1]);
    plan.ended(1, true);
    assert_eq!(plan.begin(), [2]);
    assert_eq!(plan.count(Stage::Running), 2);
}

#[test]
fn after_a_failure_what_runs_may_end_and_the_policy_says_what_else_is_begun() {
    for (on_failure, begun, skipped) in [
        (OnFailure::Stop, &[][..], &[2, 3][..]),
        (OnFailure::Undo, &[], &[2, 3]),
        (OnFailure::Continue, &[3], &[2]),
    ] {
        let mut plan = schedule(4, &[(0, 2), (1, 3)], 64, on_failure);
        assert_eq!(plan.begin(), [0, 1]);
        plan.ended(0, false);
        assert!(!plan.is_over());
        plan.ended(1, true);
        assert_eq!(plan.begin(), begun, "{on_failure:?}");
        for node in begun {
            plan.ended(*node, true);
        }
        assert!(plan.is_over());
        assert_eq!(plan.skip_rest(), skipped, "{on_failure:?}");
    }
}

#[test]
fn once_stopped_nothing_is_begun() {
    let mut plan = schedule(2, &[], 1, OnFailure::Continue);
    assert_eq!(plan.begin(), [0]);
    plan.stop();
    plan.ended(0, true);
    assert!(plan.begin().is_empty() && plan.is_over());
    assert_eq!(plan.skip_rest(), [1]);
}
