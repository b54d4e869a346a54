//! Quartermaster: what `main`, the tests and the benches share.
