//! The mesh: what an operator sets up, publishes and looks at.
//!
//! In reading order: the [`Site`], the operator's folder of keys, and the broker's [`configuration`] made from them; [`prepare`]d
//! buckets and the registry ([`register`]); templates, [`bundle()`]d and [`publish_archive`]d; modules, checked as the catalogue does and
//! [`assign()`]ed; [`set_config`] and [`bind`], which stand in for owners; what there is to look at ([`modules`]).

mod assign;
mod broker;
mod bundle;
mod catalogue;
mod error;
mod look;
mod object;
mod providers;
mod registry;
mod rows;
mod signer;
mod site;
mod stores;
mod values;

pub use assign::{Assigned, Order, assign, assign_unchecked, unassign};
pub use broker::{User, configuration};
pub use bundle::{bundle, object_name};
pub use catalogue::{between, paths, plan_faults, plan_for, provider_account};
pub use error::{Cause, MeshError};
pub use look::{Placed, Selection, modules, needs, registry_faults, reports};
pub use object::{Published, publish_archive};
pub use registry::{put_entry, register};
pub use rows::{Row, rows};
pub use signer::Signer;
pub use site::{Site, SiteSettings};
pub use stores::{BUCKETS, Made, prepare, prepare_bound};
pub use values::{Binding, bind, set_config, unbind, unset_config};
