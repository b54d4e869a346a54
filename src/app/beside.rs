//! A provider beside the work of a verb, on a thread of its own: nobody starts its runner again, and its calls are unknown when it fails.

use std::sync::Arc;

use actix::Actor as _;
use actix_rt::Arbiter;
use quartermaster_actors::provider::{ProviderHandle, ProviderParts, ProviderRunner};
use quartermaster_actors::supervise::Slot;

/// Starts the runner of these parts. It ends with the arbiter.
pub fn provider_beside(parts: ProviderParts) -> (ProviderHandle, Arbiter) {
    let parts = Arc::new(parts);
    let arbiter = Arbiter::new();
    let own = Arc::clone(&parts);
    let runner = ProviderRunner::start_in_arbiter(&arbiter.handle(), move |_| ProviderRunner::new(own, None));
    let slot = Slot::new("provider", 1);
    slot.set(runner);
    (ProviderHandle::new(slot, parts), arbiter)
}
