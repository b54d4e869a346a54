//! The roster of hosts and who may be provisioned when.
