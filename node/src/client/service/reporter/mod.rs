//! What the client keeps in the mesh's buckets of each of its modules: needs, items, the latest report.

mod actor;
mod plan;

pub(super) use actor::Reporter;
