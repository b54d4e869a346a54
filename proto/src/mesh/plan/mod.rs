//! Assignments and the plans they carry.

mod check;
mod digest;
mod read;
mod shape;
mod write;

pub use digest::{Digest, Reference};
pub use read::{ModuleFile, read_assignment, read_module_file};
pub use shape::{
    Assignment, Attributes, CollectionPlan, Contents, Credential, FilePlan, Format, ItemPlan, Managed,
    MarkerPlace, Mode, OnChange, Placement, Plan, Planned, ProvisionPlan, SecretPlan, Templates, WriteMode,
};

#[cfg(test)]
mod tests;
