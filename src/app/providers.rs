//! From a provider's configuration to what its runner is told.

use std::ffi::OsString;
use std::time::Duration;

use quartermaster_actors::builtin::Builtin;
use quartermaster_actors::provider::{
    Compat, Digest, EnvironmentRules, Inherit, Policy, ProviderSettings, Restart, Timeouts, Trust,
    environment,
};
use quartermaster_proto::provider::AnyEncoding;

use crate::config::{Config, ProviderConfig};
use crate::provider::launcher;

/// The settings of a provider of this configuration.
pub fn settings(config: &Config, provider: &ProviderConfig) -> ProviderSettings {
    let directory = config.providers_dir.clone();
    settings_of(provider, directory, config.providers_allow.as_deref())
}

/// The settings of a provider whose program has to lie below `directory` and to have one of these digests.
pub fn settings_of(
    provider: &ProviderConfig,
    directory: Option<std::path::PathBuf>,
    allowed: Option<&[[u8; 32]]>,
) -> ProviderSettings {
    let mut settings = match provider.builtin.as_deref().and_then(Builtin::find) {
        Some(builtin) => ProviderSettings::builtin(provider.name.clone(), builtin),
        None => ProviderSettings::new(provider.name.clone(), provider.program.clone()),
    };
    settings.wrapper =
        launcher(&provider.confine).into_iter().chain(provider.wrapper.iter().map(OsString::from)).collect();
    settings.trust = Trust {
        sha256: provider.sha256.map(Digest),
        copy: provider.pin_copy,
        directory,
        policy: allowed
            .map_or(Policy::AllowAll, |list| Policy::AllowList(list.iter().copied().map(Digest).collect())),
    };
    settings.config = provider.config.clone();
    settings.timeouts = timeouts(provider);
    settings.max_in_flight = provider.max_in_flight.unwrap_or(settings.max_in_flight);
    settings.instances = provider.instances;
    settings.directory.clone_from(&provider.cwd);
    let rules = EnvironmentRules {
        inherit: if provider.env.inherit { Inherit::All } else { Inherit::Clean },
        pass: provider.env.pass.clone(),
        set: provider.env.set.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        remove: Vec::new(),
    };
    settings.environment = environment(std::env::vars_os(), &rules);
    settings.restart = restart(provider);
    settings.compat = Compat {
        undo: !provider.compat.no_undo,
        any_encoding: if provider.compat.any_cty { AnyEncoding::Cty } else { AnyEncoding::Plain },
        log_stray_stdout: provider.compat.log_stray_stdout,
        ping_probe: provider.compat.ping_probe,
    };
    settings.max_frame = provider.max_frame.unwrap_or(settings.max_frame);
    settings.strict_outputs = provider.strict_outputs;
    settings.eager = provider.eager;
    settings.idle_stop = provider.idle_stop;
    settings.install_hint.clone_from(&provider.install_hint);
    settings.probed.clone_from(&provider.probed);
    settings
}

fn timeouts(provider: &ProviderConfig) -> Timeouts {
    let (set, standard) = (&provider.timeouts, Timeouts::default());
    Timeouts {
        schema: set.schema.unwrap_or(standard.schema),
        describe: set.describe.unwrap_or(standard.describe),
        configure: set.configure.unwrap_or(standard.configure),
        execute: set
            .execute
            .map_or(standard.execute, |limit| Some(limit).filter(|limit| *limit > Duration::ZERO)),
        write: set.write.unwrap_or(standard.write),
        shutdown: set.shutdown.unwrap_or(standard.shutdown),
        cancel: set.cancel.unwrap_or(standard.cancel),
        ..standard
    }
}

fn restart(provider: &ProviderConfig) -> Restart {
    let (set, standard) = (&provider.restart, Restart::default());
    Restart {
        min: set.min.unwrap_or(standard.min),
        max: set.max.unwrap_or(standard.max),
        limit: set.limit.unwrap_or(standard.limit),
        window: set.window.unwrap_or(standard.window),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BUILTINS;

    #[test]
    fn the_builtins_that_a_configuration_may_name_are_those_there_are() {
        assert_eq!(BUILTINS, Builtin::ALL.map(Builtin::name));
    }
}
