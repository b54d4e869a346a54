//! One host's provisioning cycle.
