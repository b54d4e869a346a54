//! The two configuration files of a Choria Provisioner, read into types that cannot be wrong.
//!
//! `raw` mirrors the YAML file with the place of every value, `choria_cfg` reads choria.cfg and its relatives,
//! `checked` is what the rest of the program sees. This module knows no actor.

mod checked;

pub use checked::{
    BrokerAddress, BrokerConfig, COLLECTIVE, ClusterMode, Config, ControlConfig, EnrollConfig, Features,
    HelperCommand, HelperConfig, HelperEnv, HelperProtocol, ListenAddress, LogConfig, LogLevel, LogTarget,
    RetryConfig, Security, ServerSource, TlsFiles, UpgradesConfig, VerifyKeySource,
};
