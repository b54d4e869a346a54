//! The two configuration files of a Choria Provisioner, read into types that cannot be wrong.
//!
//! `yaml` and `raw` mirror the YAML file with the place of every value, `choria_cfg` reads choria.cfg and its relatives,
//! `daemon` and `network` check what they say, `checked` is what the rest of the program sees. This module knows no actor.

mod checked;
pub mod choria_cfg;
mod cluster;
mod control;
mod daemon;
mod deny_list;
mod duration;
pub mod fault;
mod helper;
mod load;
mod network;
mod provider_check;
mod providers;
pub mod raw;
mod section;
mod shell;
mod steps;
pub mod surroundings;
mod values;
mod web;
pub mod yaml;

pub use checked::{
    BrokerAddress, BrokerConfig, COLLECTIVE, ClaimsConfig, ClusterMode, Config, EnrollConfig, Features,
    HelperCommand, HelperConfig, HelperProtocol, ListenAddress, ListenTls, LogConfig, LogLevel, LogTarget,
    RetryConfig, Security, ServerSource, TlsFiles, UpgradesConfig, VerifyKeySource, WebConfig,
};
pub use control::{ControlConfig, ControlLogin};
pub use deny_list::DEFAULT_DENY_LIST;
pub use duration::{DurationError, parse_cfg_duration, parse_duration, show_duration};
pub use fault::{Fault, FaultKind, Faults, Place, Severity};
pub use helper::HELPER_PROVIDER;
pub use load::{DEFAULT_FILE, Loaded, load};
pub use provider_check::BUILTINS;
pub use providers::{
    ProviderCompat, ProviderConfig, ProviderConfine, ProviderEnv, ProviderRestart, ProviderTimeouts,
    provider_of,
};
pub use shell::{SplitError, split};
pub use steps::{StepConfig, StepsConfig};
pub use surroundings::Surroundings;

#[cfg(test)]
mod recorded;
