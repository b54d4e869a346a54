//! Fakes and the harness for tests.
