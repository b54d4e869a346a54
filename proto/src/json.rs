//! JSON under limits, and the canonical form that helpers receive.
