//! As process 1.
