//! One provider by itself, for a verb that uses it once: nobody starts its runner again.

use std::sync::Arc;

use actix::Actor as _;
use quartermaster_actors::child::Orphans;
use quartermaster_actors::provider::{
    ProviderHandle, ProviderParts, ProviderRunner, ProviderSettings, ProviderSink,
};
use quartermaster_actors::supervise::Slot;

/// Starts the runner of this provider on the current thread, which has to run actors.
pub fn lone_provider(settings: ProviderSettings, sink: ProviderSink) -> ProviderHandle {
    let parts = Arc::new(ProviderParts::new(settings, sink, Orphans::unadopted()));
    let slot = Slot::new("provider", 1);
    slot.set(ProviderRunner::new(Arc::clone(&parts), None).start());
    ProviderHandle::new(slot, parts)
}
