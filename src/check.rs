//! `quartermaster check`: every fault of the configuration at once.
