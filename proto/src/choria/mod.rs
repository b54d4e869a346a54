//! The Choria protocol: envelopes, agents, events, tokens (facts: docs/protocols.md).
