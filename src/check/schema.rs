//! What a helper that is a provider declares. Its program is asked for its schema, no process is kept, nothing is configured.

use quartermaster_proto::helper::misfits;

use crate::app::settings;
use crate::config::{Config, FaultKind, Faults, HELPER_PROVIDER, HelperProtocol, Severity};
use crate::provider::{ask, cache};

const KEY: &str = "helper";

/// Asks the helper's program for its schema and sees whether it can be this site's helper.
pub fn examine_schema(config: &Config, faults: &mut Faults) {
    if config.helper.protocol != HelperProtocol::Provider {
        return;
    }
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            faults.missing(KEY, format!("its schema could not be asked for: {error}"), "");
            return;
        }
    };
    let settings = settings::helper_provider(config);
    let described = config.providers.iter().find(|provider| provider.name == HELPER_PROVIDER);
    let by_describe = described.is_some_and(|provider| provider.compat.probe_by_describe);
    match runtime.block_on(ask(&settings, by_describe, cache().as_deref())) {
        Ok(asked) => {
            for warning in &asked.warnings {
                let what = format!("its schema: {warning}");
                faults.about(Severity::Warning, FaultKind::Files, KEY, what, "");
            }
            for misfit in misfits(&asked.schema, &settings::helper_always(config)) {
                let help = "docs/helpers.md shows what a helper that is a provider declares";
                faults.missing(KEY, format!("as a provider: {misfit}"), help);
            }
        }
        Err(error) => {
            let said =
                error.stderr.last().map(|line| format!("; its last words: {line}")).unwrap_or_default();
            let help = "a provider prints its schema when its only argument is `schema`; an older helper goes on with \
                        `quartermaster provider wrap -- HELPER`";
            faults.missing(KEY, format!("{}{said}", error.message()), help);
        }
    }
}
