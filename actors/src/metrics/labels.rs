//! The closed sets of label values: what is not in a set cannot become a series, so the number of series never grows.

/// Values of `rpc`, as `(agent, action)`: every call a cycle may make (choria.md 12.3 and 10).
pub const RPCS: [(&str, &str); 8] = [
    ("choria_provision", "configure"),
    ("choria_provision", "gen25519"),
    ("choria_provision", "gencsr"),
    ("choria_provision", "jwt"),
    ("choria_provision", "release_update"),
    ("choria_provision", "restart"),
    ("choria_provision", "shutdown"),
    ("rpcutil", "inventory"),
];

/// What stands for every value that is not in its set.
pub const OTHER: &str = "other";

/// Values of `cause` of a cycle's end: the good ends, then the failures by step or reason.
pub const CYCLE_ENDS: [&str; 30] = [
    "provisioned",
    "updating",
    "shut_down",
    "serving",
    "interrupted",
    "deferred",
    "busy",
    "jwt",
    "token",
    "gen25519",
    "key_proof",
    "inventory",
    "gencsr",
    "csr",
    "helper",
    "empty_configuration",
    "server_token",
    "seal_key",
    "update",
    "configure",
    "shutdown",
    "restart",
    "conflict",
    "step",
    "step_unknown",
    "take_back",
    "came_back",
    "actor",
    "stuck",
    OTHER,
];

/// Values of `actor`: the folder names, and those of what control has for itself.
pub const ACTORS: [&str; 17] = [
    "claim",
    "control",
    "control_link",
    "control_vault",
    "discovery",
    "election",
    "fleet",
    "helper",
    "host",
    "journal",
    "link",
    "metrics",
    "overseer",
    "provider",
    "service",
    "vault",
    OTHER,
];

/// Values of `cause` of an actor's end.
pub const EXIT_CAUSES: [&str; 4] = ["stopped", "panicked", "stuck", "failed"];

/// Values of `result` of a provider's step.
pub const STEP_RESULTS: [&str; 8] =
    ["done", "failed", "skipped", "undone", "undo_failed", "left", "unknown", "given_up"];

/// Values of `lane`.
pub const LANES: [&str; 4] = ["discovery", "events", "queue", OTHER];

/// The position of a value in its set; the last value stands for strangers.
pub(super) fn position(set: &[&str], value: &str) -> usize {
    set.iter().position(|known| *known == value).unwrap_or_else(|| set.len().saturating_sub(1))
}
